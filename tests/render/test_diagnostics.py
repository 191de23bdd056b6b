"""Frames look exactly as designed, and stay safe and quick whatever the source text holds."""

from __future__ import annotations

import json
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autodiff_cli.errors import Diagnostic, Label, fail
from autodiff_cli.render.diagnostics import render
from autodiff_cli.render.text import text_width
from autodiff_cli.source import Source, Span
from tests.pace import takes_at_most
from tests.said import compare


def at(source: Source, text: str, occurrence: int = 1) -> Span:
    start = -1
    for _ in range(occurrence):
        start = source.text.index(text, start + 1)
    return Span(source, start, start + len(text))


def demo(text: str) -> Source:
    return Source(text, "demo.expr")


def matmul() -> Diagnostic:
    source = demo("W = ones(2, 3)\nx = ones(2, 4)\ny = W @ x\n")
    return Diagnostic(
        "E301",
        "`@` needs matching inner sizes: (2, 3) @ (2, 4)",
        at(source, "@"),
        "3 != 2",
        (
            Label(at(source, "W", 2), "W: (2, 3), columns = 3"),
            Label(at(source, "x", 2), "x: (2, 4), rows = 2"),
        ),
        helps=("`W.T @ x` has shapes (3, 2) @ (2, 4) -> (3, 4)",),
    )


# ------------------------------------------------------------------ the designed forms


def test_labels_on_two_lines() -> None:
    source = demo("A = [[1, 2], [3, 4]\nloss = sum(A)\n")
    diagnostic = Diagnostic(
        "E101",
        "`[` is never closed",
        at(source, "["),
        "opened here",
        (Label(at(source, "=", 2), "found `=` while still inside the list"),),
        helps=("add `]` at the end of line 1",),
    )
    assert render(diagnostic) == (
        """\
error[E101]: `[` is never closed
 --> demo.expr:1:5
  |
1 | A = [[1, 2], [3, 4]
  |     ^ opened here
2 | loss = sum(A)
  |      - found `=` while still inside the list
  |
help: add `]` at the end of line 1"""
    )


def test_a_long_label_beside_a_bar() -> None:
    """It begins two cells behind the bar, where its own place leaves too little room."""
    source = demo("a = 1; bbbbbbbbbbbbbb @ cccccccc @ dddd\n")
    labels = (
        Label(at(source, "cccccccc"), "c"),
        Label(at(source, "dddd"), "this label is far too long for the room there"),
    )
    assert render(Diagnostic("E301", "m", at(source, "a = 1"), "", labels), width=44) == (
        """\
error[E301]: m
 --> demo.expr:1:1
  |
1 | a = 1; bbbbbbbbbbbbbb @ cccccccc @ dddd
  | ^^^^^                   --------   ----
  |                         |          |
  |                         | this label is
  |                         | far too long
  |                         | for the room
  |                         | there
  |                         c"""
    )


def test_several_labels_on_one_line() -> None:
    assert render(matmul()) == (
        """\
error[E301]: `@` needs matching inner sizes: (2, 3) @ (2, 4)
 --> demo.expr:3:7
  |
3 | y = W @ x
  |     - ^ - x: (2, 4), rows = 2
  |     | |
  |     | 3 != 2
  |     W: (2, 3), columns = 3
  |
help: `W.T @ x` has shapes (3, 2) @ (2, 4) -> (3, 4)"""
    )


def test_note_of_several_lines() -> None:
    source = demo("X = ones(2, 3)\nb = ones(2)\ny = X + b\n")
    diagnostic = Diagnostic(
        "E302",
        "cannot broadcast (2, 3) with (2,)",
        at(source, "+"),
        "",
        (Label(at(source, "X", 2), "(2, 3)"), Label(at(source, "b", 2), "(2,)")),
        ("shapes align from the right:   X   2  3\n" + " " * 31 + "b      2    <- 3 vs 2",),
        ("for one value per row write `X + b[:, None]`  -> (2, 3)",),
    )
    assert render(diagnostic) == (
        """\
error[E302]: cannot broadcast (2, 3) with (2,)
 --> demo.expr:3:7
  |
3 | y = X + b
  |     - ^ - (2,)
  |     |
  |     (2, 3)
  |
  = note: shapes align from the right:   X   2  3
                                         b      2    <- 3 vs 2
help: for one value per row write `X + b[:, None]`  -> (2, 3)"""
    )


