"""A program that runs under observation: what was differentiated, what its names meant over time,
and which numbers it took out of the graph.

Invariant: without `changes` the program computes what it would alone.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from ..autograd.tensor import Tensor
from ..checks.watched import Watched
from ..errors import AutodiffError, fail, fault
from ..graph.node import Node
from ..graph.state import STATE
from ..language.program.report import Options
from ..language.program.running import calls_backward
from ..language.program.variables import named_tensors
from ..language.syntax import tree as syntax
from ..language.syntax.parser import parse
from ..language.values.dialect import kind_of
from ..language.values.user_classes import Object
from ..source import Source, Span
from ..suggest import did_you_mean, named, suggest, unknown

MOST_BINDINGS = 100_000
MOST_PASSES = 64
MOST_EXITS = 10_000


Place = tuple[int, int] | None  # from, to; None where no text is known


class Exit(NamedTuple):
    """Numbers that left the graph: of which node, where, and what the program got."""

    node: Node
    span: Span | None
    value: Any

    @property
    def place(self) -> Place:
        """Where it happens, in a form that is the same in every run."""
        return None if self.span is None else (self.span.start, self.span.end)


class Binding(NamedTuple):
    """A name that was made to mean a tensor, by the statement at `span`."""

    name: str
    span: Span
    tensor: Tensor
    node: Node


class Recorder(Watched):
    """One run. `changes` are places of exits whose numbers are changed on their way out."""

    def __init__(self, source: Source, options: Options, changes: frozenset[Place] = frozenset()):
        super().__init__(source, replace(options, write=None), trace=True)
        self.changes = changes
        self.bindings: deque[Binding] = deque(maxlen=MOST_BINDINGS)
        self.exits: deque[Exit] = deque(maxlen=MOST_EXITS)
        self.seeds: deque[list[tuple[Node, Node]]] = deque(maxlen=MOST_PASSES)
        self.attempted: list[Node] = []
        self.failure: AutodiffError | None = None
        self.steps = 0

    # -- what observers call --------------------------------------------------------------------

    def gave(self, statement: syntax.Node, name: str, value: Any) -> None:
        """A statement at module level gave a name a value."""
        own = self.scope.names.get(name) is value  # not of a name of a function
        if own and isinstance(value, Tensor):
            self.bindings.append(Binding(name, statement.span, value, value.node))

    def _differentiated(self, seeds: list[tuple[Node, Node]]) -> None:
        self.backwards += 1
        self.seeds.append(list(seeds))

    def _attempt(self, tensors: list[Tensor]) -> None:
        self.attempted = [tensor.node for tensor in tensors]

    def _read(self, node: Node, value: Any) -> Any:
        exit = Exit(node, STATE.span, value)
        self.exits.append(exit)
        return changed(value) if exit.place in self.changes else value

    # -- running --------------------------------------------------------------------------------

    def _implicit_allowed(self, tree: syntax.Module) -> bool:
        """Who asks for a gradient wants one, also of a program that leaves it out."""
        return self.options.backward and not calls_backward(tree)

    def run(self) -> None:
        """Run to the end, or to the first failure after something was differentiated."""
        STATE.attempts.append(self._attempt)
        STATE.readers.append(self._read)
        try:
            super().run()
        except AutodiffError as error:
            tried = self.seeds or self.attempted or self.loss is not None
            if error.code[1] not in "234" or not tried:
                raise
            self.failure = error
        finally:
            self.steps = STATE.steps
            STATE.attempts.clear()
            STATE.readers.clear()
            STATE.grad_read.clear()
            STATE.span = None
            STATE.write = lambda piece: None

    # -- afterwards -----------------------------------------------------------------------------

    @property
    def roots(self) -> list[Node]:
        """What was differentiated, or was to be; the last one first."""
        found = [node for seeds in reversed(self.seeds) for node, _ in seeds]
        if self.failure is not None and self.failure.code == "E402":
            found = [*self.attempted, *found]
        if not found and self.loss is not None:
            found = [self.loss.node]
        if not found:
            found = self._last_number()
        return list(dict.fromkeys(found))

    def _last_number(self) -> list[Node]:
        """The result of a program that differentiates nothing: `loss`, else its last number."""
        named = self.scope.names.get("loss")
        if isinstance(named, Tensor):
            return [named.node]
        numbers = [b.node for b in self.bindings if b.node.numel == 1 and b.node.inputs]
        return numbers[-1:]

    def of(self, name: str) -> list[Binding]:
        """What a name has meant, in order."""
        return [binding for binding in self.bindings if binding.name == name]


def changed(value: Any) -> Any:
    """Other numbers in the form of `value`."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, list):
        return [changed(part) for part in value]
    return value * 1.37 + 1.13 if isinstance(value, float) else value


# -- names ----------------------------------------------------------------------------------------


def lookup(program: Recorder, name: str) -> tuple[str, Any]:
    """How a name is spelled and what it means when the program has ended: `layers.0.weight`."""
    tensors = named_tensors(program)
    if not name.isidentifier() and "*" not in name:
        for found in named(name, tensors):
            return found, tensors[found]
        name = re.sub(r"\.(\d+)", r"[\1]", name)
    tree = parse(Source(name, "<name>"))
    expression = tree.body[0] if len(tree.body) == 1 else None
    if not isinstance(expression, syntax.ExprStmt) or not _is_path(expression.value):
        raise fault("E201 not-name", name)
    if isinstance(expression.value, syntax.Name):
        value = _named(program, name)
    else:
        try:
            value = program.evaluate_text(name, "<name>")
        except AutodiffError as error:
            helps = tuple(did_you_mean(suggest(name, tensors, 1))) or error.diagnostic.helps
            raise error.amend(span=None, labels=(), helps=helps) from None
    _refuse_several(program, name, value)
    return name, value


def _refuse_several(program: Recorder, name: str, value: Any) -> None:
    """E208 for modules and containers: only their tensors have gradients."""
    if not isinstance(value, list | tuple | dict) and not hasattr(value, "parameters"):
        return
    inside = [n for n in named_tensors(program) if n.startswith((f"{name}.", f"{name}["))]
    raise fail(
        "E208",
        f"`{name}` is {kind_of(value)}: gradients belong to tensors",
        help=f"ask about one of {', '.join(f'`{n}`' for n in inside[:4])}"
        if inside
        else "ask about a tensor",
    )


def _is_path(tree: syntax.Node) -> bool:
    while not isinstance(tree, syntax.Name):
        if isinstance(tree, syntax.Attribute):
            if tree.attr in ("grad", "data", "T", "mT", "H"):
                return False
        elif not isinstance(tree, syntax.Subscript) or not isinstance(tree.index, syntax.Constant):
            return False
        tree = tree.value
    return True


def _named(program: Recorder, name: str) -> Any:
    names: Mapping[str, Any] = program.scope.names
    if name in names:
        return names[name]
    tensors = [n for n, value in names.items() if isinstance(value, Tensor | Object)]
    if program.failure is not None and not suggest(name, tensors, 1):
        raise program.failure
    raise unknown(f"the program has no name `{name}`", name, tensors)
