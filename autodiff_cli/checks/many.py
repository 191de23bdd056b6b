"""Checking many files, one after another or in several processes, results in the order of the
files.

Invariant: a file that kills its process fails alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..errors import fail
from .model import ERROR, FileResult, Item, Settings
from .runner import check_file

FEW = 8  # fewer files are not worth starting processes


def check_many(files: list[str], settings: Settings, jobs: int = 1) -> Iterator[FileResult]:
    """The result of every file, in order, as soon as it and those before it are there."""
    if jobs <= 1 or len(files) <= FEW:
        for file in files:
            yield check_file(file, settings)
        return
    yield from _in_processes(files, settings, jobs)


def _pool(jobs: int) -> Any:
    import multiprocessing
    from concurrent.futures import ProcessPoolExecutor

    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    if "forkserver" in methods:
        context.set_forkserver_preload([__name__, "autodiff_cli.ops.index"])
    return ProcessPoolExecutor(jobs, mp_context=context)


def _in_processes(files: list[str], settings: Settings, jobs: int) -> Iterator[FileResult]:
    from concurrent.futures.process import BrokenProcessPool

    pool = _pool(min(jobs, len(files)))
    try:
        futures = [pool.submit(check_file, file, settings) for file in files]
        for file, future in zip(files, futures, strict=True):
            try:
                yield future.result()
            except BrokenProcessPool:
                yield _alone(file, settings)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _alone(file: str, settings: Settings) -> FileResult:
    """A file in a process of its own: the one that kills its process is found so."""
    from concurrent.futures.process import BrokenProcessPool

    with _pool(1) as pool:
        try:
            result: FileResult = pool.submit(check_file, file, settings).result()
            return result
        except BrokenProcessPool:
            error = fail(
                "E900",
                f"checking `{file}` ended its process",
                help="check it alone: `autodiff check " + file + "`",
            )
            return FileResult(file, [Item(file, "run", status=ERROR, diagnostic=error.diagnostic)])
