"""A derivative as on a blackboard: `d` goes inwards, one rule a line, until only `dw` is left.

Each line is an expression of the program in which `d(...)` stands for how its operand changes when
the variable changes by `dw`; so all lines have one value. Where it would become long, what
multiplies the change of a value is collected and gets a name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from itertools import chain, count
from typing import Any, NamedTuple

from ..graph.dtypes import is_float
from ..graph.node import Node
from ..graph.walk import SEQUENCE, walk
from ..symbolic.algebra import Algebra
from ..symbolic.between import LETTERS, cuts
from ..symbolic.differentials import (
    MARK,
    MOVED,
    REST,
    SUM_RULE,
    TRANSPOSED,
    Rules,
    woven,
)
from ..symbolic.reading import Reader
from ..symbolic.slopes import Slopes
from ..symbolic.terms import NoFormula, Sum, number_of
from ..symbolic.textbook_rules import CONSTANT_FACTOR
from ..symbolic.writing.expression import (
    Call,
    Expression,
    Infix,
    Left,
    Masks,
    Name,
    Number,
    filled,
    text,
)
from ..symbolic.writing.forms import constant
from ..symbolic.writing.lets import FREE, UNNAMED, has_letter, letter, mapped, parts, uses_of
from ..symbolic.writing.matrix_form import Printer, printed
from ..symbolic.writing.tidy import given, summed, tidied

PLAIN = (CONSTANT_FACTOR, REST, SUM_RULE, MOVED, TRANSPOSED)  # what is done in one line
LONGEST_LINE = 72  # characters, from which on what multiplies a change gets a name
LONG_NAME = 24  # characters of what gets a name
LONG, VERY_LONG = 80, 90  # characters of a line in which parts get names after all
LEAST_NAMED = 8  # characters of such parts


class Line(NamedTuple):
    """`rules`: what made it of the line before; `changes`: the nodes whose change it names;
    `lets`: what its new names stand for."""

    shown: Expression
    rules: tuple[str, ...]
    changes: dict[Call, Node]
    lets: tuple[tuple[str, Expression], ...] = ()


class Known(NamedTuple):
    """The names of a program: `ends` of what is read no further, `values` of what may be; the names
    that a formula has for values of the program, and all that it has, with what they stand for; and
    which others are taken."""

    ends: Mapping[Node, str]
    values: Mapping[Node, str]
    given: Mapping[Node, str]
    lets: Mapping[str, Expression]
    taken: Iterable[str]


def derivation(
    result: Node, variable: Node, known: Known, change: str, masks: Masks,
    collects: bool,
) -> list[Line]:  # fmt: skip
    """The lines from `d(result)` to one in which only the change of the variable is left;
    `collects`: what multiplies a change, on the way. Raises NoFormula where an op has no rule that
    can be said."""
    steps = _Steps(result, variable, known, change, masks)
    if result is variable:
        return [Line(steps.rules.change, (), {})]
    first = Call("d", (steps.rules.of(result, opened=True),))
    lines = [Line(first, (), {first: result})]
    while lines[-1].changes:
        more = steps.further(lines[-1])
        if collects and len(lines) > 1 and steps.is_worth_collecting(lines[-1], more):
            with suppress(NoFormula):
                found = steps.collected(lines[-1])
                if text(found.shown) != text(lines[-1].shown):
                    lines.append(found)
                more = steps.further(found)
        lines += more
    if steps.has_names:
        with suppress(NoFormula):
            lines.append(steps.collected(lines[-1]))
    return [steps.meaning(steps.shortened(line)) for line in lines]


class _Steps:
    def __init__(self, result: Node, variable: Node, known: Known, change: str, masks: Masks):
        self.rules = Rules(variable, {**known.values, **known.ends, **known.given}, change, masks)
        self.rules.first = first_of(result)
        self.rules.names = {**numbers_in(result, known.ends), **self.rules.names}
        self.variable = variable
        self.known = known
        self.below: dict[Node, set[Node]] = {}
        self.said: set[str] = {*known.ends.values(), *known.values.values()}
        self.taken = self.said.union(known.lets, known.taken, [change, "d"])
        self.rules.woven, inside = woven(result, {**known.ends, **known.values})
        met = [node for node in cuts(result, known.ends) if node not in inside]
        for node in met:
            if node not in self.rules.names and len(text(self.rules.of(node))) > LONG_NAME:
                self.rules.names = {**self.rules.names, node: self._letter()}
        self.meanings = dict(known.lets)
        for node in (*known.given, *met):
            name = self.rules.names.get(node)
            if name is not None and name not in self.said:
                self.meanings.setdefault(name, self.rules.of(node, opened=True))
        self.rules.written = [
            *((text(part), name) for name, part in known.lets.items()),
            *((text(self.rules.of(node, opened=True)), name) for node, name in known.given.items()),
        ]
        self.met = {*met, *known.values}
        self.of_node: dict[Node, str] = {}  # what values are called that were collected by,
        self.marks: dict[str, Expression] = {}  # and what they are
        self.has_names = False  # of what multiplies a change
        self.algebra = Algebra()
        self.front: list[tuple[Sum, Node]] = [(self.algebra.number(1.0), result)]

    def _letter(self) -> str:
        every = chain(LETTERS, map("h{}".format, count(1)))
        found = next(x for x in every if x not in self.taken)
        self.taken.add(found)
        return found

    def meaning(self, line: Line) -> Line:
        """A line with what its new names stand for."""
        found: dict[str, Expression] = {}

        def say(part: Any) -> None:
            for name in uses_of(part):
                if name in self.meanings and name not in self.said:
                    self.said.add(name)
                    say(self.meanings[name])
                    found[name] = self.meanings[name]

        self.said.update(name for name, _ in line.lets)
        say((*(part for _, part in line.lets), line.shown))
        return line._replace(lets=(*found.items(), *line.lets))

    def further(self, line: Line) -> list[Line]:
        """The next lines, up to one in which only values change that may have names."""
        lines = []
        while True:
            line = self.next(line)
            lines.append(line)
            if self.met.issuperset(line.changes.values()):
                return lines

    def next(self, line: Line) -> Line:
        """Each change on which no other one depends by its rule; what is linear all at once."""
        rules: dict[str, None] = {}
        shown, changes = line.shown, line.changes
        while True:
            made = {}
            for part, node in changes.items():
                if not any(node in self._below(x) for x in changes.values() if x is not node):
                    self.rules.changes = {}
                    made[part] = (*self.rules.rule(node), self.rules.changes)
            plain = {part: found for part, found in made.items() if found[1] in PLAIN}
            opened = plain or made
            if rules and not plain:
                break
            rules |= dict.fromkeys(found[1] for found in opened.values())
            changes = {part: node for part, node in changes.items() if part not in opened}
            for found in opened.values():
                changes |= found[2]
            by = {part: found[0] for part, found in opened.items()}
            shown = self.rules.with_names(tidied(mapped(shown, by.get)))
            if not plain or self.met.issuperset(changes.values()):
                break
        said = text(shown)
        order = sorted(changes, key=lambda part: said.find(text(part)))
        return Line(shown, tuple(rules), {part: changes[part] for part in order})

    def shortened(self, line: Line) -> Line:
        """A line with the names that were given since; a long one gives some to what does not
        change in it and stands there twice, one that is very long to what stands there once."""
        while True:
            line = self._named(line)
            size = len(text(line.shown))
            found: Counter[Expression] = Counter()
            self._constant(line.shown, found)
            often = {x: n for x, n in found.items() if n > 1 or size > VERY_LONG}
            if size <= LONG or not often:
                return line
            part = max(often, key=lambda x: (found[x] > 1, has_letter(x), found[x] * len(text(x))))
            name = letter(part, self.taken, ())
            self.taken.add(name)
            self.meanings[name] = part
            self.rules.written.append((text(part), name))

    def _named(self, line: Line) -> Line:
        by = {x: Call("d", (self.rules.with_names(x.arguments[0]),)) for x in line.changes}
        shown = self.rules.with_names(mapped(line.shown, by.get))
        rules = line.rules
        for x in sorted(by, key=lambda x: -len(text(x))):
            rules = tuple(rule.replace(text(x), text(by[x])) for rule in rules)
        changes = {by[x]: node for x, node in line.changes.items()}
        return line._replace(shown=shown, rules=rules, changes=changes)

    def _constant(self, shown: Any, found: Counter[Expression]) -> bool:
        """Whether a part does not change; those that a name would make shorter are counted."""
        if shown == self.rules.change or (isinstance(shown, Call) and shown.function == "d"):
            return False
        moving = [part for part in _inner(shown) if not self._constant(part, found)]
        same = not moving and not isinstance(shown, Left)
        size = len(text(shown))
        if same and size > LEAST_NAMED and not isinstance(shown, (*FREE, *UNNAMED)):
            found[shown] += 1
        return same

    def _below(self, node: Node) -> set[Node]:
        """What a node is made of."""
        found = self.below.get(node)
        if found is None:
            first = self.rules.first
            below = {first.get(x, x) for x in walk([node], _inputs)}
            found = self.below[node] = below - {node}
        return found

    # -- collecting -------------------------------------------------------------------------------

    def is_worth_collecting(self, line: Line, more: list[Line]) -> bool:
        """Whether a change stands in a line more than once, or what follows is long."""
        often = any(_occurrences(line.shown, part) > 1 for part in line.changes)
        return often or any(len(text(x.shown)) > LONGEST_LINE for x in more)

    def collected(self, line: Line) -> Line:
        """One product for each change: of it and what multiplies it. Raises NoFormula."""
        algebra, known = self.algebra, self.known
        ends = [*line.changes.values(), self.variable]
        called = self.rules.names
        for node in ends:
            mark = called.get(node, f"{MARK}{len(self.marks)}")
            self.marks.setdefault(mark, self.rules.of(node))
            self.of_node.setdefault(node, mark)
        marks = {node: self.of_node[node] for node in ends}
        values = {
            node: called[node] for node in (*known.values, *self.met)
            if node in called and node not in known.ends and node not in marks
        }  # fmt: skip
        twins = {x: marks[node] for x, node in self.rules.first.items() if node in marks}
        names = {**known.ends, **values, **twins, **marks}
        named: dict[Sum, str] = {}
        algebra.meanings.clear()
        for node, name in values.items():
            others = {n: x for n, x in names.items() if n is not node}
            meaning = Reader(algebra, others, self.rules.masks).read(node)
            algebra.meanings[algebra.atom("name", name, (), node.shape)] = meaning
            if meaning.terms and meaning.terms[0][0]:
                named.setdefault(meaning, name)
        sums: list[tuple[Sum, Sum]] = []
        for g, node in self.front:
            if node not in ends:
                others = {n: x for n, x in names.items() if n is not node}
                sums.append((g, Reader(algebra, others, self.rules.masks).read(node)))
        front: list[tuple[Sum, Node]] = []
        parts: list[Expression] = []
        products: list[Expression] = []
        lets: list[tuple[str, Expression]] = []
        changes: dict[Node, Expression] = {node: part for part, node in line.changes.items()}
        for node in ends:
            by = Slopes(algebra, algebra.atom("name", marks[node], (), node.shape))
            before = [g for g, other in self.front if other is node]
            slope = algebra.added(*before, *(by.pulled(g, sum_) for g, sum_ in sums))
            if not slope.terms:
                continue
            algebra.work = 0
            shown = given(printed(Printer(algebra, named), slope), self.marks)
            shown = self.rules.with_names(shown)
            if len(text(shown)) > LONG_NAME and node is not self.variable:
                whole = not any(node in self._below(x) for x in ends)
                own = f"g_{marks[node]}"
                free = own in known.lets or own not in self.taken
                whole = whole and node in called and free
                name = own if whole else self._letter()
                self.taken.add(name)
                lets.append((name, shown))
                shown = Name(name, node.shape)
                slope = algebra.of_atom(algebra.atom("name", name, (), node.shape))
            front.append((slope, node))
            products.append(changes.get(node, self.rules.change))
            product = products[-1]
            match shown:
                case Infix("mul", Call("ones"), rest):  # the change is as large
                    shown = rest
            if shown not in (Number(1), filled("ones", node.shape)):
                product = Infix("mul", shown, product)
            parts.append(Call("sum", (product,)) if node.ndim else product)
        if not parts:
            raise NoFormula
        self.front = front
        self.has_names = self.has_names or bool(lets)
        return Line(tidied(summed(parts)), (collected(products),), line.changes, tuple(lets))


def collected(changes: list[Expression]) -> str:
    """The rule that products with changes are added up by."""
    said = (text(part) for part in changes)
    return f"what multiplies {' and '.join(said)}, collected"


def first_of(result: Node) -> dict[Node, Node]:
    """By node the first one that is computed as it is of the same operands."""
    found: dict[Node, Node] = {}
    seen: dict[Any, Node] = {}

    def first(part: Any) -> Any:
        return tuple(map(first, part)) if type(part) is tuple else found.get(part, part)

    for node in sorted(walk([result], _inputs), key=SEQUENCE):
        key = (node.op, first(node.args)) if node.inputs else node
        found[node] = seen.setdefault(key, node)
    return found


def numbers_in(result: Node, ends: Mapping[Node, str]) -> dict[Node, str]:
    """What is computed, but of no data: numbers, as they are written."""
    found: dict[Node, str] = {}
    nodes = [x for node in walk([result], _inputs) if node.requires_grad for x in node.inputs]
    for node in nodes:
        if node.inputs and is_float(node.dtype) and not node.requires_grad and node not in ends:
            with suppress(NoFormula):
                value = number_of(Reader(Algebra(), ends).read(node))
                if value is not None:
                    found[node] = text(constant(value).shown, spaced=True)
    return found


def _inputs(node: Node) -> tuple[Node, ...]:
    return node.inputs


def _occurrences(shown: Any, part: Expression) -> int:
    if shown == part:
        return 1
    return sum(_occurrences(x, part) for x in _inner(shown))


def _inner(shown: Any) -> Iterable[Any]:
    return shown if type(shown) is tuple else parts(shown)
