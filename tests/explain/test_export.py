"""Exported code gives what the program gives: in NumPy it is run here."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import io
import json
import re
import subprocess
import sys
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
from scipy.special import expit, log_expit, log_softmax, logsumexp, softmax

from autodiff_cli.autograd import reverse
from autodiff_cli.autograd.tensor import AccumulateGrad
from autodiff_cli.errors import AutodiffError
from autodiff_cli.explain import export
from autodiff_cli.explain.derive import Derived, derive_source
from autodiff_cli.explain.export import Exported
from autodiff_cli.explain.model import Request
from autodiff_cli.graph import op
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.op import constant, leaf
from autodiff_cli.graph.registry import F
from autodiff_cli.graph.state import STATE
from autodiff_cli.graph.walk import bodies, walk
from autodiff_cli.session import Options, run
from autodiff_cli.source import Source
from autodiff_cli.transform.jax_source import in_jax
from autodiff_cli.transform.simplify import representatives

from ..ops.test_variations import FIXED
from ..ops.test_variations import recorded as variations_recorded
from ..recorded import cases as recorded
from ..said import rounded, said
from ..table import (
    Case,
    apply,
    arrays_of,
    cases,
    each_op,
    flat,
    nodes_of,
    share,
    weights,
    without_signs,
)
from ..variations import Variation, arguments, variations
from .test_textbook import CASES, DATA, FIXTURES

SAMPLES = sorted(Path("samples").glob("*.*"))


LIBRARIES = ("torch", "jax")


def exported(
    text: str, to: str = "numpy", name: str = "test.py", folder: Path | None = None
) -> Derived:
    return derive_source(Source(text, name), Options(folder=folder), Request(), to=to)


def exported_in_both(text: str, name: str, folder: Path | None = None) -> tuple[Derived, str]:
    """What a program is in NumPy, and its code in JAX, where it has words for it; the search for
    formulas is the same for both, and is most of the work."""
    codes = [""]

    class InBoth(Exported):
        def text(self, to: str, beside: str | None) -> Any:
            try:
                codes.append(super().text("jax", beside)[0])
            except AutodiffError as error:
                assert error.code == "E404", error.message
            return super().text(to, beside)

    with mock.patch.object(export, "Exported", InBoth):
        return exported(text, "numpy", name, folder), codes[-1]


@cache
def digests(to: str) -> dict[str, str]:
    """What `tests.oracles.exports` ran in a library and found right, by name."""
    found: dict[str, str] = json.loads((FIXTURES / "exports.json").read_text())[to]
    return found


def runs(to: str, name: str, code: str) -> None:
    """The text was run in its library by `tests.oracles.exports`, or is run now."""
    if not code:
        assert name not in digests(to), f"{name}: was written before"
    elif digests(to).get(name) != digest(code):
        assert find_spec(to) is not None, f"{name}: run python -m tests.oracles.exports"
        result_of(code)


def as_recorded(name: str, *codes: str) -> None:
    """The texts are those that were written before (`RECORD_SAID=1` records them)."""
    said("explain").compare(f"test_export.py::{name}", [" ".join(map(digest, codes))], 1)


def result_of(code: str) -> dict[str, Any]:
    """What the check at the end of a file defines, after it passed."""
    names: dict[str, Any] = {"__name__": "__main__"}
    with contextlib.redirect_stdout(io.StringIO()), np.errstate(all="ignore"):
        exec(compile(code, "exported", "exec"), names)
    return names


@pytest.mark.parametrize("path", [p for p in SAMPLES if p.suffix in (".expr", ".py")], ids=str)
def test_samples_give_their_gradients(path: Path) -> None:
    text = path.read_text()
    found, code = exported_in_both(text, path.name, path.parent)
    assert found.error is None
    runs("jax", path.name, code)
    as_recorded(path.name, found.code)
    names = result_of(found.code)
    report = run(Source(text, path.name), Options(folder=path.parent))
    assert names["gradients"]
    for name, gradient in names["gradients"].items():
        record = report.tensors.get(name)
        if record is not None and record.grad is not None and path.name != "training.py":
            np.testing.assert_allclose(gradient, record.grad, 1e-5, 1e-6, err_msg=name)


# Of the recorded programs with one backward pass those that between them come by what all of them
# do; what is plain is written in JAX too.
PICKED = set((FIXTURES / "exported_programs.txt").read_text("utf-8").splitlines())
ONE_PASS = [case for case in recorded("programs") if case["id"] in PICKED]
PLAIN = ("basics", "classes", "layers", "modelling", "repositories", "tutorials")
BACKWARD = [case for case in ONE_PASS if case["id"].startswith(PLAIN)]


def test_picked_programs_are_there() -> None:
    assert len(ONE_PASS) == len(PICKED)


def named(case: dict[str, Any]) -> str:
    return case["id"].replace(" ", "-")


@pytest.mark.parametrize("case", ONE_PASS, ids=lambda case: case["id"])
def test_programs_give_the_gradients_of_pytorch(case: dict[str, Any]) -> None:
    if case in BACKWARD:
        found, code = exported_in_both(case["source"], "program.py")
        runs("jax", named(case), code)
    else:
        found = exported(case["source"])
    if found.error is not None:
        assert found.error.code == "E402", found.error.message
        return
    as_recorded(named(case), found.code)
    gradients = result_of(found.code)["gradients"]
    for name, gradient in gradients.items():
        theirs = (case["tensors"].get(name) or {}).get("grad")
        if theirs is not None:
            np.testing.assert_allclose(gradient, np.asarray(theirs, float), 1e-4, 1e-5)


def test_transforms_inside_of_a_program() -> None:
    text = "import torch\nx = torch.tensor([0.3, -0.7], requires_grad=True)\n"
    text += "J = torch.func.jacrev(lambda v: v.sin() * v[0])(x)\n(J @ J).sum().backward()\n"
    found = result_of(exported(text).code)["gradients"]["x"]

    def value(x: Any) -> Any:
        J = np.diag(np.cos(x) * x[0]) + np.outer(np.sin(x), [1, 0])
        return (J @ J).sum()

    x = np.array([0.3, -0.7])
    for i, e in enumerate(1e-6 * np.eye(2)):
        np.testing.assert_allclose(found[i], (value(x + e) - value(x - e)) / 2e-6, 1e-4)


def called(case: Case, variation: Variation) -> tuple[dict[str, Node], tuple[Node, ...]]:
    """The operands of a changed sample by place, and its results."""
    STATE.reset()
    fixed = variations_recorded()[case.name].get(FIXED, ())
    nodes = {
        place: leaf(array, AccumulateGrad())
        if array.dtype.kind == "f" and place not in fixed
        else constant(array)
        for place, array in variation.arrays.items()
    }
    args, kwargs = arguments(case, variation, nodes)
    return nodes, without_signs(case, flat(case.op(*args, **kwargs)))


def exported_sample(case: Case, changed: Variation | None = None) -> Exported | None:
    """What to write of a sample's results in one weighted sum; None where it has no gradient."""
    if changed is None:
        nodes = nodes_of(case, arrays_of(case))
        results = apply(case, nodes)
    else:
        nodes, results = called(case, changed)
    seeds = []
    for i, node in enumerate(results):
        if node.requires_grad and node.dtype.kind == "f":
            weight = constant(np.asarray(weights(case, node.shape, f"w{i}"), node.dtype))
            seeds.append(F.sum(node * weight))
    if not seeds:
        return None
    loss = sum(seeds[1:], seeds[0])
    leaves = {f"x{place}": node for place, node in nodes.items() if node.requires_grad}
    one = constant(np.ones((), loss.dtype))
    found = reverse.gradients(
        [(loss, one)], list(leaves.values()), create_graph=False, retain_graph=True
    )
    gradients = {
        name: (node, g) for (name, node), g in zip(leaves.items(), found, strict=True)
        if g is not None
    }  # fmt: skip
    names = list(leaves.items())
    return Exported([(loss, one)], "loss", gradients, names, "sample", None)


