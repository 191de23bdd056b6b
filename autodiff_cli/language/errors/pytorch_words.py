"""What PyTorch and Python say where a failure here is worded otherwise: for programs that print the
exception they caught.

Their words stand beside ours in `faults.txt`, with blanks for the facts of the error. A blank may
ask more of a fact, `{shape:list}`; `@expand shape size` computes the words of several.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from math import prod
from string import Formatter
from typing import Any

import numpy as np

from ...errors import AutodiffError, filler
from ...graph.dtypes import SCALAR_NAMES, SCALAR_TYPES

Sizes = tuple[int, ...]

# What follows a note with PyTorch's words.
HINTS = {
    "E407": " Hint: enable anomaly detection to find the operation that failed to compute its "
    "gradient, with torch.autograd.set_detect_anomaly(True, check_nan=False)."
}

# Kernels that PyTorch has for no integers, or for no floats, by the function's name.
_KERNELS = {
    "softmax": "softmax_lastdim_kernel_impl",
    "log_softmax": "log_softmax_lastdim_kernel_impl",
    "gelu": "GeluKernelImpl",
    "layer_norm": "LayerNormKernelImpl",
    "mse_loss": "mse_cpu",
    "nll_loss": "nll_loss_out_frame",
    "softplus": "softplus_cpu",
    "elu": "elu_cpu",
    "selu": "elu_cpu",
    "celu": "elu_cpu",
    "abs": "abs_cpu",
    "frac": "frac_cpu",
    "histc": "histogram_cpu",
    "lerp": "lerp_kernel_scalar",
    "bincount": "bincount_cpu",
    "bernoulli": "bernoulli_tensor_cpu_p_",
    "bitwise_not": "bitwise_not_cpu",
    "gcd": "gcd_cpu",
    "lcm": "lcm_cpu",
    "trunc": "trunc_vml_cpu",
    "normal": "normal_kernel_cpu",
    "uniform_": "check_uniform_bounds",
    "log_normal_": "log_normal_cpu",
    "bitwise_and": "bitwise_and_cpu",
    "bitwise_or": "bitwise_or_cpu",
    "bitwise_xor": "bitwise_xor_cpu",
    "bitwise_left_shift": "lshift_cpu",
    "bitwise_right_shift": "rshift_cpu",
}
# Of values, where PyTorch or Python have another name.
_KINDS = {
    "string": "str", "None": "NoneType", "dtype": "torch.dtype", "tensor": "Tensor",
    "deque": "collections.deque", "OrderedDict": "collections.OrderedDict",
}  # fmt: skip


def _kind(text: str) -> str:
    """The class of `a list` or `an int`; a LookupError for what is told by its name."""
    article, _, rest = text.partition(" ")
    if article == "the":
        raise LookupError(text)
    word = rest.partition(" ")[0] if article in ("a", "an") else article
    return _KINDS.get(word, word)


# What a blank may ask of a fact: `{shape:list}`.
_ASKED: dict[str, Callable[[Any], Any]] = {
    "list": list,
    "inside": lambda sizes: ", ".join(map(str, sizes)),
    "times": lambda sizes: " x ".join(map(str, sizes)),
    "first": lambda sizes: sizes[0] if sizes else 0,
    "dims": len,
    "word": lambda number: ("one", "two", "three")[number - 1],
    "odd": lambda sizes: len(sizes) % 2 == 1,
    "negative": lambda sizes: any(size < 0 for size in sizes),
    "type": lambda name: SCALAR_TYPES.get(name, name),
    "name": lambda name: SCALAR_NAMES[name],
    "kind": _kind,
    "kernel": lambda name: _KERNELS[name],
    "batch": lambda where: where and f"{where.replace('batch', 'Batch')}:",
    "linalg": lambda name: name.removeprefix("linalg.").removesuffix("_ex"),
    "bare": lambda text: text.strip("'"),
    "depth": lambda text: text.count("["),
    "number": lambda value: str(value).removesuffix(".0"),
}


class _Blanks(Formatter):
    """Fills the blanks of words."""

    def get_value(self, key: int | str, args: Any, kwargs: Mapping[str, Any]) -> Any:
        return kwargs[str(key)]

    def format_field(self, value: Any, form: str) -> str:
        return str(_ASKED[form](value)) if form in _ASKED else filler().format_field(value, form)


_BLANKS = _Blanks()


# -- what takes more than blanks ------------------------------------------------------------------


def _square(name: str, shape: Sizes) -> str:
    name = name if name.startswith("linalg.") else f"linalg.{name}"
    rows, columns = shape[-2:]
    return (
        f"{name}: A must be batches of square matrices, but they are {rows} by {columns} matrices"
    )


def _broadcast(left: Sizes, right: Sizes) -> str:
    ndim = max(len(left), len(right))
    a, b = ((1,) * (ndim - len(sizes)) + tuple(sizes) for sizes in (left, right))
    at = next((i for i in reversed(range(ndim)) if a[i] != b[i] and 1 not in (a[i], b[i])), 0)
    return (
        f"The size of tensor a ({a[at]}) must match the size of tensor b ({b[at]}) "
        f"at non-singleton dimension {at}"
    )


def _together(shapes: list[Sizes]) -> str:
    """The first shape that does not fit, beside what those before it are together."""
    before = shapes[0]
    for shape in shapes[1:]:
        try:
            before = np.broadcast_shapes(before, shape)
        except ValueError:
            return _broadcast(before, shape)
    raise LookupError(shapes)


def _bmm(left: Sizes, right: Sizes) -> str:
    return (
        f"Expected size for first two dimensions of batch2 tensor to be: "
        f"{[left[0], left[2]]} but got: {list(right[:2])}."
    )


def _matmul(left: Sizes, right: Sizes) -> str:
    if len(left) == 1 and len(right) == 1:
        return (
            f"inconsistent tensor size, expected tensor [{left[0]}] and src [{right[0]}] to have "
            f"the same number of elements, but got {left[0]} and {right[0]} elements respectively"
        )
    if len(right) > 2:
        try:
            batch = prod(np.broadcast_shapes(left[:-2], right[:-2]))
        except ValueError:
            return _broadcast(left[:-2], right[:-2])
        return _bmm((batch, 1, left[-1]), (batch, right[-2]))
    rows = prod(left[:-1])  # those of a batch are one matrix
    if len(right) == 1:
        return f"size mismatch, got input ({rows}), mat ({rows}x{left[-1]}), vec ({right[0]})"
    sizes = f"{rows}x{left[-1]} and {right[0]}x{right[1]}"
    return f"mat1 and mat2 shapes cannot be multiplied ({sizes})"


def _linear(weight: Sizes, given: Sizes) -> str:
    return _matmul(given if len(given) > 1 else (1, *given), weight[::-1])


def _expand(given: Sizes, wanted: Sizes) -> str:
    given_sizes, wanted_sizes = list(given), list(wanted)
    missing = len(wanted) - len(given)
    if missing < 0:
        return (
            f"expand(torch.FloatTensor{{{given_sizes}}}, size={wanted_sizes}): the number of sizes "
            f"provided ({len(wanted)}) must be greater or equal to the number of dimensions in the "
            f"tensor ({len(given)})"
        )
    pairs = list(zip(given, wanted[missing:], strict=False))
    at = next((i for i in reversed(range(len(pairs))) if pairs[i][0] not in (1, pairs[i][1])), 0)
    return (
        f"The expanded size of the tensor ({pairs[at][1]}) must match the existing size "
        f"({pairs[at][0]}) at non-singleton dimension {at + missing}.  Target sizes: "
        f"{wanted_sizes}.  Tensor sizes: {given_sizes}"
    )


def _cat(dim: int, other: Sizes, number: int, first: Sizes) -> str:
    if len(first) != len(other):
        return f"Tensors must have same number of dimensions: got {len(first)} and {len(other)}"
    at = next(i for i in range(len(first)) if i != dim and first[i] != other[i])
    return (
        f"Sizes of tensors must match except in dimension {dim}. Expected size {first[at]} but got "
        f"size {other[at]} for tensor number {number} in the list."
    )


_SEQUENCES = ("str", "list", "tuple")
_UNREPEATED = ("set", "frozenset", "dict")


def _combine(sign: str, left: str, right: str) -> str:
    left, right = _kind(left), _kind(right)
    alone = sign.removesuffix("=")
    if alone == "+" and left in _SEQUENCES:
        return f'can only concatenate {left} (not "{right}") to {left}'
    by_right = right in _SEQUENCES and not (alone != sign and left in _UNREPEATED)
    if alone == "*" and (left in _SEQUENCES or by_right):
        other = right if left in _SEQUENCES else left
        return f"can't multiply sequence by non-int of type '{other}'"
    sign = "** or pow()" if sign == "**" else sign
    return f"unsupported operand type(s) for {sign}: '{left}' and '{right}'"


_COMPUTED: dict[str, Callable[..., str]] = {
    "bmm": _bmm, "square": _square, "broadcast": _broadcast, "matmul": _matmul,
    "linear": _linear, "together": _together, "expand": _expand, "cat": _cat, "combine": _combine,
}  # fmt: skip


def _holds(condition: tuple[str, str], facts: Mapping[str, Any]) -> bool:
    """Whether a fact is one of the texts that a condition lists."""
    fact, wanted = condition
    text = _BLANKS.vformat(f"{{{fact}}}", (), facts)
    return any(fnmatchcase(text, one) for one in wanted.split("|"))


def _filled(text: str, facts: Mapping[str, Any]) -> str:
    if text.startswith("@"):
        name, *fields = text[1:].split()
        return _COMPUTED[name](*(_BLANKS.get_field(field, (), facts)[0] for field in fields))
    return _BLANKS.vformat(text, (), facts)


def said(error: AutodiffError) -> tuple[str, str] | None:
    """The message, and the name of the exception or ""; None when nothing is known."""
    for words, kind, when in error.words:
        try:
            if all(_holds(condition, error.facts) for condition in when):
                return _filled(words, error.facts), kind
        except (LookupError, TypeError):  # words that are not for a fact of this kind
            continue
    return None
