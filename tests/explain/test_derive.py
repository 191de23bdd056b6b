"""Derivatives as formulas give the gradients that the program has, or are refused in words."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings

from autodiff_cli.explain.derive import Derived, derive_source
from autodiff_cli.explain.model import Request
from autodiff_cli.session import Options, run
from autodiff_cli.source import Source

from ..cli.conftest import Cli
from ..properties.test_programs import SETTINGS, expressions, program


def derived(text: str, raw: bool = False) -> Derived:
    return derive_source(Source(text, "test.expr"), Options(), Request(), raw)


@pytest.mark.parametrize(
    ("text", "formulas"),
    [
        ("A = [[1, 2], [3, 4]]; B = [[5, 6], [7, 8]]; loss = sum((A + B) * A)",
         {"A": "2 * A + B", "B": "A"}),
        ("x = 2; loss = x**3 - 2*x", {"x": "3 * x**2 - 2"}),
        ("x = [1, 2]; w = 3; loss = sum(w*x)", {"x": "w * ones(2)", "w": "sum(x)"}),
        ("x = [1, 2]; loss = sum(tanh(x))", {"x": "1 - tanh(x)**2"}),
        ("x = [1, 2]; y = [3, 4]; loss = sum(x / y)", {"x": "1 / y", "y": "-x / y**2"}),
        ("W = [[1, 2], [3, 4]]; x = [[1], [2]]; loss = sum(W @ x)",
         {"W": "ones(2, 1) * x.T", "x": "sum(W, 0)[:, None]"}),
        ("x = [3, 1]; k = const([2.5, 5]); loss = sum(x * k)", {"x": "k"}),
        ("A = [[1, 2], [3, 4]]; loss = sum(exp(-A) + exp(A.T))", {"A": "exp(A.T).T - exp(-A)"}),
        ("x = [1, 2, 4]; loss = mean(x)", {"x": "ones(3) / 3"}),
        ("x = [1, 2]; loss = sum(sort(x)[0] * const([3.5, 5]))",
         {"x": "index_add(zeros(2), 0, argsort(x), const([3.5, 5]))"}),
        ("x = 2; loss = 0.1*x**3/3", {"x": "0.1 * x**2"}),
        ("import torch\nx = torch.tensor([1., 2.], requires_grad=True)\nloss = torch.exp(x).sum()\n"
         "loss.backward()", {"x": "exp(x)"}),
        ("x = -2; loss = (x*x)**0.5", {"x": "x/sqrt(x**2)"}),
        ("x = 2; loss = x*0 + 1", {"x": "0"}),
        ("x = [1., 2]; w = [3., 1]; loss = cosine_similarity(x, w, 0)",
         {"x": "(w / norm(w) - loss * x / norm(x)) / norm(x)",
          "w": "(x / norm(x) - loss * w / norm(w)) / norm(w)"}),
        # a name that was given to something else is no name of what it was
        ("u = 2\nh = const(1.0)\nfor i in range(3):\n    h = 1 + u * h\nloss = h * 1",
         {"u": "u * (3 * u + 2) + 1"}),
        ("u = 2\nh = 3\nfor i in range(2):\n    h = u * h\nloss = h * 1",
         {"u": "2 * u * h#1", "h#1": "u**2"}),
    ],
)  # fmt: skip
def test_formulas(text: str, formulas: dict[str, str]) -> None:
    found = derived(text)
    assert found.error is None
    shown = {d.wrt: d.text for d in found.derivatives}
    if "sqrt" in str(formulas):  # in whichever words
        assert shown.keys() == formulas.keys()
    else:
        assert shown == formulas
    assert all(d.verified for d in found.derivatives)


@given(expressions())
@settings(SETTINGS, max_examples=8)
def test_formulas_are_the_gradients(text: str) -> None:
    source = program(text)
    for raw in (False, True):
        found = derived(source, raw)
        if found.error is not None:
            assert found.error.code in ("E404", "E505")
            continue
        assert all(d.verified for d in found.derivatives)
        lines = source
        for d in found.derivatives:
            lines += "".join(f"{name} = {part}\n" for name, part, _ in d.lets)
            lines += f"d_{d.wrt} = detach({d.text})\n"
        report = run(Source(lines, "test.expr"), Options(loss="loss"))
        assert report.error is None
        for d in found.derivatives:
            gradient = report.tensors[d.wrt].grad
            assert gradient is not None
            again = report.tensors[f"d_{d.wrt}"].value
            scale = max(1.0, float(np.abs(gradient).max()))
            np.testing.assert_allclose(again, gradient, rtol=1e-7, atol=1e-9 * scale)


def test_the_command(cli) -> None:
    assert cli("derive", "demo.expr").out == "d loss / d A = 2 * A + B\nd loss / d B = A\n"
    assert cli("derive", "demo.expr", "--wrt", "B").out == "d loss / d B = A\n"
    raw = cli("derive", "demo.expr", "--raw").out
    assert "d loss / d B = ones(2, 2) * A\n" in raw
    statements = cli("derive", "demo.expr", "--statements").out
    assert statements == "dloss_dA = 2 * A + B\ndloss_dB = A\n"
    latex = cli("derive", "demo.expr", "--latex").out
    assert latex.startswith("\\begin{align*}\n\\nabla_{A} \\ell &= 2 A + B \\\\\n")
    document = json.loads(cli("derive", "demo.expr", "--format", "json").out)
    assert document["derivatives"]["A"]["text"] == "2 * A + B"
    assert "\x1b[1md loss / d A\x1b[0m" in cli("derive", "demo.expr", "--color", "always").out


@pytest.mark.parametrize(
    ("arguments", "code", "exit_code"),
    [
        (["-e", "A = [[1, 2], [3, 5]]; loss = sum((A @ A) ** 2)", "--order", "2"], "E404", 3),
        (["-e", "x = 0.5\nfor i in range(210):\n    x = sin(x) * x\nloss = x"], "E505", 4),
        (["-e", "x = [1, 2]; y = x*2"], "E401", 3),
        (["demo.expr", "--wrt", "Q"], "E201", 3),
    ],
)
def test_refusals(cli, arguments: list[str], code: str, exit_code: int) -> None:
    result = cli("derive", *arguments)
    assert result.code == exit_code and f"error[{code}]" in result.err and "help:" in result.err
    document = json.loads(cli("derive", *arguments, "--format", "json", "-q").out)
    assert document["error"]["code"] == code


def test_usage(cli) -> None:
    assert cli("derive", "demo.expr", "--raw", "--simplify").code == 2
    assert cli("derive", "demo.expr", "--latex", "--statements").code == 2
    assert cli("derive", stdin_tty=True).code == 2


def test_changed_data() -> None:
    """The program's own backward reads what was changed through `.data`, and is explained so; a
    name's derivative is that of the function it was computed by."""
    text = (
        "import torch\nx = torch.tensor([1.0, 2.0], requires_grad=True)\ny = torch.sigmoid(x)\n"
        "loss = y.sum()\ny.data.zero_()\nloss.backward()\n"
    )
    assert run(Source(text + "print(x.grad)\n", "data.py")).stdout == "tensor([0., 0.])\n"
    own = derive_source(Source(text, "data.py"), Options(), Request())
    assert own.error is not None and own.error.code == "E404"
    function = derive_source(Source(text, "data.py"), Options(), Request(of="loss"))
    assert [d.text for d in function.derivatives] == ["sigmoid(x) * (1 - sigmoid(x))"]


