"""The chain rule backwards, as on paper: values in between have names, and so have the derivatives
of the result with respect to them (`g_h` for `h`).

What the rules of a backward pass read, and what is read twice, is worth a name: read on, what is
done to it would be pushed into the sums that it is. Which of these keep theirs is decided by the
cost of the whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import chain, count
from typing import Any, NamedTuple

from ..autograd.inference import saved
from ..errors import AutodiffError
from ..graph.kinds import Kind
from ..graph.node import Node
from ..graph.op import LEAF
from ..graph.walk import SEQUENCE, walk
from .algebra import Algebra
from .expression import Expression, Listed, Masks, Negative, text
from .lets import cost_of, in_order, letter, mentioned, renamed, uses_of, with_lets, with_name
from .matrix_form import Printer, printed
from .reading import Reader
from .slopes import Slopes
from .terms import NoFormula, Sum

LETTERS = ("h", "z", "u", "v", "q", "a", "b", "c", "e")
LONGEST_LINE = 72  # characters of a line into which what is used once is put
RESIZING = ("view", "reshape", "unsafe_view")
MOST_CUTS = 40
MOST_WORK = 30_000  # steps after which no fewer names are tried


Found = tuple[Expression, list[tuple[str, Expression]]]


def cuts(result: Node, ends: Mapping[Node, str]) -> list[Node]:
    """Values that what is not linear reads or gives, or that are read more than once, the first
    first."""
    nodes = list(walk([result], lambda node: () if node in ends else node.inputs))
    readers = Counter(x for node in nodes if node not in ends for x in set(node.inputs))
    found = {_whole(node) for node, times in readers.items() if times > 1}
    for node in nodes:
        if _is_computed(node, ends):
            read = [x for x in _read_by(node) if _is_computed(_whole(x), ends)]
            for x in (*read, *node.inputs) if read else ():
                found |= {_whole(x), _seen(x)}
    inside = {x for x in found if _is_computed(x, ends) and x.outputs is None} - {result}
    return sorted(inside.intersection(nodes), key=SEQUENCE)


def _is_computed(node: Node, ends: Mapping[Node, str]) -> bool:
    return node.requires_grad and node.op is not LEAF and node not in ends


def _read_by(node: Node) -> Sequence[Node]:
    """What the rule of a node reads; nothing where a part of it has none."""
    with suppress(AutodiffError):
        return saved(node)
    return ()


def _whole(node: Node) -> Node:
    """What a node is a view of."""
    while node.op.kind is Kind.MOVEMENT and len(node.inputs) == 1:
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
    slopes: list[tuple[Sum, Sum]]


class Chain:
    """The derivatives of a number with respect to one node or another, by way of named values,
    those of the program (`values`) and others."""

    def __init__(
        self, result: Node, ends: Mapping[Node, str], values: Mapping[Node, str], taken: set[str],
        masks: Masks,
    ):  # fmt: skip
        letters = chain(LETTERS, map("h{}".format, count(1)))
        free = (letter for letter in letters if letter not in taken)
        self.result = result
        self.ends = ends
        self.names = {node: values.get(node) or next(free) for node in cuts(result, ends)}
        self.taken = taken
        self.masks = masks
        self.algebra = Algebra()
        self.work: dict[Any, int] = {}  # steps of the searches for one derivative
        self.printers: dict[tuple[Sum, ...], Printer] = {}
        self.shown: dict[tuple[Sum, tuple[Sum, ...]], tuple[Expression | None, int]] = {}
        self.passes: dict[tuple[Node, ...], Pass | None] = {}

    def cheapest(self, wrt: Node) -> Found:
        """The formula and its parts that have names. Raises NoFormula."""
        self.work = {}
        kept = tuple(self.names)[-MOST_CUTS:]
        best = self._tried(kept, wrt)
        for node in kept:
            if sum(self.work.values()) > MOST_WORK and best is not None:
                break
            fewer = tuple(other for other in kept if other is not node)
            found = self._tried(fewer, wrt)
            if found is not None and (best is None or _price(found) <= _price(best)):
                best, kept = found, fewer
        if best is None:
            raise NoFormula
        return best

    def _tried(self, kept: tuple[Node, ...], wrt: Node) -> Found | None:
        if kept not in self.passes:
            self.passes[kept] = None
            with suppress(NoFormula):
                self.passes[kept] = self._passed(kept)
        way = self.passes[kept]
        try:
            return None if way is None else self._by(way, wrt)
        except NoFormula:
            return None

    def _passed(self, kept: tuple[Node, ...]) -> Pass:
        """With these values as names."""
        algebra, lines, gradients = self.algebra, {}, {}
        names = {**self.ends, **{node: self.names[node] for node in kept}}
        meanings: dict[Node, Sum] = {}
        named: dict[Sum, str] = {}
        for node in kept:
            others = {n: name for n, name in names.items() if n is not node}
            found = meanings[node] = Reader(algebra, others, self.masks).read(node)
            if names[node] not in self.taken:
                lines[names[node]] = found, dict(named)
            if found.terms and found.terms[0][0]:
                named.setdefault(found, names[node])
        reader = Reader(algebra, names, self.masks)
        end = reader.read(self.result)
        for node, name in self.names.items():
            if name in self.taken and node not in kept:
                with suppress(NoFormula):
                    named.setdefault(reader.read(node), name)
        way = Pass(lines, gradients, named, end, [])
        for node in kept[::-1]:
            found = self._slope(way, names[node], node)
            if found.terms:
                name = f"g_{names[node]}"
                while name in self.taken or name in names.values():
                    name += "_"
                lines[name] = found, named
                gradients[name] = names[node]
                g = algebra.of_atom(algebra.atom("name", name, (), node.shape))
                way.slopes.append((g, meanings[node]))
        return way

    def _slope(self, way: Pass, name: str, node: Node) -> Sum:
        by = Slopes(self.algebra, self.algebra.atom("name", name, (), node.shape))
        return self.algebra.added(by.of(way.end), *(by.pulled(g, sum_) for g, sum_ in way.slopes))

    def _by(self, way: Pass, wrt: Node) -> Found:
        """The derivative, and the lines that it reads."""
        lines = {"": self._shown(self._slope(way, self.ends[wrt], wrt), way.named)}
        ready = [""]
        while ready:
            for name in mentioned(lines[ready.pop()]) & way.lines.keys() - lines.keys():
                lines[name] = self._shown(*way.lines[name])
                ready.append(name)
        ordered = {name: lines[name] for name in (*way.lines, "") if name in lines}
        return merged(ordered, way.gradients, self.taken)

    def _shown(self, sum_: Sum, named: Mapping[Sum, str]) -> Expression:
        """The cheapest way to write a sum with names for what is in it."""
        key = sum_, tuple(named)
        if key not in self.shown:
            self.algebra.work, shown = 0, None
            with suppress(NoFormula):
                shown = printed(Printer(self.algebra, named, self.printers), sum_)
            self.shown[key] = shown, self.algebra.work
        found, self.work[key] = self.shown[key]
        if found is None:
            raise NoFormula
        return found


def _price(found: Found) -> tuple[int, int]:
    lines = [found[0], *(part for _, part in found[1])]
    return sum(map(cost_of, lines)), sum(len(text(part, 0, True)) for part in lines)


def merged(lines: dict[str, Expression], gradients: Mapping[str, str], taken: set[str]) -> Found:
    """With what is used once in its place, where that leaves lines short, and names for what is
    repeated; the line without a name is what is wanted. `gradients`: with respect to what."""
    while _shortened(lines):
        pass
    names = list(lines)
    rest, more = with_lets(Listed(tuple(lines.values())), taken.union(names), len(names))
    assert isinstance(rest, Listed)
    found: dict[str, Expression] = dict(zip(names, rest.parts, strict=True))
    shown = found.pop("")
    lets = in_order([*found.items(), *more])
    chosen = {name: name for name, _ in lets}
    for name, part in lets:  # gradients with respect to what has no name any more
        if gradients.get(name, name) not in {*taken, *chosen}:
            chosen[name] = letter(part, taken, chosen.values())
    return renamed(shown, chosen), [(chosen[name], renamed(part, chosen)) for name, part in lets]


def _shortened(lines: dict[str, Expression]) -> bool:
    """Whether a line went: one that nobody reads, or into the one place that does."""
    uses = Counter(name for part in lines.values() for name in uses_of(part))
    for name, part in list(lines.items())[:-1]:
        if uses[name] and isinstance(part, Negative):
            continue  # its sign would stand within a product
        reader = next((n for n, p in lines.items() if name in mentioned(p)), "")
        whole = with_name(lines[reader], name, part)
        if not uses[name] or (uses[name] == 1 and len(text(whole, 0, True)) <= LONGEST_LINE):
            lines[reader] = whole
            del lines[name]
            return True
    return False
