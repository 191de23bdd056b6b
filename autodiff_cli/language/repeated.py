"""Loops that may be replayed: which items they go through, and what they keep from one run to the
next.

Whether a loop can be replayed is looked at when it runs for the first time with enough items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from . import syntax
from .expressions import Context
from .values import Scope

if TYPE_CHECKING:
    from .replaying import Kept

WORTH = 8  # steps; shorter loops run as they are

BREAK = object()
CONTINUE = object()

Assign = Callable[[Scope, Any], None]
Body = Callable[[Scope], Any]


class Items:
    """The items of a loop, one of them looked at before its turn."""

    __slots__ = ("now", "rest", "there")

    def __init__(self, items: Iterable[Any]):
        self.rest = iter(items)
        self.there: list[Any] = []
        self.now: Any = None

    def left(self, count: int) -> bool:
        """Whether so many items are left, the present one included."""
        missing = count - len(self.there)
        if missing > 0:
            self.there.extend(islice(self.rest, missing))
        return len(self.there) >= count

    def take(self, count: int = 1) -> None:
        """The present item is done, or so many."""
        del self.there[:count]

    def remaining(self) -> Iterator[Any]:
        return chain(self.there, self.rest) if self.there else self.rest


class Repeated:
    """A `for` and what was found out about it; `kept` is a recording of its step."""

    __slots__ = ("context", "entries", "kept", "parts", "refused", "tree")

    def __init__(self, tree: syntax.For, context: Context):
        self.tree = tree
        self.context = context
        self.parts: Any = None
        self.refused = False
        self.kept: Kept | None = None
        self.entries = 0

    def run(self, scope: Scope, items: Any, assign: Assign, body: Body) -> tuple[Any, Any]:
        """Run what may be replayed; the items that are left, and the signal of a step that left
        the loop."""
        if self.refused:
            return items, None
        known = type(items) is range or type(items) is list or type(items) is tuple
        if known and len(items) < WORTH and not (self.kept is not None and len(items) > 1):
            self.entries += 1
            if len(items) < 2 or self.entries < WORTH:
                return items, None
        from .loops import attempt

        return attempt(self, scope, items, assign, body)


def repeated(tree: syntax.For, context: Context) -> Repeated | None:
    """What a `for` needs to be replayed; None where it cannot be."""
    counted = "_version" in tree.span.source.text  # a replay does not count changes in place
    return None if tree.orelse or counted else Repeated(tree, context)


__all__ = ["BREAK", "CONTINUE", "Assign", "Body", "Items", "Repeated", "repeated"]
