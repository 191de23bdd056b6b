"""What is left of an internal error: one diagnostic, and the traceback in a file."""

from __future__ import annotations

from ..errors import AutodiffError, fail
from .streams import Environment


def crashed(error: BaseException, env: Environment, debug: bool) -> AutodiffError:
    """E900 for an exception nobody expected; its traceback is saved, or shown with `--debug`."""
    import traceback

    text = "".join(traceback.format_exception(error))
    if debug:
        env.note(text.rstrip("\n"))
    where = _saved(text)
    summary = (f"{type(error).__name__}: {error}".split("\n")[0])[:200]
    return fail(
        "E900",
        f"internal error: {summary}",
        help=f"please report it with the traceback saved in {where}"
        if where
        else "run again with --debug and report the traceback",
    )


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
