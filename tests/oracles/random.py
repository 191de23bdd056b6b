"""Write tests/fixtures/random.json: what PyTorch draws, call by call.

Run `python -P tests/oracles/random.py` where PyTorch is installed (-P because this file shares
its name with a standard module); the tests read only the JSON file.

A case is a seed and a list of steps `[call, keyword arguments]`, named as in `random` and
`initial_values` of `autodiff_cli.autograd`, or modules that are made; every case ends with whole
numbers that show how many words the steps before used. Of long results only every `stride`-th
element is kept.
"""

from __future__ import annotations

import itertools
import json
import math
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn

FIXTURE = Path(__file__).parents[1] / "fixtures" / "random.json"
DTYPES = ("float32", "float64")
COUNTS = [
    ([0.0, 1.0, 5.0, 20.0, 30.0], [0.0, 0.1, 0.5, 0.7, 1.0, 0.33]),
    ([20.0, 25.0, 40.0, 60.0, 22.0], [0.5, 0.49, 0.51, 0.6]),
    ([100.0, 1000.0, 33.0], [0.3, 0.35, 0.4, 0.9, 0.12]),
]
MEANS = [-1.0, -0.25, 0.0, 0.5, 3.0]


def dt(name: str) -> torch.dtype:
    return getattr(torch, name)


def empty(shape: Any, dtype: str = "float32") -> torch.Tensor:
    return torch.empty(shape, dtype=dt(dtype))


def array(spec: Any) -> Any:
    """A number, or a tensor written as {"data": nested list, "dtype": name}."""
    return torch.tensor(spec["data"], dtype=dt(spec["dtype"])) if isinstance(spec, dict) else spec


def normal(mean=0.0, std=1.0, shape=None, dtype="float32"):
    if isinstance(mean, dict) or isinstance(std, dict):
        return torch.normal(array(mean), array(std))
    return empty(shape, dtype).normal_(mean, std)


def random_(shape, dtype="int64", low=None, high=None):
    tensor = empty(shape, dtype)
    if low is None and high is None:
        return tensor.random_()
    return tensor.random_(low or 0, high)


def bernoulli(p, shape=None, dtype=None):
    if isinstance(p, dict):
        if shape is None:
            return torch.bernoulli(array(p))
        return empty(shape, dtype or p["dtype"]).bernoulli_(array(p))
    return empty(shape, dtype or "float32").bernoulli_(p)


def alpha_dropout(shape, p=0.5, dtype="float32"):
    ones = torch.ones(shape, dtype=dt(dtype))
    state = torch.get_rng_state()
    at_one = nn.functional.alpha_dropout(ones, p, True)
    torch.set_rng_state(state)
    at_zero = nn.functional.alpha_dropout(ones * 0, p, True)
    return [at_one, at_zero]


def module(made: nn.Module) -> dict[str, torch.Tensor]:
    return {name: value.detach() for name, value in made.named_parameters()}


def init(name: str) -> Callable[..., torch.Tensor]:
    def call(shape: Any, dtype: str = "float32", **options: Any) -> torch.Tensor:
        return getattr(nn.init, name)(empty(shape, dtype), **options)

    return call


def conv(out_channels, in_channels, kernel_size, groups=1, bias=True, transposed=False, **other):
    kind = "ConvTranspose" if transposed else "Conv"
    made = getattr(nn, f"{kind}{len(kernel_size)}d")
    dtype = dt(other.get("dtype", "float32"))
    return module(
        made(in_channels, out_channels, kernel_size, groups=groups, bias=bias, dtype=dtype)
    )


def recurrent(kind, input_size, hidden_size, num_layers=1, dtype="float32", **other):
    made = getattr(nn, kind)(input_size, hidden_size, num_layers, dtype=dt(dtype), **other)
    return module(made)


