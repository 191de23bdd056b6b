"""Contributions add up to the gradients that reverse mode gives: random programs, recorded ones,
and every op of the table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given, settings

from autodiff_cli.autograd.tensor import Tensor
from autodiff_cli.explain.build import explain as explain_graph
from autodiff_cli.explain.model import Explanation, Request
from autodiff_cli.graph.op import constant
from autodiff_cli.graph.state import grad_mode
from autodiff_cli.language.program.running import Program
from autodiff_cli.session import Options, run
from autodiff_cli.source import Source

from ..properties.test_programs import SETTINGS, expressions, program
from ..recorded import cases as recorded_cases
from ..recorded import same_text
from ..table import Case, apply, arrays_of, cases, each_op, nodes_of, share
from ..together import together
from .conftest import explained

FIXTURES = Path(__file__).parent.parent / "fixtures"
NATIVE: list[dict[str, Any]] = json.loads((FIXTURES / "native.json").read_text("utf-8"))
# Of the recorded programs those by which three come by each block of `explain` and `autograd` that
# any of them reaches, but for a few that take long: the others go the same ways, and
# test_programs.py compares what they do.
PICKED = set((FIXTURES / "explained_programs.txt").read_text("utf-8").splitlines())
SNIPPETS = [case for case in recorded_cases("programs") if case["id"] in PICKED]


def test_picked_programs_are_there() -> None:
    assert len(SNIPPETS) == len(PICKED)


def hold_sums(found: Explanation, rtol: float = 1e-9) -> None:
    """What the steps give to each name is its total."""
    hooked = any(i.hooked for step in found.steps for i in step.incoming)
    for name, total in {t.name: t for t in found.totals}.items():
        given = [c for s in found.steps for c in s.contributions if c.to == name and not c.norms]
        starts = [s for s in found.seeds if s.name == name]
        if total.hooked or hooked:
            continue
        values = [c.value for c in given] + [s.value for s in starts]
        assert values, name
        scale = max(float(np.abs(v).max(initial=0)) for v in values)
        atol = max(1e-12, rtol * scale if np.isfinite(scale) else 0)
        np.testing.assert_allclose(sum(values), total.value, rtol=rtol, atol=atol)
        assert all(c.value.shape == c.shape == total.shape for c in given)
        assert [c.path for c in given if c.times == 1] == sorted(c.path for c in given
                                                                 if c.times == 1)  # fmt: skip


@given(expressions())
@settings(SETTINGS, max_examples=30)
def test_contributions_add_up_on_random_programs(text: str) -> None:
    source = program(text)
    found = explained(source, check=False)
    assert found.error is None
    hold_sums(found)
    report = run(Source(source, "test.expr"))
    for total in found.totals:
        np.testing.assert_array_equal(total.value, report.tensors[total.name].grad)


@given(expressions())
@settings(SETTINGS, max_examples=2)
def test_statements_add_up_like_operations(text: str) -> None:
    source = program(text) + "for i in range(40):\n    loss = tanh(loss * 0.9) + 0.1 * c\n"
    found = explained(source, check=False)
    every = explained(source, check=False, every=True)
    assert found.grouped and not every.grouped
    assert len(found.steps) < 10 < len(every.steps)
    hold_sums(found)
    hold_sums(every)
    for a, b in zip(found.totals, every.totals, strict=True):
        np.testing.assert_array_equal(a.value, b.value)


@together(NATIVE, lambda case: case["id"], 22)
def test_totals_are_the_recorded_gradients(case: dict[str, Any]) -> None:
    if case["files"] or case["options"]["defines"] or ".backward(" in case["source"]:
        return
    asked = case["options"]
    options = Options(grad_output=asked.get("grad_output"), dtype=asked.get("dtype"))
    wrt = tuple(asked.get("wrt", ()))
    found = explained(case["source"], options, of=asked.get("loss"), wrt=wrt, check=False)
    grads = {n: t["grad"] for n, t in case["tensors"].items() if t["grad"] is not None}
    if found.error is not None:
        assert not grads
        return
    hold_sums(found)
    for total in found.totals:
        if total.name in grads and case["tensors"][total.name]["is_leaf"]:
            recorded = np.array(grads[total.name], np.float64)
            np.testing.assert_allclose(total.value, recorded, rtol=1e-6, atol=1e-9)


@together(SNIPPETS, lambda case: case["id"], 15)
def test_snippets_are_explained_or_refused_in_words(case: dict[str, Any]) -> None:
    found = explained(case["source"], check=False)
    if found.error is not None:
        assert found.error.code[0] == "E" and found.error.code != "E900"
        return
    # The sign of a determinant depends on nothing: its backward reaches nobody.
    reaches_nobody = case["id"] == "random_programs: slogdet sign gives no grad"
    assert bool(found.steps or found.totals) is not reaches_nobody
    hold_sums(found, 1e-4)
    # Hooks run again, but in silence.
    assert same_text(found.stdout, case["stdout"])


# The first sample of half of the ops that a program can call: `test_formulas.py` has what is said
# of more.
PUBLIC = [case for case in cases() if case.op.public and case.op.differentiable]
SAMPLES = share({case.op.key: case for case in reversed(PUBLIC)}.values(), 2)


@each_op(SAMPLES)
def test_every_op_explains_itself(case: Case) -> None:
    nodes = nodes_of(case, arrays_of(case))
    outputs = [n for n in apply(case, nodes) if n.requires_grad]
    if not outputs:
        return
    program = Program(Source("", "sample"), Options())
    for place, node in nodes.items():
        program.scope.names[f"x{place}".replace(".", "_")] = Tensor(
            node, node.args[0] if node.requires_grad else None
        )
    with grad_mode(False):
        seeds = [(n, constant(np.full(n.shape, 0.5, n.dtype))) for n in outputs]
    found = explain_graph(program, Request(check=False), seeds, objective="out")
    hold_sums(found, 1e-5)
    for step in found.steps:
        assert step.op and step.rule and step.contributions
        for contribution in step.contributions:
            assert contribution.formula.text and contribution.formula.latex
            shown = contribution.formula.text + contribution.formula.latex
            assert "<op" not in shown and " object at " not in shown
