"""Derivatives as formulas: the graph of a gradient written in the names of the program.

Invariant: a formula was evaluated and gave the gradient; only `raw` ones that cannot be evaluated
alone are shown as well, marked as not verified.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ..autograd.forward import Linearized
from ..autograd.tensor import Tensor
from ..autograd.transforms.jacobians import hessian, jacobian
from ..checks.deadline import go_on_after
from ..engine.evaluate import evaluate
from ..errors import AutodiffError, Diagnostic, Ended, fault
from ..graph.node import Node
from ..graph.op import CONSTANT, LEAF, constant, value_of
from ..graph.params import BindError
from ..graph.state import grad_mode
from ..graph.walk import SEQUENCE, bodies, walk
from ..language.program.report import Options
from ..language.program.variables import Variable
from ..source import Source
from ..symbolic.derivation import Formula, Formulas, spellings
from ..symbolic.terms import NoFormula
from ..symbolic.writing.expression import Call, Expression, Infix, Masks, Name, Number, text
from ..symbolic.writing.latex import latex, name
from ..symbolic.writing.lets import mapped
from ..transform.stable import Stable, overflows
from ..transform.torch_source import Made
from ..transform.torch_source import Recording as Recorder
from .blackboard import Known, Line, collected, derivation
from .choosing import variables
from .evaluated import agrees, built, close
from .model import Request
from .naming import Names
from .record import Seeds, recorded, untouched
from .source import Observed, under_observation
from .units import Units
from .words import readable

NONE = ("E404", "E505")  # one derivative has no formula, or none that is short enough
LONGEST = 2000  # characters of a formula
MOST_NODES = 60  # of a result whose code has the formulas of its gradients


class Step(NamedTuple):
    """A line that is equal to the one before by a rule, and what its new names stand for."""

    shown: str
    rule: str
    lets: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Derivative:
    """`d OF / d wrt` as program text and as LaTeX; `lets` are the parts of it that have names, as
    (name, text, LaTeX), in the order in which they are made. `cost` counts operators and calls."""

    wrt: str
    text: str
    latex: str
    wrt_latex: str
    shape: tuple[int, ...]
    verified: bool
    lets: tuple[tuple[str, str, str], ...] = ()
    cost: int = 0
    steps: tuple[Step, ...] = ()


@dataclass(slots=True)
class Derived(Ended):
    """The derivatives of a program, and the errors that prevented them, or some of them."""

    file: str
    of: str = ""
    of_latex: str = ""
    order: int = 1
    whole: bool = False  # of a result with axes
    derivatives: tuple[Derivative, ...] = ()
    missing: dict[str, AutodiffError] = field(default_factory=dict)  # by name: why it has none
    code: str = ""  # stand-alone, where it was asked for
    data: dict[str, np.ndarray] = field(default_factory=dict)  # what it reads from a file

    @property
    def partial(self) -> bool:
        return bool(self.derivatives)


def derive_source(
    source: Source, options: Options, request: Request, raw: bool = False, order: int = 1,
    steps: bool = False, to: str | None = None, beside: str | None = None,
) -> Derived:  # fmt: skip
    """Run a program and write down the derivatives of what it differentiates; `raw`: as the rules
    gave them. Of order 2 for every pair of names; of a result with axes, where it is named and
    nothing multiplies it, its Jacobians. `steps`: how they come about."""
    whole = request.of is not None and order == 1 and options.grad_output is None

    recording = Recorder() if to == "torch" else None

    def make(program: Observed, seeds: Seeds, objective: str) -> Derived:
        with untouched([node for pair in seeds for node in pair]), grad_mode(False):
            if to is not None:
                made = recording.made if recording is not None else None
                return _exported(program, seeds, objective, request, raw, to, beside, made)
            return _derived(program, seeds, objective, request, raw, order, whole, steps)

    with recording or nullcontext():
        return under_observation(
            source, options, request, make, lambda error: Derived(source.name, error=error),
            whole=whole,
        )  # fmt: skip


def _exported(
    program: Observed, seeds: Seeds, objective: str, request: Request, raw: bool, to: str,
    beside: str | None, made: dict[Node, Made] | None,
) -> Derived:  # fmt: skip
    from .check import confirmed
    from .export import Exported

    context = _Context(program, seeds, objective, request)
    recording, names, of = context.recording, context.names, context.of
    turns = recording.turns() if to == "torch" else []
    steady, passed, stable = _steady(seeds, context, kept=bool(turns))
    found, lets = {}, []
    for v in context.wanted:
        gradient = passed[v.node]
        if to != "torch" and not raw and len(recording.nodes) <= MOST_NODES:
            with suppress(AutodiffError):
                formula, verified = context.found([v.node], gradient, raw, v.name, 1)
                value, named = context.built(formula)
                if verified and isinstance(value, Tensor):
                    node = stable.of(value.node)
                    if steady is seeds or not overflows(node):
                        gradient = node
                        lets += named
        found[context.short.get(v.node, v.name)] = v.node, gradient
    own = [(shown, node) for node, shown in context.short.items() if node.op is LEAF]
    current = [(name, tensor.node) for name, tensor in names.tensors.items()]
    named = [*own, *current, *program.assigned, *lets]
    assigned = [(name, stable.of(node)) for name, node in named]
    leaves = [v.node for v in context.wanted if v.node.op is LEAF]
    agreeing = confirmed(steady, leaves) if to != "torch" and _plain(seeds) else ()
    passes = len(program.passes)
    which = f", of the last of its {passes} backward passes" if passes > 1 else ""
    source = Exported(
        steady, of, found, assigned, program.source.name + which, made or {}, agreeing, turns
    )  # fmt: skip
    code, data = source.text(to, beside)
    return context.derived(code=code, data=data)


def _steady(seeds: Seeds, context: _Context, kept: bool) -> tuple[Seeds, dict[Node, Node], Stable]:
    """Return stable forms of the results to export, their gradients, and which nodes they replace;
    the results themselves where they are `kept`, or the stable forms give other values."""
    wanted = [v.node for v in context.wanted]
    before = {node: context.recording.used[node] for node in wanted}
    stable = Stable(wanted)
    try:
        steady = [(stable.of(node), weight) for node, weight in seeds]
        if kept or steady == seeds:
            return seeds, before, stable
        used = recorded(steady).used
        found = {node: used[node] for node in wanted}
    except AutodiffError as error:
        go_on_after(error)
    except (BindError, KeyError):
        pass
    else:
        pairs = [(new, old) for (new, _), (old, _) in zip(steady, seeds, strict=True)]
        pairs += [(found[node], before[node]) for node in wanted]
        if all(close(value_of(new), value_of(old), everywhere=False) for new, old in pairs):
            return steady, found, stable
    return seeds, before, Stable(walk([n for n, _ in seeds], lambda n: n.inputs))


def _derived(
    program: Observed, seeds: Seeds, objective: str, request: Request, raw: bool, order: int,
    whole: bool, steps: bool,
) -> Derived:  # fmt: skip
    context = _Context(program, seeds, objective, request)
    used, wanted = context.recording.used, context.wanted
    pairs: list[tuple[tuple[Variable, ...], Node]]
    if whole and seeds[0][0].ndim:
        with grad_mode(True):
            blocks = jacobian(seeds[0][0], [v.node for v in wanted])
        context.whole = True
        pairs = [((v,), block) for v, block in zip(wanted, blocks, strict=True)]
    elif order == 1:
        pairs = [((v,), used[v.node]) for v in wanted]
    else:
        with grad_mode(True):
            rows = hessian(seeds[0][0], [v.node for v in wanted])
        pairs = [
            ((v, other) if i != j else (v,), rows[i][j])
            for i, v in enumerate(wanted) for j, other in enumerate(wanted[i:], i)
        ]  # fmt: skip
    if order == 1:
        evaluate([gradient for _, gradient in pairs])
    found: list[Derivative] = []
    missing: dict[str, AutodiffError] = {}
    for pair, gradient in pairs:
        try:
            made, formula = context.derivative(pair, gradient, raw, order)
            found.append(made)
            if steps and order == 1 and not context.whole:
                lines = context.steps(pair[0], gradient, made.wrt, formula)
                found[-1] = replace(made, steps=lines)
        except AutodiffError as error:
            if error.code not in NONE:
                raise
            missing[context.called(pair)] = error
    errors = sorted(missing.values(), key=lambda error: -error.diagnostic.exit_code)
    return context.derived(
        order=order, whole=context.whole, derivatives=tuple(found), missing=missing,
        error=errors[0] if errors else None, more_errors=errors[1:],
    )  # fmt: skip


class _Context:
    """The names and values that formulas of one program are made of and verified with."""

    def __init__(self, program: Observed, seeds: Seeds, objective: str, request: Request):
        self.file = program.source.name
        self.seeds = seeds
        self.masks = program.masks
        self.taken = program.scope.names.keys()
        self.whole = False  # Jacobians
        self.recording = recorded(seeds)
        units = Units(self.recording)
        through = units.through
        names = Names(program, self.recording, units.visible(), program.assigned, through)
        self.names = names
        self.of = of = objective or " + ".join(names[n] for n, _ in seeds)
        self.warnings: list[Diagnostic] = []
        self.wanted = variables(
            program, self.recording, names, units, request.wrt, of, self.warnings
        )
        wanted = {v.node for v in self.wanted}
        known = {
            node: shown for node, shown in names.of.items()
            if node in wanted
            or ((node.op is LEAF or not node.requires_grad) and _is_current(node, shown, names))
        }  # fmt: skip
        self.short = _shortened(known, names)
        current = {tensor.node: shown for shown, tensor in names.tensors.items()}
        self.ends = {
            node: shown for node, shown in (*current.items(), *self.short.items())
            if node.op is LEAF or node in wanted or _is_given(node)
            or (shown.isidentifier() and not node.requires_grad)
        }  # fmt: skip
        self.values = {
            node: shown for node, shown in current.items()
            if node not in self.ends and node.op is not CONSTANT
            and shown.isidentifier() and shown not in self.ends.values()
        }  # fmt: skip

        self.formulas = Formulas(
            seeds[0][0], [v.node for v in self.wanted], self.ends, self.values, self.masks,
            self.taken,
        )  # fmt: skip

        # Names of all that formulas may read.
        self.readable = {**self.values, **self.ends, **self.short}

    def derived(self, **found: Any) -> Derived:
        """Return the derivation with its file, objective and warnings."""
        return Derived(self.file, self.of, name(self.of), warnings=self.warnings, **found)

    def called(self, pair: tuple[Variable, ...]) -> str:
        """`x`, or `x,y`."""
        return ",".join(self.short.get(v.node, v.name) for v in pair)

    def derivative(
        self, pair: tuple[Variable, ...], gradient: Node, raw: bool, order: int = 1
    ) -> tuple[Derivative, Formula]:
        """The derivative with respect to one name, or the second one to two of them."""
        nodes = [v.node for v in pair]
        shown = self.called(pair)
        found, verified = self.found(nodes, gradient, raw, shown, order)
        rest, lets, cost = found
        made = Derivative(
            shown, text(rest, spaced=raw), latex(rest), r", ".join(map(name, shown.split(","))),
            gradient.shape, verified,
            tuple((n, text(part), latex(part)) for n, part in lets), cost,
        )  # fmt: skip
        return made, found

    def found(
        self, nodes: list[Node], gradient: Node, raw: bool, wrt: str, order: int
    ) -> tuple[Formula, bool]:
        """The formula of a gradient, and whether it was found to give it."""
        missing: Node | None = None
        long = False
        if self.whole and gradient.ndim > 2:
            raise fault("E404 d-d-axes", self.of, wrt, gradient.ndim)
        if not raw and len(self.seeds) == 1 and (self.whole or _plain(self.seeds)):
            wanted = nodes * order if len(nodes) < order else nodes
            try:
                found = self.formulas.by(wanted)
                (plain,) = spellings(gradient, self.short, True)
                much_shorter = order == 1 and plain.cost * 2 < found[0].cost
                for formula in [plain, *found] if much_shorter and readable(plain.shown) else found:
                    if len(text(formula.shown)) > LONGEST:
                        long = True
                    elif self._agrees(formula, gradient):
                        return formula, True
            except NoFormula as error:
                missing = error.node
        if order > 1 and gradient.ndim > 2:
            raise fault("E404 d2-axes", self.of, wrt, gradient.ndim)
        if order > 1 or (missing is not None and missing.op is CONSTANT):
            raise self._none(missing, gradient, wrt)
        said = [(formula, text(formula.shown)) for formula in spellings(gradient, self.short, raw)]
        whole = [formula for formula, x in said if len(x) <= LONGEST and "..." not in x]
        for formula in [x for x in whole if readable(x.shown)]:
            if not raw:
                formula = formula.with_names({*self.taken, *self.short.values()})
            verified = self._agrees(formula, gradient)
            if verified or (raw and verified is None):
                return formula, verified is True
        if missing is not None or (whole and not long):
            raise self._none(missing, gradient, wrt)
        raise fault("E505 d-d-too-long", self.of, wrt)

    def steps(
        self, variable: Variable, gradient: Node, shown: str, formula: Formula
    ) -> tuple[Step, ...]:
        """The derivation, line by line."""
        result = self.seeds[0][0]
        change = next(
            x for x in (f"d{shown}", f"d({shown})") if x.isidentifier() or "(" in x
            if x not in self.taken and x not in self.readable.values()
        )  # fmt: skip
        given = self._given(formula, gradient)
        known = Known(self.ends, self.values, given, dict(formula.lets), self.taken)
        for collects in (True, False):  # collected lines are a formula's, which may be others
            try:
                lines = derivation(result, variable.node, known, change, self.masks, collects)
            except NoFormula as error:
                raise self._none(error.node, result, shown) from None
            wrong = self._refuted(lines, variable, gradient, change)
            if wrong is None:
                break
        else:
            raise self._none(wrong, gradient, shown)
        found: list[Step] = []
        for line in lines:
            made = _step(line.shown, line.rules, line.lets)
            if not found or made.lets or made.shown != found[-1].shown:
                found.append(made)
        whole: Expression = Name(change)
        if formula.shown != Number(1):
            whole = Infix("mul", formula.shown, whole)
        last = Call("sum", (whole,)) if gradient.ndim else whole
        rule = collected([Name(change)])
        if lines[-1].rules == (rule,):  # by names of what is in between
            rule = "what the names stand for"
        made = _step(last, (rule,), ())
        if made.shown != found[-1].shown:
            found.append(made)
        return tuple(found)

    def _refuted(
        self, lines: list[Line], variable: Variable, gradient: Node, change: str
    ) -> Node | None:
        """What was opened in the first line that has not the value of the change that the gradient
        means, for a change of the variable that is drawn; None where all have it."""
        drawn = np.random.default_rng(0).standard_normal(variable.node.shape)
        direction = constant(np.asarray(drawn, variable.node.dtype))
        total = constant((value_of(gradient) * value_of(direction)).sum())
        lets: tuple[tuple[str, Expression], ...] = ()
        before: list[Node] = []
        for line in lines:
            lets += line.lets
            places = {**self.values, **self.ends, direction: change}
            with grad_mode(True):
                linearized = Linearized(list(line.changes.values()), [variable.node])
                tangents = linearized.along([direction])
            for at, tangent in enumerate(tangents):
                places.setdefault(tangent, f"{change} {at}")
            changes = {p: Name(places[t]) for p, t in zip(line.changes, tangents, strict=True)}
            if not agrees(Formula(mapped(line.shown, changes.get), lets, 0), total, places):
                opened = [node for node in before if node not in line.changes.values()]
                return opened[0] if opened else gradient
            before = [*line.changes.values()]
        return None

    def _given(self, formula: Formula, gradient: Node) -> dict[Node, str]:
        """The values of the program to which a formula gives names."""
        result = self.seeds[0][0]
        outside = sorted(walk([result], lambda node: node.inputs), key=SEQUENCE)
        inside = walk([result], lambda node: (*bodies(node), *node.inputs))
        every = dict.fromkeys((*outside, *sorted(inside, key=SEQUENCE)))
        nodes = [node for node in every if node not in self.ends and node not in self.values]
        _, lets = self.built(formula)
        found: dict[Node, str] = {}
        for letter, let in lets:
            alike = [x for x in nodes if x.outputs is None and x.shape == let.shape
                     and close(value_of(x), value_of(let))]  # fmt: skip
            if alike:
                apart = [np.abs(1.0 * value_of(x) - value_of(let)).max(initial=0) for x in alike]
                found.setdefault(alike[int(np.argmin(apart))], letter)
        return found

    def built(self, formula: Formula) -> tuple[Any, list[tuple[str, Node]]]:
        """A formula as a graph of the program's values, and its parts that have names."""
        with grad_mode(True):  # else what is looked at would be leaves
            return built(formula, self.readable, lambda node: node)

    def _none(self, node: Node | None, gradient: Node, wrt: str) -> AutodiffError:
        node = node or gradient
        span = node.span
        what = f"`{' '.join(span.text.split())[:60]}`" if span is not None else f"`{node.op.name}`"
        return fault("E404 d-d-no-formula", self.of, wrt, what, span=span)

    def _agrees(self, formula: Formula, gradient: Node) -> bool | None:
        """Whether a formula has the value of the gradient, where the program is and at other
        values of what it reads; None when it cannot be evaluated here."""
        names = self.readable
        found = agrees(formula, gradient, names)
        if not found:
            return found
        for far in (True, False):  # anywhere, else near where functions are defined
            moved = _moved([gradient, *names], names, far, self.masks)
            if moved is not None and (not far or _is_finite(moved[gradient])):
                return agrees(formula, moved[gradient], {moved[n]: names[n] for n in names})
        return True


