"""One peer's process: makes a workload's job, says what it found, and runs it when told to.

Spoken over standard input and output, one JSON document a line: the first tells how many bytes the
results have, which are in a file then, and how long the first call took, or what went wrong; each
`SECONDS` read from standard input is answered by the quickest of the calls that fit into that time;
`end` by the peak of memory.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import sys
import time
from contextlib import suppress
from typing import Any

import numpy as np

from .workloads import BY_NAME

WARM_UP = 2  # calls between the first one and the steady state: plans are recorded at the second

NOT_WRITTEN = "not written for this peer"

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3


def keep_big_blocks() -> None:
    """Have malloc give back what making the inputs left, and from then on keep and reuse freed
    blocks, for all peers alike."""
    with suppress(AttributeError, OSError):
        library = ctypes.CDLL(None)
        library.malloc_trim(0)
        library.mallopt(M_MMAP_THRESHOLD, 1 << 30)
        library.mallopt(M_TRIM_THRESHOLD, 2**31 - 1)


def memory(what: str) -> int:
    """Bytes of memory of this process: `VmRSS` now, `VmHWM` at most since the last `forget_peak`;
    0 where the system does not tell."""
    try:
        with open("/proc/self/status") as status:
            return next(int(line.split()[1]) * 1024 for line in status if line.startswith(what))
    except (OSError, StopIteration):
        return 0


def forget_peak() -> None:
    """Let the peak of memory begin anew, without what making the inputs took."""
    with suppress(OSError), open("/proc/self/clear_refs", "w") as file:
        file.write("5")


def make_job(peer: str, name: str, small: bool) -> Any:
    """A workload's call, or None when the peer has none."""
    workload = BY_NAME[name]
    module = importlib.import_module(f".with_{peer.replace('-', '_')}", __package__)
    function = getattr(module, workload.function, None)
    return None if function is None else function(**workload.arrays(small))


def timed(job: Any, seconds: float) -> float:
    """The quickest of the calls that fit into a time; at least one."""
    best = float("inf")
    end = time.perf_counter() + seconds
    while True:
        start = time.perf_counter()
        job()
        now = time.perf_counter()
        best = min(best, now - start)
        if now + best > end:
            return best


def main(peer: str, name: str, small: str, path: str) -> None:
    """Serve one workload; with a `path`, the first results are written there."""
    out = sys.stdout
    sys.stdout = sys.stderr  # what a program prints must not come between the answers

    def say(**answer: Any) -> None:
        out.write(json.dumps(answer) + "\n")
        out.flush()

    job = make_job(peer, name, small == "small")
    if job is None:
        say(error=NOT_WRITTEN)
        return
    keep_big_blocks()
    forget_peak()
    before = memory("VmRSS")
    start = time.perf_counter()
    try:
        results = job()
    except Exception as error:  # a compiler that fails writes pages
        say(error=f"failed: {(str(error).splitlines() or [type(error).__name__])[0]}")
        return
    first = time.perf_counter() - start
    arrays: dict[str, Any] = {key: np.asarray(value) for key, value in results.items()}
    np.savez(path, **arrays)
    size = sum(array.nbytes for array in arrays.values())
    del arrays
    del results
    for _ in range(WARM_UP):
        job()
    say(first=first, results=size)
    for line in sys.stdin:
        if line.strip() == "end":
            say(peak=max(memory("VmHWM") - before, 0))
            return
        say(seconds=timed(job, float(line)))


if __name__ == "__main__":
    main(*sys.argv[1:])
