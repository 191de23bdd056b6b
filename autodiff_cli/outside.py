"""What a process that works tells the one that waits for it, in memory that both have.

Invariant: it is told before it may be needed, so that it is there however the process ends. Where
nobody waits, the memory is the process's own, and telling costs as little.

Importing this module must stay cheap: the process that waits has it, and pages that both have
cost each twice.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False  # `typing` costs as much as the rest together
if TYPE_CHECKING:
    from typing import Any

# Places of numbers at the beginning of the page, 8 bytes each.
DEADLINE = 0  # seconds of the monotonic clock; 0: none
START, END = 1, 2  # of the statement that runs, in its program's text
USED = 3  # bytes of output that are not written yet
TOLD = 4  # whether it was said what became of the process before this one
FINISHED = 5  # whether the process ended by itself
SIGN = 6  # whether a line of progress stands on the terminal
PRINTED = 7  # bytes of what the program printed for its document

TEXT = 64  # where the output begins, and after it what is printed for a document
KEPT = 1 << 16  # bytes of each
PAGE = TEXT + 2 * KEPT

ALLOWANCE = 512 << 20  # bytes for the libraries, for what they need meanwhile, and for the report
EACH_CPU = 64 << 20  # bytes of a thread of BLAS
MUCH = 128 << 20  # bytes that a process needs for itself, and programs may leave behind
RELIEF = 64 << 20  # bytes to say that memory ran out

KILLED = 9
SET_SIGNAL = 10  # F_SETSIG of Linux
STACK = (-6, -11)  # SIGABRT and SIGSEGV: what Python does when the C stack is full
EXHAUSTED = 99  # the exit code of a process that had no memory left to say so
STARVED = (EXHAUSTED, 1)  # 1: of OpenBLAS, which ends the process where it gets no memory


TIME, MEMORY = "time", "memory"


class Lost:
    """How the process before this one ended, in the middle of its work: its exit code, or the
    signal with a minus; TIME or MEMORY when that was used up; and for what was not written."""

    __slots__ = ("code", "limit", "printed", "statement")

    def __init__(self, code: int, limit: str, statement: tuple[int, int], printed: str):
        self.code = code
        self.limit = limit
        self.statement = statement
        self.printed = printed


class Outside:
    """The memory of both, and what is known of a process before this one: how it was `lost`, and
    the records that it left."""

    __slots__ = (
        "base", "bounded", "journal", "kept", "lost", "numbers", "page", "printed", "seconds",
        "watched",
    )  # fmt: skip

    def __init__(self) -> None:
        self.base = 0  # bytes that the process had before it ran programs
        self.kept = 0  # bytes that it had when garbage was collected last
        self.bounded = 0  # bytes that the program may have
        self.journal: int | None = None
        self.lost: Lost | None = None
        # A file of what was printed for a document and did not fit in the page.
        self.printed: int | None = None
        self.watched = False
        self.use(bytearray(PAGE))

    def use(self, page: Any) -> None:
        """Tell it here from now on."""
        self.page = memoryview(page)
        self.numbers = self.page[:TEXT].cast("q")
        self.seconds = self.page[:TEXT].cast("d")

    def attend(self) -> None:
        """Another process than the one that has the page watches this one from now on."""
        self.journal = None
        self.watched = True
        self.base = self.kept = data_of("self")
        self.use(bytearray(PAGE))

    def statement(self) -> tuple[int, int]:
        return self.numbers[START], self.numbers[END]

    def take(self) -> Lost | None:
        """What became of the process before this one, for the one place that says it."""
        lost, self.lost = self.lost, None
        if lost is not None:
            self.numbers[TOLD] = 1
        return lost

    # -- memory -------------------------------------------------------------------------------

    def bound(self, size: int, goes_on: bool = False) -> None:
        """Bound the memory of the process, for a program that may have `size` bytes: beyond it
        Python raises MemoryError. What the programs before it left in cycles is let go; of one that
        goes on and may hold as much, where it has grown by as much."""
        if not self.watched:
            return
        from resource import RUSAGE_SELF, getrusage

        few = (self.kept if goes_on else self.base) + MUCH
        if getrusage(RUSAGE_SELF).ru_maxrss << 10 > MUCH and data_of("self") > few:
            import gc

            gc.collect()
            self.kept = data_of("self")
        if size != self.bounded:
            self.bounded = size
            self._allow(size)

    def relieve(self) -> None:
        """The program is over, or memory ran out: a little more, to say so."""
        if self.bounded:
            self._allow(self.bounded + RELIEF)
            self.bounded = 0

    def _allow(self, size: int) -> None:
        import resource

        most = resource.getrlimit(resource.RLIMIT_DATA)[1]
        size += self.base + ALLOWANCE + EACH_CPU * ((os.cpu_count() or 1) - 1)
        if most != resource.RLIM_INFINITY:
            size = min(size, most)
        resource.setrlimit(resource.RLIMIT_DATA, (size, most))

    # -- records ------------------------------------------------------------------------------

    def record(self, kind: str, value: Any) -> None:
        """Keep something for the process that goes on if this one dies."""
        if self.journal is None:
            return
        import pickle

        data = memoryview(pickle.dumps((kind, value)))
        while data:
            data = data[os.write(self.journal, data) :]

    def begin(self) -> None:
        """A new record begins, unless a process before this one left one."""
        if self.journal is not None and self.lost is None:
            os.ftruncate(self.journal, 0)
            os.lseek(self.journal, 0, os.SEEK_SET)

    def records(self, kind: str) -> list[Any]:
        """What was recorded of a kind, by the processes before this one too."""
        return [value for name, value in self.left() if name == kind]

    def left(self) -> list[tuple[str, Any]]:
        """All that was recorded, by the processes before this one too."""
        if self.journal is None or not os.fstat(self.journal).st_size:
            return []
        import pickle

        found = []
        with open(os.dup(self.journal), "rb") as file:
            file.seek(0)
            try:
                while True:
                    found.append(pickle.load(file))
            except EOFError:
                pass
        return found


def live_with(alive: int) -> None:
    """End with the process that waits: the system kills the reader of a pipe that nobody writes."""
    from fcntl import F_GETFL, F_SETFL, F_SETOWN, fcntl

    fcntl(alive, F_SETOWN, os.getpid())
    fcntl(alive, SET_SIGNAL, KILLED)
    fcntl(alive, F_SETFL, fcntl(alive, F_GETFL) | os.O_ASYNC | os.O_NONBLOCK)
    try:
        if not os.read(alive, 1):
            os._exit(1)
    except BlockingIOError:
        pass


def data_of(process: int | str) -> int:
    """Bytes of a process that RLIMIT_DATA counts; 0 where the system does not tell."""
    try:
        with open(f"/proc/{process}/statm", "rb") as file:
            return int(file.read().split()[5]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


OUTSIDE = Outside()
