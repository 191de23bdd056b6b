"""Rules by which the factors of a product are fewer, or it is nothing: each gives a number and the
factors that are left, and None where it does not apply."""

from __future__ import annotations

from collections.abc import Callable
from math import copysign
from typing import TYPE_CHECKING

from ..graph.registry import overloads
from .atoms.axes import without_splits
from .atoms.masks import without_masks
from .atoms.matrices import without_inverses, without_roots
from .atoms.places import without_slices
from .terms import OPERAND, At, Factor, is_summed, powers, renamed

if TYPE_CHECKING:
    from .algebra import Algebra

Fewer = tuple[float, list[Factor]] | None

# A function with another one, which it is divided by or stands beside, and what that is.
TOGETHER = {
    "sinh": ("cosh", "tanh"), "sin": ("cos", "tan"), "exp": ("sigmoid", "sigmoid"),
    "sign": ("", "abs"),
}  # fmt: skip


def without_deltas(algebra: Algebra, factors: list[Factor]) -> Fewer:
    """An identity matrix renames what it meets."""
    for position, (atom, at, _) in enumerate(factors):
        if algebra.atoms[atom].kind != "delta":
            continue
        rest = factors[:position] + factors[position + 1 :]
        first, second = at
        if first == second:
            return algebra.repeats(factors, rest), rest
        if isinstance(first, At) and isinstance(second, At):
            return 0.0, []
        for gone, stays in ((first, second), (second, first)):
            if is_summed(gone):
                return 1.0, renamed(rest, {gone: stays})
        if type(first) is int and type(second) is int and any(second in f.at for f in rest):
            return 1.0, [*renamed(rest, {second: first}), factors[position]]
    return None


def without_idle_gates(algebra: Algebra, factors: list[Factor]) -> Fewer:
    """A gate `u > 0` beside `relu(u)`, which is 0 elsewhere."""
    for gate in factors:
        atom = algebra.atoms[gate.atom]
        if atom.kind != "gate" or atom.data != "gt" or atom.parts[1].terms:
            continue
        for other in factors:
            beside = algebra.atoms[other.atom]
            same = beside.function.endswith("relu") and beside.parts[0] == atom.parts[0]
            if same and other.at == gate.at and not other.divides:
                return 1.0, [f for f in factors if f is not gate]
    return None


def without_opposites(algebra: Algebra, factors: list[Factor]) -> Fewer:
    """Nothing holds together with its opposite."""
    gates = {(f.at, f.atom) for f in factors if algebra.atoms[f.atom].kind == "gate"}
    if len(gates) > 1 and any((at, algebra.opposite(gate)) in gates for at, gate in gates):
        return 0.0, []
    return None


def without_shares(algebra: Algebra, factors: list[Factor]) -> Fewer:
    """A softmax, or a one among zeros, that is summed along its axis."""
    for one in factors:
        atom = algebra.atoms[one.atom]
        axis = {"softmax": atom.data, "one_hot": -1}.get(atom.kind, algebra.shares.get(one.atom))
        label = one.at[axis] if axis is not None and one.power == 1 else None
        if is_summed(label) and sum(factor.at.count(label) for factor in factors) == 1:
            return 1.0, [f for f in factors if f is not one]
    return None


def together(algebra: Algebra, factors: list[Factor]) -> Fewer:
    """`sinh(u) / cosh(u)` as `tanh(u)`, `u * sign(u)` as `abs(u)`, and `exp(u)` beside
    `sigmoid(-u)`, which together are `sigmoid(u)`."""
    for one in factors:
        atom = algebra.atoms[one.atom]
        below, name = TOGETHER.get(atom.function, ("", ""))
        if not name or one.divides:
            continue
        inner = algebra.factor(atom.parts[0], one.at) if name == "abs" else None
        parts = (algebra.scaled(atom.parts[0], -1.0),) if name == "sigmoid" else atom.parts
        for other in factors:
            beside, power = algebra.atoms[other.atom], min(one.power, abs(other.power))
            if name == "abs":
                fits = one.power == other.power == 1 and inner == (1.0, [other])
            else:
                fits = other.at == one.at and (beside.function, beside.parts) == (below, parts)
                fits = fits and (other.divides if name != below else other.power >= one.power)
            if fits:
                (op, *_) = overloads(name)
                found = algebra.atom("function", (op, (OPERAND,)), atom.parts, atom.shape)
                rest = other.power - copysign(power, other.power)
                left = [one._replace(power=one.power - power), other._replace(power=rest)]
                kept = [f for f in factors if f is not one and f is not other]
                return 1.0, [*kept, Factor(found, one.at, power), *(f for f in left if f.power)]
    return None


def with_exponents(algebra: Algebra, factors: list[Factor]) -> Fewer:
    """`u * u**(a - 1)` as `u**a`."""
    for one in factors:
        atom = algebra.atoms[one.atom]
        if atom.function != "pow" or one.power != 1:
            continue
        base, exponent = atom.parts
        less = dict(exponent.terms).get((), 0.0)
        value, beside = algebra.factor(base, one.at)
        whole = {(f.atom, f.at): f.power for f in factors}
        times = [whole.get((f.atom, f.at), 0.0) / f.power for f in beside]
        if value == 1 and less and times and min(x / -less for x in times) >= 1:
            more = algebra.added(exponent, algebra.number(-less, atom.shape))
            found = algebra.atom("function", atom.data, (base, more), atom.shape)
            rest = [Factor(f.atom, f.at, f.power * less) for f in beside]
            kept = [f for f in factors if f is not one]
            return 1.0, powers([*kept, *rest, Factor(found, one.at)])
    return None


# The kinds of atoms of which there is one where a rule applies.
KINDS: dict[Callable[[Algebra, list[Factor]], Fewer], tuple[str, ...]] = {
    without_deltas: ("delta",), without_slices: ("move",), without_splits: ("split",),
    without_idle_gates: ("gate",), without_opposites: ("gate",),
    without_shares: ("softmax", "one_hot", "name"), together: ("function",),
    with_exponents: ("function",), without_masks: ("mask", "move"), without_roots: ("inverse",),
    without_inverses: ("inverse",),
}  # fmt: skip
FEWER = tuple(KINDS)