CALLS: dict[str, Callable[..., Any]] = {
    "rand": lambda shape, dtype="float32": torch.rand(shape, dtype=dt(dtype)),
    "randn": lambda shape, dtype="float32": torch.randn(shape, dtype=dt(dtype)),
    "uniform": lambda shape, dtype, low, high: empty(shape, dtype).uniform_(low, high),
    "normal": normal,
    "randint": lambda low, high, shape, dtype="int64": torch.randint(
        low, high, shape, dtype=dt(dtype)
    ),
    "random": random_,
    "randperm": lambda n, dtype="int64": torch.randperm(n, dtype=dt(dtype)),
    "bernoulli": bernoulli,
    "exponential": lambda shape, dtype, rate: empty(shape, dtype).exponential_(rate),
    "geometric": lambda shape, dtype, p: empty(shape, dtype).geometric_(p),
    "log_normal": lambda shape, dtype, mean, std: empty(shape, dtype).log_normal_(mean, std),
    "cauchy": lambda shape, dtype, median, sigma: empty(shape, dtype).cauchy_(median, sigma),
    "multinomial": lambda weights, count, replacement=False: torch.multinomial(
        array(weights), count, replacement
    ),
    "poisson": lambda rates: torch.poisson(array(rates)),
    "standard_gamma": lambda alphas: torch._standard_gamma(array(alphas)),
    "dirichlet": lambda alphas: torch._sample_dirichlet(array(alphas)),
    "binomial": lambda counts, probs: torch.binomial(array(counts), array(probs)),
    "dropout": lambda shape, p, dtype="float32": nn.functional.dropout(
        torch.ones(shape, dtype=dt(dtype)), p, True
    ),
    "alpha_dropout": alpha_dropout,
    "rrelu": lambda values, lower, upper: (
        nn.functional.rrelu(array(values), lower, upper, True)
        / torch.where(array(values) == 0, torch.tensor(1.0), array(values))
    ),
    "init_trunc_normal": init("trunc_normal_"),
    "init_xavier_uniform": init("xavier_uniform_"),
    "init_xavier_normal": init("xavier_normal_"),
    "init_kaiming_uniform": init("kaiming_uniform_"),
    "init_kaiming_normal": init("kaiming_normal_"),
    "init_orthogonal": init("orthogonal_"),
    "init_sparse": init("sparse_"),
    "init_constant": lambda shape, value, dtype="float32": nn.init.constant_(
        empty(shape, dtype), value
    ),
    "init_eye": init("eye_"),
    "init_dirac": init("dirac_"),
    "init_linear": lambda out_features, in_features, bias=True, dtype="float32": module(
        nn.Linear(in_features, out_features, bias, dtype=dt(dtype))
    ),
    "init_conv": conv,
    "init_bilinear": lambda out_features, in1_features, in2_features, bias=True: module(
        nn.Bilinear(in1_features, in2_features, out_features, bias)
    ),
    "init_embedding": lambda count, length, padding_idx=None, dtype="float32": module(
        nn.Embedding(count, length, padding_idx, dtype=dt(dtype))
    ),
    "init_recurrent": recurrent,
    "init_recurrent_cell": lambda kind, input_size, hidden_size, bias=True: module(
        getattr(nn, kind + "Cell")(input_size, hidden_size, bias)
    ),
}


