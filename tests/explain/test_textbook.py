"""Formulas beside those of textbooks: equal in value, and about as short."""

from __future__ import annotations

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autodiff_cli.explain import derive as module
from autodiff_cli.explain.derive import Derived, derive_source
from autodiff_cli.explain.model import Request
from autodiff_cli.render.explanations import derive as shown
from autodiff_cli.render.text import text_width
from autodiff_cli.session import Options, run
from autodiff_cli.source import Source
from autodiff_cli.symbolic.derivation import Formula
from autodiff_cli.symbolic.writing.expression import Call, Number
from autodiff_cli.symbolic.writing.latex import escaped

from ..properties.test_programs import SETTINGS
from ..together import together

FIXTURES = Path(__file__).parent.parent / "fixtures"
DATA = """\
X = tensor([[0.5, -1.2, 0.3], [1, 0.4, -0.7], [0.2, 1, 1.3], [-0.6, 0.8, 0]], requires_grad=True)
y = tensor([0.3, -0.5, 1.2, 0.7])
c = tensor([0., 1., 1., 0.])
w = tensor([0.4, -0.2, 0.9], requires_grad=True)
b = tensor(0.3, requires_grad=True)
A = tensor([[2., 0.3, -0.1], [0.4, 1.5, 0.2], [0.1, -0.2, 1.8]], requires_grad=True)
B = tensor([[1., 0.5, 0.2], [0.3, -0.8, 0.6], [0.9, 0.1, 0.4]], requires_grad=True)
x = tensor([0.7, -0.3, 1.1], requires_grad=True)
z = tensor([0.2, 1.4, -0.6], requires_grad=True)
W = tensor([[0.4, -0.2], [0.1, 0.8], [-0.5, 0.3]], requires_grad=True)
V = tensor([[0.4, -0.2, 0.5, 0.6], [0.1, 0.8, -0.3, 0.2]], requires_grad=True)
Y = tensor([[1., 0.], [0., 1.], [1., 0.], [0., 1.]])
T = tensor([[0.3, 0.1], [0.2, -0.4], [0.5, 0.6], [-0.1, 0.9]])
Q = tensor([[0.3, 0.1], [0.2, -0.4], [0.5, 0.6], [-0.1, 0.9]], requires_grad=True)
lam = tensor(0.5)
k = tensor([0, 1, 0, 1])
m = tensor([False, True, False])
C = tensor([[1.2, -0.3, 0.4], [0.1, 0.9, 0.5], [-0.6, 0.2, 1.1]], requires_grad=True)
prob = tensor([0.3, 0.5, 0.2], requires_grad=True)
target = tensor([0.6, 0.1, 0.3], requires_grad=True)
s = tensor([1.5, 0.7, 1.2], requires_grad=True)
sig = tensor(1.3, requires_grad=True)
mu = tensor(0.2, requires_grad=True)
U = tensor([[0.4, -0.2], [0.1, 0.8], [-0.5, 0.3]], requires_grad=True)
b2 = tensor([0.3, -0.1], requires_grad=True)
k3 = tensor([0.2,0.5,-0.1], requires_grad=True)
s6 = tensor([1.,2.,0.5,-1.,0.3,0.8], requires_grad=True)
N = tensor([[[0.5, -1.2, 0.3, 1, 0.4, -0.7], [0.2, 1, 1.3, -0.6, 0.8, 0]],
            [[0.1, 0.7, -0.3, 1.1, 0.2, 1.4], [0.9, -0.6, 0.4, 0.3, -1, 0.5]]], requires_grad=True)
F = tensor([[[1., 0.5, 0.2], [0.3, -0.8, 0.6]], [[0.9, 0.1, 0.4], [0.7, -0.3, 1.1]],
            [[0.2, 1.4, -0.6], [0.4, -0.2, 0.9]]], requires_grad=True)
I = tensor([[[[2., 0.3, -0.1], [0.4, 1.5, 0.2], [0.1, -0.2, 1.8]]]], requires_grad=True)
O = tensor([[[[0.4, -0.2], [0.1, 0.8]]]], requires_grad=True)
"""
VALUES = {text.partition(" ")[0]: text for text in re.findall(r"\w+ = .*\n(?: .*\n)*", DATA)}
CASES = [
    line.split(" | ")
    for line in (FIXTURES / "textbook.txt").read_text().splitlines()
    if not line.startswith("#")
]
PROBLEMS = json.loads((FIXTURES / "problems.json").read_text("utf-8"))
OPERATORS = re.compile(r"\*\*|[-+*/@<>]|\.T\b|\w+\(|\w\[|\]\[")

