"""On the path of a command that a test starts: `math.lgamma` of a program ends its process, as a
full stack of the interpreter does, `math.gamma` is a call that no alarm interrupts, `math.erfc`
leaves as OpenBLAS does where it gets no memory."""

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


def _leave(number: float) -> float:
    os._exit(1)


math.lgamma, math.gamma, math.erfc = _end, _stay, _leave
