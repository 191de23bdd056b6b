"""Values a program reads out of its graph while it runs (`.item()`, a branch): backward and the
graph both take them for constants, so only running the program again shows what depends on them.

Invariant: programs that read nothing are not run again.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..errors import AutodiffError, Diagnostic, Label
from ..graph.node import Node
from ..graph.op import value_of
from ..language.syntax import tree as syntax
from ..source import Span
from .deadline import go_on_after
from .differences import GraphCheck, generator_of, signed_direction
from .slopes import WRONG, Line
from .watched import Watched

if TYPE_CHECKING:
    from .runner import FileCheck

SLOW = 2.0  # seconds of the processor; programs that take longer are not run again
READERS = frozenset(["item", "tolist", "numpy", "float", "int", "bool", "data"])


def reads_of(tree: syntax.Node) -> list[Span]:
    """Places where a program may turn tensors into Python's values."""
    found = []
    for node in syntax.walk(tree):
        if isinstance(node, syntax.Call) and isinstance(node.func, syntax.Name):
            if node.func.id in READERS and node.args:
                found.append(node.span)
        elif isinstance(node, syntax.Attribute) and node.attr in READERS:
            found.append(node.span)
        elif isinstance(node, syntax.If | syntax.While | syntax.IfExp):
            found.append(node.test.span)
    return found


def unseen_dependence(
    check: FileCheck, graph: GraphCheck, leaf: Node, name: str, gradient: Any
) -> Diagnostic | None:
    """W602 when running the program again gives another slope than the graph has."""
    program = check.program
    if program is None or program.tree is None or name not in program.scope.names:
        return None
    if leaf.dtype != np.float64 or program.backwards > 1 or check.run_seconds > SLOW:
        return None
    if program.reads is None:
        program.reads = reads_of(program.tree)
    spans = program.reads
    if not spans:
        return None
    point = np.asarray(graph.replay.value(leaf))
    direction = signed_direction(generator_of(name, check.settings.seed), point)
    claimed = float(np.vdot(gradient, direction))
    options = replace(check.options(), nan="ignore")

    def value(at: np.ndarray) -> float:
        """The weighted sum of what the program differentiates with another value of the leaf."""
        again = Watched(check.source, options, arrays={name: at})
        again.run()
        pairs = again.passes[-1]
        return sum(float(np.vdot(value_of(weight), value_of(node))) for node, weight in pairs)

    try:
        here = value(point)
        line = Line(lambda t: value(point + float(t.real) * direction), here, 1.0, rtol=1e-4)
        with np.errstate(all="ignore"):
            verdict = line.examine(claimed)
    except AutodiffError as error:
        go_on_after(error)
        return None  # the program refuses other values: nothing can be said
    if verdict.kind != WRONG:
        return None
    return Diagnostic(
        "W602",
        f"the gradient of `{name}` leaves out what the program reads out of the graph",
        spans[0],
        "backward sees a constant here",
        tuple(Label(span, "and here") for span in spans[1:4]),
        (
            f"along a random direction backward gives {verdict.claimed:.9g}, running the program "
            f"again gives {verdict.measured:.9g}",
        ),
        (f"compute with tensors to differentiate it; exclude it: `# check: nograd {name}`",),
        "warning",
    )