# Those that write a text of an op's own for a library which no other before them writes; beside
# them first samples of one op in nine.
CHOSEN: dict[str, list[str]] = json.loads((FIXTURES / "exported_samples.json").read_text())
FIRST = [case for case in cases() if not case.number]
OTHERS = share((c for c in FIRST if not any(c.name in n for n in CHOSEN.values())), 9)
WRITTEN = [c for c in cases() if any(c.name in names for names in CHOSEN.values()) or c in OTHERS]


@each_op(WRITTEN)
def test_ops_give_their_gradients(case: Case) -> None:
    sample = exported_sample(case)
    if sample is not None:
        try:
            codes = [sample.text("torch", None)[0]]
        except AutodiffError as error:  # PyTorch has no function for it
            codes = [error.message]
        if case.name in CHOSEN["jax"]:
            runs("jax", f"op-{case.name}", sample.text("jax", None)[0])
        if case.name in CHOSEN["numpy"] or case.name not in CHOSEN["jax"]:
            codes.insert(0, sample.text("numpy", None)[0])
            result_of(codes[0])
        as_recorded(case.name, *codes)


def own_texts(case: Case, changed: Variation) -> set[str]:
    """What ops write themselves of a changed sample and its gradients, for NumPy and for JAX."""
    sample = exported_sample(case, changed)
    if sample is None:
        return set()
    slopes = [slope for _, slope in sample.gradients.values()]
    nodes = walk([node for node, _ in sample.results] + slopes, lambda n: bodies(n) or n.inputs)
    return {
        f"{node.op.key} {rounded(str(text(*node.args)))}"
        for node in nodes
        for text in (node.op.numpy, node.op.jax)
        if callable(text)
    }


# Changed samples that write another text, with a digest of it; NumPy and JAX ran the code.
CHANGED: dict[str, dict[str, str]] = json.loads((FIXTURES / "exported_changes.json").read_text())


@each_op([c for c in cases() if c.name in CHANGED])
def test_changed_samples_write_what_was_run(case: Case) -> None:
    for label, text in CHANGED[case.name].items():
        assert digest("\n".join(sorted(own_texts(case, variations(case)[label])))) == text, label


