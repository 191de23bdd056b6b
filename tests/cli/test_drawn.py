"""Command lines and sessions that were drawn at random (`tests/oracles/drawn.py`): what they show
is held against `fixtures/said_cli.txt`, and programs against what PyTorch or Python prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from autodiff_cli.session import Options, run
from autodiff_cli.source import Source

from ..recorded import cases, same_but_words
from ..together import together
from .conftest import Cli

MOST_LINES = 3
DRAWN = cases("drawn")
LINES, PROGRAMS = DRAWN["lines"], DRAWN["programs"]


@pytest.mark.parametrize(
    "line", LINES, ids=[f"{i} {' '.join(line[0])}" for i, line in enumerate(LINES)]
)
@pytest.mark.usefixtures("clock")
def test_command_lines(cli: Cli, tmp_path: Path, line: list) -> None:
    words, text, file, width, typed = line
    if file:
        (tmp_path / file).write_text(text)
    result = cli(
        *words, *[file][: bool(file)], stdin=typed, tty=True, COLUMNS=str(width), NO_COLOR="1"
    )
    assert "E900" not in result.err and "Traceback" not in result.err


@together([(i, *case) for i, case in enumerate(PROGRAMS)], name=str, group=10)
def test_programs(i: int, source: str, stdout: str) -> None:
    report = run(Source(source, "program.py"), Options(backward=False))
    assert same_but_words(report.stdout, stdout)
