"""`autodiff jacobian`: values against hand and finite differences, forms, errors, exit codes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from autodiff_cli import session
from autodiff_cli.autograd.transforms import jacobians
from autodiff_cli.cli.commands.jacobian import OPTIONS
from autodiff_cli.language.program import derivatives as module
from autodiff_cli.language.program.derivatives import Request, derivatives
from autodiff_cli.session import Options
from autodiff_cli.source import Source

from ..together import together

SQUARES = "x = [1, 2, 3]; y = x**2 * sum(x)"
LAYER = "x = [1, 2]; W = [[1, 2], [3, 4]]; b = 5.0; y = W @ x + b"


def blocks(text: str, **request) -> dict[tuple[str, str], np.ndarray]:
    found = derivatives(Source(text, "<test>"), Options(), Request(**request))
    assert found.error is None, found.error
    return found.blocks


def value(text: str, name: str) -> np.ndarray:
    return session.run(Source(text, "<test>"), Options(backward=False)).tensors[name].value


def differences(text: str, names: tuple[str, ...], of: str, step: float = 1e-6):
    """Central differences, by `-D`-like replacement of literals written as `NAME0`."""
    found = {}
    for name in names:
        base = value(text, name)
        columns = []
        for at in np.ndindex(*base.shape):
            sides = []
            for sign in (1, -1):
                moved = base.copy()
                moved[at] += sign * step
                options = Options(backward=False, defines=((name, repr(moved.tolist()), False),))
                report = session.run(Source(text, "<test>"), options)
                sides.append(report.tensors[of].value)
            columns.append((sides[0] - sides[1]) / (2 * step))
        stacked = np.stack(columns, axis=-1)
        found[of, name] = stacked.reshape(*stacked.shape[:-1], *base.shape)
    return found


@pytest.mark.parametrize("mode", ["auto", "reverse", "forward"])
def test_values_by_hand(cli, mode):
    # d(x_i**2 s)/dx_j = x_i**2 + [i = j] 2 x_i s, with s = 6
    result = cli("jacobian", "-e", SQUARES, "--mode", mode)
    assert result == (
        0,
        "# autodiff.jacobian/1  <expr>  of=y\n"
        "J_y_x = [[13.0, 1.0, 1.0], [4.0, 28.0, 4.0], [9.0, 9.0, 45.0]]  # d y / d x  (3,)x(3,)\n",
        "",
    )


def test_named_blocks(cli):
    result = cli("jacobian", "-e", LAYER, "--format", "json")
    document = json.loads(result.out)
    assert (result.code, result.err) == (0, "")
    assert document == {
        "schema": "autodiff.jacobian/1",
        "file": "<expr>",
        "status": "ok",
        "of": "y",
        "of_shape": [2],
        "mode": "reverse",
        "blocks": {
            "x": {"shape": [2, 2], "value": [[1.0, 2.0], [3.0, 4.0]]},
            "W": {
                "shape": [2, 2, 2],
                "value": [[[1.0, 2.0], [0.0, 0.0]], [[0.0, 0.0], [1.0, 2.0]]],
            },
            "b": {"shape": [2], "value": [1.0, 1.0]},
        },
        "stdout": "",
    }
    titles = cli("jacobian", "-e", LAYER, "--format", "rich").out
    assert "d y / d W  (2,)x(2, 2)" in titles


PROGRAMS = [
    "A = [[0.3, -1.2], [2.0, 0.7]]\nB = [[1.5, 0.2], [-0.4, 1.1]]\ny = tanh(A @ B) * sum(A, 1)",
    "A = [[3.0, 0.5], [0.5, 2.0]]\nB = [1.0, -2.0]\ny = linalg.solve(A, B)",
    "A = [0.3, -1.2, 0.8]\nB = [[0.1, 0.2, 0.4]]\ny = softmax(A * B, 1).cumsum(1)",
    "A = [0.5, 1.5]\nB = [1.0, 2.0, 3.0]\ny = outer(A, B).flatten()[1:5] ** 2",
]


@pytest.mark.parametrize("text", PROGRAMS)
@pytest.mark.parametrize("mode", ["reverse", "forward"])
@pytest.mark.parametrize("together", [1 << 22, 1])
def test_values_by_differences(monkeypatch, text, mode, together):
    monkeypatch.setattr(jacobians, "BATCH", together)
    monkeypatch.setattr(jacobians, "MOST", together)
    found = blocks(text, of="y", mode=mode)
    wanted = differences(text, ("A", "B"), "y")
    assert list(found) == list(wanted)
    for key, block in found.items():
        np.testing.assert_allclose(block, wanted[key], rtol=1e-6, atol=1e-8)


def test_auto_is_the_mode_with_fewer_passes(cli):
    wide = json.loads(cli("jacobian", "-e", "x = 2.0; y = x * ones(5)", "--format", "json").out)
    tall = json.loads(cli("jacobian", "-e", "x = [1, 2]; y = x[0]*x[1]", "--format", "json").out)
    assert (wide["mode"], tall["mode"]) == ("forward", "reverse")
    assert wide["blocks"]["x"]["value"] == [1.0] * 5
    assert tall["blocks"]["x"]["value"] == [2.0, 1.0]


CTC = """import torch
import torch.nn.functional as F
x = torch.tensor([0.3], dtype=torch.float64, requires_grad=True)
u = torch.stack([x[0] * k for k in (1.0, -2.0, 0.5)])
p = torch.stack([u, u * u, u.sin()], 1).view(3, 1, 3).expand(3, 2, 3).log_softmax(2)
targets, lengths = torch.tensor([[1, 2], [2, 0]]), torch.tensor([2, 1])
y = F.ctc_loss(p, targets, torch.tensor([3, 3]), lengths, reduction="none")
"""


def test_reverse_mode_takes_over_where_a_rule_has_no_derivative(cli, tmp_path):
    (tmp_path / "ctc.py").write_text(CTC)
    document = json.loads(cli("jacobian", "ctc.py", "--of", "y", "--format", "json").out)
    assert document["mode"] == "reverse"
    # `torch.autograd.functional.jacobian`
    np.testing.assert_allclose(
        document["blocks"]["x"]["value"], [[-0.39303414260480257], [2.099528334560507]], 1e-12
    )
    assert "E404" in cli("jacobian", "ctc.py", "--of", "y", "--mode", "forward").err


def test_the_flat_layout(cli, tmp_path):
    document = json.loads(cli("jacobian", "-e", LAYER, "--layout", "flat", "--format", "json").out)
    matrix = [[1, 2, 1, 2, 0, 0, 1], [3, 4, 0, 0, 1, 2, 1]]
    assert document["matrix"] == {"shape": [2, 7], "value": matrix}
    assert document["columns"][1] == {"name": "W", "shape": [2, 2], "start": 2, "stop": 6}
    assert "J_y = [[1.0, 2.0, 1.0" in cli("jacobian", "-e", LAYER, "--layout", "flat").out
    assert cli("jacobian", "-e", LAYER, "--layout", "flat", "-o", "J.csv").code == 0
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "J.csv", delimiter=","), matrix)


def test_files(cli, tmp_path):
    assert cli("jacobian", "-e", LAYER, "--out", "J.npz") == (0, "", "")
    with np.load(tmp_path / "J.npz") as arrays:
        assert list(arrays) == ["J_y_x", "J_y_W", "J_y_b"]
        assert arrays["J_y_W"].shape == (2, 2, 2)
    assert cli("jacobian", "-e", LAYER, "--wrt", "x", "-o", "J.npy").code == 0
    np.testing.assert_array_equal(np.load(tmp_path / "J.npy"), [[1, 2], [3, 4]])
    result = cli("jacobian", "-e", LAYER, "-o", "J2.npy")
    assert result.code == 2 and "--wrt" in result.err
    assert cli("jacobian", "-e", LAYER, "-o", "J.json").code == 0
    assert json.loads((tmp_path / "J.json").read_text())["of"] == "y"


def test_plain_text_is_a_program(cli, tmp_path):
    text = cli("jacobian", "-e", LAYER).out
    again = session.run(Source(text, "<again>"), Options(backward=False))
    assert again.error is None
    np.testing.assert_array_equal(again.tensors["J_y_x"].value, [[1, 2], [3, 4]])


@together(
    [
        ("jacobian", "x * 3", "x * 3"),
        ("hessian", "x * 3", "z"),
        ("jacobian", "sum(x * x)", "sum(x * x)"),
        ("hessian", "sum(x * x)", "sum(x * x)"),
        ("jacobian", "a, b = sum(x), sum(x * x)", "b"),
        ("hessian", "a, b = sum(x), sum(x * x)", "b"),
        ("hessian", "a, b = sum(x * x), x * x", "a"),
        ("jacobian", "y", "y"),
        ("hessian", "y", "z"),
    ]
)
def test_what_is_differentiated_unasked(kind, last, what):
    text = f"x = [1, 2]; y = x * 2; z = sum(x * y); {last}"
    found = derivatives(Source(text, "<test>"), Options(), Request(kind))
    assert found.error is None
    assert found.text == what


def test_what_is_differentiated(cli):
    assert "of=loss" in cli("jacobian", "demo.expr").out
    assert "J_loss_A = [[7.0, 10.0], [13.0, 16.0]]" in cli("jacobian", "demo.expr").out
    assert (
        "J_h_x = [[2.0, 0.0], [0.0, 4.0]]"
        in cli("jacobian", "-e", "x = [1, 2]; h = x**2; y = sum(h)", "--of", "h").out
    )
    bare = cli("jacobian", "-e", "x = [1, 2]; x[0] * x").out
    assert "J_x = [[2.0, 0.0], [2.0, 1.0]]  # d x[0] * x / d x" in bare
    through = cli("jacobian", "-e", "x = [1, 2]; h = x**2; y = 3*h", "--wrt", "h").out
    assert "J_y_h = [[3.0, 0.0], [0.0, 3.0]]" in through


def test_globs_defines_and_dtypes(cli):
    program = "W1 = 2.0; W2 = 3.0; b = 1.0; y = W1 * W2 + b"
    out = cli("jacobian", "-e", program, "--wrt", "W*", "-D", "W1=5").out
    assert "J_y_W1 = 3.0 " in out and "J_y_W2 = 5.0 " in out and "J_y_b" not in out
    out = cli("jacobian", "-e", "c = const([1., 2.]); y = c*c", "--wrt", "c").out
    assert "J_y_c = [[2.0, 0.0], [0.0, 4.0]]" in out
    out = cli("jacobian", "-e", program, "--wrt", "b", "--dtype", "float32").out
    assert "dtype=torch.float32" in out


def test_elements_and_parameters_have_names(cli, tmp_path):
    program = (
        "import torch\n"
        "p = [torch.tensor([1., 2.], requires_grad=True)]\n"
        "q = {'w': torch.tensor(3., requires_grad=True)}\n"
        "y = p[0] * q['w']\n"
    )
    document = json.loads(cli("jacobian", "-e", program, "--format", "json").out)
    assert document["blocks"]["p[0]"]["value"] == [[3.0, 0.0], [0.0, 3.0]]
    assert document["blocks"]["q['w']"]["value"] == [1.0, 2.0]
    chosen = json.loads(cli("jacobian", "-e", program, "--wrt", "p[0]", "--format", "json").out)
    assert list(chosen["blocks"]) == ["p[0]"]


def test_backward_hooks_and_steps_of_the_program_do_not_matter(cli):
    program = (
        "import torch\n"
        "w = torch.tensor([1., 2.], requires_grad=True)\n"
        "y = w ** 3\n"
        "y.register_hook(lambda g: 100 * g)\n"
        "y.sum().backward()\n"
        "with torch.no_grad():\n"
        "    w -= 0.1 * w.grad\n"
    )
    document = json.loads(cli("jacobian", "-e", program, "--of", "y", "--format", "json").out)
    assert document["blocks"]["w"]["value"] == [[3.0, 0.0], [0.0, 12.0]]


def test_what_is_not_connected_is_told(cli):
    program = "x = [1, 2]; d = 5.0; y = 2 * x"
    left_out = cli("jacobian", "-e", program)
    assert "W403" in left_out.err and "left out" in left_out.err
    assert "J_y_d" not in left_out.out
    asked = cli("jacobian", "-e", program, "--wrt", "x,d")
    assert "J_y_d = [0.0, 0.0]" in asked.out and "zero" in asked.err
    assert cli("jacobian", "-e", program, "-q").err == ""


def test_empty_tensors(cli):
    result = cli("jacobian", "-e", "x = zeros(0, requires_grad=True); y = 2 * x")
    assert (result.code, result.err) == (0, "")
    assert "J_y_x = zeros(0, 0)" in result.out


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (["-e", SQUARES, "--of", "yy"], 3, ["E201", "did you mean `y`"]),
        (["-e", "n = 3; m = 'a'; y = [1.] * 2", "--of", "m"], 3, ["E201", "not a tensor"]),
        (["-e", SQUARES, "--wrt", "z"], 3, ["E201", "x, y"]),
        (["-e", "W1 = 2.0; y = W1**2", "--wrt", "W2"], 3, ["E201", "did you mean `W1`"]),
        (["-e", "p = 2.0; y = p**2", "--wrt", "p.weight"], 3, ["E201", "p"]),
        (["-e", "x = const([1., 2.]); y = x * 2"], 3, ["E402"]),
        (["-e", "x = const([1., 2.]); y = x * 2", "--of", "y"], 3, ["E402", "`y`"]),
        (["-e", "x = [1.]; c = [const([2.])]; y = x * c[0]", "--wrt", "c[0]"], 3, ["E402", "c[0]"]),
        (["-e", "y = tensor([1.], requires_grad=True) * 2"], 3, ["E403", "`y`"]),
        (["-e", "x = zeros(4000, requires_grad=True); y = x*2"], 4, ["E505", "--force"]),
        (["-e", "x = [1, 2]; y = x @ [1, 2, 3]"], 3, ["error[E3"]),
        (["-e", "x = [1, 2"], 3, ["error[E1"]),
        (["-e", SQUARES, "-D", "z=3"], 2, ["E204"]),
        (["-e", "x = 0.0; y = sqrt(x)", "--nan", "error"], 4, ["E502", "infinite"]),
        (["-e", SQUARES, "--mode", "backward"], 2, ["backward", "reverse"]),
        (["-e", SQUARES, "-o", "J.xyz"], 2, ["J.xyz"]),
        (["missing.expr"], 2, ["missing.expr"]),
    ],
)
def test_errors(cli, argv, code, words):
    result = cli("jacobian", *argv)
    assert (result.code, result.out) == (code, "")
    for word in words:
        assert word in result.err
    assert "Traceback" not in result.err


def test_errors_are_documents(cli):
    result = cli("jacobian", "-e", SQUARES, "--of", "yy", "--format", "json", "-q")
    document = json.loads(result.out)
    assert (result.code, result.err) == (3, "")
    assert (document["status"], document["error"]["code"]) == ("error", "E201")
    assert document["schema"] == "autodiff.jacobian/1"


def test_large_ones_are_forced(cli, monkeypatch):
    monkeypatch.setattr(module, "MOST_ENTRIES", 8)
    assert cli("jacobian", "-e", SQUARES).code == 4
    assert cli("jacobian", "-e", SQUARES, "--force").code == 0
    monkeypatch.setattr(module, "MOST_ENTRIES", 9)
    assert cli("jacobian", "-e", SQUARES).code == 0


def test_several_files_and_standard_input(cli, tmp_path):
    (tmp_path / "bad.expr").write_text("x = [1,\n")
    result = cli("jacobian", "bad.expr", "demo.expr", "--format", "json")
    statuses = [json.loads(line)["status"] for line in result.out.splitlines()]
    assert (result.code, statuses) == (3, ["error", "ok"])
    assert "J_y_x" in cli("jacobian", stdin=SQUARES).out
    nothing = cli("jacobian", stdin_tty=True)
    assert nothing.code == 2 and "autodiff jacobian" in nothing.err


def test_every_option_is_in_the_help(cli):
    page = cli("jacobian", "-h").out
    for option in OPTIONS:
        assert option.flags[-1] in page


@pytest.mark.parametrize("width", ["30", "50", "100"])
def test_tables_fit(cli, width):
    out = cli("jacobian", "-e", SQUARES, tty=True, COLUMNS=width).out
    assert "d y / d x  (3,)x(3,)" in out
    assert max(map(len, out.splitlines())) <= int(width)


OWN_RULE = """
import torch
class Own(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x): return x * 2
    @staticmethod
    def backward(ctx, g): return {rule}
w = torch.arange(9.0, dtype=torch.float64).reshape(3, 3) + 1
x = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
y = {of}
rows = torch.stack([torch.autograd.grad(y[i], x, retain_graph=True)[0] for i in range(3)])
"""


RULES = [
    "g * g", "3 / (g + 2)", "(g + 2) / (g + 3)", "w.sum() / (g + 2)", "g + 1", "1 - g", "g - g * g",
    "torch.where(g > 4, 1.0, g)", "torch.where(g > 4, g, 2 * g)", "torch.where(g > 4, g, 0)",
    "g.sum() * g", "w @ g", "g @ w * g", "g.outer(g) @ g", "g.outer(g).sum(0)", "(g * g) @ w",
]  # fmt: skip
OF = ["w @ Own.apply(x)", "Own.apply(x * x) * x", "Own.apply(w @ x)"]


@together([(rule, of) for of in OF for rule in RULES], group=16)
def test_rules_of_ones_own_that_are_not_linear(rule: str, of: str) -> None:
    """Unit vectors go through them at once, and give what each gives by itself."""
    text = OWN_RULE.format(rule=rule, of=of)
    np.testing.assert_allclose(blocks(text, of="y")["y", "x"], value(text, "rows"), rtol=1e-12)