def test_jax_has_no_array_that_others_see_changed() -> None:
    """What a function made is another array after each change; what may be a view is refused."""
    made = "def f(x):\n    y = np.zeros_like(x)\n    y[1:] += x[1:]\n    y[0] = 2\n    return y"
    seen = "def f(x):\n    y = x.reshape(-1)\n    y[0] = 2\n    return x"
    both = "def f(x):\n    y = np.zeros(3)\n    y = x\n    y[0] = 2\n    return x"
    written = [ast.unparse(in_jax(ast.parse(text))) for text in (made, seen, both)]
    assert "y = y.at[1:].set(y[1:] + x[1:])" in written[0] and "y = y.at[0].set(2)" in written[0]
    assert written[1:] == [seen, both]


def test_values_are_arguments() -> None:
    """Nothing of the inputs is in the code: at other values it gives other gradients."""
    found = exported(
        "x = [1, 2]; y = const([3, 4]); h = tanh(x); loss = sum(h**2 * y)", name="a.expr"
    )
    names: dict[str, Any] = {"__name__": "other"}
    exec(found.code, names)
    x, y = np.array([0.3, -0.7]), np.array([2.0, 5.0])
    loss, gradients = names["loss_and_gradients"](x, y)
    step = 1e-6
    assert abs(loss - (np.tanh(x) ** 2 * y).sum()) < 1e-12
    for i in range(2):
        moved = np.eye(2)[i] * step
        ahead, behind = ((np.tanh(x + d) ** 2 * y).sum() for d in (moved, -moved))
        assert abs(gradients["x"][i] - (ahead - behind) / (2 * step)) < 1e-8
    assert "h = np.tanh(x)" in found.code and "def loss_and_gradients(x, y):" in found.code


def test_a_wrong_number_is_noticed() -> None:
    code = exported("x = [1, 2]; loss = sum(x**2)", name="a.expr").code
    with pytest.raises(AssertionError):
        result_of(code.replace("2 * x", "3 * x"))


@pytest.mark.parametrize("to", ["numpy", "torch", "jax"])
def test_the_name_of_a_file_is_a_text(to: str) -> None:
    """Files from elsewhere have any names; that of one must not run with the code."""
    name = 'a"""\nimport os\n"""\\\x1b\udcff\U0001f600.py'
    tree = ast.parse(exported("x = 2\nloss = x * x\n", to, name).code)
    assert ast.get_docstring(tree, clean=False) == f"loss and its gradients, of {name}."
    assert "os" not in [
        a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names
    ]


def test_long_arrays_lie_beside(tmp_path: Path) -> None:
    text = "import torch\nx = torch.arange(1000.0, requires_grad=True)\n"
    text += "y = torch.arange(256.0, requires_grad=True)\n"
    text += "loss = (x ** 2).sum() + (y ** 2).sum()\nloss.backward()\n"
    program = tmp_path / "program.py"
    program.write_text(text)
    out = tmp_path / "out.py"
    command = [
        sys.executable,
        "-m",
        "autodiff_cli",
        "derive",
        str(program),
        "--to",
        "numpy",
        "-o",
        str(out),
    ]
    subprocess.run(command, check=True, capture_output=True)
    assert set(np.load(tmp_path / "out.npz")) == {"x"}
    subprocess.run([sys.executable, "-I", str(out)], check=True, capture_output=True)


def test_other_libraries_parse_and_name_their_functions() -> None:
    text = "import torch\nx = torch.tensor([1., 2.], requires_grad=True)\n"
    text += "loss = torch.sigmoid(x).sum()\nloss.backward()\n"
    torch, jax = exported(text, "torch").code, exported(text, "jax").code
    ast.parse(torch), ast.parse(jax)
    assert "torch.autograd.grad(loss, [x])" in torch and "x.sigmoid()" in torch
    assert "jnp.exp(-x)" in jax and "import numpy as np" in jax
    text = "import torch\nx = torch.zeros(4, 1, 3, requires_grad=True)\nn = torch.tensor([2])\n"
    text += "torch.nn.functional.ctc_loss(x, torch.tensor([[1, 2]]), n * 2, n).backward()\n"
    assert "F.ctc_loss(" in exported(text, "torch").code  # lengths are tensors


