"""The samples of the op table, written for PyTorch."""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

from autodiff_cli.engine import evaluate  # noqa: F401  # values of nodes
from autodiff_cli.errors import AutodiffError
from autodiff_cli.graph.node import Node
from autodiff_cli.transform.torch_source import Recording, TorchSource

from .table import Case, apply, arrays_of, nodes_of


class Sample(NamedTuple):
    """A sample that can be written: its source, its results with their names, its leaves."""

    source: TorchSource
    results: tuple[Node, ...]
    names: list[str]
    leaves: list[Node]


def text_of_sample(case: Case) -> tuple[str, Sample | None]:
    """What stands for a sample in the fixture: a digest of its source, or the op refused."""
    nodes = nodes_of(case, arrays_of(case))
    with Recording() as recording:
        results = apply(case, nodes)
    source = TorchSource(recording.made)
    try:
        names = [source.name(node) for node in results]
    except AutodiffError as error:
        return f"refused: {error.message}", None
    leaves = [node for node in nodes.values() if node.requires_grad]
    digest = crc32("\n".join([*source.lines, *names]).encode())
    return f"{digest:08x}", Sample(source, results, names, leaves)
