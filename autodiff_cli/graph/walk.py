"""From nodes to what they were made of: every walk through a graph is this one."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator
from operator import attrgetter
from typing import Any, TypeVar

from .node import Node

Item = TypeVar("Item")
SEQUENCE = attrgetter("seq")


def walk(
    roots: Iterable[Item], below: Callable[[Item], Iterable[Item]], *without: Iterable[Item]
) -> Iterator[Item]:
    """The roots and all that `below` leads to, each once; what is below an item is asked for after
    it was given. `without` are items to pass over, unless they are roots."""
    pending = list(dict.fromkeys(roots))
    seen = set(pending).union(*without)
    while pending:
        item = pending.pop()
        yield item
        for further in below(item):
            if further not in seen:
                seen.add(further)
                pending.append(further)


def bottom_up(
    root: Item, below: Callable[[Item], Iterable[Item]], known: Container[Item]
) -> Iterator[Item]:
    """Yield what `below` leads to, each item after all below it, the root last. The caller adds an
    item to `known` before it asks for the next one."""
    pending = [root]
    while pending:
        item = pending[-1]
        missing = [] if item in known else [part for part in below(item) if part not in known]
        pending.extend(missing)
        if not missing:
            if item not in known:
                yield item
            pending.pop()


def bodies(node: Any) -> tuple[Node, ...]:
    """The nodes that a composite stands for, one for each result; none for other nodes."""
    body = node.body
    return body if type(body) is tuple else () if body is None else (body,)


def newest_first(nodes: Iterable[Node]) -> list[Node]:
    """Nodes in the order in which backward comes to them."""
    return sorted(nodes, key=SEQUENCE, reverse=True)
