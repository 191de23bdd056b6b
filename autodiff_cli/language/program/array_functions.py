"""What functions of arrays return: a gradient, a Jacobian, a Hessian, or a product with a vector.

Each kind says which nodes a call computes, from the objective and the chosen variables, and in what
form their arrays are handed over. Running a program and replaying its plan is `compiled`'s part.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from ...autograd import reverse, rules
from ...autograd.forward import jvp
from ...errors import fail, fault
from ...graph.dtypes import DTYPES, INT64
from ...graph.node import Node
from ...graph.op import cast

MODES = ("auto", "reverse", "forward")
NUMERIC = frozenset(DTYPES.values())

Chosen = dict[str, Node]  # what is differentiated with respect to, by name
Vector = dict[str | None, Node]  # by the name of the variable; None for the objective


class Kind:
    """`name` is the public one; `single`: the objective must be one number; `slopes`: it must
    depend on a variable; `vector`: what the vector belongs to that a call begins with, `variables`
    or `objective`, if there is one."""

    name: str
    single = True
    slopes = True
    vector = ""

    @abstractmethod
    def targets(self, out: Node, chosen: Chosen, vector: Vector) -> list[Node]:
        """The nodes that a call computes."""

    def answer(self, chosen: Blocks, arrays: list[np.ndarray]) -> Any:
        """What a call returns: by default a block for each variable."""
        return chosen.of(arrays)


class Blocks(NamedTuple):
    """The names of the variables; `bare`: of one that was asked for without a list; `many`: what is
    computed is that of many examples."""

    names: list[str]
    bare: bool
    many: bool

    def number(self, array: np.ndarray) -> Any:
        """The objective, as a number where it is one."""
        return array if self.many else array.item()

    def of(self, parts: list[Any]) -> Any:
        """Parts by name, or the one part."""
        return parts[0] if self.bare else dict(zip(self.names, parts, strict=True))


def _pulled(seeds: list[tuple[Node, Node]], chosen: Chosen) -> list[Node]:
    nodes = list(chosen.values())
    found = reverse.gradients(seeds, nodes, create_graph=False, retain_graph=True)
    return [rules.zeros_like(x) if g is None else g for g, x in zip(found, nodes, strict=True)]


class ValueAndGrad(Kind):
    """The objective as a number, and its gradients."""

    name = "value_and_grad"

    def targets(self, out: Node, chosen: Chosen, vector: Vector) -> list[Node]:
        return [out, *_pulled([(out, rules.ones_like(out))], chosen)]

    def answer(self, chosen: Blocks, arrays: list[np.ndarray]) -> Any:
        return chosen.number(arrays[0]), chosen.of(arrays[1:])


class Value(Kind):
    """The objective: a single number as one, anything else as an array."""

    name = "value"
    single = slopes = False

    def targets(self, out: Node, chosen: Chosen, vector: Vector) -> list[Node]:
        return [out]

    def answer(self, chosen: Blocks, arrays: list[np.ndarray]) -> Any:
        return arrays[0] if arrays[0].ndim else chosen.number(arrays[0])


def _jacobians() -> Any:
    from ...autograd.transforms import jacobians

    return jacobians


class Jacobian(Kind):
    """A block for each variable, of the objective's shape followed by the variable's."""

    name = "jacobian"
    single = False

    def __init__(self, mode: str = "auto"):
        if mode not in MODES:
            raise fault("E205 there-no-mode", ", ".join(MODES), mode=mode)
        self.mode = mode

    def targets(self, out: Node, chosen: Chosen, vector: Vector) -> list[Node]:
        return _jacobians().jacobian(out, list(chosen.values()), self.mode)


class Hessian(Kind):
    """A block for each pair of variables, of the shape of the first followed by the second's."""

    name = "hessian"

    def targets(self, out: Node, chosen: Chosen, vector: Vector) -> list[Node]:
        rows = _jacobians().hessian(out, list(chosen.values()))
        return [block for row in rows for block in row]

    def answer(self, chosen: Blocks, arrays: list[np.ndarray]) -> Any:
        n = len(chosen.names)
        return chosen.of([chosen.of(arrays[at : at + n]) for at in range(0, n * n, n)])


