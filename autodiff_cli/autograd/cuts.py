"""Why a result does not require grad: the tensors it was built from, or the operation that let no
gradient through, with what to write instead."""

from __future__ import annotations

import re
from itertools import islice

from ..errors import Label
from ..graph.node import Node
from ..graph.walk import SEQUENCE, walk

MOST_NODES = 10_000
MOST_LABELS = 2
LONGEST = 60

_FACTORY = re.compile(
    r"(?:torch\.)?(tensor|as_tensor|zeros|ones|full|rand|randn|arange|linspace|eye|zeros_like|"
    r"ones_like|rand_like|randn_like|empty|normal|from_numpy)\("
)
_EXITS = re.compile(r"\.(item|tolist|numpy|detach|cpu)\(\)|\.data\b")
DETACHES = {"detach": ".detach()", "data_alias": ".data"}
_WAYS_OUT = re.compile(r"\bdetach_?\(|\.data\b")
_GENERAL = "write `requires_grad=True` where the tensor is made"
_LITERAL = "write `tensor(..., requires_grad=True)`, or the plain literal `A = [[1., 2.]]`"


def reasons(node: Node, *, native: bool = False) -> tuple[tuple[Label, ...], str]:
    """Labels at what made `node` independent of every leaf that requires grad, and what to type;
    `native`: in a file where a plain literal requires grad."""
    cuts, sources = _found(node)
    for cut in cuts:
        return (Label(cut.span, _cut_words(cut)),), _cut_help(cut)  # type: ignore[arg-type]  # placed
    labels = []
    helps = []
    for source in sources:
        words = _source_words(source)
        if words:
            labels.append(Label(source.span, words))  # type: ignore[arg-type]  # _found gives placed ones
            helps.append(_source_help(source, native))
    return tuple(labels[:MOST_LABELS]), next(
        (h for h in helps if h), _LITERAL if native else _GENERAL
    )


def _found(node: Node) -> tuple[list[Node], list[Node]]:
    """The nodes that cut a gradient off, and those that are built from nothing, which have a
    place, in the order they were made."""
    behind = walk([node], lambda n: [] if n.requires_grad else n.inputs)
    cuts, sources = [], []
    for n in islice(behind, MOST_NODES):
        if n.requires_grad or n.span is None:
            continue
        if any(i.requires_grad for i in n.inputs):
            cuts.append(n)
        elif not n.inputs:
            sources.append(n)
    return sorted(cuts, key=SEQUENCE), sorted(sources, key=SEQUENCE)


def _cut_words(node: Node) -> str:
    if node.op.key in DETACHES:
        return f"{_way_out(node) or 'this'} cuts the graph here"
    if node.dtype.kind != "f":
        name = "this" if node.op.key == "cast" else f"`{node.op.name}`"
        return f"{name} gives {node.dtype.name}, which takes no gradient"
    if _is_gradient(node):
        return "its gradient was taken without create_graph=True: the graph ends there"
    return "computed under no_grad: the graph ends here"


def _way_out(node: Node) -> str:
    """What a text calls by which a node was detached; empty where it is said inside of a call."""
    found = _WAYS_OUT.search(node.span.text if node.span is not None else "")
    words = found[0] if found else ""
    return words + ")" * words.endswith("(")


def _is_gradient(node: Node) -> bool:
    """Whether a node that was made without a graph is a gradient: nothing else switches it off."""
    text = node.span.source.text if node.span is not None else ""
    return not any(word in text for word in ("no_grad", "inference_mode", "grad_enabled"))


def _is_short(text: str) -> bool:
    return len(text) <= LONGEST and "\n" not in text


def _cut_help(node: Node) -> str:
    text = node.span.text if node.span is not None else ""
    if node.op.key in DETACHES:
        end = DETACHES[node.op.key]
        if text.endswith(end) and _is_short(text):
            return f"write `{text.removesuffix(end)}` for `{text}`"
        way = _way_out(node)
        return f"leave `{way}` out" if way else "call `requires_grad_()` on what it gives"
    if node.dtype.kind != "f":
        return "use operations that give floats on the way to the loss"
    if _is_gradient(node):
        return "pass `create_graph=True` to the grad() or backward() that computed it"
    shown = f"`{text}`" if _is_short(text) else "it"
    return f"compute {shown} outside of the `with torch.no_grad():` block"


def _source_words(node: Node) -> str:
    text = node.span.text if node.span is not None else ""
    factory = _FACTORY.match(text)
    if node.dtype.kind != "f":
        return f"{node.dtype.name}: only floats take gradients" if factory else ""
    if factory:
        return f"requires_grad=False is the default of `{factory[1]}`"
    return "`const` takes no gradient" if text.startswith("const(") else ""


def _source_help(node: Node, native: bool) -> str:
    text = node.span.text if node.span is not None else ""
    if not _is_short(text) or not text.endswith(")"):
        return ""
    name = node.span.assigned if node.span is not None else ""
    lead = f"{name} = " if name else ""
    inside = text[text.find("(") + 1 : -1]
    kept = _EXITS.sub("", inside)
    if kept != inside:
        return f"numbers have left the graph: write `{lead}{kept}` for `{text}`"
    if text.startswith(("torch.tensor(", "tensor(")) and re.match(r"[^\W\d][^,]*$", inside):
        return f"it is a copy: write `{inside}` for `{text}`"
    literal = f"`{lead}{inside}`" if inside.startswith("[") and inside.endswith("]") else ""
    if node.dtype.kind != "f":
        path = "torch." if text.startswith("torch.") else ""
        typed = f"{text[:-1]}, dtype={path}float32, requires_grad=True)"
        return "" if "dtype" in text else f"write `{lead}{typed}`"
    if text.startswith("const("):
        return f"write the plain literal {literal}" if literal else ""
    fixed = f"write `{lead}{text[:-1]}, requires_grad=True)`"
    if native and literal:
        fixed += f", or the plain literal {literal}"
    return fixed
