"""The command in two processes: one works, the other waits, enforces the limits from outside, and
lets a third one go on where the first was lost.

Invariant: what waits has run nothing of any program and imported nothing for it, so that another
process made of it is as good as new. It shares the terminal and the process group with the one that
works: the terminal's signals reach both. It imports as little as it can: every page that both have
is copied for the first that writes to it.
"""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # `signal` brings enum and functools
import io
import os
import sys
import time
from contextlib import suppress

from ..ended import explained
from ..outside import (
    DEADLINE,
    EXHAUSTED,
    FINISHED,
    KEPT,
    KILLED,
    MEMORY,
    OUTSIDE,
    PAGE,
    PRINTED,
    RELIEF,
    SIGN,
    TEXT,
    TIME,
    TOLD,
    USED,
    Lost,
    data_of,
    live_with,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..errors import AutodiffError

GRACE = 1.0  # seconds that the worker has to stop by itself after its time limit
PATIENCE = 0.5  # between two looks at the limits
NEARLY = 1 << 20  # bytes: less is no memory to work with
INTERRUPTED = 130
CRASHES = (4, 5, 6, 7, 8, 11, 31)  # ILL TRAP ABRT BUS FPE SEGV SYS; others are sent by people
SIGNALS = (signal.SIGCHLD, signal.SIGINT, signal.SIGTSTP)  # that the process that waits handles
UNSUPERVISED = frozenset(["help", "ops", "completion", "lsp", "--version", "-V", "-h", "--help"])


def supervised(work: Callable[[], int]) -> int:
    """The exit code of the command, which works in a process that this one watches."""
    words = sys.argv[1:]
    try:
        if not words or words[0] not in UNSUPERVISED:
            _supervise(words)
        code = work()
    except MemoryError:
        os._exit(EXHAUSTED)
    except KeyboardInterrupt:  # before there is anything that could be said
        code = INTERRUPTED
    except Exception as error:  # where nothing else says it
        from ..crash import crashed

        code = _said(crashed(error))
    if OUTSIDE.watched:
        _finish(code)
    return code


def _supervise(words: list[str]) -> None:
    """Return in the process that works; in the one that waits, never."""
    import mmap

    OUTSIDE.use(mmap.mmap(-1, PAGE))
    OUTSIDE.watched = True
    OUTSIDE.journal = os.memfd_create("journal")
    OUTSIDE.printed = os.memfd_create("printed")
    terminal = _Terminal()
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    while True:
        alive, held = os.pipe()
        worker = os.fork()
        if not worker:
            os.close(held)
            live_with(alive)
            _keep_output(words)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, SIGNALS)
            return
        os.close(alive)
        if signal.sigtimedwait({signal.SIGINT}, 0) and not _conversation(words):
            os.kill(worker, signal.SIGINT)  # the one that it should have reached was lost
        status, limit = _wait(worker)
        code = os.waitstatus_to_exitcode(status)
        if code >= 0 and OUTSIDE.numbers[FINISHED]:
            os._exit(code)
        if code < 0 and -code != KILLED and -code not in CRASHES:
            _die_of(-code)
        terminal.restore()
        _flush()
        again = OUTSIDE.lost is not None and not OUTSIDE.numbers[TOLD]
        OUTSIDE.lost = Lost(code, limit, OUTSIDE.statement(), _printed())
        if again:
            # The process that should have said what became of the first was lost as well.
            os._exit(_said(explained(OUTSIDE.lost, None, 0.0)))
        OUTSIDE.numbers[:] = memoryview(bytes(TEXT)).cast("q")
        os.close(held)


def _finish(code: int) -> None:
    """The worker ends, without the interpreter's own end, which takes as long as small programs."""
    if sys.stderr is not None:
        with suppress(OSError, ValueError):
            sys.stderr.flush()
    OUTSIDE.numbers[FINISHED] = 1
    os._exit(code)


# -- the process that works -----------------------------------------------------------------------


class Kept(io.BufferedIOBase):
    """Output in memory that outlives the process until it is written; `count`: where its length
    stands."""

    def __init__(self, descriptor: int, lines: bool, count: int = USED):
        self.descriptor = descriptor
        self.lines = lines
        self.count = count
        at = TEXT if count == USED else TEXT + KEPT
        self.text = OUTSIDE.page[at : at + KEPT]

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return self.descriptor

    def isatty(self) -> bool:
        return os.isatty(self.descriptor)

    def write(self, data: Any) -> int:
        """Keep some output; what does not fit is written."""
        size = len(data)
        used = OUTSIDE.numbers[self.count]
        if used + size > len(self.text):
            self.flush()
            used = 0
            if size > len(self.text):
                _write(self.descriptor, memoryview(data))
                return size
        self.text[used : used + size] = data
        OUTSIDE.numbers[self.count] = used + size
        if self.lines and b"\n" in data:
            self.flush()
        return size

    def flush(self) -> None:
        """Write what is kept; a part that was written is kept no longer, whatever happens then."""
        while used := OUTSIDE.numbers[self.count]:
            written = os.write(self.descriptor, self.text[:used])
            self.text[: used - written] = self.text[written:used]
            OUTSIDE.numbers[self.count] = used - written


