"""What is left of an internal error: one diagnostic, and the traceback in a file."""

from __future__ import annotations

from collections.abc import Callable

from .errors import AutodiffError, fault
from .version import __version__


def crashed(error: BaseException, show: Callable[[str], None] | None = None) -> AutodiffError:
    """E900 for an exception nobody expected; its traceback is saved, and `--debug` shows it."""
    import traceback

    if isinstance(error.__cause__, KeyboardInterrupt):
        raise error.__cause__  # in `__set_name__`: Python before 3.12 hides it in a RuntimeError
    if isinstance(error, ModuleNotFoundError) and error.name:
        return fault("E203 package-missing", error.name.partition(".")[0])
    text = "".join(traceback.format_exception(error))
    if show is not None:
        show(text.rstrip("\n"))
    where = _saved(text)
    summary = traceback.format_exception_only(error)[-1].split("\n")[0][:200]
    what = (
        f"the program and the traceback saved in {where}"
        if where
        else "the program and the traceback that `--debug` shows"
    )
    return fault("E900 internal-error", summary, what, __version__)


def _saved(text: str) -> str | None:
    import os
    import tempfile

    try:
        handle, path = tempfile.mkstemp(prefix="autodiff-crash-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(text)
    except OSError:
        return None
    return path
