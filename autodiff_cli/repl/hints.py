"""The live hint: what the line being typed would give, before Enter.

Invariant: the session does not change, and nothing slow is begun: shapes follow from the graph, a
value is computed only when it is small.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..autograd.tensor import Tensor
from ..engine.evaluate import plan
from ..errors import AutodiffError
from ..graph.node import Node
from ..graph.op import value_of
from ..language.runtime.assignment import literal_maker
from ..language.syntax import tree as syntax
from ..language.syntax.parser import parse
from ..render.text import clip, format_shape, printable
from ..render.values import Look, cell_lines
from ..source import Source
from .commands.table import COMMANDS
from .complete import call_signature
from .pasted import without_prompts
from .show import summary
from .words import Hint

if TYPE_CHECKING:
    from .loop import Loop

LONGEST = 2000  # characters of a line that is looked at
MOST_ELEMENTS = 10_000
MOST_WORK = 2_000_000  # about 20 ms
# One element of these takes as many steps as the operands are long.
_LONG = frozenset(
    ["attention", "contraction", "convolution", "decomposition", "determinants", "einsum",
     "factorization", "linalg", "matrices", "norms", "pseudo_inverses"]
)  # fmt: skip


def hint(text: str, cursor: int, loop: Loop) -> Hint:
    """What to show below the line."""
    if len(text) > LONGEST:
        return Hint()
    width = loop.look.width - 4
    stripped = text.lstrip()
    if stripped.startswith(":"):
        return Hint(_about_command(stripped[1:].partition(" ")[0]))
    try:
        signature = call_signature(text[:cursor], loop)
        if signature:
            return Hint(clip(signature, width))
        return Hint(clip(_preview(without_prompts(text), loop), width))
    except AutodiffError as error:
        if error.code.startswith("E1") and loop.is_incomplete(text):
            return Hint()
        return Hint(clip(printable(error.message), width), True)


def _about_command(name: str) -> str:
    found = [c for c in COMMANDS.values() if name and c.name.startswith(name)]
    if len(found) != 1:
        return "  ".join(f":{c.name}" for c in found)
    command = found[0]
    return f":{command.name} {command.argument}".rstrip() + f"   {command.help}"


def _preview(text: str, loop: Loop) -> str:
    trees = parse(Source(text, "<typing>")).body
    if len(trees) != 1:
        return ""
    tree = trees[0]
    if not isinstance(tree, syntax.ExprStmt | syntax.Assign):
        return ""
    value = tree.value
    if isinstance(value, syntax.Name | syntax.Constant) and isinstance(tree, syntax.Assign):
        return ""
    session = loop.session
    if not session.is_harmless(value, loops=False):
        return ""
    literal = isinstance(tree, syntax.Assign) and not session.python
    make = literal_maker(value) if literal else lambda found: found
    return session.look(value, lambda found: _describe(make(found), loop.look))


def _describe(value: Any, look: Look) -> str:
    if not isinstance(value, Tensor):
        return summary(value, look)
    node = value.looked_at
    words = f"{format_shape(tuple(node.shape))} {node.dtype.name}"
    if node.numel <= MOST_ELEMENTS and _work(node) <= MOST_WORK:
        small = look._replace(max_elements=min(look.max_elements, 12))
        lines = cell_lines(value_of(node), small) if node.shape else [summary(value, look)]
        words += "   " + " ".join(line.strip() for line in lines)
    return words


def _work(node: Node) -> int:
    """Roughly how many element steps a value takes."""
    total = 0
    for step in plan([node])[0]:
        sizes = [step.numel, *(operand.numel for operand in step.inputs)]
        longest = 1
        if step.op.family in _LONG:
            longest = max((size for operand in step.inputs for size in operand.shape), default=1)
        total += max(sizes) * longest
    return total