def test_primary_without_label_and_a_block() -> None:
    source = demo("\n\n\nassert A.grad == approx([[7, 10], [13, 17]])\n")
    diagnostic = Diagnostic(
        "E601",
        "assertion failed: 1 of 4 elements differ",
        at(source, "=="),
        "",
        (
            Label(at(source, "A.grad"), "left"),
            Label(at(source, "approx([[7, 10], [13, 17]])"), "right"),
        ),
        ("\nindex   left   right\n[1, 1]  16     17",),
        ("if the new value is right: autodiff check demo.expr --update",),
    )
    assert render(diagnostic) == (
        """\
error[E601]: assertion failed: 1 of 4 elements differ
 --> demo.expr:4:15
  |
4 | assert A.grad == approx([[7, 10], [13, 17]])
  |        ------ ^^ --------------------------- right
  |        |
  |        left
  |
    index   left   right
    [1, 1]  16     17
help: if the new value is right: autodiff check demo.expr --update"""
    )


def test_no_span() -> None:
    diagnostic = Diagnostic(
        "E701", "cannot read `x.npy`", notes=("no such file",), helps=("check the path", "or not")
    )
    assert render(diagnostic) == (
        "error[E701]: cannot read `x.npy`\n  = note: no such file\n"
        "help: check the path\nhelp: or not"
    )


def test_span_of_several_lines_shows_first_and_last() -> None:
    source = demo("a = 1\ny = f(\n    1,\n    2,\n    3)\n")
    span = Span(source, source.text.index("f("), len(source.text))
    rendered = render(Diagnostic("E205", "bad call", span, "this call"))
    assert rendered == (
        """\
error[E205]: bad call
 --> demo.expr:2:5
  |
2 | y = f(
  |     ^^
...
5 |     3)
  |     ^^ this call"""
    )


def test_a_single_hidden_line_is_shown_and_numbers_are_aligned() -> None:
    source = demo("\n" * 8 + "b = 1\n\nc = b\n")
    diagnostic = Diagnostic(
        "E208", "wrong", at(source, "b", 2), "here", (Label(at(source, "b"), "made here"),)
    )
    assert render(diagnostic) == (
        """\
error[E208]: wrong
  --> demo.expr:11:5
   |
 9 | b = 1
   | - made here
10 |
11 | c = b
   |     ^ here"""
    )


def test_nested_spans_keep_both_visible() -> None:
    source = demo("y = sum(a * b)\n")
    diagnostic = Diagnostic(
        "E402", "m", at(source, "sum(a * b)"), "outer", (Label(at(source, "a * b"), "inner"),)
    )
    assert render(diagnostic).splitlines()[4:] == [
        "  |     ^^^^-----^ outer",
        "  |         |",
        "  |         inner",
    ]


def test_label_in_another_source() -> None:
    source, other = demo("y = f(1)\n"), Source("def f():\n    pass\n", "lib.expr")
    diagnostic = Diagnostic(
        "E205", "m", at(source, "f(1)"), "called", (Label(at(other, "f", 2), "defined here"),)
    )
    assert render(diagnostic).splitlines()[5:] == [
        " ::: lib.expr:1:5",
        "  |",
        "1 | def f():",
        "  |     - defined here",
    ]


def test_warning() -> None:
    source = demo("y = sqrt(x)\n")
    diagnostic = Diagnostic("W501", "NaN first appears", at(source, "sqrt(x)"), severity="warning")
    assert render(diagnostic).startswith("warning[W501]: NaN first appears\n")
    assert render(diagnostic, "github").startswith("::warning file=")


# ------------------------------------------------------------------ one-line formats


def test_concise() -> None:
    message = "`@` needs matching inner sizes: (2, 3) @ (2, 4)"
    assert render(matmul(), "concise") == f"demo.expr:3:7: error[E301]: {message}"
    assert render(Diagnostic("E900", "a\nb"), "concise") == "error[E900]: a\\nb"


def test_json() -> None:
    text = render(matmul(), "json")
    assert "\n" not in text
    data = json.loads(text)
    assert data["code"] == "E301"
    assert data["kind"] == "matmul-shape"
    assert data["help"] == "`W.T @ x` has shapes (3, 2) @ (2, 4) -> (3, 4)"
    assert (data["line"], data["column"], data["end_line"], data["end_column"]) == (3, 7, 3, 8)
    assert [label["column"] for label in data["labels"]] == [5, 9]


def test_json_columns_in_characters_and_bytes() -> None:
    source = demo("é日 = b\n")
    data = json.loads(render(Diagnostic("E201", "m \udc80", at(source, "b")), "json"))
    assert (data["column"], data["byte_column"], data["end_byte_column"]) == (6, 9, 10)
    assert data["message"] == "m ?"
    assert data["help"] is None
    assert json.loads(render(Diagnostic("E900", "m"), "json"))["line"] is None


def test_github() -> None:
    source = Source("y = b\n", "a,b:c%.expr")
    diagnostic = Diagnostic("E201", "50% of: a, b", at(source, "b"), helps=("one\ntwo",))
    assert render(diagnostic, "github") == (
        "::error file=a%2Cb%3Ac%25.expr,line=1,col=5,title=E201 unknown-name"
        "::50%25 of: a, b%0Ahelp: one%0Atwo"
    )


