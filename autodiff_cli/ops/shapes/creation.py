"""Tensors from nothing and from other tensors' shapes.

Every public op here takes PyTorch's `layout`, `device`, `pin_memory` and `requires_grad` keywords:
the device must be the CPU, `requires_grad` is for who calls the op with tensor handles.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import reduce

import numpy as np

from ...errors import fail, fault
from ...graph.declare import Any, Dtype, Endpoint, Scalar, Shape, Size, Tensor, function, opaque
from ...graph.dtypes import BOOL, FLOAT64, INT64, is_float
from ...graph.node import Node
from ...graph.op import Op, batched, cast
from ...graph.params import Param, check_device, to_int, to_tensor
from ...graph.registry import F
from ...graph.samples import Bad, S, ints, t
from ...graph.state import STATE
from ...graph.strides import laid_out_as
from ..kernels.indices import check_number

OPTIONS = (
    Param("layout", "Any", None, True),
    Param("device", "Any", None, True),
    Param("requires_grad", "bool | None", False, True),
    Param("pin_memory", "bool", False, True),
    Param("memory_format", "Any", None, True),
)


def creation(**options: Any) -> Callable[[Callable[..., Any]], Op]:
    """`function` with PyTorch's keywords of creation ops appended; the body does not see them."""

    def decorate(body: Callable[..., Any]) -> Op:
        op = function(**options)(body)
        count = len(op.params)
        plain: Any = op.body
        op.declare_params((*op.params, *OPTIONS))

        def checked(*args: Any) -> Any:
            check_device(args[count + 1])
            return plain(*args[:count])

        op.body = checked
        return op

    return decorate


# -- one number everywhere -------------------------------------------------------------------------


def _dtype_of(number):
    return BOOL if type(number) is bool else INT64 if type(number) is int else STATE.default_dtype


def check_sizes(size):
    """E309 for negative sizes."""
    if any(n < 0 for n in size):
        raise fault("E309 size-cannot-negative", tuple(size))


def _filled_shape(size, fill_value, dtype):
    check_sizes(size)
    check_number(fill_value, dtype)
    return size, dtype


def _filled(size, fill_value, dtype):
    whole = dtype.kind in "iu"
    return np.full(size, np.array(int(fill_value)).astype(dtype) if whole else fill_value, dtype)


@opaque(
    _filled,
    name="full",
    public=False,
    shape=_filled_shape,
    samples=[S((2, 3), 1.5, FLOAT64), S((2,), 3, INT64)],
)
def filled(size: Shape, fill_value: Scalar, dtype: Dtype):
    """A tensor filled with one number."""


def _fill(size, fill_value, dtype):
    return F.filled.apply([size, fill_value, dtype])


def _fill_for(input, size, fill_value, dtype):
    """As `input` lies in memory where the sizes are its own, for each example where it is one."""
    node = _fill(size, fill_value, dtype or input.dtype)
    if size is input.shape:
        node = laid_out_as(input, node)
    if STATE.batching and batched(input):
        node.mark().batched = True
    return node


@creation(
    method=False,
    samples=[S((2, 3), 1.5), S((2,), 3), S((), True)],
    errors=[Bad("E309", (-1, 2), 1.0)],
)
def full(size: Shape, fill_value: Scalar, *, dtype: Dtype | None = None):
    """A tensor filled with one number; its dtype is that of the number unless given."""
    return _fill(size, fill_value, dtype or _dtype_of(fill_value))


@creation(method=False, samples=[S(t(2, 3), 1.5), S(ints(2), 2)])
def full_like(input: Tensor, fill_value: Scalar, *, dtype: Dtype | None = None):
    """A tensor of the shape and dtype of `input`, filled with one number."""
    return _fill_for(input, input.shape, fill_value, dtype)


@creation(samples=[S(t(2), (2, 3), 1.5)])
def new_full(input: Tensor, size: Shape, fill_value: Scalar, *, dtype: Dtype | None = None):
    """A tensor of the dtype of `input`, filled with one number."""
    return _fill_for(input, size, fill_value, dtype)


