"""On the path of a command that a test starts: `math.lgamma` of a program ends its process, as a
full stack of the interpreter does, and `math.gamma` is a call that no alarm interrupts."""

from __future__ import annotations

import math
import os
import signal
import time


def _end(number: float) -> float:
    os.kill(os.getpid(), signal.SIGSEGV)
    return number


def _stay(number: float) -> float:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    time.sleep(60)
    return number


math.lgamma, math.gamma = _end, _stay