# What mathtext has not.
LACKING = (r"\texttt", r"\begin{cases}", r"\begin{bmatrix}")


@cache
def mathtext() -> Any:
    from matplotlib.mathtext import MathTextParser

    return MathTextParser("agg")


def typeset(latex: str) -> None:
    """Compile a formula by mathtext where it has the commands; it has one sign for both sides of a
    norm."""
    if not any(command in latex for command in LACKING):
        mathtext().parse(f"${re.sub(r'[lr]Vert', 'Vert', latex)}$")


def data(text: str) -> str:
    """The data that a text names."""
    names = set(re.findall(r"\w+", text))
    return "".join(value for name, value in VALUES.items() if name in names)


def cost_of(text: str) -> int:
    """The operators, calls and subscripts of a formula; a minus before a number is a part of it, a
    sum of products with letters is as many as it has factors."""
    text = re.sub(r"'([^']*)'", lambda found: "+" * found[1].count(","), text)
    return len(OPERATORS.findall(re.sub(r"(^|[(\[,*]\s*)-(?=\d)", r"\1", text)))


def fits(found: Derived) -> bool:
    """Whether no line is wider than a terminal is."""
    return all(
        text_width(line) <= width
        for width in (120, 80, 44)
        for line in shown.lines(found, width=width).splitlines()
    )


def derived(text: str, wrt: str, order: int = 1, steps: bool = False) -> Derived:
    request = Request(wrt=tuple(wrt.split(",")))
    return derive_source(Source(text, "test.expr"), Options(), request, order=order, steps=steps)


def shortest(program: str, wrt: str, formula: str, order: int, said: bool) -> None:
    found = derived(program, wrt, order, said)
    assert found.error is None
    (d,) = [d for d in found.derivatives if d.wrt == wrt]
    assert d.verified
    if said:  # each line has the value of the one before, by a rule that is named
        assert d.steps[0][0].startswith("d(") and not d.steps[0][1]
        assert all(step.rule for step in d.steps[1:])
        assert not re.search(r"\bd\(", d.steps[-1][0]) and f"d{wrt}" in d.steps[-1][0]
        assert fits(found)
    lines = "".join(f"{name} = {part}\n" for name, part, _ in d.lets)
    *parts, rest = formula.split("; ")
    named = "".join(f"{part}\n" for part in parts)
    text = f"{program}{lines}ours = {d.text}\n{named}textbook = {rest}\n"
    report = run(Source(text, "test.expr"), Options(loss="loss"))
    assert report.error is None
    ours, textbook = (np.asarray(report.tensors[name].value) for name in ("ours", "textbook"))
    np.testing.assert_allclose(ours, textbook, rtol=1e-5, atol=1e-6)
    if order == 1:
        np.testing.assert_allclose(ours, report.tensors[wrt].grad, rtol=1e-5, atol=1e-6)
    assert d.cost <= 1.5 * cost_of(formula) + 1, d.text
    assert d.latex.count("{") - d.latex.count(r"\{") == d.latex.count("}") - d.latex.count(r"\}")
    assert d.latex.count(r"\left") == d.latex.count(r"\right")


# Of every third the derivation is looked at too.
@together(
    [(*case, case[0] == "1" and i % 3 == 0) for i, case in enumerate(CASES)],
    lambda row: " | ".join(row[:4]), 8,
)  # fmt: skip
def test_beside_a_textbook(order: str, wrt: str, loss: str, formula: str, said: bool) -> None:
    program = f"{data(f'{loss} {formula}')}loss = {loss}\n"
    shortest(program, wrt, formula, int(order), said)


@together(
    [(*problem, i % 3 == 0) for i, problem in enumerate(PROBLEMS)], lambda row: str(row[0]), 4
)
def test_problems_of_other_fields(
    name: str, program: str, wrt: str, formula: str, said: bool
) -> None:
    """Control, geometry, statistics, inference, learning: the formulas were written first."""
    shortest(program, wrt, formula, 1, said)


