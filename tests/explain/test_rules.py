"""Every op of the table says in words what its rule does; every rule of formulas does something."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autodiff_cli.explain.record import recorded, untouched
from autodiff_cli.explain.words import readable, rule_of
from autodiff_cli.graph.kinds import Kind
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.op import OUTPUT, constant
from autodiff_cli.graph.registry import OPS
from autodiff_cli.graph.state import grad_mode
from autodiff_cli.session import run
from autodiff_cli.source import Source
from autodiff_cli.symbolic import algebra, shorter
from autodiff_cli.symbolic.reading import READERS
from autodiff_cli.symbolic.writing.expression import Infix, Name, exact, expression_of, text
from autodiff_cli.symbolic.writing.forms import Form, infix, times, with_number
from autodiff_cli.symbolic.writing.forms import constant as constant_of
from tests.database import called, load
from tests.said import compare
from tests.together import together

from .conftest import Explain
from .test_textbook import data, derived

CALLS = load()
SAYS_NOTHING = ("the rule of ", "chain rule through ")


def nodes_of(calls: list[dict[str, Any]]) -> Iterator[Node]:
    for call in calls:
        for tensor in called(call, []):
            node = tensor.node.args[0] if tensor.node.op is OUTPUT else tensor.node
            if tensor.node.requires_grad and node.op.kind is not Kind.SOURCE:
                yield node


@together(CALLS)
def test_the_rule_of_every_op_is_told(variant: str) -> None:
    for node in nodes_of(CALLS[variant]):
        words = rule_of(node, node.op.vjp_rule is None and node.body is not None)
        assert not words.startswith(SAYS_NOTHING), (node.op.key, words)


def test_ops_without_words_are_seen() -> None:
    (node, *_) = nodes_of(CALLS["linalg.det"])
    kept, node.op.phrase = node.op.phrase, ""
    try:
        assert rule_of(node, False).startswith(SAYS_NOTHING)
    finally:
        node.op.phrase = kept


X = "x = tensor([[0.5, -1.0, 2.0], [1.5, 0.25, -0.75]], requires_grad=True)\n"
I = "i = tensor([[2, 0], [1, 1]])\n"
SINGLE = "x = tensor([0.5, -1.0], dtype=float32, requires_grad=True)\n"
# Ops whose rules are made of what no program can call: how that is written in PyTorch's words.
WRITTEN = {
    SINGLE + "y = tanh(x)\n": "g(y) * (1 - y * y)",
    X + "y = x[1]\n": "select_scatter(zeros(2, 3), g(y), 0, 1)",
    X + "y = x[:, 1:]\n": "slice_scatter(zeros(2, 3), g(y), 1, 1, None, 1)",
    X + "y = diagonal(x, 1)\n": "diagonal_scatter(zeros(2, 3), g(y), 1, 0, 1)",
    X + "y = x.unsqueeze(0)\n": "g(y)[0]",
    X
    + "y = x[tensor([1, 0])]\n": "index_put(zeros(2, 3), [tensor([1, 0])], g(y), accumulate=True)",
    X + I + "y = x.scatter(1, i, 0.0)\n": "scatter(g(y), 1, i, value=0.0)",
    X + "k = tensor([0])\ny = x.index_fill(0, k, 3.0)\n": "index_fill(g(y), 0, k, value=0.0)",
    X + "y = lerp(x, x * 0, 0.25)\n": "0.75 * g(y)",
    X + "y = prod(x)\n": "g(y) @ d y / d x",
    SINGLE + "y = sinc(x)\n": "g(y) * d y / d x",
}


@pytest.mark.parametrize("program", WRITTEN)
def test_formulas_are_what_a_program_can_call(program: str, explain: Explain) -> None:
    """Each is run, and gives what the rule gave."""
    found = explain(program + "w = cos(arange(y.numel()).reshape(y.shape))\nloss = sum(y * w)\n")
    (step,) = [s for s in found.steps if any(i.name.partition("#")[0] == "y" for i in s.incoming)
               and any(c.to in ("x", "t1") for c in s.contributions)][-1:]  # fmt: skip
    (given,) = [c for c in step.contributions if c.to in ("x", "t1")][:1]
    shown = re.sub(r"\by#\d", "y", given.formula.text)
    assert shown == WRITTEN[program]
    if " d " not in shown:
        upstream = step.incoming[0].value.tolist()
        lines = f"{program}gy = tensor({upstream}, dtype=x.dtype)\n"
        shown = shown.replace("g(y)", "gy")
        report = run(Source(f"{lines}result = {shown}\n", "formula.expr"))
        assert report.error is None
        np.testing.assert_allclose(report.tensors["result"].value, given.value, rtol=1e-6)


# Rules that are made of what PyTorch has no name for.
BY_THE_CHAIN_RULE = frozenset([
    "convolve", "convolve_input", "ctc_loss_elements", "cumprod", "det", "im2col", "max_windows",
    "once", "prod", "resample", "unfold",
])  # fmt: skip


@together(CALLS)
def test_no_formula_says_what_it_goes_through(variant: str) -> None:
    """What a program cannot call is in no formula."""
    for tensor in (tensor for call in CALLS[variant] for tensor in called(call, [])):
        node = tensor.node
        with untouched([node]), grad_mode(False):
            seeds = [(node, constant(np.ones(node.shape, node.dtype)))] * node.requires_grad
            recording = recorded(seeds)
            for source, _, g in recording.given:
                names = {x: f"x{at}" for at, x in enumerate(source.inputs)}
                used = recording.used.get(source)
                arrived = used.values() if isinstance(used, dict) else [used]
                names |= {source: "y"} | dict.fromkeys(filter(None, arrived), "g")
                shown = expression_of(g, names)
                assert readable(shown) or source.op.key in BY_THE_CHAIN_RULE, text(shown)


def test_a_product_looks_as_its_factors_do() -> None:
    """Of equally long ways to write a product that with fewer marks is shown."""
    left, right = Form(Name("A", (2,)), 1), Form(Name("B", (2,)), 2)
    assert times(left, right) == Form(Infix("mul", left.shown, right.shown), 3)
    assert infix("add", left, right) == Form(Infix("add", left.shown, right.shown), 3)


TENTHS = [0.5, 0.1, 2.5, 0.001, 1e-5, 1e-7, 123456.5, 1e7, 1e15, 1e16, 0.30000000000000004, math.e]
NUMBERS = [
    *TENTHS,
    *(n / d for n in (1, 2, 7, 60, 999) for d in (3, 6, 9, 9.81, 60, 64, 97, 100, 101, 999, 1e4)),
    *(math.sqrt(n / d) * s for n in (1, 2, 3, 12, 63, 65) for d in (1, 2, 3, 50, 64, 65)
      for s in (1, math.sqrt(math.pi), 1 / math.sqrt(math.pi), 1e-2, 1e-4, 1e4)),
]  # fmt: skip


def test_numbers_as_they_are_written(request: pytest.FixtureRequest) -> None:
    """By themselves and in front of something: fractions, roots, decimals."""
    rows = []
    for number in dict.fromkeys(sign * x for x in NUMBERS for sign in (1, -1)):
        shown = [constant_of(number), with_number(Form(Name("x")), number)]
        rows.append("  ".join(text(form.shown, spaced=True) for form in shown))
        for form in shown:
            value = eval(text(form.shown), {"x": 1.0, "sqrt": math.sqrt, "pi": math.pi})
            assert math.isclose(value, number, rel_tol=2e-14)
    compare(request, ["\n".join(rows)], len(rows))


def test_what_numbers_of_single_precision_stand_for(request: pytest.FixtureRequest) -> None:
    ratios = [n / d for n in (1, 2, 3, 7, 50, 333) for d in (*range(1, 20), *range(97, 104))]
    rows = []
    for number in dict.fromkeys([*NUMBERS, *ratios, *map(math.sqrt, ratios)]):
        given = float(str(np.float32(number)))
        found = exact(given)
        assert math.isclose(found, given, rel_tol=2e-7) and -exact(-given) == found
        assert exact(given, narrow=False) == given
        rows.append(f"{given!r}  {found!r}")
    decimals = [round(n / 3, digits) for n in (1, 2, 7) for digits in range(4, 15)]
    near = [round((1 + k * 5e-8) / 3, 8) for k in range(-8, 9)]
    rows += [f"{number!r}  {exact(number)!r}" for number in (*decimals, *near)]
    compare(request, ["\n".join(rows)], len(rows))


# -- rules of formulas ----------------------------------------------------------------------------

RULES = [
    line.split(" | ")
    for line in (Path(__file__).parents[1] / "fixtures/rules.txt").read_text("utf-8").splitlines()
    if not line.startswith("#")
]
TABLES = [(algebra, "FEWER"), (shorter, "PAIRS"), (shorter, "ALONE")]


def derivative(wrt: str, lines: str) -> str:
    """As it is shown, with its named parts in front."""
    found = derived(data(lines) + lines.replace("; ", "\n") + "\n", wrt)
    assert found.error is None
    (d,) = (d for d in found.derivatives if d.wrt == wrt)
    assert d.verified
    return "; ".join([*(f"{name} = {part}" for name, part, _ in d.lets), d.text])


@pytest.mark.parametrize(("rule", "wrt", "lines", "formula"), RULES)
def test_what_a_rule_is_for(
    rule: str, wrt: str, lines: str, formula: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The formula is another one where the rule is switched off."""
    assert derivative(wrt, lines) == formula
    name, _, function = rule.rpartition(".")
    module = import_module(f"autodiff_cli.symbolic.{name}")
    gone = getattr(module, function)
    monkeypatch.setattr(module, function, lambda *args: None if name == "fewer" else iter(()))
    for owner, table in TABLES:
        rules = tuple(rule for rule in getattr(owner, table) if rule is not gone)
        monkeypatch.setattr(owner, table, rules)
    assert derivative(wrt, lines) != formula


def test_every_rule_has_a_formula_that_it_is_for() -> None:
    rules = {rule.rpartition(".")[2] for rule, *_ in RULES}
    assert {rule.__name__ for owner, table in TABLES for rule in getattr(owner, table)} <= rules


def test_what_is_read_is_an_op() -> None:
    assert READERS.keys() <= {*OPS, "cast", "output"}
