"""Worker threads that share the tiles of one step with the calling thread.

`share` is the only door: it returns when every job is done, and raises the failure of the first
job that failed. While jobs run, each thread stays on a CPU of its own.
"""

from __future__ import annotations

import os
from _queue import SimpleQueue
from _thread import allocate_lock
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..graph.state import LOCK

if TYPE_CHECKING:
    Done = SimpleQueue[tuple[int, BaseException | None]]  # which job is done, and its failure
    Inbox = SimpleQueue[tuple[int, "Job", int | None, Done]]

Job = Callable[[], None]

# Elements in NumPy's buffer. Rows shorter than a quarter of that go through the buffer, which takes
# twice as long as leaving them where they are. A context of `errstate` ends with the old size.
BUFFER = 1024


def available() -> list[int]:
    """The CPUs this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return sorted(os.sched_getaffinity(0))
    return list(range(os.cpu_count() or 1))


class Workers:
    """A team that is started when it is first needed; `limit` is the most threads it uses, the
    caller's included, or 0 for one on each CPU."""

    def __init__(self) -> None:
        self.limit = 0
        self._inbox: Any = None
        self._started = 0
        self._process = 0
        self._turn = allocate_lock()  # held by the thread whose jobs the team runs

    def count(self) -> int:
        """How many threads may work at a time."""
        return self.limit or len(available())

    def share(self, jobs: list[Job]) -> None:
        """Run all jobs, the first one here. A call from within a job, or while the team works for
        another thread, runs them one by one."""
        with LOCK:
            if self._process != os.getpid():  # threads do not survive a fork
                self._process = os.getpid()
                self._started = 0
                self._inbox = SimpleQueue()
                self._turn = allocate_lock()
        if len(jobs) < 2 or not self._turn.acquire(False):
            for job in jobs:
                job()
            return
        places = available()
        pinned = len(places) >= len(jobs) and hasattr(os, "sched_setaffinity")
        failures: list[tuple[int, BaseException]] = []
        done: Done = SimpleQueue()
        given = 0
        try:
            self._start(len(jobs) - 1)
            try:
                for at, job in enumerate(jobs[1:], 1):
                    self._inbox.put((at, job, places[at] if pinned else None, done))
                    given += 1
                if pinned:
                    os.sched_setaffinity(0, {places[0]})
                jobs[0]()
            except BaseException as failure:
                failures.append((0, failure))
            while given:  # even when interrupted: the others write to arrays that are ours
                try:
                    at, failed = done.get()
                except BaseException as failure:
                    failures.append((0, failure))
                    continue
                given -= 1
                if failed is not None:
                    failures.append((at, failed))
        finally:
            if pinned:
                os.sched_setaffinity(0, places)
            self._turn.release()
        if failures:
            raise min(failures, key=lambda pair: pair[0])[1]

    def _start(self, wanted: int) -> None:
        from .team import start

        while self._started < wanted:
            start(self._inbox, BUFFER)
            self._started += 1


WORKERS = Workers()
