"""Which tensors of a report are shown: by glob, or the ones that matter when there are many."""

from __future__ import annotations

import re
from math import prod
from typing import TYPE_CHECKING

from ..graph.walk import walk
from ..suggest import named

if TYPE_CHECKING:
    from ..graph.node import Node
    from ..session import Report, TensorRecord

MANY = 20
MOST_ROWS = 40


class Family:
    """Tensors inside other values that are alike: `name` is a glob when there are several."""

    __slots__ = ("members", "name")

    def __init__(self, name: str, members: list[TensorRecord]):
        self.name, self.members = name, members


def families(records: list[TensorRecord]) -> list[Family]:
    """Each record alone; parameters of one shape whose names differ in numbers only together when
    there are many."""
    if sum([record.inside for record in records]) <= MANY:
        return [Family(record.name, [record]) for record in records]
    found: dict[tuple[object, ...], Family] = {}
    for record in records:
        key: tuple[object, ...] = (record.name,)
        glob = record.name
        if record.inside:
            glob = re.sub(r"(?<=[.[])\d+(?![^].])", "*", record.name)
            key = glob, record.shape, record.dtype, record.requires_grad, record.grad is None
        found.setdefault(key, Family(glob, [])).members.append(record)
    return [
        f if len(f.members) > 1 else Family(f.members[0].name, f.members) for f in found.values()
    ]


def matching(report: Report, globs: tuple[str, ...]) -> list[TensorRecord]:
    """The tensors whose names a glob matches (`NAME.grad` counts as NAME); all without globs."""
    records = list(report.tensors.values())
    if not globs:
        return records
    wanted = {n for glob in globs for n in named(glob.removesuffix(".grad"), report.tensors)}
    return [record for record in records if record.name in wanted]


def missing(report: Report, record: TensorRecord) -> str:
    """Why a leaf has no gradient, in a word."""
    if not record.requires_grad:
        return "requires_grad=False"
    if not report.connected(record.name):
        result = "what backward() began at" if report.snippet else "the last expression"
        return f"not connected to {report.objective or result}"
    return "autograd.grad returned it" if report.returned else "cleared after backward()"


def no_gradients(report: Report) -> str:
    """Why a program that has leaves has no gradients; empty when it has."""
    records = report.tensors.values()
    leaves = [r for r in records if r.is_leaf and r.requires_grad]
    if report.graph is not None or not leaves or any(r.grad is not None for r in records):
        return ""
    name = report.candidate
    if name is None:
        return "none: nothing is computed from what requires grad"
    record = report.tensors.get(name)
    shape = () if record is None else record.shape
    asked = f"--of {name}" + (" --grad-output ones" if prod(shape) != 1 else "")
    if report.snippet:
        return f"none: the program calls no backward(); {asked} does it"
    return f"none: {name} is not a single number, its shape is {shape}; {asked}"


def important(report: Report, records: list[TensorRecord]) -> list[TensorRecord]:
    """Of more than `MANY` tensors: leaves that require grad, the objective, and the names it uses
    directly."""
    if len(records) <= MANY:
        return records
    direct = _direct(report, {record.node: record.name for record in records})
    return [
        record
        for record in records
        if (record.is_leaf and record.requires_grad)
        or record.name == report.loss
        or record.name in direct
    ]


def _direct(report: Report, names: dict[Node, str]) -> set[str]:
    """Names reached from the objective without passing another name."""
    if report.graph is None:
        return set()
    ways = walk(report.graph.inputs, lambda node: () if node in names else node.inputs)
    return {names[node] for node in ways if node in names}