def _relatives(stem, value, doc, plain_doc, plain, like_samples, new_samples, **options):
    """`zeros(size)`, `zeros_like(x)` and `x.new_zeros(size)`."""

    def sized(size: Size, *, dtype: Dtype | None = None):
        return _fill(size, value, dtype or STATE.default_dtype)

    def like(input: Tensor, *, dtype: Dtype | None = None):
        return _fill_for(input, input.shape, value, dtype)

    def new(input: Tensor, size: Size, *, dtype: Dtype | None = None):
        return _fill_for(input, size, value, dtype)

    sized.__doc__ = plain_doc
    like.__doc__ = f"{doc} in the shape and dtype of `input`."
    new.__doc__ = f"{doc} in the dtype of `input`."
    creation(key=stem, method=False, samples=plain, **options)(sized)
    creation(key=f"{stem}_like", method=False, samples=like_samples)(like)
    creation(key=f"new_{stem}", samples=new_samples)(new)


LIKE = (S(t(2, 3)), S(ints(2)))
NEW = (S(t(2), (2, 3)), S(t(2), 3))
SIZES = [S(2, 3), S((2,)), S(())]
NOTHING = "A tensor whose elements are to be set; here they are zeros."
LATER = "Elements to be set, here zeros,"

_relatives("zeros", 0, "Zeros", "A tensor of zeros.", SIZES, LIKE, NEW, errors=[Bad("E309", -1)])
_relatives("ones", 1, "Ones", "A tensor of ones.", SIZES[:2], LIKE, NEW)
_relatives("empty", 0, LATER, NOTHING, [S(0, 2), S((2, 0))], [S(t(0, 2))], [S(t(2), (0, 2))])


@creation(method=False, samples=[S(2.5), S(2)])
def scalar_tensor(s: Scalar, *, dtype: Dtype | None = None):
    """A 0-d tensor of a number."""
    return _fill((), s, dtype or STATE.default_dtype)


@creation(samples=[S(t(2), [1.0, 2.0])])
def new_tensor(input: Tensor, data: Any, *, dtype: Dtype | None = None):
    """A tensor of numbers in the dtype of `input`."""
    dtype = dtype or input.dtype
    before = STATE.default_dtype
    if is_float(dtype):
        STATE.default_dtype = dtype  # numbers are read with all the digits that they will have
    try:
        node = to_tensor(data)
    finally:
        STATE.default_dtype = before
    return F.detach(cast(node, dtype))


# -- sequences -------------------------------------------------------------------------------------


