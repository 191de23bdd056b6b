"""How a value changes when a variable changes by `dw`, by the rule of its op: an expression of the
program in which `d(...)` stands for how its operand changes."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from functools import partial
from typing import Any

import numpy as np

from ..autograd.forward import Linearized
from ..checks.deadline import go_on_after
from ..errors import AutodiffError
from ..graph.dtypes import is_float
from ..graph.kinds import Kind
from ..graph.node import Node
from ..graph.op import constant, results_of
from ..graph.walk import SEQUENCE, bottom_up, walk
from .algebra import Algebra
from .atoms.places import result_of
from .derivation import spellings
from .reading import READERS, Reader, is_function
from .slopes import Slopes, is_plain
from .terms import OPERAND, NoFormula
from .textbook_rules import CONSTANT_FACTOR, NAMED, Made, called, only_element, traced
from .writing.expression import (
    Call,
    Expression,
    Infix,
    Masks,
    Name,
    Negative,
    Number,
    ahead,
    expression_of,
    filled,
    indexed,
    is_logdet,
    mask_of,
    ranked,
    seen_alike,
    single,
    text,
    transposes,
)
from .writing.lets import mapped, mentioned
from .writing.matrix_form import Printer
from .writing.tidy import LINEAR, given, in_full, is_kept, summed, tidied
from .writing.windowed import MADE, MEANS, called_as

SAME = ("cast", "alias", "clone", "contiguous", "depends", "with_value", "positive", "once")
SOLVES = {"solve_triangular": 1, "cholesky_solve": 0}  # which operand they are linear in
CUT = ("leaf", "constant", "detach")
REST = "the rest is constant"
SUM_RULE, MOVED, TRANSPOSED = "sum rule", "elements only move", "d(u.T) = d(u).T"
MATRICES = ("matmul", "mm", "mv", "bmm", "dot")
MARK = "\0"
LONGEST_RULE = 60  # characters of a rule that is said


class Rules:
    """What the change of a node is, by how its operands change."""

    def __init__(self, variable: Node, names: Mapping[Node, str], change: str, masks: Masks):
        self.variable = variable
        self.names = names
        self.masks = masks
        self.change = Name(change, variable.shape)
        self.first: Mapping[Node, Node] = {}  # of what was computed twice, the first
        self.written: list[tuple[str, str]] = []  # texts, and names for them
        self.woven: Mapping[Node, tuple[Node, ...]] = {}  # products of moved arrays: of which
        self.changes: dict[Call, Node] = {}
        self.dependent: dict[Node, bool] = {variable: True}

    # -- what a rule is made of -------------------------------------------------------------------

    def depends(self, node: Node) -> bool:
        for inner in bottom_up(node, lambda n: n.inputs, self.dependent):
            self.dependent[inner] = (
                inner.op.key not in CUT
                and (inner.outputs is not None or is_float(inner.dtype))
                and any(self.dependent[below] for below in inner.inputs)
            )
        return self.dependent[node]

    def of(
        self, node: Node, names: Mapping[Node, str] | None = None, opened: bool = False
    ) -> Expression:
        names = names or self.names
        if node in self.woven and (opened or node not in names):
            return self._spelled(node)
        marks = {x: f"{MARK}w{i}" for i, x in enumerate(self.woven)}
        shown = expression_of(node, {**marks, **names}, opened=opened, masks=self.masks)
        found = {marks[x]: self._spelled(x) for x in self.woven if marks[x] in mentioned(shown)}
        return self._tidied(given(shown, found))

    def _spelled(self, node: Node) -> Expression:
        """A product of moved arrays, as a sum of products; a call as it is written."""
        if (lone := single(node)) is not None:
            return lone[1](self.of(lone[0]))
        marks = {x: f"{MARK}{i}" for i, x in enumerate(self.woven[node])}
        shown = spellings(node, marks)[0].shown
        return self._tidied(given(shown, {mark: self.of(x) for x, mark in marks.items()}))

    def _tidied(self, shown: Expression) -> Expression:
        return tidied(in_full(shown) if self.variable.dtype.itemsize < 8 else shown)

    def d(self, node: Node) -> Expression:
        """How a node changes."""
        while node is not self.variable and (node.op.key in SAME or seen_alike(node)):
            node = node.inputs[0]
        node = self.first.get(node, node)
        if node is self.variable:
            return self.change
        shown = self.with_names(self.of(node))
        if isinstance(shown, Call) and is_kept(shown):
            shown = shown._replace(keywords=())
        found = Call("d", (shown,))
        self.changes[found] = node
        return found

    def with_names(self, shown: Expression) -> Expression:
        """With names for what has one."""

        def change(meaning: str, name: str, part: Any) -> Any:
            return Name(name) if not isinstance(part, Name) and text(part) == meaning else None

        for pair in self.written:
            shown = mapped(shown, partial(change, *pair))
        return shown

    def with_changes(self, node: Node) -> Expression:
        """A linear op of the changes of its operands."""
        mask = mask_of(node.args[1], self.masks) if node.op.key == "index" else None
        if mask is not None:
            return indexed(self.d(node.args[0]), ahead(node.args[1]), self.of(mask))
        marks = {inner: f"{MARK}{i}" for i, inner in enumerate(dict.fromkeys(node.inputs))}
        shown = self.of(node, {**self.names, **marks}, True)
        changed: dict[str, Expression] = {
            mark: self.d(inner) if self.depends(inner) else self._still(inner)
            for inner, mark in marks.items()
        }
        return given(shown, changed)

    def _still(self, node: Node) -> Expression:
        """What does not change: nothing, or the numbers of places."""
        if not is_float(node.dtype):
            return self.of(node)
        return filled("zeros", node.shape) if node.shape else Number(0.0)

    def product(self, node: Node, join: Callable[[Expression, Expression], Expression]) -> Made:
        left, right = node.inputs
        if left is right and node.op.key == "mul":
            twice = Infix("mul", Number(2), self.of(left))
            return Infix("mul", twice, self.d(left)), "power rule"
        parts = []
        if self.depends(left):
            parts.append(join(self.d(left), self.of(right)))
        if self.depends(right):
            parts.append(join(self.of(left), self.d(right)))
        return summed(parts), "product rule" if len(parts) > 1 else CONSTANT_FACTOR

    # -- rules ------------------------------------------------------------------------------------

    def rule(self, node: Node) -> Made:
        """The change of a node, and what says so; where that is no rule of a textbook it is the one
        of the op itself."""
        if not self.depends(node):
            return self._still(node), REST
        lone = single(node)
        if lone is not None:
            return self._of_call(node, *lone)
        if node in self.woven:
            made, _ = self._linearized(node, self.woven[node])
            alone = sum(map(self.depends, self.woven[node])) == 1
            return made, CONSTANT_FACTOR if alone else "product rule"
        try:
            return self._said(node)
        except NoFormula:
            return self._linearized(node)

    def _of_call(
        self, node: Node, inner: Node, call: Callable[[Expression], Expression]
    ) -> Made:  # fmt: skip
        """Of a call of one operand: linear, or of what is the only one of its value."""
        name = called(node)
        if ranked(node) is not None:
            return only_element(self, node, inner, self.of(node), node.args[1], True)
        if node.inputs[0].op.key in MEANS:
            return call(self.d(inner)), f"d of {name} is {name} of d"
        return self._linearized(node, (inner,))

    def _linearized(self, node: Node, operands: tuple[Node, ...] = ()) -> Made:
        """What the op's own rule makes of changes of its operands."""
        call = node.args[0] if node.op.key == "output" else node
        operands = tuple(dict.fromkeys(operands or call.inputs))
        moving = [x for x in operands if self.depends(x)]
        changes = [constant(np.full(x.shape, 0.5, x.dtype)) for x in moving]
        try:
            (tangent,) = Linearized([node], moving).along(list(changes))
        except AutodiffError as error:
            go_on_after(error)
            raise NoFormula(node) from None
        marks = {x: f"{MARK}{i}" for i, x in enumerate(operands)}
        results = {x: self.names[x] for x in results_of(call) if x in self.names}
        moved = {change: f"{MARK}d{marks[x]}" for x, change in zip(moving, changes, strict=True)}
        ways = spellings(tangent, {**results, **marks, **moved})
        found = min(reversed(ways), key=lambda way: way.cost)  # op by op where that is as short
        parts = {mark: self.of(x) for x, mark in marks.items()}
        parts |= {f"{MARK}d{marks[x]}": self.d(x) for x in moving}
        letters = dict(zip(marks.values(), ("u", "v", "s", "t"), strict=False))
        letters |= {f"{MARK}d{mark}": f"d{letter}" for mark, letter in letters.items()}
        rule = text(given(found.shown, {m: Name(x) for m, x in letters.items()}))
        name = called(call)
        rule = f"d {name}(u) = {rule}" if len(rule) <= LONGEST_RULE else f"the derivative of {name}"
        return given(found.shown, parts), rule

    def _said(self, node: Node) -> Made:
        key = node.op.key
        if key in ("add", "sub"):
            return self._added(node)
        if key == "neg":
            return Negative(self.d(node.inputs[0])), CONSTANT_FACTOR
        if key == "mul":
            return self.product(node, lambda a, b: Infix("mul", a, b))
        if key in MATRICES:
            return self.product(node, lambda a, b: Infix("matmul", a, b))
        if key in MADE:
            name, keywords = called_as(node)
            return self.product(node, lambda a, b: Call(name, (a, b), keywords))
        if key in ("div", "number_quotient"):
            return self._quotient(node)
        if key == "pow" and not self.depends(node.inputs[1]):
            return self._power(node)
        source = node.args[2] if is_logdet(node) else node
        if source.op.key == "output" and source.args[0].op.key == "slogdet":
            matrix = source.args[0].args[0]
            return traced(self, matrix), "d logdet(M) = trace(inv(M) @ dM)"
        call = node.args[0] if key == "output" and node.args[1] == 0 else node
        named = NAMED.get(called(call))
        if named is not None and (made := named(self, node, *call.args)) is not None:
            return made
        if key == "where" and not self.depends(node.args[0]):
            sides = [self.d(x) if self.depends(x) else Number(0.0) for x in node.args[1:]]
            return Call("where", (self.of(node.args[0]), *sides)), "on each side of the condition"
        if key == "masked_written":
            source, mask, _ = node.inputs
            filled = Call("where", (self.of(mask), Number(0.0), self.d(source)))
            return filled, "what is filled in is constant"
        if key in SOLVES and not self.depends(node.args[not SOLVES[key]]):
            right = node.args[SOLVES[key]]
            shown = self.of(node, {**self.names, right: MARK}, True)
            return given(shown, {MARK: self.d(right)}), f"{called(node)} is linear in that"
        if node.op.kind is Kind.MOVEMENT and key not in (*SAME, *LINEAR):
            return self.with_changes(node), TRANSPOSED if transposes(node) else MOVED
        if key in (*LINEAR, *MEANS):
            return self.with_changes(node), f"d of {called(node)} is {called(node)} of d"
        if key in READERS and not node.ndim and key != "output":
            return self._loss(node)
        body = result_of(node) or node.body
        if isinstance(body, Node) and is_function(node):
            plain = node.op.vjp_rule is not None or is_plain(node.op, node.args)
            return self._function(node) if plain else self._smooth(node)
        if isinstance(body, Node) and node.op.kind is not Kind.POINTWISE:
            first, second = (text(self.with_names(self.of(x))) for x in (node, body))
            if first == second and body.op.key not in (*SAME, *CUT):
                return self.rule(body)
            shown, own = self.d(body), self.names.get(node)
            opened = [*self.changes.values()]
            if own is None or len(opened) != 1:
                return shown, f"what {called(call)} is"
            self.names = {opened[0]: own, **self.names}
            return shown, f"what {own} is"
        if is_function(node):
            return self._function(node)
        raise NoFormula(node)

    def _added(self, node: Node) -> Made:
        key = node.op.key
        left, right = node.inputs
        if not self.depends(left):
            change = self._as_large(right, node)
            return Negative(change) if key == "sub" else change, REST
        if not self.depends(right):
            return self._as_large(left, node), REST
        return Infix(key, self.d(left), self.d(right)), SUM_RULE

    def _as_large(self, part: Node, node: Node) -> Expression:
        """A change as large as what it is added to."""
        if part.shape == node.shape:
            return self.d(part)
        return Infix("mul", filled("ones", node.shape), self.d(part))

    def _quotient(self, node: Node) -> Made:
        above, below = node.inputs
        if not self.depends(below):
            return Infix("div", self.d(above), self.of(below)), CONSTANT_FACTOR
        parts: list[Expression] = []
        if self.depends(above):
            parts.append(Infix("mul", self.d(above), self.of(below)))
        second = Infix("mul", self.of(above), self.d(below))
        top = Infix("sub", parts[0], second) if parts else Negative(second)
        return Infix("div", top, Infix("pow", self.of(below), Number(2))), "quotient rule"

    def _power(self, node: Node) -> Made:
        base, exponent = node.inputs
        shown = self.of(exponent)
        if isinstance(shown, Number):
            less = shown.value - 1
            power = self.of(base) if less == 1 else Infix("pow", self.of(base), Number(less))
        else:
            power = Infix("pow", self.of(base), Infix("sub", shown, Number(1)))
        return Infix("mul", Infix("mul", shown, power), self.d(base)), "power rule"

    def _loss(self, node: Node) -> Made:
        """A number: its derivative by each operand times the change."""
        algebra = Algebra()
        marks = {inner: f"{MARK}{i}" for i, inner in enumerate(dict.fromkeys(node.inputs))}
        sum_ = Reader(algebra, marks).read_opened(node)
        slopes: list[Expression | None] = []
        for inner, mark in marks.items():
            found = None
            if self.depends(inner):
                by = Slopes(algebra, algebra.atom("name", mark, (), inner.shape))
                found = Printer(algebra, {}).form(by.of(sum_)).shown
            slopes.append(found)
        return self._chained(node, [*marks], slopes)

    def _chained(self, node: Node, inputs: Any, slopes: list[Expression | None]) -> Made:
        """The slope times the change, for each operand; in the slopes operands are marks."""
        parts = {f"{MARK}{i}": self.of(inner) for i, inner in enumerate(inputs)}
        letters = {mark: Name(letter) for mark, letter in zip(parts, "uvst", strict=False)}
        found: list[Expression] = []
        said: list[Expression] = []
        for i, (slope, inner) in enumerate(zip(slopes, inputs, strict=True)):
            if slope is None:
                continue
            local, change = self._by_name(node, given(slope, parts)), self.d(inner)
            moved = Name(f"d{'uvst'[i]}", inner.shape)
            for part, by, into in (local, change, found), (given(slope, letters), moved, said):
                product = by if part == Number(1) else Infix("mul", part, by)
                into.append(Call("sum", (product,)) if inner.ndim > node.ndim else product)
        name = f"{called(node)}({', '.join(x.text for x in letters.values())})"
        rule = f"chain rule: d {name} = {text(tidied(summed(said)))}"
        return summed(found), rule

    def _by_name(self, node: Node, shown: Any) -> Any:
        """With the name of a node for what it is."""
        if node not in self.names:
            return shown
        return mapped(shown, {self.of(node, opened=True): self.of(node)}.get)

    def _smooth(self, node: Node) -> Made:
        """A function of one element that is made of others."""
        algebra = Algebra()
        own, (inner,) = algebra.atom("name", f"{MARK}0", (), ()), node.inputs
        operand = constant(np.full((), 0.5, inner.dtype))
        body = node.op.apply([operand if x is inner else x for x in node.args]).body
        reader = Reader(algebra, {})
        reader.known[operand] = algebra.of_atom(own)
        assert isinstance(body, Node)
        slope = Printer(algebra, {}).form(Slopes(algebra, own).of(reader.read(body))).shown
        return self._chained(node, [inner], [slope])

    def _function(self, node: Node) -> Made:
        """A function of elements: its slope times the change, for each operand."""
        algebra = Algebra()
        marks = [f"{MARK}{i}" for i in range(len(node.inputs))]
        atoms = [
            algebra.of_atom(algebra.atom("name", mark, (), inner.shape))
            for mark, inner in zip(marks, node.inputs, strict=True)
        ]
        parts = tuple(algebra.stretched(atom, node.shape) for atom in atoms)
        statics = tuple(OPERAND if isinstance(a, Node) else a for a in node.args)
        own = algebra.atom("function", (node.op, statics), parts, node.shape)
        printer = Printer(algebra, {})
        try:
            found = Slopes(algebra, own).local(own)
        except NoFormula:
            raise NoFormula(node) from None
        slopes = [
            printer.form(slope).shown if slope is not None and self.depends(inner) else None
            for slope, inner in zip(found, node.inputs, strict=True)
        ]
        if not any(slope is not None for slope in slopes):
            return self._still(node), "it stays where it is"
        return self._chained(node, node.inputs, slopes)


