"""Records what the command says, word for word, of the programs of `refusals.txt`, of
`fixtures/wrong_programs.txt` and of `native_errors.txt`.

Run it with `python -m tests.oracles.words` after a message was changed on purpose, and read what
differs: these are the words that users see.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path

from autodiff_cli.errors import AutodiffError
from autodiff_cli.render.diagnostics import render
from autodiff_cli.session import run
from autodiff_cli.source import Source
from tests.oracles.refusals import lines, program

FIXTURES = Path(__file__).parents[1] / "fixtures"
FIXTURE = FIXTURES / "words.json.gz"
NATIVE = Path(__file__).with_name("native_errors.txt")


# Words of newer versions of Python and NumPy, and those that stand for them here.
NEWER = {
    r"cannot use '\w+' as a (?:set element|dict key) \((.*)\)$": r"\1",
    r"(too many values to unpack \(expected \d+), got \d+\)$": r"\1)",
    r"(non-default argument '\w+' follows default argument) '\w+'$": r"\1",
    r"type dtype\('(\w+)'\) not compatible with finfo$": r"type <class 'numpy.\1'> not inexact",
}


def said(error: AutodiffError) -> str:
    """All that is said of an error."""
    return same_words(render(error.diagnostic, "full", False, 100, unicode=False))


def same_words(text: str) -> str:
    """A text in the words of Python 3.11 and NumPy 2.4."""
    for newer, older in NEWER.items():
        text = re.sub(newer, older, text, flags=re.MULTILINE)
    return text


def wrong() -> Iterator[tuple[str, str]]:
    """Native programs that fail: their texts, also as keys."""
    for path in (FIXTURES / "wrong_programs.txt", NATIVE):
        for text in path.read_text("utf-8").split("=====\n"):
            yield text, text


def words() -> dict[str, str]:
    """What is recorded, by program."""
    found: dict[str, str] = json.loads(gzip.decompress(FIXTURE.read_bytes()))
    return found


def main() -> None:
    """Write the fixture."""
    known = words() if FIXTURE.exists() else {}
    found = {}
    cases = [(line, program(line), "refused.py") for line in lines()]
    for key, text, name in (*cases, *((k, t, "wrong.expr") for k, t in wrong())):
        error = run(Source(text, name)).error
        if error is None:
            print("not refused:", key)
            continue
        found[key] = said(error)
        if known.get(key, found[key]) != found[key]:
            print(f"--- {known[key]}\n+++ {found[key]}")
    with gzip.GzipFile(FIXTURE, "wb", mtime=0) as file:
        file.write((json.dumps(found, indent=0) + "\n").encode())
    print(len(found), "programs")


if __name__ == "__main__":
    main()
