"""What the values of a graph are called: the user's names first, then t1, t2, ...

Invariant: two values never have one name; the second value of `x` is `x#2`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from ..graph.node import Node
from ..graph.op import CONSTANT, LEAF, OUTPUT
from ..graph.walk import bodies
from ..language.program.running import Program
from ..language.program.variables import leaf_names, named_tensors
from .record import Recording

LONGEST = 24  # characters of a constant expression that is shown as it is written
PREFIXES = ("t", "v", "s", "u", "h_")


class Names:
    """Names of the nodes that are shown and of the constants they read.

    `assigned` tells what names were bound to while the program ran, as far as somebody watched.
    """

    def __init__(
        self,
        program: Program,
        recording: Recording,
        shown: Iterable[Node],
        assigned: Iterable[tuple[str, Node]],
        through: dict[Node, Node],
    ):
        self.of: dict[Node, str] = {}
        self.tensors = named_tensors(program)
        self.accumulators = leaf_names(self.tensors)
        self.bound: dict[Node, str] = {}
        for name, node in assigned:
            self.bound.setdefault(through.get(node, node), name)
        for name, tensor in self.tensors.items():
            self.bound.setdefault(through.get(tensor.node, tensor.node), name)
        self.inside = _same_place(recording)
        shown = sorted(shown, key=lambda node: node.seq)
        self._name(shown)
        for node, stand_in in reversed(through.items()):
            self.of[node] = self.of[stand_in]
        for node in recording.nodes:
            self._constants(node)

    def _name(self, shown: list[Node]) -> None:
        wanted = {node: self._wanted(node) for node in shown}
        count = Counter(wanted.values())
        taken = {*count, *self.tensors}
        prefix = next((p for p in PREFIXES if not any(_numbered(n, p) for n in taken)), "tmp")
        seen: dict[str, int] = {}
        anonymous = 0
        unnamed = {n.args[0] for n, name in wanted.items() if n.op is OUTPUT and not name}
        for node, name in wanted.items():
            if not name:
                if node.op is OUTPUT or (node.outputs is not None and node not in unnamed):
                    continue
                anonymous += 1
                self.of[node] = f"{prefix}{anonymous}"
            elif count[name] == 1:
                self.of[node] = name
            else:
                seen[name] = seen.get(name, 0) + 1
                self.of[node] = f"{name}#{seen[name]}"
        for node, name in wanted.items():
            if not name and node.op is OUTPUT:
                parent, index = node.args
                fields = parent.op.fields
                part = f".{fields[index]}" if index < len(fields) else f"[{index}]"
                self.of[node] = f"{self.of.get(parent, parent.op.name)}{part}"

    def _wanted(self, node: Node) -> str:
        """The user's name of a node, or ""."""
        if node.op is LEAF:
            found = self.accumulators.get(node.args[0]) or self.bound.get(node)
            if found is None and node.span is not None:
                found = node.span.assigned
            return found or "leaf"
        found = self.bound.get(node)
        if found is None and node.span is not None and node not in self.inside:
            found = node.span.assigned
        return found or ""

    def _constants(self, node: Node) -> None:
        """Names of what a node reads that gradients do not pass."""
        for read in node.inputs:
            if read in self.of or read.requires_grad or read.weak:
                continue
            given = read
            while given.op.key == "cast":  # a constant in the dtype that it is used in
                given = given.inputs[0]
            name = self.bound.get(given)
            if name is None and (read.op is not CONSTANT or read.shape):
                name = _written(given, node)
            if name is not None:
                self.of[read] = name

    def __getitem__(self, node: Node) -> str:
        return self.of[node]


def _written(read: Node, reader: Node) -> str | None:
    """The text of an operand, where the reader's text properly contains it."""
    inner, outer = read.span, reader.span
    if inner is None or outer is None or inner.source is not outer.source or inner == outer:
        return None
    if inner.assigned:
        return inner.assigned
    text = inner.text
    inside = outer.start <= inner.start and inner.end <= outer.end
    return text if inside and len(text) <= LONGEST and "\n" not in text else None


def _numbered(name: str, prefix: str) -> bool:
    return name.startswith(prefix) and name[len(prefix) :].isdigit()


def _same_place(recording: Recording) -> set[Node]:
    """Nodes that another node of the same text reads: parts of an expression, not its value."""
    inside: set[Node] = set()
    for node in recording.arrived:
        for part in (*node.inputs, *(bodies(node) if recording.opens(node) else ())):
            if part.op is not LEAF and part.span is not None and part.span == node.span:
                inside.add(part)
    return inside
