"""Did-you-mean finds what was meant, and nothing where nothing is close."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autodiff_cli.suggest import did_you_mean, distance_of, suggest, suggest_op, synonym, synonyms
from tests.pace import takes_at_most
from tests.said import compare

OPS = [
    "abs", "add", "amax", "cat", "celu", "clamp", "concatenate", "cos", "cosh", "elu", "exp",
    "layer_norm", "log", "log1p", "matmul", "max", "max_pool2d", "mean", "mm", "norm", "relu",
    "relu6", "requires_grad_", "selu", "sigmoid", "sin", "sinh", "softmax", "sqrt", "sum", "tanh",
]  # fmt: skip


def test_typical_slips() -> None:
    assert suggest("sigmiod", OPS) == ["sigmoid"]
    assert suggest("reul", OPS) == ["relu", "celu", "selu"]
    assert suggest("matmull", OPS)[0] == "matmul"
    assert suggest("sofmax", OPS)[0] == "softmax"
    assert suggest("mena", OPS)[0] == "mean"
    assert suggest("Sum", OPS)[0] == "sum"
    assert suggest("ReLU", OPS)[0] == "relu"
    assert suggest("requires_grad", OPS)[0] == "requires_grad_"


def test_parts_of_names() -> None:
    assert suggest("concat", OPS)[0] == "concatenate"
    assert suggest("max_pool", OPS)[0] == "max_pool2d"
    assert "norm" in suggest("layernorm", OPS)
    assert suggest("cum", ["logcumsums"]) == [] != suggest("cum", ["logcumsum"])


def test_one_letter_names_differ_only_in_case() -> None:
    assert suggest("b", ["A", "B", "c"]) == ["B"]
    assert suggest("x", ["y", "z", "xs"]) == []
    assert suggest("xs", ["x", "s", "y"]) == ["x"]


def test_nothing_close() -> None:
    assert suggest("quaternion", OPS) == []
    assert suggest("", OPS) == []
    assert suggest("relu", ["relu"]) == []
    assert suggest("x" * 1_000_000, OPS) == []


def test_what_other_libraries_call_so_comes_first() -> None:
    for known in ([], ["power"], ["powers", "lower", "tower", "power1"], ["pow"]):
        found = suggest_op("power", known)
        assert found[0] == synonym("power") and len(found) == len(set(found)) <= 3
        assert set(found[1:]) <= {*suggest("power", known)}


def test_names_of_eighty_letters_are_the_longest() -> None:
    word = "ab" * 40
    assert suggest(word, [f"{word[:-1]}c", f"{word}c"]) == [f"{word[:-1]}c"]
    assert suggest(f"{word}a", [word]) == []


def test_order_of_candidates_does_not_matter() -> None:
    assert suggest("selu6", OPS) == suggest("selu6", reversed(OPS)) == suggest("selu6", set(OPS))
    assert len(suggest("relu7", OPS, limit=2)) == 2


def _plain_distance(left: str, right: str) -> int:
    """Optimal string alignment by its definition."""
    table: dict[tuple[int, int], int] = {}
    for i in range(len(left) + 1):
        for j in range(len(right) + 1):
            choices = [i + j] if not i or not j else []
            if i and j:
                same = left[i - 1] == right[j - 1]
                choices += [
                    table[i - 1, j] + 1,
                    table[i, j - 1] + 1,
                    table[i - 1, j - 1] + (not same),
                ]
            swapped = i > 1 and j > 1 and left[i - 2 : i] == right[j - 2 : j][::-1]
            if swapped:
                choices.append(table[i - 2, j - 2] + 1)
            table[i, j] = min(choices)
    return table[len(left), len(right)]


@given(st.text("abc", max_size=7), st.text("abc", max_size=7), st.integers(1, 4))
def test_distance(left: str, right: str, most: int) -> None:
    assert distance_of(left, right, most) == min(_plain_distance(left, right), most + 1)


WORDS = st.text(st.sampled_from("abcde_.01AÉé日"), max_size=12)


@given(WORDS, st.lists(WORDS, max_size=20))
def test_hits_are_candidates(word: str, candidates: list[str]) -> None:
    hits = suggest(word, candidates)
    assert len(hits) <= 3
    assert set(hits) <= set(candidates) - {word}


def test_thousands_of_candidates_take_milliseconds() -> None:
    names = [f"{name}_{number}" for name in OPS for number in range(65)]
    assert len(names) > 2000
    assert takes_at_most(3, lambda: suggest("sigmiod_12", names))


def test_synonyms() -> None:
    assert synonym("reduce_sum") == "sum"
    assert synonym("tf.reduce_sum") == "sum"
    assert synonym("matrix_multiply") == "matmul"
    assert synonym("concat") == "cat"
    assert synonym("jnp.expand_dims") == "unsqueeze"
    assert synonym("jax.lax.stop_gradient") == "detach"
    assert synonym("Swish") == "silu"
    assert synonym("no_such_thing") is None
    assert synonym("x" * 1_000_000) is None
    assert all(name == name.lower() for name in synonyms())


def test_words_without_a_common_letter_are_not_close() -> None:
    assert suggest("日木", ["日本", "eq", "ge"]) == ["日本"]
    assert suggest("ab", ["cd", "ac"]) == ["ac"]


def test_the_offer() -> None:
    assert did_you_mean([]) == []
    assert did_you_mean(["relu"]) == ["did you mean `relu`?"]
    assert did_you_mean(["relu", "elu"]) == ["did you mean `relu` or `elu`?"]


def slips(word: str) -> list[str]:
    """Letters lost, doubled, exchanged, replaced, cut off, put before and behind."""
    found = [word[:i] + word[i + 1 :] for i in range(len(word))]
    found += [word[: i + 1] + word[i:] for i in range(len(word))]
    found += [word[:i] + word[i : i + 2][::-1] + word[i + 2 :] for i in range(len(word) - 1)]
    found += [word[:i] + "q" + word[i + 1 :] for i in range(len(word))]
    found += [word[: len(word) // 2], word[-3:], f"x{word}", f"{word}_2", word.upper(), word[::2]]
    return [slip for slip in dict.fromkeys(found) if slip]


def test_slips_of_every_name(request: pytest.FixtureRequest) -> None:
    pool = [*OPS, "x", "W", "loss", "alpha", "hidden_state", "parameters", "日本"]
    compare(request, (f"{slip}: {' '.join(suggest(slip, pool))}"
                      for word in pool for slip in slips(word)))  # fmt: skip
