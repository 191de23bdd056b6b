"""Helps tried out: what an error advises is put into the program, as its reader would."""

from __future__ import annotations

import re

from autodiff_cli.cli.fixing import applied, proposed
from autodiff_cli.errors import Diagnostic
from autodiff_cli.session import run
from autodiff_cli.source import Source

_NAMES_CODE = re.compile(r"write `|did you mean|call it|reduce it|make it first|convert|begin the")


def names_code(diagnostic: Diagnostic) -> bool:
    """Whether a help says what to type, not a signature or a sketch of it."""
    return any(
        _NAMES_CODE.search(help) and "..." not in help and not re.search(r"\(\w+, .*=", help)
        for help in diagnostic.helps
    )


def better(text: str, name: str = "wrong.py") -> str:
    """A program that does what a help says and runs, or fails later than the wrong one; empty
    where there is none."""
    source = Source(text, name)
    report = run(source)
    assert report.error is not None or report.warnings
    edit = proposed(report, source, run)
    return "" if edit is None else applied(text, [edit])