@pytest.mark.parametrize(
    ("order", "wrt", "loss", "latex"),
    [
        (1, "x", "x @ A @ x", r"A^{\top} x + A x"),
        (1, "w", "mean((X @ w - y)**2)", r"0.5 X^{\top} \left(X w - y\right)"),
        (1, "A", "logdet(A)", r"A^{-\top}"),
        (1, "A", "x @ solve(A, z)", r"-A^{-\top} x \left(A^{-1} z\right)^{\top}"),
        (1, "x", "norm(x - z)", r"\frac{x - z}{\ell}"),
        (
            1,
            "x",
            "huber_loss(x, z, delta=0.5, reduction='sum')",
            r"\operatorname{clamp}\left(x - z, -0.5, 0.5\right)",
        ),
        (
            1,
            "w",
            "sum(X.T * w[:, None] / 3 / norm(z))",
            r"\frac{\sum_{i} {X}_{i,:}}{3 \left\lVert z \right\rVert_{2}}",
        ),
        (1, "B", "sum((z[:, None] + x) * B)", r"z \mathbf{1}^{\top} + \mathbf{1} x^{\top}"),
        (1, "W", "sum((X @ W) * (X @ W) * Y) / 2", r"X^{\top} \left(X W \odot Y\right)"),
        (
            1,
            "x",
            "(1 - x[0])**2 + 100 * (x[1] - x[0]**2)**2 + x[2]",
            r"\begin{bmatrix} 2 {x}_{0} \left(1 - u\right) - 2 \\ u \\ 1 \end{bmatrix}",
        ),
        (1, "X", "sum(Y * T * (X @ W))", r"\left(Y \odot T\right) W^{\top}"),
        (1, "x", "sum(x**3)", r"3 x^{\odot 2}"),
        (1, "lam", "lam * sum(x)", r"\mathbf{1}^{\top} x"),
        (
            1,
            "x",
            "sum(relu(x))",
            r"\begin{cases} 1 & \text{if } x > 0 \\ 0 & \text{otherwise} \end{cases}",
        ),
        (
            1,
            "N",
            "0.5 * sum(conv1d(N, F)**2)",
            r"\left(N \star F\right) \ast F",
        ),
        (
            1,
            "O",
            "0.5 * sum(conv2d(I, O, padding=1)**2)",
            r"I \star_{\text{padding=1}} \left(I \star_{\text{padding=1}} O\right)",
        ),
        (1, "b2", "sum(N * b2[:, None])", r"\sum_{i,k} {N}_{i,:,k}"),
        (
            1,
            "N",
            "sum(mean(N, 2)**2)",
            r"\frac{\mathbf{1}_{1 \times 1 \times 6} \odot \left(\sum_{k} {N}_{:,:,k}\right)}{18}",
        ),
        (
            1,
            "X",
            "sum(logsumexp(X, 1)**2) / 2",
            r"\operatorname{diag}\left(\log \sum_{j} \exp {X}_{:,j}\right)"
            r" \operatorname{softmax}_{j}\left({X}_{:,j}\right)",
        ),
        (
            1,
            "w",
            "sum(einsum('bij,j->bi', F, w)**2) / 2",
            r"\left[\sum_{ij} {F}_{ijk} \, {\left(F w\right)}_{ij}\right]_{k}",
        ),
        (
            1,
            "N",
            "sum(N.permute(2, 0, 1) * N.reshape(6, 2, 2))",
            r"\operatorname{reshape}_{2 \times 2 \times 6}\left(\left[{N}_{ijk}\right]_{kij}\right)"
            r" + \left[{\operatorname{reshape}_{6 \times 2 \times 2}\left(N\right)}_{ijk}"
            r"\right]_{jki}",
        ),
        (
            1,
            "N",
            "sum(N.flatten(0, 1) * N.flatten(0, 1)[:, :1])",
            r"{N}_{:, :, 0} \otimes \mathbf{1}"
            r" + \left(\sum_{k} {N}_{:,:,k}\right) \odot \left(I_{6}\right)_{0}",
        ),
        (
            2,
            "x",
            "sum((A @ x)**4)",
            r"12 A^{\top} \operatorname{diag}\left(\left(A x\right)^{\odot 2}\right) A",
        ),
        (
            1,
            "X",
            "sum((X - w) / norm(x))",
            r"\frac{\mathbf{1}_{4 \times 3}}{\left\lVert x \right\rVert_{2}}",
        ),
    ],
)
def test_as_a_journal_prints_it(order: int, wrt: str, loss: str, latex: str) -> None:
    found = derived(f"{data(loss)}loss = {loss}\n", wrt, order).derivatives
    assert [d.latex for d in found if d.wrt == wrt] == [latex]


