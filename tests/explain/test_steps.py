"""`derive --steps`: each line has the value of the one before, by a rule that is named."""

from __future__ import annotations

import json
from typing import Any

import pytest

from autodiff_cli.explain.derive import Derived, derive_source
from autodiff_cli.explain.model import Request
from autodiff_cli.session import Options
from autodiff_cli.source import Source
from autodiff_cli.symbolic.differentials import _Steps
from autodiff_cli.symbolic.expression import Infix

from .test_textbook import DATA


def steps(loss: str, wrt: str) -> Derived:
    program = Source(f"{DATA}loss = {loss}\n", "test.expr")
    return derive_source(program, Options(), Request(wrt=(wrt,)), steps=True)


@pytest.mark.parametrize(
    ("wrt", "loss"), [("A", "sum(linalg.eigvalsh(A + A.T)**2)"), ("A", "sum(linalg.qr(A)[1]**2)")]
)
def test_what_has_no_rule_is_refused(wrt: str, loss: str) -> None:
    found = steps(loss, wrt)
    assert found.error is not None and found.error.code == "E404"


@pytest.mark.parametrize(
    ("loss", "wrt", "lines"),
    [
        ("mean((X @ w - y)**2)", "w", [
            ("d(mean((X @ w - y)**2))", ""),
            ("mean(d((X @ w - y)**2))", "d of mean is mean of d"),
            ("mean(2 * (X @ w - y) * d(X @ w - y))", "power rule"),
            ("mean(2 * (X @ w - y) * d(X @ w))", "the rest is constant"),
            ("mean(2 * (X @ w - y) * (X @ dw))", "a constant factor stays"),
            ("sum((0.5 * (X @ w - y) @ X) * dw)", "what multiplies dw, collected"),
        ]),
        ("logdet(A)", "A", [
            ("d(logdet(A))", ""),
            ("trace(inv(A) @ dA)", "d logdet(M) = trace(inv(M) @ dM)"),
            ("sum((inv(A).T) * dA)", "what multiplies dA, collected"),
        ]),
        ("x @ x / sum(x)", "x", [
            ("d(x @ x / sum(x))", ""),
            ("(d(x @ x) * sum(x) - x @ x * d(sum(x))) / sum(x)**2", "quotient rule"),
            ("((dx @ x + x @ dx) * sum(x) - x @ x * sum(dx)) / sum(x)**2",
             "product rule; d of sum is sum of d"),
            ("sum(((2 * x - loss) / sum(x)) * dx)", "what multiplies dx, collected"),
        ]),
    ],
)  # fmt: skip
def test_as_on_a_blackboard(loss: str, wrt: str, lines: list[tuple[str, str]]) -> None:
    (found,) = steps(loss, wrt).derivatives
    assert list(found.steps) == lines


def test_a_line_that_is_not_equal_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    rule = _Steps._power

    def wrong(self: Any, node: Any) -> Any:
        shown, name = rule(self, node)
        return Infix("mul", shown, shown), name

    monkeypatch.setattr(_Steps, "_power", wrong)
    found = steps("sum(x**3)", "x")
    assert found.error is not None and found.error.code == "E404"


def test_the_command(cli: Any) -> None:
    arguments = ("derive", "-e", "w = [1, 2]; loss = sum(w**3)", "--steps")
    assert cli(*arguments).out == (
        "     d(loss) = d(sum(w**3))\n"
        "             = sum(d(w**3))\n"
        "                 d of sum is sum of d\n"
        "             = sum(3 * w**2 * dw)\n"
        "                 power rule\n"
        "             = sum((3 * w**2) * dw)\n"
        "                 what multiplies dw, collected\n"
        "d loss / d w = 3 * w**2\n"
    )
    document = json.loads(cli(*arguments, "--format", "json").out)
    steps = document["derivatives"]["w"]["steps"]
    assert steps[2] == {"expr": "sum(3 * w**2 * dw)", "rule": "power rule"} and len(steps) == 4
    assert cli(*arguments, "--order", "2").code == 2


def test_values_of_one_name_are_told_apart_in_long_explanations(cli) -> None:
    lines = [f"x = {op}" for op in ["sin(x)", "x * 2", "cos(x)"] * 15]
    out = cli("explain", "-e", "\n".join(["x = 2", *lines, "loss = x + 1"])).out
    assert " 45  x#46 = cos(x#45) " in out and " 1  x#2 = sin(x#1) " in out
    assert "g(x#45) = -g(x#46) * sin(x#45)" in out
