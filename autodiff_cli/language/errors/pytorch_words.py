"""What PyTorch and Python say where a failure here is worded otherwise: for programs that print the
exception they caught.

The table is `pytorch_words.txt`: a code and the exception where it is not the code's usual one, a
pattern of our message, and their words, in which `{1}` is the pattern's first group.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from string import Formatter
from typing import Any

from ...errors import AutodiffError, blocks
from ...graph.dtypes import SCALAR_NAMES, SCALAR_TYPES

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
_KINDS = {
    "string": "str",
    "None": "NoneType",
    "dtype": "torch.dtype",
}  # of values, where Python has another name
_SHAPE = r"(\([\d, ]*\))"
_PARTS = {
    "<shape>": _SHAPE,
    "<dtype>": f"({'|'.join(SCALAR_TYPES)})",
    "<kernel>": f"({'|'.join(_KERNELS)})",
}


def _sizes(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"-?\d+", text)]


def _cross(text: str) -> str:
    return "x".join(map(str, _sizes(text)))


# What a blank may ask of a group: `{1:list}`.
_ASKED: dict[str, Callable[[str], Any]] = {
    "": str,
    "list": _sizes,
    "inside": lambda text: ", ".join(map(str, _sizes(text))),
    "times": lambda text: " x ".join(map(str, _sizes(text))),
    "first": lambda text: (_sizes(text) or [0])[0],
    "dims": lambda text: len(_sizes(text)),
    "type": lambda text: SCALAR_TYPES.get(text, text),
    "name": lambda text: SCALAR_NAMES[text],
    "kind": lambda text: _KINDS.get(text, text),
    "kernel": lambda text: _KERNELS[text],
    "depth": lambda text: text.count("["),
    "capital": lambda text: text[0].upper() + text[1:],
}


class _Blanks(Formatter):
    """Fills the blanks of a row."""

    def format_field(self, value: Any, form: str) -> str:
        return str(_ASKED[form](value))


# -- what takes more than blanks ------------------------------------------------------------------


def _bmm(match: re.Match[str]) -> str:
    left, right = _sizes(match[1]), _sizes(match[2])
    return (
        f"Expected size for first two dimensions of batch2 tensor to be: "
        f"{[left[0], left[2]]} but got: {right[:2]}."
    )


def _square(match: re.Match[str]) -> str:
    rows, columns = _sizes(match[2])[-2:]
    name = match[1] if match[1].startswith("linalg.") else f"linalg.{match[1]}"
    return (
        f"{name}: A must be batches of square matrices, but they are {rows} by {columns} matrices"
    )


def _size(text: str) -> str:
    return f"torch.Size({[int(n) for n in re.findall(r'[0-9]+', text)]})"


def _broadcast(match: re.Match[str]) -> str:
    left, right = _sizes(match[1]), _sizes(match[2])
    ndim = max(len(left), len(right))
    a = [1] * (ndim - len(left)) + left
    b = [1] * (ndim - len(right)) + right
    at = next((i for i in reversed(range(ndim)) if a[i] != b[i] and 1 not in (a[i], b[i])), 0)
    return (
        f"The size of tensor a ({a[at]}) must match the size of tensor b ({b[at]}) "
        f"at non-singleton dimension {at}"
    )


def _matmul(match: re.Match[str]) -> str:
    left, right = _sizes(match[1]), _sizes(match[2])
    if len(left) == 1 and len(right) == 1:
        return (
            f"inconsistent tensor size, expected tensor [{left[0]}] and src [{right[0]}] to have "
            f"the same number of elements, but got {left[0]} and {right[0]} elements respectively"
        )
    if len(right) == 1:
        return f"size mismatch, got input ({left[0]}), mat ({_cross(match[1])}), vec ({right[0]})"
    return f"mat1 and mat2 shapes cannot be multiplied ({_cross(match[1])} and {_cross(match[2])})"


def _linear(match: re.Match[str]) -> str:
    weight, given = _sizes(match[1]), _sizes(match[2])
    rows = 1
    for size in given[:-1]:
        rows *= size
    if len(weight) == 1:
        return f"size mismatch, got input ({rows}), mat ({rows}x{given[-1]}), vec ({weight[0]})"
    sizes = f"{rows}x{given[-1]} and {weight[1]}x{weight[0]}"
    return f"mat1 and mat2 shapes cannot be multiplied ({sizes})"


def _expand(match: re.Match[str]) -> str:
    given, wanted = _sizes(match[1]), _sizes(match[2])
    missing = len(wanted) - len(given)
    if missing < 0:
        return (
            f"expand(torch.FloatTensor{{{given}}}, size={wanted}): the number of sizes provided "
            f"({len(wanted)}) must be greater or equal to the number of dimensions in the tensor "
            f"({len(given)})"
        )
    pairs = list(zip(given, wanted[missing:], strict=False))
    at = next((i for i in reversed(range(len(pairs))) if pairs[i][0] not in (1, pairs[i][1])), 0)
    return (
        f"The expanded size of the tensor ({pairs[at][1]}) must match the existing size "
        f"({pairs[at][0]}) at non-singleton dimension {at + missing}.  Target sizes: {wanted}.  "
        f"Tensor sizes: {given}"
    )


def _cat(match: re.Match[str]) -> str:
    dim, other, first = int(match[1]), _sizes(match[2]), _sizes(match[4])
    if len(first) != len(other):
        return f"Tensors must have same number of dimensions: got {len(first)} and {len(other)}"
    at = next((i for i in range(len(first)) if i != dim and first[i] != other[i]), 0)
    return (
        f"Sizes of tensors must match except in dimension {dim}. Expected size {first[at]} but got "
        f"size {other[at]} for tensor number {match[3]} in the list."
    )


def _unpacked(match: re.Match[str]) -> str:
    given, least, wanted = int(match[1]), match[2] or "", int(match[3])
    if given > wanted:
        return f"too many values to unpack (expected {wanted})"
    return f"not enough values to unpack (expected {least}{wanted}, got {given})"


def _not_held(match: re.Match[str]) -> str:
    kind, value = match[1], match[2]
    if value and kind != "tuple":
        return f"{value} is not in {kind}"
    return f"{kind}.{'index' if value else 'remove'}(x): x not in {kind}"


def _combine(match: re.Match[str]) -> str:
    sign, left, right = match[1], _KINDS.get(match[2], match[2]), _KINDS.get(match[3], match[3])
    if sign == "+" and left in ("str", "list", "tuple"):
        return f'can only concatenate {left} (not "{right}") to {left}'
    return f"unsupported operand type(s) for {sign}: '{left}' and '{right}'"


def _missing(match: re.Match[str]) -> str:
    names = [f"'{name}'" for name in re.findall(r"`(\w+)`", match[3])]
    listed = " and ".join(names) if len(names) < 3 else f"{', '.join(names[:-1])}, and {names[-1]}"
    kind, plural = "keyword-only" if match[2] else "positional", "" if len(names) == 1 else "s"
    return f"{match[1]}() missing {len(names)} required {kind} argument{plural}: {listed}"


def _too_many(match: re.Match[str]) -> str:
    takes = f"from {match[2]} to {match[3]}" if match[3] else match[2]
    return (
        f"{match[1]}() takes {takes} positional argument{'' if takes == '1' else 's'} "
        f"but {match[4]} {'was' if match[4] == '1' else 'were'} given"
    )


def _state(match: re.Match[str]) -> str:
    kinds = {"missing": "Missing", "unexpected": "Unexpected"}
    lines = [f"Error(s) in loading state_dict for {match[1]}:"]
    for part in match[2].split("; "):
        found = re.fullmatch(rf"(\S+) has shape {_SHAPE} there, {_SHAPE} here", part)
        if found is not None:
            lines.append(
                f"\tsize mismatch for {found[1]}: copying a param with shape {_size(found[2])} "
                f"from checkpoint, the shape in current model is {_size(found[3])}."
            )
            continue
        word, _, names = part.partition(" ")
        quoted = ", ".join(f'"{name}"' for name in names.split(", "))
        lines.append(f"\t{kinds.get(word, word)} key(s) in state_dict: {quoted}. ")
    return "\n".join(lines)


def _dimensions(match: re.Match[str]) -> str:
    return f"Only tensors with {match[1].replace('4 or', '4, or')} dimensions are supported"


_COMPUTED: dict[str, Callable[[re.Match[str]], str]] = {
    "bmm": _bmm, "square": _square, "broadcast": _broadcast,
    "matmul": _matmul, "linear": _linear, "expand": _expand, "cat": _cat, "unpacked": _unpacked,
    "not_held": _not_held, "combine": _combine, "missing": _missing, "too_many": _too_many,
    "state": _state, "dimensions": _dimensions,
}  # fmt: skip


@cache
def _rows() -> list[tuple[str, str, str, str]]:
    """The table: code, exception, pattern, words."""
    rows = []
    for head, pattern, words in blocks("language", "errors", "pytorch_words.txt"):
        code, _, kind = head.partition(" ")
        for name, part in _PARTS.items():
            pattern = pattern.replace(name, part)
        rows.append((code, kind, pattern, words))
    return rows


def said(error: AutodiffError) -> tuple[str, str] | None:
    """The message, and the name of the exception or ""; None when nothing is known."""
    for code, kind, pattern, words in _rows():
        if not error.code.startswith(code):
            continue
        match = re.search(pattern, error.message, re.DOTALL)
        if match is not None:
            if words.startswith("@"):
                return _COMPUTED[words[1:]](match), kind
            return _Blanks().vformat(words, (match[0], *match.groups()), {}), kind
    return None
