"""Arrays that are read in blocks from where they are: .npy files and folders of them, zarr, HDF5,
tables of columns, arrays of Dask. A source is a few words that any process can read by."""

from __future__ import annotations

import glob
import os
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from math import inf, prod
from typing import Any

import numpy as np

from ...errors import AutodiffError, fault
from ...graph.dtypes import tensor_dtype
from .placement import along

AGAIN = 8  # times that rows may be read as often as another axis
NEAR = 1 << 16  # bytes between rows of given numbers that are read with them
SPAN = 1 << 24  # bytes that are read at once for such rows


class Source:
    """An array by rows: its shape and dtype, and what gives some of its rows."""

    shape: tuple[int, ...] = ()
    dtype: np.dtype = np.dtype(np.float64)
    axis = 0  # that is cut
    chunks: tuple[int, ...] | None = None  # that can only be read whole

    def bytes_of(self, axis: int) -> int:
        """What one index of an axis holds."""
        return max(1, self.dtype.itemsize * prod(self.shape[:axis] + self.shape[axis + 1 :]))

    def axis_for(self, block: int) -> int:
        """The axis to cut for blocks of so many bytes: the rows, unless one does not fit into a
        block, or each chunk would be read for many times as many blocks as along another."""
        chunks = self.chunks or (1, *self.shape[1:])
        steps = [block // self.bytes_of(axis) for axis in range(len(chunks))]
        pairs = zip(chunks, steps, strict=True)
        reads = [-(-max(size, 1) // step) if step else inf for size, step in pairs]
        best = reads.index(min(reads))
        return best if AGAIN * reads[best] <= reads[0] else 0

    def cut(self, axis: int, total: int) -> bool:
        """Cut this axis, if it is as long, or the first that is; whether there is one."""
        axes = [a for a, size in enumerate(self.shape) if size == total]
        if not axes or (axis == 0 and axes[0] != 0):  # rows are the first axis of all arrays
            return False
        self.axis = axis if axis in axes else axes[0]
        return True

    def read(self, start: int, stop: int) -> np.ndarray:
        """The part itself."""
        task = self.at(start, stop)
        found: np.ndarray = task() if type(task) is partial else task.compute()
        return found

    def at(self, start: int, stop: int) -> Any:
        """A function without arguments that reads a part of the axis where it is called, or a task
        of Dask."""


def _numbers(dtype: Any) -> np.dtype:
    """The dtype of tensors for what is held; E702 where it holds no numbers."""
    found = tensor_dtype(dtype) if isinstance(dtype, np.dtype) else None
    if found is None or dtype.name == "uint64":  # which may be too large
        raise fault("E702 holds-no-numbers", dtype)
    return found


class FileSource(Source):
    """What `opened(*where)` gives: an array of which rows are read by slicing."""

    def __init__(self, opened: Callable[..., Any], *where: Any):
        self.opened, self.where = opened, where
        array = opened(*where)
        self.shape, self.dtype = tuple(array.shape), _numbers(array.dtype)
        self.chunks = getattr(array, "chunks", None)

    def at(self, start: int, stop: int) -> Any:
        place = along(self.axis, start, stop)
        return partial(_read, self.opened, self.where, place, self.dtype)


def _read(
    opened: Callable[..., Any], where: tuple[Any, ...], place: tuple[slice, ...], dtype: np.dtype
) -> np.ndarray:
    return np.ascontiguousarray(opened(*where)[place], dtype)


def npy(path: str) -> np.ndarray:
    """The array of an .npy file, by memory map."""
    found: np.ndarray = np.lib.format.open_memmap(path, mode="r")
    return found


def zarr_array(path: str, key: str | None) -> Any:
    """An array of a zarr store, version 2 or 3."""
    return _only(_extra("zarr").open(path, mode="r"), path, key)


def hdf5_array(path: str, key: str | None) -> Any:
    """A data set of an HDF5 file."""
    return _only(_extra("h5py").File(path, "r"), path, key)


def _only(found: Any, path: str, key: str | None) -> Any:
    """The array of this name, the only one when none is named."""
    if key is None and not hasattr(found, "shape"):
        names = list(found)
        if len(names) != 1:
            raise fault(
                "E702 holds-several-arrays", name=path, known=", ".join(names), path_text=path
            )
        key = names[0]
    return found if key is None else found[key]


def _extra(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise fault("E607 extra-missing", name) from None


class Stacked(Source):
    """Arrays of several sources, one below the other."""

    def __init__(self, parts: Sequence[Source]):
        self.parts = parts
        self.ends = np.cumsum([part.shape[0] for part in parts]).tolist()
        self.shape, self.dtype = (self.ends[-1], *parts[0].shape[1:]), parts[0].dtype

    def at(self, start: int, stop: int) -> Any:
        if self.axis:
            for part in self.parts:
                part.axis = self.axis
            return _together([part.at(start, stop) for part in self.parts], 0)
        reads = []
        first = min(bisect_right(self.ends, start), len(self.parts) - 1)
        for part, end in zip(self.parts[first:], self.ends[first:], strict=True):
            begin = end - part.shape[0]
            reads.append(part.at(max(start - begin, 0), min(stop, end) - begin))
            if end >= stop:
                break
        return _together(reads, 0)


def _together(reads: list[Any], axis: int) -> Any:
    """What reads all of it: a function as long as no part is a task."""
    if all(type(read) is partial for read in reads):
        return partial(_joined, reads, axis)
    from dask.delayed import delayed

    return delayed(_joined)(reads, axis)


def _joined(reads: list[Any], axis: int) -> np.ndarray:
    return np.concatenate([read() if callable(read) else read for read in reads], axis)


def _picked(read: Any, places: np.ndarray, axis: int) -> np.ndarray:
    array: np.ndarray = read() if callable(read) else read
    return array.take(places, axis)


class Picked(Source):
    """Rows of ascending numbers out of another array."""

    def __init__(self, source: Source, rows: np.ndarray):
        self.source, self.rows, self.axis = source, rows, source.axis

    def at(self, start: int, stop: int) -> Any:
        rows = self.rows[start:stop]
        if not rows.size:
            return self.source.at(0, 0)
        size = self.source.bytes_of(self.axis)
        gaps = np.diff(rows)
        cuts = (gaps > 1) & (gaps * size > NEAR) | (np.diff(rows * size // SPAN) > 0)
        runs = np.split(rows, np.flatnonzero(cuts) + 1)
        return _together([self._run(run) for run in runs], self.axis)

    def _run(self, rows: np.ndarray) -> Any:
        """Rows that are read at once, with those between them."""
        read = self.source.at(rows[0], rows[-1] + 1)
        places = rows - rows[0]
        if rows.size == places[-1] + 1:
            return read
        if type(read) is partial:
            return partial(_picked, read, places, self.axis)
        from dask.delayed import delayed

        return delayed(_picked)(read, places, self.axis)


def shards(paths: list[str]) -> Source:
    """Several .npy files, one below the other."""
    parts = [FileSource(npy, path) for path in paths]
    for part in parts:
        if part.shape[1:] != parts[0].shape[1:] or part.dtype != parts[0].dtype:
            raise fault("E702 shards-differ", parts[0].where[0], part.where[0])
    return Stacked(parts)


class Columns(Source):
    """Columns of a part of a data frame of Dask."""

    def __init__(self, part: Any, shape: tuple[int, ...], dtype: np.dtype):
        self.part, self.shape, self.dtype = part, shape, dtype

    def at(self, start: int, stop: int) -> Any:
        array = self.part.to_numpy(self.dtype).reshape(self.shape)
        return array[along(self.axis, start, stop)]


def table(frame: Any, key: str | None) -> Source:
    """Columns of a data frame of Dask: all, one as a vector, or several (`a,b`)."""
    from dask.base import compute
    from dask.delayed import delayed

    names = list(frame.columns)
    chosen = names if key is None else [key] if key in names else key.split(",")
    frame = frame[chosen]
    dtype = np.result_type(*(_numbers(getattr(d, "numpy_dtype", d)) for d in frame.dtypes))
    parts = frame.to_delayed()
    tail = () if key in names else (len(chosen),)
    counts = compute(*map(delayed(len), parts))
    return Stacked([
        Columns(part, (n, *tail), dtype) for part, n in zip(parts, counts, strict=True)
    ])  # fmt: skip


class DaskSource(Source):
    """An array of Dask; its blocks are read again in ours."""

    def __init__(self, array: Any):
        self.dtype = _numbers(array.dtype)
        self.array, self.shape = array.astype(self.dtype), tuple(array.shape)
        self.chunks = array.chunksize

    def at(self, start: int, stop: int) -> Any:
        part = self.array[along(self.axis, start, stop)].rechunk(-1)
        return part.to_delayed().ravel()[0] if part.ndim else part.to_delayed().item()


class Sample:
    """What `check` has of files by rows: a few stretches of rows, the same of all files."""

    PARTS = 8
    total: int

    def __init__(self, size: int):
        self.size = size  # bytes of the first array
        self.rows: np.ndarray | None = None

    def opened(self, path: str, key: str | None) -> np.ndarray | None:
        """Rows of a file; None for files that are read whole."""
        source = source_of(path, key)
        if source is None:
            return None
        total = source.shape[0]
        if self.rows is None:
            count = max(1, min(total, self.size // source.bytes_of(0)) // self.PARTS)
            starts = np.linspace(0, total - count, self.PARTS).astype(int)
            self.total, self.rows = total, np.unique(starts[:, None] + np.arange(count))
        elif total != self.total:
            raise fault("E606 other-number-of-rows", total, self.total)
        return Picked(source, self.rows).read(0, self.rows.size)


TABLES = {".csv": "read_csv", ".parquet": "read_parquet"}


def source_of(path: str, key: str | None = None) -> Source | None:
    """The source that a path on the command line means; None for files that are read whole, single
    numbers too.

    Raises:
        AutodiffError: E607 without the library that reads it, E701 when nothing is there or it
            cannot be read, E702 when it holds no numbers.
    """
    try:
        found = _source(path, key)
    except AutodiffError:
        raise
    except Exception as error:  # each library has its own
        reason = str(error).split("\n")[-1]
        raise fault("E701 cannot-read-rows", path, type(error).__name__, reason) from None
    return found if found and found.shape else None


def _source(path: str, key: str | None) -> Source | None:
    kind = os.path.splitext(path.rstrip("/"))[1].lower()
    paths = [path]
    if kind == ".zarr":
        return FileSource(zarr_array, path, key)
    if kind in (".h5", ".hdf5"):
        return FileSource(hdf5_array, path, key)
    if any(c in path for c in "*?[") or (os.path.isdir(path) and kind not in TABLES):
        ends = (".npy", *TABLES)
        patterns = [os.path.join(path, f"*{e}") for e in ends] if os.path.isdir(path) else [path]
        paths = next(filter(None, (sorted(glob.glob(pattern)) for pattern in patterns)), [])
        if not paths:
            raise fault("E701 no-shards", patterns[0])
        kind = os.path.splitext(paths[0])[1].lower()
        if kind == ".npy":
            return shards(paths)
    if kind == ".npy" and os.path.exists(path):
        return FileSource(npy, path)
    if kind in TABLES:
        return table(getattr(_extra("dask.dataframe"), TABLES[kind])(paths), key)
    return None
