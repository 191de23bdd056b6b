"""The plan of an evaluation: lines for people, data for the document of `run`."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..engine.plan.describe import Array, GroupPlan, KernelPlan, PlanData
from .document import picked
from .profile import (
    DIM,
    NAME,
    PHASES,
    SHORT,
    StyledLine,
    expression_data,
    seconds_text,
    size_text,
    text_of,
    titled,
    wrapped,
)
from .text import clip, format_count, format_shape, pad

MOST = 40  # groups and kernels that are shown unless all are asked for
OP = "cyan"
WIDE, NARROW = 76, 40
NOT_RUN = "it ran node by node; this is the plan that it would have had"


def plan_lines(plan: PlanData | None, width: int, all: bool, source: bool) -> list[StyledLine]:
    """The groups and kernels in the order in which they run; with `source` also the text that was
    generated for each group."""
    if plan is None:
        return titled("Plan", ["nothing was evaluated"], width)
    groups = sum(isinstance(unit, GroupPlan) for unit in plan.units)
    single = len(plan.units) - groups
    counts = [format_count(groups, "group")] if groups else []
    if single or not groups:
        counts.append(format_count(single, "kernel"))
    counts += [*_figures(plan), f"at most {size_text(plan.peak)} held"]
    lines = titled("Plan", counts, width)
    if plan.how == "nodes":
        lines += wrapped("", NOT_RUN.split(), width, DIM, separator="")
    shown = plan.units if all else plan.units[:MOST]
    op = max([len(unit.op) for unit in shown if not isinstance(unit, GroupPlan)], default=0)
    for number, unit in enumerate(shown, 1):
        head = f"{number:>{1 + len(str(len(plan.units)))}}"
        if isinstance(unit, GroupPlan):
            lines += _group(unit, head, width, source)
        else:
            lines.append(_kernel(unit, head, width, op))
    left = len(plan.units) - len(shown)
    if left:
        lines.append([(f" … {left} more (--all)", DIM)])
    return lines


def _figures(unit: Any) -> list[str]:
    return [
        f"predicted {seconds_text(unit.seconds)}", f"{size_text(unit.bytes)} moved",
        f"{count_text(unit.flops)}flop",
    ]  # fmt: skip


def _group(group: GroupPlan, head: str, width: int, source: bool) -> list[StyledLine]:
    indent = len(head) + 1
    title = f"{head} group of {format_count(group.nodes, 'node')}:"
    parts = [
        f"{group.rows} rows x {format_shape(group.row)}"
        if group.row
        else f"{group.rows} rows of one number",
        f"{format_count(group.tiles, 'tile')} of {format_count(group.tile, 'row')}",
        format_count(group.threads, "thread"),
        *_figures(group),
    ]
    lines = wrapped(title, parts, width, "", 0)
    lines[0] = [(title, OP), (lines[0][0][0][len(title) :], "")]
    for backward in (False, True):
        texts = [text_of(piece.span) for piece in group.pieces if piece.backward is backward]
        if texts:
            lines += wrapped(PHASES[backward], texts, width, NAME, indent)
    lines += wrapped("reads", _arrays(group.inputs, source), width, DIM, indent)
    if group.outputs:
        lines += wrapped("writes", _arrays(group.outputs, source), width, DIM, indent)
    if group.buffers:
        total = size_text(sum(array.bytes for array in group.buffers))
        each = [*_arrays(group.buffers, source), f"{total} for each thread"]
        lines += wrapped("buffers", each, width, DIM, indent)
    if source:
        lines += [[(" " * indent + line, DIM)] for line in group.source.rstrip("\n").split("\n")]
    return lines


def _arrays(arrays: tuple[Array, ...], named: bool) -> list[str]:
    """Shapes and dtypes: of each by its name in the source, or how many of each form."""
    forms = [f"{format_shape(array.shape)} {array.dtype}" for array in arrays]
    if named:
        return [f"{array.name} {form}" for array, form in zip(arrays, forms, strict=True)]
    return [form if n == 1 else f"{n} x {form}" for form, n in Counter(forms).items()]


def _kernel(kernel: KernelPlan, head: str, width: int, op: int) -> StyledLine:
    phase = " " + SHORT[kernel.piece.backward]
    if width < NARROW:
        op, phase = min(op, 8), ""
    figures = f" {seconds_text(kernel.seconds):>8}"
    note = ""
    if width >= WIDE:
        figures += f" {size_text(kernel.bytes):>10} {count_text(kernel.flops):>6}flop"
        note = f"  {format_shape(kernel.shape)} {kernel.dtype}{_threads(kernel)}"
    left = pad(clip(kernel.op, op), op) + phase
    room = max(8, width - len(head) - 1 - len(left) - len(figures) - 2 - len(note))
    text = clip(text_of(kernel.piece.span), room)
    return [(f"{head} ", ""), (left, OP), (f"{figures}  ", ""), (text, NAME), (note, DIM)]


def _threads(kernel: KernelPlan) -> str:
    if kernel.parts > 1:
        return f", {kernel.parts} parts on {format_count(kernel.threads, 'thread')}"
    return f", BLAS on {format_count(kernel.blas, 'thread')}" if kernel.blas > 1 else ""


def count_text(count: int) -> str:
    """`12 `, `3.4 M`: three digits and what they count in."""
    value, units = float(count), ["", "k", "M", "G", "T"]
    while value >= 999.5 and len(units) > 1:
        value /= 1000
        units.pop(0)
    digits = f"{value:.0f}" if not units[0] or value >= 99.95 else f"{value:.1f}"
    return f"{digits} {units[0]}"


# -- the document ---------------------------------------------------------------------------------


def plan_data(plan: PlanData | None) -> dict[str, Any] | None:
    """The plan for the document of `run`; null when nothing was evaluated."""
    if plan is None:
        return None
    return {
        "ran": plan.how == "plan",
        **picked(plan, "inputs", "results"),
        "peak_bytes": plan.peak,
        **picked(plan, *COST),
        "units": list(map(_unit_data, plan.units)),
    }


COST = ("bytes", "flops", "seconds")


def _unit_data(unit: GroupPlan | KernelPlan) -> dict[str, Any]:
    if not isinstance(unit, GroupPlan):
        return {
            "kind": "kernel",
            "op": unit.op,
            "expression": expression_data(unit.piece.span, unit.piece.backward),
            **picked(unit, "shape", "dtype", "parts", "threads"),
            "blas_threads": unit.blas or None,
            **picked(unit, *COST),
        }
    arrays = {
        kind: [picked(array, "name", "shape", "dtype", "bytes") for array in getattr(unit, kind)]
        for kind in ("inputs", "buffers", "outputs")
    }
    return {
        "kind": "group",
        "expressions": [
            {**expression_data(piece.span, piece.backward), "ops": list(piece.ops)}
            for piece in unit.pieces
        ],
        **picked(unit, "nodes", "rows", "row"),
        "tile_rows": unit.tile,
        **picked(unit, "tiles", "threads"),
        **arrays,
        **picked(unit, *COST, "source"),
    }