# What NumPy writes in place, and JAX cannot.
WRITTEN_IN_PLACE = {
    "scatter": "sum(scatter_add(x, 0, tensor([2, 0]), z[:2]) ** 2) + sum(gather(X, 1, k[:, None]))",
    "rows": "sum(index_add(x, 0, tensor([0, 0]), z[:2]) ** 2) + sum(x[tensor([2, 2])] ** 3)",
    "filled": "sum(index_fill(x, 0, tensor([1]), mu) ** 2) + sum(index_copy(x, 0, k[:1], z[:1]))",
    "order": "sum(sort(x, descending=True)[0] * z) + topk(z, 1)[0][0] ** 2",
    "batches": "sum(linalg.solve(stack([A, B]), stack([x, z]))**2)",
    "triangles": "sum(cholesky(A @ A.T) ** 3) + sum(linalg.solve_triangular(A, W, upper=True)**2)",
    "views": "sum(diagonal_scatter(A, x) ** 2) + sum(select_scatter(A, x, 1, 0) ** 2) + "
    "sum(diag_embed(x, 1) ** 2) + sum(pad(x, (1, -1)) ** 2)",
    "convolutions": "sum(conv1d(N, F, stride=2, padding=1) ** 2) + "
    "sum(conv_transpose2d(I, O, stride=2) ** 3) + sum(conv2d(I, O, dilation=2) ** 2)",
    "maxima": "sum(max_pool2d(I, 2, 1) ** 2) + sum(max_pool1d(N, 3, 2, 1) ** 3) + "
    "sum(adaptive_max_pool1d(N, 4)[0] ** 2) + kthvalue(x, 2)[0] ** 2",
    "running": "sum(cumprod(x, 0) * z) + z @ logcumsumexp(x, 0) + z @ cummax(x, 0)[0]",
    "windows": "sum((s6.unfold(0, 3, 2) @ x) ** 2)",
    "picked": "sum(masked_scatter(x, z > 0, mu * z) ** 2) + sum(A[A > 0.2] ** 3)",
    "factors": "sum(cholesky_solve(W, A) ** 2) + sum(block_diag([A, W]) ** 2) + "
    "sum(cholesky_inverse(A) ** 2) + sum(linalg.pinv(W) ** 2)",
    "decompositions": "sum(linalg.lu(A)[1] ** 2) + sum(linalg.eigh(A @ A.T)[1] ** 2 * B) + "
    "sum(linalg.eigvalsh(A) ** 3) + sum(linalg.lstsq(X, y[:, None])[0] ** 3)",
    "combined": "sum(scatter_reduce(x, 0, tensor([0, 0]), z[:2], 'prod', include_self=False) ** 2)"
    " + sum(index_reduce(A, 1, tensor([2, 0]), W, 'mean') ** 2)",
    "made": "sum(nn.functional.fold(nn.functional.unfold(I, 2), (3, 3), 2) ** 2) + "
    "ctc_loss(log_softmax(A[:, None], 2), tensor([[1, 2]]), (3,), (2,)) ** 2 + "
    "det(A) ** 2 + sum(nn.functional.embedding_bag(k, W, k[:1], mode='max') ** 3)",
    "solutions": "sum(linalg.pinv(A @ A.T, hermitian=True) ** 2) + "
    "sum(linalg.pinv(W, atol=0.1) ** 3) + sum(linalg.pinv(W, atol=0.1, rtol=0.01) ** 2)"
    " + sum(linalg.lstsq(stack([A, B]), stack([x, z])[:, :, None])[0] ** 2)",
    "mirrored": "sum(polygamma(1, -x / 7) ** 2) + sum(polygamma(3, x - 0.37) ** 2)",
    "numbers": "scatter_reduce(x[0], 0, tensor(0), x[1], 'prod') ** 2 + "
    "scatter_reduce(x[0], 0, tensor(0), z[1], 'mean', include_self=False) ** 3",
    "strided": "sum(as_strided(A[1:], (2, 2), (1, 2)) ** 3) + sum(as_strided(A, (2,), (3,)) ** 2)",
    "even": "sum((x[:2] * const([0.5, 0.5])) ** 2) + sum((x[2:] * const([0.5])) ** 3)",
    "casts": "sum(x * (m.double() + k[:3].double())) + sum(x * (m.double() + k[:3].double() / 2))"
    " + sum(A.t().permute(1, 0) * x) + sum(x * 1e15) * 1e-15 + sum(x * k[:3].bool())"
    " + sum(x * bitwise_and(m, True))",
    "pools": "sum(avg_pool1d(N, 2) ** 2) + sum(interpolate(I, size=(2, 5), mode='bilinear') ** 2)",
}

# Gradients as parts of a loss, forward mode through views that were written to.
TRANSFORMED = """import torch
x = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
def f(v):
    return (v[:, ::2] ** 3).sum() + (v.select_scatter(v[:, 0] * 2, 1, 1) ** 2).sum()
_, along = torch.func.jvp(f, (x,), (torch.ones(2, 3),))
slopes = torch.func.grad(f)(x)
(along * 2 + (slopes ** 2).sum()).backward()
"""

# Data in single precision that nothing is differentiated by.
CONVOLVED = """import torch, torch.nn as nn, torch.nn.functional as F
torch.manual_seed(0)
net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2))
x = F.interpolate(torch.randn(2, 1, 4, 4), size=(6, 6))
(net(x) ** 2).sum().backward()
"""

# Draws that move with their parameters.
DRAWN = """import torch
from torch.distributions import Beta, Dirichlet, Gamma
a = torch.tensor([1.5, 2.0, 0.7], requires_grad=True)
b = torch.tensor([0.5, 1.0, 2.0], requires_grad=True)
drawn = Gamma(a, b).rsample((2,)) * Dirichlet(a).rsample() + Beta(a, b).rsample()
(drawn ** 2).sum().backward()
"""

