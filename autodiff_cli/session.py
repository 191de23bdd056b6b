"""The facade over the language: run a program under options, get a report of values and gradients.

The command line, the REPL, checks and Python users all come through here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .language.program.report import Options, Report, TensorRecord

if TYPE_CHECKING:
    from .source import Source


def run(source: Source, options: Options | None = None) -> Report:
    """Run one program to its end and report; what it does wrong is in the report too."""
    from .graph.state import own_state
    from .language.program.running import run_program

    with own_state():
        return run_program(source, options or Options())


__all__ = ["Options", "Report", "TensorRecord", "run"]
