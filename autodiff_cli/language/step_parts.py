"""The parts of a loop's body: what chooses the inputs of a step, what computes with tensors, and
what looks at the results.

`before` runs as it is written, then the tensors are computed, then `after` runs as it is written;
a statement goes to `before` or `after` only when nobody can tell the difference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import syntax
from .expressions import Context, compile_expression, compile_truth
from .free_names import read_by
from .innocent import chooses, draws, innocent, streams
from .scoping import assigned_names, target_names
from .step_names import Refused, StepNames
from .step_trees import counted, grown, lifted, plain_names, rewritten
from .values import Scope

HOISTED = (syntax.Assign, syntax.ExprStmt, syntax.With, syntax.AugAssign)
Run = Callable[[Scope], Any]


class Late:
    """A statement after the step: `run`, the names of the step's results that it `reads`, all
    `others`, whether it `changes` the next step, and whether the step is `followed` by more of it.
    With a `body`, `run` is a test:
    where it holds the step runs as it is written, or, for the `last` one, is made as it is written
    before the body runs."""

    __slots__ = ("body", "changes", "followed", "last", "others", "place", "reads", "run")

    def __init__(self, place: int, run: Run, reads: set[str], others: set[str]):
        self.place = place
        self.run = run
        self.reads = sorted(reads)
        self.others = others
        self.followed = False
        self.changes = False
        self.body: Run | None = None
        self.last = False


class Parts:
    """The parts of one body. `loaded` are names that the step reads from outside of the body,
    `names` those it assigns, `given` those of `before` and `after` that it reads."""

    def __init__(
        self,
        tree: syntax.For,
        context: Context,
        schedule: Callable[[str], bool],
        steady: Callable[[str], bool],
    ):
        self.context = context
        self.schedule = schedule  # whether a name means a schedule of learning rates
        self.steady = steady  # whether a name means data, not something that is trained
        self.grown: set[str] = set()  # names of lists to which something is appended
        self.outer = set(target_names(tree.target))
        self.names: set[str] = set()
        self.loaded: set[str] = set()
        self.given: set[str] = set()
        self.before: list[Run] = []
        self.chosen_from: set[str] = set()
        self.draws = False
        self.early: list[Run] = []
        self.first_early = len(tree.body)
        self.core: list[tuple[int, Run]] = []
        self.late: list[Late] = []
        self.late_names: set[str] = set()
        self.hidden: list[str] = []
        self.numbers: set[str] = set()  # names that must mean numbers
        self.special: set[str] = set()  # assigned where a test holds
        self.schedules: set[str] = set()
        for place, statement in enumerate(tree.body):
            self._place(place, statement)
        mine = self.outer | self.late_names
        if self.loaded & self.names or mine & self.names or self.outer & self.late_names:
            raise Refused
        self.given |= self.loaded & mine
        self.loaded -= mine
        if self.special & (self.names | self.loaded | mine) - self.names:
            raise Refused
        for at, late in enumerate(self.late):
            late.followed = any(place > late.place for place, _ in self.core)
            if late.last and (late.followed or at + 1 < len(self.late)):
                raise Refused
            if late.changes and late.followed:
                raise Refused

        # a test before the end of the step may leave it, or look at what the step before it left
        self.looks_back = any(place > self.first_early for place, _ in self.core)
        self.alone = not (self.before or self.early or self.late) and isinstance(
            tree.target, syntax.Name
        )

    # -- where a statement goes ------------------------------------------------------------------

    def _place(self, place: int, tree: syntax.Node) -> None:
        reads = read_by(tree)
        if self._chosen(tree) or self._after(place, tree, reads):
            return
        if self._special(place, tree, reads):
            return
        self._core(place, tree)

    def _core(self, place: int, tree: syntax.Node) -> None:
        if read_by(tree) & (self.late_names | self.grown):
            raise Refused
        from .statements import compile_block

        found = StepNames(self.names, self.context.global_names | self.context.nonlocal_names)
        found.block([tree])
        tree, hoisted = self._hoisted(tree)
        found.loaded |= hoisted
        self.core.append((place, compile_block([tree], self.context)))
        self.names |= found.names
        self.loaded |= found.loaded

    def _chosen(self, tree: syntax.Node) -> bool:
        """Whether the statement chooses inputs."""
        if not isinstance(tree, syntax.Assign) or not chooses(tree.value):
            return False
        reads = read_by(tree.value)
        written = {name for target in tree.targets for name in plain_names(target)}
        if not written or reads & (self.names | self.late_names):
            return False
        if not (reads & self.outer or draws(tree.value)) or reads & (written | self.grown):
            return False
        if not all(self.steady(name) for name in reads - self.outer):
            return False
        if written & (self.names | self.loaded | self.late_names | self._read_late()):
            raise Refused
        if written & self.chosen_from - self.outer:
            raise Refused  # what was chosen before comes from the step before
        self._choose(tree, reads)
        self.outer |= written
        return True

    def _choose(self, tree: syntax.Node, reads: set[str]) -> None:
        from .statements import compile_block

        self.before.append(compile_block([tree], self.context))
        self.chosen_from |= reads
        self.draws = self.draws or draws(tree.value)  # type: ignore[attr-defined]  # Assign

    def _read_late(self) -> set[str]:
        return {name for late in self.late for name in late.others}

    def _after(self, place: int, tree: Any, reads: set[str]) -> bool:
        """Whether the statement only looks at results."""
        scheduled = self._scheduled(tree)
        if not scheduled and not streams(tree, self.names):
            tree = self._lifted(place, tree)
            if tree is None:
                return False
            reads = read_by(tree)
        written, outer = assigned_names([tree])
        if outer or written & (self.names | self.outer):
            raise Refused
        from .statements import compile_block

        run = compile_block([tree], self.context)
        late = Late(place, run, reads & self.names, reads - self.names)
        late.changes = scheduled
        self.numbers |= counted(tree)
        self.grown |= grown(tree)
        self.late.append(late)
        self.late_names |= written
        return True

    def _lifted(self, place: int, tree: syntax.Node) -> syntax.Node | None:
        """The statement with what it takes numbers from (`step(x).item()`) computed in the step;
        None where that makes no statement that only looks."""
        if not isinstance(tree, syntax.ExprStmt | syntax.AugAssign | syntax.Assign):
            return None
        made, found = lifted(tree, self.names, len(self.hidden))
        if not found or not streams(made, self.names | {name for name, _ in found}):
            return None
        for name, part in found:
            self.hidden.append(name)
            self._core(place, syntax.Assign([syntax.Name(name, part.span)], part, part.span))
        return made

    def _scheduled(self, tree: syntax.Node) -> bool:
        call = tree.value if isinstance(tree, syntax.ExprStmt) else None
        if not isinstance(call, syntax.Call) or not isinstance(call.func, syntax.Attribute):
            return False
        owner = call.func.value
        if call.func.attr != "step" or not isinstance(owner, syntax.Name):
            return False
        given = [*call.args, *call.keywords]
        if owner.id in self.names | self.outer or not self.schedule(owner.id):
            return False
        if not all(innocent(part, self.names) for part in given):
            return False
        self.schedules.add(owner.id)
        return True

    def _special(self, place: int, tree: syntax.Node, reads: set[str]) -> bool:
        """Whether steps for which a test holds run as they are written."""
        if not isinstance(tree, syntax.If) or tree.orelse:
            return False
        if not innocent(tree.test, self.names, True):
            return False
        read = read_by(tree.test)
        mine = self.late_names | self.grown
        if not read & (self.names | self.outer | mine):
            return False
        written, outer = assigned_names(tree.body)
        if outer:
            raise Refused
        test = compile_truth(tree.test, self.context)
        if read & (self.names | mine):
            from .statements import compile_block

            late = Late(place, test, read & self.names, read - self.names)
            late.body = compile_block(tree.body, self.context)
            late.last = bool(read & mine)
            self.late.append(late)
        else:
            self.early.append(test)
            self.first_early = min(self.first_early, place)
            self.chosen_from |= read
        self.special |= written
        return True

    # -- indexing by what was chosen --------------------------------------------------------------

    def _hoisted(self, tree: syntax.Node) -> tuple[syntax.Node, set[str]]:
        """The statement with `X[i:i + n]` chosen before it, and the names of what was."""
        names: set[str] = set()

        def replace(node: syntax.Node) -> syntax.Node | None:
            if isinstance(node, syntax.FunctionDef | syntax.For | syntax.While):
                return node
            if not isinstance(node, syntax.Subscript) or not self._choosing(node):
                return None
            name = f"<{len(self.hidden)}>"
            names.add(name)
            self.hidden.append(name)
            self.outer.add(name)
            self.before.append(_setting(name, compile_expression(node, self.context)))
            self.chosen_from |= read_by(node)
            return syntax.Name(name, node.span)

        return (rewritten(tree, replace), names) if isinstance(tree, HOISTED) else (tree, names)

    def _choosing(self, tree: syntax.Subscript) -> bool:
        if not chooses(tree) or draws(tree):
            return False
        read = read_by(tree)
        if read & (self.names | self.late_names | self.grown):
            return False
        chosen = read_by(tree.index) & self.outer
        return bool(chosen) and all(self.steady(name) for name in read - self.outer)


def _setting(name: str, value: Run) -> Run:
    def choose(scope: Scope) -> None:
        scope.names[name] = value(scope)

    return choose


__all__ = ["Late", "Parts", "Refused"]