# A bias that the slope of the slope does not reach.
UNREACHED = """import torch
x = torch.tensor([0.5, -2.0], requires_grad=True)
bias = torch.tensor(0.1, requires_grad=True)
y = torch.nn.functional.leaky_relu(x ** 3 + bias, 0.2).sum()
(slope,) = torch.autograd.grad(y, x, create_graph=True)
((slope.norm() - 1) ** 2).backward()
"""

# Rules and hooks that PyTorch's functions do not have: several results, views, one after another.
OWN_RULES = """import torch
class Both(torch.autograd.Function):
    @staticmethod
    def forward(ctx, a, b):
        ctx.save_for_backward(a, b)
        return a * b, a.sin().round()
    @staticmethod
    def backward(ctx, g, h):
        a, b = ctx.saved_tensors
        return g * b * (a > 0) + h, (g * a).sum(0)
class Turned(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, factor):
        ctx.factor = factor
        return x.view_as(x)
    @staticmethod
    def backward(ctx, g):
        return -ctx.factor * g, None
a = torch.tensor([[0.5, -1.0], [2.0, 0.3]], requires_grad=True)
b = torch.tensor([1.5, -0.7], requires_grad=True)
a.register_hook(lambda g: g / g.norm())
kept, rounded = Both.apply(a, b)
inner = torch.tanh(kept + rounded)
inner.register_hook(lambda g: g.clamp(-0.2, 0.2))
upper, lower = inner.chunk(2)
lower.register_hook(lambda g: 3 * g)
turned = Turned.apply(inner, 0.5)
inner.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 2,))
loss = (upper * lower).sum() + (turned ** 2).mean() + (Both.apply(turned, b * 2)[0] * kept).sum()
loss.backward()
"""

# Losses as one writes them, which overflow at 1000: the loss in SciPy's words, and its gradient.
STABLE = {
    "log(sum(exp(z)))": (lambda z: logsumexp(z), lambda z: softmax(z)),
    "log(mean(exp(z)))": (lambda z: logsumexp(z) - np.log(3), lambda z: softmax(z)),
    "-log(exp(z)[1] / sum(exp(z)))": (
        lambda z: -log_softmax(z)[1], lambda z: softmax(z) - np.eye(3)[1]),
    "-log((exp(z) / exp(z).sum())[1])": (
        lambda z: -log_softmax(z)[1], lambda z: softmax(z) - np.eye(3)[1]),
    "-sum(log(softmax(z, 0)))": (
        lambda z: -log_softmax(z).sum(), lambda z: 3 * softmax(z) - 1),
    "(exp(z) / exp(z).sum(0, keepdim=True))[1]": (
        lambda z: softmax(z)[1], lambda z: softmax(z)[1] * (np.eye(3)[1] - softmax(z))),
    "sum(log(1 + exp(z)))": (lambda z: -log_expit(-z).sum(), lambda z: expit(z)),
    "sum(log(exp(-z) + 1))": (lambda z: -log_expit(z).sum(), lambda z: -expit(-z)),
    "sum(log(sigmoid(z)))": (lambda z: log_expit(z).sum(), lambda z: expit(-z)),
    "sum(log(1 - sigmoid(z)))": (lambda z: log_expit(-z).sum(), lambda z: -expit(z)),
    "sum(log(1 - 1 / (1 + exp(-z))))": (lambda z: log_expit(-z).sum(), lambda z: -expit(z)),
    "sum(exp(z) / (1 + exp(z)))": (
        lambda z: expit(z).sum(), lambda z: expit(z) * expit(-z)),
    "sum((exp(z) - exp(-z)) / (exp(z) + exp(-z)))": (
        lambda z: np.tanh(z).sum(), lambda z: 4 * expit(2 * z) * expit(-2 * z)),
    "sum(sinh(z) / cosh(z))": (
        lambda z: np.tanh(z).sum(), lambda z: 4 * expit(2 * z) * expit(-2 * z)),
    "sum(log(cosh(z)))": (
        lambda z: (np.abs(z) + np.log1p(np.exp(-2 * np.abs(z))) - np.log(2)).sum(), np.tanh),
    "sum(exp(z) - 1)": (lambda z: np.expm1(z).sum(), np.exp),
    "sum(-1 + exp(z))": (lambda z: np.expm1(z).sum(), np.exp),
    "sum(log(exp(z) + exp(2 * z)))": (
        lambda z: np.logaddexp(z, 2 * z).sum(), lambda z: 1 + expit(z)),
    "sum(log(exp(z) * exp(-3 * z)))": (lambda z: -2 * z.sum(), lambda z: -2 * np.ones(3)),
    "sum(log(sqrt(exp(z))))": (lambda z: z.sum() / 2, lambda z: np.ones(3) / 2),
    "sum(log(1 / exp(z)))": (lambda z: -z.sum(), lambda z: -np.ones(3)),
    "sum(log(reciprocal(exp(z))))": (lambda z: -z.sum(), lambda z: -np.ones(3)),
    "sum(reciprocal(1 + exp(-z)))": (
        lambda z: expit(z).sum(), lambda z: expit(z) * expit(-z)),
    "log(sum(exp(z[1])))": (lambda z: z[1], lambda z: np.eye(3)[1]),
    "sqrt(z[0] ** 2 + z[2] * z[2])": (
        lambda z: np.hypot(z[0], z[2]),
        lambda z: np.array([z[0], 0, z[2]]) / np.hypot(z[0], z[2])),
    "sum(log(1 + z * z))": (lambda z: np.log1p(z**2).sum(), lambda z: 2 * z / (1 + z**2)),
    "log(det(outer(z, z) + diag(z ** 2)))": (
        lambda z: np.log(4) + 2 * np.log(np.abs(z)).sum(), lambda z: 2 / z),
}  # fmt: skip


