"""The chain rule backwards, as on paper: values in between have names, and so have the derivatives
of the result with respect to them (`g_h` for `h`).

What the rules of a backward pass read, and what is read twice, is worth a name: read on, what is
done to it would be pushed into the sums that it is. Which of these keep theirs is decided by the
cost of the whole.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain, count
from typing import Any, NamedTuple

from ..autograd.inference import read
from ..errors import AutodiffError
from ..graph.kinds import Kind
from ..graph.node import Node
from ..graph.op import LEAF
from ..graph.walk import SEQUENCE, walk
from .algebra import Algebra
from .reading import Reader
from .slopes import Slopes
from .terms import NoFormula, Sum
from .writing.expression import Expression, Listed, Masks, Negative, text
from .writing.lets import (
    cost_of,
    in_order,
    letter,
    mentioned,
    renamed,
    uses_of,
    with_lets,
    with_name,
)
from .writing.matrix_form import Printer, of_names, printed
from .writing.tidy import tidied
from .writing.windowed import pooled_along

LETTERS = ("h", "z", "u", "v", "q", "a", "b", "c", "e")
LONGEST_LINE = 72  # characters of a line into which what is used once is put
RESIZING = ("view", "reshape", "unsafe_view")
MOST_CUTS = 50
LARGER = 1.05  # how many times as many factors are tried with one name less
MOST_WORK = 40_000  # steps after which no fewer names are tried


Line = str | Node  # a name, or what a derivative is with respect to
Found = tuple[Expression, list[tuple[str, Expression]]]
# By the ids of an expression and of a part that is put into it for a name: what that makes, its
# length, and the two.
Put = dict[tuple[int, str, int], tuple[Expression, int, Expression, Expression]]


def cuts(result: Node, ends: Mapping[Node, str]) -> list[Node]:
    """Values that what is not linear reads or gives, or that are read more than once, the first
    first."""
    nodes = list(walk([result], lambda node: () if node in ends else node.inputs))
    readers = Counter(x for node in nodes if node not in ends for x in set(node.inputs))
    found = {_whole(node) for node, times in readers.items() if times > 1}
    for node in nodes:
        if _is_computed(node, ends):
            reads = [x for x in _read_by(node) if _is_computed(_whole(x), ends)]
            for x in (*reads, *node.inputs) if reads else ():
                found |= {_whole(x), _seen(x)}
    inside = {x for x in found if _is_computed(x, ends) and x.outputs is None} - {result}
    return sorted(inside.intersection(nodes), key=SEQUENCE)


def _is_computed(node: Node, ends: Mapping[Node, str]) -> bool:
    return node.requires_grad and node.op is not LEAF and node not in ends


def _read_by(node: Node) -> Sequence[Node]:
    """What the rule of a node reads; nothing where a part of it has none."""
    with suppress(AutodiffError):
        return read(node)
    return ()


def _whole(node: Node) -> Node:
    """What a node is a view of."""
    while node.op.kind is Kind.MOVEMENT and len(node.inputs) == 1 and not pooled_along(node):
        node = node.inputs[0]
    return node


def _seen(node: Node) -> Node:
    """What a node is a view of, as its axes were split or joined last."""
    while node.op.kind is Kind.MOVEMENT and len(node.inputs) == 1:
        if node.op.key in RESIZING:
            return node
        node = node.inputs[0]
    return node


class Pass(NamedTuple):
    """A pass backwards by way of some named values: their lines and those of their gradients, as
    sums with what has a name there; the gradients of later values first, with what these mean."""

    lines: dict[str, tuple[Sum, dict[Sum, str]]]
    gradients: dict[str, str]  # by name: with respect to what
    named: dict[Sum, str]
    end: Sum
    slopes: list[tuple[Sum, Sum, frozenset[int]]]  # with the atoms of the second


class Priced(NamedTuple):
    """`price`: how many derivatives have none, the cost of the others with what they read, and the
    characters; `size`: the factors of the sums."""

    price: tuple[int, int, int]
    size: int
    way: Pass


class Chain:
    """The derivatives of a number with respect to one node or another, by way of named values,
    those of the program (`values`) and others."""

    def __init__(
        self, result: Node, wrt: Sequence[Node], ends: Mapping[Node, str],
        values: Mapping[Node, str], taken: set[str], masks: Masks,
    ):  # fmt: skip
        letters = chain(LETTERS, map("h{}".format, count(1)))
        free = (letter for letter in letters if letter not in taken)
        self.result = result
        self.ends, self.values = ends, values
        self.names = {node: values.get(node) or next(free) for node in cuts(result, ends)}
        self.taken = taken
        self.masks = masks
        self.algebra = Algebra()
        self.wrt = wrt
        self.best: Pass | None = None
        self.work = 0  # steps of the searches
        self.printers: dict[Any, Printer] = {}
        self.shown: dict[tuple[Sum, Printer], Expression | None] = {}
        self.below = {
            node: frozenset(walk([node], lambda n: () if n in ends else n.inputs)) - {node}
            for node in self.names
        }
        self.meant: dict[tuple[Node, frozenset[Node]], Sum] = {}  # by what has a name below
        self.slopes: dict[int, Slopes] = {}
        self.pulled: dict[tuple[int, Sum, Sum], Sum] = {}
        self.put: Put = {}

    def by(self, wrt: Node) -> Found:
        """The formula and its parts that have names. Raises NoFormula."""
        if self.best is None:
            self.best = self._best()
        lines = self._lines(self.best, wrt)
        return merged(lines, self.best.gradients, self.taken, self.put)

    def _best(self) -> Pass:
        """By the names with which the derivatives together are cheapest."""
        kept = tuple(self.names)[-MOST_CUTS:]
        best = self._priced(kept, math.inf)
        if best is None:
            raise NoFormula
        for node in kept:
            if self.work > MOST_WORK:
                break
            fewer = tuple(other for other in kept if other is not node)
            found = self._priced(fewer, best.size * LARGER)
            if found is not None and found.price <= best.price:
                best, kept = found, fewer
        return best.way

    def _priced(self, kept: tuple[Node, ...], most: float) -> Priced | None:
        """The derivatives by way of these values; None where they have more than so many factors,
        as what has no name is written out then."""
        lines: dict[Line, Expression] = {}
        missing = 0
        try:
            way = self._passed(kept)
            slopes = {wrt: self._slope(way, self.ends[wrt], wrt) for wrt in self.wrt}
        except NoFormula:
            return None
        sums = [*slopes.values(), *(sum_ for sum_, _ in way.lines.values())]
        size = sum(len(product) + 1 for sum_ in sums for product, _ in sum_.terms)
        if size > most:
            return None
        for wrt in self.wrt:
            try:
                lines |= self._lines(way, wrt)
            except NoFormula:
                missing += 1
        ordered = {name: lines[name] for name in (*way.lines, *self.wrt) if name in lines}
        found, more = shared(ordered, self.taken, self.put)
        parts = [*found.values(), *(part for _, part in more)]
        length = sum(len(text(part)) for part in parts)
        return Priced((missing, sum(map(cost_of, parts)), length), size, way)

    def _passed(self, kept: tuple[Node, ...]) -> Pass:
        """With these values as names."""
        algebra, gradients = self.algebra, dict[str, str]()
        lines: dict[str, tuple[Sum, dict[Sum, str]]] = {}
        names = {**self.ends, **{node: self.names[node] for node in kept}}
        meanings: dict[Node, Sum] = {}
        named: dict[Sum, str] = {}
        for node in kept:
            found = meanings[node] = self._meaning(node, names)
            if names[node] not in self.taken:
                lines[names[node]] = found, dict(named)
            if found.terms and found.terms[0][0]:
                named.setdefault(found, names[node])
        reader = Reader(algebra, names, self.masks)
        end = reader.read(self.result)
        for node, name in self.values.items():
            if node not in kept:
                with suppress(NoFormula):
                    named.setdefault(reader.read(node), name)
        way = Pass(lines, gradients, named, end, [])
        for node in kept[::-1]:
            found = self._slope(way, names[node], node)
            if found.terms:
                name = f"g_{names[node]}"
                while name in self.taken:
                    name += "_"
                lines[name] = found, named
                gradients[name] = names[node]
                g = algebra.of_atom(algebra.atom("name", name, (), node.shape))
                meaning = meanings[node]
                way.slopes.append((g, meaning, algebra.inside(meaning)))
        return way

    def _meaning(self, node: Node, names: Mapping[Node, str]) -> Sum:
        """What a named value is made of, by the names of what it is made of."""
        key = node, self.below[node].intersection(names)
        if key not in self.meant:
            others = {n: name for n, name in names.items() if n is not node}
            self.meant[key] = Reader(self.algebra, others, self.masks).read(node)
        return self.meant[key]

    def _slope(self, way: Pass, name: str, node: Node) -> Sum:
        atom = self.algebra.atom("name", name, (), node.shape)
        by = self.slopes.setdefault(atom, Slopes(self.algebra, atom))
        found = [by.of(way.end)]
        for g, sum_, inside in way.slopes:
            if atom in inside:
                key = atom, g, sum_
                if key not in self.pulled:
                    self.pulled[key] = by.pulled(g, sum_)
                found.append(self.pulled[key])
        return self.algebra.added(*found)

    def _lines(self, way: Pass, wrt: Node) -> dict[Line, Expression]:
        """The derivative, and the lines that it reads, in order."""
        lines: dict[Line, Expression]
        lines = {wrt: self._shown(self._slope(way, self.ends[wrt], wrt), way.named)}
        ready: list[Line] = [wrt]
        while ready:
            read = mentioned(lines[ready.pop()])
            for name in [name for name in way.lines if name in read and name not in lines]:
                lines[name] = self._shown(*way.lines[name])
                ready.append(name)
        return {name: lines[name] for name in (*way.lines, wrt) if name in lines}

    def _shown(self, sum_: Sum, named: Mapping[Sum, str]) -> Expression:
        """The cheapest way to write a sum with names for what is in it."""
        printer = of_names(self.printers, self.algebra, named, sum_)
        key = sum_, printer
        if key not in self.shown:
            self.algebra.work, shown = 0, None
            with suppress(NoFormula):
                shown = printed(printer, sum_)
            self.shown[key] = shown
            self.work += self.algebra.work
        found = self.shown[key]
        if found is None:
            raise NoFormula
        return found


def shared(
    lines: dict[Line, Expression], taken: set[str], put: Put
) -> tuple[dict[Line, Expression], list[tuple[str, Expression]]]:
    """With what is used once in its place, where that leaves lines short, and names for what is
    repeated; `put`: what was put into something before."""
    uses = {name: Counter(uses_of(part)) for name, part in lines.items()}
    often = Counter(name for line in uses.values() for name in line.elements())
    while _shortened(lines, uses, often, put):
        pass
    said = {name for name in lines if isinstance(name, str)}
    rest, more = with_lets(Listed(tuple(lines.values())), taken | said, len(lines))
    assert isinstance(rest, Listed)
    return dict(zip(lines, rest.parts, strict=True)), more


def merged(
    lines: dict[Line, Expression], gradients: Mapping[str, str], taken: set[str], put: Put
) -> Found:
    """The last line with the others as names for parts of it; `gradients`: with respect to what."""
    found, more = shared(lines, taken, put)
    _, shown = found.popitem()
    lets = in_order([*((str(name), part) for name, part in found.items()), *more])
    chosen = {name: name for name, _ in lets}
    for name, part in lets:  # gradients with respect to what has no name any more
        if gradients.get(name, name) not in {*taken, *chosen}:
            chosen[name] = letter(part, taken, chosen.values())
    return renamed(shown, chosen), [(chosen[name], renamed(part, chosen)) for name, part in lets]


def _shortened(
    lines: dict[Line, Expression], uses: dict[Line, Counter[str]], often: Counter[str], put: Put
) -> bool:
    """Whether a line went: one that nobody reads, or into the one place that does; `uses`: the
    names in each, `often`: in all."""
    for name, part in lines.items():
        if not isinstance(name, str) or often[name] > 1 or (often[name] and type(part) is Negative):
            continue  # its sign would stand within a product
        reader = next((line for line in lines if name in uses[line]), name)
        key = id(lines[reader]), name, id(part)
        if key not in put:
            made = tidied(with_name(lines[reader], name, part))
            put[key] = made, len(text(made)), lines[reader], part
        whole, length, *_ = put[key]
        if not often[name] or length <= LONGEST_LINE:
            often.subtract(uses[reader])
            lines[reader], uses[reader] = whole, Counter(uses_of(whole))
            often.update(uses[reader])
            del lines[name]
            often.subtract(uses.pop(name))
            return True
    return False
