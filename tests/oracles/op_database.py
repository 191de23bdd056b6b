"""Writes tests/fixtures/op_database.json.gz: samples of PyTorch's own op database with its answers.

Run from the root with PyTorch and expecttest installed: `python -m tests.oracles.op_database`.
"""

from __future__ import annotations

import gzip
import json
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.testing._internal.common_methods_invocations import op_db

from ..database import SIGN_FREE, weights_of

warnings.filterwarnings("ignore")

SAMPLES = 4
MOST_ELEMENTS = 256  # of all inputs and results of a sample
LOOKED_AT = 60

# Variants with a derivative that are left out, by reason.
LEFT_OUT = {
    "complex numbers": """cdouble cfloat chalf complex polar view_as_complex linalg.eig
        linalg.eigvals stft""",  # and all of fft
    "random results": """bernoulli normal normal/number_mean nn.functional.dropout
        nn.functional.alpha_dropout nn.functional.dropout2d nn.functional.dropout3d
        nn.functional.feature_alpha_dropout/with_train nn.functional.fractional_max_pool2d
        nn.functional.fractional_max_pool3d native_dropout_backward pca_lowrank svd_lowrank""",
    "dtypes that are not here, or that lose the comparison": "bfloat16 half float",
    "sparse tensors": "sparse.mm/reduce sparse.sampled_addmm to_sparse",
    "memory without a graph": """as_strided as_strided/partial_views as_strided_copy
        as_strided_scatter zero_""",
    "inner parts of other ops": """addmm/decomposed constant_pad_nd grid_sampler_2d grid_sampler_3d
        max_pool2d_with_indices_backward native_batch_norm native_group_norm native_layer_norm
        slice torch.ops.aten._safe_softmax.default unsafe_chunk unsafe_split""",
    "options that are PyTorch's own objects": """nn.functional.linear_cross_entropy/chunked
        nn.functional.linear_cross_entropy/chunked_none""",
    "copies of views": """alias_copy diagonal_copy expand_copy narrow_copy permute_copy
        split_with_sizes_copy squeeze_copy t_copy transpose_copy unbind_copy unfold_copy
        unsqueeze_copy view_copy""",
}
EXCLUDED = {name for names in LEFT_OUT.values() for name in names.split()}

SWAPPED = {
    "__radd__": "add",
    "__rdiv__": "div",
    "__rmatmul__": "matmul",
    "__rmod__": "remainder",
    "__rmul__": "mul",
    "__rpow__": "pow",
    "__rsub__": "sub",
}


def variant(op: Any) -> str:
    return op.name + (f"/{op.variant_test_name}" if op.variant_test_name else "")


def in_scope(op: Any) -> bool:
    name = variant(op)
    inner = name.startswith(("fft.", "_")) and not name.startswith("__")
    known = op.supports_autograd and torch.float64 in op.dtypes
    return known and not inner and name not in EXCLUDED


def public_call(op: Any, sample: Any) -> tuple[str, list[Any], dict[str, Any]]:
    """The sample as a call of the public function, where the database's own form differs."""
    args = [sample.input, *sample.args]
    name = variant(op)
    if name in SWAPPED:
        return SWAPPED[name], [args[1], args[0]], sample.kwargs
    if name == "where":
        return "where", [args[1], args[0], *args[2:]], sample.kwargs
    if name == "einsum":
        return "einsum", [args[1], *args[0]], sample.kwargs
    if name in ("nn.functional.embedding", "polygamma", "special.polygamma"):
        return op.name, [args[1], args[0]], sample.kwargs
    if name.startswith(("polygamma/", "special.polygamma/")):
        return op.name, [args[1], args[0]], sample.kwargs
    if name == "nn.functional.multi_head_attention_forward":
        args[10] = 0.0  # dropout is random
        return op.name, args, sample.kwargs
    if name == "linalg.pinv/singular":
        product = (args[0] @ args[1].mT).detach().requires_grad_()
        return "linalg.pinv", [product], sample.kwargs
    return op.name, args, sample.kwargs


