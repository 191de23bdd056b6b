"""Where a graph is cut: values that depend on a leaf while backward sees constants, hooks that
change what backward passes on, and gradients that are PyTorch's convention.

Invariant: a cut is something the program asked for (`detach`, `no_grad`, an integer cast, a hook,
`padding_idx`), never a wrong rule.
"""

from __future__ import annotations

from typing import NamedTuple

from ..graph.node import Node
from .replay import Replay

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
    reached = {leaf, *replay.dependents(leaf)}
    pending = [node for node in outputs if node in reached]
    seen = set(pending)
    found: list[Cut] = []
    while pending:
        node = pending.pop()
        needed = node.args[0] if node.op.key == OPAQUE_TO_CUTS else Replay.needed(node)
        for part in needed:
            if part in seen or part not in reached or part is leaf:
                continue
            seen.add(part)
            if not part.requires_grad and part.outputs is None:
                found.append(Cut(part, *_reason(part)))
                continue
            pending.append(part)
    found.sort(key=lambda cut: cut.node.seq)
    return found


def hooked(node: Node) -> bool:
    """Whether a hook may change what backward passes on here."""
    return node.marks is not None and bool(node.marks.hooks)


def hook_cut(node: Node) -> Cut:
    """What a hook does, said as a cut."""
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
    if not node.op.differentiable:
        return f"`{name}` has no derivative: backward sees a constant here", name
    return "computed under `no_grad`: backward sees a constant here", "no_grad"
