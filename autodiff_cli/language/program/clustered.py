"""A program compiled once and called with arrays in blocks of rows, on a cluster of Dask."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from ...engine.rows.cluster import Cluster
from ...engine.rows.passes import Passes, Rows
from ...graph.node import Node
from ...graph.op import argument, constant
from ...graph.state import STATE
from .compiled import Compiled, Key


class Clustered(Compiled):
    """`Compiled`, with arrays of Dask (blocked along their first axis) beside those of NumPy. What
    has no rows comes back as NumPy's arrays, what has them as Dask's. Every call builds its graph:
    blocks are what takes time."""

    cluster: Cluster
    engine: Passes

    def __reduce__(self) -> tuple[Any, ...]:
        raise TypeError("a function on a cluster stays in the process of its client")

    def _call(self, vector: tuple[object, ...], arrays: dict[str, object]) -> Any:
        self.engine = self.cluster.engine(self.wishes.max_memory)
        return super()._call(vector, arrays)

    def _run(self, *given: Any) -> Any:
        STATE.observer = self.engine
        return super()._run(*given)

    def _limits(self) -> tuple[int, int]:
        return sys.maxsize, self.wishes.max_steps

    def _node(self, array: Any) -> Node:
        return constant(array) if isinstance(array, Rows) else argument(array)

    def _own(self, values: list[Any], kept: list[Any]) -> list[Any]:
        return [self.cluster.array(v) if isinstance(v, Rows) else np.array(v) for v in values]

    def _array(self, name: str, value: Any) -> Any:
        if hasattr(value, "__dask_graph__"):
            super()._array(name, 0.0)  # that there is such a name
            return self.cluster.of(value)
        return super()._array(name, value)

    def _remember(self, key: Key, *rest: Any) -> None:
        """Keep no plan."""
