"""Rows on Dask beside dask.array by hand: `python -m benchmarks.scale [--rows 2e7] [--folder DIR]`.

Loss and gradient of logistic regression (50 weights) and of a two-layer network (50 x 16), from
zarr without compression, on processes of this machine; seconds without the start of the cluster,
and the largest resident memory of a worker. Runs alternate; a column is a median, that of ratios
the median of the ratios of pairs. The smallest number of rows also all at once, without blocks.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import numpy as np

CHUNK = 167_772  # rows of 50 numbers in 64 MiB
LOGISTIC = "z = X @ w; loss = mean(softplus(z) - y * z)"
NETWORK = "z = tanh(X @ W) @ v; loss = mean(softplus(z) - y * z)"


def made(folder: str, rows: int) -> str:
    """A zarr store of this many rows."""
    import zarr

    path = os.path.join(folder, f"rows-{rows}.zarr")
    if not os.path.exists(path):
        group: Any = zarr.open_group(path, mode="w")
        X = group.create_array(
            "X", shape=(rows, 50), chunks=(CHUNK, 50), dtype="f8", compressors=None
        )
        y = group.create_array("y", shape=(rows,), chunks=(CHUNK,), dtype="f8", compressors=None)
        random = np.random.default_rng(0)
        for i in range(0, rows, CHUNK):
            count = min(CHUNK, rows - i)
            X[i : i + count] = random.standard_normal((count, 50))
            y[i : i + count] = random.random(count) < 0.5
    return path


def peak() -> float:
    """The largest resident memory of a process so far, in MB."""
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def ours(program: str, names: list[str]) -> Callable[..., Any]:
    """By files: a task reads its block."""

    def run(client: Any, path: str, weights: dict[str, np.ndarray]) -> Any:
        import autodiff_cli as ad
        from autodiff_cli.engine.rows.cluster import Cluster
        from autodiff_cli.engine.rows.sources import source_of

        function: Any = ad.value_and_grad(program, wrt=names, engine="dask", client=client)
        cluster = function.cluster = Cluster(client, CHUNK * 400)
        cluster.of = lambda array: cluster.blocked(array.source)

        class Given:
            __dask_graph__ = None

            def __init__(self, key: str):
                self.source = source_of(path, key)

        loss, slopes = function(X=Given("X"), y=Given("y"), **weights)
        return loss, [slopes[name] for name in names]

    return run


def by_hand(name: str) -> Callable[..., Any]:
    """In dask.array."""

    def run(client: Any, path: str, weights: dict[str, np.ndarray]) -> Any:
        import dask
        import dask.array as da

        X, y = da.from_zarr(path, component="X"), da.from_zarr(path, component="y")
        if name == "logistic":
            z = X @ weights["w"]
            loss = (da.logaddexp(0, z) - y * z).mean()
            slope = (1 / (1 + da.exp(-z)) - y) / y.size
            return dask.compute(loss, X.T @ slope)
        h = da.tanh(X @ weights["W"])
        z = h @ weights["v"]
        loss = (da.logaddexp(0, z) - y * z).mean()
        slope = (1 / (1 + da.exp(-z)) - y) / y.size
        inner = slope[:, None] * weights["v"] * (1 - h**2)
        return dask.compute(loss, X.T @ inner, h.T @ slope)

    return run


def at_once(program: str, names: list[str]) -> Callable[..., Any]:
    """By the NumPy engine, on one worker."""

    def there(path: str, weights: dict[str, np.ndarray]) -> Any:
        import autodiff_cli as ad
        from autodiff_cli.engine.rows.sources import zarr_array

        X, y = (zarr_array(path, key)[:] for key in "Xy")
        function: Any = ad.value_and_grad(program, wrt=names, max_memory=1 << 33)
        loss, slopes = function(X=X, y=y, **weights)
        return loss, [slopes[name] for name in names]

    return lambda client, path, weights: client.submit(there, path, weights).result()


def measured(
    run: Callable[..., Any], path: str, weights: Any, workers: int, limit: str = "1GB"
) -> tuple[Any, float, float]:
    """The result, seconds, and the largest memory of a worker in MB."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, memory_limit=limit, silence_logs=50,
            dashboard_address=":0",
        ) as local,
        Client(local) as client,
    ):  # fmt: skip
        start = time.perf_counter()
        found = run(client, path, weights)
        seconds = time.perf_counter() - start
        return found, seconds, max(client.run(peak).values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=2e7)
    parser.add_argument("--folder", default=".")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="logistic,network")
    given = parser.parse_args()
    random = np.random.default_rng(1)
    work = {
        "logistic": (LOGISTIC, {"w": random.normal(size=50) / 10}),
        "network": (NETWORK, {"W": random.normal(size=(50, 16)) / 10, "v": random.normal(size=16)}),
    }
    for name in given.only.split(","):
        program, weights = work[name]
        sizes = [(int(given.rows / 10), 1), (int(given.rows), 1), (int(given.rows), 2)]
        pairs: dict[tuple[int, int], list[Any]] = {size: [] for size in sizes}
        for _ in range(given.runs):
            for rows, workers in sizes:
                path = made(given.folder, rows)
                a = measured(ours(program, list(weights)), path, weights, workers)
                b = measured(by_hand(name), path, weights, workers)
                _same(a[0], b[0])
                pairs[rows, workers].append((a[1], b[1], a[1] / b[1], a[2], b[2]))
        print(f"{name:10} rows  workers  seconds  by hand  ratio  worker MB  by hand")
        for (rows, workers), found in pairs.items():
            s, h, ratio, m, n = np.median(np.array(found), axis=0)
            numbers = f"{s:7.1f}  {h:7.1f}  {ratio:5.2f}  {m:9.0f}  {n:7.0f}"
            print(f"{rows:15.1e}  {workers:7}  {numbers}", flush=True)
        one, two = (np.array(pairs[size])[:, :2] for size in sizes[1:])
        gain, hand = np.median(one / two, axis=0)
        print(f"two workers are {gain:.2f} times as fast as one, by hand {hand:.2f} times")
        path = made(given.folder, sizes[0][0])
        whole, true = (
            measured(run, path, weights, 1, "8GB")
            for run in (at_once(program, list(weights)), by_hand(name))
        )
        _same(whole[0], true[0])
        print(f"{sizes[0][0]:15.1e}  at once  {whole[1]:7.1f}{whole[2]:27.0f}", flush=True)


def _same(found: Any, true: Any) -> None:
    loss, slopes = found
    assert abs(float(loss) - float(true[0])) < 1e-12
    for mine, theirs in zip(slopes, true[1:], strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-13)


if __name__ == "__main__":
    main()
