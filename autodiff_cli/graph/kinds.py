"""Kinds of ops: what the engine may do with them, and how dtypes are promoted."""

from __future__ import annotations

from enum import Enum


class Kind(Enum):
    """What the engine may do with an op."""

    __hash__ = object.__hash__  # Enum's is written in Python, and each member is one object

    POINTWISE = "pointwise"
    REDUCTION = "reduction"
    MOVEMENT = "movement"
    CONTRACTION = "contraction"
    OPAQUE = "opaque"
    COMPOSITE = "composite"
    FUNCTION = "function"  # a composite that leaves no node of its own
    SOURCE = "source"  # constants, leaves, results of several-result nodes


class Promote(Enum):
    """How a pointwise op chooses the dtype it computes in and the one it returns."""

    SAME = "same"  # promotion of the operands
    FLOAT = "float"  # the same, integers become the default float dtype
    BOOL = "bool"  # computes in the promoted dtype, returns bool
    LOGICAL = "logical"  # operands as they are, returns bool
