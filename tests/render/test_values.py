"""Arrays as text: on one line, cut to a width with true counts, distributions."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from autodiff_cli.render.values import Look, brief, cell_lines, fit_lines, sparkline

from ..together import together


@together(
    [
        (np.array(100.0), "100"),
        (np.array([1.0, -20.0, 3.5]), "[1, -20, 3.5]"),
        (np.array([[7.0, 10.0], [13.0, 16.0]]), "[[7, 10], [13, 16]]"),
        (np.array([True, False]), "[True, False]"),
        (np.array([np.nan, np.inf, 1]), "[nan, inf, 1]"),
        (np.arange(10.0), "norm 16.8819 min 0 max 9"),
        (np.full(10, np.nan), "nothing finite"),
        (np.ones(12, bool), "12 of 12 True"),
        (np.zeros((2, 0)), "[[], []]"),
    ]
)
def test_one_line(array: np.ndarray, text: str) -> None:
    assert brief(array) == text


def test_columns_left_out_are_counted() -> None:
    row = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"
    assert fit_lines([row], 26, cut=True) == ["[1, 2, … 8 more columns]"]
    corner = cell_lines(np.arange(600.0).reshape(3, 200), Look(max_elements=10))[1]
    (cut,) = fit_lines([corner.rstrip(",")], 25, cut=True, columns=200)
    assert cut.endswith("… 199 more columns]")
    assert fit_lines(["[12345678901234567890]"], 5, cut=True) == ["[12345678901234567890]"]


@given(st.lists(st.integers(-9999, 9999), min_size=1, max_size=40), st.integers(12, 80))
def test_wrapped_rows_lose_nothing(numbers: list[int], width: int) -> None:
    lines = fit_lines([f"[{', '.join(map(str, numbers))}]"], width)
    assert all(len(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == str(numbers).replace(" ", "")


def test_points_stand_below_each_other() -> None:
    lines = cell_lines(np.array([[1.5, -20.25], [3.0, np.nan]]), Look())
    assert lines == ["[[  1.5 , -20.25],", " [  3   ,    nan]]"]
    assert cell_lines(np.array([0.0, 0.25, -3.0]), Look()) == ["[0, 0.25, -3]"]


def test_what_rounding_leaves_of_zero_is_zero() -> None:
    for scale in (1.0, 1e-5, 1e3):
        dust = np.array([1.5, 1.2e-17, -2.3e-16, -0.0]) * scale
        assert cell_lines(dust, Look())[0].endswith(", 0, 0, 0]")
    # What may be a number of its own is shown: much smaller ones, large ones, one alone.
    for numbers in ([1.0, 1e-30], [1.0, 1e-9], [1e17, 1.0], [1.2e-17]):
        assert " 0" not in cell_lines(np.array(numbers), Look())[0]


def test_distributions() -> None:
    assert sparkline(np.zeros(5)) == ""
    assert sparkline(np.array([0, 0.01, -0.01])) == "log10|g|  -2.0 everywhere"
    shown = sparkline(np.geomspace(1e-8, 1, 1000))
    assert shown.startswith("log10|g|  -8.0 ")
    assert shown.endswith(" 0.0")
    assert sparkline(np.array([np.nan, np.inf])) == ""
