"""From the graph of a result to the formula of its derivative.

graph -> sum of products -> derivative -> the cheapest way to write it -> names of its parts
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import combinations
from typing import NamedTuple

from ..graph.node import Node
from ..graph.walk import walk
from .algebra import Algebra
from .between import Chain
from .reading import Reader
from .slopes import Slopes
from .terms import NoFormula, Sum
from .writing.expression import NO_MASKS, PI, Expression, Masks, Number, expression_of
from .writing.lets import cost_of, mapped, with_lets
from .writing.matrix_form import Printer, printed

MOST_WORK = 5_000  # steps after which no more names are tried
LONG = 12  # operators and calls from which on the chain rule backwards is tried as well
MOST_NAMED = 4  # values whose names are tried in every combination


class Formula(NamedTuple):
    """A formula, and the parts of it that have names, in the order in which they are made."""

    shown: Expression
    lets: tuple[tuple[str, Expression], ...]
    cost: int

    def with_names(self, taken: Container[str]) -> Formula:
        """With names that are not taken for what is repeated."""
        rest, lets = with_lets(self.shown, taken)
        return Formula(rest, tuple(lets), cost_of(rest) + sum(cost_of(part) for _, part in lets))


class Formulas:
    """The derivatives of one result as formulas.

    `wanted` is what it is differentiated by, for which names are chosen together. `ends` are names
    of what is read no further, these among them; `values` names of what may be; `others` are taken
    too.
    """

    def __init__(
        self, result: Node, wanted: Sequence[Node], ends: Mapping[Node, str],
        values: Mapping[Node, str], masks: Masks = NO_MASKS, others: Iterable[str] = (),
    ):  # fmt: skip
        self.result = result
        self.inside = {*walk([result], lambda node: node.inputs)}
        self.wanted = wanted
        self.ends = ends
        self.values = values
        self.masks = masks
        self.taken = {*ends.values(), *values.values(), *others}
        self.chain: Chain | None = None

    def by(self, wrt: list[Node]) -> list[Formula]:
        """Ways to write the derivative with respect to one node after the other, the cheapest
        first. Raises NoFormula."""
        found: dict[Expression, Formula] = {}
        problem: NoFormula | None = None
        work = 0
        for kept in _choices([node for node in self.values if node is not self.result]):
            if work > MOST_WORK and found:
                break
            try:
                shown, steps = self._with(kept, wrt)
                work += steps
            except NoFormula as error:
                problem = problem or error
                continue
            if "pi" in self.taken:
                shown = mapped(shown, lambda part: Number(math.pi) if part == PI else None)
            found[shown] = Formula(shown, (), 0).with_names(self.taken)
        least = min((formula.cost for formula in found.values()), default=math.inf)
        if least > LONG and len(wrt) == 1 and not self.result.ndim:
            if self.chain is None:
                self.chain = Chain(
                    self.result, self.wanted, self.ends, self.values, self.taken, self.masks
                )
            with suppress(NoFormula):
                rest, lets = self.chain.by(wrt[0])
                cost = cost_of(rest) + sum(cost_of(part) for _, part in lets)
                found[rest] = Formula(rest, tuple(lets), cost)
        if not found and problem is not None:
            raise problem
        return sorted(found.values(), key=lambda formula: (formula.cost, len(formula.lets)))

    def _with(self, kept: tuple[Node, ...], wrt: list[Node]) -> tuple[Expression, int]:
        """With these values as names, and the steps that it took."""
        algebra, ends, values, masks = Algebra(), self.ends, self.values, self.masks
        named: dict[Sum, str] = {}

        def name_of(sum_: Sum, text: str) -> None:
            if sum_.terms and sum_.terms[0][0]:  # no plain number
                named.setdefault(sum_, text)

        for node in kept:
            read = Reader(algebra, {**ends, **{n: values[n] for n in kept if n is not node}}, masks)
            name = algebra.atom("name", values[node], (), node.shape)
            try:
                meaning = algebra.meanings[name] = read.read(node)
            except NoFormula:
                if node in self.inside:
                    raise
            else:
                name_of(meaning, values[node])
        reader = Reader(algebra, {**ends, **{n: values[n] for n in kept}}, masks)
        found = reader.read(self.result)
        for node in wrt:
            name = algebra.atom("name", ends[node], (), node.shape)
            found = Slopes(algebra, name).of(found)
        for node, text in values.items():
            if node not in kept:
                with suppress(NoFormula):
                    name_of(reader.read(node), text)
        return printed(Printer(algebra, named), found), algebra.work


def _choices(nodes: list[Node]) -> Iterator[tuple[Node, ...]]:
    """Which values are names, and not what they were made of: all, none, some."""
    yield tuple(nodes)
    if nodes:
        yield ()
    if len(nodes) <= MOST_NAMED:
        for size in range(len(nodes) - 1, 0, -1):
            yield from combinations(nodes, size)


def spellings(node: Node, names: Mapping[Node, str], raw: bool = False) -> list[Formula]:
    """Ways to write a graph, the cheapest first: op by op, and, unless `raw`, as a sum of products,
    of calls that are none."""
    plain = expression_of(node, names)
    found = [Formula(plain, (), cost_of(plain))]
    if not raw:
        with suppress(NoFormula):
            algebra = Algebra()
            sum_ = Reader(algebra, names, called=True).read(node)
            shown = printed(Printer(algebra, {}), sum_)
            found.insert(0, Formula(shown, (), cost_of(shown)))
    return sorted(found, key=lambda formula: formula.cost)