def test_names_in_latex() -> None:
    text = "sigma_2 = 2.; Theta = 3.; W_ih = 4.; cost = sigma_2 * Theta * W_ih * sigma_2"
    found = derived(text, "sigma_2,Theta,W_ih")
    assert {d.wrt: d.wrt_latex for d in found.derivatives} == {
        "sigma_2": r"\sigma_{2}", "Theta": r"\Theta", "W_ih": r"W_{\mathrm{ih}}",
    }  # fmt: skip
    assert found.of_latex == r"\mathrm{cost}"
    text = "日本 = [2., 1.]; σ日 = 3.; naïve = [1., 2.]; loss = sum(日本**2 * naïve) * σ日"
    (d, *_) = derived(text, "日本,σ日,naïve").derivatives
    latex = r"2 {\mathrm{\sigma}\text{日}} \text{日本} \odot \text{naïve}"
    assert (d.wrt_latex, d.latex) == (r"\text{日本}", latex)
    typeset(latex)
    assert escaped("π·`") == r"$\pi$$\cdot$`"


@pytest.mark.parametrize(
    ("result", "formula"),
    [
        ("tanh(A @ x)", "A * (1 - y**2)[:, None]"),
        ("softmax(x, 0)", "diag(y) - outer(y, y)"),
        ("inv(A) @ x", "inv(A)"),
    ],
)
def test_jacobians(result: str, formula: str) -> None:
    data = "A = [[2., 0.3, 0.1], [0.4, 1.5, 0.2], [0.1, 0.2, 1.8]]; x = [0.7, -0.3, 1.1]"
    program = f"{data}; y = {result}"
    request = Request(of="y", wrt=("x",))
    found = derive_source(Source(program, "test.expr"), Options(), request)
    (d,) = found.derivatives
    assert found.whole and d.verified and d.shape == (3, 3) and d.cost <= cost_of(formula) + 2
    text = f"{program}; a = detach({d.text}); b = detach({formula}); loss = sum(y)"
    values = run(Source(text, "test.expr"), Options(loss="loss")).tensors
    np.testing.assert_allclose(values["a"].value, values["b"].value, rtol=1e-12)


def test_names_of_values_and_of_parts() -> None:
    found = derived(DATA + "p = softmax(z, 0)\nloss = x @ p\n", "z")
    assert [d.text for d in found.derivatives] == ["p * (x - loss)"]
    found = derived(DATA + "loss = sum((sigmoid(w * x) - lam)**2)\n", "w")
    (d,) = found.derivatives
    assert [(name, part) for name, part, _ in d.lets] == [("p", "sigmoid(w * x)")]
    assert sorted(d.text.split(" * ")) == ["(1 - p)", "(p - lam)", "2", "p", "x"]


@pytest.mark.parametrize(
    ("lines", "wrt", "formula"),
    [
        ("p = softmax(z, 0); q = softmax(x, 0); loss = sum(p * (log(p) - log(q)))", "x", "q - p"),
        ("p = softmax(z, 0); q = softmax(x, 0); loss = sum(p * (log(p) - log(q)))", "z",
         "p * (log(p) - log(q) - loss)"),
        ("s = sqrt(mean(x**2) + 0.1); loss = sum(z * x / s)", "x", "(z - loss * x / s / 3) / s"),
        ("loss = sqrt((x - z) @ inv(A) @ (x - z))", "x",
         "(inv(A) + inv(A).T) @ (x - z) / (2 * loss)"),
        ("pi = x**2 + 1; loss = sum(pi * erf(z))", "z",
         "2 * pi * exp(-z**2) / sqrt(3.141592653589793)"),
    ],
)  # fmt: skip
def test_in_the_names_of_values(lines: str, wrt: str, formula: str) -> None:
    program = data(lines + formula) + lines.replace("; ", "\n") + "\n"
    (d,) = (d for d in derived(program, wrt).derivatives if d.wrt == wrt)
    parts = "".join(f"{name} = {part}\n" for name, part, _ in d.lets)
    text = f"{program}{parts}ours = {d.text}\ntextbook = {formula}\n"
    values = run(Source(text, "test.expr"), Options(loss="loss")).tensors
    np.testing.assert_allclose(values["ours"].value, values["textbook"].value, rtol=1e-6)
    np.testing.assert_allclose(values["ours"].value, values[wrt].grad, rtol=1e-6)
    assert d.verified and d.cost <= cost_of(formula) + 1, d.text


