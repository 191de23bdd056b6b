"""Arrays that are read row by row from where they are: .npy files and folders of them, zarr, HDF5,
tables of columns, arrays of Dask. A source is a few words that any process can read by."""

from __future__ import annotations

import glob
import os
from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ...errors import fault


class Source:
    """An array by rows: its shape and dtype, and what gives some of its rows."""

    shape: tuple[int, ...] = ()
    dtype: np.dtype = np.dtype(np.float64)

    def at(self, start: int, stop: int) -> Any:
        """A function without arguments that reads rows where it is called, or a task of Dask."""
        raise NotImplementedError


class FileSource(Source):
    """What `opened(*where)` gives: an array of which rows are read by slicing."""

    def __init__(self, opened: Callable[..., Any], *where: Any):
        self.opened, self.where = opened, where
        array = opened(*where)
        self.shape, self.dtype = tuple(array.shape), np.dtype(array.dtype)

    def at(self, start: int, stop: int) -> Any:
        return partial(_read, self.opened, self.where, start, stop)


def _read(opened: Callable[..., Any], where: tuple[Any, ...], start: int, stop: int) -> np.ndarray:
    return np.ascontiguousarray(opened(*where)[start:stop])


def npy(path: str) -> np.ndarray:
    """The array of an .npy file, by memory map."""
    found: np.ndarray = np.load(path, mmap_mode="r", allow_pickle=False)
    return found


def zarr_array(path: str, key: str | None) -> Any:
    """An array of a zarr store, version 2 or 3."""
    found = _extra("zarr").open(path, mode="r")
    return found if key is None else found[key]


def hdf5_array(path: str, key: str | None) -> Any:
    """A data set of an HDF5 file; the only one when it is not named."""
    file = _extra("h5py").File(path, "r")
    if key is None:
        names = list(file)
        if len(names) != 1:
            raise fault(
                "E702 holds-several-arrays", name=path, known=", ".join(names), path_text=path
            )
        key = names[0]
    return file[key]


def _extra(name: str) -> Any:
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise fault("E607 extra-missing", name) from None


class Shards(Source):
    """Several .npy files, one below the other."""

    def __init__(self, paths: list[str]):
        self.parts = [FileSource(npy, path) for path in paths]
        first = self.parts[0]
        for part in self.parts:
            if part.shape[1:] != first.shape[1:] or part.dtype != first.dtype:
                raise fault("E702 shards-differ", first.where[0], part.where[0])
        self.ends = np.cumsum([part.shape[0] for part in self.parts]).tolist()
        self.shape, self.dtype = (self.ends[-1], *first.shape[1:]), first.dtype

    def at(self, start: int, stop: int) -> Any:
        reads = []
        first = bisect_right(self.ends, start)
        for part, end in zip(self.parts[first:], self.ends[first:], strict=True):
            begin = end - part.shape[0]
            reads.append(part.at(max(start - begin, 0), min(stop, end) - begin))
            if end >= stop:
                break
        return partial(_joined, reads)


def _joined(reads: list[Callable[[], np.ndarray]]) -> np.ndarray:
    return np.concatenate([read() for read in reads])


class DaskSource(Source):
    """An array of Dask; its blocks are read again in ours."""

    def __init__(self, array: Any):
        self.array, self.shape, self.dtype = array, tuple(array.shape), np.dtype(array.dtype)

    def at(self, start: int, stop: int) -> Any:
        part = self.array[start:stop].rechunk(-1)
        return part.to_delayed().ravel()[0] if part.ndim else part.to_delayed().item()


def source_of(path: str, key: str | None = None) -> Source | None:
    """The source that a path on the command line means; None for files that are read whole.

    Raises:
        AutodiffError: E607 without the library that reads it, E701 when nothing is there.
    """
    lower = path.lower().rstrip("/")
    if lower.endswith(".zarr"):
        return FileSource(zarr_array, path, key)
    if lower.endswith((".h5", ".hdf5")):
        return FileSource(hdf5_array, path, key)
    if lower.endswith(".parquet"):
        return _columns("read_parquet", path, key)
    if any(c in path for c in "*?[") or os.path.isdir(path):
        pattern = os.path.join(path, "*.npy") if os.path.isdir(path) else path
        paths = sorted(glob.glob(pattern))
        if not paths:
            raise fault("E701 no-shards", pattern)
        if paths[0].endswith(".csv"):
            return _columns("read_csv", path, key)
        return Shards(paths)
    if lower.endswith(".npy") and os.path.exists(path):
        return FileSource(npy, path)
    if lower.endswith(".csv"):
        return _columns("read_csv", path, key)
    return None


def _columns(read: str, path: str, key: str | None) -> Source:
    """Columns of tables (all, or the named one) through dask.dataframe."""
    table = getattr(_extra("dask.dataframe"), read)(path)
    return DaskSource((table if key is None else table[key]).to_dask_array(lengths=True))
