"""Writes what every program of samples/errors makes the command say, beside the program.

Run it with `python -m tests.oracles.error_samples` after a message was changed on purpose, and read
the difference: the snapshots are what users see.
"""

from __future__ import annotations

import io
import os
import re
import shlex
from pathlib import Path

from autodiff_cli.cli.main import main as command
from autodiff_cli.cli.streams import Environment

FOLDER = Path(__file__).parents[2] / "samples" / "errors"
ARGUMENTS = re.compile(rb"\A# args: (.*)\n")


def programs() -> list[Path]:
    """The programs, in the order of their codes."""
    return sorted(path for path in FOLDER.iterdir() if path.suffix in (".expr", ".py"))


def arguments(path: Path) -> list[str]:
    """Options that the first line of a program asks for: `# args: --nan error`."""
    found = ARGUMENTS.match(path.read_bytes())
    return shlex.split(found[1].decode()) if found else []


def said(path: Path) -> str:
    """What the command says of a program: its exit code, and all of its standard error."""
    before = Path.cwd()
    out, err = io.StringIO(), io.StringIO()
    os.chdir(FOLDER)
    try:
        code = command(
            ["run", *arguments(path), path.name], Environment(io.StringIO(), out, err, {})
        )
    finally:
        os.chdir(before)
    return f"exit code {code}\n\n{err.getvalue()}"


def main() -> None:
    """Write the snapshots."""
    for path in programs():
        path.with_suffix(".txt").write_text(said(path), encoding="utf-8")


if __name__ == "__main__":
    main()