def test_numbers_are_not_baked_in() -> None:
    """A formula that holds only where the program is would have no name for the threshold."""
    (d,) = derived(DATA + "loss = lam * sum(w**2)\n", "w").derivatives
    assert d.text == "2 * lam * w"


def test_more_than_two_axes_are_refused() -> None:
    found = derived(DATA + "loss = x @ tanh(A) @ x\n", "x,A", 2)
    assert {(name, error.code) for name, error in found.missing.items()} == {
        ("A", "E404"), ("A,x", "E404")
    }  # fmt: skip
    assert "has 4 axes" in found.missing["A"].message
    assert "has 3 axes" in found.missing["A,x"].message


def test_the_command(cli: Any) -> None:
    text = "w = [1, 2]; t = sum(tanh(w)**2 * tanh(w)); loss = t * t"
    document = json.loads(cli("derive", "-e", text, "--format", "json").out)
    found = document["derivatives"]["w"]
    assert document["order"] == 1 and found["expr"] == found["text"] and found["verified"]
    assert [name for name, _ in found["lets"]] == ["v"] or not found["lets"]
    second = cli("derive", "-e", "w = [1, 2]; loss = sum(w**3)", "--order", "2")
    assert second.out == "d2 loss / d w d w = 6 * diag(w)\n"
    statements = cli("derive", "-e", "w = [1, 2]; loss = sum(w**3)", "--order", "2", "--statements")
    assert statements.out == "d2loss_dw = 6 * diag(w)\n"
    assert cli("derive", "-e", "w = [1, 2]; loss = sum(w**3)", "--order", "3").code == 2


# -- random programs ------------------------------------------------------------------------------


def matrices() -> st.SearchStrategy[str]:
    return st.recursive(
        st.sampled_from(["A", "B", "(X.T @ X)", "outer(x, z)", "diag(x)", "eye(3)"]),
        lambda m: st.one_of(
            st.tuples(m, st.sampled_from(["@", "+", "-", "*"]), m).map(" ".join).map("({})".format),
            m.map("({}).T".format),
            m.map("tanh({})".format),
            m.map("inv({} / 9 + 3 * eye(3))".format),
            st.tuples(vectors_of(m), st.just("*"), m).map(" ".join).map("({})".format),
        ),
        max_leaves=4,
    )


def vectors_of(m: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.sampled_from(["x", "z", "w", "softmax(z, 0)"]),
        m.map("({} @ x)".format),
        m.map("sum({}, 0)".format),
        m.map("diag({})".format),
    )


def numbers() -> st.SearchStrategy[str]:
    m = matrices()
    v = vectors_of(m)
    return st.one_of(
        m.map("trace({})".format),
        m.map("sum({})".format),
        st.tuples(v, v).map(lambda pair: f"{pair[0]} @ {pair[1]}"),
        v.map("norm({} + 2)".format),
        v.map("logsumexp({}, 0)".format),
        m.map("mean({}**2)".format),
    )


@given(numbers(), st.sampled_from(["x", "z", "A", "B"]))
@settings(SETTINGS, max_examples=25)
def test_no_way_to_write_a_derivative_is_wrong(text: str, wrt: str) -> None:
    seen: list[tuple[str, bool | None]] = []
    original = module.agrees

    def compared(formula: Any, *rest: Any) -> bool | None:
        verdict = original(formula, *rest)
        seen.append((module.text(formula.shown), verdict))
        return verdict

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "agrees", compared)
        loss = f"{text} + 0 * sum(A * B) + 0 * sum(x * z)"
        found = derived(f"{data(loss)}loss = {loss}\n", wrt)
    assert found.error is None or found.error.code in ("E404", "E505")
    assert all(verdict for _, verdict in seen), seen


def test_axes_of_one_element() -> None:
    """A layer with one output: its bias has shape (1,), and so has the derivative."""
    program = f"{DATA}V = [[0.5, -0.2, 0.1]]; u = [0.3]\nloss = mean((X @ V.T + u - 1)**2)\n"
    for d in derived(program, "V,u").derivatives:
        values = run(
            Source(f"{program}ours = {d.text}\n", "test.expr"), Options(loss="loss")
        ).tensors
        assert d.verified and not d.lets and values["ours"].shape == values[d.wrt].shape
        np.testing.assert_allclose(values["ours"].value, values[d.wrt].grad, rtol=1e-6)


