"""Loops that may be replayed, and what they keep from one run to the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ..syntax import tree as syntax
from ..syntax.free_names import read_by
from ..syntax.scoping import assigned_names
from ..values.providers import from_above
from ..values.values import Scope
from .expressions import Context

WORTH = 8  # steps; shorter loops run as they are

BREAK = object()
CONTINUE = object()

Assign = Callable[[Scope, Any], None]
Body = Callable[[Scope], Any]

# What a step that is replayed has none of: it leaves the step, or the scope, or hides what happens.
OUTSIDE = (
    syntax.Global, syntax.Nonlocal, syntax.Import, syntax.ImportFrom, syntax.Yield,
    syntax.ClassDef, syntax.Try,
)  # fmt: skip


class Repeated:
    """A `for` and what was found out about it: the names that its body reads, and those that it
    assigns; `kept` holds a recording of its step that no run is using, `entries` how often it
    began, `idle` how many runs in a row replayed nothing."""

    __slots__ = ("assigned", "entries", "idle", "kept", "read", "refused")

    def __init__(self, tree: syntax.For):
        self.read = {name for part in (tree.target, *tree.body) for name in read_by(part)}
        self.assigned = assigned_names([tree])[0]
        self.refused = False
        self.kept: list[Any] = []
        self.entries = self.idle = 0

    def run(
        self, scope: Scope, source: Any, items: Iterator[Any], assign: Assign, body: Body
    ) -> Any:
        """Run steps as long as that may be worth it; the signal of one that left the loop."""
        known = type(source) is range or type(source) is list or type(source) is tuple
        if known and len(source) < WORTH:
            self.entries += 1
            if len(source) < 3 or (self.entries < WORTH and not self.kept):
                return None
        return from_above("replay.replay_driver.replayed")(self, scope, source, items, assign, body)


def repeated(tree: syntax.For, context: Context) -> Repeated | None:
    """What a `for` needs to be replayed; None where it cannot be."""
    if tree.orelse or "_version" in tree.span.source.text:  # a replay counts no changes in place
        return None
    if any(isinstance(node, OUTSIDE) for node in syntax.walk(tree)):
        return None
    loop = Repeated(tree)
    outside = context.global_names | context.nonlocal_names
    return None if loop.assigned & outside else loop
