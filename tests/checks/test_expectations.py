"""What is written after `#=>` beside values: which are taken for equal, to the last digit that is
written, and the words for what differs. Held against `fixtures/said_checks.txt`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from autodiff_cli.checks.expectations import compare, rewritten, sides, written
from tests.said import compare as recorded

VALUES: list[Any] = [
    True, 0, 7, -12, 10**20, 0.0, -0.0, 1.5, 1 / 3, 2.0, 1e15, 999999999999999.0, 1234567.8, 1e-7,
    123456.0, 1234565.0000001, 1e300, 5e-324, math.nan, math.inf, -math.inf, [], [1, 2.5], [True],
    [[1.25, 1e-9], [3.0, -4.5]], np.zeros((0, 3)), np.zeros((2, 0)), np.array(0.1, np.float32),
    np.linspace(0, 1, 5), np.array([math.nan, 1.0]), np.arange(1000), np.array([True, False]),
    (1, 2), [[1], [2, 3]], ["a"], "a word", "two\nlines", "x" * 200, "x" * 201, None, {"a": 1},
]  # fmt: skip
WRITTEN = [
    "", "1", "1.0", "1.", "1e0", "1.50", "1.5", "1.45", "1.46", "1_000", "1e3", ".5", "+2", "- 2",
    "True", "Truer", "inf", "-inf", "nan", "[]", "[[]]", "[1 2]", "[1, 2.5]", "[1, 2.5", "[1,, 2]]",
    "[[1, 2]]", "[nan, 1]", "[1.2, 1e-9]", "a", "a word", "1e999", "1e-999", "[" * 65 + "]" * 65,
    "[" * 66 + "]" * 66, "0.1", "0.10", "0.0", "7", "7.0000003", "10000001", "0.33333", "0.3333",
    "0.334", "None", "(1, 2)", "[[1], [2, 3]]", "[True, 0]", "1,", "[1,2]x",
]  # fmt: skip


def test_what_is_written_is_what_it_was_written_from() -> None:
    for value in VALUES:
        text = written(value)
        if text is not None:
            assert compare(text, value) is None, (value, text)
    assert written(np.arange(1001)) is None and written("x" * 201) is None


def test_what_is_equal_and_what_differs(request: pytest.FixtureRequest) -> None:
    found = [f"{str(value)[:40]!r}: {written(value)}" for value in VALUES]
    for text in WRITTEN:
        said = [compare(text, value) for value in VALUES]
        equal = [str(v)[:9] for v, words in zip(VALUES, said, strict=True) if words is None]
        found += [f"{text[:60]!r}: {' '.join(equal)}", *(words or "" for words in said[7:26:6])]
    for value in (np.linspace(0, 1, 5), [[1.0, 2.0], [3.0, 4.0]], 1.0, "a"):
        found += ["\n".join(sides(text, value)) for text in ("[0, 0.2, 0.5]", "[[1, 2], [3, 5]]")]
    recorded(request, found)


@pytest.mark.parametrize(("text", "value", "unit"), [
    ("1.5", 1.5, 0.05), ("1.50", 1.5, 0.005), ("-2.5e3", -2500.0, 50.0), ("1e-3", 1e-3, 5e-4),
    ("20", 20.0, 2e-6), ("0.0", 0.0, 0.05),
])  # fmt: skip
def test_half_a_unit_of_the_last_digit_is_near(text: str, value: float, unit: float) -> None:
    """Of whole numbers a ten millionth."""
    for sign in (-1, 1):
        assert compare(text, value + sign * unit * (1 - 1e-10)) is None
        assert compare(text, value + sign * unit * (1 + 1e-8)) is not None


def test_new_values_stand_where_the_old_ones_were() -> None:
    for mark in ("", "\ufeff"):
        for end in ("\n", "\r\n"):
            raw = f"{mark}x = 1{end}y = 2  #=> 3{end}z = 4  #=>5{end}"
            new = f"{mark}x = 1{end}y = 2  #=> 20{end}z = 4  #=> 4{end}"
            assert rewritten(raw, [(17, 18, "20"), (29, 30, "4")]) == new
