"""Comparisons, logic, bits and tests of values: results never require grad."""

from __future__ import annotations

import numpy as np

from ..errors import fail
from ..graph.declare import Promote, Tensor, pointwise
from ..graph.samples import Bad, S, bools, ints, t

COMPARISONS = (
    ("eq", np.equal, (), "Whether two elements are equal."),
    ("ne", np.not_equal, ("not_equal",), "Whether two elements differ."),
    ("lt", np.less, ("less",), "Whether `input` is less than `other`."),
    ("le", np.less_equal, ("less_equal",), "Whether `input` is less than or equal to `other`."),
    ("gt", np.greater, ("greater",), "Whether `input` is greater than `other`."),
    ("ge", np.greater_equal, ("greater_equal",), "Whether `input` is greater than or equal to `other`."),
)


def _compare(key, kernel, aliases, doc):
    def compare(input: Tensor, other: Tensor):
        pass

    compare.__doc__ = doc
    pointwise(kernel, key=key, aliases=aliases, promote=Promote.BOOL,
              samples=[S(ints(2, 3), ints(3)), S(t(3), 0.5)], errors=[Bad("E302", t(2, 3), t(2))])(compare)


for _row in COMPARISONS:
    _compare(*_row)


LOGIC = (
    ("logical_and", np.logical_and, "Whether both elements are non-zero."),
    ("logical_or", np.logical_or, "Whether an element is non-zero."),
    ("logical_xor", np.logical_xor, "Whether exactly one element is non-zero."),
)


def _logic(key, kernel, doc):
    def logic(input: Tensor, other: Tensor):
        pass

    logic.__doc__ = doc
    pointwise(kernel, key=key, promote=Promote.LOGICAL, samples=[S(bools(2, 3), ints(3))])(logic)


for _row in LOGIC:
    _logic(*_row)


@pointwise(np.logical_not, promote=Promote.LOGICAL, samples=[S(bools(3)), S(ints(3))])
def logical_not(input: Tensor):
    """Whether an element is zero."""


def _on_bits(kernel, name):
    def bits(*arrays):
        if arrays[0].dtype.kind == "f":
            raise fail("E305", f"`{name}` works on bools and integers, not on {arrays[0].dtype.name}",
                       help="compare first: `x > 0`, or write `.to(torch.int64)`")
        return kernel(*arrays)

    return bits


@pointwise(_on_bits(np.bitwise_and, "bitwise_and"), samples=[S(bools(3), bools(3)), S(ints(3, high=9), 5)])
def bitwise_and(input: Tensor, other: Tensor):
    """Bits set in both; logical and of bools."""


@pointwise(_on_bits(np.bitwise_or, "bitwise_or"), samples=[S(bools(3), bools(3)), S(ints(3, high=9), 5)])
def bitwise_or(input: Tensor, other: Tensor):
    """Bits set in one; logical or of bools."""


@pointwise(_on_bits(np.bitwise_xor, "bitwise_xor"), samples=[S(bools(3), bools(3)), S(ints(3, high=9), 5)])
def bitwise_xor(input: Tensor, other: Tensor):
    """Bits set in exactly one; logical exclusive or of bools."""


@pointwise(_on_bits(np.invert, "bitwise_not"), samples=[S(bools(3)), S(ints(3, high=9))])
def bitwise_not(input: Tensor):
    """Every bit turned over; logical not of bools."""


for _key, _kernel, _doc in (
    ("isnan", np.isnan, "Whether an element is nan."),
    ("isinf", np.isinf, "Whether an element is inf or -inf."),
    ("isfinite", np.isfinite, "Whether an element is neither infinite nor nan."),
):
    def _test(input: Tensor):
        pass

    _test.__doc__ = _doc
    pointwise(_kernel, key=_key, promote=Promote.LOGICAL, inplace=False, samples=[S(t(3)), S(ints(3))])(_test)
