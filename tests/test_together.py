"""Rows that are one test of pytest's: none is left out, and none hides another."""

from __future__ import annotations

import pytest

from .together import together


def test_each_row_is_tried_and_those_that_fail_are_named() -> None:
    tried: list[int] = []

    @together([1, 2, 3, 4, 5], group=lambda row: "few" if row < 5 else "last")
    def is_odd(row: int) -> None:
        tried.append(row)
        assert row % 2, row
        if row == 3:
            pytest.fail("three")

    (mark,) = is_odd.pytestmark
    assert mark.args == ("rows", [[1, 2, 3, 4], [5]]) and mark.kwargs["ids"] == ["few", "last"]
    with pytest.raises(AssertionError, match="2") as caught:
        is_odd(rows=[1, 2, 3, 4])
    assert tried == [1, 2, 3, 4] and caught.value.__notes__ == ["3 of 4 fail:\n2\n3\n4"]


def test_several_parameters_and_fixtures(tmp_path: object) -> None:
    @together([(1, "a"), (2, "b")], group=1)
    def given(number: int, letter: str, tmp_path: object) -> None:
        found.append((number, letter, tmp_path))

    found: list[tuple[int, str, object]] = []
    given(rows=[(1, "a"), (2, "b")], tmp_path=tmp_path)
    assert found == [(1, "a", tmp_path), (2, "b", tmp_path)]
