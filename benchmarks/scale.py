"""Rows on Dask beside dask.array by hand: `python -m benchmarks.scale [--rows 2e7] [--folder DIR]`.

Loss and gradient of logistic regression (50 weights) and of a two-layer network (50 x 16), from
zarr without compression, on processes of this machine; seconds without the start of the cluster,
and the largest resident memory of a worker. Runs alternate; a column is a median, that of ratios
the median of the ratios of pairs. The smallest number of rows also all at once, without blocks.

`--tasks` measures what a block costs beside its arithmetic instead, with blocks of few rows on
two workers, and calculates from that what 1e12 rows are on 10 to 1,000 workers, which nobody ran.
"""

from __future__ import annotations

import argparse
import os
import pickle
import time
from collections.abc import Callable
from typing import Any

import numpy as np

CHUNK = 167_772  # rows of 50 numbers in 64 MiB
SMALL = 40_000  # rows of the blocks that are counted
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


def ours(
    program: str, names: list[str], chunk: int = CHUNK * 400, make: Any = None
) -> Callable[..., Any]:
    """By files: a task reads its block."""

    def run(client: Any, path: str, weights: dict[str, np.ndarray]) -> Any:
        import autodiff_cli as ad
        from autodiff_cli.engine.rows.cluster import Cluster
        from autodiff_cli.engine.rows.sources import source_of

        function: Any = ad.value_and_grad(program, wrt=names, engine="dask", client=client)
        cluster = function.cluster = (make or Cluster)(client, chunk)
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


def tasks(folder: str, work: dict[str, Any], second: float) -> None:
    """Tasks and bytes of a pass, measured, and the table that follows from them."""
    from distributed import Client, LocalCluster

    from autodiff_cli.engine.rows.cluster import Cluster

    made: list[int] = []

    class Counted(Cluster):
        def compute(self, task: Any) -> Any:
            made.append(len(dict(task.__dask_graph__())))
            return super().compute(task)

    path = small(folder)
    with (
        LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=":0", silence_logs=50
        ) as local,
        Client(local) as client,
    ):
        start = time.perf_counter()
        client.gather(client.map(abs, range(2_000), pure=False))
        idle = 2_000 / (time.perf_counter() - start)
        print(f"{idle:.0f} tasks a second that do nothing")
        print("program     blocks  tasks  a block  blocks a second  ms a block  bytes a result")
        results = {}
        for name, (program, weights) in work.items():
            for blocks in (100, 1_000, 4_000):
                run = ours(program, list(weights), 400 * (SMALL // blocks), Counted)
                made.clear()
                start = time.perf_counter()
                found = run(client, path, weights)
                seconds = time.perf_counter() - start
                results[name] = size = len(pickle.dumps(found, 5))
                each = sum(made) / blocks
                assert each <= 12
                print(
                    f"{name:10}  {blocks:6}  {sum(made):5}  {each:7.3f}  {blocks / seconds:15.0f}"
                    f"  {1e3 * seconds / blocks:10.1f}  {size:14}", flush=True,
                )  # fmt: skip
    print("a pass over 1e12 rows, hours by 10, 100 and 1,000 workers:")
    print("    blocks of  blocks    tasks  GB moved  tasks a second  scheduler  workers")
    for mib, rate in ((64, idle), (64, 1_000), (1024, idle), (1024, 1_000)):
        blocks = 10**12 * 400 / (mib << 20)
        hours = blocks * each / rate / 3600
        bound = [max(hours, blocks * mib / 64 * second / n / 3600) for n in (10, 100, 1_000)]
        moved = blocks * 2 * results["logistic"] / 1e9
        print(
            f"{mib:9} MiB  {blocks:.1e}  {blocks * each:.1e}  {moved:8.1f}  {rate:14.0f}",
            f"{hours:10.2f} ",
            *(f"{n:5.1f}" for n in bound),
        )


def small(folder: str) -> str:
    """A small store."""
    import zarr

    path = os.path.join(folder, "small.zarr")
    group: Any = zarr.open_group(path, mode="w")
    for name, shape in (("X", (SMALL, 50)), ("y", (SMALL,))):
        group.create_array(name, data=np.ones(shape), chunks=(400, *shape[1:]), compressors=None)
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=2e7)
    parser.add_argument("--folder", default=".")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="logistic,network")
    parser.add_argument("--tasks", action="store_true")
    parser.add_argument("--second", type=float, default=0.3, help="seconds for 64 MiB")
    given = parser.parse_args()
    random = np.random.default_rng(1)
    work = {
        "logistic": (LOGISTIC, {"w": random.normal(size=50) / 10}),
        "network": (NETWORK, {"W": random.normal(size=(50, 16)) / 10, "v": random.normal(size=16)}),
    }
    if given.tasks:
        tasks(given.folder, work, given.second)
        return
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
