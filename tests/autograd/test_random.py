"""The random stream is PyTorch's (tests/oracles/random.py made the fixture)."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autodiff_cli.autograd.random import initial_values
from autodiff_cli.autograd.random.arithmetic import Uniforms, fused, poisson_count
from autodiff_cli.autograd.random.counts import binomial, dirichlet, standard_gamma
from autodiff_cli.autograd.random.stream import DEFAULT_SEED, Generator
from autodiff_cli.autograd.tensor import Tensor
from autodiff_cli.engine.evaluate import evaluate
from autodiff_cli.errors import AutodiffError
from autodiff_cli.graph.dtypes import DTYPES
from autodiff_cli.graph.op import constant
from autodiff_cli.graph.state import STATE
from autodiff_cli.language.nn.prelude import define
from autodiff_cli.language.random.initializers import FUNCTIONS as INITIALIZERS
from tests.pace import takes_at_most

FIXTURE = Path(__file__).parents[1] / "fixtures" / "random.json"
CASES = json.loads(FIXTURE.read_text(encoding="utf-8"))["cases"]

# What these make has passed through log, sin, cos, ... of the C library, or through LAPACK.
ROUNDED = {"float64": 2e-14, "float32": 5e-7, "float16": 1e-3}
EXACT = {"rand", "uniform", "randint", "random", "randperm", "bernoulli", "multinomial", "poisson"}
SAMPLERS = {"standard_gamma": standard_gamma, "dirichlet": dirichlet, "binomial": binomial}
EXACT |= {"dropout", "alpha_dropout", "geometric", "init_linear", "init_conv"}
EXACT |= {"init_xavier_uniform", "init_kaiming_uniform", "init_recurrent", "init_bilinear"}


def _conv(options: dict) -> str:
    return f"Conv{'Transpose' * options.pop('transposed', False)}{len(options['kernel_size'])}d"


def _embedding(options: dict) -> str:
    options["num_embeddings"] = options.pop("count")
    options["embedding_dim"] = options.pop("length")
    return "Embedding"


# The class whose values are drawn; its arguments are the others.
MODULES: dict[str, Callable[[dict], str]] = {
    "init_linear": lambda options: "Linear",
    "init_conv": _conv,
    "init_bilinear": lambda options: "Bilinear",
    "init_embedding": _embedding,
    "init_recurrent": lambda options: options.pop("kind"),
    "init_recurrent_cell": lambda options: options.pop("kind") + "Cell",
}


def argument(value: Any) -> Any:
    if isinstance(value, dict):
        return np.array(value["data"], dtype=value["dtype"])
    return value


def written(generator: Generator, name: str, shape: Any, *args: Any, **options: Any) -> np.ndarray:
    """What a function of `nn.init` writes."""
    STATE.default_generator = generator
    zeros = np.zeros(shape, DTYPES[options.pop("dtype", "float32")])
    options = {"val" if key == "value" else key: value for key, value in options.items()}
    node = INITIALIZERS[f"{name.removeprefix('init_')}_"](
        Tensor(constant(zeros)), *args, **options
    ).node
    evaluate([node])
    return node.value


def run(generator: Generator, name: str, options: dict) -> Any:
    arguments = {key: argument(value) for key, value in options.items()}
    if name in MODULES:
        STATE.default_generator = generator
        kind = DTYPES[arguments.pop("dtype", "float32")]
        module = define(MODULES[name](arguments))(**arguments, dtype=kind)
        made = {key: p.node for key, p in module.parameters.items() if p is not None}
        evaluate(list(made.values()))
        return {key: node.value for key, node in made.items()}
    if name.startswith("init_"):
        return written(generator, name, **arguments)
    if name in SAMPLERS:
        return SAMPLERS[name](**arguments, stream=generator)
    result = getattr(generator, name)(**arguments)
    if name == "alpha_dropout":  # PyTorch was asked for the outputs at 1 and at 0
        return [result[0] + result[1], result[1]]
    return result


def compare(name: str, result: Any, expected: Any, wrong: list) -> None:
    if isinstance(expected, list):
        for one, other in zip(result, expected, strict=True):
            compare(name, one, other, wrong)
        return
    if "stride" not in expected:
        if set(result) != set(expected):
            wrong.append((name, sorted(result), sorted(expected)))
        for key in expected:
            compare(name, result[key], expected[key], wrong)
        return
    values = np.array(
        [float(v) if isinstance(v, str) else v for v in expected["values"]],
        dtype=expected["dtype"],
    )
    drawn = result.reshape(-1)[:: expected["stride"]]
    form = (list(result.shape), result.dtype.name)
    if form != (expected["shape"], expected["dtype"]):
        wrong.append((name, form, expected["shape"], expected["dtype"]))
    elif name in EXACT or values.dtype.kind != "f":
        if not np.array_equal(drawn, values):
            wrong.append((name, drawn.tolist(), values.tolist()))
    else:
        close = ROUNDED[expected["dtype"]]
        # A sum with a mean, or a matrix factor, rounds relative to its largest parts.
        absolute = 5 * close if name in ("normal", "rrelu", "init_orthogonal") else 0
        if not np.allclose(drawn, values, rtol=close, atol=absolute):
            error = np.abs(drawn.astype(float) - values).max()
            wrong.append((name, error, drawn.tolist(), values.tolist()))


def test_every_draw_equals_pytorchs() -> None:
    wrong: list = []
    for number, case in enumerate(CASES):
        generator = Generator(case["seed"])
        assert generator.initial_seed() == case["initial_seed"]
        for (name, options), expected in zip(case["steps"], case["results"], strict=True):
            here: list = []
            compare(name, run(generator, name, options), expected, here)
            wrong += [(number, options, *what) for what in here]
    assert not wrong, f"{len(wrong)} differ, the first: {wrong[0]}"


def slow_permutation(words: list[int], n: int) -> list[int]:
    order = list(range(n))
    for i in range(n - 1):
        j = i + words[i] % (n - i)
        order[i], order[j] = order[j], order[i]
    return order


@pytest.mark.parametrize("n", [2, 3, 4, 5, 8, 50, 1000, 4097])
def test_permutations_equal_the_loop(n: int) -> None:
    for seed in range(20):
        words = np.random.RandomState(seed).randint(0, 2**32, n, np.uint64).tolist()
        words = Generator(seed)._words(n).tolist()
        assert Generator(seed).randperm(n).tolist() == slow_permutation(words, n)


def test_nobody_seeded() -> None:
    assert Generator().initial_seed() == DEFAULT_SEED
    assert np.array_equal(Generator().rand(4), Generator(DEFAULT_SEED).rand(4))


def test_state_goes_back_to_the_same_place() -> None:
    generator = Generator(3)
    generator.randn(3)  # keeps a normal back
    state = copy.deepcopy(generator.get_state())
    first = [generator.randn(2), generator.rand(5), generator.randperm(9)]
    other = Generator(99).set_state(state)
    for source in (generator.set_state(state), other, other.set_state(state).clone()):
        again = [source.randn(2), source.rand(5), source.randperm(9)]
        assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
        assert source.initial_seed() == 3


def test_a_clone_is_independent() -> None:
    generator = Generator(1)
    clone = generator.clone()
    clone.rand(100)
    assert np.array_equal(generator.rand(3), Generator(1).rand(3))


def test_an_unpredictable_seed_can_be_repeated() -> None:
    generator = Generator()
    seed = generator.seed()
    assert np.array_equal(generator.rand(3), Generator(seed).rand(3))


@pytest.mark.parametrize(
    "draw",
    [
        lambda g: g.rand(10**6),
        lambda g: g.rand(10**6, np.float64),
        lambda g: g.uniform(10**6, np.float64, -1, 2),
        lambda g: g.randn(10**6),
        lambda g: g.randint(0, 10, 10**6),
        lambda g: g.bernoulli(0.5, 10**6),
    ],
)
def test_a_million_draws_are_quick(draw: Any) -> None:
    generator = Generator(0)
    generator.rand(1)
    assert takes_at_most(8, lambda: draw(generator))


def test_numpys_random_module_is_loaded_only_when_used() -> None:
    program = (
        "import sys, numpy, dataclasses; before = set(sys.modules);"
        "import autodiff_cli.autograd.random.stream as r;"
        "r.Generator(1); new = set(sys.modules) - before;"
        "assert not any(n.split('.')[0] in ('scipy', 'inspect') for n in new), new;"
        "assert not any(n.startswith('numpy.random') for n in new), new"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def weights(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float32)


@pytest.mark.parametrize(
    ("code", "call"),
    [
        ("E205", lambda g: g.manual_seed("a")),
        ("E205", lambda g: g.manual_seed(None)),
        ("E205", lambda g: g.manual_seed(2**64)),
        ("E205", lambda g: g.manual_seed(float("inf"))),
        ("E205", lambda g: g.set_state(b"")),
        ("E309", lambda g: g.rand((2, -1))),
        ("E205", lambda g: g.rand((2.5, 3))),
        ("E205", lambda g: g.rand("3")),
        ("E505", lambda g: g.rand((10**6, 10**6))),
        ("E505", lambda g: g.randn(10**15)),
        ("E505", lambda g: g.multinomial(weights(1, 2), 10**15, True)),
        ("E307", lambda g: g.rand(2, np.int64)),
        ("E307", lambda g: g.randn(2, np.int64)),
        ("E205", lambda g: g.uniform(2, np.float32, 1.0, 0.0)),
        ("E205", lambda g: g.uniform(2, np.float64, -1e308, 1e308)),
        ("E205", lambda g: g.uniform(2, np.float64, 0.0, float("nan"))),
        ("E205", lambda g: g.normal(0.0, -1.0, (2,))),
        ("E205", lambda g: g.normal(weights(1, 2), weights(1, -2))),
        ("E302", lambda g: g.normal(weights(1, 2), weights(1, 2, 3))),
        ("E205", lambda g: g.randint(5, 5, (2,))),
        ("E205", lambda g: g.randint(0, 300, (2,), np.uint8)),
        ("E205", lambda g: g.randint(-1, 3, (2,), np.uint8)),
        ("E205", lambda g: g.randint(0, 2**70, (2,))),
        ("E205", lambda g: g.randint(0, 1.5, (2,))),
        ("E309", lambda g: g.randperm(-1)),
        ("E505", lambda g: g.randperm(10**12)),
        ("E205", lambda g: g.bernoulli(1.5, (2,))),
        ("E205", lambda g: g.bernoulli(weights(0.5, 2))),
        ("E307", lambda g: g.bernoulli(np.array([0, 1]))),
        ("E205", lambda g: g.exponential(2, rate=0.0)),
        ("E205", lambda g: g.geometric(2, p=1.0)),
        ("E205", lambda g: g.log_normal(2, std=0.0)),
        ("E205", lambda g: g.cauchy(2, sigma=0.0)),
        ("E205", lambda g: g.multinomial(weights(1, 2), 0)),
        ("E205", lambda g: g.multinomial(weights(1, 2), 3)),
        ("E205", lambda g: g.multinomial(weights(1, -2), 1)),
        ("E205", lambda g: g.multinomial(weights(0, 0), 1)),
        ("E205", lambda g: g.multinomial(weights(1, float("nan")), 1)),
        ("E307", lambda g: g.multinomial(np.array([1, 2]), 1)),
        ("E308", lambda g: g.multinomial(np.ones((2, 2, 2)), 1)),
        ("E205", lambda g: g.poisson(weights(-1))),
        ("E205", lambda g: g.poisson(weights(float("inf")))),
        ("E205", lambda g: g.dropout(3, 1.5)),
        ("E205", lambda g: g.alpha_dropout(3, 1.5)),
        ("E205", lambda g: g.rrelu(weights(-1), 0.5, 0.1)),
        ("E308", lambda g: written(g, "init_xavier_uniform", 3)),
        ("E309", lambda g: written(g, "init_xavier_normal", (0, 0))),
        ("E308", lambda g: written(g, "init_orthogonal", (3,))),
        ("E308", lambda g: written(g, "init_sparse", (3,), 0.1)),
        ("E205", lambda g: written(g, "init_sparse", (3, 3), float("nan"))),
        ("E308", lambda g: written(g, "init_dirac", (3, 3))),
        ("E205", lambda g: written(g, "init_dirac", (3, 3, 3), groups=2)),
        ("E308", lambda g: written(g, "init_eye", 3)),
        ("E205", lambda g: written(g, "init_kaiming_normal", (3, 3), mode="fan")),
        ("E205", lambda g: written(g, "init_kaiming_normal", (3, 3), nonlinearity="gelu")),
        ("E205", lambda g: written(g, "init_trunc_normal", 3, std=0.0)),
        ("E205", lambda g: written(g, "init_trunc_normal", 3, a=2.0, b=1.0)),
        ("E506", lambda g: written(g, "init_trunc_normal", 3, a=50.0, b=1e9)),
    ],
)
def test_wrong_arguments_are_explained(
    code: str, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(initial_values, "MAX_ROUNDS", 10)
    with pytest.raises(AutodiffError) as caught:
        call(Generator(0))
    assert caught.value.code == code, caught.value
    assert caught.value.diagnostic.helps


class Scripted(Generator):
    """Uniforms that are given, then those of the generator."""

    def __init__(self, *given: float):
        super().__init__(0)
        self.given = list(given)

    def _float64(self, count: int) -> np.ndarray:
        taken, self.given = self.given[:count], self.given[count:]
        return np.append(taken, super()._float64(count - len(taken)))


def test_draws_from_uniforms_of_zero() -> None:
    """A first uniform of 0 divides by zero, so the next two are taken; a second one whose
    logarithm is not finite accepts what was drawn."""

    def poisson(*given: float) -> int:
        return poisson_count(20.0, Uniforms(Scripted(*given)._float64))

    def binomials(*given: float) -> float:
        count, prob = np.full(1, 100.0), np.full(1, 0.4)
        return float(binomial(count, prob, Scripted(*given))[0])

    for draw in (poisson, binomials):
        assert draw(0.0, 0.5, 0.3, 0.9) == draw(0.3, 0.9)
        assert draw(0.98, 0.0, 0.3, 0.9) == draw(0.98, 1e-300)


@pytest.mark.parametrize("scale", [3.0, 1e6, 1e200, -(2.0**899)])
@pytest.mark.parametrize("shift", [1.0, -0.3, 1e5, 1e180, 2.0**899])
def test_products_with_a_sum_are_rounded_once(scale: float, shift: float) -> None:
    values = np.random.default_rng(0).standard_normal(50)
    exact = [float(Fraction(v) * Fraction(scale) + Fraction(shift)) for v in values.tolist()]
    assert fused(values, scale, shift).tolist() == exact


@pytest.mark.parametrize(("scale", "shift"), [(2.0**1000, 1.0), (1e308, 1e300), (1.0, 1.7e308)])
def test_huge_products_with_a_sum_are_finite(scale: float, shift: float) -> None:
    values = np.array([0.5, -0.75])
    np.testing.assert_allclose(fused(values, scale, shift), values * scale + shift)