PARTLY = "x = 0.5; y = 3\nfor i in range(210):\n    x = sin(x) * x\nloss = x + y**2"


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ((), "d loss / d y = 2 * y\n"),
        (("--statements",), "dloss_dy = 2 * y\n"),
        (("--to", "latex"),
         "\\begin{align*}\n\\frac{\\partial \\ell}{\\partial y} &= 2 y\n\\end{align*}\n"),
    ],
    ids=["", "statements", "latex"],
)  # fmt: skip
def test_what_is_found_is_shown_beside_what_is_not(
    cli: Cli, form: tuple[str, ...], said: str
) -> None:
    found = cli("derive", *form, "-e", PARTLY)
    assert found.out == said
    assert found.code == 4
    assert found.err.startswith("error[E505]: d loss / d x#1 is too long for a formula\n")


def test_all_that_is_missing_is_said(cli: Cli) -> None:
    pair = "z = [[2, 1], [1, 3]]; y = 3; loss = y**2 + sum(z**3)"
    found = cli("derive", "--order", "2", "--wrt", "z,y", "-e", pair)
    assert found.out == "d2 loss / d z d y = zeros(2, 2)\nd2 loss / d y d y = 2\n"
    assert found.err.startswith("error[E404]: the second derivative of loss by z has 4 axes, ")
    assert found.code == 3
    mixed = cli("derive", "-e", PARTLY + "\nA = [[1, 2], [3, 5]]", "--format", "json")
    document = json.loads(mixed.out)
    assert document["status"] == "error"
    assert document["derivatives"]["y"]["expr"] == "2 * y"
    assert document["missing"]["x#1"] == document["error"]
    assert document["error"]["code"] == "E505"


@pytest.mark.parametrize("number", ["1.234567890123456e-200", "1.234567890123456e+200"])
def test_numbers_whose_squares_are_none(number: str) -> None:
    program = Source(f"x = [1, 2]; loss = sum(x * {number})", "a.expr")
    (found,) = derive_source(program, Options(), Request()).derivatives
    assert found.text == f"{number} * ones(2)"


def test_cells_of_two_steps() -> None:
    """What is in brackets had more axes of one element in front than where it stands."""
    text = "import torch\ntorch.manual_seed(0)\ncell = torch.nn.RNNCell(3, 2)\n"
    text += "x, h = torch.randn(2, 1, 3), torch.zeros(1, 2)\nfor t in range(2):\n"
    text += "    h = cell(x[t], h)\n(h**2).sum().backward()\n"
    found = derive_source(Source(text, "cell.py"), Options(), Request(), steps=True)
    assert found.error is None and all(d.verified and d.steps for d in found.derivatives)


def test_what_would_be_written_twice_as_often_at_each_step_is_too_long() -> None:
    lines = "x = const([1, 2.])", "for i in range(30):", "    x = tanh(x * w) + x", "loss = sum(x)"
    program = "\n".join(("w = [0.5, -1]", *lines))
    found = derive_source(Source(program, "test.expr"), Options(), Request(wrt=("w",)))
    assert found.error is not None and found.error.code in ("E404", "E505")
