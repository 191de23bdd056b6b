"""How many threads the BLAS library behind NumPy uses, for one product at a time.

A library does not tune the process it lives in: `many` does something only when the command asked
for it at its start, where it holds BLAS to one thread because starting more costs more than a small
program.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

from ..graph.state import LOCK
from .threads import WORKERS

# The command started BLAS with one thread, and it may get more.
MANAGED = os.environ.get("AUTODIFF_BLAS") == "managed"

_controller: Any = None


def _libraries() -> Any:
    global _controller
    if _controller is None:
        from threadpoolctl import ThreadpoolController  # type: ignore[import-untyped]  # has no stubs

        _controller = ThreadpoolController().select(user_api="blas")
    return _controller


_limits: list[Any] = []  # one for each caller of `single` that is inside of it


@contextmanager
def single() -> Iterator[None]:
    """BLAS on one thread: its callers are threads themselves."""
    if MANAGED:
        yield
        return
    with LOCK:
        _limits.append(_limits[0] if _limits else _libraries().limit(limits=1))
    try:
        yield
    finally:
        with LOCK:
            limits = _limits.pop()
            if not _limits:
                limits.restore_original_limits()


def many() -> AbstractContextManager[Any]:
    """BLAS on as many threads as there are CPUs."""
    if not MANAGED or WORKERS.count() < 2:
        return nullcontext()
    limits: AbstractContextManager[Any] = _libraries().limit(limits=WORKERS.count())
    return limits
