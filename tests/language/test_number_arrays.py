"""Long lists read as arrays: bit for bit what `float` and `int` make of every spelling."""

from __future__ import annotations

import json
import struct
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import autodiff_cli
from autodiff_cli.errors import AutodiffError
from autodiff_cli.language.syntax import tree as s
from autodiff_cli.language.syntax.literals import numbers
from autodiff_cli.language.syntax.literals.number_arrays import read_array
from autodiff_cli.language.syntax.literals.numbers import find_ragged
from autodiff_cli.language.syntax.parser import parse
from autodiff_cli.source import Source

from ..together import together


def read(text: str) -> np.ndarray | None:
    found = read_array(text, 0, len(text))
    assert found is None or found[1] == len(text)
    return found[0] if found else None


def same_bits(values: list, expected: list) -> bool:
    return list(map(type, values)) == list(map(type, expected)) and all(
        a == b if type(a) is int else struct.pack("d", a) == struct.pack("d", b)
        for a, b in zip(values, expected, strict=True)
    )


def check(spelled: list[str]) -> None:
    """The list of these numbers, or of so many others that these are few, is read exactly."""
    expected = [eval(text) for text in spelled]
    whole = int in map(type, expected)
    array = read("[" + ", ".join(spelled) + "]")
    assert array is None or (not whole and same_bits(array.tolist(), expected))
    usual = [repr(0.1 * place) for place in range(3 * len(spelled))]
    array = read("[" + ", ".join(usual + spelled) + "]")
    assert (array is None) is whole
    assert array is None or same_bits(array.tolist()[len(usual) :], expected)


floats = st.floats(allow_nan=False, allow_infinity=False)
digits = st.text("0123456789", min_size=1, max_size=26)
lengthy = st.tuples(digits, digits).map(".".join)
integers = st.one_of(st.integers(-(2**70), 2**70), st.integers(-1000, 1000)).map(str)
exponents = st.tuples(
    st.sampled_from("eE"), st.sampled_from(["", "+", "-"]), st.integers(0, 400).map(str)
).map("".join)
signs = st.sampled_from(["", "", "-", "+", "- "])
spellings = st.one_of(
    floats.map(repr),
    st.floats(width=32, allow_nan=False, allow_infinity=False).map(repr),
    st.tuples(floats, st.integers(0, 25)).map(lambda pair: f"{pair[0]:.{pair[1]}e}"),
    st.tuples(st.floats(-1e9, 1e9), st.integers(0, 25)).map(lambda p: f"{p[0]:.{p[1]}f}"),
    integers,
    st.tuples(signs, lengthy).map("".join),
    st.tuples(signs, lengthy, exponents).map("".join),
    st.tuples(signs, digits, exponents).map("".join),
    st.tuples(signs, digits).map(lambda pair: f"{pair[0]}.{pair[1]}"),
    st.tuples(signs, digits).map(lambda pair: f"{pair[0]}{pair[1]}."),
    st.sampled_from(["0", "-0", "-0.0", "00", "1_000", "1_0.0_1", "0e0", "-0e5", "5e-324"]),
)


@settings(max_examples=40)
@given(st.lists(spellings, min_size=1, max_size=12))
@example(["2.2250738585072014e-308", "1.7976931348623157e+308", "1e999"])
@example(["9007199254740993", "9007199254740993.0", "9223372036854775807", "9223372036854775808"])
@example(["9.999999999999999999", "0.9999999999999999999999", "92233720.36854775807"])
@example(["12.5", "-34.75", "56.0625", "99.9"])
@example(["123.5", "-345.75", "560.0625", "999.9"])
def test_every_spelling_is_exact(spelled: list[str]) -> None:
    check(spelled)


@settings(max_examples=40)
@given(st.lists(st.floats(1e-300, 1e300), min_size=1, max_size=20), st.integers(1, 24))
def test_neighbours_of_halfway_points(values: list[float], places: int) -> None:
    """Decimals just below, at and above the middle between two floats."""
    spelled = []
    for value in values:
        middle = (Fraction(value) + Fraction(float(np.nextafter(value, np.inf)))) / 2
        text = f"{Decimal(middle.numerator) / Decimal(middle.denominator):.{places}e}"
        mantissa, exponent = text.split("e")
        spelled += [text, f"{mantissa}1e{exponent}", f"-{mantissa}0e{exponent}"]
    check(spelled)