def _range_size(start, end, step):
    if step == 0:
        raise fault("E205 arange-step", step)
    for value in (start, end, step):
        if type(value) is int:
            to_int(value)
    if not all(math.isfinite(v) for v in (start, end, step)):
        raise fault("E205 arange-needs-finite-bounds", start, end)
    if start > end if step > 0 else start < end:
        raise fault("E205 arange-never-gets-there", start, end, step)
    if all(type(v) is int for v in (start, end, step)):
        return -((start - end) // step)
    return math.ceil((end - start) / step)


def _bounds(start, end, step, dtype):
    """Whole numbers for int64; other integers are counted with the fractions of the bounds."""
    whole = dtype == INT64
    cut = [
        int(bound) if whole and type(bound) is float and math.isfinite(bound) else bound
        for bound in (start, end, step)
    ]
    if cut[2] == 0:
        raise fault("E205 arange-step", step)
    return [*cut, dtype]


def _halves(x):
    """A number as the sum of two of half its length, whose products are exact."""
    scaled = 134217729.0 * x
    high = scaled - (scaled - x)
    return high, x - high


def _fused(start, step, places):
    """`start + step * places` in float64, rounded once, as processors multiply and add."""
    product = step * places
    (a, b), (c, d) = _halves(step), _halves(places)
    lost = ((a * c - product) + a * d + b * c) + b * d
    found = start + product
    moved = found - start
    return found + ((start - (found - moved)) + (product - moved) + lost)


def _number_range(start, end, step, dtype):
    """PyTorch's rounding: floats are counted from the first of each vector of 32 bytes, those of
    an even number of vectors."""
    size = _range_size(start, end, step)
    places = np.arange(size)
    if not is_float(dtype):
        return (int(start) + int(step) * places).astype(dtype)
    start, step = np.float64(start), np.float64(step)
    lanes = 32 // dtype.itemsize
    alone = places >= size - size % (2 * lanes)
    first = np.where(alone, 0, places - places % lanes)
    base = np.where(alone, start, _fused(start, step, first.astype(float)).astype(dtype))
    return _fused(base, step, (places - first).astype(float)).astype(dtype)


@opaque(
    _number_range,
    name="arange",
    public=False,
    samples=[S(0, 5, 2, INT64)],
    shape=lambda start, end, step, dtype: ((_range_size(start, end, step),), dtype),
)
def number_range(start: Scalar, end: Scalar, step: Scalar, dtype: Dtype):
    """Numbers from `start` up to, not including, `end`."""


@creation(
    method=False,
    samples=[S(5), S(1, 4), S(0.0, 1.0, 0.25), S(5, 0, -2)],
    errors=[Bad("E205", 0, 5, 0), Bad("E205", 0, 5, -1)],
    lacks="arange_cpu bool",
)
def arange(
    start: Scalar | None = None,
    end: Scalar | None = None,
    step: Scalar = 1,
    *,
    dtype: Dtype | None = None,
):
    """Numbers from `start` up to, not including, `end`."""
    if end is None:
        start, end = 0, start
    if end is None:
        raise fail("E205", "`arange` needs an end", help="`arange(5)`", raises="TypeError")
    start = 0 if start is None else start
    if dtype is None:
        dtype = STATE.default_dtype if float in (type(start), type(end), type(step)) else INT64
    return F.number_range.apply(_bounds(start, end, step, dtype))


def _steps_shape(start, end, steps, dtype, exponents):
    if steps < 0:
        raise fault("E309 number-steps-cannot-negative", steps)
    return (steps,), FLOAT64 if exponents else dtype


def _spaced(start, end, steps, dtype, exponents):
    """PyTorch's: counted from the nearer end, by fused additions in the dtype if it is one of
    floats and the numbers are no exponents."""
    if steps < 2:
        return np.full(steps, start).astype(FLOAT64 if exponents else dtype)
    places = np.arange(float(steps))
    if is_float(dtype):
        start, end = np.float64(dtype.type(start)), np.float64(dtype.type(end))
        span = dtype.type(end - start)
    else:  # cut, and wrapped where -1 may be
        start, end = (int(np.asarray(int(number)).astype(dtype)) for number in (start, end))
        span = end - start
    if exponents or not is_float(dtype):
        step = float(span) / (steps - 1)
        low, high = start + step * places, end - step * (steps - 1 - places)
    else:
        step = np.float64(span / dtype.type(steps - 1))
        low, high = _fused(start, step, places), _fused(end, -step, steps - 1 - places)
    found = np.where(places < steps // 2, low, high)
    return found if exponents else found.astype(dtype)


def _ends_fit(start, end, steps, dtype, exponents):
    for number in (start, end):
        check_number(number, dtype)


@opaque(
    _spaced,
    name="linspace",
    public=False,
    check=_ends_fit,
    shape=_steps_shape,
    samples=[S(0, 1, 3, FLOAT64, False)],
)
def spaced(start: Scalar, end: Scalar, steps: int, dtype: Dtype, exponents: bool):
    """`steps` numbers from `start` to `end`, both included, at equal distances; in double precision
    between ends of that dtype if they are `exponents`."""


@creation(
    method=False,
    samples=[S(0.0, 1.0, 5), S(0, 5, 3), S(1, 2, steps=1)],
    errors=[Bad("E309", 0, 1, -1)],
    lacks="linspace_cpu bool",
)
def linspace(start: Endpoint, end: Endpoint, steps: int, *, dtype: Dtype | None = None):
    """`steps` numbers from `start` to `end`, both included, at equal distances."""
    return F.spaced(start, end, steps, dtype or STATE.default_dtype, False)


@creation(
    method=False,
    samples=[S(0.0, 1.0, 3), S(0, 3, 4, 2.0)],
    lacks="logspace_cpu bool",
)
def logspace(
    start: Endpoint, end: Endpoint, steps: int, base: float = 10.0, *, dtype: Dtype | None = None
):
    """`steps` numbers from `base ** start` to `base ** end`, with equal ratios."""
    dtype = dtype or STATE.default_dtype
    return cast(F.pow(base, F.spaced(start, end, steps, dtype, True)), dtype)


# -- matrices --------------------------------------------------------------------------------------


def _eye_shape(n, m, dtype):
    check_sizes((n, m))
    return (n, m), dtype


@opaque(
    lambda n, m, dtype: np.eye(n, m, dtype=dtype),
    name="eye",
    public=False,
    shape=_eye_shape,
    samples=[S(2, 3, FLOAT64)],
)
def identity_matrix(n: int, m: int, dtype: Dtype):
    """Ones on the diagonal, zeros elsewhere."""


@creation(method=False, samples=[S(2), S(2, 3), S(0)], errors=[Bad("E309", -1)])
def eye(n: int, m: int | None = None, *, dtype: Dtype | None = None):
    """Ones on the diagonal, zeros elsewhere."""
    return F.identity_matrix(n, n if m is None else m, dtype or STATE.default_dtype)


def _triangle_count(row, col, offset):
    """Elements of the lower triangle of a matrix up to the diagonal `offset`."""
    full_rows = min(max(row + offset - col, 0), row)
    first = min(max(-offset, 0), row)
    short = max(row - full_rows - first, 0)
    lowest = first + offset + 1
    return full_rows * col + short * lowest + short * (short - 1) // 2


def _declare_indices(side, kernel, count):
    rule, name = f"{side}_indices", kernel.__name__

    def shape(row, col, offset, dtype):
        check_sizes((row, col))
        return (2, count(row, col, offset)), dtype

    @opaque(
        lambda row, col, offset, dtype: np.stack(kernel(row, offset, col)).astype(dtype),
        key=rule,
        public=False,
        shape=shape,
        samples=[S(3, 2, 1, INT64)],
    )
    def indices(row: int, col: int, offset: int, dtype: Dtype):
        pass

    far = 5 if side == "upper" else -5

    @creation(
        key=name,
        method=False,
        samples=[S(3, 3), S(2, 4, 1), S(4, 2, -2), S(3, 3, offset=far)],
        lacks=f"{name} float16 float32 float64 bool",
    )
    def public(row: int, col: int, offset: int = 0, *, dtype: Dtype = INT64):
        return getattr(F, rule)(row, col, offset, dtype)

    indices.doc = f"Rows and columns of the {side} triangle."
    public.doc = f"Rows and columns of the elements of the {side} triangle of a (row, col) matrix."


_declare_indices("lower", np.tril_indices, _triangle_count)
_declare_indices(
    "upper", np.triu_indices, lambda row, col, k: row * col - _triangle_count(row, col, k - 1)
)


# -- windows ---------------------------------------------------------------------------------------


def _cosines(*weights):
    """A sum of cosines over the period."""

    def shape(angle: Node) -> Node:
        terms = [weight * F.cos(angle * k) for k, weight in enumerate(weights) if k]
        return F.add(reduce(F.add, terms[::-1]), weights[0])  # in PyTorch's order

    return shape


def _window(name, shape, doc):
    def window(window_length: int, periodic: bool = True, *, dtype: Dtype | None = None):
        dtype = dtype or STATE.default_dtype
        if window_length < 2:
            return _fill((window_length,), 1, dtype)
        period = window_length if periodic else window_length - 1
        return cast(
            shape(F.number_range(0, window_length, 1, dtype) * (2 * math.pi / period)), dtype
        )

    window.__doc__ = doc
    lacks = f"ints bool: {name} expects floating point dtypes"
    creation(key=name, method=False, samples=[S(5), S(4, False)], lacks=lacks)(window)


_window("hann_window", _cosines(0.5, -0.5), "Hann window.")
_window("hamming_window", _cosines(0.54, -0.46), "Hamming window.")
_window("blackman_window", _cosines(0.42, -0.5, 0.08), "Blackman window.")
_window("bartlett_window", lambda angle: 1 - F.abs(angle / math.pi - 1), "Triangular window.")
