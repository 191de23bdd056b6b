"""Sizes of tensors: what would be too large, and what does not fit together."""

from __future__ import annotations

from math import log2, prod

import numpy as np

from ..errors import AutodiffError, fail, fault
from .node import Node, Shape
from .state import STATE

MAX_DIMS = 64  # NumPy's limit


def too_many_dims(shape: Shape) -> AutodiffError:
    return fault("E303 tensor-dims", len(shape), MAX_DIMS)


def not_single(node: Node, said: str, help: str | tuple[str, ...]) -> AutodiffError:
    """E401 for a result that is not one number; `said` is the message up to its shape."""
    shape = tuple(node.shape)
    return fail(
        "E401",
        f"{said} has shape {shape}",
        node.span,
        label=f"{shape}: {node.numel} numbers",
        help=help,
        said="grad can be implicitly created only for scalar outputs",
    )


# Shapes that were looked at, with the bytes that a tensor of the widest dtype needs.
FITTING: dict[Shape, int] = {}
ENDLESS = 1 << 62
WIDEST = 8
MOST_PLACES = ((1 << 63) - 1) // WIDEST


def check_size(shape: Shape, dtype: np.dtype) -> None:
    """Refuse a tensor that would not fit before anything is allocated."""
    if len(shape) > MAX_DIMS:
        raise too_many_dims(shape)
    n = prod(shape)
    if not n:
        check_address(shape)
    if len(FITTING) > 1000:
        FITTING.clear()
    FITTING[shape] = n * WIDEST
    n *= dtype.itemsize
    if n > STATE.max_bytes:
        raise fault(
            "E505 tensor-shape-would-need", shape, bytes_text(n), bytes_text(STATE.max_bytes)
        )


def check_address(shape: Shape) -> None:
    """Refuse a shape whose places cannot be counted, be they empty or seen many times."""
    if prod(size or 1 for size in shape) > MOST_PLACES:
        raise fault("E505 tensor-shape-more-places", shape)


def within(offset: int, x: np.ndarray) -> int:
    """The offset of a diagonal, where it lies outside of the matrices one that is just as empty and
    fits into NumPy's integers."""
    most = max(x.shape)
    return max(-most, min(offset, most))


def bytes_text(n: float) -> str:
    """A number of bytes as people read it."""
    units = ["KiB", "MiB", "GiB", "TiB", "PiB"]
    if n < 1024:
        return f"{n:.0f} bytes"
    power = min(int(log2(n)) // 10, len(units))
    return f"{n / 1024**power:.1f} {units[power - 1]}"


def cannot_broadcast(shapes: list[Shape]) -> AutodiffError:
    width = max(len(s) for s in shapes)
    rows = ["  ".join(str(v) for v in (("",) * (width - len(s)) + s)) for s in shapes]
    helps = []
    if len(shapes) == 2:
        a, b = shapes
        if len(a) == 2 and b == (a[0],):
            helps.append(
                f"for one value per row index the second as `[:, None]`, shape ({a[0]}, 1)"
            )
        elif len(b) == 2 and a == (b[0],):
            helps.append(f"for one value per row index the first as `[:, None]`, shape ({b[0]}, 1)")
    if not helps:
        helps.append(
            "sizes must be equal or 1, counted from the right; `reshape`, `.T` or "
            "`unsqueeze` may bring them together"
        )
    listed = "  against  ".join(rows)
    if len(shapes) == 2:
        failure = fault("E302 cannot-broadcast", shapes[0], shapes[1], listed)
    else:
        failure = fault(
            "E302 cannot-broadcast-text", ", ".join(map(shape_text, shapes)), listed, shapes
        )
    return failure.amend(helps=tuple(helps))


def shape_text(shape: Shape) -> str:
    return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"
