"""Programs with one thing changed (`tests/oracles/changed.py`) print here what they print in
PyTorch, and fail where and as they do there; what is said of what fails is recorded."""

from __future__ import annotations

from typing import Any

import pytest

from autodiff_cli.language.values.exceptions import class_of
from autodiff_cli.session import Options, run
from autodiff_cli.source import Source
from tests.oracles.words import told
from tests.recorded import cases, same_but_words
from tests.said import compare

CASES = cases("changed")
GROUP = 12


@pytest.mark.parametrize("first", range(0, len(CASES), GROUP))
def test_as_pytorch(first: int, request: pytest.FixtureRequest) -> None:
    words = []
    for case in CASES[first : first + GROUP]:
        report = run(Source(case["source"], "program.py"), Options(backward=False))
        error, wanted = report.error, case["error"]
        assert same_but_words(report.stdout, case["stdout"]), case["source"]
        assert (error is None) is (wanted is None), case["source"]
        if error is not None:
            cls, span = class_of(error), error.span
            assert cls is not None and span is not None
            assert (cls.name, span.line) == (wanted["type"], wanted["line"]), case["source"]
            words.append(told(report))
    compare(request, words)


def test_each_kind_of_outcome_is_there() -> None:
    kinds: set[Any] = {case["error"] and case["error"]["type"] for case in CASES}
    assert kinds > {None, "TypeError", "RuntimeError", "ValueError", "IndexError", "AttributeError"}