def stable(loss: str) -> str:
    return f"z = [0.5, -1.5, 2]; loss = {loss}"


@pytest.mark.parametrize("loss", STABLE)
def test_what_overflows_is_written_in_stable_functions(loss: str) -> None:
    found, code = exported_in_both(stable(loss), "a.expr")
    runs("jax", f"stable-{loss.replace(' ', '')}", code)
    names = result_of(found.code)
    value, slope = STABLE[loss]
    far = {"exp(z) - 1": 1e-300, "-1 + exp(z)": 1e-300, "sqrt": 1e200, "z * z": 1e-6, "det": 1e130}
    scale = next((number for word, number in far.items() if word in loss), 1000)
    for z in (np.array([0.5, -1.5, 2.0]), scale * np.array([1.0, -0.999, 1.0015])):
        with np.errstate(all="ignore"):
            found, gradients = names["loss_and_gradients"](z)
            np.testing.assert_allclose(found, value(z), 1e-9)
            np.testing.assert_allclose(gradients["z"], slope(z), 1e-6, 1e-9)


def test_stable_functions_keep_what_a_program_gave() -> None:
    """A hook on the way changes a gradient, which is that of no other graph; what is a logarithm
    of no positive number stays one."""
    text = "import torch\nx = torch.tensor([1.0, -2.0], requires_grad=True)\ne = 1 + torch.exp(x)\n"
    text += "e.register_hook(lambda g: 3 * g)\ntorch.log(e).sum().backward()\n"
    gradient = result_of(exported(text).code)["gradients"]["x"]
    np.testing.assert_allclose(gradient, 3 * expit(np.array([1.0, -2.0])), 1e-5)
    text = "z = [0.5, 2]; w = [-1, 3]; loss = log(sum(w * exp(z)))"
    names = result_of(exported(text, name="a.expr").code)
    np.testing.assert_allclose(names["result"], np.log(-np.exp(0.5) + 3 * np.exp(2)))


def programs() -> dict[str, tuple[str, str]]:
    """Programs that are written in a library, and names of their files."""
    texts = {}
    for name, loss in WRITTEN_IN_PLACE.items():
        texts[name] = f"{DATA}loss = {loss}\n", "a.expr"
    texts["transformed"] = TRANSFORMED, "program.py"
    texts["convolved"] = CONVOLVED, "program.py"
    texts["drawn"] = DRAWN, "program.py"
    texts["unreached"] = UNREACHED, "program.py"
    texts["own-rules"] = OWN_RULES, "program.py"
    texts["split"] = "x = [1, 2, 3]; p, q = split(x, [1, 2]); loss = sum(p * q**2)", "a.expr"
    for i, (order, wrt, loss, _) in enumerate(CASES):
        if order == "1" and i % 12 == 0:
            text = f"{DATA}loss = {loss}\n"
            texts[f"textbook-{wrt}-{loss.replace(' ', '')}"] = text, "a.expr"
    return texts


def programs_in_both() -> dict[str, tuple[str, str]]:
    """Those that other tests write in JAX, beside NumPy."""
    texts = {
        path.name: (path.read_text(), path.name) for path in SAMPLES
        if path.suffix in (".expr", ".py")
    }  # fmt: skip
    texts |= {f"stable-{loss.replace(' ', '')}": (stable(loss), "a.expr") for loss in STABLE}
    return texts | {named(case): (case["source"], "program.py") for case in BACKWARD}


def written(to: str, texts: dict[str, tuple[str, str]]) -> dict[str, str]:
    """Programs in a library, by name; empty where it has no word for an op of them."""
    found = {}
    for name, (text, file) in texts.items():
        made = exported(text, to, file, Path("samples"))
        assert made.error is None or made.error.code in ("E402", "E404"), name
        found[name] = made.code if made.error is None else ""
    return found


def written_samples(to: str) -> dict[str, str]:
    """The samples by which each text of an op is written, in a library."""
    chosen = {case.name: exported_sample(case) for case in cases() if case.name in CHOSEN[to]}
    return {f"op-{n}": made.text(to, None)[0] for n, made in chosen.items() if made is not None}


def digest(code: str) -> str:
    """Of the code alone: what stands in tables and in the check at its end are data. The last
    digits of numbers that were drawn depend on the processor."""
    lines = rounded(code.partition("\nif __name__")[0]).splitlines()
    text = "\n".join(line for line in lines if not re.match(r"C\d+ = ", line))
    return hashlib.sha1(text.encode()).hexdigest()[:12]


