"""The questions of `questions.txt`: programs with the answer that `autodiff why` owes.

A question begins with `#? id name verdicts causes lines`, alternatives separated by commas;
`native` at the end says that it is no snippet.
"""

from __future__ import annotations

from difflib import unified_diff
from pathlib import Path
from typing import Any, NamedTuple

from autodiff_cli.why.model import Answer

FILE = Path(__file__).with_name("questions.txt")


class Question(NamedTuple):
    """A program, the name that is asked about, and every answer that is right."""

    id: str
    name: str
    verdicts: tuple[str, ...]
    causes: tuple[str, ...]
    lines: tuple[int, ...]
    native: bool
    text: str


def questions() -> list[Question]:
    """All of them."""
    found = []
    for block in FILE.read_text("utf-8").split("#? ")[1:]:
        head, _, text = block.partition("\n")
        id, name, verdicts, causes, lines, *rest = head.split()
        found.append(
            Question(
                id,
                name,
                tuple(verdicts.split(",")),
                tuple(causes.split(",")),
                tuple(int(line) for line in lines.split(",")),
                "native" in rest,
                text,
            )
        )
    return found


def said(question: Question, answer: Answer) -> dict[str, Any]:
    """An answer in words: what is said at which lines, and the lines that a repair changes."""
    lines = unified_diff(question.text.split("\n"), (answer.fix or question.text).split("\n"), n=0)
    places = [f"{span.line}: {label}" for span, label in answer.places]
    return {
        "said": [answer.message, answer.label, *places, *answer.notes],
        "fix": list(lines)[2:],
    }