def woven(result: Node, ends: Container[Node]) -> tuple[dict[Node, tuple[Node, ...]], set[Node]]:
    """Products of arrays whose axes are moved, as `einsum` makes them, and single calls, and what
    they are of; and what is inside of them. `ends` are not."""

    def weaves(node: Node) -> bool:
        return node.op.kind is Kind.MOVEMENT or node.op.key == "bmm"

    nodes = list(walk([result], lambda node: node.inputs))
    calls = {x: (lone[0],) for x in nodes if (lone := single(x)) is not None}
    within: set[Node] = set()
    for node, parts in calls.items():
        within |= _down_to([node], {*parts}) - {node, *parts}
    tops = {x for node in nodes if not weaves(node) for x in node.inputs}
    tops |= {result, *(node for node in nodes if node in ends)}
    found: dict[Node, tuple[Node, ...]] = {}
    inner: set[Node] = set()
    for top in filter(weaves, tops):
        operands, inside = [], [top]
        for node in inside:
            for x in node.inputs:
                if not weaves(x) or x in ends:
                    operands.append(x)  # as often as it stands there
                elif x not in inside:
                    inside.append(x)
        if any(node.op.key == "bmm" for node in inside):
            found[top] = tuple(sorted(operands, key=SEQUENCE))
            inner.update(inside[1:])
    return {**calls, **found}, within | (inner - tops)


def _down_to(nodes: list[Node], ends: set[Node]) -> set[Node]:
    return set(walk(nodes, lambda node: () if node in ends else node.inputs))
