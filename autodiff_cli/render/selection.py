"""Which tensors of a report are shown: by glob, or the ones that matter when there are many."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from ..graph.walk import walk

if TYPE_CHECKING:
    from ..graph.node import Node
    from ..session import Report, TensorRecord

MANY = 20


def matching(report: Report, globs: tuple[str, ...]) -> list[TensorRecord]:
    """The tensors whose names a glob matches (`NAME.grad` counts as NAME); all without globs."""
    records = list(report.tensors.values())
    if not globs:
        return records
    wanted = [glob.removesuffix(".grad") for glob in globs]
    return [r for r in records if any(fnmatchcase(r.name, glob) for glob in wanted)]


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
