"""Functions of arrays: what PyTorch found, differences, replayed plans, and what goes wrong."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import autodiff_cli as ad

from ..recorded import cases
from ..together import together

CASES = cases("array_functions")
WIDE = [case for case in CASES if case["dtype"] == "float64"]
JACOBIANS = [case for case in WIDE if case["kind"] == "jacobian"]
HESSIANS = [case for case in WIDE if case["kind"] == "hessian"]
TOLERANCE = {"float64": (1e-10, 1e-12), "float32": (1e-4, 1e-4)}

NET = "y = tanh(W @ x)"
LOSS = "loss = sum(tanh(W @ x)**2)"
RANDOM = np.random.default_rng(3)
X, W = RANDOM.standard_normal(4), RANDOM.standard_normal((3, 4))


def program_id(case: dict[str, Any]) -> str:
    return f"{case['program']}-{case['dtype']}"


def arrays_of(case: dict[str, Any]) -> dict[str, np.ndarray]:
    return {name: np.array(a, case["dtype"]) for name, a in case["arrays"].items()}


def example(found: Any, at: int) -> Any:
    """Blocks of one of many examples."""
    if isinstance(found, dict):
        return {name: example(part, at) for name, part in found.items()}
    return np.asarray(found[at])


def recorded(function: Any) -> int:
    return sum(known.plan is not None for known in function.plans.values())


def same(found: Any, wanted: Any, dtype: str = "float64") -> None:
    """Blocks are equal to rounding, in nested dicts."""
    if isinstance(wanted, dict):
        assert set(found) == set(wanted)
        for name, part in wanted.items():
            same(found[name], part, dtype)
        return
    assert isinstance(found, np.ndarray) and found.dtype == dtype
    rtol, atol = TOLERANCE[dtype]
    wanted = np.array(wanted)
    np.testing.assert_allclose(
        found, wanted, rtol, atol * max(1.0, float(np.abs(wanted).max(initial=0.0)))
    )


# -- numbers ---------------------------------------------------------------------------------------


@together(CASES)
def test_blocks_are_those_of_pytorch(case: dict[str, Any]) -> None:
    """Also from a plan that was recorded with other numbers."""
    arrays = arrays_of(case)
    others = {name: a * a.dtype.type(0.5) for name, a in arrays.items()}
    of = "loss" if case["kind"] == "hessian" else "y"
    function = getattr(ad, case["kind"])(case["program"], of=of)
    same(function(**arrays), case["blocks"], case["dtype"])
    for given in (others, others, arrays):
        found = function(**given)
    assert recorded(function) == 1
    same(found, case["blocks"], case["dtype"])


@pytest.mark.parametrize("case", JACOBIANS, ids=program_id)
@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_both_modes_agree(case: dict[str, Any], mode: str) -> None:
    same(ad.jacobian(case["program"], of="y", mode=mode)(**arrays_of(case)), case["blocks"])


@together(JACOBIANS)
def test_products_with_vectors_are_those_of_the_jacobian(case: dict[str, Any]) -> None:
    arrays = arrays_of(case)
    random = np.random.default_rng(1)
    moves = {name: random.standard_normal(a.shape) for name, a in arrays.items()}
    blocks = {name: np.array(block) for name, block in case["blocks"].items()}
    pulled, pushed = ad.vjp(case["program"], of="y"), ad.jvp(case["program"], of="y")
    for _ in range(3):
        value, change = pushed(moves, **arrays)
        same(change, sum(np.tensordot(b, moves[n], arrays[n].ndim) for n, b in blocks.items()))
        weights = random.standard_normal(value.shape)
        again, slopes = pulled(weights, **arrays)
        np.testing.assert_array_equal(again, value)
        same(slopes, {n: np.tensordot(weights, b, value.ndim) for n, b in blocks.items()})
    assert recorded(pulled) == recorded(pushed) == 1


@pytest.mark.parametrize("case", WIDE, ids=program_id)
def test_many_examples_are_the_calls_one_by_one(case: dict[str, Any]) -> None:
    arrays = arrays_of(case)
    examples = {name: np.stack([a, 0.9 * a, a + 0.01]) for name, a in arrays.items()}
    of = "loss" if case["kind"] == "hessian" else "y"
    one, many = (
        getattr(ad, case["kind"])(case["program"], of=of, **k) for k in ({}, {"vmap": arrays})
    )
    for _ in range(3):
        found = many(**examples)
        for at in range(3):
            wanted = one(**{name: a[at] for name, a in examples.items()})
            same(example(found, at), wanted)
    assert recorded(many) == 1


@together(HESSIANS)
def test_products_with_vectors_are_those_of_the_hessian(case: dict[str, Any]) -> None:
    arrays = arrays_of(case)
    random = np.random.default_rng(1)
    moves = {name: random.standard_normal(a.shape) for name, a in arrays.items()}
    wanted = {
        a: sum(np.tensordot(np.array(b), moves[n], arrays[n].ndim) for n, b in row.items())
        for a, row in case["blocks"].items()
    }
    function = ad.hvp(case["program"])
    for _ in range(3):
        same(function(moves, **arrays), wanted)
    assert recorded(function) == 1


def test_a_part_of_a_vector_that_is_left_out_is_zero() -> None:
    function = ad.hvp(LOSS, wrt=["x", "W"])
    short = function({"x": X}, x=X, W=W)
    same(short, function({"x": X, "W": 0 * W}, x=X, W=W))


@together(HESSIANS)
def test_hessians_are_differences_of_gradients(case: dict[str, Any]) -> None:
    arrays = arrays_of(case)
    slope = ad.value_and_grad(case["program"])
    step = 1e-6
    for name, array in arrays.items():
        for at in np.ndindex(array.shape):
            moved = [array.copy(), array.copy()]
            moved[0][at] += step
            moved[1][at] -= step
            above, below = (slope(**{**arrays, name: m})[1] for m in moved)
            for other in arrays:
                block = np.array(case["blocks"][other][name])
                slopes = (above[other] - below[other]) / (2 * step)
                np.testing.assert_allclose(block[(..., *at)], slopes, 2e-6, 2e-6)


def test_some_rows_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = ad.jacobian(NET, mode="reverse")(x=X, W=W), ad.hessian(LOSS)(x=X, W=W)
    monkeypatch.setattr("autodiff_cli.autograd.transforms.jacobians.BATCH", 24)
    monkeypatch.setattr("autodiff_cli.autograd.transforms.jacobians.MOST", 24)
    for mode in ("reverse", "forward"):
        function = ad.jacobian(NET, mode=mode)
        for _ in range(3):
            same(function(x=X, W=W), whole[0])
    same(ad.hessian(LOSS)(x=X, W=W), whole[1])


def test_elements_that_do_not_depend_on_one_another_are_zero() -> None:
    """Where PyTorch, which multiplies zeros by the infinite slope, has NaN."""
    x = np.array([0.0, 4.0])
    np.testing.assert_array_equal(ad.jacobian("sqrt(x)", wrt="x")(x=x), [[np.inf, 0], [0, 0.25]])
    found = ad.hessian("sum(sqrt(x))", wrt="x")(x=x)
    np.testing.assert_array_equal(found, [[-np.inf, 0], [0, -0.03125]])


# -- calls -----------------------------------------------------------------------------------------


def test_names_and_forms() -> None:
    single = ad.jacobian(NET, wrt="x")(x=X, W=W)
    assert single.shape == (3, 4)
    listed = ad.jacobian(NET, wrt=["x"])(x=X, W=W)
    assert list(listed) == ["x"]
    np.testing.assert_array_equal(listed["x"], single)
    assert {n: b.shape for n, b in ad.jacobian(NET)(x=X, W=W).items()} == {
        "x": (3, 4), "W": (3, 3, 4),
    }  # fmt: skip
    blocks = ad.hessian(LOSS, wrt=["W", "x"])(x=X, W=W)
    assert {(a, b): block.shape for a, row in blocks.items() for b, block in row.items()} == {
        ("W", "W"): (3, 4, 3, 4), ("W", "x"): (3, 4, 4), ("x", "W"): (4, 3, 4), ("x", "x"): (4, 4),
    }  # fmt: skip
    np.testing.assert_array_equal(
        blocks["x"]["W"].reshape(4, 12), blocks["W"]["x"].reshape(12, 4).T
    )
    value, slope = ad.value_and_grad(LOSS, wrt="x")(x=X, W=W)
    assert isinstance(value, float) and slope.shape == (4,)


def test_the_objective() -> None:
    text = "h = W @ x\ny = tanh(h)\nloss = sum(y)"
    assert ad.jacobian(text, wrt="x")(x=X, W=W).shape == (4,)
    np.testing.assert_array_equal(ad.jacobian(text, wrt="x", of="h")(x=X, W=W), W)
    same(ad.jacobian("h = W @ x\ntanh(h)", wrt="x")(x=X, W=W), ad.jacobian(NET, "x")(x=X, W=W))
    same(ad.hessian("sum(tanh(W @ x)**2)", wrt="x")(x=X, W=W), ad.hessian(LOSS, "x")(x=X, W=W))
    own = ad.jacobian("w = [1.0, 2.0]\ny = w * w")()
    np.testing.assert_array_equal(own["w"], [[2, 0], [0, 4]])


def test_constants_are_given_once() -> None:
    function = ad.jacobian(NET, W=W)
    for _ in range(3):
        assert list(function(x=X)) == ["x"]
    np.testing.assert_array_equal(
        function(x=X)["x"], ad.jacobian(NET, wrt="x", mode="reverse")(x=X, W=W)
    )
    np.testing.assert_array_equal(function(x=X, W=0 * W)["x"], 0 * W)
    assert ad.value_and_grad(LOSS, wrt=["W"], W=W)(x=X)[1]["W"].shape == W.shape


def test_a_program_of_pytorch() -> None:
    text = "import torch\nx.register_hook(lambda g: g * 0)\ny = torch.tanh(W @ x)"
    function = ad.jacobian(text, wrt="x", of="y")
    narrow = function(x=X.astype(np.float32), W=W.astype(np.float32))
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, ad.jacobian(NET, wrt="x")(x=X, W=W), 1e-5, 1e-6)


def test_a_program_that_goes_backward_itself() -> None:
    program = "y = sum(x**3)\ny.backward()\nloss = sum(x.grad * x)"  # 3 x^2 is a constant there
    for many in ((), "x"):
        function = ad.value_and_grad(program, wrt="x", vmap=many)
        for x in np.array([[[1.0, 2.0]], [[3.0, -1.0]], [[0.5, 4.0]], [[2.0, 2.0]]]):
            value, slope = function(x=x)
            np.testing.assert_allclose(value, np.sum(3 * x**3), rtol=1e-14)
            np.testing.assert_allclose(slope, 3 * x**2, rtol=1e-14)


def test_integers_count_as_numbers_when_they_are_named() -> None:
    np.testing.assert_array_equal(ad.jacobian("x * x", wrt="x")(x=[1, 2]), [[2, 0], [0, 4]])


def test_no_dependence_is_zero() -> None:
    found = ad.jacobian("q = z\ny = x * 2", wrt=["x", "z"])(x=X, z=np.ones((2, 2)))
    assert found["z"].shape == (4, 2, 2) and not found["z"].any()
    linear = ad.hessian("loss = sum(W @ x)", wrt="x")(x=X, W=W)
    np.testing.assert_array_equal(linear, np.zeros((4, 4)))
    kinked = ad.hessian("loss = sum(floor(x) + x)", wrt="x")(x=X)
    np.testing.assert_array_equal(kinked, np.zeros((4, 4)))


def test_empty_and_single_arrays() -> None:
    assert ad.jacobian("y = x * 2", wrt="x")(x=np.ones(0)).shape == (0, 0)
    assert ad.hessian("loss = sum(x * x)", wrt="x")(x=np.ones(0)).shape == (0, 0)
    np.testing.assert_array_equal(ad.jacobian("y = x**3", wrt="x")(x=2.0), 12.0)
    np.testing.assert_array_equal(ad.hessian("loss = x**3", wrt="x")(x=np.full((1, 1), 2.0)),
                                  np.full((1, 1, 1, 1), 12.0))  # fmt: skip


def test_results_are_memory_of_their_own() -> None:
    function = ad.jacobian("y = W @ x", W=np.ones((64, 64)))
    hessian = ad.hessian("loss = sum(x * (W @ x))", W=np.ones((64, 64)))
    for _ in range(4):
        for found in (function(x=np.ones(64))["x"], hessian(x=np.ones(64))["x"]["x"]):
            assert found.flags.writeable
            found += 1
    np.testing.assert_array_equal(function(x=np.ones(64))["x"], np.ones((64, 64)))
    np.testing.assert_array_equal(hessian(x=np.ones(64))["x"]["x"], np.full((64, 64), 2.0))


def test_programs_that_look_at_values_run_anew() -> None:
    function = ad.jacobian("y = x * x if x[0] > 0 else x * 3", wrt="x")
    for sign in (1.0, -1.0, 1.0, -1.0):
        found = function(x=np.full(2, sign))
        np.testing.assert_array_equal(found, np.eye(2) * (2 if sign > 0 else 3))
    assert recorded(function) == 0


# -- the plan --------------------------------------------------------------------------------------


def products(function: Any) -> list[tuple[int, ...]]:
    """The shapes of the products of matrices in the plan of a function."""
    (known,) = function.plans.values()
    return [s.shape for s in known.plan.steps if getattr(s, "name", "") in ("matmul", "bmm")]


def test_nothing_is_multiplied_by_the_identity() -> None:
    text = "y = tanh(C @ tanh(B @ tanh(A @ x)))"
    arrays = {name: RANDOM.standard_normal((8, 8)) for name in "ABC"}
    function = ad.jacobian(text, wrt="x", **arrays)
    for _ in range(2):
        function(x=np.ones(8))
    assert products(function) == [(8,), (8,), (8,), (8, 8), (8, 8)]
    second = ad.hessian(LOSS, wrt="x", W=W)
    for _ in range(2):
        second(x=X)
    assert products(second) == [(3,), (4, 4)]


def test_elementwise_parts_have_the_size_of_one_example() -> None:
    function = ad.jacobian("y = exp(sin(x) * cos(x)) / (1 + x * x)", wrt="x")
    for _ in range(2):
        function(x=np.ones(50))
    (known,) = function.plans.values()
    large = [step.name for step in known.plan.steps if np.prod(step.shape) > 50]
    assert large in (["diag_embed"], ["diag_embed", "view"])


# -- what goes wrong -------------------------------------------------------------------------------


@together([
        (lambda: ad.jacobian(NET, wrt="z")(x=X, W=W), "E201", "no tensor `z`"),
        (lambda: ad.jacobian(NET, wrt="x", of="q")(x=X, W=W), "E201", "no `q`"),
        (lambda: ad.jacobian(NET, wrt="x")(x=X), "E201", "`W`"),
        (lambda: ad.jacobian(NET, wrt="x")(x=X, V=W), "E205", "no name `V`"),
        (lambda: ad.jacobian(NET, wrt="x", V=W), "E205", "no name `V`"),
        (lambda: ad.jacobian(NET, wrt="x", mode="both"), "E205", "'both'"),
        (lambda: ad.jacobian(NET, wrt="x", max_memory="1G"), "E205", "max_memory"),
        (lambda: ad.jacobian("y = (", wrt="x"), "E101", ""),
        (lambda: ad.jacobian("y = argsort(x)")(x=X), "E402", "float arrays"),
        (lambda: ad.jacobian("y = x * 2")(x=[1, 2]), "E402", "float arrays"),
        (lambda: ad.jacobian("y = x", wrt="x")(x="abc"), "E208", "numeric array"),
        (lambda: ad.jacobian("y = x", wrt="x")(x=[[1], [2, 3]]), "E208", "rows"),
        (lambda: ad.hessian(NET, wrt="x")(x=X, W=W), "E401", "(3,)"),
        (lambda: ad.hvp(LOSS, wrt="x")(x=X, W=W), "E205", "a vector"),
        (lambda: ad.hvp(LOSS, wrt="x")(W, x=X, W=W), "E308", "(3, 4)"),
        (lambda: ad.hvp(LOSS)(X, x=X, W=W), "E208", "by name"),
        (lambda: ad.hvp(LOSS)({"q": X}, x=X, W=W), "E205", "`q`"),
        (lambda: ad.vjp(NET)(X, x=X, W=W), "E308", "the objective"),
        (lambda: ad.value_and_grad(LOSS)(X, W=W), "E205", "positional"),
        (lambda: ad.jacobian("def f(x):\n    return f(x)\nf(x)")(x=X), "E507", ""),
    ])  # fmt: skip
def test_mistakes(call: Any, code: str, words: str) -> None:
    with pytest.raises(ad.AutodiffError) as caught:
        call()
    told = [caught.value.diagnostic.message, *caught.value.diagnostic.helps]
    assert caught.value.code == code
    assert words in "\n".join(told)


def test_a_long_graph_is_planned_at_its_second_call() -> None:
    """y = a y + b x from 0, n times, is b x (1 - a ** n) / (1 - a)."""
    function = ad.value_and_grad(
        "y = 0.0\nfor i in range(2500): y = y * 0.999 + x * 0.5\nloss = sum(y)", wrt="x"
    )
    slope = 0.5 * (1 - 0.999**2500) / (1 - 0.999)
    for call in range(4):
        x = np.array([1.0, call])
        loss, found = function(x=x)
        assert loss == pytest.approx(slope * x.sum(), rel=1e-12)
        np.testing.assert_allclose(found, [slope, slope], 1e-12)
        assert recorded(function) == (call > 0)


def test_other_shapes_later() -> None:
    function = ad.jacobian(NET, wrt="x")
    for _ in range(3):
        function(x=X, W=W)
    with pytest.raises(ad.AutodiffError, match="inner sizes"):
        function(x=np.ones(5), W=W)
    assert function(x=np.ones(5), W=np.ones((2, 5))).shape == (2, 5)
    assert function(x=X, W=W).shape == (3, 4)
    product = ad.hvp(LOSS, wrt="x", W=W)
    for _ in range(3):
        product(X, x=X)
    with pytest.raises(ad.AutodiffError, match="the vector has shape"):
        product(np.ones(3), x=X)


def test_limits() -> None:
    function = ad.jacobian("y = x * x", wrt="x", max_memory=200_000)
    assert function(x=np.ones(100)).shape == (100, 100)
    for _ in range(4):
        with pytest.raises(ad.AutodiffError, match=r"limit|need more than") as caught:
            function(x=np.ones(1000))
        assert caught.value.code == "E505"
    loop = "y = x\nfor i in range(100):\n    y = y * x\nloss = y"
    assert ad.value_and_grad(loop)(x=1.0)[0] == 1
    with pytest.raises(ad.AutodiffError, match="50 loop steps") as caught:
        ad.value_and_grad(loop, max_steps=50)(x=1.0)
    assert caught.value.code == "E506"
