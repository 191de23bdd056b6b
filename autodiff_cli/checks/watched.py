"""A program that runs under observation: what its statements gave, which assertions failed, what
was differentiated.

Invariant: the program behaves as it would alone, except that a failed assertion does not end it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..autograd.tensor import Tensor
from ..errors import AutodiffError
from ..graph.node import Node
from ..graph.state import STATE
from ..language.program.report import Options
from ..language.program.running import Program, redefined
from ..language.runtime.expressions import Context
from ..language.runtime.statements import STATEMENTS
from ..language.syntax import tree as syntax
from ..language.values.values import Scope
from ..source import Source, Span


class Guarded(syntax.Node):
    """An assertion whose failure is told to `watcher`."""

    __slots__ = ("statement", "watcher")

    def __init__(self, statement: syntax.Node, watcher: Any, span: Span):
        self.statement = statement
        self.watcher = watcher
        self.span = span


class Probe(Guarded):
    """Stands after a statement and tells `watcher` what it gave."""

    __slots__ = ()
    fields = ()  # the statement itself stands before it


def _compile_probe(tree: Probe, context: Context) -> Any:
    statement, watcher = tree.statement, tree.watcher
    names = list(target_names(statement))
    bare = isinstance(statement, syntax.ExprStmt)

    def run(scope: Scope) -> Any:
        if bare:
            watcher.gave(statement, "", STATE.shown)
        for name in names:
            at: Scope | None = scope
            while at is not None and name not in at.names:
                at = at.outer
            if at is not None:
                watcher.gave(statement, name, at.names[name])
        return None

    return run


def _compile_guarded(tree: Guarded, context: Context) -> Any:
    inner = STATEMENTS[syntax.Assert](tree.statement, context)
    statement, watcher = tree.statement, tree.watcher

    def run(scope: Scope) -> Any:
        try:
            inner(scope)
        except AutodiffError as error:
            if error.code != "E601":
                raise
            watcher.asserted(statement, error)
        else:
            watcher.asserted(statement, None)
        return None

    return run


STATEMENTS[Probe] = _compile_probe
STATEMENTS[Guarded] = _compile_guarded


def target_names(statement: syntax.Node) -> Iterator[str]:
    """The names that a statement assigns, in order."""
    if isinstance(statement, syntax.Assign):
        pending = list(reversed(statement.targets))
    elif isinstance(statement, syntax.AugAssign | syntax.AnnAssign):
        pending = [statement.target]
    else:
        pending = []
    while pending:
        target = pending.pop()
        if isinstance(target, syntax.Name):
            yield target.id
        elif isinstance(target, syntax.Tuple | syntax.List):
            pending.extend(reversed(target.elements))
        elif isinstance(target, syntax.Subscript | syntax.Attribute | syntax.Starred):
            pending.append(target.value)


class Watched(Program):
    """One run. `values` are what watched statements gave last; `history` every assignment in
    order when `trace` is set; `failures` the assertions; `passes` the first and the last backward.
    """

    def __init__(
        self,
        source: Source,
        options: Options,
        *,
        lines: frozenset[int] = frozenset(),
        trace: bool = False,
        arrays: dict[str, np.ndarray] | None = None,
    ):
        super().__init__(source, options)
        self.lines = lines
        self.trace = trace
        self.arrays = arrays or {}
        self.values: dict[int, Any] = {}
        self.history: list[tuple[str, Span, Node]] = []
        self.assertions: dict[int, AutodiffError | None] = {}
        self.passes: list[list[tuple[Node, Node]]] = []
        self.backwards = 0
        self.reads: list[Span] | None = None

    # -- what observers call --------------------------------------------------------------------

    def gave(self, statement: syntax.Node, name: str, value: Any) -> None:
        """A watched statement gave a value."""
        self.values[statement.span.end_line] = value
        if self.trace and name and type(value) is Tensor and len(self.history) < 100_000:
            self.history.append((name, statement.span, value.node))

    def asserted(self, statement: syntax.Node, error: AutodiffError | None) -> None:
        """An assertion held or failed; of several runs of it the first failure counts."""
        line = statement.span.line
        if self.assertions.get(line) is None:
            self.assertions[line] = error

    def _differentiated(self, seeds: list[tuple[Node, Node]]) -> None:
        self.backwards += 1
        del self.passes[1:]
        self.passes.append(list(seeds))

    # -- running --------------------------------------------------------------------------------

    def statements(self, tree: syntax.Module) -> list[syntax.Node]:
        """The module's statements with probes between them; nested blocks are changed in place."""
        if not (self.trace or self.lines or "assert" in self.source.text):
            return tree.body
        for statement in list(syntax.within(tree.body, (), syntax.below)):
            for block in syntax.bodies(statement):
                block[:] = self._watched(block)
        return self._watched(tree.body)

    def _watched(self, block: list[syntax.Node]) -> list[syntax.Node]:
        found: list[syntax.Node] = []
        for statement in block:
            span = statement.span
            if isinstance(statement, syntax.Assert):
                found.append(Guarded(statement, self, span))
                continue
            found.append(statement)
            if self.trace or span.end_line in self.lines:
                found.append(Probe(statement, self, span))
        return found

    def _prepare_defines(self, tree: syntax.Module) -> None:
        super()._prepare_defines(tree)
        for name, array in self.arrays.items():
            STATE.overrides[name] = lambda original, array=array: redefined(original, array)

    def run(self) -> None:
        """Run to the end under observation; raises AutodiffError."""
        self.observed(super().run)

    def observed(self, run: Callable[[], None]) -> None:
        """Do it, and keep what is differentiated."""
        STATE.observers.append(self._differentiated)
        try:
            run()
        finally:
            STATE.observers.clear()