@pytest.mark.parametrize("to", LIBRARIES)
def test_other_libraries_run_what_is_written(to: str) -> None:
    texts = programs() | (programs_in_both() if to == "torch" else {})
    for name, code in written(to, texts).items():
        runs(to, name, code)


def test_numbers_are_written_alike_whatever_was_there_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """2 and 2.0 are one node, the older one; those of programs before stay in the process."""
    text = "x = [1, 3]; loss = sum(where(x > 0.0, x ** 2.0 + 1, 0) * 1.0 + where(x > 0, 2, x) ** 2)"
    codes = set()
    for first in (0, 1, 2), (0.0, 1.0, 2.0):
        monkeypatch.setattr(op, "_SMALL", {})
        for value in first:
            op.number(value, np.dtype(float))
        codes.add(exported(text, name="a.expr").code)
    assert len(codes) == 1


@pytest.mark.parametrize("to", ["numpy", "jax"])
def test_numbers_that_nothing_makes_floats_are_floats(to: str) -> None:
    text = "import torch\nx = torch.tensor([1.0, -3.0], requires_grad=True)\n"
    text += "w = torch.where(x > 0, 2.0, 4.0)\n(w ** -1 * x).sum().backward()\n"
    code = exported(text, to).code
    assert "np.where(x > 0, 2.0, 4.0)" in code
    if to == "numpy" or find_spec("jax") is not None:
        assert result_of(code)["gradients"]["x"].tolist() == [0.5, 0.25]


def test_equal_nodes_are_one_however_they_were_applied() -> None:
    """The first application in a process is bound in full and has operands in a tuple of its own;
    what a program is written as does not depend on what ran before."""
    x, y = constant(np.ones(3)), constant(np.zeros(3))
    short = F.sub(x, y)
    bound = Node(short.op, (x, y), (x, y), (3,), short.dtype)
    other = F.sub(y, x)
    assert bound.inputs is not bound.args
    chosen, computed = representatives([short, bound, other])
    assert chosen[bound] is short and computed == [short, other]


def test_a_program_is_written_alike_each_time() -> None:
    """An item of a composed result, whether the engine kept that result or not."""
    text = f"z = {[0.5 * i for i in range(23)]}\nloss = topk(z, 1)[0][0] ** 2\n"
    first, second = (exported(text, "jax").code for _ in range(2))
    assert first == second


def test_changes_through_views_are_written() -> None:
    text = "import torch\nx = torch.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)\ny = x * 2\n"
    text += "y[1:3] *= x[0]\ny.view(2, 2).diagonal().add_(x[1])\ny[x.detach() > 3.5] = 0.0\n"
    text += "y.unfold(0, 2, 2).mul_(3)\ny.sum().backward()\n"
    names = result_of(exported(text).code)
    found, gradients = names["loss_and_gradients"](np.array([1.0, 2.0, 3.0, 4.0]))
    # 3 * (2 * a + b + 2 * b * a + 2 * c * a), the last number is put to 0
    assert found == 3 * (2 + 2 + 4 + 6) and gradients["x"].tolist() == [36, 9, 6, 0]


def test_parameters_that_were_updated_are_inputs() -> None:
    """The step before made them by what is written in stable functions here."""
    text = "import torch\nx = torch.tensor([0.5, -1.0], requires_grad=True)\nfor i in range(2):\n"
    text += "    w = torch.softmax(x, 0)\n    loss = (w * torch.log(w)).sum()\n"
    text += "    (g,) = torch.autograd.grad(loss, x)\n    with torch.no_grad():\n        x -= g\n"
    found, gradients = result_of(exported(text).code)["loss_and_gradients"](np.array([0.5, -1.0]))
    w = softmax([0.5, -1.0])
    np.testing.assert_allclose(found, (w * np.log(w)).sum(), 1e-12)
    np.testing.assert_allclose(gradients["x"], w * (np.log(w) - found), 1e-12)


def test_what_is_equal_is_written_once() -> None:
    """Each gradient has its formula, with constants of its own."""
    code = exported(CONVOLVED).code
    result_of(code)
    assert code.count("= scatter_tensor(") == 1 and code.count("np.argmax(") == 1


def test_what_has_no_loss_is_said() -> None:
    error = exported("x = const([1, 2])", name="a.expr").error
    assert error is not None and error.code == "E402"


def test_what_jax_cannot_do_says_why_and_what_can() -> None:
    for loss in (
        "sum(diagonal_scatter(outer(x, x).repeat(6, 6), x.repeat(6)))",
        "sum(interpolate(x.repeat(7)[None, None], size=13, mode='linear'))",
    ):
        text = f"x = [3, 1, 2]; loss = {loss}"
        error = exported(text, "jax", "a.expr").error
        assert error is not None and error.code == "E404"
        said = "cannot be written in JAX: its kernel writes into an array that others may see"
        assert said in error.message and "--to torch" in error.diagnostic.helps[0]
        assert exported(text, "torch", "a.expr").error is None


