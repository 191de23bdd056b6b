"""Where a graph is cut: values that depend on a leaf while backward sees constants, hooks that
change what backward passes on, and gradients that are PyTorch's convention.

Invariant: a cut is something the program asked for (`detach`, `no_grad`, an integer cast, a hook,
`padding_idx`), never a wrong rule.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..graph.node import Node
from ..graph.walk import SEQUENCE, walk
from .replay import Replay, shows

DETACHING = ("detach", "data_alias")
OPAQUE_TO_CUTS = "custom_function"  # its own backward answers for what is inside


class Cut(NamedTuple):
    """A node where backward does something else than differentiate, and why in a few words;
    `effect` and `word` make the sentence "the gradient of `x` ..."."""

    node: Node
    reason: str
    word: str
    effect: str = "leaves out what is cut off by"


def find_cuts(replay: Replay, outputs: list[Node], leaf: Node) -> list[Cut]:
    """The cuts between a leaf and the outputs, in program order."""
    reached = set(replay.dependents(leaf)) - {leaf}
    ends = reached.union([leaf]).intersection(outputs)

    def is_cut(node: Node) -> bool:
        stops = not node.requires_grad or shows(node)
        return stops and node.outputs is None and node not in ends

    def needed(node: Node) -> Iterable[Node]:
        if is_cut(node):
            return ()
        parts = node.args[0] if node.op.key == OPAQUE_TO_CUTS else Replay.needed(node)
        return reached.intersection(parts)

    cut = sorted(filter(is_cut, walk(ends, needed)), key=SEQUENCE)
    return [Cut(node, *_reason(node)) for node in cut]


def hooked(node: Node) -> bool:
    """Whether a hook may change what backward passes on here."""
    return node.marks is not None and bool(node.marks.hooks)


def hook_cut(node: Node) -> Cut:
    """Describe a hook as a cut."""
    return Cut(node, "a hook changes the gradient here", "register_hook", "is changed by")


def convention(node: Node) -> Cut | None:
    """A node whose gradient is, on purpose, not its derivative: PyTorch defines it so."""
    if "convention" not in node.op.properties:
        return None
    return Cut(
        node, "PyTorch defines another gradient here", node.op.name, "is another by design in"
    )


def _reason(node: Node) -> tuple[str, str]:
    """Why backward stops at a node, and the word of the program that did it."""
    name = node.op.name
    if node.op.key in DETACHING:
        word = "data" if node.op.key == "data_alias" else name
        return "cuts the graph: backward sees a constant here", word
    if node.dtype.kind != "f":
        return f"gives {node.dtype.name}: backward sees a constant here", name
    return "computed under `no_grad`: backward sees a constant here", "no_grad"