def test_unknown_format() -> None:
    with pytest.raises(ValueError, match="xml"):
        render(matmul(), "xml")


# ------------------------------------------------------------------ colour


def test_color_changes_nothing_but_escapes() -> None:
    import re

    colored = render(matmul(), color=True)
    assert "\x1b[1;31merror[E301]\x1b[0m" in colored
    assert "\x1b[1;32mhelp\x1b[0m" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored) == render(matmul())
    assert "\x1b" not in render(matmul())


# ------------------------------------------------------------------ odd text


def test_tabs_and_wide_characters_keep_underlines_in_place() -> None:
    source = demo("\tx = '日本' + b\n")
    lines = render(Diagnostic("E201", "m", at(source, "b"), "here")).splitlines()
    assert lines[3] == "1 |     x = '日本' + b"
    assert text_width(lines[3].split("b")[0]) == lines[4].index("^")


def test_control_characters_are_escaped_everywhere() -> None:
    source = Source("x = '\x1b[31m\u202e\x07\r' + b\n", "a\x1b]0;b.expr")
    diagnostic = Diagnostic(
        "E201",
        "name `\x1b[2J` is wrong",
        at(source, "b"),
        "l\x1b",
        notes=("n\x1b\u2066",),
        helps=("h\x07",),
    )
    for format in ("full", "concise", "json", "github"):
        rendered = render(diagnostic, format)
        assert all(char.isprintable() or char == "\n" for char in rendered)
    lines = render(diagnostic).splitlines()
    assert lines[3] == r"1 | x = '\x1b[31m\u202e\x07\r' + b"
    assert lines[3].index("b", 30) == lines[4].index("^")


def test_end_of_text_and_spans_out_of_range() -> None:
    source = demo("y = (1\n")
    lines = render(Diagnostic("E101", "m", Span(source, 6, 6), "here")).splitlines()
    assert lines[3:] == ["1 | y = (1", "  |       ^ here"]
    empty = demo("")
    assert render(Diagnostic("E102", "m", Span(empty, 0, 0))).splitlines()[-1] == "  | ^"
    assert "^" in render(Diagnostic("E102", "m", Span(source, 3, 10**9)))


def test_long_line_is_cut_around_the_span() -> None:
    source = demo("y = " + "a + " * 200 + "bad" + " + c" * 200 + "\n")
    for width in (44, 80, 100):
        for unicode in (True, False):
            diagnostic = Diagnostic("E201", "m", at(source, "bad"), "not defined")
            lines = render(diagnostic, width=width, unicode=unicode).splitlines()
            code, marks = lines[3], lines[4]
            ellipsis = "…" if unicode else "..."
            assert len(code) <= width
            assert code.startswith(f"1 | {ellipsis}")
            assert code.endswith(ellipsis)
            assert code.index("bad") == marks.index("^^^")
            assert unicode or lines[3].isascii()


def test_cut_keeps_every_label() -> None:
    source = demo("first = " + "a + " * 200 + "last\n")
    diagnostic = Diagnostic(
        "E302", "m", at(source, "last"), "right", (Label(at(source, "first"), "left"),)
    )
    lines = render(diagnostic, width=60).splitlines()
    assert lines[3].endswith("last")
    assert lines[4].endswith("^^^^")
    assert lines[3].index("last") == lines[4].index("^^^^") == lines[6].index("right")
    assert lines[-1] == "  | left"


def test_label_that_does_not_fit_beside_its_span_goes_below() -> None:
    source = demo("A = tensor([[1., 2.], [3., 4.]])\n")
    diagnostic = Diagnostic("E402", "m", at(source, "tensor([[1., 2.], [3., 4.]])"), "q" * 30)
    lines = render(diagnostic, width=44).splitlines()
    assert lines[-1] == "  |     " + "q" * 30
    assert lines[-2] == "  |     |"


def test_giant_message_and_many_labels_are_bounded() -> None:
    source = demo("x\n" * 5000)
    labels = tuple(Label(Span(source, 2 * i, 2 * i + 1), "l") for i in range(5000))
    diagnostic = Diagnostic("E201", "m" * 10**7, Span(source, 0, 1), "here", labels)
    assert len(render(diagnostic)) < 10_000


@pytest.mark.parametrize(
    "text",
    ["x" * 10_000_000, "y = '" + "é" * 5_000_000, "\u0301" * 1_000_000, "\x1b" * 1_000_000],
    ids=["ascii", "accents", "combining", "escapes"],
)
def test_giant_lines_take_no_time(text: str) -> None:
    source = demo(text)
    middle = len(text) // 2
    label = (Label(Span(source, 3, 4), "there"),)

    def work() -> None:
        for span in (Span(source, 0, len(text)), Span(source, middle, middle + 3)):
            assert len(render(Diagnostic("E102", "m", span, "here", label))) < 5_000

    assert takes_at_most(3, work)


