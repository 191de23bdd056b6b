"""Widths, safe characters, ASCII stand-ins and numbers in rendered text."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from autodiff_cli.checks.model import FileResult, Item
from autodiff_cli.errors import Diagnostic
from autodiff_cli.render.checks import (
    WORDS,
    check_document,
    diff_text,
    durations,
    failed_line,
    file_line,
    step_summary,
    summary,
)
from autodiff_cli.render.heat import background, heated, scale_of
from autodiff_cli.render.pictures.boxes import array_lines
from autodiff_cli.render.text import (
    Shown,
    ascii_text,
    broken,
    clip,
    clip_inside,
    complaint,
    fitted_page,
    for_encoding,
    format_count,
    format_number,
    format_shape,
    in_columns,
    matrix_lines,
    pad,
    printable,
    prose,
    tamed,
    text_width,
)
from autodiff_cli.render.values import (
    Look,
    brief,
    cell_lines,
    extent,
    extremes,
    fit_lines,
    joined,
    shortest,
    sparkline,
    statistics,
    strict,
    strict_number,
)
from tests.said import compare

from ..together import together


def test_widths() -> None:
    assert text_width("abc") == 3
    assert text_width("日本") == 4
    assert text_width("e\u0301") == text_width("e\u0300") == 1
    assert pad("日", 4) == "日  "
    assert pad("7", 3, ">") == "  7"
    assert clip("日本語", 5) == "日本…"
    assert clip("abc", 3) == "abc"


def test_printable() -> None:
    assert printable("a\tb\x1b\n") == "a    b\\x1b\\n"
    assert printable("\ud800") == "\\ud800"
    assert len(printable("x" * 10_000, 100)) == 101


def test_of_the_codes_that_programs_print_terminals_get_colours() -> None:
    kept = "a\tb\r\n\x08\x1b[1;31mred\x1b[0m é日👩\u200d👩"
    assert tamed(kept) == kept
    assert tamed("\x1b]52;c;aGk=\x07\x1b[2J\x9b2J\0") == r"\x1b]52;c;aGk=\x07\x1b[2J\x9b2J\x00"


def test_encodings() -> None:
    tree = "└── x × 2 …"
    assert for_encoding(tree, "utf-8") == tree
    assert for_encoding(tree, "ascii") == "`-- x x 2 ..."
    assert for_encoding(tree, None) == for_encoding(tree, "no-such-encoding") == ascii_text(tree)
    assert ascii_text("é") == "\\xe9"


def test_numbers() -> None:
    assert format_number(100.0) == "100"
    assert format_number(23.958297101) == "23.9583"
    assert format_number(float("-inf")) == "-inf"
    assert format_number(1e-12, 3) == "1e-12"
    assert format_number(1.5, 3, sci=True) == "1.50e+00"
    assert format_number(True) == "True"
    assert format_number(2**70) == str(2**70)
    assert format_shape((2,)) == "(2,)"
    assert format_shape((2, 3)) == "(2, 3)"
    assert format_shape(()) == "()"
    assert format_count(1, "element") == "1 element"
    assert format_count(3, "matrix", "matrices") == "3 matrices"


def test_matrices() -> None:
    assert matrix_lines(100.0) == ["100"]
    assert matrix_lines([]) == ["[]"]
    assert matrix_lines([[], []]) == ["[[],", " []]"]
    assert matrix_lines([[7.0, 10.0], [13.0, 16.0]]) == ["[[ 7, 10],", " [13, 16]]"]
    assert matrix_lines([[[1, 2]], [[3, 4]]]) == ["[[[1, 2]],", " [[3, 4]]]"]
    assert matrix_lines([1, 2, 3, 4, 5], edge=2) == ["[1, 2, ..., 4, 5]"]
    rows = [[row * 10 + column for column in range(5)] for row in range(5)]
    assert matrix_lines(rows, edge=1) == ["[[ 0, ...,  4],", " ...,", " [40, ..., 44]]"]


def test_lines_are_broken_between_words() -> None:
    assert broken("one two three", 13) == ["one two three"]
    assert broken("one two three", 9) == ["one two", "three"]
    assert broken("write `a = [1, 2]` here", 14) == ["write", "`a = [1, 2]`", "here"]
    assert broken("write `a = [1, 2]` here", 8) == ["write `a", "= [1,", "2]` here"]
    assert broken("see /a/very/long/path now", 6) == ["see", "/a/very/long/path", "now"]
    assert broken("日本 日本", 6) == ["日本", "日本"]
    assert broken("a `stray tick", 8) == ["a `stray", "tick"]


def test_prose_goes_on_below_itself() -> None:
    text = "one two three four five six seven eight"
    assert prose("help: ", text) == [f"help: {text}"]
    assert prose("help: ", text, 30) == ["help: one two three four five", "      six seven eight"]
    assert prose("help: ", "two\nlines") == ["help: two", "      lines"]
    aligned = "shapes align:   X  2  3\n                b     2    <- 3 against 2"
    assert prose("note: ", aligned, 80) == [
        "note: shapes align:   X  2  3", "                      b     2    <- 3 against 2"
    ]  # fmt: skip
    assert prose("note: ", aligned, 40) == [
        "note: shapes align:", "        X  2  3", "        b     2    <- 3 against 2"
    ]  # fmt: skip


PAGE = """\
Exit codes

  0    done
  1    the answer is no: an assertion or
       a gradient check failed
  loss = sum(A @ A.T) + sum(A)     the objective
  -> as it is

