"""What a check says at its end, of items of every kind, in every form: exit code, summary, what is
diagnosed, the documents that it writes."""

from __future__ import annotations

import io
from itertools import product
from pathlib import Path

import pytest

from autodiff_cli.checks.model import LETTERS, FileResult, Item
from autodiff_cli.cli.commands.check import OPTIONS, Checker
from autodiff_cli.cli.streams import Environment
from autodiff_cli.errors import Diagnostic
from autodiff_cli.source import Source, Span
from tests.said import compare

SOURCE = Source("x = [1, 2]\nloss = x | x\n", "a|b.expr")
SPANS = [Span(SOURCE, 0, 1), None]
VALUES = [
    {}, {"verbose": True}, {"quiet": True}, {"collect": True}, {"format": "json"},
    {"format": "json", "quiet": True}, {"durations": 2}, {"junit": "it.xml"}, {"allow_empty": True},
    {"keyword": "no such"}, {"last_failed": True}, {"junit": "no/it.xml"}, {"color": "always"},
]  # fmt: skip
VARIABLES: list[dict[str, str]] = [
    {}, {"GITHUB_ACTIONS": "1"}, {"GITHUB_ACTIONS": "1", "GITHUB_STEP_SUMMARY": "it.md"},
    {"GITHUB_ACTIONS": "1", "GITHUB_STEP_SUMMARY": "no/it.md"}, {"GITHUB_STEP_SUMMARY": "it.md"},
]  # fmt: skip


def item(status: str, at: int, severity: str) -> Item:
    code = "W602" if severity == "warning" else "E602"
    told = Diagnostic(code, f"it is {status}\x07", SPANS[at % 2], severity=severity)
    given = told if severity else None
    return Item(SOURCE.name, "grad", "x" * (at % 3), at + 1, status, given, at / 8, "so" * (at % 2))


@pytest.mark.parametrize("statuses", [(), tuple(LETTERS), *((status,) for status in LETTERS)])
def test_ends(
    statuses: tuple[str, ...], request: pytest.FixtureRequest, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    found = []
    for values, variables, severity in product(VALUES, VARIABLES, ["", "warning", "error"]):
        out, err = io.StringIO(), io.StringIO()
        given = {option.key: option.start for option in OPTIONS} | values
        checker = Checker(given, ["."], Environment(None, out, err, variables))
        items = [item(status, at, severity) for at, status in enumerate(statuses)]
        checker.results = [FileResult(SOURCE.name, items, 0.5), FileResult("empty.expr")]
        checker.changes.written = len(values)
        code = checker._finish(1.25)
        said = [f"{values} {variables} {severity} {int(code)}", out.getvalue(), err.getvalue()]
        for path in sorted(tmp_path.iterdir()):
            said.append(f"{path.name}: {path.read_text('utf-8')}")
            path.unlink()
        found.append("\n".join(said))
    compare(request, ["\n".join(found[at::13]) for at in range(13)], 4)