def test_what_holds_only_near_the_inputs_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """The slope of `abs` is 1 for these numbers, and for all that are a little off."""
    one = Call("ones", (Number(2),))
    monkeypatch.setattr(module.Formulas, "by", lambda *args: [Formula(one, (), 1)])
    (found,) = derived("x = [1, 2]; loss = sum(abs(x))\n", "x").derivatives
    assert found.text == "sgn(x)"


def test_names_of_means_and_of_centred_values() -> None:
    """What is centred by a value that has a name adds up to nothing."""
    program = f"""{DATA}m = mean(x)
d = sqrt(mean((x - m)**2) + 1e-5)
n = (x - m) / d
loss = z @ n
"""
    (d,) = derived(program, "x").derivatives
    assert d.text == "(z - loss * n / 3 - mean(z)) / d"
    program += f"ours = {d.text}\ntextbook = (z - mean(z) - n * mean(z * n)) / d\n"
    report = run(Source(program, "test.expr"), Options(loss="loss"))
    np.testing.assert_allclose(report.tensors["ours"].value, report.tensors["textbook"].value)


def test_numbers_of_single_precision_are_what_they_stand_for() -> None:
    """Attention scales both of its sides by the root of a half, which single precision rounds."""
    program = """import torch, torch.nn.functional as F
q = torch.tensor([[0.3, -0.2, 0.5, 1.0], [0.7, 0.1, -0.4, 0.2]], requires_grad=True)
k = torch.tensor([[0.1, 0.4, -0.6, 0.2], [0.9, -0.3, 0.2, 0.8], [0.5, 0.6, 0.1, -0.7]])
v = torch.tensor([[1.0, 0.2], [-0.5, 0.4], [0.3, 0.7]])
loss = (F.scaled_dot_product_attention(q, k, v)**2).sum() / 2
"""
    (d,) = derived(program, "q").derivatives
    assert d.text == "0.5 * p * (u @ v.T - sum(u * u, 1, keepdim=True)) @ k"
    assert [name + " = " + part for name, part, _ in d.lets] == [
        "p = softmax(0.5 * q @ k.T, 1)",
        "u = p @ v",
    ]
    odd = "x = torch.tensor([1.0], requires_grad=True)\nloss = (0.7071 * x + 3.5003 * x**2).sum()\n"
    assert derived(f"import torch\n{odd}", "x").derivatives[0].text == "7.0006 * x + 0.7071"


BATCHES = """q = tensor([[[0.3, -0.2], [0.7, 0.1]], [[0.5, 1.0], [-0.4, 0.2]]], requires_grad=True)
k = tensor([[[0.1, 0.4], [-0.6, 0.2], [0.9, 0.3]], [[0.2, 0.8], [0.5, 0.6], [0.1, -0.7]]], requires_grad=True)
v = tensor([[[1.0], [0.2], [-0.5]], [[0.4], [0.3], [0.7]]], requires_grad=True)
w = tensor([[0.3, -0.4], [0.1, 0.6]], requires_grad=True)
"""  # noqa: E501  # a table


@pytest.mark.parametrize(
    ("loss", "wrt", "text", "latex"),
    [
        ("(q @ transpose(k, 1, 2))**2", "q", "q @ transpose(k, 1, 2) @ k", r"q k^{\top} k"),
        ("(q @ transpose(k, 1, 2))**2", "k", "k @ transpose(q, 1, 2) @ q", r"k q^{\top} q"),
        ("(softmax(q @ transpose(k, 1, 2), 2) @ v)**2", "v", "transpose(p, 1, 2) @ (p @ v)",
         r"p^{\top} p v"),
        ("einsum('bij,jk->bik', q, w)**2", "w", "einsum('ijk,ijl->kl', q, q @ w)", None),
        ("(q @ w).reshape(2, 2, 2, 1).permute(0, 2, 1, 3)**2", "w",
         "einsum('ijk,ijl->kl', q, q @ w)", None),
    ],
)  # fmt: skip
def test_products_of_batches(loss: str, wrt: str, text: str, latex: str | None) -> None:
    (d,) = derived(f"{BATCHES}loss = sum({loss}) / 2\n", wrt).derivatives
    assert d.verified and d.text == text
    assert latex is None or d.latex == latex