Several files: the first
of them that occurred.
"""


def test_a_page_fits_the_terminal() -> None:
    assert fitted_page(PAGE, 80) == PAGE
    assert (
        fitted_page(PAGE, 30)
        == """\
Exit codes

  0    done
  1    the answer is no: an
       assertion or a gradient
       check failed
  loss = sum(A @ A.T) + sum(A)
      the objective
  -> as it is

Several files: the first
of them that occurred.
"""
    )
    assert fitted_page(PAGE, 22).endswith("Several files: the\nfirst of them that\noccurred.\n")


TEXTS = [
    "", "a", "abc", "日本語", "e\u0301é", "one two three", "call `f(x, y)` and `g` then", "a" * 9,
    "  led by spaces", "x\ty", "wider日than本it語", "-1.25e-10", "first line\n\n  second, indented",
]  # fmt: skip
NUMBERS = [
    0.0, -0.0, 1.0, -1.5, 0.1, 1 / 3, 2 / 3, 1e-5, 1e-4, 123456.0, 1234567.0, 999999.5, 1e15, 1e16,
    1e17, 1e300, 5e-324, math.nan, math.inf, -math.inf, True, False, 7, -12, 10**20,
]  # fmt: skip
ARRAYS = [
    np.array(3.5), np.array([1.0]), np.array([[1, -20], [300, 4]]), np.array([True, False]),
    np.array([[1.5, math.nan], [-math.inf, 0.0]]), np.array([1e-20, 1.0]),
    np.array([1e-300, 1e300, 5e-324]), np.arange(24.0).reshape(2, 3, 4),
    np.arange(100.0).reshape(5, 20) / 8, np.array([1, 10**12]), np.full(3, math.nan),
    np.linspace(-1, 1, 17, dtype=np.float32), *(np.arange(n) / 4 for n in (7, 8, 9, 10)),
    np.ones((1, 1, 1)), np.zeros((0, 3)), np.zeros(0), np.array([1.0, 1 + 1.1e-9, 1 + 1.4e-9]),
    np.arange(60).reshape(5, 12), np.arange(72).reshape(6, 12), np.array([0.0, -0.5, 0.5]),
    np.float16([0.1, -2]), np.array([math.inf, 0.1]),
]  # fmt: skip


TABLES = [
    ["a", "bb  c"], ["name  size", "x     (2, 3)"], ["a  b    c      d", "1  22   333    4444"],
    ["first" + " " * gap + "second" + " " * 12 + "third" for gap in (8, 9, 10)],
    ["  in  front", "  of  it  "], [f"{i:<8}{'x' * i}" + " " * 9 + f"{i}" for i in range(5)],
]  # fmt: skip
SHIFTED = [f"{'shapes:':<{at}}X  2 and so on\n{'':<{at}}b" for at in (7, 8, 9, 15)]
SHIFTED += ["of:    X  2 and so on\n       b", "of a longer line\n         b"]


def test_texts_at_every_width(request: pytest.FixtureRequest) -> None:
    each: list[Callable[[str, int], object]] = [
        clip, clip_inside, pad, lambda t, w: pad(t, w, ">"), broken, lambda t, w: clip(t, w, "..."),
        lambda t, w: prose("note: ", t, w), lambda t, w: in_columns([t, "b   c"] * 3, w),
        fitted_page, lambda t, w: broken(t, w, code=True), lambda t, w: printable(t, w),
        lambda t, w: complaint(t, [t, "b c"], w, "error"),
    ]  # fmt: skip
    found = ["\n".join(f"{t!r} {w}: {f(t, w)!r}" for t in [*TEXTS, *SHIFTED] for w in range(32))
             for f in each]  # fmt: skip
    found += ["\n".join(f"{w}: {in_columns(t, w)}" for w in range(1, 60)) for t in TABLES]
    found += ["\n".join(f"{w}: {fitted_page(PAGE, w)}" for w in range(1, 66))]
    compare(request, found, 12)


def test_stand_ins_have_widths(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Shown, "escapes", True)
    for text in ("é", "─…x", "日本", "abc"):
        assert text_width(text) == len(ascii_text(text))


def test_numbers_in_every_form(request: pytest.FixtureRequest) -> None:
    forms = [(p, sci) for p in (1, 3, 6, 17) for sci in (False, True)]
    found = [f"{x}: {[format_number(x, *form) for form in forms]}" for x in NUMBERS]
    looks = [Look(), Look(precision=3, sci=True), Look(max_elements=4), Look(unicode=False)]
    for a in ARRAYS:
        said = [brief(a), *extremes(a), statistics(a) if a.size else "", sparkline(a)]
        said += [f"{scale_of(a)} {strict(a)} {shortest(a)} {extent([a, a * 2])}"]
        for look in looks:
            for signs in (False, True):
                lines = cell_lines(a, look, signs=signs)
                said += [*lines, joined(lines)]
                said += [heated(line, scale).markup for line in lines for scale in (0.0, 3.0)]
                said += [f"{fit_lines(lines, w)} {fit_lines(lines, w, cut=True)}"
                         for w in range(4, 48)]  # fmt: skip
        found.append("\n".join([str(a.shape), *said]))
    found += [str([strict_number(x) for x in NUMBERS]), str([background(x / 50) for x in range(9)])]
    compare(request, found, 8)


def test_lines_of_checks(request: pytest.FixtureRequest) -> None:
    """Upper case, as times are left out of what is recorded."""
    wrong = Diagnostic("E605", "another value", None)
    said = []
    for name in ("a.expr", "a folder/with a long name/of a|program.expr", "日本.py", "b.snap"):
        for count in (0, 1, 3, 40, 41):
            items = [
                Item(name, "grad", "x" * (i % 3), i, WORDS[i * count % 8], wrong, i / 7, "n" * i)
                for i in range(count)
            ]
            result = FileResult(name, items, count / 9)
            for width in range(20, 122):
                said.append(file_line(result, width, width % 2 == 0))
                said += [failed_line(item, width) for item in items[:3]]
            said += durations([result], 2)
            both = [result, FileResult("z", [], 0.0)]
            document = check_document(both, 1.23456789, count)
            document["items"] = document["items"][:2]
            said += [summary(both, 1.23456, count > 1), step_summary(both), repr(document)]
    said += [
        failed_line(Item("a b", "run")),
        diff_text("p", None, "a\n"),
        diff_text("p", "b", None),
    ]
    said.append(diff_text("p", "".join(f"{i}\n" for i in range(9)), "0\n1\n2\n3\nx\n5\n6\n7\n8\n"))
    many = [Item("a", "grad", "", i, WORDS[i % 8]) for i in range(41)]
    said += [file_line(FileResult("a", many[at:]), 100, False) for at in (0, 1)]
    compare(request, ["\n".join(said[at::40]).upper() for at in range(40)], 12)


@together(
    [
        (np.eye(2), ["x [[1, 0],", "   [0, 1]]"]),
        (np.full((2, 8), 1 / 3), ["x norm 1.333 min 0.3333 max 0.3333"]),  # too wide
        (np.ones((8, 2)), ["x norm 4 min 1 max 1"]),  # too high
        (np.full((6, 1), 2.0), ["x [[2],", *["   [2],"] * 4, "   [2]]"]),
        (np.float64(3), ["x 3"]),
        (np.ones(16), [f"x [{', '.join('1' * 16)}]"]),
        (np.ones(17), ["x norm 4.123 min 1 max 1"]),
        (np.ones((2, 2, 1)), ["x norm 2 min 1 max 1"]),
        (np.ones((6, 9)), ["x norm 7.348 min 1 max 1"]),  # more than can be read at once
    ]
)
def test_arrays_in_pictures(array: np.ndarray, lines: list[str]) -> None:
    assert array_lines("x ", np.asarray(array), 4) == lines
