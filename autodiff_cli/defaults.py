"""What holds where nothing else is asked for, in commands, sessions, checks and Python alike."""

from __future__ import annotations

MAX_MEMORY = 1 << 30  # bytes of the tensors of a program
MAX_STEPS = 1_000_000  # of a program
MAX_DEPTH = 1000  # calls inside of calls
CHUNK = 1 << 26  # bytes of a block of rows
TIMEOUT = 60.0  # seconds of a check
PRECISION = 6  # significant digits of numbers that are shown
MAX_ELEMENTS = 64  # of a tensor that is shown whole
