"""What PyTorch saves by the table, and values that backward cannot use any more: freed, detached,
or changed in place since.

Invariant: nothing is changed here; what is wrong is told as PyTorch tells it.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from ..errors import AutodiffError, fault, labelled
from ..graph.dtypes import BOOL, SCALAR_TYPES
from ..graph.node import Node
from ..graph.op import CAST, LEAF, OUTPUT, results_of
from . import data_mutation


def freed(node: Node) -> AutodiffError:
    """E406 for what a node saved."""
    where = labelled(node.span, "this part of the graph was used up")
    return fault("E406 backward-second-time", shown(node), labels=where)


def shown(node: Node) -> str:
    """A node by the name it was assigned to, else by its text."""
    span = node.span
    if span is None or len(span.text) >= 40 or "\n" in span.text:
        return f"`{node.op.name}`"
    name = span.assigned
    return f"`{name} = {span.text}`" if name else f"`{span.text}`"


def requires_grad(node: Node) -> bool:
    return node.requires_grad


def declared(node: Node, wants: Callable[[Node], bool] = requires_grad) -> list[Node]:
    """What PyTorch saves of a node by the table."""
    saves = node.op.saves
    if not saves:
        return []
    saved: list[Node | None] = []
    for part in (saves if isinstance(saves, str) else saves(*node.args)).split(", "):
        what, _, user = part.partition(" for ")
        if user and not wants(node.args[node.op.index[user]]):
            continue
        results = dict(enumerate([node] if node.outputs is None else results_of(node)))
        if what == "operands":
            saved += node.inputs
        elif what == "results":
            saved += results.values()
        elif what.startswith("result "):
            results |= node.marks.results if node.marks else {}
            saved.append(results.get(int(what.removeprefix("result "))))
        elif what:
            saved.append(node.args[node.op.index[what]])
    return [x for x in saved if x is not None]


def check_saved(node: Node, saved: list[Node]) -> None:
    """E407 when a value that the rule reads was changed in place after the node was made."""
    for read in saved:
        overwritten = overwritten_at(read)
        if overwritten is None or overwritten[3] < node.seq:
            continue  # what reads an old value later has it from an op that kept it
        if read.marks is not None and read.marks.detached:
            if read is node:
                continue  # results are saved without their history
            raise _detached(node, read)
        if not data_mutation.kept(overwritten[1], node, read):
            raise changed_since(node, read, overwritten)


def _detached(node: Node, read: Node) -> AutodiffError:
    """E407 for a value that `node` saved and that was detached in place."""
    where = labelled(node.span, "saved here")
    said = shown(read)
    return fault("E407 saved-was-detached", said, read.shape, node.op.name, labels=where)


def changed_since(node: Node, read: Node, overwritten: Any) -> AutodiffError:
    """E407 for a value that `node` saved and that was overwritten: where, by what, and the index of
    the change."""
    at, _, version, _ = overwritten
    read = (read.marks and read.marks.made_of) or read
    where = labelled(at, "changed in place here") + labelled(node.span, "saved here")
    words = _modified(node, read, version)
    help = "use the form that makes a new tensor, for example `x = x + 1` for `x += 1`"
    text = read.span.text if read.span is not None and read is node else ""
    if any(x.marks and (x.marks.overwritten or ())[1:2] == (node,) for x in node.inputs):
        pass  # a copy of what is made in place changes nothing
    elif at is not None and at == node.span:  # within one call of the library
        help = "leave `inplace=True` out: a layer changes there what another has saved"
    elif text and len(text) < 50 and "\n" not in text:
        plain = text if re.fullmatch(r"[\w.]+(\(.*\))?", text) else f"({text})"
        help = f"change a copy: write `{plain}.clone()` for `{text}`"
    said = shown(read)
    return fault(
        "E407 saved-was-changed", said, read.shape, node.op.name, help, words, labels=where
    )


def _modified(node: Node, read: Node, version: int) -> str:
    """PyTorch's words for a saved value that was changed; `version` is that of the value."""
    handle = read.handle and read.handle()
    made_by = node if read is node else handle.node if handle is not None else read
    named = made_by.requires_grad and made_by.op is not LEAF
    output = made_by.args[1] if made_by.op is OUTPUT else 0
    by = made_by.args[0] if made_by.op is OUTPUT else made_by
    now = version + 1 if handle is None else handle.version
    kind = f"torch.{SCALAR_TYPES[read.dtype.name]}Tensor" if read.dtype != BOOL else "CPUBoolType"
    source = f", which is output {output} of {_plain_name(by)}," if named else ""
    return (
        "one of the variables needed for gradient computation has been modified by an inplace "
        f"operation: [{kind} {list(read.shape)}]{source} is at version {now}; "
        f"expected version {version} instead."
    )


def _plain_name(node: Node) -> str:
    """The name of a backward function as messages have it: `Exp`, `Pow1`."""
    return node.grad_name.removesuffix("Backward0").replace("Backward", "")


def overwritten_at(node: Node) -> Any:
    """Where and by which node the memory of a node was changed in place; None if it was not. What
    was detached has changed for itself, not for its views."""
    read, since = node, node.seq
    while True:
        marks = node.marks
        if marks is not None and marks.replaced is not None and marks.replaced[1] is None:
            return None  # hooks have unpacked another
        change = None if marks is None else marks.overwritten
        if change is None and marks is not None and marks.replaced is not None:
            now = marks.replaced[0].node.marks  # of what the same tensor has since
            change = None if now is None else now.overwritten
        if change is not None and (node is read or not marks or change is not marks.detached):
            return change if change[3] > since else None
        cast_for_op = node.op is CAST and node.handle is None  # what is saved is not the copy
        viewed = node.op.view and "own counter" not in node.op.properties
        if marks is not None and marks.made_of is not None:
            node = marks.made_of
        elif node.op is OUTPUT or viewed or cast_for_op:
            node = node.args[0]
        else:
            return None


def recorded(node: Node) -> Node:
    """The node whose history a tensor has after changes that autograd does not see."""
    while node.op.key == "with_value" and node.requires_grad:
        node = node.args[0]
    return node
