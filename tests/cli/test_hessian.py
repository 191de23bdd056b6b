"""`autodiff hessian`: values against hand and finite differences, what eigenvalues say, errors."""

from __future__ import annotations

import json

import numpy as np
import pytest

from autodiff_cli import session
from autodiff_cli.autograd.transforms import jacobians
from autodiff_cli.cli.commands.hessian import OPTIONS
from autodiff_cli.language.program.derivatives import Request, derivatives
from autodiff_cli.session import Options
from autodiff_cli.source import Source

CUBIC = "x = [1, 2]; c = 3.0; loss = x[0]**2 * x[1] * c"
REGRESSION = (
    "X = const([[0.5, -1.0], [1.5, 0.3], [-0.7, 2.0]])\n"
    "W = [0.3, -0.8]\n"
    "b = 0.1\n"
    "loss = mean(softplus(X @ W + b) ** 2)\n"
)


def find(text: str, **request):
    found = derivatives(Source(text, "<test>"), Options(), Request("hessian", **request))
    assert found.error is None, found.error
    return found


def gradients_at(text: str, **values: np.ndarray) -> np.ndarray:
    defines = tuple((name, repr(v.tolist()), False) for name, v in values.items())
    report = session.run(Source(text, "<test>"), Options(defines=defines))
    return np.concatenate([report.tensors[name].grad.ravel() for name in values])


def test_values_by_hand(cli):
    # loss = x0**2 x1 c at (1, 2, 3)
    result = cli("hessian", "-e", CUBIC)
    lines = result.out.splitlines()
    assert (result.code, result.err) == (0, "")
    assert lines[:5] == [
        "# autodiff.hessian/1  <expr>  of=loss",
        "H_loss_x_x = [[12.0, 6.0], [6.0, 0.0]]  # d2 loss / d x d x  (2,)x(2,)",
        "H_loss_x_c = [4.0, 1.0]  # d2 loss / d x d c  (2,)x()",
        "H_loss_c_x = [4.0, 1.0]  # d2 loss / d c d x  ()x(2,)",
        "H_loss_c_c = 0.0  # d2 loss / d c d c  ()x()",
    ]
    assert "indefinite (saddle)" in lines[-1]


@pytest.mark.parametrize("together", [1 << 22, 1])
def test_values_by_differences(monkeypatch, together):
    monkeypatch.setattr(jacobians, "BATCH", together)
    monkeypatch.setattr(jacobians, "MOST", together)
    found = find(REGRESSION)
    point = {"W": np.array([0.3, -0.8]), "b": np.array(0.1)}
    rows = []
    for name, base in point.items():
        for at in np.ndindex(*base.shape):
            sides = []
            for sign in (1, -1):
                moved = base.copy()
                moved[at] += sign * 1e-5
                sides.append(gradients_at(REGRESSION, **{**point, name: moved}))
            rows.append((sides[0] - sides[1]) / 2e-5)
    wanted = np.array(rows)
    whole = np.block(
        [
            [found.blocks[a, b].reshape(m, n) for b, n in (("W", 2), ("b", 1))]
            for a, m in (("W", 2), ("b", 1))
        ]
    )
    np.testing.assert_allclose(whole, wanted, rtol=1e-6, atol=1e-8)
    np.testing.assert_array_equal(found.blocks["W", "b"], found.blocks["b", "W"])
    np.testing.assert_allclose(found.spectrum.values, np.linalg.eigvalsh(whole))
    norm = np.linalg.norm(gradients_at(REGRESSION, **point))
    np.testing.assert_allclose(found.spectrum.gradient_norm, norm)


def test_the_document(cli):
    document = json.loads(cli("hessian", "-e", CUBIC, "--format", "json").out)
    assert document["schema"] == "autodiff.hessian/1"
    assert (document["of"], document["of_shape"], document["status"]) == ("loss", [], "ok")
    assert document["blocks"]["x"]["c"] == {"shape": [2], "value": [4.0, 1.0]}
    counts = document["eigenvalues"]
    assert (counts["negative"], counts["zero"], counts["positive"]) == (2, 0, 1)
    whole = np.array([[12, 6, 4], [6, 0, 1], [4, 1, 0]])
    np.testing.assert_allclose(
        [counts["min"], counts["max"]], np.linalg.eigvalsh(whole)[[0, -1]], rtol=1e-12
    )
    assert document["definiteness"] == "indefinite"
    assert document["point"] is None  # the gradient is not zero
    np.testing.assert_allclose(document["gradient_norm"], np.linalg.norm([12, 3, 2]))


