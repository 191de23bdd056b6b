"""What of a recorded pass is wanted: names to differentiate by, one step, composites to open.

Invariant: what does not exist is E201, with what is close or what there is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from ..errors import Diagnostic
from ..graph.op import LEAF
from ..language.program.running import Program
from ..language.program.variables import Objective, Variable, variables_of
from ..suggest import unknown
from .naming import Names
from .record import Recording
from .units import Unit, Units


def check_opened(recording: Recording, wanted: Iterable[str]) -> None:
    """Refuse names of composites that gradients do not pass."""
    present = {n.op.name for n in recording.arrived if n.body is not None}
    for name in wanted:
        if name not in present:
            message = f"--open {name}: gradients pass no composite of that name"
            raise unknown(message, name, sorted(present), "composites")


def variables(
    program: Program,
    recording: Recording,
    names: Names,
    units: Units,
    wrt: tuple[str, ...],
    objective: str,
    warnings: list[Diagnostic],
) -> list[Variable]:
    """Return the leaves to total: those of --wrt, else all that were reached, in program order."""
    if not wrt:
        leaves = [node for node in recording.nodes if node.op is LEAF]
        order = {name: at for at, name in enumerate(names.tensors)}
        leaves.sort(key=lambda n: (order.get(names[n].partition("#")[0], len(order)), n.seq))
        return [Variable(names[leaf], leaf) for leaf in leaves]
    root = recording.seeds[0][0]
    exact = [
        Variable(name, node) for node, name in names.of.items()
        if node in recording.used and name in wrt
    ]  # fmt: skip
    rest = tuple(name for name in wrt if name not in {v.name for v in exact})
    found: list[Variable] = []
    if rest:
        of = Objective(objective, objective, root)
        found = variables_of(program, of, rest, warnings, "its gradient is None")
    chosen = {units.shown(v.node): v.name for v in (*exact, *found)}
    return [
        Variable(names.of.get(node, name), node) for node, name in chosen.items()
        if node in recording.used
    ]  # fmt: skip


def chosen_units(
    wanted: str, units: Sequence[Unit], names: Names, texts: Callable[[Unit], list[str]]
) -> list[Unit]:
    """The units that an expression names: a value, a text of the program, the number of a step; or
    those that feed a leaf of that name."""
    key = "".join(wanted.split())
    found = []
    for unit in units:
        said = {"".join(t.split()) for t in texts(unit)}
        if key in said | {re.sub(r"#\d+", "", t) for t in said}:  # or one of several values
            found.append(unit)
    if not found:
        found = [
            unit for unit in units
            if key in {names.of.get(g.target, "").partition("#")[0] for g in unit.given}
        ]  # fmt: skip
    if found:
        return found
    known = list(dict.fromkeys(
        text for unit in units for text in texts(unit)[:2] if text and len(text) < 60
    ))  # fmt: skip
    message = f"--node {wanted}: no step computes or feeds such an expression"
    raise unknown(message, wanted, known, "steps")
