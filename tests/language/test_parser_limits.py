"""Oversized and deep programs: bounded time, bounded nesting, never Python's own recursion."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable

import pytest

from autodiff_cli.errors import AutodiffError
from autodiff_cli.language.syntax import lexer, parser
from autodiff_cli.language.syntax import tree as s
from autodiff_cli.language.syntax.literals import numbers
from autodiff_cli.language.syntax.parser import parse
from autodiff_cli.source import Source
from tests.pace import spent, takes_at_most

from ..together import together
from .unparse import same, unparse


def code_of(text: str) -> str:
    with pytest.raises(AutodiffError) as caught:
        parse(Source(text))
    assert caught.value.span is not None and caught.value.diagnostic.helps
    return caught.value.code


@together(
    [
        "x = " + "[" * 201 + "1" + "]" * 201,
        "x = " + "(" * 100_000,
        "x = " + "[" * 100_000 + "1,",
        "x = " + "[" * 5000 + "1" + "]" * 5000,
        "x = " + "{" * 300,
        "x = " + "-" * 201 + "1",
        "x = " + "not " * 5000 + "1",
        "x = " + "lambda: " * 300 + "1",
        "x = " + "a if b else " * 300 + "1",
        "x = " + "a ** " * 300 + "1",
        "if a: b\n" + "elif a: b\n" * 300,
        "".join("  " * i + "if x:\n" for i in range(250)) + "  " * 250 + "y\n",
    ]
)
def test_too_deep(text: str) -> None:
    assert code_of(text) == "E108"


@pytest.mark.parametrize(("name", "text"), [("MAX_NUMBERS", "1, "), ("MAX_ROWS", "[1], ")])
def test_too_long_lists(name: str, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = f"x = [{text * 2000}1]"
    most = 2000 + text.count("[")
    monkeypatch.setattr(numbers, name, most - 1)
    assert code_of(program) == "E108"
    monkeypatch.setattr(numbers, name, most)
    assert parse(Source(program)).body


def test_long_names() -> None:
    name = "a" * lexer.MAX_NAME
    assert parse(Source(name)).body
    assert code_of(f"{name}a") == "E102"


NESTED: dict[str, Callable[[int], str]] = {
    "lists": lambda n: "[" * n + "1" + "]" * n,
    "brackets": lambda n: "(" * n + "x" + ")" * n,
    "signs": lambda n: "-" * n + "x",
    "powers": lambda n: "a ** " * n + "1",
    "choices": lambda n: "a if b else " * n + "1",
    "functions": lambda n: "lambda: " * n + "1",
    "branches": lambda n: "if a: b\n" + "elif a: b\n" * (n + 1),
    "blocks": lambda n: "".join(" " * i + "if x:\n" for i in range(n)) + " " * n + "y\n",
    "texts": lambda n: "f'{" * n + "x" + "}'" * n,
}


@together(NESTED)
def test_two_hundred_levels_are_fine(name: str) -> None:
    assert parse(Source(NESTED[name](200))).body
    assert code_of(NESTED[name](201)) == "E108"


def test_the_last_token_and_state_that_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, limit, most, text in (
        (lexer, "MAX_TOKENS", 10, "-x + x + x + x + x"),
        (parser, "MAX_STACK", 30, "(" * 27 + "x" + ")" * 27),
    ):
        monkeypatch.setattr(module, limit, most)
        assert parse(Source(text)).body
        assert code_of(f"({text})") == code_of(f"-({text})") == "E108"
        monkeypatch.undo()


@pytest.mark.parametrize("text", ["9" * 4301, "x = [1, " + "9" * 5000 + "]", "0x" + "f" * 5000])
def test_too_many_digits(text: str) -> None:
    assert code_of(text) == "E110"


def test_four_thousand_digits_are_fine() -> None:
    assert parse(Source("9" * 4300)).body


def test_a_long_sum_is_no_recursion() -> None:
    module = parse(Source("x = 1\nloss = x" + " + x" * 5_000 + "\n"))
    assert same(module, parse(Source(unparse(module))))
    assert sum(isinstance(node, s.BinOp) for node in s.walk(module)) == 5_000


def test_a_long_chain_of_methods_is_no_recursion() -> None:
    module = parse(Source("x" + ".a(1)[0]" * 2_000))
    assert same(module, parse(Source(unparse(module))))


def test_many_arguments() -> None:
    call = parse(Source("loss = sum(" + "x, " * 20_000 + ")\n")).body[0]
    assert isinstance(call, s.Assign) and isinstance(call.value, s.Call)
    assert len(call.value.args) == 20_000


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x = 2 # " + "c" * 500_000, None),
        ("s = '" + "s" * 500_000, "E103"),
        ("s = '" + "\\a" * 200_000 + "'", None),
        ("n" * 500_000, "E102"),
        ("9" * 500_000, "E110"),
        ("x = " + " " * 500_000 + "1", None),
        ("\n" * 500_000, None),
        ("# c\n" * 100_000, None),
        ("\\\n" * 100_000 + "x", None),
        ("'" * 99_999, "E103"),
        ("\t" * 500_000 + "x", "E104"),
        ("f'" + "{{" * 200_000 + "'", None),
        ("x = " + "y + " * 110_000, "E108"),
        ("x = [" + "1, " * 20_000, "E101"),
        ("1_" * 200_000, "E110"),
        ("s = '" + "s" * 500_000 + "'; y = 1 : 2", "E102"),
        ("s = '" + "9" * 500_000 + "'; y = 5%", "E102"),
        ("s = '" + "s" * 500_000 + "'; y = x(1, :)", "E102"),
    ],
    ids=range(18),
)
def test_giant_lines_answer_soon(
    text: str, code: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lexer, "MAX_TOKENS", 200_000)

    def work() -> None:
        if code is None:
            parse(Source(text))
        else:
            assert code_of(text) == code

    assert takes_at_most(30, work)


def test_a_million_numbers_take_little_longer_than_json() -> None:
    numbers = json.dumps([i / 7 for i in range(100_000)])
    source = Source(f"x = {numbers}\n")
    node = parse(source).body[0]
    assert isinstance(node, s.Assign) and isinstance(node.value, s.NumList)
    assert node.value.values == json.loads(numbers)
    ratios = (spent(lambda: parse(source)) / spent(lambda: json.loads(numbers)) for _ in range(20))
    assert any(ratio < 4 for ratio in ratios)


def test_failing_lists_are_read_once_not_once_a_bracket() -> None:
    rows = "[" * 150 + "1, " * 10_000 + "x" + "]" * 150
    assert takes_at_most(5, lambda: parse(Source(f"x = {rows}\n")))


@pytest.mark.parametrize(
    "part",
    [
        r"a\n\x41\u00e9\\\"",
        r"\N{BULLET}b",
        r"é\t",
        r"\101\
",
    ],
)
def test_long_texts_are_what_short_ones_are(part: str) -> None:
    for times in (1, 20_000 // len(part)):
        literal = f'"{part * times}"'
        statement = parse(Source(f"x = {literal}\n")).body[0]
        assert isinstance(statement, s.Assign) and isinstance(statement.value, s.Constant)
        assert statement.value.value == ast.literal_eval(literal)