@pytest.mark.parametrize(
    ("loss", "definiteness", "point", "words"),
    [
        ("x[0]**2 + 2*x[1]**2", "positive definite", "minimum", "a strict local minimum"),
        ("-x[0]**2 - 2*x[1]**2", "negative definite", "maximum", "a strict local maximum"),
        ("x[0]**2 - x[1]**2", "indefinite", "saddle", "a saddle point"),
        ("x[0]*x[1]", "indefinite", "saddle", "a saddle point"),
        ("(x[0] + x[1])**2", "positive semidefinite", None, "do not decide"),
        ("-(x[0] + x[1])**2", "negative semidefinite", None, "do not decide"),
        ("x[0]**4 + x[1]**4", "zero", None, "do not decide"),
        ("exp(x[0]) + exp(x[1])", "positive definite", None, "the gradient is not zero"),
        ("sum((x - 1e-9)**2)", "positive definite", "minimum", "a strict local minimum"),
        ("sum((x - 2e-8)**2)", "positive definite", None, "the gradient is not zero"),
        ("100 * sum((x - 5e-9)**2)", "positive definite", "minimum", "a strict local minimum"),
        ("0.1 * sum((x - 6.5e-8)**2)", "positive definite", None, "the gradient is not zero"),
    ],
)
def test_what_eigenvalues_say(cli, loss, definiteness, point, words):
    program = f"x = [0, 0]; loss = {loss}"
    document = json.loads(cli("hessian", "-e", program, "--format", "json").out)
    assert (document["definiteness"], document["point"]) == (definiteness, point)
    for form in ("plain", "rich"):
        assert words in cli("hessian", "-e", program, "--format", form).out


def test_eigenvalues_of_large_ones_are_asked_for(cli):
    program = "x = arange(1., 71., requires_grad=True); loss = sum(x**3) / 6"
    assert "eigenvalues" not in cli("hessian", "-e", program).out
    out = cli("hessian", "-e", program, "--eig").out
    assert "eigenvalues: min 1.0, max 70.0  (0 negative, 0 zero, 70 positive)" in out


def products(cli, *argv: str):
    result = cli("hessian", "-e", CUBIC, "--format", "json", *argv)
    assert result.code == 0, result.err
    return {name: entry["value"] for name, entry in json.loads(result.out)["product"].items()}


def test_products(cli, tmp_path):
    # H = [[12, 6, 4], [6, 0, 1], [4, 1, 0]] for (x0, x1, c)
    assert products(cli, "--hvp", "ones") == {"x": [22.0, 7.0], "c": 5.0}
    assert products(cli, "--hvp", "2") == {"x": [44.0, 14.0], "c": 10.0}
    assert products(cli, "--hvp", "[[1, 0], 2]") == {"x": [20.0, 8.0], "c": 4.0}
    assert products(cli, "--hvp", "[1, 0, 2]") == {"x": [20.0, 8.0], "c": 4.0}
    assert products(cli, "--hvp", "{'c': 1}") == {"x": [4.0, 1.0], "c": 0.0}
    assert products(cli, "--hvp", "x", "--wrt", "x") == {"x": [24.0, 6.0]}
    np.save(tmp_path / "v.npy", np.array([1.0, 0.0, 2.0]))
    assert products(cli, "--hvp", "@v.npy") == {"x": [20.0, 8.0], "c": 4.0}
    three = "a = 1; b = [1, 2]; c = 3; loss = a**2 + sum(b**3) + a * c**2"
    result = cli("hessian", "-e", three, "--hvp", "[1, 2, 3, 4]").out
    assert [line.partition("  #")[0] for line in result.splitlines()[1:4]] == [
        "Hv_loss_a = 26.0", "Hv_loss_b = [12.0, 36.0]", "Hv_loss_c = 14.0"
    ]  # fmt: skip
    plain = cli("hessian", "-e", CUBIC, "--hvp", "ones").out
    assert "Hv_loss_x = [22.0, 7.0]" in plain


