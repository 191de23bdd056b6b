"""Formulas beside those of textbooks: equal in value, and about as short."""

from __future__ import annotations

import json
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autodiff_cli.explain import derive as module
from autodiff_cli.explain.derive import Derived, derive_source
from autodiff_cli.explain.model import Request
from autodiff_cli.session import Options, run
from autodiff_cli.source import Source

from ..properties.test_programs import SETTINGS

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
"""
FIRST = [
    ("mean((X @ w - y)**2)", "w", "0.5 * X.T @ (X @ w - y)"),
    ("mean((X @ w - y)**2)", "X", "0.5 * outer(X @ w - y, w)"),
    ("sum((X @ w - y)**2) + lam * sum(w**2)", "w", "2 * (X.T @ (X @ w - y) + lam * w)"),
    ("-mean(c * log(sigmoid(X @ w + b)) + (1 - c) * log(1 - sigmoid(X @ w + b)))", "w",
     "0.25 * X.T @ (sigmoid(X @ w + b) - c)"),
    ("-mean(c * log(sigmoid(X @ w + b)) + (1 - c) * log(1 - sigmoid(X @ w + b)))", "b",
     "mean(sigmoid(X @ w + b) - c)"),
    ("binary_cross_entropy_with_logits(X @ w, c)", "w", "0.25 * X.T @ (sigmoid(X @ w) - c)"),
    ("mean(log(1 + exp(-y * (X @ w))))", "w", "-0.25 * X.T @ (y * sigmoid(-y * (X @ w)))"),
    ("-mean(sum(Y * log_softmax(X @ W, 1), 1))", "W",
     "0.25 * X.T @ (softmax(X @ W, 1) * sum(Y, 1, keepdim=True) - Y)"),
    ("cross_entropy(X @ W, k)", "W", "0.25 * X.T @ (softmax(X @ W, 1) - one_hot(k, 2))"),
    ("x @ A @ x", "x", "(A + A.T) @ x"),
    ("x @ A @ x", "A", "outer(x, x)"),
    ("logdet(A)", "A", "inv(A).T"),
    ("det(A)", "A", "det(A) * inv(A).T"),
    ("trace(A @ B)", "A", "B.T"),
    ("trace(X @ A @ X.T)", "X", "X @ (A + A.T)"),
    ("trace(X @ A @ X.T)", "A", "X.T @ X"),
    ("trace(inv(A) @ B)", "A", "-(inv(A) @ B @ inv(A)).T"),
    ("logdet(X.T @ X)", "X", "2 * X @ inv(X.T @ X)"),
    ("sum(A**2)", "A", "2 * A"),
    ("norm(A)", "A", "A / norm(A)"),
    ("norm(x - z)", "x", "(x - z) / norm(x - z)"),
    ("norm(A @ x - z)", "x", "A.T @ (A @ x - z) / norm(A @ x - z)"),
    ("x @ z / (norm(x) * norm(z))", "x",
     "z / (norm(x) * norm(z)) - (x @ z) * x / (norm(x)**3 * norm(z))"),
    ("x @ A @ x / (x @ x)", "x", "((A + A.T) @ x - 2 * loss * x) / (x @ x)"),
    ("(1 - b)**2 + 100*(lam - b**2)**2", "b", "-2 * (1 - b) - 400 * b * (lam - b**2)"),
    ("(1 - x[0])**2 + 100*(x[1] - x[0]**2)**2", "x",
     "stack([2 * (x[0] - 1) - 400 * x[0] * (x[1] - x[0]**2), 200 * (x[1] - x[0]**2), tensor(0.)])"),
    ("(sigmoid(w @ x + b) - lam)**2", "w",
     "2 * (sigmoid(w @ x + b) - lam) * sigmoid(w @ x + b) * (1 - sigmoid(w @ x + b)) * x"),
    ("sum((tanh(X @ W) @ V - 1)**2)", "V", "2 * tanh(X @ W).T @ (tanh(X @ W) @ V - 1)"),
    ("sum((tanh(X @ W) @ V - 1)**2)", "W",
     "2 * X.T @ ((tanh(X @ W) @ V - 1) @ V.T * (1 - tanh(X @ W)**2))"),
    ("sum(relu(x)**2)", "x", "2 * relu(x)"),
    ("mean(relu(1 - y * (X @ w)))", "w", "-0.25 * X.T @ where(y * (X @ w) < 1, y, 0)"),
    ("sum(softmax(x, 0) * z)", "x",
     "softmax(x, 0) * (z - z @ softmax(x, 0))"),
    ("sum(T * (softmax(Q @ V, 1) @ Q))", "V",
     "Q.T @ (softmax(Q @ V, 1) * (T @ Q.T - sum(T @ Q.T * softmax(Q @ V, 1), 1, keepdim=True)))"),
    ("sum(softmax(masked_fill(x * z, m, -inf), 0) * z)", "x",
     "z * softmax(masked_fill(x * z, m, -inf), 0)"
     " * (z - z @ softmax(masked_fill(x * z, m, -inf), 0))"),
    ("0.5 * (x - z) @ inv(A) @ (x - z) + 0.5 * logdet(A)", "A",
     "0.5 * (inv(A).T - outer(inv(A).T @ (x - z), inv(A) @ (x - z)))"),
    ("sum((T - X @ W)**2)", "W", "-2 * X.T @ (T - X @ W)"),
    ("logdet(A) - sum(log(cosh(A @ x)))", "A", "inv(A).T - outer(tanh(A @ x), x)"),
    ("logsumexp(z, 0)", "z", "softmax(z, 0)"),
    ("log(sum(exp(z)))", "z", "softmax(z, 0)"),
    ("-sum(softmax(z, 0) * log(softmax(z, 0)))", "z",
     "-softmax(z, 0) * (log(softmax(z, 0)) - softmax(z, 0) @ log(softmax(z, 0)))"),
    ("var(x)", "x", "x - mean(x)"),
    ("std(x)", "x", "(x - mean(x)) / (2 * std(x))"),
    ("sum(abs(x)) + sum(x**2)", "x", "sign(x) + 2 * x"),
    ("sum((A.T @ A - B)**2)", "A", "2 * A @ (2 * A.T @ A - B - B.T)"),
    ("sum(solve(A, x)**2)", "x", "2 * solve(A.T, solve(A, x))"),
    ("sum(outer(x, z) * A)", "x", "A @ z"),
    ("einsum('i,ij,j->', x, A, z)", "A", "outer(x, z)"),
    ("trace(diag(x) @ A)", "x", "diag(A)"),
    ("sum((x**2 + 1)**z)", "z", "(x**2 + 1)**z * log(x**2 + 1)"),
    ("sum(maximum(x, z)**2)", "x", "where(x > z, 2 * x, 0.)"),
    ("sum(mean(X, 0)**2)", "X", "0.5 * ones(4, 1) * mean(X, 0)"),
    ("x @ x * (z @ z)", "x", "2 * (z @ z) * x"),
]  # fmt: skip
SECOND = [
    ("x @ A @ x", "x", "A + A.T"),
    ("sum(tanh(x))", "x", "diag(-2 * tanh(x) * (1 - tanh(x)**2))"),
    ("sum((X @ w - y)**2)", "w", "2 * X.T @ X"),
    (
        "mean(log(1 + exp(X @ w)))",
        "w",
        "0.25 * X.T @ diag(sigmoid(X @ w) * (1 - sigmoid(X @ w))) @ X",
    ),
    ("norm(x)", "x", "(eye(3) - outer(x, x) / (x @ x)) / norm(x)"),
    ("logsumexp(z, 0)", "z", "diag(softmax(z, 0)) - outer(softmax(z, 0), softmax(z, 0))"),
    ("w @ x", "w", "zeros(3, 3)"),
    ("sum(x**3)", "x", "6 * diag(x)"),
    ("x @ A @ z", "x,z", "A"),
    ("exp(w @ x)", "x", "exp(w @ x) * outer(w, w)"),
]
OPERATORS = re.compile(r"\*\*|[-+*/@<>]|\.T\b|\w+\(|\w\[|\]\[")


def cost_of(text: str) -> int:
    """The operators, calls and subscripts of a formula; a minus before a number is a part of it."""
    return len(OPERATORS.findall(re.sub(r"(^|[(\[,*]\s*)-(?=\d)", r"\1", text)))


def derived(text: str, wrt: str, order: int = 1) -> Derived:
    return derive_source(
        Source(text, "test.expr"), Options(), Request(wrt=tuple(wrt.split(","))), order=order
    )


def shortest(loss: str, wrt: str, formula: str, order: int) -> None:
    program = f"{DATA}loss = {loss}\n"
    found = derived(program, wrt, order)
    assert found.error is None
    (d,) = [d for d in found.derivatives if d.wrt == wrt]
    assert d.verified
    lines = "".join(f"{name} = {part}\n" for name, part, _ in d.lets)
    report = run(
        Source(f"{program}{lines}ours = {d.text}\ntextbook = {formula}\n", "test.expr"),
        Options(loss="loss"),
    )
    assert report.error is None
    ours, textbook = (np.asarray(report.tensors[name].value) for name in ("ours", "textbook"))
    np.testing.assert_allclose(ours, textbook, rtol=1e-5, atol=1e-6)
    if order == 1:
        np.testing.assert_allclose(ours, report.tensors[wrt].grad, rtol=1e-5, atol=1e-6)
    assert d.cost <= 1.5 * cost_of(formula) + 1, d.text


@pytest.mark.parametrize(("loss", "wrt", "formula"), FIRST)
def test_gradients(loss: str, wrt: str, formula: str) -> None:
    shortest(loss, wrt, formula, 1)


@pytest.mark.parametrize(("loss", "wrt", "formula"), SECOND)
def test_hessians(loss: str, wrt: str, formula: str) -> None:
    shortest(loss, wrt, formula, 2)


def test_names_of_values_and_of_parts() -> None:
    found = derived(DATA + "p = softmax(z, 0)\nloss = x @ p\n", "z")
    assert [d.text for d in found.derivatives] == ["p * (x - loss)"]
    found = derived(DATA + "loss = sum((sigmoid(w * x) - lam)**2)\n", "w")
    (d,) = found.derivatives
    assert [(name, part) for name, part, _ in d.lets] == [("p", "sigmoid(w * x)")]
    assert sorted(d.text.split(" * ")) == ["(1 - p)", "(p - lam)", "2", "p", "x"]


def test_numbers_are_not_baked_in() -> None:
    """A formula that holds only where the program is would have no name for the threshold."""
    (d,) = derived(DATA + "loss = lam * sum(w**2)\n", "w").derivatives
    assert d.text == "2 * lam * w"


def test_more_than_two_axes_are_refused() -> None:
    found = derived(DATA + "loss = sum((A @ B)**2)\n", "A", 2)
    assert found.error is not None and found.error.code == "E404"


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
@SETTINGS
def test_no_way_to_write_a_derivative_is_wrong(text: str, wrt: str) -> None:
    seen: list[tuple[str, bool | None]] = []
    original = module._compared

    def compared(formula: Any, *rest: Any) -> bool | None:
        verdict = original(formula, *rest)
        seen.append((module.text(formula.shown), verdict))
        return verdict

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_compared", compared)
        found = derived(f"{DATA}loss = {text} + 0 * sum(A * B) + 0 * sum(x * z)\n", wrt)
    assert found.error is None or found.error.code in ("E404", "E505")
    assert all(verdict for _, verdict in seen), seen
