"""What cannot be explained is refused in words, with the usual codes; programs are left alone."""

from __future__ import annotations

import json

import pytest

from autodiff_cli.autograd.tensor import Tensor
from autodiff_cli.explain.build import explain as explain_graph
from autodiff_cli.explain.model import Request
from autodiff_cli.explain.source import Observed
from autodiff_cli.session import Options
from autodiff_cli.source import Source

SCALAR = "x = [1, 2]; y = x*2; loss = sum(y)"


@pytest.mark.parametrize(
    ("text", "arguments", "code", "exit_code", "words"),
    [
        (SCALAR, ["--wrt", "q"], "E201", 3, "--wrt q"),
        (SCALAR, ["--wrt", "m.weight"], "E201", 3, "m.weight"),
        (SCALAR, ["--node", "zz"], "E201", 3, "--node zz"),
        (SCALAR, ["--open", "softmax"], "E201", 3, "--open softmax"),
        (SCALAR, ["--loss", "zz"], "E201", 3, "zz"),
        (SCALAR, ["--loss", "y"], "E401", 3, "single number"),
        ("x = [1, 2]; y = x*2", [], "E401", 3, "`y` has shape (2,)"),
        ("loss = sum(const([1, 2]))", [], "E402", 3, "requires grad"),
        ("n = 3", [], "E402", 3, "requires grad"),
        ("", [], "E402", 3, "requires grad"),
        ("import torch\nx = torch.ones(2)\ny = x.sum()", [], "E402", 3, "requires grad"),
        ("x = [1,", [], "E101", 3, "never closed"),
        ("x = [1, 2]; loss = sum(x + [1, 2, 3])", [], "E302", 3, "broadcast"),
        ("x = 2; loss = x*x", ["-D", "q=1"], "E204", 2, "q"),
    ],
)
def test_diagnostics(cli, text, arguments, code, exit_code, words):
    result = cli("explain", "-e", text, *arguments)
    assert result.code == exit_code and result.out == ""
    assert f"error[{code}]" in result.err and words in result.err and "help:" in result.err
    result = cli("explain", "-e", text, *arguments, "--format", "json", "-q")
    document = json.loads(result.out)
    assert document["error"]["code"] == code and result.err == ""


def test_snippets_without_backward(cli):
    text = "import torch\nw = torch.tensor([1.0, 2.0], requires_grad=True)\nloss = (w**2).sum()\n"
    for more in ("", "loss.backward()\n"):
        assert cli("derive", "-e", text + more).out == "d loss / d w = 2 * w\n"
        document = json.loads(cli("explain", "-e", text + more, "--format", "json").out)
        assert document["totals"]["w"]["value"] == [2.0, 4.0]


def test_usage(cli):
    assert cli("explain", "missing.expr").code == 2
    assert cli("explain", "demo.expr", "--latex", "--markdown").code == 2
    assert cli("explain", "demo.expr", "--format", "json", "--latex").code == 2
    assert cli("explain", "demo.expr", "-o", "nowhere/x.md").code == 2
    result = cli("explain", stdin_tty=True)
    assert result.code == 2 and "autodiff explain demo.expr" in result.err
    assert cli("explain", "--help").code == 0


def test_several_programs(cli):
    result = cli("explain", "demo.expr", "missing.expr", "demo.expr")
    assert result.code == 2 and result.out.count("forward") == 2


def test_the_name_of_another_result(cli):
    out = cli("explain", "-e", "x = 2; y = x*x; z = y*x", "--loss", "y").out
    assert "d y / d v" in out and "g(x) = 4" in out
    text = "import torch\nx = torch.tensor(2., requires_grad=True)\ny = x*x\nz = y*x\nz.backward()"
    assert "g(x) = 4 " in cli("explain", "-e", text, "--of", "y").out
    out = cli("explain", "-e", "x = [1, 2]; y = x*x", "--loss", "y", "--grad-output", "[1, 10]").out
    assert "g(x) = [2, 40]" in out and "given" in out


def test_a_program_is_left_as_it_was():
    text = (
        "import torch\nseen = []\nx = torch.tensor([1., 2.], requires_grad=True)\nh = x*2\n"
        "h.retain_grad()\nh.register_hook(lambda g: print('hook'))\n(h*h).sum().backward()\n"
    )
    program = Observed(Source(text, "x.py"), Options())
    program.run()
    h: Tensor = program.scope.names["h"]
    marks, grad = h.node.marks, h.grad
    x_grad = program.scope.names["x"].grad
    assert grad is not None
    value = grad.numpy().copy()
    found = explain_graph(program, Request(), program.passes[-1])
    assert found.totals[0].value.tolist() == [8, 16]
    assert h.node.marks is marks and h.grad is grad and (grad.numpy() == value).all()
    assert program.scope.names["x"].grad is x_grad


def test_changes_in_place_and_freed_graphs_do_not_matter(cli):
    text = (
        "import torch\nx = torch.tensor([1., 2.], requires_grad=True)\ny = x*x\n"
        "y.sum().backward()\nwith torch.no_grad():\n    x += 1\n"
    )
    out = cli("explain", "-e", text).out
    assert "g(x) = [2, 4]" in out


def test_the_time_limit_holds(cli):
    text = "x = [0.5, 1]\nfor i in range(100000):\n    x = sin(x) + x\nloss = sum(x)"
    result = cli("explain", "-e", text, "--timeout", "0.3")
    assert result.code == 4 and "E508" in result.err and result.out == ""
