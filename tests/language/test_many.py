"""Programs that run one after the other: each as if it were alone, whatever is kept between."""

from __future__ import annotations

import gc
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autodiff_cli.errors import AutodiffError
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.state import STATE, own_state
from autodiff_cli.language.program.gc_control import HELD, MOST_BYTES, NEW_OBJECTS, collect_seldom
from autodiff_cli.language.program.report import FEW, Options, is_finite
from autodiff_cli.language.program.running import calls_backward, run_program
from autodiff_cli.language.syntax import tree as syntax
from autodiff_cli.language.syntax.literals import numbers
from autodiff_cli.language.syntax.parser import parse
from autodiff_cli.session import run
from autodiff_cli.source import Source
from benchmarks.snippets import MAKERS, snippets

from ..together import together
from .unparse import same

PROGRAMS = snippets(3, 3 * len(MAKERS))


@pytest.mark.parametrize("order", [1, -1])
def test_every_program_gives_its_own_gradients(order: int) -> None:
    for snippet in PROGRAMS[::order]:
        report = run(Source(snippet.text, "a.expr"))
        assert report.error is None, report.error
        for name, gradient in zip(snippet.wrt, snippet.gradients(), strict=True):
            found = report.tensors[name].grad
            assert found is not None
            np.testing.assert_allclose(found, gradient, rtol=1e-9, atol=1e-12)


def test_programs_are_native_and_pasted() -> None:
    assert {snippet.pasted for snippet in PROGRAMS} == {True, False}
    assert all(3 <= len(snippet.text.splitlines()) <= 8 for snippet in PROGRAMS)


IN_PLACE = "import torch\nx = torch.ones(2, requires_grad=True)\ny = x.exp()\ny.mul_(2)\n"


def test_a_change_in_place_is_noticed_after_programs_without_one() -> None:
    with own_state():
        assert run_program(Source(PROGRAMS[0].text), Options()).error is None
        assert not STATE.overwriting
        error = run_program(Source(IN_PLACE + "y.sum().backward()\n"), Options()).error
        assert error is not None and error.code == "E407"
        assert run_program(Source(PROGRAMS[0].text), Options()).error is None
        assert not STATE.overwriting


# -- lists ----------------------------------------------------------------------------------------


def parsed(text: str) -> syntax.Module | str:
    """The tree, or the error's code and place; its words name whole tokens."""
    try:
        return parse(Source(text))
    except AutodiffError as error:
        span = error.span
        return f"{error.code} {span and (span.start, span.end)}"


@given(st.text("0123.-, []\n", max_size=24))
def test_short_lists_are_what_the_grammar_makes_of_them(inside: str) -> None:
    text = f"x = [{inside}]\n"
    found = parsed(text)
    with patch.object(numbers, "short_list", lambda text, at: None):
        wanted = parsed(text)
    if isinstance(found, str) or isinstance(wanted, str):
        assert found == wanted
    else:
        assert same(found, wanted)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("[1, -2.5, .5]", [1, -2.5, 0.5]),
        ("[\n  [1, 2],\n  [3, 4]\n]", [[1, 2], [3, 4]]),
        ("[[0.5], [-1, 2]]", [[0.5], [-1, 2]]),
        ("[00, 0]", [0, 0]),
    ],
)
def test_short_lists_are_read_whole(text: str, values: list) -> None:
    assert numbers.short_list(f"{text} + 1", 0) == (values, len(text))


@together(["[]", "[1,]", "[007]", "[-01]", "[1 2]", "[1_0]", "[1e5]", "[x]", "[[1], 2]", "[[1]",
     "[[[1]]]", "[[1],]", "[1", f"[{'1, ' * 200}1]", "[é]", "[--1]", "[1-2]", "[.]"])  # fmt: skip
def test_what_is_no_short_list_is_left_to_others(text: str) -> None:
    assert numbers.short_list(text, 0) is None


# -- what is looked up before the work -------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "differentiates"),
    [
        ("x = 1\nx.backward()", True),
        ("grads = 1", False),
        ("x = 'backward'", False),
        ("f = grad(g)", True),
        ("é = 1\nf = ｇｒａｄ(g)", True),  # the same name in other letters
        ("y = x + 1", False),
    ],
)
def test_programs_that_differentiate_are_known(text: str, differentiates: bool) -> None:
    assert calls_backward(parse(Source(text))) is differentiates


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("size", [1, FEW, FEW + 1])
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_one_number_that_is_not_finite_is_found(bad: float, size: int, dtype: str) -> None:
    array = np.ones((1, size), dtype)
    assert is_finite(array)
    array[0, -1] = bad
    assert not is_finite(array)


def test_integers_and_nothing_are_finite() -> None:
    assert is_finite(np.ones(3, np.int64)) and is_finite(np.ones(0)) and is_finite(np.array(1.0))


def test_a_report_says_whether_it_is_finite() -> None:
    assert run(Source("x = [1, 2]\nloss = sum(x)")).finite
    assert not run(Source("x = [0, 1]\nloss = sum(sqrt(x))"), Options(nan="ignore")).finite


def test_the_collector_is_set_once() -> None:
    enabled, threshold = gc.isenabled(), gc.get_threshold()
    try:
        gc.disable()
        collect_seldom()
        assert gc.isenabled() and gc.get_threshold()[0] == NEW_OBJECTS
        frozen = gc.get_freeze_count()
        kept = [[] for _ in range(1000)]
        collect_seldom()
        assert gc.get_freeze_count() <= frozen and kept
    finally:
        gc.unfreeze()
        gc.set_threshold(*threshold)
        gc.enable() if enabled else gc.disable()


def test_large_arrays_of_earlier_programs_are_let_go() -> None:
    enabled, threshold = gc.isenabled(), gc.get_threshold()
    try:
        gc.disable()
        collect_seldom()
        size = MOST_BYTES // 8 // 4
        for i in range(6):
            text = f"x = tensor(zeros({size} + {i}), requires_grad=True)\nloss = sum(x * x)\n"
            assert run(Source(text)).error is None
            assert HELD.bytes <= MOST_BYTES
        alive = [a for a in gc.get_objects() if isinstance(a, Node) and a.numel >= size]
        held = {id(a.value): a.value.nbytes for a in alive if a.value is not None}
        assert sum(held.values()) <= 2 * MOST_BYTES
    finally:
        gc.unfreeze()
        gc.set_threshold(*threshold)
        gc.enable() if enabled else gc.disable()
