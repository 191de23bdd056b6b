"""`assert`: conditions, and comparisons within a tolerance that show where tensors differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...autograd import calls
from ...autograd.tensor import Tensor
from ...errors import AutodiffError, Label, fail, fault
from ...graph.op import value_of
from ...graph.sizes import shape_text
from ...graph.state import STATE
from ...numerals import format_number, matrix_lines
from ...source import Span
from ..errors.operand_labels import placed_comparison
from ..syntax import tree as syntax
from ..values.dialect import kind_of
from ..values.formatting import text
from ..values.operations import compare, equal, truth
from ..values.values import Scope
from .expressions import Context, compile_expression, compile_truth

# rtol, atol of `assert a == b` by dtype.
TOLERANCE: dict[str, tuple[float, float]] = {
    "float64": (1e-7, 1e-7),
    "float32": (1e-5, 1e-5),
    "float16": (1e-3, 1e-3),
}


@dataclass(slots=True, eq=False)
class Approx:
    """`approx(value, rtol=, atol=)`: equal within a tolerance of one's own choice."""

    value: Any
    rtol: Any
    atol: Any
    nan_ok: bool

    def describe(self) -> str:
        return f"approx({text(self.value)})"


def as_array(value: Any) -> np.ndarray:
    """The values of a tensor, number or numeric list."""
    if isinstance(value, Tensor):
        return value.numpy()
    if isinstance(value, bool | int | float):
        return np.asarray(value)
    if isinstance(value, list | tuple):
        return value_of(calls.node_of_list(list(value)))
    raise fault("E208 cannot-compared-tensor", kind_of(value))


def close_mask(
    left: np.ndarray, right: np.ndarray, rtol: float, atol: float, nan_ok: bool
) -> np.ndarray:
    """Where `|left - right| <= atol + rtol * |right|`; an infinity is close to itself alone."""
    with np.errstate(all="ignore"):
        apart = np.abs(left - right)
        near = (apart < np.inf) & (apart <= atol + rtol * np.abs(right))
    near |= left == right
    if nan_ok:
        near |= np.isnan(left) & np.isnan(right)
    return near


def all_close(left: Any, right: Any, rtol: Any, atol: Any, equal_nan: Any) -> bool:
    """`torch.allclose`."""
    a, b = as_array(left), as_array(right)
    try:
        a, b = np.broadcast_arrays(a.astype(np.float64), b.astype(np.float64))
    except ValueError:
        raise fault("E302 allclose-shapes-b", a=a, b=b) from None
    near = close_mask(a, b, float(rtol), float(atol), equal_nan)
    if near.all():
        return True
    STATE.unequal[:] = [(a, b, near, float(rtol), float(atol))]
    return False


def compile_assert(tree: syntax.Assert, context: Context) -> Callable[[Scope], Any]:
    """The closure of an assert statement."""
    message = None if tree.message is None else compile_expression(tree.message, context)
    test = tree.test
    if isinstance(test, syntax.Compare) and len(test.ops) == 1:
        return _compile_comparison(test, message, context)
    condition = compile_truth(test, context)
    close = isinstance(test, syntax.Call) and _called(test) == "allclose"

    def run(scope: Scope) -> Any:
        STATE.unequal.clear()
        if condition(scope):
            return None
        given, words = _said(message, scope)
        if isinstance(test, syntax.Call) and close and STATE.unequal:
            failure = _contrasted(*STATE.unequal.pop())
            raise _unequal(words, failure, test.func.span, *test.args).told(given)
        raise fault("E601 assertion-failed", words=words, span=test.span).told(given)

    return run


def _said(message: Any, scope: Scope) -> tuple[tuple[Any, ...], str]:
    """What the exception holds, and what our message says of it."""
    given = () if message is None else (message(scope),)
    return given, "".join(f": {text(value)}" for value in given)


def _called(call: syntax.Call) -> str:
    """The last name of what is called."""
    function = call.func
    if isinstance(function, syntax.Attribute):
        return function.attr
    return function.id if isinstance(function, syntax.Name) else ""


def _unequal(
    words: str, failure: tuple[str, tuple[str, ...]], span: Span, *sides: syntax.Node
) -> AutodiffError:
    """E601 of two sides that are not equal: a summary of what differs, and tables."""
    summary, notes = failure
    labels = [Label(side.span, name) for side, name in zip(sides, ("left", "right"), strict=False)]
    return fail(
        "E601",
        f"assertion failed{words}: {summary}",
        span,
        labels=tuple(labels),
        notes=notes,
        help="if the new value is right, write it into the assertion",
    )


def _compile_comparison(
    test: syntax.Compare, message: Any, context: Context
) -> Callable[[Scope], Any]:
    """`assert a < b` and its like: what both sides are; of `a == b` how they differ."""
    sides = test.left, test.comparators[0]
    runs = [compile_expression(side, context) for side in sides]
    symbol = test.ops[0]

    def run(scope: Scope) -> Any:
        left, right = [part(scope) for part in runs]
        STATE.span = test.span
        try:
            failure = difference(left, right) if symbol == "==" else None
            if failure is None and (symbol == "==" or truth(compare(symbol, left, right))):
                return None
        except AutodiffError as error:
            between = ((sides[0], left), (sides[1], right))
            raise placed_comparison(error, test.span, between) from None
        given, words = _said(message, scope)
        if failure is not None:
            raise _unequal(words, failure, test.op_spans[0], *sides).told(given)
        shown = tuple(
            Label(side.span, f"{name}: {_brief(value)}")
            for side, name, value in zip(sides, ("left", "right"), (left, right), strict=True)
        )
        span = test.op_spans[0]
        words = words or f": `{symbol}` is false"
        raise fault("E601 assertion-failed-comparison", words, span=span, labels=shown).told(given)

    return run


def _brief(value: Any) -> str:
    """A value in a few words: small ones whole, others by their shape."""
    if isinstance(value, Tensor):
        array = value.numpy()
        if array.size == 1:
            return format_number(array.item(), 9)
        if array.size > 4:
            return shape_text(array.shape)
        return f"{shape_text(array.shape)} {' '.join(matrix_lines(array.tolist()))}"
    return text(value)[:60]


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
        from ..errors.array_diff import both

        summary = f"shapes differ: left {shape_text(x.shape)}, right {shape_text(y.shape)}"
        return summary, (both(x, y),)
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
    return _contrasted(x, y, near, rtol, atol)


def _contrasted(
    x: np.ndarray, y: np.ndarray, near: np.ndarray, rtol: float, atol: float
) -> tuple[str, tuple[str, ...]]:
    from ..errors.array_diff import both, elements

    summary, table = elements(x, y, near, rtol, atol)
    return summary, (table, both(x, y, near)) if x.size > 1 else (table,)