def function_of(name: str) -> Callable[..., Any]:
    """PyTorch's function of a name below `torch`, or the method."""
    if name == "__getitem__":
        return torch.Tensor.__getitem__
    found: Any = torch
    for part in name.split("."):
        found = getattr(found, part, None)
    if callable(found):
        return found
    member = getattr(torch.Tensor, name)
    return member if callable(member) else lambda input: getattr(input, name)


class Unwritten(Exception):
    """An argument that has no form in the fixture."""


def tensors_in(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for item in value:
            yield from tensors_in(item)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))
    elif isinstance(value, slice):
        yield from tensors_in([value.start, value.stop, value.step])


def shortened(value: Any) -> Any:
    """The same arguments with fresh leaves, whose floats are rounded to four digits."""
    if isinstance(value, torch.Tensor):
        if value.is_complex() or value.layout != torch.strided:
            raise Unwritten("complex or sparse")
        copy = value.detach().clone()
        if copy.dtype == torch.float64:
            digits = [float(f"{v:.4g}") for v in copy.reshape(-1).tolist()]
            copy = torch.tensor(digits, dtype=copy.dtype).reshape(copy.shape)
        return copy.requires_grad_(value.requires_grad)
    if isinstance(value, list | tuple):
        return type(value)(shortened(item) for item in value)
    if isinstance(value, dict):
        return {name: shortened(item) for name, item in value.items()}
    return value


def digits(value: float) -> float | str:
    if value != value or abs(value) == float("inf"):
        return repr(value)
    return int(value) if value == int(value) and abs(value) < 1e9 else float(f"{value:.10g}")


def written_array(tensor: torch.Tensor) -> dict[str, Any]:
    values = tensor.numpy(force=True).reshape(-1).tolist()
    if tensor.is_floating_point():
        values = [digits(v) for v in values]
    elif tensor.dtype == torch.bool:
        values = [int(v) for v in values]
    found: dict[str, Any] = {"s": list(tensor.shape), "v": values}
    if tensor.dtype != torch.float64:
        found["d"] = str(tensor.dtype).removeprefix("torch.")
    return found


def written(value: Any) -> Any:
    """An argument as JSON."""
    if isinstance(value, torch.Tensor):
        return {**written_array(value), **({"g": 1} if value.requires_grad else {})}
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return {"float": repr(value)}
    if isinstance(value, list):
        return [written(item) for item in value]
    if isinstance(value, tuple):
        return {"tuple": [written(item) for item in value]}
    if isinstance(value, slice):
        return {"slice": [written(v) for v in (value.start, value.stop, value.step)]}
    if value is Ellipsis:
        return {"ellipsis": 1}
    if isinstance(value, torch.dtype):
        return {"dtype": str(value).removeprefix("torch.")}
    if isinstance(value, torch.memory_format):
        return {"memory": str(value).removeprefix("torch.")}
    if isinstance(value, torch.nn.PairwiseDistance):
        return {"function": "pairwise_distance"}
    raise Unwritten(type(value).__name__)


def results_of(function: Callable[..., Any], args: Any, kwargs: Any) -> list[torch.Tensor]:
    results = function(*args, **kwargs)
    found = list(tensors_in(results if isinstance(results, list | tuple) else [results]))
    if any(r.is_complex() or r.layout != torch.strided for r in found):
        raise Unwritten("complex or sparse")
    return found


def weighted(tensors: list[torch.Tensor], seed: int) -> torch.Tensor:
    total = torch.zeros((), dtype=torch.float64)
    for i, tensor in enumerate(tensors):
        total = total + (tensor * torch.tensor(weights_of(tuple(tensor.shape), seed + i))).sum()
    return total


