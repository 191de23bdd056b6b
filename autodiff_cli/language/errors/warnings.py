"""Warnings of the running program; each is kept once a place."""

from __future__ import annotations

from ...errors import Diagnostic
from ...graph.state import STATE

COLLECTED: list[Diagnostic] = []


def warn(code: str, message: str, help: str = "") -> None:
    """Add a warning at the expression being evaluated."""
    warning = Diagnostic(
        code, message, STATE.span, helps=(help,) if help else (), severity="warning"
    )
    if warning not in COLLECTED and len(COLLECTED) < 100:
        COLLECTED.append(warning)