def _step(
    shown: Expression, rules: tuple[str, ...], lets: tuple[tuple[str, Expression], ...]
) -> Step:
    said = tuple((name, text(part)) for name, part in lets)
    return Step(text(shown), "; ".join(rules), said)


def _is_finite(node: Node) -> bool:
    try:
        return bool(np.isfinite(value_of(node)).all())
    except AutodiffError as error:
        go_on_after(error)
        return False


def _given(node: Node) -> Node:
    """Return a node without the casts around it."""
    while node.op.key == "cast":
        node = node.inputs[0]
    return node


def _is_given(node: Node) -> bool:
    """Whether a node is data of the program."""
    node = _given(node)
    return node.op is CONSTANT and not node.weak


def _is_current(node: Node, shown: str, names: Names) -> bool:
    """Whether a name has not been given to something else since."""
    tensor = names.tensors.get(shown.partition("#")[0])
    return tensor is None or _given(tensor.node) is _given(node)


def _plain(seeds: Seeds) -> bool:
    """Whether one number is differentiated, with weight one."""
    return len(seeds) == 1 and seeds[0][1].numel == 1 and bool((value_of(seeds[0][1]) == 1).all())


def _moved(
    nodes: list[Node], named: Container[Node], far: bool, masks: Masks
) -> dict[Node, Node] | None:
    """The same nodes of other leaves: each value another one, or a little off; None where they
    cannot be made."""
    generator = np.random.default_rng(0)
    made: dict[Node, Node] = {}

    def other(argument: Any) -> Any:
        if isinstance(argument, Node):
            return made[argument]
        if type(argument) is tuple:
            return tuple(map(other, argument))
        return argument

    def below(node: Node) -> tuple[Node, ...]:
        chosen = masks.get(id(node.value)) if node.op is CONSTANT else None
        return node.inputs if chosen is None else chosen[:1]

    try:
        for node in sorted(walk(nodes, below), key=SEQUENCE):
            if node.op in (LEAF, CONSTANT):
                value = value_of(node)
                if (masked := below(node)) != node.inputs:
                    value = np.nonzero(value_of(made[masked[0]]))[masks[id(value)][1]]
                if value.dtype.kind == "f" and node in named:
                    low, high, more = (-1.5, 1.5, 0.3) if far else (0.9, 1.1, 0.0)
                    by = generator.uniform(low, high, value.shape)
                    by = value * by + more * generator.standard_normal(value.shape)
                    value = np.asarray(by, value.dtype)
                made[node] = constant(value)
            else:
                made[node] = node.op.apply(list(map(other, node.args)))
                if made[node].shape != node.shape or made[node].dtype != node.dtype:
                    return None
    except (AutodiffError, BindError, AttributeError, TypeError, ValueError, KeyError):
        return None
    return made


def _shortened(known: dict[Node, str], names: Names) -> dict[Node, str]:
    """`x` for `x#1` where no other value of that name is mentioned."""
    count = Counter(shown.partition("#")[0] for shown in known.values())
    return {
        node: base
        if count[base := shown.partition("#")[0]] == 1 and _is_current(node, shown, names)
        else shown
        for node, shown in known.items()
    }
