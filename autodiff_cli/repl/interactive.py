"""A program that grows: statements run one at a time in names of their own, and can be taken back.

The session is the list of statements that worked. What a pure statement did is undone by putting
the table of names back; what another did, by running the list again (decision 0006). Running leaves
the process as it was: the language's global state is put in place only meanwhile.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from ..autograd.rules import history
from ..autograd.tensor import Tensor
from ..engine.evaluate import evaluate
from ..errors import fault
from ..graph.dtypes import DTYPES, FLOAT32, FLOAT64
from ..graph.node import Node as GraphNode
from ..graph.op import LEAF
from ..graph.state import STATE
from ..language.errors.exhaustion import Exhaustion
from ..language.program.report import Options
from ..language.program.running import Program
from ..language.runtime.expressions import Context, compile_expression
from ..language.runtime.names import builtin
from ..language.runtime.statements import compile_block
from ..language.runtime.unknown_names import unknown_name
from ..language.syntax import tree as syntax
from ..language.syntax.free_names import names_read
from ..language.syntax.parser import parse
from ..language.syntax.scoping import assigned_names
from ..language.values.housekeeping import contents
from ..language.values.values import Scope
from ..source import Source
from .entries import Entry, Outcome, bound_names, differentiates, imports
from .interrupts import interruptible, uninterrupted
from .purity import Definitions, Purity
from .session_state import entered, fresh_state

_MISSING = object()


class Replaced(NamedTuple):
    """A session that another took the place of, which began with so many entries."""

    entries: list[Entry]
    python: bool
    kept: int


class Interactive(Program):
    """The session: names, the statements that made them, and those taken back."""

    def __init__(self, options: Options, write: Callable[[str], Any]):
        super().__init__(Source("", "<session>"), options)
        self.output = write
        self.entries: list[Entry] = []
        self.definitions: Definitions = {}  # functions that were entered, by the place of the name
        self.undone: list[Entry] = []
        self.replaced: list[Replaced] = []
        self.muted = False
        self.python = False
        self.announce: Callable[[], None] | None = None
        self.differentiated_node: GraphNode | None = None
        self.implicit: list[Any] = []  # leaves that hold a gradient nobody asked backward() for
        self.world = fresh_state(options, self._default_dtype())

    # -- running ------------------------------------------------------------------------------

    def run_text(self, source: Source, folder: Path | None = None) -> Outcome:
        """Run what was entered; on any failure or interrupt the session is as it was."""
        trees = parse(source).body
        if not trees:
            return Outcome()
        self._choose_dialect(trees)
        entry = self._entry(source, trees, folder)
        start = time.perf_counter()
        try:
            with self._entered(entry), interruptible():
                self._refuse_unknown(trees[0])
                outcome = self._run(entry)
                entry.seconds = time.perf_counter() - start
                entry.spent += entry.seconds
        except BaseException:
            self._forget(entry)
            raise
        self.entries.append(entry)
        if not entry.looks:
            self.undone.clear()
        return outcome

    def _entry(self, source: Source, trees: list[syntax.Node], folder: Path | None) -> Entry:
        names, known = self.scope.names, self.definitions
        explicit = differentiates(trees) or self.explicit
        with self.dialect():
            gradients = not self._hooks(explicit)
            pure = Purity(names, known, gradients=gradients).of_statements(trees)
            looks = all(isinstance(tree, syntax.ExprStmt) for tree in trees) and (
                pure or Purity(names, known).of_statements(trees)
            )
        entry = Entry(source, trees, folder, pure, looks, explicit, {}, {}, self.spent)
        known.update((tree.name_span, tree) for tree in entry.functions)
        self._note(entry)
        return entry

    def _choose_dialect(self, trees: list[syntax.Node]) -> None:
        """The first statements decide: with an import it is a Python session."""
        if not self.entries:
            self.python = imports(trees)
            self.world["python"] = self.python
            self.world["default_dtype"] = self._default_dtype()

    def _default_dtype(self) -> Any:
        if self.options.dtype is not None:
            return DTYPES[self.options.dtype]
        return FLOAT32 if self.python else FLOAT64

    def _run(self, entry: Entry) -> Outcome:
        outcome = Outcome()
        for tree in entry.trees:
            STATE.shown = None
            compile_block([tree], Context())(self.scope)
            self._settle(tree, entry)
            for name in bound_names(tree):
                if name not in outcome.assigned:
                    outcome.assigned.append(name)
        last = entry.trees[-1]
        if isinstance(last, syntax.ExprStmt):
            outcome.value, outcome.has_value = STATE.shown, STATE.shown is not None
            outcome.assigned.clear()
        outcome.warnings = list(STATE.warnings)
        return outcome

    def _settle(self, tree: syntax.Node, entry: Entry) -> None:
        """Compute what the names hold, so that what is wrong with a value is its statement's."""
        names = self.scope.names
        last = names.pop("_", None)  # it comes last, so that a name of its own is found before
        shown = STATE.shown if isinstance(tree, syntax.ExprStmt) else None
        last = last if shown is None else shown
        if last is not None:
            names["_"] = last
        nodes: list[GraphNode] = []
        changed = [names.get(name) for name in entry.found] if entry.pure else names.values()
        for held in changed:
            for part in (held,) if isinstance(held, Tensor) else contents(held):
                if isinstance(part, Tensor):
                    nodes.append(part.looked_at)
                    if part.grad is not None:
                        nodes.append(part.grad.node)
        evaluate([node for node in nodes if node.value is None])

    def _refuse_unknown(self, tree: syntax.Node) -> None:
        """A slip in a name of the first statement is found before anything ran, so that nothing
        has to be undone. A call itself knows better which functions have such a name."""
        called = {id(n.func) for n in syntax.walk(tree) if isinstance(n, syntax.Call)}
        for name in names_read(tree):
            known = name.id in self.scope.names or builtin(name.id) is not None
            if not known and id(name) not in called:
                raise unknown_name(name.id, name.span, self.scope)

    @contextmanager
    def _entered(self, entry: Entry | None = None) -> Iterator[None]:
        """The language's state is this session's meanwhile."""
        explicit = entry is not None and entry.explicit
        with entered(self.world, self._write, self._hooks(explicit)):
            files = STATE.files
            files.folder = Path.cwd() if entry is None or entry.folder is None else entry.folder
            files.kept = None if entry is None else entry.files
            try:
                with Exhaustion("this"):
                    yield
            finally:
                files.kept = None
                self._drop_gradients()

    def _write(self, piece: str) -> None:
        if not self.muted:
            self.output(piece)

    # -- gradients ----------------------------------------------------------------------------

    @property
    def explicit(self) -> bool:
        """Whether the session differentiates by itself: it calls backward()."""
        return bool(self.entries) and self.entries[-1].explicit

    @property
    def spent(self) -> float:
        """Seconds that the statements took."""
        return self.entries[-1].spent if self.entries else 0.0

    def _hooks(self, explicit: bool = False) -> list[Callable[[], None]]:
        """What reading `.grad` does; nothing where backward() is called."""
        return [] if explicit or self.python or self.explicit else [self._grad_read]

    def _grad_read(self) -> None:
        """`A.grad` is the gradient of the loss there is now, as in a file that ends here. It is
        there for this entry only: a later one may have another loss."""
        found = self._choose_loss()
        if found is None or found[1].node is self.differentiated_node:
            return
        self._drop_gradients()
        self.differentiated = False
        self.differentiated_node = found[1].node
        reached = (n.args[0] for n in history(found[1].node) if n.op is LEAF)
        leaves = [(leaf, leaf.grad) for leaf in reached if leaf is not None]
        self.differentiate()
        self.implicit = [leaf for leaf, held in leaves if leaf.grad is not held]

    def _drop_gradients(self) -> None:
        for leaf in self.implicit:
            leaf.grad = None
        self.implicit = []
        self.differentiated_node = None

    def _warn_of_unconnected(self) -> None:
        """Most leaves of a session have nothing to do with the loss of the moment."""

    def default_objective(self) -> Tensor | None:
        """What gradients are of when nobody says: `loss`, else the last number computed."""
        found = self._choose_loss()
        return None if found is None else found[1]

    def name_of(self, tensor: Tensor | None) -> str | None:
        """The name that a tensor has in the session; None without one."""
        return next((n for n, v in self.scope.names.items() if v is tensor and n != "_"), None)

    # -- taking back --------------------------------------------------------------------------

    def _note(self, entry: Entry) -> None:
        """Keep what an entry may replace, in case it is undone."""
        entry.world = self.world.copy()
        if entry.pure:
            names = self.scope.names
            bound = [*assigned_names(entry.trees)[0], "_"]
            entry.found = {name: names.get(name, _MISSING) for name in bound}

    def _put_back(self, entry: Entry) -> None:
        """Undo a pure entry, the last one."""
        names = self.scope.names
        for name, value in entry.found.items():
            if value is _MISSING:
                names.pop(name, None)
            else:
                names[name] = value
        self.world = entry.world.copy()

    def _forget(self, entry: Entry) -> None:
        """Undo what a statement that failed may have done."""
        if entry.pure:
            self._put_back(entry)
        else:
            self.rebuild()

    def rebuild(self) -> None:
        """Run the list of statements again, from nothing; it worked before, so it works."""
        if self.announce is not None:
            self.announce()
        entries = self.entries
        self.scope = Scope()
        self.world = fresh_state(self.options, self._default_dtype(), self.python)
        self.entries = []
        with uninterrupted():
            for entry in entries:
                self._again(entry)

    def _again(self, entry: Entry) -> None:
        """Run an entry without its output, and put it at the end of the list."""
        self._note(entry)
        self.muted = True
        try:
            with self._entered(entry):
                self._run(entry)
        finally:
            self.muted = False
        self.entries.append(entry)

    def again(self, source: Source, folder: Path | None) -> None:
        """Run what was entered in an earlier session."""
        trees = parse(source).body
        self._choose_dialect(trees)
        with uninterrupted():
            self._again(self._entry(source, trees, folder))

    def undo(self, count: int = 1) -> list[Entry]:
        """Take back the last entries that changed something; the last first."""
        at = len(self.entries)
        changes = 0
        before = self.replaced[-1].kept if self.replaced else 0
        while at > before and changes < count:
            at -= 1
            changes += not self.entries[at].looks
        gone = self.entries[at:]
        if not changes:
            return []
        del self.entries[at:]
        if all(entry.pure for entry in gone):
            for entry in reversed(gone):
                self._put_back(entry)
        else:
            self.rebuild()
        self.undone.extend(reversed(gone))
        return [entry for entry in reversed(gone) if not entry.looks]

    def redo(self, count: int) -> list[Entry]:
        """Run again what was taken back, with what was only shown in between."""
        done: list[Entry] = []
        with uninterrupted():
            while self.undone and len(done) < count:
                entry = self.undone.pop()
                self._again(entry)
                if not entry.looks:
                    done.append(entry)
        return done

    def drop_last(self) -> None:
        """Forget the last entry as if it had failed."""
        self._forget(self.entries.pop())

    def put_back(self) -> bool:
        """Undo what replaced the session, when nothing came after it; whether something did."""
        if not self.replaced or len(self.entries) > self.replaced[-1].kept:
            return False
        self.entries, self.python, _ = self.replaced.pop()
        self.undone = []
        self.rebuild()
        return True

    def reset(self) -> None:
        """An empty session; `put_back` brings the old one back."""
        if self.entries:
            self.replaced.append(Replaced(self.entries, self.python, 0))
        self.entries, self.undone = [], []
        self.python = False
        self.rebuild()

    def replace(self, sources: list[tuple[Source, Path | None]]) -> None:
        """Another program instead of this one; the old one stays when the new one fails."""
        before = self.entries, self.undone, self.python
        earlier = list(self.replaced)
        self.reset()
        try:
            for source, folder in sources:
                self.run_text(source, folder)
        except BaseException:
            self.entries, self.undone, self.python = before
            self.replaced = earlier
            self.rebuild()
            raise
        if before[0]:
            self.replaced[-1] = self.replaced[-1]._replace(kept=len(self.entries))

    # -- looking ------------------------------------------------------------------------------

    def parse_value(self, text: str) -> syntax.Node:
        """The tree of one expression; E102 when the text is no expression."""
        trees = parse(Source(text, "<repl>")).body
        if len(trees) != 1 or not isinstance(trees[0], syntax.ExprStmt):
            raise fault("E102 not-expression", text.strip()[:60])
        return trees[0].value

    def is_harmless(self, tree: syntax.Node, loops: bool = True) -> bool:
        """Whether evaluating an expression changes nothing."""
        with self._entered():
            purity = Purity(
                self.scope.names, self.definitions, loops=loops, gradients=not self._hooks()
            )
            return purity.of_expression(tree)

    def look(self, tree: syntax.Node, then: Callable[[Any], Any]) -> Any:
        """What `then` makes of the value of a harmless expression; the session stays as it is."""
        before = self.world.copy()
        try:
            with self._entered(), interruptible():
                return then(compile_expression(tree, Context())(self.scope))
        finally:
            self.world = before

    @contextmanager
    def dialect(self) -> Iterator[None]:
        """Names mean what they mean in this session."""
        before, STATE.python = STATE.python, self.python
        try:
            yield
        finally:
            STATE.python = before

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Work with the session's values that keeps no state: gradients, descriptions."""
        before = self.world.copy()
        try:
            with self._entered(), interruptible():
                yield
        finally:
            self.world = before