def test_products_and_diagonals_need_no_matrix(cli):
    program = "x = ones({}, requires_grad=True); loss = sum(x**3)"
    assert cli("hessian", "-e", program.format(3200)).code == 4
    words = ("hessian", "-e", program.format(1000), "--max-memory", "4M", "--format", "json")
    assert cli(*words).code == 4
    for argv in (("--hvp", "ones"), ("--diag",)):
        document = json.loads(cli(*words, *argv).out)
        (part,) = (document[key] for key in ("product", "diagonal") if key in document)
        assert part["x"] == {"shape": [1000], "value": [6.0] * 1000}


def test_the_diagonal(cli):
    out = cli("hessian", "-e", CUBIC, "--diag").out
    assert "diag_H_loss_x = [12.0, 0.0]" in out
    assert "diag_H_loss_c = 0.0" in out


def test_blocks_of_matrices(cli):
    # loss = sum(A * A.T): d2 / dA_ij dA_kl = 2 where (k, l) = (j, i)
    document = json.loads(
        cli("hessian", "-e", "A = [[1, 2], [3, 4]]; loss = sum(A * A.T)", "--format", "json").out
    )
    wanted = 2 * np.einsum("il,jk->ijkl", np.eye(2), np.eye(2))
    assert document["blocks"]["A"]["A"]["value"] == wanted.tolist()


def test_files(cli, tmp_path):
    assert cli("hessian", "-e", CUBIC, "-o", "H.npz") == (0, "", "")
    with np.load(tmp_path / "H.npz") as arrays:
        assert list(arrays) == ["H_loss_x_x", "H_loss_x_c", "H_loss_c_x", "H_loss_c_c"]
    assert cli("hessian", "-e", CUBIC, "--wrt", "x", "-o", "H.csv").code == 0
    np.testing.assert_array_equal(np.loadtxt(tmp_path / "H.csv", delimiter=","), [[12, 6], [6, 0]])


def test_gradients_that_the_program_reads(cli):
    program = "A = [1, 2]; loss = sum(A**2); assert A.grad == [2., 4.]"
    assert "H_loss_A_A = [[2.0, 0.0], [0.0, 2.0]]" in cli("hessian", "-e", program).out


@pytest.mark.parametrize(
    ("argv", "code", "words"),
    [
        (["-e", "x = [1, 2]; y = x * 2"], 3, ["E401", "(2,)", "autodiff jacobian"]),
        (["-e", "x = [1, 2]; x * 2"], 3, ["E401", "`x * 2` has shape (2,)"]),
        (["-e", CUBIC, "--of", "x"], 3, ["E401"]),
        (["-e", CUBIC, "--of", "los"], 3, ["E201", "did you mean `loss`"]),
        (["-e", CUBIC, "--wrt", "d"], 3, ["E201"]),
        (["-e", "loss = sum(const([1., 2.]))"], 3, ["E402"]),
        (["-e", "x = zeros(4000, requires_grad=True); loss = sum(x)"], 4, ["E505", "--hvp"]),
        (["-e", "x = zeros(40000, requires_grad=True); loss = sum(x)", "--diag"], 4, ["E505"]),
        (["-e", "x = [1, 2]; h = x**2; loss = sum(h)", "--wrt", "x,h"], 3, ["E411", "`h`"]),
        (["-e", CUBIC, "--hvp", "[1, 2, 3, 4]"], 3, ["E308", "3 elements"]),
        (["-e", CUBIC, "--hvp", "[[1, 2, 3], 1]"], 3, ["E308", "`x`"]),
        (["-e", CUBIC, "--hvp", "{'y': 1}"], 3, ["E201", "x, c"]),
        (["-e", CUBIC, "--hvp", "'text'"], 3, ["E208"]),
        (["-e", CUBIC, "--hvp", "1 +"], 3, ["E102"]),
        (["-e", CUBIC, "--hvp", "@none.npy"], 4, ["E701"]),
        (["-e", CUBIC, "--hvp", "ones", "--diag"], 2, ["--hvp", "--diag"]),
        (["-e", "x = [0, 1]; loss = sum(sqrt(x) * x)", "--nan", "error"], 4, ["E501"]),
        (["-e", "x = [0, 1]; loss = sum(sqrt(x))", "--nan", "error"], 4, ["E502", "1 of 4"]),
        (["missing.expr"], 2, ["missing.expr"]),
    ],
)
def test_errors(cli, argv, code, words):
    result = cli("hessian", *argv)
    assert (result.code, result.out) == (code, "")
    for word in words:
        assert word in result.err
    assert "Traceback" not in result.err