@pytest.mark.parametrize("scale", [1e-260, 1e-30, 1e-5, 1.0, 1e3, 1e12, 1e22, 1e200])
def test_many_random_numbers(scale: float) -> None:
    values = np.random.default_rng(7).standard_normal(10_000) * scale
    text = json.dumps(values.tolist())
    found = np.array(parse(Source(text)).body[0].value.values)
    assert np.array_equal(found.view(np.int64), values.view(np.int64))
    array = read(text)
    assert (array is None) is (text.count("e") > len(values) // 4)  # the JSON decoder is quicker
    assert array is None or np.array_equal(array.view(np.int64), values.view(np.int64))


def test_random_digits_of_every_length() -> None:
    random = np.random.default_rng(8)
    spelled = []
    for length in range(1, 20):
        for _ in range(400):
            text = "".join(map(str, random.integers(0, 10, length)))
            point = int(random.integers(0, min(length, 8) + 1))
            whole = text[:point].lstrip("0") or "0"
            spelled.append(f"{'-' * int(random.integers(2))}{whole}.{text[point:] or '0'}")
    array = read("[" + ",".join(spelled) + "]")
    assert array is not None
    assert same_bits(array.tolist(), [float(text) for text in spelled])


nested = st.recursive(
    st.lists(st.one_of(st.integers(), floats), min_size=1, max_size=4),
    lambda inner: st.lists(inner, min_size=1, max_size=4),
)
shapes = st.lists(st.integers(1, 4), min_size=1, max_size=4)
layouts = st.sampled_from([", ", ",", ",\n    ", " , ", ",\t", ",\r\n"])


def spaced(text: str, layout: str, trailing: bool) -> str:
    text = text.replace(", ", layout)
    return text.replace("]", layout.strip(" ") + "]") if trailing else text


@settings(max_examples=40)
@given(nested)
def test_nested_lists_are_regular_or_left_alone(values: list) -> None:
    array = read(repr(values))
    if array is not None:
        assert repr(array.tolist()) == repr(values)
        assert array.shape == np.array(values).shape


@settings(max_examples=40)
@given(shapes, layouts, st.booleans(), st.booleans(), st.randoms(use_true_random=False))
def test_regular_lists_in_every_layout(
    shape: list[int], layout: str, trailing: bool, mixed: bool, random
) -> None:
    flat = [random.uniform(-5, 5) for _ in range(int(np.prod(shape)))]
    if mixed:
        flat = [random.choice([x, int(x)]) for x in flat]
    values = np.array(flat, object).reshape(shape).tolist()
    text = spaced(json.dumps(values), layout, trailing)
    array = read(text)
    assert (array is None) is (int in map(type, flat)), text
    assert parse(Source(text)).body[0].value.values == values
    if array is not None:
        assert array.tolist() == values
        assert array.shape == tuple(shape)


IRREGULAR = [
    "[[1, 2], [3]]", "[[1], 2]", "[1, [2]]", "[[1], []]", "[[], []]", "[]", "[[[1]], [2]]",
    "[[1, 2], [[3, 4]]]", "[[[1, 2]], [[3, 4], [5, 6]]]", "[[1, 2], 3, [4]]", "[1, [2], 3]",
]  # fmt: skip
WRONG = [
    "[1,,2]", "[,]", "[.]", "[1 2]", "[1_]", "[1..2]", "[01]", "[1", "[1]]", "[[1]", "[1][2]",
    "[[1] [2]]", "[1, --2]", "[1, 2e]", "[1, e5]", "[[1], , [2]]", "[1,\x0b2]", "[1,\xa02]",
    "[1-2]", "[[1]2]", "[2[1]]", "[1.5.2, 3]", "[1e5.5]", "[- -1]", "[+]", "[1, -]",
    "[1__0]", "[,1]", "[[,1], [2]]", "[[1],,]",
]  # fmt: skip


@together(IRREGULAR)
def test_irregular_lists_are_left_alone(text: str) -> None:
    assert read(text) is None


def test_how_deep_arrays_are() -> None:
    for levels in (32, 33):
        array = read("[" * levels + "0.5" + "]" * levels)
        assert (array is None) is (levels > 32)


@together(WRONG)
def test_wrong_lists_are_left_alone(text: str) -> None:
    found = read_array(text, 0, len(text))
    assert found is None or found[1] < len(text)
    padding = ", ".join(["0.5"] * 100)
    long = f"[{padding}, {text[1:]}"
    found = read_array(long, 0, len(long))
    assert found is None or found[1] < len(long)


@pytest.mark.parametrize("text", [*IRREGULAR, *WRONG, "[1, 2.5]", "[[1], [2]]", "[-0, 0.5]"])
def test_long_lists_are_what_short_ones_are(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same values, and the same errors at the same places, as without arrays."""

    def result(long: str) -> object:
        try:
            node = parse(Source(long)).body[0].value
        except AutodiffError as error:
            return error.code, str(error), error.span and (error.span.start, error.span.end)
        if not isinstance(node, s.NumList):
            return type(node)
        ragged = find_ragged(node)
        return repr(node.values), ragged and (ragged[0].start, *ragged[1:])

    padding = ", ".join(["7.25"] * 100)
    for long in (f"[{padding}, {text[1:]}", f"[{text}, {padding}]", f"[{padding}, {text}]"):
        expected = result(long)
        with monkeypatch.context() as patch:
            patch.setattr(numbers, "_VERY_LONG", 0)
            assert result(long) == expected


def test_a_text_of_many_lists() -> None:
    rows = [[float(i + j) / 7 for j in range(3000)] for i in range(4)]
    text = "\n".join(f"x{i} = {row}" for i, row in enumerate(rows))
    text += "\nloss = sum(x0 * x1 + x2 * x3)\n"
    tensors = autodiff_cli.run(text)["tensors"]
    for i, row in enumerate(rows):
        assert tensors[f"x{i}"]["value"].tolist() == row
    assert tensors["x0"]["grad"].tolist() == rows[1]


def test_an_array_is_a_list_in_a_program() -> None:
    values = [i / 7 for i in range(5000)]
    text = f"import torch\nv = {values}\nv.append(2)\nprint(len(v), v[-1], v[3])\n"
    assert autodiff_cli.run(text)["stdout"] == f"5001 2 {values[3]!r}\n"
    text = f"import torch\nfor i in [1, 2]:\n    v = {values}\n    v.append(i)\nprint(len(v))\n"
    assert autodiff_cli.run(text)["stdout"] == "5001\n"
