"""One thread of the team: NumPy's settings, and jobs until the process ends."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from .threads import Inbox


def start(inbox: Inbox, buffer: int) -> None:
    """Start a thread that takes jobs of an inbox; `buffer` is the size of NumPy's."""
    threading.Thread(target=_work, args=(inbox, buffer), daemon=True).start()


def _work(inbox: Inbox, buffer: int) -> None:
    with np.errstate(all="ignore"):
        np.setbufsize(buffer)
        while True:
            at, job, place, done = inbox.get()
            try:
                if place is not None:
                    os.sched_setaffinity(0, {place})
                job()
            except BaseException as failure:
                done.put((at, failure))
            else:
                done.put((at, None))
            del job, done
