"""The text of a tensor as PyTorch prints it, made from a NumPy array.

The text depends only on the array, the default dtype, the print options and the autograd flags;
values are shown as their exact Python numbers, so a float32 is widened before it is formatted.

`print(t)` is `format_tensor`. `f"{t:.4f}"` is something else: a tensor of one element formats its
`.item()` with the given spec, any other tensor accepts only the empty spec, which is `str(t)`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ..errors import fault

MAX_PRECISION = 1000
"""Digits after the point that may be asked for; more would only cost memory."""


class PrintOptions(NamedTuple):
    """What `torch.set_printoptions` sets; the defaults are PyTorch's."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: float = 80
    sci_mode: bool | None = None


DEFAULT = PrintOptions()

_PROFILES: dict[str, dict[str, float]] = {
    "default": {"precision": 4, "threshold": 1000, "edgeitems": 3, "linewidth": 80},
    "short": {"precision": 2, "threshold": 1000, "edgeitems": 2, "linewidth": 80},
    "full": {"precision": 4, "threshold": math.inf, "edgeitems": 3, "linewidth": 80},
}


def set_printoptions(
    options: PrintOptions = DEFAULT,
    *,
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: float | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> PrintOptions:
    """The options after `torch.set_printoptions(...)`, starting from `options`.

    A profile comes first and single options override it. `sci_mode` is not remembered: leaving it
    out makes it automatic again, as in PyTorch. Wrong values raise E205.
    """
    changes: dict[str, float] = {}
    if profile is not None:
        if profile not in _PROFILES:
            raise fault("E205 set_printoptions-no-profile", profile)
        changes.update(_PROFILES[profile])
    if precision is not None:
        changes["precision"] = _whole("precision", precision, MAX_PRECISION)
    if edgeitems is not None:
        changes["edgeitems"] = _whole("edgeitems", edgeitems)
    if threshold is not None:
        changes["threshold"] = _number("threshold", threshold)
    if linewidth is not None:
        width = _number("linewidth", linewidth)
        if not math.isfinite(width):
            raise _wrong("linewidth", linewidth, "a finite number")
        changes["linewidth"] = width
    if sci_mode is not None and not isinstance(sci_mode, bool | np.bool_):
        raise _wrong("sci_mode", sci_mode, "True, False or None")
    return options._replace(sci_mode=sci_mode, **changes)  # type: ignore[arg-type]  # checked above


def _wrong(name: str, value: object, wanted: str) -> Exception:
    return fault("E205 set_printoptions-not", name, wanted, value)


def _whole(name: str, value: object, most: int | None = None) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 0:
        raise _wrong(name, value, "a whole number from 0")
    if most is not None and value > most:
        raise _wrong(name, value, f"at most {most}")
    return int(value)


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        raise _wrong(name, value, "a number")
    if value != value:
        raise _wrong(name, value, "a number")
    return value  # type: ignore[return-value]  # NumPy scalars compare like Python's


def format_tensor(
    array: np.ndarray,
    *,
    requires_grad: bool = False,
    grad_fn: str | None = None,
    default_dtype: np.dtype | type = np.float32,
    options: PrintOptions = DEFAULT,
    prefix: str = "tensor(",
    is_parameter: bool = False,
    tangent: str | None = None,
) -> str:
    """What `print(t)` writes for a tensor that holds `array`.

    `array` is of any shape and of a bool, integer or float dtype. `grad_fn` is the node's name
    without brackets (`MulBackward0`) and, when given, is shown in place of `requires_grad=True`.
    `prefix` is the text up to and with the opening bracket; continuation lines are indented by
    its length. Source of the rules: PyTorch 2.13, `torch/_tensor_str.py`.
    """
    indent = len(prefix)
    body = _body(array, indent, options)
    notes = _dtype_notes(array, np.dtype(default_dtype), options)
    if grad_fn is not None:
        notes.append(f"grad_fn=<{grad_fn}>")
    elif requires_grad:
        notes.append("requires_grad=True")
    if tangent is not None:
        notes.append(f"tangent={tangent}")
    text = _with_notes(prefix + body, notes, indent, options.linewidth)
    return f"Parameter containing:\n{text}" if is_parameter else text


def _dtype_notes(array: np.ndarray, default: np.dtype, options: PrintOptions) -> list[str]:
    """`size=` and `dtype=`, where the values alone do not tell them."""
    notes = []
    empty = array.size == 0
    if array.ndim != 1 if empty else options.edgeitems == 0:
        notes.append(f"size={array.shape}")
    # An empty list shows no kind of value, so there int64 and bool are not taken for granted.
    implied = array.dtype == default or (not empty and array.dtype in (np.int64, np.bool_))
    if not implied:
        notes.append(f"dtype=torch.{array.dtype.name}")
    return notes


def _with_notes(text: str, notes: Sequence[str], indent: int, linewidth: float) -> str:
    """Append the notes, each on the last line while it fits, and the closing bracket."""
    parts = [text]
    # PyTorch counts from the line break itself, and two characters more on the first line.
    used = len(text) - text.rfind("\n") + 1
    for note in notes:
        if used + len(note) + 2 > linewidth:
            parts.append(",\n" + " " * indent + note)
            used = indent + len(note)
        else:
            parts.append(", " + note)
            used += len(note) + 2
    parts.append(")")
    return "".join(parts)


def _body(array: np.ndarray, indent: int, options: PrintOptions) -> str:
    if array.size == 0:
        return "[]"
    summarize = array.size > options.threshold
    edge = options.edgeitems
    if summarize and edge == 0 and array.ndim:
        return "[...]"
    shown = _edges(array, edge) if summarize else array
    cells, width = _cells(shown, options)
    if array.ndim == 0:
        return next(cells)
    cut = [summarize and size > 2 * edge for size in array.shape]
    per_line = max(1, math.floor((options.linewidth - indent - array.ndim + 1) / (width + 2)))
    return _nest(cells, shown.shape, cut, edge, indent, per_line)


def _edges(array: np.ndarray, edge: int) -> np.ndarray:
    """The first and last `edge` entries of every dimension longer than both together."""
    if array.ndim == 0:
        return array
    keep = [
        np.r_[:edge, size - edge : size] if size > 2 * edge else np.arange(size)
        for size in array.shape
    ]
    return array[np.ix_(*keep)]  # one gather: `take` would copy a broadcast array in full


def _nest(
    cells: Iterator[str],
    shape: Sequence[int],
    cut: Sequence[bool],
    edge: int,
    indent: int,
    per_line: int,
) -> str:
    """Bracket the cells along `shape`; `cut` tells where an ellipsis stands in the middle."""
    inner = shape[1:]
    if inner:
        parts = [_nest(cells, inner, cut[1:], edge, indent + 1, per_line) for _ in range(shape[0])]
        ellipsis = "..."
        joint = "," + "\n" * len(inner) + " " * (indent + 1)
    else:
        parts = [next(cells) for _ in range(shape[0])]
        ellipsis = " ..."
        joint = ",\n" + " " * (indent + 1)
    if cut[0]:
        parts.insert(edge, ellipsis)
    if not inner:
        parts = [", ".join(parts[at : at + per_line]) for at in range(0, len(parts), per_line)]
    return "[" + joint.join(parts) + "]"


def _cells(array: np.ndarray, options: PrintOptions) -> tuple[Iterator[str], int]:
    """The texts of all values in order, padded to their common width, and that width."""
    values = array.ravel().tolist()
    if not np.issubdtype(array.dtype, np.floating):
        texts = [str(value) for value in values]
        width = max(map(len, texts))
    else:
        texts, width = _float_cells(array, values, options)
    return (text.rjust(width) for text in texts), width


def _float_cells(
    array: np.ndarray, values: Sequence[float], options: PrintOptions
) -> tuple[list[str], int]:
    """Unpadded texts of floats; only finite non-zero values decide on the form and the width."""
    flat = array.ravel()
    telling = np.isfinite(flat) & (flat != 0)
    if not telling.any():
        return [_with_point(value) for value in values], 1
    magnitudes = np.abs(flat[telling].astype(np.float64))
    whole = bool((magnitudes == np.ceil(magnitudes)).all())
    if _scientific(magnitudes, options):
        texts = [f"{value:.{options.precision}e}" for value in values]
    elif whole:
        texts = [_with_point(value) for value in values]
    else:
        texts = [f"{value:.{options.precision}f}" for value in values]
    return texts, max(len(texts[at]) for at in np.flatnonzero(telling))


def _scientific(magnitudes: np.ndarray, options: PrintOptions) -> bool:
    if options.sci_mode is not None:
        return options.sci_mode
    low, high = float(magnitudes.min()), float(magnitudes.max())
    return high / low > 1000.0 or high > 1.0e8 or low < 1.0e-4


def _with_point(value: float) -> str:
    """A whole float: `3.`; the non-finite ones have no point."""
    return f"{value:.0f}." if math.isfinite(value) else f"{value:.0f}"
