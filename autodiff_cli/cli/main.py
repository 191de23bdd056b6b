"""The command `autodiff`: makes the process that works, and calls the command there.

Importing this module must stay cheaper than anything else: the process that waits has it.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .streams import Environment


def main(argv: list[str] | None = None, environment: Environment | None = None) -> int:
    """Run a command line; the exit code."""
    alone = argv is None and environment is None
    if alone:
        sys.unraisablehook = _unraisable
    if not alone or sys.platform != "linux":
        from .dispatch import dispatched

        return dispatched(argv, environment)
    try:
        from .supervisor import supervised
    except KeyboardInterrupt:
        return 130
    return supervised(_dispatched)


def _dispatched() -> int:
    from .dispatch import dispatched
    from .light_scipy import prepare

    prepare()
    return dispatched(None, None)


# Python asks the system for 16 KB whenever a call goes beyond what it has for calls, and gives them
# back as it ends. What a call of 1 MB leaves of its memory is enough for those within it.
_dispatched.__code__ = _dispatched.__code__.replace(co_stacksize=1 << 17)


def _unraisable(lost: Any) -> None:
    """Say nothing of what a generator of a program raised when it was let go, or yielded again: a
    limit is looked at where the program goes on."""
    from ..errors import AutodiffError

    quiet = AutodiffError, MemoryError, RecursionError
    if not (isinstance(lost.exc_value, quiet) or hasattr(lost.object, "gi_frame")):
        sys.__unraisablehook__(lost)
