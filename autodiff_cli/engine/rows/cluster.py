"""Blocks on Dask: jobs run on a cluster, on workers of this machine, or in threads.

Nothing else in the project imports Dask.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import pairwise
from signal import SIG_IGN, SIGINT, signal
from typing import Any
from warnings import catch_warnings

import numpy as np

from ...errors import AutodiffError, fault
from ...graph.node import Node
from ...graph.sizes import bytes_text, shape_text
from ...version import __version__
from .job import Job, combine, pick
from .passes import TOGETHER, WHOLE, Passes, Rows
from .placement import along
from .sources import DaskSource, Picked, Source, source_of

ANSWERS = 3.0  # seconds that a scheduler may take to answer


def _dask() -> Any:
    try:
        import dask
    except ImportError:
        raise fault("E607 extra-missing", "dask") from None
    return dask


def _block(
    topic: str | None, start: int, count: int, arrays: list[Any], job: Job, *whole: np.ndarray
) -> list[Any]:
    """One task: read a block and do the job with it; those who listen to `topic` are told."""
    found = job(start, count, [a() if callable(a) else a for a in arrays], whole)
    if topic is not None:
        from distributed import get_worker

        get_worker().log_event(topic, None)
    return found


def _merged(how: Sequence[str | int], parts: list[list[Any]]) -> list[Any]:
    return [combine(h, list(found)) for h, found in zip(how, zip(*parts, strict=True), strict=True)]


class Derived(Source):
    """What a job makes of each block, when it is asked for."""

    def __init__(
        self, job: Job, arrays: list[Source], whole: list[Any], axis: int, topic: str | None
    ):
        self.delayed = partial(_dask().delayed, pure=False)
        self.given = [self.delayed(value, traverse=False) for value in (job, *whole)]
        self.arrays, self.axis, self.topic = arrays, axis, topic

    def task(self, start: int, stop: int) -> Any:
        """All results for a block."""
        blocks = [array.at(start, stop) for array in self.arrays]
        return self.delayed(_block)(self.topic, start, stop - start, blocks, *self.given)

    def at(self, start: int, stop: int) -> Any:
        return self.delayed(list.__getitem__)(self.task(start, stop), 0)


class Cluster:
    """Blocks of `bounds`, and the Dask client that runs jobs on them; threads without one."""

    def __init__(self, client: Any, chunk: int):
        self.client = client
        self.chunk = chunk
        self.axis = 0  # of the first array, that is cut
        self.bounds: list[int] = []
        self.dask = _dask()
        self.topic: str | None = None
        self.done = self.blocks = 0

    def listen(self) -> None:
        """Count the blocks that are done."""
        self.topic = f"autodiff-{self.client.id}"
        self.client.subscribe_topic(self.topic, self._heard)

    def _heard(self, event: Any) -> None:
        self.done += 1

    def progress(self) -> str:
        """How far the pass over the blocks is that runs."""
        return f"{min(self.done, self.blocks):,} of {self.blocks:,} blocks" if self.blocks else ""

    def engine(self, max_bytes: int) -> Passes:
        """What evaluates the graphs of a program on this cluster."""
        self.bounds = []
        return Passes(self, max_bytes)

    def opened(self, path: str, key: str | None) -> Rows | np.ndarray | None:
        """The array of a file in blocks; None for files that are read whole."""
        source = source_of(path, key)
        return None if source is None else self.blocked(source)

    def of(self, array: Any) -> Rows | np.ndarray:
        """An array of Dask in blocks."""
        return self.blocked(DaskSource(array))

    def array(self, rows: Rows) -> Any:
        """Rows as an array of Dask, which nobody has asked for yet."""
        from dask.array import concatenate, from_delayed

        axis, times = rows.rows
        parts = []
        for start, stop in self.ends():
            shape = (*rows.shape[:axis], (stop - start) * times, *rows.shape[axis + 1 :])
            parts.append(from_delayed(rows.array.at(start, stop), shape, rows.dtype))
        return concatenate(parts, axis)

    @staticmethod
    def has(node: Node) -> bool:
        """Whether the value of a node is on the cluster."""
        return isinstance(node.value, Rows)

    def run(
        self,
        job: Job,
        arrays: list[Source],
        whole: list[np.ndarray],
        how: Sequence[str | int],
        rows: np.ndarray | None = None,
    ) -> list[Any]:
        """The results of a job for all rows, or those of ascending numbers, combined over blocks as
        `how` says."""
        ends = self.ends()
        if rows is not None:  # they are an array of their own
            arrays = [Picked(array, rows) for array in arrays]
            whole = [
                a if p is None else pick(a, p, rows) for a, p in zip(whole, job.whole, strict=True)
            ]
            near = np.searchsorted(self.bounds, rows, "right") // TOGETHER
            bounds = [0, *(np.flatnonzero(np.diff(near)) + 1).tolist(), rows.size]
            ends = pairwise(bounds)
        source = self.lazy(job, arrays, whole)
        parts = [source.task(*block) for block in ends]
        self.done, self.blocks = 0, len(parts)
        merge = partial(self.dask.delayed(_merged, pure=False), how)
        while len(parts) > 1:
            parts = [merge(parts[i : i + TOGETHER]) for i in range(0, len(parts), TOGETHER)]
        return self.compute(parts[0])

    def ends(self) -> Iterator[tuple[int, int]]:
        """Where each block begins and ends."""
        return pairwise(self.bounds)

    def compute(self, task: Any) -> Any:
        """The result of a task; what runs is cancelled when somebody interrupts."""
        if self.client is None:
            from dask.threaded import get

            return get(task.dask, task.key)
        with self._failing():
            with catch_warnings(action="ignore"):  # of whole arrays that are sent with the tasks
                future = self.client.compute(task)
            try:
                return future.result()
            finally:
                if self.client.status == "running":
                    future.cancel()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Whatever a cluster does but finish is E608; programs fail by errors of their own."""
        try:
            yield
        except AutodiffError:
            raise
        except Exception as error:
            if self.client.status != "running":
                address = self.client.scheduler.address
                raise fault("E608 scheduler-lost", address) from None
            raise fault("E608 cluster-failed", f"{type(error).__name__}: {error}") from None

    def lazy(
        self, job: Job, arrays: list[Source], whole: list[np.ndarray], axis: int = 0
    ) -> Derived:
        """The first result of a job, block by block when it is asked for."""
        return Derived(job, arrays, whole, axis, self.topic)

    def blocked(self, source: Source) -> Rows | np.ndarray:
        """An array as the value of a node. The first one says which axis is cut, the one with most
        bytes a row where; what is small stays whole beside columns.

        Raises:
            AutodiffError: E606 when no axis is as long, or one index of it is more than a block.
        """
        first = not self.bounds
        if first:
            self.axis = source.axis_for(self.chunk)
            self.bounds = [0, source.shape[self.axis]]
        total, size = self.bounds[-1], source.bytes_of(0) * source.shape[0]
        if self.axis and not first and size <= WHOLE:
            return source.read(0, source.shape[0])
        if not source.cut(self.axis, total):
            if not self.axis:
                raise fault("E606 other-number-of-rows", source.shape[0], total)
            shape = shape_text(source.shape)
            raise fault("E606 no-such-axis", shape, bytes_text(size), self.axis, total)
        step = self.chunk // (each := source.bytes_of(source.axis))
        if not step:
            shape = shape_text(source.shape)
            least = -(-each // (1 << 20))
            raise fault(
                "E606 more-than-a-block", shape, source.axis, each=bytes_text(each), least=least
            )
        if step < self.bounds[1]:
            self.bounds = [*range(0, total, step), total]
        return Rows(source, source.shape, source.dtype, (source.axis, 1))

    def store(self, path: str, arrays: dict[str, Rows]) -> None:
        """Write arrays into a zarr store, block by block where the blocks are."""
        import zarr

        group = zarr.open_group(path, mode="w")
        tasks = []
        for name, rows in arrays.items():
            axis, times = rows.rows
            step = self.bounds[1] * times
            chunks = (*rows.shape[:axis], step, *rows.shape[axis + 1 :])
            group.create_array(name, shape=rows.shape, chunks=chunks, dtype=rows.dtype)
            store = self.dask.delayed(_stored, pure=False)
            for start, stop in self.ends():
                place = along(axis, start * times, stop * times)
                block = rows.array.at(start, stop)
                tasks.append(store(path, name, place, block))
        self.compute(self.dask.delayed(len)(tasks))


def _stored(path: str, name: str, place: tuple[slice, ...], block: Any) -> None:
    import zarr

    array: Any = zarr.open_group(path, mode="r+")[name]
    array[place] = block() if callable(block) else block


def _versions() -> tuple[str, ...]:
    """What has to be the same on all workers."""
    return (
        __version__,
        ".".join(map(str, sys.version_info[:2])),
        np.__version__,
        _dask().__version__,
    )


@contextmanager
def connected(
    scheduler: str | None, workers: int | None, chunk: int, max_bytes: int
) -> Iterator[Cluster]:
    """A cluster that runs at an address, or one of processes on this machine that ends with it.

    Raises:
        AutodiffError: E607 without Dask, when nothing answers at the address, or a worker has other
            versions; E608 when processes cannot be started.
    """
    _dask()
    from logging import CRITICAL, getLogger

    from distributed import Client, LocalCluster

    for handler in getLogger("distributed").handlers:
        handler.setLevel(CRITICAL)  # what fails is said once, by a diagnostic
    with ExitStack() as stack:
        if scheduler is None:
            interrupt = signal(SIGINT, SIG_IGN)  # Ctrl-C is for this process, not for workers
            try:
                local = LocalCluster(
                    n_workers=workers or len(os.sched_getaffinity(0)),
                    threads_per_worker=1,
                    memory_limit=max_bytes,
                    silence_logs=CRITICAL,
                    dashboard_address=":0",
                )
            except RuntimeError as error:
                raise fault("E608 cluster-failed", error) from None
            finally:
                signal(SIGINT, interrupt)
            client = stack.enter_context(Client(stack.enter_context(local)))
        else:
            try:
                with catch_warnings(action="ignore"):  # of versions
                    client = stack.enter_context(Client(scheduler, timeout=ANSWERS))
            except (OSError, ValueError) as error:
                raise fault("E607 no-scheduler", scheduler, error) from None
        cluster = Cluster(client, chunk)
        with cluster._failing():
            for worker, versions in client.run(_versions).items():
                if versions != _versions():
                    raise fault("E607 versions-differ", worker, versions, _versions())
        cluster.listen()
        yield cluster
