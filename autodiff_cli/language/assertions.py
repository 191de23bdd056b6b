"""`assert`: conditions, and comparisons within a tolerance that show where tensors differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..autograd import calls
from ..autograd.tensor import Tensor
from ..errors import AutodiffError, Label, fail
from ..graph.op import shape_text
from ..graph.state import STATE
from . import syntax
from .expressions import Context, compile_expression, compile_truth, placed
from .operations import equal, kind_of
from .text import text
from .values import Scope

# rtol, atol of `assert a == b` by dtype.
TOLERANCE: dict[str, tuple[float, float]] = {
    "float64": (1e-7, 1e-7),
    "float32": (1e-5, 1e-5),
    "float16": (1e-3, 1e-3),
}


class Approx:
    """`approx(value, rtol=, atol=)`: equal within a tolerance of one's own choice."""

    __slots__ = ("atol", "nan_ok", "rtol", "value")

    def __init__(self, value: Any, rtol: Any, atol: Any, nan_ok: bool):
        self.value = value
        self.rtol = rtol
        self.atol = atol
        self.nan_ok = nan_ok

    def describe(self) -> str:
        return f"approx({text(self.value)})"


def as_array(value: Any) -> np.ndarray:
    """The values of a tensor, number or numeric list."""
    if isinstance(value, Tensor):
        return value.numpy()
    if isinstance(value, bool | int | float):
        return np.asarray(value)
    if isinstance(value, list | tuple):
        from ..graph.op import value_of

        return value_of(calls.node_of_list(list(value)))
    raise fail(
        "E208",
        f"{kind_of(value)} cannot be compared with a tensor",
        help="compare tensors, numbers and numeric lists",
    )


def close_mask(
    left: np.ndarray, right: np.ndarray, rtol: float, atol: float, nan_ok: bool
) -> np.ndarray:
    """Where `|left - right| <= atol + rtol * |right|`; equal infinities are close."""
    with np.errstate(all="ignore"):
        near = np.abs(left - right) <= atol + rtol * np.abs(right)
    near |= left == right
    if nan_ok:
        near |= np.isnan(left) & np.isnan(right)
    return near


def all_close(left: Any, right: Any, rtol: Any, atol: Any, equal_nan: bool) -> bool:
    """`torch.allclose`."""
    a, b = as_array(left), as_array(right)
    try:
        a, b = np.broadcast_arrays(a.astype(np.float64), b.astype(np.float64))
    except ValueError:
        raise fail(
            "E302",
            f"allclose of shapes {shape_text(a.shape)} and {shape_text(b.shape)}",
            help="compare equal shapes",
        ) from None
    return bool(close_mask(a, b, float(rtol), float(atol), equal_nan).all())


def compile_assert(tree: syntax.Assert, context: Context) -> Callable[[Scope], Any]:
    """The closure of an assert statement."""
    message = None if tree.message is None else compile_expression(tree.message, context)
    test = tree.test
    if isinstance(test, syntax.Compare) and test.ops == ["=="]:
        return _compile_equality(tree, test, message, context)
    condition = compile_truth(test, context)
    span = test.span

    def run(scope: Scope) -> Any:
        if not condition(scope):
            words = "" if message is None else f": {text(message(scope))}"
            raise fail(
                "E601",
                f"assertion failed{words}",
                span,
                label="this is false",
                help="print the values it compares to see why",
            )
        return None

    return run


def _compile_equality(
    tree: syntax.Assert, test: syntax.Compare, message: Any, context: Context
) -> Callable[[Scope], Any]:
    left_run = compile_expression(test.left, context)
    right_run = compile_expression(test.comparators[0], context)

    def run(scope: Scope) -> Any:
        left, right = left_run(scope), right_run(scope)
        STATE.span = test.span
        try:
            failure = difference(left, right)
        except AutodiffError as error:
            raise placed(error, test.span) from None
        if failure is None:
            return None
        words = "" if message is None else f": {text(message(scope))}"
        summary, notes = failure
        raise fail(
            "E601",
            f"assertion failed{words}: {summary}",
            test.op_spans[0],
            labels=(Label(test.left.span, "left"), Label(test.comparators[0].span, "right")),
            notes=notes,
            help="if the new value is right, write it into the assertion",
        )

    return run


def difference(left: Any, right: Any) -> tuple[str, tuple[str, ...]] | None:
    """None when `left == right` within tolerance, else a summary and tables of what differs."""
    approx = right if isinstance(right, Approx) else left if isinstance(left, Approx) else None
    a = left.value if isinstance(left, Approx) else left
    b = right.value if isinstance(right, Approx) else right
    if approx is None and not (isinstance(a, Tensor) or isinstance(b, Tensor)):
        return None if equal(a, b) else (f"{text(a)[:200]} is not {text(b)[:200]}", ())
    if a is None or b is None or isinstance(a, str) or isinstance(b, str):
        return f"{kind_of(a)} is not {kind_of(b)}", ()
    x, y = as_array(a), as_array(b)
    if x.shape != y.shape:
        return f"shapes differ: left {shape_text(x.shape)}, right {shape_text(y.shape)}", ()
    dtype = (
        a.dtype if isinstance(a, Tensor) else b.dtype if isinstance(b, Tensor) else np.dtype(float)
    )
    rtol, atol = TOLERANCE.get(dtype.name, (0.0, 0.0))
    if approx is not None:
        rtol = 1e-6 if approx.rtol is None else float(approx.rtol)
        atol = 1e-12 if approx.atol is None else float(approx.atol)
    x, y = x.astype(np.float64), y.astype(np.float64)
    near = close_mask(x, y, rtol, atol, approx is not None and approx.nan_ok)
    if near.all():
        return None
    return _table(x, y, near, rtol, atol)


def _table(
    x: np.ndarray, y: np.ndarray, near: np.ndarray, rtol: float, atol: float
) -> tuple[str, tuple[str, ...]]:
    bad = np.argwhere(~near)
    with np.errstate(all="ignore"):
        error = np.abs(x - y)
    worst = sorted(range(len(bad)), key=lambda i: -np.nan_to_num(error[tuple(bad[i])], nan=np.inf))[
        :5
    ]
    rows = [("index", "left", "right", "abs diff", "allowed")]
    for i in worst:
        at = tuple(int(v) for v in bad[i])
        allowed = atol + rtol * abs(float(y[at]))
        rows.append(
            (str(list(at)), f"{x[at]:.9g}", f"{y[at]:.9g}", f"{error[at]:.3g}", f"{allowed:.2g}")
        )
    widths = [max(len(r[c]) for r in rows) for c in range(5)]
    lines = [
        "  ".join(cell.ljust(w) for cell, w in zip(r, widths, strict=True)).rstrip() for r in rows
    ]
    if len(bad) > len(worst):
        lines.append(f"... and {len(bad) - len(worst)} more")
    return f"{len(bad)} of {x.size} elements differ", ("\n" + "\n".join(lines),)