def test_what_torch_cannot_do_says_what_can() -> None:
    text = "import torch\ntorch.manual_seed(0)\nx = torch.tensor([1.3, -0.6], requires_grad=True)\n"
    text += "torch.nn.functional.rrelu(x, training=True).sum().backward()\n"
    error = exported(text, "torch").error
    assert error is not None and error.code == "E404" and "--to numpy" in error.diagnostic.helps[0]
    assert result_of(exported(text).code)["gradients"]["x"][0] == 1


def test_numbers_that_torch_takes() -> None:
    """It knows none from 2**64 on."""
    text = "x = [1., 2.]; loss = sum(x) + norm(x, {})"
    assert str(2**64 - 1) in exported(text.format("2**64 - 1"), "torch").code
    error = exported(text.format("2**64"), "torch").error
    assert error is not None and error.code == "E404"
    assert error.message == "a value of type `int` cannot be written for PyTorch"


def test_torch_gets_what_own_rules_and_hooks_give() -> None:
    """`tests.oracles.exports` runs what is written; here it reads as the program does."""
    code = exported(OWN_RULES, "torch").code
    assert "kept = torch.detach(a * b).requires_grad_()" in code
    assert "turned = torch.detach(inner_seen.view_as(inner_seen)).requires_grad_()" in code
    assert "(grad_kept,) = torch.autograd.grad(" in code and ".norm()}" in code
    numbers = exported(
        "x = [1, 2]; loss = sum(where(x > 1, 2 * x**2, 0.5) + 0 * x)", "torch", "a.expr"
    )
    assert "torch.where(x > 1, 2 * x ** 2, 0.5)" in numbers.code


def test_views_in_functions_of_ones_own_are_of_the_arguments() -> None:
    text = """
import torch
class Linear(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        ctx.save_for_backward(x)
        return x.mm(w.t())
    @staticmethod
    def backward(ctx, g):
        return None, g.t().mm(ctx.saved_tensors[0])
x = torch.tensor([[1.0, 2.0], [3.0, -1.0]])
w = torch.tensor([[0.1, 0.2], [0.3, 0.4], [0.5, -0.6]], requires_grad=True)
Linear.apply(x, w).pow(2).sum().backward()
"""
    names: dict[str, Any] = {"__name__": "other"}
    exec(exported(text).code, names)
    x, w = np.array([[1.0, 2.0], [3.0, -1.0]]), np.array([[0.3, -0.2], [0.1, 0.9], [2.0, 1.0]])
    loss, gradients = names["loss_and_gradients"](w, x)
    np.testing.assert_allclose(loss, ((x @ w.T) ** 2).sum())
    np.testing.assert_allclose(gradients["w"], 2 * (x @ w.T).T @ x)


def test_slopes_that_bend_are_still_seen() -> None:
    """Differences of second order are off by 5e-5 of them here."""
    result_of(exported("x = [1e-4, 0.4]; loss = sum(log(x))", name="a.expr").code)


@pytest.mark.parametrize(
    "call", ["gather(x, 0, const([0], dtype=int64))", "index_select(x, 0, const([0], dtype=int64))"]
)
def test_places_of_a_number(call: str) -> None:
    names = result_of(exported(f"x = 6.5; loss = sum(-0.5 * {call})", name="a.expr").code)
    assert names["gradients"]["x"] == -0.5


def test_a_leaf_is_a_result_too() -> None:
    """The result and the gradient of it are not mistaken for each other."""
    names = result_of(exported("x = 2.5; loss = x", name="a.expr").code)
    assert names["expected"] == {"x": 2.5} and names["given"] == {"d x / d x": 1.0}


def test_gradients_that_a_hook_changed_are_written_where_they_can_be() -> None:
    text = "import torch\nx = torch.tensor([1.0, 2.0], requires_grad=True)\ny = x * 2\n"
    text += "y.register_hook(lambda g: g * 3)\ny.sum().backward()\n"
    assert result_of(exported(text).code)["gradients"]["x"].tolist() == [6, 6]
    assert "[None, grad_y * 3]" in exported(text, "torch").code


@pytest.mark.parametrize("call", ["conv2d(x, w, None, (2, 1), (1, 2), (1, 2), 2)",
                                  "conv_transpose2d(x, w, None, 2, 1, 0, 2)"])  # fmt: skip
def test_convolutions_in_groups_are_written_in_jax(call: str) -> None:
    """That of the kernel by groups of examples; `tests.oracles.exports` runs what is written."""
    text = "import torch\nimport torch.nn.functional as F\ntorch.manual_seed(0)\n"
    text += "x = torch.randn(2, 4, 5, 6, requires_grad=True)\n"
    text += f"w = torch.randn(4, 2, 3, 2, requires_grad=True)\nF.{call}.sin().sum().backward()\n"
    code = derive_source(Source(text, "program.py"), Options(), Request(), raw=True, to="jax").code
    assert "feature_group_count=2" in code and "batch_group_count=2" in code
    if find_spec("jax") is not None:
        result_of(code)
