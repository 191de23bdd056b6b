"""What a process of the pytest plugin runs."""

from __future__ import annotations

from dataclasses import replace

from ..checks.model import FileResult, Settings
from ..checks.runner import check_file
from ..render.plain import plain


def check(file: str, settings: Settings) -> FileResult:
    """Check a file, with what writes snapshots."""
    return check_file(file, replace(settings, plain=plain))
