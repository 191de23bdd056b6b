"""How many threads the BLAS library behind NumPy uses, for one product at a time.

A library does not tune the process it lives in: `many` does something only when the command asked
for it at its start, where it holds BLAS to one thread because starting more costs more than a small
program.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager, nullcontext
from typing import Any

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


def single() -> AbstractContextManager[Any]:
    """BLAS on one thread: its callers are threads themselves."""
    if MANAGED:
        return nullcontext()
    limits: AbstractContextManager[Any] = _libraries().limit(limits=1)
    return limits


def many() -> AbstractContextManager[Any]:
    """BLAS on as many threads as there are CPUs."""
    if not MANAGED or WORKERS.count() < 2:
        return nullcontext()
    limits: AbstractContextManager[Any] = _libraries().limit(limits=WORKERS.count())
    return limits
