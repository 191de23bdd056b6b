"""Comparisons, logic, bits and tests of values: results never require grad."""

from __future__ import annotations

import numpy as np

from ...errors import fault
from ...graph.declare import Any, Promote, Tensor, function, opaque, pointwise, rows
from ...graph.dtypes import BOOL
from ...graph.op import value_of
from ...graph.registry import F
from ...graph.samples import Bad, S, bools, ints, t

_binary = rows(
    __name__,
    "input other",
    """
    eq: Whether two elements are equal.
    ne not_equal: Whether two elements differ.
    lt less: Whether `input` is less than `other`.
    le less_equal: Whether `input` is less than or equal to `other`.
    gt greater: Whether `input` is greater than `other`.
    ge greater_equal: Whether `input` is greater than or equal to `other`.
    logical_and: Whether both elements are non-zero.
    logical_or: Whether an element is non-zero.
    logical_xor: Whether exactly one element is non-zero.
    bitwise_and: Bits set in both; logical and of bools.
    bitwise_or: Bits set in one; logical or of bools.
    bitwise_xor: Bits set in exactly one; logical exclusive or of bools.
    bitwise_left_shift: Bits moved to the left: `input * 2 ** other`.
    bitwise_right_shift: Bits moved to the right: `input // 2 ** other`.
""",
)

_unary = rows(
    __name__,
    "input",
    """
    logical_not: Whether an element is zero.
    bitwise_not: Every bit turned over; logical not of bools.
    isnan: Whether an element is nan.
    isinf: Whether an element is inf or -inf.
    isposinf: Whether an element is inf.
    isneginf: Whether an element is -inf.
    isfinite: Whether an element is neither infinite nor nan.
    isreal: True everywhere: all numbers are real.
    signbit: Whether an element has a minus sign.
""",
)


def _to_other(input, other):
    """How far the elements are from where the answer changes."""
    return F.abs(input - other)


_key: Any
_kernel: Any

for _key, _kernel in (
    ("eq", np.equal),
    ("ne", np.not_equal),
    ("lt", np.less),
    ("le", np.less_equal),
    ("gt", np.greater),
    ("ge", np.greater_equal),
):
    _binary(
        _key,
        _kernel,
        None,
        [S(ints(2, 3), ints(3)), S(t(3), 0.5)],
        promote=Promote.BOOL,
        kink=_to_other if _key in ("lt", "le", "gt", "ge") else None,
        errors=[Bad("E302", t(2, 3), t(2))],
    )


# -- logic and bits --------------------------------------------------------------------------------

for _kernel in (np.logical_and, np.logical_or, np.logical_xor):
    _binary(
        _kernel.__name__,
        _kernel,
        None,
        [S(bools(2, 3), ints(3)), S(t(3), bools(3))],
        promote=Promote.LOGICAL,
    )

_unary("logical_not", np.logical_not, None, [S(bools(3)), S(ints(3))], promote=Promote.LOGICAL)


def _check_bits(name, kinds):
    def check(*args):
        for x in args:
            if x.dtype.kind == "f" or all(y.dtype.kind not in kinds for y in args):
                raise fault("E307 works-integers", name, "bools and " if "b" in kinds else "", x)

    return check


for _key, _kernel, _kinds in (
    ("bitwise_and", np.bitwise_and, "iub"),
    ("bitwise_or", np.bitwise_or, "iub"),
    ("bitwise_xor", np.bitwise_xor, "iub"),
    ("bitwise_left_shift", np.left_shift, "iu"),
    ("bitwise_right_shift", np.right_shift, "iu"),
):
    _binary(
        _key,
        _kernel,
        None,
        [S(ints(3, high=9), 2), *([S(bools(3), bools(3))] if "b" in _kinds else ())],
        check=_check_bits(_key, _kinds),
        errors=[Bad("E307", t(2), t(2))],
    )

_unary(
    "bitwise_not",
    np.invert,
    None,
    [S(bools(3)), S(ints(3, high=9))],
    check=_check_bits("bitwise_not", "iub"),
    errors=[Bad("E307", t(2))],
)


# -- tests of values -------------------------------------------------------------------------------

SPECIAL_VALUES = S(t(values=[float("nan"), float("inf"), -float("inf"), 1.0], grad=False))

for _key, _kernel in (
    ("isnan", np.isnan),
    ("isinf", np.isinf),
    ("isposinf", lambda x: np.logical_and(np.isinf(x), x > 0)),
    ("isneginf", lambda x: np.logical_and(np.isinf(x), x < 0)),
    ("isfinite", np.isfinite),
    ("isreal", lambda x: np.ones_like(x, dtype=bool)),
    ("signbit", lambda x: np.signbit(x) if x.dtype.kind == "f" else x < 0),
):
    _unary(
        _key,
        _kernel,
        None,
        [SPECIAL_VALUES, S(ints(3, low=-2))],
        promote=Promote.LOGICAL,
        inplace=False,
    )


def _check_close(input, other, rtol, atol, equal_nan):
    for parameter, value in (("rtol", rtol), ("atol", atol)):
        if not value >= 0:
            raise fault("E504 needs-parameter", "isclose", parameter, ">= 0", value)
    if input.dtype != other.dtype and not other.weak:
        raise fault("E307 isclose-needs-dtype", input, other)


@pointwise(
    lambda input, other, rtol, atol, equal_nan: np.isclose(input, other, rtol, atol, equal_nan),
    promote=Promote.BOOL,
    inplace=False,
    check=_check_close,
    errors=[Bad("E307", t(2), ints(2))],
    samples=[
        S(t(3), t(3)),
        S(t(values=[1.0, float("nan")]), t(values=[1.0, float("nan")]), equal_nan=True),
    ],
)
def isclose(
    input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False
):
    """Whether `|input - other| <= atol + rtol * |other|`."""


def _true(node):
    return bool(np.all(value_of(node)))


@function(like=isclose, samples=[S(t(3), t(3))])
def allclose(input, other, rtol, atol, equal_nan):
    """Whether all elements are close, as True or False."""
    return _true(F.isclose(input, other, rtol, atol, equal_nan))


@function(samples=[S(t(3), t(3)), S(t(3), t(2))])
def equal(input: Tensor, other: Tensor):
    """Whether two tensors have the same shape and elements, as True or False."""
    return input.shape == other.shape and _true(F.eq(input, other))


@function(samples=[S(t()), S(ints(1))], errors=[Bad("E408", t(2))])
def is_nonzero(input: Tensor):
    """Whether the only element of a tensor is not zero, as True or False."""
    if input.numel != 1:
        raise fault("E408 tensor-shape-neither-true", tuple(input.shape))
    return _true(F.ne(input, 0))


@opaque(
    lambda elements, test_elements, assume_unique, invert: np.isin(
        elements, test_elements, assume_unique=assume_unique, invert=invert
    ),
    method=False,
    shape=lambda elements, *rest: (elements.shape, BOOL),
    lacks="bool: Unsupported input type encountered for isin(): Bool",
    samples=[S(ints(2, 3), ints(2)), S(ints(4), ints(2), invert=True)],
)
def isin(
    elements: Tensor, test_elements: Tensor, *, assume_unique: bool = False, invert: bool = False
):
    """Whether each element is among `test_elements`."""