def printing() -> Callable[[str], Any] | None:
    """Keeps what a program prints for its document; None where nobody would read it."""
    if OUTSIDE.printed is None:
        return None
    kept = Kept(OUTSIDE.printed, False, PRINTED)
    return lambda text: kept.write(text.encode("utf-8", "backslashreplace"))


def forget_printed() -> None:
    """The next program begins."""
    if OUTSIDE.printed is not None:
        os.ftruncate(OUTSIDE.printed, 0)
        os.lseek(OUTSIDE.printed, 0, os.SEEK_SET)
        OUTSIDE.numbers[PRINTED] = 0


def _printed() -> str:
    """What the program that was lost had printed for its document."""
    assert OUTSIDE.printed is not None
    size = os.lseek(OUTSIDE.printed, 0, os.SEEK_END)
    used = OUTSIDE.numbers[PRINTED]
    rest = bytes(OUTSIDE.page[TEXT + KEPT : TEXT + KEPT + used])
    return (os.pread(OUTSIDE.printed, size, 0) + rest).decode("utf-8", "replace")


def _conversation(words: list[str]) -> bool:
    """Whether this is a session in a terminal, where an interrupt ends an input only."""
    return (not words or words[0] == "repl") and os.isatty(0)


def _write(descriptor: int, data: memoryview) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


def _keep_output(words: list[str]) -> None:
    """What is printed is there whatever becomes of the process. A conversation writes at once."""
    stdout: Any = sys.stdout
    if stdout is None or stdout.write_through or _conversation(words):
        return
    kept: Any = Kept(stdout.fileno(), stdout.line_buffering)
    sys.stdout = io.TextIOWrapper(
        kept, stdout.encoding, stdout.errors, newline="\n", write_through=True
    )


# -- the process that waits -----------------------------------------------------------------------


class _Terminal:
    """The modes of the terminal, to be put back."""

    def __init__(self) -> None:
        self.modes: Any = None
        try:
            if os.isatty(0):
                import termios

                self.modes = termios.tcgetattr(0)
        except OSError:
            pass

    def restore(self) -> None:
        """Give the terminal back as it was found, without a line of progress."""
        if self.modes is not None:
            import termios

            try:
                if termios.tcgetattr(0) != self.modes:
                    termios.tcsetattr(0, termios.TCSADRAIN, self.modes)
                    os.write(1, b"\x1b[?2004l\x1b[?25h\x1b[0m\r\n")
            except (termios.error, OSError):
                pass
        if OUTSIDE.numbers[SIGN]:
            with suppress(OSError):
                os.write(2, b"\r\x1b[K")


def _wait(worker: int) -> tuple[int, str]:
    """Wait for the worker to end: its status, and the limit for which it was ended.

    An interrupt of the terminal has reached the worker; one that was sent to this process is passed
    on, and waits for the next worker where this one is lost just then. The signals that end a
    process end this one, and the worker with it.
    """
    late = 0.0  # until when a worker that is overdue may end by itself
    interrupted = False
    over = ""
    reliefs = 0
    while True:
        ended, status = os.waitpid(worker, os.WNOHANG)
        if ended:
            if interrupted:
                os.kill(os.getpid(), signal.SIGINT)
            return status, over
        now = time.monotonic()
        deadline = OUTSIDE.seconds[DEADLINE]
        if not deadline or now < deadline:
            late = 0.0
        elif now >= late:
            if late:
                over = TIME
                os.kill(worker, KILLED)
            late = now + GRACE
        until = late or deadline or now + PATIENCE
        found = signal.sigtimedwait(SIGNALS, min(PATIENCE, until - now))
        if found is None:
            interrupted = False
            reliefs += _at_its_limit(worker)
            if reliefs > 2:
                over = MEMORY
                os.kill(worker, KILLED)
        elif found.si_signo == signal.SIGCHLD:
            continue
        elif found.si_signo == signal.SIGINT:
            interrupted = True
            if found.si_pid:
                os.kill(worker, signal.SIGINT)
        else:
            os.kill(worker, signal.SIGTSTP)
            os.kill(os.getpid(), signal.SIGSTOP)
            os.kill(worker, signal.SIGCONT)
            late = 0.0


def _at_its_limit(worker: int) -> bool:
    """Whether the worker's memory is used up to the last page. Python may have none to handle its
    MemoryError then, and try for ever: it gets a little more."""
    import resource

    limit, most = resource.prlimit(worker, resource.RLIMIT_DATA)
    if limit == resource.RLIM_INFINITY or data_of(worker) < limit - NEARLY:
        return False
    resource.prlimit(worker, resource.RLIMIT_DATA, (limit + RELIEF, most))
    return True


def _die_of(number: int) -> None:
    """End as the worker did."""
    signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {number})
    os.kill(os.getpid(), number)
    os._exit(128 + number)


def _flush() -> None:
    """Write what the worker printed and did not write."""
    used = OUTSIDE.numbers[USED]
    with suppress(OSError):
        _write(1, OUTSIDE.page[TEXT : TEXT + used])


def _said(error: AutodiffError) -> int:
    """Write an error, with nothing but the system; the exit code."""
    text = f"error[{error.code}]: {error.message}\nhelp: {error.diagnostic.helps[0]}\n"
    with suppress(OSError):
        os.write(2, text.encode())
    return error.diagnostic.exit_code
