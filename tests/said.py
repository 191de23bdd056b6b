"""What tests were shown, word for word, beside what was recorded of it: `RECORD_SAID=1` writes it.

A file for a folder, a heading for a test. What is long has its beginning there, and a checksum of
the rest.
"""

from __future__ import annotations

import atexit
import os
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from zlib import crc32

import pytest

FIXTURES = Path(__file__).parent / "fixtures"
RECORD = bool(os.environ.get("RECORD_SAID"))
LINES, WIDTH = 80, 240
CONTROL = {i: f"\\x{i:02x}" for i in (*range(32), 127)}
# What rounding leaves of differences depends on the processor.
DIFFERENCE, NUMBER = '"max_abs_diff": ', r"[\d.e-]+"
ROUNDING = f"(?<={DIFFERENCE}){NUMBER}"
# So do the last of a float's digits.
LONG = re.compile(r"\d\d*\.\d{12,}(?:e[+-]?\d+)?")
# What only this machine, this release or this run says, by what stands before it.
BEHIND = {
    words: re.compile(re.escape(words) + varying)
    for words, varying in {
        DIFFERENCE: NUMBER, "best of ": r"\d+", 'seconds": ': NUMBER,
        'time="': r"[\d.]+", "autodiff-crash-": r"\w+", "in autodiff ": r"[\d.]+",
        "0x": r"[0-9a-f]{6,}", '.py", line ': r"\d+(?=, in )",
    }.items()
}  # fmt: skip
# Folders and times. Both begin with a sign, by which they are found quickly.
VARYING = (
    re.compile(r"/(?<![\w)\]<]/)(?=[\w.-])[^\s<>\"']*/(?=\w)"),
    re.compile(r"\d\d*(?:\.\d+)? ?(?:s|ms|us|µs|ns|min)\b"),
)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… {len(text)} {_sum(text)}"


def _sum(text: str) -> str:
    return f"{crc32(text.encode('utf-8', 'replace')):08x}"


def rounded(text: str) -> str:
    return LONG.sub(lambda digits: f"{float(digits[0]):.12g}", text)


def lines_of(text: str, most: int = LINES) -> list[str]:
    """The lines of a text as they are recorded."""
    for words, varying in BEHIND.items():  # ahead of times: a drawn name may end as one does
        if words in text:
            text = varying.sub(f"{words}#", text)
    for varying in VARYING:
        text = varying.sub("#", text)
    found = rounded(text).split("\n")
    if len(found) > most:
        found[most:] = [f"… {len(found)} lines {_sum(chr(10).join(found[most:]))}"]
    return [_cut(line.translate(CONTROL), WIDTH) for line in found]


class Said:
    """What the tests of a folder were shown."""

    def __init__(self, folder: str):
        self.path = FIXTURES / f"said_{folder}.txt"
        self.tests: dict[str, list[str]] = {}
        text = self.path.read_text("utf-8") if self.path.exists() else ""
        for part in text.split("\n== ")[1:]:
            heading, *lines = part.rstrip("\n").split("\n")
            self.tests[heading] = [line[1:] for line in lines]
        if RECORD:
            atexit.register(self.write)

    def write(self) -> None:
        rows = (f"\n== {test}" + "".join(f"\n {line}" for line in lines)
                for test, lines in sorted(self.tests.items()))  # fmt: skip
        self.path.write_text("".join(rows) + "\n", "utf-8")

    def compare(self, test: str, texts: Iterable[str], most: int) -> None:
        """Hold what a test was shown against what is recorded of it."""
        found = [line for text in texts for line in lines_of(text, most)]
        test = test.translate(CONTROL)
        if RECORD:
            self.tests[test] = found
        assert found == self.tests[test]


@cache
def said(folder: str) -> Said:
    return Said(folder)


def compare(request: pytest.FixtureRequest, texts: Iterable[str], most: int = LINES) -> None:
    """Hold what the test of a fixture was shown against what is recorded of it, `most` lines of
    each text as they are."""
    node = request.node
    said(node.path.parent.name).compare(f"{node.path.name}::{node.name}", texts, most)
