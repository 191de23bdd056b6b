"""Lists of numbers: one token when long, the same node when short, ragged rows found."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autodiff_cli.errors import AutodiffError
from autodiff_cli.language.syntax import tree as s
from autodiff_cli.language.syntax.lexer import tokenize
from autodiff_cli.language.syntax.literals.numbers import find_ragged
from autodiff_cli.language.syntax.parser import parse
from autodiff_cli.language.syntax.tokens import KIND
from autodiff_cli.source import Source

from ..together import together


def value_of(text: str) -> s.Node:
    return parse(Source(text)).body[0].value


def values_of(text: str) -> list:
    node = value_of(text)
    assert isinstance(node, s.NumList), node
    assert node.span.text == text
    return node.values


# A list is read whole only when it is long; the padding makes both ways read the same elements.
PADDING = ", " + ", ".join(["7"] * 200)


@together(
    [
        "[1, 2, 3]",
        "[[1, 2], [3, 4]]",
        "[1., .5, -2., +3, -.5, 1_000, 1.e5, 5.E-3, 1e5]",
        "[1,\n 2,\n]",
        "[[1, 2,], [3, 4 , ], ]",
        "[0, 00, 0.0, -0]",
        "[[[1]], [[2]]]",
        "[- 3, 1]",
        "[(1), 2]",
        "[1, # comment\n 2]",
        "[[], [1]]",
        "[0x10, 0b1]",
    ]
)
def test_numeric_lists_in_every_form(text: str) -> None:
    expected = eval(text)
    assert values_of(text) == expected
    assert repr(values_of(text)) == repr(expected)
    longer = text[:-1].rstrip(" ,\n") + PADDING + "]"
    assert repr(values_of(longer)) == repr(eval(longer))


@together(["[1-2, 3]", "[x, 1]", "[True, 1]", "[None]", "['a']", "[--1]", "[2**3]", "[~1]",
     "[1, *a]", "[+[1]]", "[1, nan]"])  # fmt: skip
def test_other_lists_stay_lists(text: str) -> None:
    assert isinstance(value_of(text), s.List)
    longer = f"[{text}{PADDING}]"
    assert isinstance(value_of(longer), s.List)


@pytest.mark.parametrize("text", ["[]", "[[]]", "[[], [[]]]"])
def test_lists_without_a_number_stay_lists(text: str) -> None:
    assert isinstance(value_of(text), s.List)


def test_deep_lists_beside_numbers_are_ragged_not_recursion() -> None:
    node = value_of("[" + "1, " * 100 + "[" * 300 + "1" + "]" * 300 + "]")
    assert isinstance(node, s.NumList)
    found = find_ragged(node)
    assert found is not None and "a list where" in found[2]


@pytest.mark.parametrize("text", ["[1,,2]", "[,]", "[.]", "[1 2]", "[1_]", "[1..2]", "[01]", "[1,"])
def test_wrong_lists_are_errors_in_both_ways(text: str) -> None:
    for wrong in (text, f"[{text}{PADDING}]", f"[9{PADDING}, {text}]"):
        with pytest.raises(AutodiffError):
            value_of(wrong)


def test_a_subscript_is_no_list() -> None:
    long_index = ", ".join(["1"] * 200)
    for text in (f"x[{long_index}]", f"x()[{long_index}]", f"'a'[{long_index}]"):
        node = value_of(text)
        assert isinstance(node, s.Subscript) and isinstance(node.index, s.Tuple)
    node = value_of(f"x[[{long_index}]]")
    assert isinstance(node, s.Subscript) and isinstance(node.index, s.NumList)


def test_a_long_list_is_one_token() -> None:
    text = "x = " + json.dumps([[i, -i / 7] for i in range(5000)]) + "\nprint(x)\n"
    tokens = tokenize(Source(text))
    assert tokens.kinds.count(KIND["NUMLIST"]) == 1
    assert len(tokens.kinds) == 10


def test_lists_after_one_that_is_not_numeric() -> None:
    row = ", ".join(["1.5"] * 100)
    text = f"x = [[{row}], [{row}], [y, {row}]]\nz = [{row}]\n"
    module = parse(Source(text))
    rows = module.body[0].value.elements  # type: ignore[attr-defined]  # an Assign of a List
    assert [type(element) for element in rows] == [s.NumList, s.NumList, s.List]
    assert isinstance(module.body[1].value, s.NumList)  # type: ignore[attr-defined]  # an Assign


numbers = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
nested = st.recursive(
    st.lists(numbers, min_size=1), lambda inner: st.lists(inner, min_size=1, max_size=5)
)


@settings(max_examples=20)
@given(nested)
def test_any_nested_list_of_numbers(values: list) -> None:
    assert repr(values_of(repr(values))) == repr(values).replace("-0,", "0,")


@together(
    [
        ("[[1, 2], [3]]", "[3]", (2,), "1 element, the first row has 2"),
        ("[[1, 2], [3, 4],\n [5, 6, 7]]", "[5, 6, 7]", (2,), "3 elements"),
        ("[[1, 2], 3]", "3", (2,), "a number where"),
        ("[1, [2]]", "[2]", (), "a list where"),
        ("[[[1], [2]], [[3], [4, 5]]]", "[4, 5]", (1,), "2 elements"),
        ("[[[1], [2]], [[3]]]", "[[3]]", (2, 1), "1 element"),
        ("[[1], []]", "[]", (1,), "0 elements"),
        ("[[1, 2], # [9]\n [3]]", "[3]", (2,), "1 element"),
        ("[[1, 2], [-3]]", "[-3]", (2,), "1 element"),
    ]
)
def test_ragged_rows_are_placed(text: str, row: str, shape: tuple[int, ...], words: str) -> None:
    node = value_of(text)
    assert isinstance(node, s.NumList)
    found = find_ragged(node)
    assert found is not None
    span, expected, message = found
    assert span.text == row
    assert expected == shape
    assert words in message


@pytest.mark.parametrize("text", ["[1]", "[[1, 2], [3, 4]]", "[[[1]], [[2]]]", "[1.5, 2]"])
def test_regular_lists_are_not_ragged(text: str) -> None:
    node = value_of(text)
    assert isinstance(node, s.NumList)
    assert find_ragged(node) is None
