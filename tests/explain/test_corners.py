"""Explanations and pictures of what is seldom: hooks, numbers that are no floats, odd names, graphs
that are too large, checks that fail themselves."""

from __future__ import annotations

import io
import re
from pathlib import Path

import numpy as np
import pytest

from autodiff_cli.cli.main import main
from autodiff_cli.cli.streams import Environment
from autodiff_cli.errors import AutodiffError, fault
from autodiff_cli.explain import check, derive, evaluated
from autodiff_cli.explain.derive import derive_source
from autodiff_cli.explain.model import Request
from autodiff_cli.render.explanations.explain_documents import _code, shown_value
from autodiff_cli.render.profile import place_of
from autodiff_cli.render.report.numbers import value
from autodiff_cli.render.values import Look, statistics
from autodiff_cli.session import Options
from autodiff_cli.source import Source
from tests.pace import in_proportion

from ..cli.conftest import Cli
from .conftest import explained

TORCH = "import torch\nx = torch.tensor([1.0, 2.0], requires_grad=True)\n"


def test_checks_that_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fault of the comparison is said in its place; the time limit ends everything."""
    error = fault("E505 ran-out-memory", "it", "less")

    def fails(*args: object) -> None:
        raise error

    for place in ("__init__", "check"):
        with monkeypatch.context() as patched:
            patched.setattr(check.GraphCheck, place, fails)
            found = explained("x = 3\nloss = x * x").check
            assert found is not None and (found.kind, found.largest) == ("unknown", 0.0)
            assert found.text == "not compared with central differences: it ran out of memory"
            assert check.confirmed([], []) == set() or place == "check"
    monkeypatch.setattr(check.GraphCheck, "__init__", fails)
    error = fault("E508 time-limit-s-reached", 1.0, "--timeout", 10.0)
    assert explained("x = 3\nloss = x * x").error is error
    with pytest.raises(AutodiffError, match="time limit"):
        check.confirmed([], [])
    with monkeypatch.context() as patched:
        patched.setattr(evaluated, "built", fails)
        assert (
            derive_source(Source("x = 3\nloss = x * x", "t"), Options(), Request()).error is error
        )


def test_checks_that_would_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "PATIENCE", -1.0)
    found = explained("x = 3\ny = 2\nloss = x * y").check
    assert found is not None and (found.kind, found.largest) == ("unknown", 0.0)
    assert found.text == "not compared with central differences, which would take long: x, y"


def test_seeds_of_symbols(cli: Cli) -> None:
    text = "x = [1.0, 2.0]; y = x * x; y.backward(const([1.0, 2.0]))"
    said = cli("explain", "--symbolic", "-e", text).out
    assert "d sum(y * g(y)) / d v\n  seed  g(y)\n  1  *" in said


def test_formulas_that_disagree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(derive._Context, "_agrees", lambda *args: False)
    found = derive_source(Source("x = 3\nloss = x * x", "t"), Options(), Request()).error
    assert found is not None and found.code == "E404"


@pytest.mark.parametrize(("x", "y", "axes"), [("[[1, 2], [3, 4]]", "x @ x", 4),
                                              ("[1, 2]", "outer(x, x)", 3)])  # fmt: skip
def test_jacobians_of_matrices(x: str, y: str, axes: int) -> None:
    found = derive_source(Source(f"x = {x}\ny = {y}", "t"), Options(), Request(of="y")).error
    assert found is not None and f"{axes} axes" in found.message


def test_what_is_explained(cli: Cli) -> None:
    text = TORCH + "y = x * 2\nloss = (y * y).sum()\nloss.backward(retain_graph=True)\n"
    two = text + "other = y.sum()\nother.backward()\n"
    assert cli("explain", "--of", "loss", "-e", two).out.count("total\n  g(x) = [8, 16]\n") == 1
    assert cli("explain", "--of", "other", "-e", two).out.count("total\n  g(x) = [2, 2]\n") == 1
    said = cli("explain", "--of", "y", "-e", text)
    assert said.code == 3 and "an explanation needs a single number, but `y`" in said.err
    assert "--of NAME" in said.err
    hooked = TORCH + "x.register_hook(lambda g: g * 3)\nloss = (x * x).sum()\nloss.backward()\n"
    said = cli("explain", "--markdown", "-e", hooked).out
    assert "* `g(x)` = `[6, 12]` (replaced by a hook)\n" in said


def test_headers_of_loops() -> None:
    loop = "s = 0\nfor v in x * 2:\n    s = s + v * v\nloss = s\n" + "y = 1\n" * 3
    found = explained(f"x = [1.0, 2.0]\n{loop}")
    assert found.totals[0].value.tolist() == [8, 16]
    found = explained(f"x = ones(25, requires_grad=True)\n{loop}")  # a step for each statement
    assert [step.source for step in found.steps] == ["s = s + v * v", "for v in x * 2:"]
    assert found.totals[0].value.tolist() == [8] * 25


@pytest.mark.parametrize(("hooked", "factor"), [(1, 1), (6, 2), (7, 2)])
def test_hooks_are_not_what_differences_see(hooked: int, factor: int) -> None:
    """One that changes nothing is as none; of many that do six are named."""
    text = "import torch\nloss = 0\nfor _ in range(%d):\n"
    text += "    x = torch.ones(1, requires_grad=True)\n    h = x * 2\n"
    text += "    h.register_hook(lambda g: g * %d)\n    loss = loss + h * h\n"
    found = explained(f"{text % (hooked, factor)}loss.sum().backward()\n").check
    assert found is not None
    if factor == 1:
        assert found.text == "central differences agree: max abs diff < 1e-6"
        return
    names = ", ".join(f"x#{i}" for i in range(1, 7))
    more = " and 1 more" if hooked > 6 else ""
    assert found.text.startswith(f"central differences differ for {names}{more}: part of the graph")


def test_forms_of_values(cli: Cli) -> None:
    look = Look(max_elements=4)
    assert shown_value(np.arange(6.0).reshape(2, 3), look) == "(2, 3), norm 7.4162"
    assert _code("a`b") == "``a`b``" and _code("`a") == "`` `a ``"
    assert statistics(np.array([True, False, True])) == "2 of 3 elements True"
    assert place_of(None, "a.expr") == ""
    assert value(np.zeros((0, 3)), 6) == '<span class="number">empty (0, 3)</span>'
    cube = value(np.arange(8.0).reshape(2, 2, 2), 6)
    assert [f"<small>[{i}]</small>" in cube for i in range(3)] == [True, True, False]
    assert cube.count("<tr>") == 4 and cube.count("<td") == 8
    said = value(np.array([True, False]), 6)
    assert "<td>True</td><td>False</td>" in said
    large = "x = ones(9, 9, requires_grad=True)\nloss = sum(where(x > 0, x, 2 * x))"
    said = cli("explain", "-e", large, tty=True, NO_COLOR="1")
    assert "g(x)  (9, 9)  norm 9  2 paths added\n" in said.out


def test_jacobians_in_a_terminal(cli: Cli) -> None:
    text = "x = [1, 2]\nd_a = [5, 6]\ny = 3 * x * d_a"
    flat = cli("jacobian", "--layout", "flat", "-e", text, tty=True, NO_COLOR="1")
    assert flat.out.startswith("d y  (2, 4)  columns: x [0:2], d_a [2:4]\n  [[15,  0,  3,  0],\n")
    pair = "import torch\nm = torch.nn.Linear(1, 1)\nm_weight = torch.ones(1, requires_grad=True)\n"
    pair += "y = m(m_weight)"
    named = cli("jacobian", "--of", "y", "--wrt", "m.weight,m_weight", "-e", pair).out
    names = [line.partition(" = ")[0] for line in named.splitlines() if " = " in line]
    assert names[-2:] == ["J_y_m_weight", "J_y_m_weight_2"]
    color = cli("jacobian", "--wrt", "x", "-e", text, "--color", "always").out
    assert color.splitlines()[-1].startswith("\x1b[1mJ_y_x\x1b[0m = [[15")


def test_latex_of_parts(cli: Cli) -> None:
    text = "A = [[2, 0.5], [1, 3]]; x = const([1, 2]); loss = sum(inverse(A @ A.T))"
    text += " + sum((sigmoid(A @ x) - x)**2)"
    said = cli("derive", "--to", "latex", "-e", text).out + cli("derive", "--latex", "-e", text).out
    inverse = r"{\left(\left(A A^{\top}\right)^{-1}\right)}_{i,:}"
    assert (
        rf"\quad\text{{where}}\quad s = \sum_{{i}} {inverse},\; p = \sigma\left(A x\right)" in said
    )


def test_what_cannot_be_written(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "folder.json").mkdir()
    said = cli("run", "demo.expr", "-o", "folder.json")
    assert (said.code, "cannot write `folder.json`: it is a folder" in said.err) == (2, True)
    said = cli("run", "demo.expr", "-o", "it.zarr")
    assert (said.code, "add --engine dask" in said.err) == (2, True)


def test_large_graphs(cli: Cli) -> None:
    loop = (
        "x = [0.5, 1]\nfor i in range(80):\n    x = sin(cos(tanh(exp(x * 0.1))))\nloss = sum(x)\n"
    )
    drawn = cli("graph", "-f", "svg", "-e", loop).out.replace("\xa0", " ")
    assert "80 x MulBackward0, 80 x ExpBackward0, 80 x TanhBackward0, 160 others, each" in drawn
    few = cli("graph", "-f", "svg", "--max-nodes", "9", "-e", loop).out
    assert "… 393 nodes not drawn" in few and few.count('<g class="node') == 9
    names = [
        "sin",
        "cos",
        "tan",
        "sinh",
        "cosh",
        "tanh",
        "exp",
        "log",
        "abs",
        "relu",
        "atan",
        "erf",
    ]
    kinds = "".join(f"    y = {name}(x) + y\n" for name in [*names, "log1p", "sigmoid"])
    deep = f"x = [0.5]\ny = 0 * x\nfor i in range(400):\n{kinds}loss = sum(y)\n"
    said = cli("run", "--only", "graph", "-e", deep).out.splitlines()
    assert said[1] == "# 11203 nodes, too many for a tree (--all)"
    assert [line.split() for line in said[2:4]] == [
        ["#", "5600", "<AddBackward0>"], ["#", "400", "<SigmoidBackward0>"],
    ]  # fmt: skip
    assert [line.split() for line in said if "others" in line] == [["#", "1203", "others"]]


def test_notes_of_a_drawing(cli: Cli) -> None:
    text = "x = [-1.0, 4.0]\nloss = sum(sqrt(x))"
    for form, sign in [
        ("dot", '<- nan starts here", shape=box, color="red"];'),
        ("mermaid", "#60;- nan starts here"),
        ("svg", "nan\N{NO-BREAK SPACE}starts\N{NO-BREAK SPACE}here"),
        ("tree", "<- nan starts here"),
    ]:
        assert cli("graph", "-f", form, "-e", text).out.count(sign) == 1
        assert cli("graph", "-f", form, "--nan", "ignore", "-e", text).out.count("starts") == 0
    said = cli("graph", "--nan", "error", "-e", text)
    assert (said.code, said.err[:12]) == (4, "error[E501]:")


def test_many_values_and_items(cli: Cli, tmp_path: Path) -> None:
    many = "".join(f"c{i} = const({i})\n" for i in range(25))
    assert cli("run", "-e", many, tty=True).code == 0
    (tmp_path / "a.expr").write_text("x = 1\n" + "assert x == 2\n" * 45 + "loss = x * x\n")
    assert f" .{'F' * 36}...  " in cli("check", "a.expr").out
    assert '"note": "written"' in cli("check", "demo.expr", "--snapshot", "--format", "json").out
    said = cli("run", "-e", "x = const(zeros(0, 2) > 1)\ny = zeros(0).long()").out
    assert "x = zeros(0, 2, dtype=torch.bool)" in said and "y = zeros(0, dtype=torch.int64)" in said


def test_names_of_what_is_bound_again(cli: Cli) -> None:
    """Only the value of an expression has the name, not what it is made of."""
    text = "x = [1, 2]\ny = x\nfor i in range(2):\n    y = log_softmax(y * 2, 0)\nloss = sum(y * x)"
    said = cli("explain", "--all", "--open", "log_softmax", "-e", text).out.splitlines()
    names = [line.split()[1] for line in said if re.match(r" +\d+  [\w#]+ = ", line)]
    steps = [f"t{i}" for i in range(1, 6)], [f"t{i}" for i in range(6, 11)]
    assert names == [*steps[0], "y#1", *steps[1], "y#2", "t11", "loss"]


def test_parameters_of_one_kind(cli: Cli) -> None:
    """Those alike are one line, one alone has its own name."""
    text = "import torch\nnn = torch.nn\n"
    text += "m = nn.Sequential(*[nn.Linear(2, 2) for _ in range(11)], nn.Linear(2, 3))\n"
    text += "loss = m(torch.ones(1, 2)).sum()\nloss.backward()\n"
    said = cli("run", "-e", text).out.splitlines()
    names = [re.split(r"[: ]", line.removeprefix("# "))[0] for line in said]
    assert names[1:] == ["m.11.weight", "m.11.bias", "loss", "m.*.weight", "m.*.bias",
                         "m.11.weight.grad", "m.11.bias.grad"]  # fmt: skip
    table = cli("run", "-e", text, tty=True, NO_COLOR="1").out.partition("Graph")[0]
    assert [table.count(f" {n} ") for n in ("m.*.weight", "m.11.weight", "m.11.bias")] == [1, 1, 1]


def test_all_steps_take_time_in_proportion() -> None:
    def work(count: int) -> None:
        text = f"x = 1\nfor i in range({count}):\n    x = x * 0.5 + 1\nloss = x\n"
        env = Environment(None, io.StringIO(), io.StringIO(), {})
        assert main(["explain", "--all", "-e", text], env) == 0

    assert in_proportion(work, 40, 240)
