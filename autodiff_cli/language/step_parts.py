"""The parts of a loop's body: what chooses the inputs of a step, what computes with tensors, and
what looks at the results.

`before` runs as it is written, then the tensors are computed, then `after` runs as it is written;
a statement goes to `before` or `after` only when nobody can tell the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any

from . import syntax
from .expressions import Context, compile_expression, compile_truth
from .free_names import COMPREHENSIONS, read_by
from .innocent import chooses, draws, innocent, streams
from .scoping import assigned_names, target_names
from .values import Scope

CORE = (
    syntax.Assign, syntax.AugAssign, syntax.AnnAssign, syntax.ExprStmt, syntax.With, syntax.Pass,
    syntax.For, syntax.While, syntax.If, syntax.FunctionDef, syntax.Assert,
)  # fmt: skip
LEAVING = (syntax.Break, syntax.Continue, syntax.Return, syntax.Yield)
INSIDE = (syntax.FunctionDef, syntax.Lambda, *COMPREHENSIONS)

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


class Refused(Exception):
    """The body cannot be taken apart."""


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

        found = _Core(self)
        found.block([tree])
        self.core.append((place, compile_block([found.hoisted(tree)], self.context)))
        self.names |= found.names
        self.loaded |= found.loaded

    def _chosen(self, tree: syntax.Node) -> bool:
        """Whether the statement chooses inputs."""
        if not isinstance(tree, syntax.Assign) or not chooses(tree.value):
            return False
        reads = read_by(tree.value)
        written = {name for target in tree.targets for name in _plain_names(target)}
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
        self.numbers |= _counted(tree)
        self.grown |= _grown(tree)
        self.late.append(late)
        self.late_names |= written
        return True

    def _lifted(self, place: int, tree: syntax.Node) -> syntax.Node | None:
        """The statement with what it takes numbers from (`step(x).item()`) computed in the step;
        None where that makes no statement that only looks."""
        if not isinstance(tree, syntax.ExprStmt | syntax.AugAssign | syntax.Assign):
            return None
        lifted: list[tuple[str, syntax.Node]] = []
        made = _lift(tree, self.names, lifted, len(self.hidden))
        names = [name for name, _ in lifted]
        if not lifted or not streams(made, self.names | set(names)):
            return None
        for name, part in lifted:
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
            self.chosen_from |= read
        self.special |= written
        return True


class _Core:
    """The names that a statement of the step reads and assigns, in its order."""

    def __init__(self, parts: Parts):
        self.parts = parts
        self.names = set(parts.names)
        self.loaded: set[str] = set()
        self.sure = set(parts.names)

    def block(self, trees: list[syntax.Node]) -> None:
        for tree in trees:
            self._statement(tree)

    def _statement(self, tree: syntax.Node) -> None:
        if not isinstance(tree, CORE):
            raise Refused
        if isinstance(tree, syntax.For):
            if tree.orelse:
                raise Refused
            self._reads(tree.iter)
            self._writes(tree.target)
            self.block(tree.body)
        elif isinstance(tree, syntax.While | syntax.If):
            self._reads(tree.test)
            sure = set(self.sure)
            for body in syntax.bodies(tree):
                self.sure = set(sure)
                self.block(body)
            self.sure = sure
        elif isinstance(tree, syntax.With):
            for item in tree.items:
                self._reads(item.expr)
                if item.target is not None:
                    self._writes(item.target)
            self.block(tree.body)
        elif isinstance(tree, syntax.FunctionDef):
            self._reads(tree)
            self._assign({tree.name})
        elif isinstance(tree, syntax.Assign | syntax.AnnAssign):
            if tree.value is not None:
                self._reads(tree.value)
            for target in tree.targets if isinstance(tree, syntax.Assign) else [tree.target]:
                self._writes(target)
        elif isinstance(tree, syntax.AugAssign):
            self._reads(tree.value)
            self._reads(tree.target)
        else:
            self._reads(tree)

    def _reads(self, tree: syntax.Node) -> None:
        if any(isinstance(node, (syntax.NamedExpr, *LEAVING)) for node in _outside(tree)):
            raise Refused
        self.loaded |= read_by(tree) - self.sure

    def _writes(self, target: syntax.Node) -> None:
        if isinstance(target, syntax.Attribute | syntax.Subscript):
            for part in syntax.children(target):
                self._reads(part)
            return
        if any(not isinstance(node, syntax.Name) for node in _leaves(target)):
            raise Refused
        self._assign(set(target_names(target)))

    def _assign(self, names: set[str]) -> None:
        if names & (self.parts.context.global_names | self.parts.context.nonlocal_names):
            raise Refused
        self.names |= names
        self.sure |= names

    # -- indexing by what was chosen --------------------------------------------------------------

    def hoisted(self, tree: syntax.Node) -> syntax.Node:
        """The statement with `X[i:i + n]` chosen before it."""
        if not isinstance(tree, syntax.Assign | syntax.ExprStmt | syntax.With | syntax.AugAssign):
            return tree
        return self._replaced(tree)

    def _replaced(self, tree: Any) -> Any:
        if isinstance(tree, (*INSIDE, syntax.For, syntax.While)):
            return tree
        if isinstance(tree, syntax.Subscript) and self._choosing(tree):
            name = f"<{len(self.parts.hidden)}>"
            self.parts.hidden.append(name)
            self.parts.outer.add(name)
            self.loaded.add(name)
            value = compile_expression(tree, self.parts.context)

            def choose(scope: Scope) -> None:
                scope.names[name] = value(scope)

            self.parts.before.append(choose)
            self.parts.chosen_from |= read_by(tree)
            return syntax.Name(name, tree.span)
        made = tree
        for field in tree.fields:
            if isinstance(tree, syntax.NumList):
                break
            value = getattr(tree, field)
            if isinstance(value, list):
                new: Any = [self._replaced(x) if isinstance(x, syntax.Node) else x for x in value]
                changed = any(a is not b for a, b in zip(new, value, strict=True))
            elif isinstance(value, syntax.Node) and field not in ("target", "targets"):
                new = self._replaced(value)
                changed = new is not value
            else:
                continue
            if changed and field != "targets":
                made = copy(made) if made is tree else made
                setattr(made, field, new)
        return made

    def _choosing(self, tree: syntax.Subscript) -> bool:
        if not chooses(tree) or draws(tree):
            return False
        parts = self.parts
        read = read_by(tree)
        if read & (self.names | parts.late_names | parts.grown):
            return False
        chosen = read_by(tree.index) & parts.outer
        return bool(chosen) and all(parts.steady(name) for name in read - parts.outer)


def _outside(tree: syntax.Node) -> Iterator[syntax.Node]:
    """What is below a node, without the bodies of functions in it."""
    pending = [tree]
    while pending:
        node = pending.pop()
        if not isinstance(node, syntax.FunctionDef | syntax.Lambda):
            yield node
            pending.extend(syntax.children(node))


def _leaves(target: syntax.Node) -> Iterator[syntax.Node]:
    if isinstance(target, syntax.Tuple | syntax.List):
        for element in target.elements:
            yield from _leaves(element)
    else:
        yield target


def _plain_names(target: syntax.Node) -> list[str]:
    """The names of a target that is nothing else."""
    leaves = list(_leaves(target))
    return (
        [n.id for n in leaves if isinstance(n, syntax.Name)]
        if all(isinstance(n, syntax.Name) for n in leaves)
        else []
    )


def _lift(tree: Any, inner: set[str], lifted: list[tuple[str, syntax.Node]], first: int) -> Any:
    """A copy of a tree with names in place of what numbers are taken from."""
    if isinstance(tree, (syntax.Lambda, syntax.NumList, *COMPREHENSIONS)):
        return tree
    if isinstance(tree, syntax.Call) and isinstance(tree.func, syntax.Attribute):
        function = tree.func
        if function.attr == "item" and not innocent(function.value, inner, True):
            name = f"<{first + len(lifted)}>"
            lifted.append((name, function.value))
            made, of = copy(tree), copy(function)
            of.value = syntax.Name(name, function.value.span)
            made.func = of
            return made
    made = tree
    for field in tree.fields:
        value = getattr(tree, field)
        if isinstance(value, list):
            new: Any = [
                _lift(x, inner, lifted, first) if isinstance(x, syntax.Node) else x for x in value
            ]
            changed = any(a is not b for a, b in zip(new, value, strict=True))
        elif isinstance(value, syntax.Node):
            new = _lift(value, inner, lifted, first)
            changed = new is not value
        else:
            continue
        if changed:
            made = copy(made) if made is tree else made
            setattr(made, field, new)
    return made


def _grown(tree: syntax.Node) -> set[str]:
    """The names of containers to which a statement appends."""
    found: set[str] = set()
    for node in syntax.walk(tree):
        function = node.func if isinstance(node, syntax.Call) else None
        if isinstance(function, syntax.Attribute) and function.attr in ("append", "extend"):
            found |= read_by(function.value)
    return found


def _counted(tree: syntax.Node) -> set[str]:
    """The names to which something is added."""
    return {
        node.target.id
        for node in syntax.walk(tree)
        if isinstance(node, syntax.AugAssign) and isinstance(node.target, syntax.Name)
    }


__all__ = ["Late", "Parts", "Refused"]
