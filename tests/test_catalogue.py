"""Every error code is explained, and the help texts fit a terminal of 80 columns."""

from __future__ import annotations

import pytest

from autodiff_cli.catalogue import ENTRIES, TOPICS, explain_code
from autodiff_cli.errors import Exit, kinds
from tests.together import together


def test_every_code() -> None:
    assert list(ENTRIES) == list(kinds()) == sorted(kinds())


@together(kinds())
def test_page(code: str) -> None:
    entry = ENTRIES[code]
    assert entry.title and not entry.title.endswith(".")
    assert entry.cause.count(".") >= 2
    assert entry.cause.endswith(".")
    assert entry.wrong != entry.right
    page = explain_code(code)
    assert page.startswith(f"{code} ({kinds()[code]}): ")
    assert "\nWrong:\n    " in page and "\nRight:\n    " in page
    assert all(len(line) <= 88 for line in page.splitlines())


def test_lookup() -> None:
    assert explain_code("e302") == explain_code("E302")
    assert explain_code("W501").startswith("W501 (nan): ")
    for code in ("E999", "", "302", "sum"):
        with pytest.raises(KeyError):
            explain_code(code)


def test_topics() -> None:
    assert {
        "exit-codes", "json", "formats", "config", "language", "leaves", "snippets", "randomness",
        "limits", "graph", "repl", "check",
    } == set(TOPICS)  # fmt: skip
    for text in TOPICS.values():
        assert text.endswith("\n")
        assert max(map(len, text.splitlines())) <= 80
    assert all(f"\n    {code.value:<5}" in TOPICS["exit-codes"] for code in Exit)
