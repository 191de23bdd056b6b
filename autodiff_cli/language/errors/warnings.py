"""Warnings of the running program; each is kept once a place."""

from __future__ import annotations

from ...errors import Diagnostic
from ...graph.state import STATE


def warn(code: str, message: str, help: str = "") -> None:
    """Add a warning at the expression being evaluated."""
    warning = Diagnostic(
        code, message, STATE.span, helps=(help,) if help else (), severity="warning"
    )
    if warning not in STATE.warnings and len(STATE.warnings) < 100:
        STATE.warnings.append(warning)
