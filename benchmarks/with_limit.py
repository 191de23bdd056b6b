"""What bounds a workload: only the part of the work that cannot be left out, as quick as NumPy does
it; see with_numpy for the form.

Nothing here computes a workload's results: these calls return none, and none are compared.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import pairwise
from queue import SimpleQueue
from typing import Any

import numpy as np

Results = dict[str, Any]
Job = Callable[[], Results]

TILE = 256 << 10  # bytes of a buffer that stays in cache


def _cores() -> list[int]:
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


def _on_all_cores(shares: Sequence[Callable[[], Any]]) -> Job:
    """A call that runs one share on each core, each thread on a core of its own."""
    free: SimpleQueue[int] = SimpleQueue()
    for core in _cores():
        free.put(core)

    def settle() -> None:
        if hasattr(os, "sched_setaffinity"):
            os.sched_setaffinity(0, {free.get()})

    pool = ThreadPoolExecutor(len(shares), initializer=settle)

    def job() -> Results:
        for done in [pool.submit(share) for share in shares]:
            done.result()
        return {}

    return job


def neuron(w: Any, x: Any, b: Any) -> Job:
    """Copying the inputs to the outputs, in memory that is there, on all cores."""
    pairs = [(array, np.zeros_like(array)) for array in (w, x, b)]
    cores = len(_cores())
    borders = [len(w) * i // cores for i in range(cores + 1)]

    def copy(first: int, last: int) -> None:
        for source, target in pairs:
            np.copyto(target[first:last], source[first:last])

    return _on_all_cores([partial(copy, *part) for part in pairwise(borders)])


def chain(x: Any) -> Job:
    """The ufuncs of forward and backward on buffers that stay in cache, the tiles shared among
    all cores."""
    size = min(TILE // x.itemsize, len(x))
    cores = len(_cores())
    tiles = max(1, round(len(x) / size / cores))

    def share() -> Callable[[], None]:
        piece = x[:size].copy()
        y, g, to_x = (np.empty_like(piece) for _ in range(3))
        kept = [(np.empty_like(piece), np.empty_like(piece)) for _ in range(4)]

        def run() -> None:
            for _ in range(tiles):
                _chain_tile(piece, y, g, to_x, kept)

        return run

    return _on_all_cores([share() for _ in range(cores)])


def _chain_tile(x: Any, y: Any, g: Any, to_x: Any, kept: Sequence[tuple[Any, Any]]) -> None:
    """28 calls forward, 35 backward: what hand-written NumPy calls, without its temporaries."""
    before = x
    for t, v in kept:
        np.multiply(before, 0.9, t)
        np.add(t, 0.1, t)
        np.tanh(t, t)
        np.multiply(t, x, v)
        np.negative(v, v)
        np.exp(v, v)
        np.subtract(v, 0.5, y)
        before = y
    y.sum()
    g.fill(1)
    to_x.fill(0)
    for t, v in reversed(kept):
        np.multiply(g, v, g)
        np.negative(g, g)
        np.multiply(g, t, v)
        np.add(to_x, v, to_x)
        np.multiply(g, x, g)
        np.multiply(t, t, t)
        np.subtract(1, t, t)
        np.multiply(g, t, g)
        np.multiply(g, 0.9, g)
    np.add(to_x, g, to_x)


def _products(pairs: Sequence[tuple[Any, Any]]) -> Job:
    """Products of matrices and nothing else, into memory that is there."""
    ready = [(a, b, np.zeros((len(a), b.shape[1]), a.dtype)) for a, b in pairs]

    def job() -> Results:
        for a, b, target in ready:
            np.matmul(a, b, target)
        return {}

    return job


def mlp(x: Any, t: Any, W1: Any, W2: Any, W3: Any, **_: Any) -> Job:
    """The eight products: three forward, two to the layers before, three to the weights."""
    forward = [(x, w) for w in (W1, W2, W3)]
    return _products([*forward, (t, W3.T), (t, W2.T), (x.T, t), (x.T, t), (x.T, t)])


def conv(x: Any, w: Any) -> Job:
    """The three products of im2col, without making the columns."""
    flat = w.reshape(len(w), -1)
    positions = x.size // x.shape[1]
    columns = np.ones((flat.shape[1], positions), x.dtype)
    g = np.ones((len(w), positions), x.dtype)
    return _products([(flat, columns), (flat.T, g), (g, columns.T)])


def logistic(X: Any, t: Any, steps: Any) -> Job:
    """The steps by hand, all in memory that is there: what a perfect plan would call."""
    rows, columns = X.shape
    w, b = np.zeros(columns), np.zeros(())
    z, to_w, to_b = np.empty(rows), np.empty(columns), np.empty(())
    multiply, add, subtract = np.multiply, np.add, np.subtract
    negative, exp, divide, matmul, total = np.negative, np.exp, np.divide, np.matmul, np.add.reduce
    rate = 0.1 / rows

    def job() -> Results:
        w.fill(0)
        b.fill(0)
        for _ in range(int(steps)):
            matmul(X, w, z)
            add(z, b, z)
            negative(z, z)
            exp(z, z)
            add(z, 1.0, z)
            divide(1.0, z, z)
            subtract(z, t, z)
            multiply(z, rate, z)
            matmul(z, X, to_w)
            subtract(w, to_w, w)
            total(z, out=to_b)
            subtract(b, to_b, b)
        return {}

    return job