def recorded(name: str, args: list[Any], kwargs: dict[str, Any], twice: bool) -> dict[str, Any]:
    """The call with its results, gradients and weighted second derivatives."""
    args, kwargs = shortened(args), shortened(kwargs)
    if name == "nn.functional.rrelu" and kwargs.get("training"):
        raise Unwritten("random")
    call = {"name": name, "args": [written(a) for a in args]}
    if kwargs:
        call["kwargs"] = {key: written(value) for key, value in kwargs.items()}
    function = function_of(name)
    results = results_of(function, args, kwargs)
    again = results_of(function, args, kwargs)
    if not all(
        torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in zip(results, again, strict=True)
    ):
        raise Unwritten("random")
    names = [type(r.grad_fn).__name__ if r.grad_fn is not None else None for r in results]
    kept = [r * r if name in SIGN_FREE else r for r in results]
    call |= {"out": [written_array(r) for r in kept], "grad_fn": names}
    leaves = [t for t in tensors_in([args, kwargs]) if t.requires_grad]
    reached = [r for r in kept if r.requires_grad]
    if not leaves or not reached:
        return call
    first = torch.autograd.grad(weighted(reached, 1), leaves, create_graph=True, allow_unused=True)
    call["grad"] = [None if g is None else written_array(g) for g in first]
    again_reached = [g for g in first if g is not None and g.requires_grad]
    if not twice or not again_reached:
        return call
    try:
        second = torch.autograd.grad(weighted(again_reached, 101), leaves, allow_unused=True)
    except RuntimeError:
        return call
    sums = [0.0 if g is None else float(weighted([g], 201)) for g in second]
    call["second"] = [digits(v) for v in sums]
    return call


def features(args: list[Any], kwargs: dict[str, Any]) -> set[Any]:
    """What makes a sample unlike others: ranks, emptiness, forms and names of arguments."""
    found: set[Any] = {("count", len(args))}
    for i, value in enumerate(args):
        if isinstance(value, torch.Tensor):
            found |= {("rank", i, value.ndim), ("empty", i, value.numel() == 0)}
            found |= {("one", i, 1 in value.shape)}
        else:
            found.add(("form", i, type(value).__name__))
    for key, value in kwargs.items():
        plain = isinstance(value, bool | str | None | int)
        found.add(("keyword", key, value if plain else type(value).__name__))
    return found


def size_of(call: dict[str, Any]) -> int:
    def count(value: Any) -> int:
        if isinstance(value, dict):
            return len(value["v"]) if "v" in value else sum(count(v) for v in value.values())
        return sum(map(count, value)) if isinstance(value, list) else 0

    return sum(count(call.get(part, [])) for part in ("args", "kwargs", "out", "grad"))


def chosen(op: Any) -> list[dict[str, Any]]:
    """A few small samples that differ from one another."""
    torch.manual_seed(0)
    candidates = []
    samples = op.sample_inputs("cpu", torch.float64, requires_grad=op.supports_autograd)
    for _, sample in zip(range(LOOKED_AT), samples, strict=False):
        try:
            name, args, kwargs = public_call(op, sample)
            call = recorded(name, args, kwargs, op.supports_gradgrad)
        except (Unwritten, RuntimeError, TypeError, ValueError, IndexError, AttributeError):
            continue
        candidates.append((size_of(call), features(args, kwargs), call))
    candidates.sort(key=lambda c: c[0])
    small = [c for c in candidates if c[0] <= MOST_ELEMENTS] or candidates[:1]
    found: list[dict[str, Any]] = []
    seen: set[Any] = set()
    while small and len(found) < SAMPLES:
        best = max(small, key=lambda c: (len(c[1] - seen), c[0] > 0, -c[0]))
        small.remove(best)
        seen |= best[1]
        found.append(best[2])
    return found


def main() -> None:
    """Record samples of every variant in scope; list those without any."""
    database = {}
    for op in op_db:
        if not in_scope(op):
            continue
        found = chosen(op)
        if found:
            database[variant(op)] = found
        else:
            print(f"{variant(op)}: no sample can be written", file=sys.stderr)
    path = Path(__file__).parents[1] / "fixtures" / "op_database.json.gz"
    text = json.dumps(database, separators=(",", ":"), allow_nan=False)
    with gzip.GzipFile(path, "wb", mtime=0) as file:
        file.write(text.encode())
    count = sum(map(len, database.values()))
    print(f"{len(database)} variants, {count} samples, {path.stat().st_size // 1024} KB")


if __name__ == "__main__":
    main()
