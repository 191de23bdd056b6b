"""Processes that check files, results in the order of the files.

Invariant: a file whose process dies or does not stop fails alone, with its own diagnostic; every
other file is checked. What a process runs is loaded there: who only asks stays light.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from typing import Any

from ..crash import crashed
from ..ended import death, stubborn
from ..engine.threads import WORKERS
from ..errors import AutodiffError, Exit
from ..language.program.gc_control import collect_seldom
from ..outside import EXHAUSTED, OUTSIDE, live_with
from .deadline import alarms
from .model import ERROR, FileResult, Item, Settings

GRACE = 1.0  # seconds that a process has to stop by itself after its time limit


def lost_file(file: str, error: AutodiffError, seconds: float = 0.0) -> FileResult:
    """The result of a file whose process is gone."""
    item = Item(file, "run", status=ERROR, diagnostic=error.diagnostic)
    return FileResult(file, [item], seconds)


class Worker:
    """A process that answers one request after another with what a function makes of it, which is
    called `module:name`; `at` is the place of its present file, which it has `since` then."""

    def __init__(self, answer: str):
        context = _context()
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_work, args=(theirs, answer), daemon=True)
        self.process.start()
        theirs.close()  # so that the end of the process ends the pipe
        self.at: int | None = None
        self.since = 0.0
        self.ready = False  # whether it has said that it is there

    def give(self, at: int, *request: Any) -> None:
        self.at, self.since = at, time.monotonic()
        self.connection.send(request)

    def receive(self) -> Any:
        """The next answer; the first one only says that the process is there."""
        found = self.connection.recv()
        if not self.ready:
            self.ready, self.since = True, time.monotonic()
        return found

    def death(self) -> AutodiffError:
        """What the end of the process says."""
        self.process.join(1.0)
        return death(self.process.exitcode or 0)

    def end(self) -> None:
        """Stop at once."""
        self.process.kill()
        self.process.join()
        self.connection.close()


class Crew:
    """The processes of one call and what they found so far; idle `workers` are used again. `check`
    is what they run, as `module:name`."""

    def __init__(
        self,
        check: str,
        files: list[str],
        settings: Settings,
        jobs: int,
        workers: list[Worker] | None = None,
    ):
        self.check = check
        self.files = files
        self.settings = settings
        self.pending = iter(enumerate(files))
        self.found: dict[int, FileResult] = {}
        self.workers = [] if workers is None else workers
        for worker in [*self.workers, *[None] * (jobs - len(self.workers))]:
            self._occupy(worker)

    def results(self) -> Iterator[FileResult]:
        """All results in the order of the files."""
        for at in range(len(self.files)):
            while at not in self.found:
                self._wait()
            yield self.found.pop(at)

    def dismiss(self) -> None:
        """End every process."""
        for worker in self.workers:
            worker.end()
        self.workers.clear()

    def _occupy(self, worker: Worker | None) -> None:
        """Give the next file to a worker, or to a new one."""
        following = next(self.pending, None)
        if following is None:
            return
        if worker is None:
            worker = Worker(self.check)
            self.workers.append(worker)
        worker.give(*following, self.settings)

    def _wait(self) -> None:
        """Until something happens to a file: it is done, its process is dead, its time is over."""
        from multiprocessing.connection import wait

        busy = {worker.connection: worker for worker in self.workers if worker.at is not None}
        ready = wait(list(busy), self._patience(list(busy.values())))
        for connection in ready:
            worker = busy[connection]
            try:
                result = worker.receive()
            except (EOFError, OSError):
                self._lost(worker, worker.death())
                continue
            if result is None:
                continue
            assert worker.at is not None
            self.found[worker.at] = result
            worker.at = None
            self._occupy(worker)
        if not ready:
            for worker in busy.values():
                if self._overdue(worker) >= 0:
                    self._lost(worker, stubborn(self.settings.timeout))

    def _patience(self, busy: list[Worker]) -> float | None:
        """Seconds until the first process should have stopped by itself."""
        if self.settings.timeout is None:
            return None
        return max(0.0, min(-self._overdue(worker) for worker in busy))

    def _overdue(self, worker: Worker) -> float:
        limit = self.settings.timeout if worker.ready else None
        return -1.0 if limit is None else time.monotonic() - worker.since - limit - GRACE

    def _lost(self, worker: Worker, error: AutodiffError) -> None:
        """The result of a file whose process is gone, and a new process for the others."""
        assert worker.at is not None
        seconds = time.monotonic() - worker.since
        self.found[worker.at] = lost_file(self.files[worker.at], error, seconds)
        worker.end()
        self.workers.remove(worker)
        self._occupy(None)


def _context() -> Any:
    """A copy of this process where that is safe (no other threads), else a fresh interpreter."""
    import multiprocessing
    import threading

    methods = multiprocessing.get_all_start_methods()
    if sys.platform.startswith("linux") and threading.active_count() == 1 and "fork" in methods:
        return multiprocessing.get_context("fork")
    if "forkserver" in methods:
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["autodiff_cli.checks.runner", "autodiff_cli.ops"])
        return context
    return multiprocessing.get_context("spawn")


def _work(connection: Any, answer: str) -> None:
    """The life of a process: requests in, answers out, until the other end is closed."""
    import signal
    from multiprocessing import parent_process

    OUTSIDE.attend()
    if sys.platform == "linux":
        live_with(parent_process().sentinel)  # type: ignore[union-attr]  # a child has one
    WORKERS.limit = 1  # the processes share the CPUs
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # quiet: the first process says it
    gc.disable()  # until what is loaded is there
    module, _, name = answer.partition(":")
    function = getattr(import_module(module), name)
    collect_seldom()
    with alarms():
        connection.send(None)
        while True:
            try:
                connection.send(function(*connection.recv()))
            except (EOFError, OSError):
                return
            except MemoryError:
                os._exit(EXHAUSTED)
            except Exception as error:  # the code of a traceback is that of OpenBLAS
                crashed(error)
                os._exit(Exit.INTERNAL)