def test_what_is_not_finite_is_told(cli):
    result = cli("hessian", "-e", "x = [0, 1]; loss = sum(sqrt(x) * x)", "--format", "json")
    document = json.loads(result.out)
    assert result.code == 0 and "W501" in result.err
    assert document["blocks"]["x"]["x"]["value"] == [["nan", 0.0], [0.0, 0.75]]
    assert "eigenvalues" not in document


def test_an_infinite_slope_leaves_independent_elements_alone(cli):
    result = cli("hessian", "-e", "x = [0, 1]; loss = sum(sqrt(x))", "--format", "json")
    document = json.loads(result.out)
    assert result.code == 0 and "W502" in result.err
    assert document["blocks"]["x"]["x"]["value"] == [["-inf", 0.0], [0.0, -0.25]]


def test_every_option_is_in_the_help(cli):
    page = cli("hessian", "-h").out
    for option in OPTIONS:
        assert option.flags[-1] in page


def test_the_hessian_in_numbers_is_one_matrix(cli):
    # x**2 * y at (3, 2), by hand: [[2y, 2x], [2x, 0]]
    shown = cli("hessian", "-e", "x = 3; y = 2; f = x**2 * y", "--format", "rich").out
    assert shown.startswith("d2 f  by x, y  (2, 2)\n  [[4, 6],\n   [6, 0]]\n")
    shown = cli("hessian", "-e", "x = 3; y = 2; f = x**2 * y", "--format", "rich", "--diag").out
    assert shown == "diagonal of d2 f  by x, y  (2,)\n  [4, 0]\n"
    shown = cli("hessian", "-e", "x = 3; y = [2]; f = sum(x**2 * y)", "--format", "rich").out
    assert shown.startswith("d2 f  by x, y[0]  (2, 2)\n  [[4, 6],\n   [6, 0]]\n")


VECTORS = (
    "ones", " ones ", "2", "[2]", "[1, 2]", "[[1, 2]]", "[1, [2, 3]]", "[[1, 2], [3, 4]]",
    "(1, 2, 3)", "[[1, 2, 3]]", "[[[1, 2, 3]]]", "{'x': 2}", "{'x': [1, 2, 3], 'y': 1}", "{}", "x",
    "[x, 1]", "[]", "[1, 2, 3, 4]", "[[1, 2, 3], 1]", "x * 2", "[True, False]", "None",
)  # fmt: skip
VARIABLES = {
    "a number": "x = 3",
    "a row": "x = [[1, 2, 3]]",
    "a vector": "x = [1, 2, 3]",
    "numbers": "x = 3\ny = 2",
    "of one element": "x = [3]\ny = 2",
    "a vector and a number": "x = [1, 2, 3]\ny = 2",
    "alike": "x = [1, 2]\ny = [3, 4]",
}


@pytest.mark.parametrize("name", VARIABLES)
def test_vectors_of_every_kind(cli, name: str) -> None:
    more = " * y" * ("y" in VARIABLES[name])
    text = f"{VARIABLES[name]}\nloss = sum(x * x * x{more})\n"
    for vector in VECTORS:
        assert cli("hessian", "-", "--hvp", vector, stdin=text).code in (0, 3)


@pytest.mark.parametrize("rows", [64, 65])
def test_eigenvalues_of_small_hessians_are_told(rows):
    text = f"x = arange({rows}.0).requires_grad_(); loss = sum(x * x)"
    assert (find(text).spectrum is not None) == (rows == 64)
    assert find(text, eigenvalues=True).spectrum is not None
