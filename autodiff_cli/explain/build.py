"""From a program that ran to its explanation.

Invariant: nothing of the program changes; the backward pass is run once more on its graph, with the
rules that compute, and every number shown is a value of that graph.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from ..engine.evaluate import evaluate
from ..errors import Diagnostic
from ..graph.kinds import Kind
from ..graph.node import Node
from ..graph.op import LEAF, value_of
from ..graph.registry import F
from ..graph.state import grad_mode
from ..language.program.running import Program
from ..language.program.variables import Variable
from ..symbolic.derivation import spellings
from ..symbolic.writing.expression import Name, expression_of, text
from ..symbolic.writing.latex import escaped, latex
from .check import compared
from .choosing import check_opened, chosen_units, variables
from .evaluated import agrees
from .model import Contribution, Explanation, Formula, Forward, Incoming, Request, Seed, Step, Total
from .naming import Names
from .record import Given, Recording, Seeds, recorded, untouched
from .units import Statements, Unit, Units, by_statement, leading_to
from .words import readable, rule_of, sign_of, through

MOST_STEPS = 40  # more are grouped by statement
LONGEST = 72  # characters of a formula; of longer ones only the chain rule is shown


def explain(
    program: Program,
    request: Request,
    seeds: Seeds,
    *,
    objective: str = "",
    assigned: Iterable[tuple[str, Node]] = (),
    backwards: int = 1,
) -> Explanation:
    """Explain the backward pass of `seeds` in a program that ran.

    Args:
        program: whose names are used; it is left as it is.
        request: what is wanted.
        seeds: what was differentiated, each with its upstream gradient.
        objective: what that is called.
        assigned: what values were named while the program ran, in order.
        backwards: how many backward passes there were; this is the last one.

    Raises:
        AutodiffError: an unknown name, or what evaluating the gradients runs into.
    """
    roots = [node for pair in seeds for node in pair]
    with untouched(roots), grad_mode(False):
        builder = _Builder(program, request, seeds, objective, list(assigned))
        return builder.explanation(program.source.name, backwards)


class _Builder:
    def __init__(
        self,
        program: Program,
        request: Request,
        seeds: Seeds,
        objective: str,
        assigned: list[tuple[str, Node]],
    ):
        self.program = program
        self.request = request
        self.recording: Recording = recorded(seeds, frozenset(request.open))
        check_opened(self.recording, request.open)
        units = Units(self.recording)
        self.shown = units.shown
        root = units.shown(seeds[0][0])
        if objective.isidentifier() and len(seeds) == 1:
            assigned = [*assigned, (objective, root)]
        self.names = Names(program, self.recording, units.visible(), assigned, units.through)
        self.objective = objective or " + ".join(self.names[units.shown(n)] for n, _ in seeds)
        self.warnings: list[Diagnostic] = []
        self.statements = Statements()
        self.wanted = variables(
            program, self.recording, self.names, units, request.wrt, self.objective, self.warnings
        )
        self.useful = leading_to(units.list, {variable.node for variable in self.wanted})
        self.grouped = len(units.list) > MOST_STEPS and not request.every
        self.units = by_statement(units, set(self.names.bound)) if self.grouped else units.list
        self.numbers = {unit: len(self.units) - at for at, unit in enumerate(self.units)}
        self.makers = {node: unit for unit in self.units for node in unit.nodes}
        self.paths = self._paths()

    def _paths(self) -> dict[tuple[Unit, Node], list[int]]:
        """The numbers of the paths by which each unit gives to each node."""
        count: dict[Node, int] = {}
        found: dict[tuple[Unit, Node], list[int]] = {}
        for unit in self.units:
            for target, parts in self._by_target(unit).items():
                for _ in parts:
                    count[target] = count.get(target, 0) + 1
                    found.setdefault((unit, target), []).append(count[target])
        self.counts = count
        return found

    def _by_target(self, unit: Unit) -> dict[Node, list[list[Given]]]:
        """What a unit gives to each node: the paths of an op are told apart, those through the
        parts of a composite or a statement are one."""
        found: dict[Node, list[list[Given]]] = {}
        single = len(unit.nodes) == 1 or all(g.source is unit.head for g in unit.given)
        for given in unit.given:
            if given.target not in self.useful:
                continue
            parts = found.setdefault(given.target, [])
            if single or not parts:
                parts.append([given])
            else:
                parts[0].append(given)
        return found

    # -- everything ---------------------------------------------------------------------------

    def explanation(self, file: str, backwards: int) -> Explanation:
        """All parts, or those of one expression."""
        units = self.units
        if self.request.node is not None:
            units = chosen_units(self.request.node, units, self.names, self._texts)
        self._evaluate(units)
        useful = [unit for unit in units if self._by_target(unit)]
        steps = tuple(self._step(unit) for unit in useful)
        forward = tuple(self._forward(unit) for unit in sorted(units, key=self.numbers.__getitem__))
        whole = self.request.node is None
        return Explanation(
            file,
            self.objective,
            tuple(self._seed(node, g) for node, g in self.recording.seeds) if whole else (),
            forward,
            steps,
            tuple(self._total(v) for v in self.wanted) if whole else (),
            compared(self.recording.seeds, self.wanted, any(map(self._hooked, self.recording.used)))
            if whole and self.request.check else None,
            self.grouped,
            backwards,
            warnings=self.warnings,
        )  # fmt: skip

    def _texts(self, unit: Unit) -> list[str]:
        """What a unit may be asked for by."""
        texts = [self.names.of.get(head, "") for head in unit.heads]
        texts.append(unit.span.text if unit.span is not None else "")
        texts += [self._expression(unit.head).text, str(self.numbers[unit])]
        return texts

    def _evaluate(self, units: list[Unit]) -> None:
        """All values that are shown, in one plan."""
        self.sums: dict[tuple[Unit, Node, int], Node] = {}
        nodes: list[Node] = [node for node, _ in self.recording.seeds]
        nodes += [n for v in self.wanted for n in (v.node, self.recording.used[v.node])]
        for unit in units:
            nodes += self._made(unit.head)
            nodes += [self.recording.used[node] for node in self._made(unit.head)]
            for target, parts in self._by_target(unit).items():
                for at, part in enumerate(parts):
                    total = part[0].g
                    for given in part[1:]:
                        total = F.add(total, given.g)
                    self.sums[unit, target, at] = total
                    nodes.append(total)
        evaluate(nodes)

    def _made(self, node: Node) -> list[Node]:
        """The nodes with the values of a step: itself, or its results."""
        if node.outputs is None:
            return [node]
        return self.recording.results.get(node, [])

    def _called(self, node: Node) -> str:
        return self.names.of.get(node, "")

    # -- parts --------------------------------------------------------------------------------

    def _seed(self, node: Node, g: Node) -> Seed:
        value = value_of(g)
        one = value.size == 1 and value.item() == 1
        return Seed(self.names[self.shown(node)], value, not one)

    def _forward(self, unit: Unit) -> Forward:
        head = unit.head
        made = self._made(head)
        first = made[0] if made else head
        expression = self._expression(head)
        merged = self.grouped and len(unit.nodes) > 1
        if merged and unit.span is not None:
            source = _TARGET.sub("", _one_line(unit.span.text))
            name = self._called(first)
            expression = Formula(source, rf"\texttt{{{escaped(source)}}}")
        else:
            name = ", ".join(self.names[n] for n in made)
        value = value_of(first)
        return Forward(
            self.numbers[unit], name, expression, value.shape, value.dtype.name, value, unit.span,
            unit.times,
        )  # fmt: skip

    def _expression(self, node: Node) -> Formula:
        """What a node is made of, one step deep."""
        if node.op.key == "cast":
            made = f"{self.names[node.inputs[0]]}.to({node.dtype.name})"
            return Formula(made, latex(Name(made)))
        found = expression_of(node, self.names.of, opened=True)
        if node.span is not None and not readable(found):
            made = _one_line(node.span.text)
            whole = self.statements.of(node.span) if node.op.key == "copy_slices" else None
            if whole is not None:
                made = f"{self.names.of.get(node.inputs[0], '...')} after {_one_line(whole.text)}"
            return Formula(made, latex(Name(made)))
        return Formula(text(found, spaced=True), latex(found))

    def _step(self, unit: Unit) -> Step:
        head = unit.head
        opened = self.recording.opens(head)
        entries = self._made(unit.head)
        incoming = tuple(
            Incoming(
                self._called(n), value_of(self.recording.used[n]), self.counts.get(n, 1),
                self._hooked(n),
            )
            for n in entries if n in self.recording.used
        )  # fmt: skip
        contributions = (
            self._folded(unit) if unit.times > 1 else [
                self._contribution(unit, target, at, part)
                for target, parts in self._by_target(unit).items()
                for at, part in enumerate(parts)
            ]
        )  # fmt: skip
        merged = self.grouped and len(unit.nodes) > 1
        span = unit.span
        return Step(
            self.numbers[unit],
            _one_line(span.text) if merged and span is not None else sign_of(head),
            f"chain rule through {through(unit.nodes)}" if merged else rule_of(head, opened),
            _one_line(span.text) if span is not None else "",
            span.line if span is not None else None,
            incoming,
            tuple(contributions),
            unit.times,
        )

    def _hooked(self, node: Node) -> bool:
        return self.recording.used[node] is not self.recording.arrived[node]

    def _contribution(self, unit: Unit, target: Node, at: int, part: list[Given]) -> Contribution:
        node = self.sums[unit, target, at]
        formula, broadcast = self._formula(unit, part, node)
        return Contribution(
            self._called(target),
            formula,
            target.shape,
            value_of(node),
            self.paths[unit, target][at],
            self.counts[target],
            broadcast,
            made=self._maker(target),
        )

    def _maker(self, node: Node) -> int:
        return self.numbers[self.makers[node]] if node in self.makers else 0

    def _formula(
        self, unit: Unit, part: list[Given], node: Node
    ) -> tuple[Formula, tuple[int, ...] | None]:
        """`node`, the sum of the cotangents of a path, in the names of the program."""
        later = [head for head in unit.heads if head.seq >= part[0].source.seq]
        made = self._made(later[-1] if later else unit.head)  # by the execution that gave it
        entries = [n for n in made if n in self.recording.used]
        names = {n: name for n, name in self.names.of.items() if n.outputs is None}
        seeds = dict(self.recording.seeds)
        for n in entries:
            g = self.recording.used[n]
            seed = seeds.get(n)
            number = seed is not None and g is seed and not seed.shape
            names[g] = f"{value_of(g).item():g}" if number else f"g({self._called(n)})"
        undone = [g.g for g in part if g.g.op.key == "summed_to" and len(part) == 1]
        broadcast = undone[0].inputs[0].shape if undone else None
        if len(unit.nodes) == 1 or not self.grouped:
            for found in spellings(node, names):
                short = readable(found.shown) and len(text(found.shown)) <= LONGEST
                if short and agrees(found, node, names) is not False:
                    return Formula(text(found.shown), latex(found.shown)), broadcast
        return self._chain(unit, entries, part[0].target), broadcast

    def _chain(self, unit: Unit, entries: list[Node], target: Node) -> Formula:
        """What is given by the chain rule: upstream times how a result changes with an operand,
        element by element or, where elements are mixed, as a product of matrices is."""
        like = [n.op.kind is Kind.POINTWISE and n.shape == target.shape for n in unit.nodes]
        sign = "*" if all(like) else "@"
        below = self._called(target)
        parts, symbols = [], []
        for above in map(self._called, entries):
            given = f"g({above})"
            parts.append(f"{given} {sign} d {above} / d {below}")
            over, under = (latex(Name(name)) for name in (above, below))
            symbols.append(rf"{latex(Name(given))} \frac{{\partial {over}}}{{\partial {under}}}")
        return Formula(" + ".join(parts), " + ".join(symbols))

    def _folded(self, unit: Unit) -> list[Contribution]:
        """The contributions of all executions of a statement, by the name they go to: the last of
        them, or their sum where all go to one value."""
        by_name: dict[str, list[tuple[Node, Node, list[Given]]]] = {}
        for target, parts in self._by_target(unit).items():
            name = self._called(target)
            base = name if target.op is LEAF else name.partition("#")[0]
            for at, part in enumerate(parts):
                by_name.setdefault(base, []).append((target, self.sums[unit, target, at], part))
        found: list[Contribution] = []
        for given in by_name.values():
            targets = {target for target, _, _ in given}
            target, node, part = given[0]
            formula, broadcast = self._formula(unit, part, node)
            times = len(given) if len(targets) > 1 else sum(len(part) for _, _, part in given)
            if len(targets) == 1:
                found.append(Contribution(
                    self._called(target), formula, target.shape, value_of(node),
                    self.paths[unit, target][0], self.counts[target], broadcast, times,
                    made=self._maker(target),
                ))  # fmt: skip
                continue
            first, last = (_norm(value_of(given[at][1])) for at in (0, -1))
            found.append(Contribution(
                self._called(target), formula, target.shape, value_of(node), 1, 1, broadcast,
                times, (first, last), self._maker(target),
            ))  # fmt: skip
        return found

    def _total(self, variable: Variable) -> Total:
        node = variable.node
        value = value_of(self.recording.used[node])
        return Total(
            variable.name, value.shape, value, self.counts.get(node, 0), value_of(node),
            self._hooked(node),
        )  # fmt: skip


_TARGET = re.compile(r"^(?:return |[^=!<>([]*(?<![-+*/@%&|^<>=!])=(?!=))\s*")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _norm(value: np.ndarray) -> float:
    return float(np.linalg.norm(np.asarray(value, np.float64)))
