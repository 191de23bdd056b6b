"""Nothing depends on how our messages are worded: the exceptions that a program catches and what
they say, and the places, labels, notes and helps of an error, come from facts."""

from __future__ import annotations

import json
import random
from dataclasses import replace

import pytest

from autodiff_cli.errors import AutodiffError, Diagnostic
from autodiff_cli.language.values.exceptions import class_of
from autodiff_cli.session import run
from autodiff_cli.source import Source
from tests.oracles.refusals import FIXTURE, program
from tests.oracles.words import NATIVE
from tests.recorded import cases, same_text

REWORDED = "the words of this message are of no importance"
CAUGHT = [
    c for c in cases("programs") if c["id"].startswith(("caught", "errors")) and not c["error"]
]


@pytest.fixture
def reworded(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = AutodiffError.__init__

    def init(self: AutodiffError, diagnostic: Diagnostic) -> None:
        words = diagnostic.message.split()
        random.Random(len(diagnostic.message)).shuffle(words)
        begin(self, replace(diagnostic, message=" ".join([REWORDED, *words])))

    monkeypatch.setattr(AutodiffError, "__init__", init)


@pytest.mark.usefixtures("reworded")
@pytest.mark.parametrize("case", CAUGHT, ids=lambda case: case["id"])
def test_what_programs_print_of_exceptions(case: dict[str, str]) -> None:
    found = run(Source(case["source"], "program.py"))
    assert found.error is None
    pairs = zip(found.stdout.splitlines(), case["stdout"].splitlines(), strict=True)
    assert all(REWORDED in ours or same_text(ours, theirs) for ours, theirs in pairs)
    assert found.stdout.count(REWORDED) <= found.stdout.count("\n") / 3


WRONG = [
    (text, "wrong.py" if "import torch" in text else "wrong.expr")
    for path in (*(FIXTURE.with_name(f"{n}_programs.txt") for n in ("wrong", "helped")), NATIVE)
    for text in path.read_text("utf-8").split("=====\n")
]
# The first 800 lines are calls of one op each, of which the advice is of a few kinds; of what
# comes by the same places as its neighbours every sixth is enough.
WRONG += [(program(c["source"]), "wrong.py") for c in json.loads(FIXTURE.read_text("utf-8"))[800:]]
WRONG = WRONG[::6]


def told(case: tuple[str, str]) -> object:
    """The error of a program without its message: code, class, places, labels, notes and helps."""
    error = run(Source(*case)).error
    if error is None:
        return None
    d = error.diagnostic
    labels = [(label.span.start, label.span.end, label.text) for label in d.labels]
    span = d.span and (d.span.start, d.span.end)
    cls = class_of(error)
    return d.code, cls and cls.name, span, d.label, labels, d.notes, d.helps


@pytest.mark.parametrize("start", range(0, len(WRONG), 200))
def test_advice_and_places(start: int, request: pytest.FixtureRequest) -> None:
    cases = WRONG[start : start + 200]
    plain = [told(case) for case in cases]
    request.getfixturevalue("reworded")
    assert [told(case) for case in cases] == plain
    assert sum(error is not None for error in plain) > len(cases) / 2