_TEXT = st.text(st.sampled_from("ab =\t\n\r\x1b日é\u0301\u202e\ud800"), max_size=60)


@given(_TEXT, st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60), _TEXT), max_size=5),
       st.integers(1, 60))  # fmt: skip
def test_any_text_any_spans(text: str, places: list[tuple[int, int, str]], width: int) -> None:
    source = demo(text)
    labels = tuple(Label(Span(source, *sorted(place[:2])), place[2]) for place in places)
    span = labels[0].span if labels else None
    diagnostic = Diagnostic("E102", text, span, text, labels, (text,), (text,))
    for format in ("full", "concise", "json", "github"):
        rendered = render(diagnostic, format, width=width)
        rendered.encode("utf-8")
        assert all(char.isprintable() or char == "\n" for char in rendered)
    for line in render(diagnostic, width=width).splitlines():
        assert line == line.rstrip()


def test_nothing_heavy_is_imported() -> None:
    import subprocess
    import sys

    code = (
        "import sys, autodiff_cli.render.diagnostics\n"
        "print(*{'rich', 'numpy', 'json', 'click', 'scipy', 'inspect'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() in ("", "inspect")  # dataclasses imports inspect


@pytest.mark.parametrize("width", [44, 36])
def test_long_labels_stay_inside_a_narrow_terminal(width: int) -> None:
    source = Source("x = [1, 2, 3\nloss = sum(x)\n", "demo.expr")
    span = Span(source, source.text.index("sum"), len(source.text) - 1)
    error = fail("E101", "m", span, label="a label of quite a few words, too many")
    text = render(error.diagnostic, width=width)
    assert all(len(line) <= width for line in text.split("\n"))
    assert {"label", "quite", "many"} <= set(text.split())


DRAWN = [
    "x = relu(W @ x + b) / 2", "", "\ty = 日本 + π * 'é'", "    z = [1, 2,", "", "",
    "  3]  # \x1b[2J \u200b",
    "loss = sum((x - y)**2) + 1e-3 * sum(w * w) + sum(abs(v)) - mean(log(p)) * 'a word in a text'",
    "a; b; c; d; e; f; g", "end = 1\r",
]  # fmt: skip
SAID = [
    "", "", "here", "(2, 3)", "a label of several words that goes on for a while", "日本語 `code`",
    "two\nlines", "a_word_that_is_longer_than_the_room_that_there_is_in_a_narrow_terminal",
]  # fmt: skip


@pytest.mark.parametrize("seed", range(8))
def test_frames_of_labels_anywhere(seed: int, request: pytest.FixtureRequest) -> None:
    """Labels in all places to one another, at every width and in colours."""
    draw = random.Random(seed)
    found = []
    for number in range(30):
        source = Source("\n".join(draw.sample(DRAWN, draw.randrange(1, 9))), "demo.expr")
        other = Source("y = 1\nf(x)", "other.expr")

        def span(source: Source = source, other: Source = other) -> Span:
            text = source if draw.random() < 0.9 else other
            start = draw.randrange(len(text.text) + 1)
            long = draw.choice((0, 1, 1, 2, 3, 9, 60))
            return Span(text, start, min(start + long, len(text.text)))

        labels = [Label(span(), draw.choice(SAID)) for _ in range(draw.choice((0, 1, 1, 2, 3, 5)))]
        if labels and draw.random() < 0.3:
            labels.append(Label(labels[0].span, draw.choice(SAID)))
        words = [draw.choice(SAID[2:]) for _ in range(4)]
        given = Diagnostic(
            "E101", words[0], None if draw.random() < 0.1 else span(), words[1], tuple(labels),
            ("\n  A  2  3\n  B  2  4",) * draw.randrange(2) + (words[2],) * draw.randrange(3),
            (words[3],) * draw.randrange(2), draw.choice(("error", "warning", "note")),
        )  # fmt: skip
        width = draw.choice((None, 18, 24, 30, 36, 44, 60, 80))
        look = draw.random() < 0.5, draw.random() < 0.8
        found.append(render(given, "full", look[0], width, unicode=look[1]))
        found += [render(given, form) for form in ("concise", "json", "github")[number % 3 :][:1]]
    compare(request, ["\n".join(found)])


def test_labels_of_neighbours_stay_within_the_width() -> None:
    source = Source("a=[1.0,2,3]; b=[1.0,2]; loss=sum(a+b)", "<expr>")
    labels = (Label(Span(source, 33, 34), "a: (3,)"), Label(Span(source, 35, 36), "b: (2,)"))
    given = Diagnostic("E302", "cannot broadcast", Span(source, 33, 36), "", labels)
    for width in range(30, 80):
        for line in render(given, "full", False, width).splitlines():
            assert len(line) <= width, (width, line)
