"""No program depends on how our messages are worded: the exceptions that it catches, and what they
say, come from facts."""

from __future__ import annotations

from dataclasses import replace

import pytest

from autodiff_cli.errors import AutodiffError, Diagnostic
from autodiff_cli.session import run
from autodiff_cli.source import Source
from tests.oracles.refusals import NAMES
from tests.recorded import cases, same_text

REWORDED = "the words of this message are of no importance"
CAUGHT = [
    c for c in cases("programs") if c["id"].startswith(("caught", "errors")) and not c["error"]
]
REFUSED = [c for c in cases("refusals") if c["type"] != "SyntaxError"]
CLASSES = [c["source"] for c in REFUSED if ";;" not in c["source"] and "import" not in c["source"]]


@pytest.fixture
def reworded(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = AutodiffError.__init__

    def init(self: AutodiffError, diagnostic: Diagnostic) -> None:
        begin(self, replace(diagnostic, message=REWORDED))

    monkeypatch.setattr(AutodiffError, "__init__", init)


@pytest.mark.usefixtures("reworded")
@pytest.mark.parametrize("case", CAUGHT, ids=lambda case: case["id"])
def test_what_programs_print_of_exceptions(case: dict[str, str]) -> None:
    found = run(Source(case["source"], "program.py"))
    assert found.error is None
    pairs = zip(found.stdout.splitlines(), case["stdout"].splitlines(), strict=True)
    assert all(REWORDED in ours or same_text(ours, theirs) for ours, theirs in pairs)
    assert found.stdout.count(REWORDED) <= found.stdout.count("\n") / 3


def caught(chosen: list[str]) -> str:
    """A program that prints the class of the exception of each line."""
    parts = [
        f"try:\n    {line}\nexcept Exception as e: print(type(e).__name__)\n" for line in chosen
    ]
    return NAMES + "".join(parts)


@pytest.mark.parametrize("start", range(0, len(CLASSES), 100))
def test_classes_of_exceptions(start: int, request: pytest.FixtureRequest) -> None:
    source = Source(caught(CLASSES[start : start + 100]), "program.py")
    plain = run(source)
    request.getfixturevalue("reworded")
    other = run(source)
    assert other.stdout == plain.stdout and plain.stdout