class Hvp(Kind):
    """The Hessian times a vector, which has a part for each variable."""

    name = "hvp"
    vector = "variables"

    def targets(self, out: Node, chosen: Chosen, vector: Vector) -> list[Node]:
        moves = _moves(self.name, vector, chosen)
        firsts = _jacobians().slopes(out, list(chosen.values()))
        pairs = zip(firsts, moves, strict=True)
        seeds = [(f, v) for f, v in pairs if f.requires_grad and v is not None]
        return _pulled(seeds, chosen)


class Jvp(Kind):
    """The objective, and how it changes when the variables move along a vector."""

    name = "jvp"
    single = False
    vector = "variables"

    def targets(self, out: Node, chosen: Chosen, vector: Vector) -> list[Node]:
        moves = _moves(self.name, vector, chosen)
        return [out, *jvp([out], list(chosen.values()), moves)]

    def answer(self, chosen: Blocks, arrays: list[np.ndarray]) -> Any:
        return tuple(arrays)


class Vjp(Kind):
    """The objective, and a vector of its shape times the Jacobian."""

    name = "vjp"
    single = False
    vector = "objective"

    def targets(self, out: Node, chosen: Chosen, vector: Vector) -> list[Node]:
        return [out, *_pulled([(out, _fitting(self.name, None, vector[None], out))], chosen)]

    def answer(self, chosen: Blocks, arrays: list[np.ndarray]) -> Any:
        return arrays[0], chosen.of(arrays[1:])


# -- vectors ---------------------------------------------------------------------------------------


def parts_of(kind: Kind, given: tuple[Any, ...], bare: str | None) -> dict[str | None, np.ndarray]:
    """The vector that a call begins with, by names of variables; `bare` is the only one's.

    Raises:
        AutodiffError: E205 when there is none or too many, E208 when it is no array or not by
        name.
    """
    if not given and not kind.vector:
        return {}
    count = 1 if kind.vector else 0
    if len(given) != count:
        raise fail(
            "E205",
            f"`{kind.name}` takes {'a vector and then ' if count else ''}arrays by name, "
            f"but got {len(given)} positional argument{'' if len(given) == 1 else 's'}",
            help=f"write `f({'v, ' if count else ''}x=x)`",
        )
    (vector,) = given
    if kind.vector == "objective":
        return {None: numbers(vector, "the vector")}
    if bare is not None and not isinstance(vector, Mapping):
        return {bare: numbers(vector, "the vector")}
    if not isinstance(vector, Mapping):
        raise fault("E208 vector-part-each-variable", kind=kind)
    return {name: numbers(part, f"the vector's `{name}`") for name, part in vector.items()}


def numbers(value: object, what: str) -> np.ndarray:
    """A numeric array; E208 for anything else."""
    if "numpy.ma" in sys.modules and np.ma.isMaskedArray(value):
        raise fault("E208 masked-array", what)
    try:
        array = np.asarray(value)
    except ValueError:
        raise fault("E208 no-array", what=what) from None
    if array.dtype in NUMERIC:
        return array
    native = array.dtype.newbyteorder("=")
    if native not in NUMERIC and not np.can_cast(native, INT64):
        kind = array.dtype if array.ndim else type(array.item()).__name__
        raise fault("E208 numeric-array", what=what, kind=kind)
    return array.astype(native if native in NUMERIC else INT64)


def _moves(name: str, vector: Vector, chosen: Chosen) -> list[Node | None]:
    for part in vector:
        if part not in chosen:
            raise fault("E205 vector-part-no-variable", ", ".join(chosen), name=name, part=part)
    return [
        _fitting(name, part, vector[part], x) if part in vector else None
        for part, x in chosen.items()
    ]


def _fitting(name: str, part: str | None, v: Node, like: Node) -> Node:
    if v.shape != like.shape:
        what = "the objective" if part is None else f"`{part}`"
        raise fault("E308 vector-shape-v-what", name=name, v=v, what=what, like=like)
    return cast(v, like.dtype)