def steps() -> list[list]:
    """The lists of steps, one a case."""
    lists: list[list] = []

    def case(*calls: tuple[str, dict]) -> None:
        lists.append([list(call) for call in calls])

    for dtype in DTYPES:
        for shape in ([], [1], [5], [3, 4], [2, 8], [17], [5, 7], [0], [100]):
            case(("rand", {"shape": shape, "dtype": dtype}))
            case(("randn", {"shape": shape, "dtype": dtype}))
            case(("normal", {"mean": 0.3, "std": 1.7, "shape": shape, "dtype": dtype}))
        # A normal is kept back across calls, and by calls that do not use it.
        case(*[("randn", {"shape": [n], "dtype": dtype}) for n in (3, 1, 20, 5, 4, 15, 16, 2)])
        case(("randn", {"shape": [3], "dtype": dtype}), ("rand", {"shape": [3], "dtype": dtype}))
        case(("uniform", {"shape": [40], "dtype": dtype, "low": -1.3, "high": 2.7}))
        case(("uniform", {"shape": [40], "dtype": dtype, "low": 0.1, "high": 0.3}))
        case(("uniform", {"shape": [4], "dtype": dtype, "low": 2.0, "high": 2.0}))
        case(("exponential", {"shape": [30], "dtype": dtype, "rate": 1.7}))
        case(("geometric", {"shape": [30], "dtype": dtype, "p": 0.17}))
        case(("log_normal", {"shape": [25], "dtype": dtype, "mean": 0.3, "std": 1.1}))
        case(("log_normal", {"shape": [3], "dtype": dtype, "mean": 0, "std": 0.5}))
        case(("cauchy", {"shape": [30], "dtype": dtype, "median": 0.3, "sigma": 1.7}))
        case(("bernoulli", {"p": 0.3, "shape": [50], "dtype": dtype}))
        case(("random", {"shape": [9], "dtype": dtype}))
        case(("random", {"shape": [9], "dtype": dtype, "low": -5}))
        case(("random", {"shape": [9], "dtype": dtype, "low": -5, "high": 40}))
        chances = {"data": [0.1, 0.5, 0.9, 0.0, 1.0], "dtype": dtype}
        case(("bernoulli", {"p": chances}))
        case(("bernoulli", {"p": chances, "shape": [4, 5]}))
        case(("bernoulli", {"p": {"data": 0.4, "dtype": dtype}, "shape": [20], "dtype": "int64"}))
        mean = {"data": MEANS, "dtype": dtype}
        std = {"data": [0.1, 1.0, 2.0, 0.0, 5.5], "dtype": dtype}
        case(("normal", {"mean": mean, "std": std}))
        case(("normal", {"mean": mean, "std": 0.7}))
        case(("normal", {"mean": -2.0, "std": std}))
        column = {"data": [[0.0], [1.0], [2.0], [3.0]], "dtype": "float32"}
        case(("normal", {"mean": column, "std": std}))
        case(("normal", {"mean": mean, "std": {"data": 2.3, "dtype": "float64"}}))
        weights = {"data": [0.1, 0.2, 0.3, 0.0, 0.4], "dtype": dtype}
        rows = {"data": [[1.0, 2.0, 3.0], [3.0, 1.0, 0.5]], "dtype": dtype}
        for replacement in (False, True):
            for count in (1, 3):
                case(
                    (
                        "multinomial",
                        {"weights": weights, "count": count, "replacement": replacement},
                    )
                )
                case(("multinomial", {"weights": rows, "count": count, "replacement": replacement}))
        case(("multinomial", {"weights": weights, "count": 60, "replacement": True}))
        case(("poisson", {"rates": {"data": [0.0, 0.5, 3.0, 9.9] * 5, "dtype": dtype}}))
        case(("poisson", {"rates": {"data": [10.0, 30.5, 2.0, 1e3, 1e6] * 5, "dtype": dtype}}))
        # What is rejected takes from the stream too: the words after a thousand draws tell of it.
        alphas = {"data": [0.0, 1e-3, 0.2, 0.9, 1.0, 1.5, 7.0, 300.0] * 150, "dtype": dtype}
        case(("standard_gamma", {"alphas": alphas}))
        case(
            ("dirichlet", {"alphas": {"data": [[0.3, 1.0, 4.0], [2e-3] * 3] * 99, "dtype": dtype}})
        )
        for counts, probs in COUNTS:
            counts = {"data": counts * (1500 // len(counts)), "dtype": dtype}
            probs = {"data": probs * (1500 // len(probs)), "dtype": dtype}
            case(("binomial", {"counts": counts, "probs": probs}))
        case(("poisson", {"rates": {"data": [0.1, 4.0, 11.0, 14.5, 60.0] * 300, "dtype": dtype}}))
        for p in (0.0, 0.1, 0.4, 1.0):
            case(("dropout", {"shape": [4, 9], "p": p, "dtype": dtype}))
        case(("alpha_dropout", {"shape": [20], "p": 0.4, "dtype": dtype}))
        slopes = {"data": [-1.0, 2.0, -3.0, 1.0, -0.5], "dtype": dtype}
        case(("rrelu", {"values": slopes, "lower": 0.125, "upper": 1 / 3}))
        for size in ([3, 5], [6, 4], [2, 3, 4], [4, 4, 3, 3]):
            common: dict[str, Any] = {"shape": size, "dtype": dtype}
            case(("init_xavier_uniform", {**common, "gain": 1.5}))
            case(("init_xavier_normal", common))
            case(("init_kaiming_uniform", {**common, "nonlinearity": "relu"}))
            case(("init_kaiming_uniform", {**common, "a": 0.2, "mode": "fan_out"}))
            case(("init_kaiming_normal", {**common, "mode": "fan_out", "nonlinearity": "tanh"}))
            case(("init_orthogonal", common))
            case(("init_orthogonal", {**common, "gain": 0.5}))
        case(("init_trunc_normal", {"shape": [3, 6], "std": 0.02, "dtype": dtype}))
        bounds = {"mean": 1.0, "std": 2.0, "a": -1.0, "b": 3.0}
        case(("init_trunc_normal", {"shape": [5], "dtype": dtype, **bounds}))
        bounds = {"mean": 0.0, "std": 1.0, "a": 1.0, "b": 3.0}
        case(("init_trunc_normal", {"shape": [50], "dtype": dtype, **bounds}))
        bounds = {"mean": 0.5, "std": 1.0, "a": 0.0, "b": 0.5}
        case(("init_trunc_normal", {"shape": [3], "dtype": dtype, **bounds}))
        case(("init_sparse", {"shape": [6, 4], "sparsity": 0.4, "dtype": dtype}))
        case(("init_linear", {"out_features": 3, "in_features": 7, "dtype": dtype}))
        case(("init_embedding", {"count": 5, "length": 3, "padding_idx": 2, "dtype": dtype}))
        case(("init_embedding", {"count": 6, "length": 4, "dtype": dtype}))
        sizes = {"out_channels": 4, "in_channels": 2, "kernel_size": [3, 2], "dtype": dtype}
        case(("init_conv", sizes))
    for dtype in ("int64", "int32", "int16", "int8", "uint8", "bool", "float16"):
        case(("random", {"shape": [12], "dtype": dtype}))
        case(("randint", {"low": 0, "high": 2, "shape": [9], "dtype": dtype}))
        case(("geometric", {"shape": [9], "dtype": dtype, "p": 0.4})) if dtype != "bool" else None
    for n in (0, 8, 15, 16, 20, 32, 40):
        case(("rand", {"shape": [n], "dtype": "float16"}))
        case(("randn", {"shape": [n], "dtype": "float16"}))
    case(("uniform", {"shape": [200], "dtype": "float16", "low": -1.0, "high": 1.0}))
    case(("randint", {"low": 0, "high": 60000, "shape": [200], "dtype": "float16"}))
    case(("random", {"shape": [9], "dtype": "int64", "low": -(2**63)}))
    case(("random", {"shape": [9], "dtype": "float64", "low": -(2**63)}))
    case(("random", {"shape": [9], "dtype": "int32", "low": -100}))
    for low, high in (
        (0, 10),
        (-7, 8),
        (5, 6),
        (0, 2**28 - 1),
        (0, 2**28),
        (-(2**31), 2**31),
        (0, 2**32),
        (-(2**40), 2**45),
        (-(2**63), 2**63 - 1),
    ):
        case(("randint", {"low": low, "high": high, "shape": [3, 4]}))
    case(("randint", {"low": 0, "high": 2**24 + 4, "shape": [9], "dtype": "float32"}))
    case(("randint", {"low": -(2**30) - 7, "high": 2**30 + 7, "shape": [9], "dtype": "float32"}))
    for n in (0, 1, 2, 3, 4, 5, 6, 7, 10, 33, 64, 100):
        case(("randperm", {"n": n}))
    case(("randperm", {"n": 8, "dtype": "int32"}), ("randperm", {"n": 8, "dtype": "float32"}))
    case(("init_constant", {"shape": [2, 2], "value": 0.3}))
    case(("init_eye", {"shape": [3, 4]}))
    case(("init_dirac", {"shape": [4, 2, 3]}), ("init_dirac", {"shape": [4, 2, 3, 2], "groups": 2}))
    case(("init_linear", {"out_features": 4, "in_features": 3, "bias": False}))
    conv_shape = {"out_channels": 4, "in_channels": 6}
    case(("init_conv", {**conv_shape, "kernel_size": [3], "groups": 2}))
    case(("init_conv", {**conv_shape, "kernel_size": [2, 2, 2], "bias": False}))
    case(("init_conv", {**conv_shape, "kernel_size": [3], "transposed": True, "groups": 2}))
    case(("init_conv", {**conv_shape, "kernel_size": [3, 3], "transposed": True}))
    case(("init_bilinear", {"out_features": 3, "in1_features": 4, "in2_features": 5}))
    for kind in ("RNN", "GRU", "LSTM"):
        sizes = {"kind": kind, "input_size": 3, "hidden_size": 2}
        case(("init_recurrent", sizes))
        case(("init_recurrent", {**sizes, "num_layers": 2, "bidirectional": True}))
        case(("init_recurrent", {**sizes, "bias": False}))
        case(("init_recurrent_cell", sizes))
    case(("init_recurrent", {"kind": "LSTM", "input_size": 3, "hidden_size": 4, "proj_size": 2}))
    # Long draws, where chunks and remainders of blocks meet.
    for n in (65536, 65537, 200_003):
        for dtype in DTYPES:
            case(("rand", {"shape": [n], "dtype": dtype}))
            case(("randn", {"shape": [n], "dtype": dtype}))
        case(("randperm", {"n": n}))
        case(("bernoulli", {"p": 0.5, "shape": [n]}))
        case(("log_normal", {"shape": [n], "dtype": "float64", "mean": 0, "std": 1}))
    return lists


def slopes() -> dict[str, list[list[float]]]:
    """How draws move with their parameters: columns of arguments, and the slopes last."""
    alphas = [1e-2, 0.1, 0.5, 1.0, 2.0, 5.0, 7.9, 8.1, 9.0, 30.0, 200.0]
    ratios = [1e-3, 0.1, 0.3, 0.5, 0.79, 0.89, 0.91, 0.99, 1.01, 1.09, 1.11, 1.5, 3.0]
    gamma = torch.tensor([[a, a * r] for a in alphas for r in ratios], dtype=torch.float64).T
    gamma = torch.cat([gamma, torch.tensor([[3.0, 0.5, 2.0], [0.79, 0.81, 0.8]])], 1)
    ends = [0.0, 5e-324, 1e-300, 1e-20, 0.5, 1 - 1e-12, 1.0, 1e10, 1e300, math.inf, math.nan, -1.0]
    sizes = [1e-300, 1e-20, 0.5, 1.0, 5.0, 10.0, 1e5, 1e30, 1e300, math.inf, math.nan]
    bounds = [(a, b) for a in (0.5, 2.0, 10.0, 30.0) for b in (0.8, 0.9 * a, 1.1 * a)]
    steps = [(a, b * (1 + d)) for a, b in bounds for d in (-3e-8, -1e-9, 0.0, 1e-9, 3e-8)]
    more = [*steps, *itertools.product(sizes, ends)]
    gamma = torch.cat([gamma, torch.tensor(more, dtype=torch.float64).T], 1)
    spread = [0.1, 0.5, 1.0, 2.5, 5.9, 6.0, 6.1, 20.0, 90.0]
    rows = []
    for a in spread:
        for b in spread:
            mean, deviation = a / (a + b), math.sqrt(a * b / (a + b + 1)) / (a + b)
            near = [mean + k * deviation for k in (-2, -0.6, -0.12, -0.08, 0, 0.08, 0.12, 0.6, 2)]
            rows += [[x, a, a + b] for x in (*near, 0.003, 0.3, 0.499, 0.5, 0.501, 0.9, 0.997)]
    rows = [row for row in rows if 0 < row[0] < 1]
    rows += [[x, a, a + b] for x in ends for a in sizes for b in sizes]
    beta = torch.tensor(rows, dtype=torch.float64).T
    found = {
        "gamma": [*gamma, torch._standard_gamma_grad(*gamma)],
        "dirichlet": [*beta, torch._dirichlet_grad(*beta.contiguous())],
    }
    return {name: torch.stack(columns).tolist() for name, columns in found.items()}


def plain(value):
    """A result as JSON: tensors as shape, dtype and flat values; containers item by item."""
    if isinstance(value, dict):
        return {name: plain(item) for name, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    flat = value.detach().reshape(-1)
    stride = max(1, flat.numel() // 250)
    return {
        "shape": list(value.shape),
        "dtype": str(value.dtype).removeprefix("torch."),
        "stride": stride,
        "values": [
            number if isinstance(number, int) or math.isfinite(number) else str(number)
            for number in flat[::stride].tolist()
        ],
    }


def main() -> None:
    warnings.simplefilter("ignore")
    cases = []
    for index, calls in enumerate(steps()):
        seed = [0, 1, 42, 1234567, 2**32 + 5, -3, 2**64 - 9][index % 7]
        torch.manual_seed(seed)
        calls.append(["randint", {"low": 0, "high": 2**20, "shape": [3]}])
        cases.append(
            {
                "seed": seed,
                "initial_seed": torch.initial_seed(),
                "steps": calls,
                "results": [plain(CALLS[name](**options)) for name, options in calls],
            }
        )
    FIXTURE.parent.mkdir(exist_ok=True)
    with FIXTURE.open("w", encoding="utf-8") as file:
        lines = ",\n".join(json.dumps(case) for case in cases)
        file.write(f'{{"torch": "{torch.__version__}", "cases": [\n{lines}\n],\n')
        file.write(f'"slopes": {json.dumps(slopes())}}}\n')
    print(len(cases), "cases")


if __name__ == "__main__":
    main()
