"""Gradient checks: planted faults are found; kinks, noise and cuts are not taken for faults."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autodiff_cli import ops  # noqa: F401  # the table finds its families
from autodiff_cli.checks import replay as replays
from autodiff_cli.checks.analytic import ANALYTIC, is_analytic
from autodiff_cli.checks.model import FileResult, Item, Settings
from autodiff_cli.checks.runner import check_file, check_source
from autodiff_cli.checks.slopes import WRONG, Line
from autodiff_cli.graph.op import constant, value_of
from autodiff_cli.graph.registry import F, op
from autodiff_cli.source import Source


def check(text: str, **settings: Any) -> FileResult:
    return check_source(Source(text, "t.expr"), Settings(**settings))


def item(text: str, label: str = "grad[x]", **settings: Any) -> Item:
    found = check(text, **settings).items
    return next(i for i in found if i.label == label)


@contextmanager
def planted(key: str, rule: Callable[..., Any]) -> Iterator[None]:
    """An op of the table with another backward rule."""
    target = op(key)
    before = target.vjp_rule
    target.vjp_rule = rule
    try:
        yield
    finally:
        target.vjp_rule = before


MATRICES = "x = [[1, 2], [3, 4]]\ny = [[1, 5], [2, 1]]\n"
FAULTS = {
    "sign": ("sin", lambda g, out, x: -(g * F.cos(x)), "x = [1, 2, 3]\nloss = sum(sin(x))"),
    "factor": ("exp", lambda g, out, x: g * out * 1.00001, "x = [1, 2]\nloss = sum(exp(x))"),
    "reduction factor": (
        "sum",
        lambda g, out, x, *rest: F.expand(g * 0.5, x.shape),
        "x = [1, 2, 3]\nloss = sum(x * x)",
    ),
    "transposed matmul": (
        "matmul",
        lambda g, out, a, b: (F.matmul(g, b), F.matmul(F.transpose(a, 0, 1), g)),
        MATRICES + "loss = sum((x @ y) ** 2)",
    ),
    "dropped path": (
        "mul",
        lambda g, out, a, b: (F.zeros_like(a), g * a),
        MATRICES + "loss = sum(x * y)",
    ),
    "none for a path": ("mul", lambda g, out, a, b: (None, g * a), MATRICES + "loss = sum(x * y)"),
    "missing broadcast sum": (
        "expand",
        lambda g, out, x, *rest: F.select(g, 0, 0),
        "x = [1, 2]\nloss = sum(x.expand(3, 2) * const([[1, 2], [3, 4], [5, 6]]))",
    ),
    "wrong permutation": (
        "transpose",
        lambda g, out, x, *rest: g,
        "x = [[1, 2], [3, 4]]\nloss = sum(x.transpose(0, 1) * const([[1, 2], [3, 4]]))",
    ),
    "kinked": ("relu", lambda g, out, x: -(g * (x > 0)), "x = [-1, 0, 2]\nloss = sum(relu(x))"),
    "wrong power": (
        "pow",
        lambda g, out, x, n: (g * n * x**n, None),
        "x = [1.5, 2, 3]\nloss = sum(x ** 3)",
    ),
    "stale out": ("tanh", lambda g, out, x: g * (1 - x * x), "x = [0.5, 1]\nloss = sum(tanh(x))"),
    "wrong only where it is 1": (
        "log",
        lambda g, out, x: F.where(F.eq(x, 1), 2 * g, g / x),
        "x = [1, 2, 3]\nloss = sum(log(x))",
    ),
    "lost in a loop": (
        "add",
        lambda g, out, a, b, *rest: (g, F.zeros_like(g)),
        "x = [1, 2]\nt = x\nfor i in range(5):\n    t = sin(t) + x * i\nloss = sum(t)",
    ),
    "opaque": (
        "cumsum",
        lambda g, out, x, *rest: F.cumsum(g, 0),
        "x = [1, 2, 3]\nloss = sum(cumsum(x, 0) * const([1, 4, 2]))",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_planted_faults_are_found(name: str) -> None:
    key, rule, text = FAULTS[name]
    assert item(text).status in ("passed", "kink")
    with planted(key, rule):
        found = check(text)
    bad = [i for i in found.items if i.bad]
    assert bad and bad[0].diagnostic is not None
    assert bad[0].diagnostic.code == "E602"
    assert found.exit_code == 1


def test_a_cotangent_of_the_wrong_shape_is_a_wrong_rule() -> None:
    text = "x = [1, 2]\nloss = sum(x.expand(3, 2))"
    with planted("expand", lambda g, out, x, *rest: g):
        found = check(text)
    assert [i.diagnostic.code for i in found.items if i.diagnostic] == ["E602"]


def test_the_guilty_rule_is_named_where_it_stands() -> None:
    with planted("sin", lambda g, out, x: g * 2 * F.cos(x)):
        found = item("x = [1, 2]\ny = exp(x)\nloss = sum(sin(y) * x)").diagnostic
    assert found is not None and found.span is not None
    assert "`sin`" in found.label and found.span.text == "sin(y)"
    assert "central difference" in "".join(found.notes)


def test_a_fault_in_a_large_leaf_is_bisected_to_its_elements() -> None:
    def rule(g: Any, out: Any, x: Any) -> Any:
        mask = np.ones(1000)
        mask[[17, 613]] = 1.5
        return g * F.cos(x) * constant(mask)

    text = "x = tensor((arange(1000) * 0.01).tolist(), requires_grad=True)\nloss = sum(sin(x))"
    assert item(text).status == "passed"
    with planted("sin", rule):
        found = item(text).diagnostic
    assert found is not None
    assert "[17]" in found.notes[0] and "[613]" in found.notes[0]
    assert "at least 2 of 1000" in found.message


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("x = [-1, 0, 2]\nloss = sum(relu(x))", "kink"),
        ("x = [0, 1]\nloss = sum(abs(x))", "kink"),
        ("x = [0, 1]\nloss = sum(clamp(x, 0, 1))", "kink"),
        ("x = [1, 2.5]\nloss = sum(floor(x) * x)", "kink"),
        ("x = [3, 3, 1]\nloss = x.max(0).values", "kink"),
        ("x = [0, 0]\nX = const([[1.0, 2.0], [-1.0, 1.0]])\nloss = sum(relu(X @ x))",
         "kink"),
        ("x = [0, 1]\nloss = sum(sqrt(x + 1e-30))", "noisy"),
        ("x = [1, 2, 3]\nloss = sum(x * x.detach())", "cut"),
        ("x = [1, 2]\nwith torch.no_grad():\n    y = x * 2\nloss = sum(x * y)", "cut"),
        ("x = [[1, 2]]\nwith torch.no_grad():\n    y = x.t()\nloss = sum(x * y.t())", "cut"),
        ("import torch\nx = torch.tensor([[0.1, 2.0]], requires_grad=True)\n"
         "class F(torch.autograd.Function):\n"
         "    @staticmethod\n    def forward(ctx, x):\n        return x.t() * 2\n"
         "    @staticmethod\n    def backward(ctx, g):\n        return g.t() * 2\n"
         "loss = F.apply(x).sum()", "passed"),
        ("x = [1.5, 2.5]\nloss = sum(x * x.to(torch.int64))", "passed"),
        ("x = 3\nloss = x * x.item()", "cut"),
        ("x = 1e-3\nloss = (x + 1e16) - 1e16", "passed"),
        ("x = [1e-9, 2]\nloss = sum(log(x))", "passed"),
        ("x = [1e8, 2]\nloss = sum(x ** 2)", "passed"),
        ("x = 2\nif x > 1:\n    loss = x * x\nelse:\n    loss = x", "passed"),
        ("x = [1, 2]\nloss = sum(dropout(x, 0.5))", "passed"),
        ("x = [0.5, 2]\nloss = sum((x > 1) * x)", "passed"),
        ("x = [0.5, 2]\nloss = sum(x * 3, dtype=torch.float64) + sum(x * x)", "passed"),
        ("x = zeros(2, 3, requires_grad=True)\n"
         "loss = sum(F.rms_norm(x, (3,)) * const([1.0, 2.0, 3.0]))", "passed"),
        ("x = [0, 0]\nloss = norm(x)", "kink"),
        ("x = [2, 2]\nloss = std(x)", "kink"),
        ("x = [0, 0, 1, 1]\nloss = F.max_pool1d(relu(x).reshape(1, 1, 4), 2).sum()", "kink"),
        ("x = [1, 1, 2]\nloss = median(x) + quantile(x, 0.3) + sort(x).values[0]", "kink"),
        ("x = [0, 2]\nloss = sum(where(x > 0, x, 0 * x))", "kink"),
        ("x = [1, 2]\nh = x * 2\nh.register_hook(lambda g: g * 3)\nloss = sum(h * h)", "cut"),
        ("x = [1, 2]\nx.register_hook(lambda g: g * 3)\nloss = sum(x * x)", "cut"),
        ("x = [1, 2]\nx.register_hook(lambda g: None)\nloss = sum(x * x)", "passed"),
        ("x = [[1, 2], [3, 4]]\n"
         "loss = sum(F.embedding(tensor([0, 1]), x, padding_idx=0) ** 2)", "cut"),
        ("x = [1, -2]\nloss = sum(x * x) + sum(relu(x[:0]))", "passed"),
    ],
)  # fmt: skip
def test_no_fault_where_there_is_none(text: str, status: str) -> None:
    found = check(text)
    assert found.items[-1].status == status, found.items[-1].diagnostic
    assert found.exit_code == 0


def test_values_that_are_not_finite_are_no_faults() -> None:
    text = "x = [2, 0.5]\nw = [3, inf]\nloss = sum((1 - sigmoid(w * x)) ** 2)"
    assert check(text).items[0].diagnostic.code in ("E501", "E502")  # type: ignore[union-attr]  # None fails here
    found = check(text, nan="ignore")
    assert found.exit_code == 0
    assert {i.label: i.status for i in found.items}["grad[x]"] == "noisy"


def test_an_infinite_gradient_of_a_finite_slope_does_not_pass() -> None:
    """However large an error may be allowed of a large gradient."""
    text = (
        "import torch\n\nclass F(torch.autograd.Function):\n    @staticmethod\n"
        "    def forward(ctx, x):\n        return x * 2\n    @staticmethod\n"
        "    def backward(ctx, g):\n        return g * float('inf')\n\n"
        "x = torch.ones({}, requires_grad=True)\n(F.apply(x) * 3).sum().backward()\n"
    )
    for size, parts in ((2, "2 of 2 elements"), (3000, "8 of 8 directions")):
        found = item(text.format(size))
        assert found.status == "noisy" and found.diagnostic is not None
        assert f"the gradient of `x` is not finite in {parts}" in found.diagnostic.message
    for analytic in (True, False):
        line = Line(lambda t: 6 * t, 0.0, analytic=analytic)
        assert [line.examine(g).kind for g in (6.0, 5.0, np.inf, -np.inf, np.nan)] == [
            "right", "wrong", "noisy", "noisy", "noisy",
        ]  # fmt: skip


def test_a_gradient_kept_in_a_coarse_dtype() -> None:
    text = "x = tensor([0.1], dtype=float32, requires_grad=True)\nloss = sum((x + 1e4 - 1e4) ** 2)"
    found = item(text)
    assert found.status == "failed" and found.diagnostic is not None
    assert found.diagnostic.message == (
        "the gradient kept in `x.grad` (float32) is not the one of the graph in float64"
    )


def test_a_slope_off_the_kink_is_wrong_even_in_a_kinked_op() -> None:
    with planted("abs", lambda g, out, x: g * F.sign(x) * 1.5):
        assert item("x = [0, 1]\nloss = sum(abs(x))").status == "failed"


def test_a_cut_is_named_and_strict_files_fail_on_it() -> None:
    found = item("x = [1, 2]\nloss = sum(x * x.detach())").diagnostic
    assert found is not None and found.severity == "warning" and found.code == "W602"
    assert found.span is not None and found.span.text == "x.detach()"
    assert "cuts the graph" in found.label and "# check: nograd x" in found.helps[0]
    strict = check("# check: strict\nx = [1, 2]\nloss = sum(x * x.detach())")
    assert strict.exit_code == 1
    assert strict.items[-1].diagnostic.code == "E602"  # type: ignore[union-attr]  # None fails here


def test_cuts_are_marked_as_far_as_there_is_room() -> None:
    for count in (2, 5, 6, 7):
        text = "x = 1.5\nloss = x\n" + "loss = loss * (x + 1).detach()\n" * count
        found = item(text).diagnostic
        assert found is not None and found.span is not None and found.span.line == 3
        others = [label.span.line for label in found.labels if label.span.line > 2]
        assert others == [4, 5, 6, 7][: count - 1]


def test_a_wrong_rule_behind_a_cut_is_still_found() -> None:
    with planted("sin", lambda g, out, x: g * 2 * F.cos(x)):
        assert item("x = [1, 2]\nloss = sum(sin(x) * x.detach())").status == "failed"


def test_directives_choose_and_exclude() -> None:
    text = "{}\nx = [1, 2]\ny = [3, 4]\nloss = sum(x * y)"
    labels = [i.label for i in check(text.format("# check: wrt=x hessian")).items]
    assert labels == ["run", "grad[x]", "hess[x]"]
    labels = [i.label for i in check(text.format("# check: nograd x")).items]
    assert labels == ["run", "grad[y]"]
    assert [i.label for i in check(text.format("# check: nograd")).items] == ["run"]
    wrong = check(text.format("# check: hesian")).items[0].diagnostic
    assert wrong is not None and "hessian" in wrong.helps[0]
    assert [i.label for i in check("s = '# check: nograd'\nx = 1\nloss = x * x").items][-1] == (
        "grad[x]"
    )


@pytest.mark.parametrize(
    "word", ["nan=what", "seed=warn", "nan", "loss", "loss=", "rtol=-1", "atol=x"]
)
def test_directives_that_say_nothing(word: str) -> None:
    (found,) = check(f"# check: {word}\nx = [1, 2]\nloss = sum(x)").items
    assert found.diagnostic is not None and found.diagnostic.code == "E205"
    assert word.partition("=")[0] in found.diagnostic.message


def test_float32_programs_are_checked_in_float64() -> None:
    text = (
        "import torch\nx = torch.tensor([0.1, 20.0], requires_grad=True)\n"
        "loss = (x.exp() * 1e-3).sum()\nloss.backward()\n"
    )
    assert item(text).status == "passed"
    with planted("exp", lambda g, out, x: g * out * 1.0001):
        assert item(text).status == "failed"


def test_training_loops_check_their_last_and_first_backward() -> None:
    text = (
        "import torch\nw = torch.zeros(2, requires_grad=True)\n"
        "opt = torch.optim.SGD([w], lr=0.1)\n"
        "for i in range(5):\n    opt.zero_grad()\n    loss = ((w - 1) ** 2).sum()\n"
        "    loss.backward()\n    opt.step()\n"
    )
    assert item(text, "grad[w]").status == "passed"
    with planted("sub", lambda g, out, a, b, *rest: (g * 2, -g)):
        assert item(text, "grad[w]").status == "failed"


def test_second_order() -> None:
    text = "x = [1, 2]\nloss = sum(sin(x) * x)"
    assert item(text, "hess[x]", order=2).status == "passed"
    with planted("cos", lambda g, out, x: g * F.sin(x)):
        assert item(text, "grad[x]", order=2).status == "passed"
        assert item(text, "hess[x]", order=2).status == "failed"
    assert item("x = [1, 2]\nloss = sum(x * x.detach())", "hess[x]", order=2).status == "cut"


def test_a_custom_backward_that_is_wrong() -> None:
    text = (
        "import torch\n\nclass Double(torch.autograd.Function):\n    @staticmethod\n"
        "    def forward(ctx, x):\n        return x * 2\n    @staticmethod\n"
        "    def backward(ctx, g):\n        return g * 3\n\n"
        "x = torch.tensor([1.0, 2.0], requires_grad=True)\nDouble.apply(x).sum().backward()\n"
    )
    found = item(text)
    assert found.status == "failed" and found.diagnostic is not None
    assert "Function" in found.diagnostic.helps[0]
    assert item(text.replace("g * 3", "g * 2")).status == "passed"


def test_a_leaf_of_a_thousand_elements_is_quick() -> None:
    text = (
        "X = const([[1.0, 2.0], [3.0, -1.0]])\n"
        "x = tensor((arange(1000) * 0.618 % 1).reshape(2, 500).tolist(), requires_grad=True)\n"
        "loss = sum(tanh(X @ x) ** 2)"
    )
    found = item(text)
    assert found.status == "passed" and found.seconds < 1


def test_a_leaf_of_a_thousand_elements_of_the_sample_is_quick(project: Path) -> None:
    wide = "tensor((({}) * 0.618 % 1 - 0.5).reshape({}).tolist(), requires_grad=True)"
    defines = (
        ("W1", wide.format("arange(1000)", "2, 500"), False),
        ("b1", wide.format("arange(500)", "500"), False),
        ("W2", wide.format("arange(1000)", "500, 2"), False),
    )
    result = check_file(str(project / "samples" / "mlp.expr"), Settings(defines=defines))
    items = {i.label: i for i in result.items}
    assert [items[f"grad[{name}]"].status for name in ("W1", "b1", "W2")] == ["passed"] * 3
    assert items["grad[W1]"].seconds < 1


def test_kernels_of_analytic_ops_continue_analytically() -> None:
    """A complex step gives the slope that a central difference measures."""
    x = np.array([[0.3, 0.7], [0.2, -0.4]])
    arguments: dict[str, tuple[Any, ...]] = {
        "transpose": (0, 1), "permute": ((1, 0),), "view": ((4,),), "expand": ((3, 2, 2),),
        "unsqueeze": (0,),
    }  # fmt: skip
    for key in sorted(ANALYTIC):
        target = op(key)
        tensors = len(target.tensor_params)
        rest = arguments.get(key, target.defaults[tensors:])
        others = (x + 2,) * (tensors - 1)

        def at(point: Any, target: Any = target, rest: Any = rest, others: Any = others) -> Any:
            return replays.finished(target.kernel(point, *others, *rest), False)

        measured = (at(x + 1e-6) - at(x - 1e-6)) / 2e-6
        np.testing.assert_allclose(at(x + 1e-30j).imag / 1e-30, measured, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("exponent", [0.5, 1, 1.5, 2, 3, 3.5, 4, 5, 6, -1, -2])
def test_powers_that_are_taken_for_analytic(exponent: float) -> None:
    """A complex step through them gives their slope, at negative numbers and at zero too."""
    x = constant(np.array([-1.5, 0.0, 0.5]))
    if is_analytic([F.pow(x, exponent)]):
        found = op("pow").kernel(value_of(x) + 1e-30j, np.array(exponent)).imag / 1e-30
        np.testing.assert_allclose(found, exponent * value_of(x) ** (exponent - 1), 1e-12, 1e-50)
    else:
        assert exponent not in (1, 2, 3, 4)


def test_checking_says_the_same_every_time() -> None:
    text = "x = tensor((arange(600) * 0.1).tolist(), requires_grad=True)\nloss = sum(x ** 3)"
    with planted("pow", lambda g, out, x, *rest: (g * 3 * x * x * 1.01, None)):
        first, second = item(text).diagnostic, item(text).diagnostic
    assert first is not None and second is not None
    assert first.notes == second.notes


def test_time_is_limited() -> None:
    found = check("x = 1\nwhile True:\n    x = x + 1\nloss = x", timeout=0.3, max_steps=10**12)
    assert found.items[0].diagnostic.code == "E508"  # type: ignore[union-attr]  # None fails here


def test_of_several_readers_of_a_value_the_wrong_one_is_named() -> None:
    text = (
        "import torch\n\nclass Ste(torch.autograd.Function):\n    @staticmethod\n"
        "    def forward(ctx, x):\n        return torch.sign(x)\n    @staticmethod\n"
        "    def backward(ctx, g):\n        return g\n\n"
        "x = torch.tensor([0.3, -1.7, 0.0], requires_grad=True)\nq = Ste.apply(x)\n"
        "t = x + (torch.round(x) - x).detach()\n((q * 3).sum() + (t * 2).sum()).backward()\n"
    )
    found = item(text).diagnostic
    assert found is not None and found.span is not None and found.code == "E602"
    assert found.span.text == "Ste.apply(x)" and "`Ste`" in found.label


def test_of_several_readers_one_with_several_results_is_named() -> None:
    rule = op("linalg_qr").vjp_rule
    text = "x = [[3, 1], [1, 2]]\ny = x * 2\nloss = sum(linalg.qr(y)[1] ** 3) + sum(sin(y))"
    assert item(text).status == "passed"
    with planted("linalg_qr", lambda *given: tuple(g * 1.01 for g in rule(*given))):
        found = item(text).diagnostic
    assert found is not None and found.span is not None
    assert found.span.text == "linalg.qr(y)" and "`linalg.qr`" in found.label


@pytest.mark.parametrize("error", [[1, -1, 0], [1, -2, 1], [0, 1e-3, -1e-3], [1, 1, -2]])
def test_faults_of_several_elements_do_not_cancel(error: list[float]) -> None:
    shift = constant(np.array(error) * 1e-3)
    with planted("sin", lambda g, out, x: g * F.cos(x) + shift):
        found = item("x = [1, 2, 3]\nloss = sum(sin(x))").diagnostic
    assert found is not None and found.code == "E602"
    assert f"{np.count_nonzero(error)} of 3 elements" in found.message


def test_a_gradient_that_the_program_changed_later_is_no_fault() -> None:
    text = (
        "import torch\nx = torch.tensor([3.0, 4.0], dtype=torch.float64, requires_grad=True)\n"
        "(x**2).sum().backward()\ntorch.nn.utils.clip_grad_norm_([x], 1.0)\n"
    )
    assert item(text).status == "passed"


def test_an_op_that_refuses_a_step_has_no_slope_there() -> None:
    text = "x = [0.5, 1.0]\nloss = binary_cross_entropy(x, const([1.0, 1.0]))"
    assert item(text).status == "noisy"


def test_a_step_function_that_is_steep() -> None:
    """The smallest of all steps are the least of the usual ones made smaller."""
    verdict = Line(lambda t: np.tanh(complex(t).real / 1e-12), 0.0).examine(1e12)
    assert (verdict.kind, verdict.measured) == ("right", pytest.approx(1e12, rel=1e-6))
    assert verdict.step == pytest.approx(np.finfo(float).eps ** (1 / 3) / 100 * 1e-8)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_infinite_slope_is_one_that_grows_without_end(sign: float) -> None:
    """And of its sign: however large a finite one is, it is not infinite."""
    for f, kind in ((np.cbrt, "right"), (lambda t: np.tanh(1e9 * t), "noisy"), (np.sign, "right")):
        line = Line(lambda t, f=f: sign * f(t), 0.0)
        found = [line.examine(slope).kind for slope in (sign * np.inf, -sign * np.inf, np.nan)]
        assert found == [kind, "noisy", "noisy"]


@pytest.mark.parametrize("scale", [0.1, 0.01, float(np.float32(0.1))])
def test_a_step_that_is_there_twice_says_nothing_more(scale: float) -> None:
    """The step for an element of this size is one of the others: no slope between them."""
    verdict = Line(lambda t: complex(t).real * 2, 0.0, scale).examine(3.0)
    assert (verdict.kind, verdict.measured) == (WRONG, pytest.approx(2))
