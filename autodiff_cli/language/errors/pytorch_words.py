"""What PyTorch and Python say where a failure here is worded otherwise: for programs that print the
exception they caught."""

from __future__ import annotations

import re
from collections.abc import Callable

from ...errors import AutodiffError
from .pytorch_library_words import LIBRARY_WORDS
from .pytorch_op_words import OP_WORDS, SCALAR_TYPES

_FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after "
    "they have already been freed). Saved intermediate values of the graph are freed when you call "
    ".backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved tensors after calling backward."
)
# What follows a note with PyTorch's words.
HINTS = {
    "E407": " Hint: enable anomaly detection to find the operation that failed to compute its "
    "gradient, with torch.autograd.set_detect_anomaly(True, check_nan=False).",
}
_FLOATS = "Only Tensors of floating point and complex dtype can require gradients"
_SCALARS = "grad can be implicitly created only for scalar outputs"
_NO_GRAD = "element 0 of tensors does not require grad and does not have a grad_fn"
_OUT_OF_RANGE = "Dimension out of range (expected to be in range of [{}, {}], but got {})"

Words = Callable[[re.Match[str]], str]


def _sizes(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", text)]


def _cross(text: str) -> str:
    return "x".join(map(str, _sizes(text)))


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


def _reshape(match: re.Match[str]) -> str:
    shape = ", ".join(re.findall(r"-?\d+", match[3]))
    return f"shape '[{shape}]' is invalid for input of size {match[2]}"


def _dim(match: re.Match[str]) -> str:
    return _OUT_OF_RANGE.format(match[2], match[3], match[1])


def _expand(match: re.Match[str]) -> str:
    given, wanted = _sizes(match[1]), _sizes(match[2])
    missing = len(wanted) - len(given)
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


def _channels(match: re.Match[str]) -> str:
    return (
        f"Given groups={match[3]}, weight of size {_sizes(match[2])}, expected input"
        f"{_sizes(match[1])} to have {match[4]} channels, but got {match[5]} channels instead"
    )


def _attribute(match: re.Match[str]) -> str:
    kind = {"list": "list", "dict": "dict", "string": "str", "tuple": "tuple"}.get(
        match[1], match[1]
    )
    return f"'{kind}' object has no attribute '{match[2]}'"


def _unpacked(match: re.Match[str]) -> str:
    given, wanted = int(match[1]), int(match[2])
    if given > wanted:
        return f"too many values to unpack (expected {wanted})"
    return f"not enough values to unpack (expected {wanted}, got {given})"


_TYPES = {"string": "str"}


def _combine(match: re.Match[str]) -> str:
    sign, left, right = match[1], _TYPES.get(match[2], match[2]), _TYPES.get(match[3], match[3])
    if sign == "+" and left in ("str", "list", "tuple"):
        return f'can only concatenate {left} (not "{right}") to {left}'
    return f"unsupported operand type(s) for {sign}: '{left}' and '{right}'"


def _missing(match: re.Match[str]) -> str:
    names = re.findall(r"`(\w+)`", match[2])
    listed = " and ".join(f"'{n}'" for n in names)
    plural = "" if len(names) == 1 else "s"
    return f"{match[1]}() missing {len(names)} required positional argument{plural}: {listed}"


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
        word, _, names = part.partition(" ")
        quoted = ", ".join(f'"{name}"' for name in names.split(", "))
        lines.append(f"\t{kinds.get(word, word)} key(s) in state_dict: {quoted}. ")
    return "\n".join(lines)


_SHAPE = r"(\([\d, ]*\))"

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
    "lerp": "lerp_kernel_scalar",
    "bincount": "bincount_cpu",
    "bernoulli": "bernoulli_tensor_cpu_p_",
    "bitwise_and": "bitwise_and_cpu",
    "bitwise_or": "bitwise_or_cpu",
    "bitwise_xor": "bitwise_xor_cpu",
    "bitwise_left_shift": "lshift_cpu",
    "bitwise_right_shift": "rshift_cpu",
}


def _kernel(match: re.Match[str]) -> str:
    kernel = _KERNELS[match[1]]
    return f"\"{kernel}\" not implemented for '{SCALAR_TYPES[match[2]]}'"


_DTYPE = f"({'|'.join(SCALAR_TYPES)})"
_KERNEL_NAMES = f"({'|'.join(_KERNELS)})"

# code, pattern of the message, what to say (a text with groups, or a function of the match), and
# the exception where it is not the usual one of the code.
_TABLE: tuple[tuple[str, str, str | Words, str], ...] = (
    ("E201", r"name `(\w+)` is not defined", r"name '\1' is not defined", ""),
    ("E202", r"unknown operation `(\w+)`", r"name '\1' is not defined", "NameError"),
    ("E205", r"`([\w<>.]+)` misses its arguments? (.*)", _missing, ""),
    ("E205", r"`([\w<>.]+)` takes (\d+)(?: to (\d+))? (?:positional )?arguments? but (\d+) w",
     _too_many, ""),
    ("E205", r"`([\w<>.]+)` got several values for argument `(\w+)`",
     r"\1() got multiple values for argument '\2'", ""),
    (
        "E205",
        r"`([\w<>.]+)` got an unexpected keyword argument `(\w+)`",
        r"\1() got an unexpected keyword argument '\2'",
        "",
    ),
    (
        "E205",
        r"the optimizer got an empty parameter list",
        "optimizer got an empty parameter list",
        "ValueError",
    ),
    ("E205", r"^(padding_idx must be within num_embeddings)", "Padding_idx must be within "
     "num_embeddings", "AssertionError"),
    ("E205", r"^(embed_dim must be divisible by num_heads)", r"\1", "AssertionError"),
    ("E205", r"^`interpolate` has no mode", r"\g<0>", "NotImplementedError"),
    ("E205", r"^pad mode must be .* not '(\w+)'", r"Unrecognised padding mode \1",
     "NotImplementedError"),
    ("E205", r"^attribute '\w+' already exists", r"\g<0>", "KeyError"),
    ("E205", r"^`grad` needs at least one input", "`inputs` argument to `grad()` cannot be empty.",
     "RuntimeError"),
    ("E205", r"^invalid type: (.*)", r"invalid type: \1", "ValueError"),
    ("E205", r"^`([\w.]+)` argument `(\w+)` must be a tensor, not an? (\w+)",
     r"\1(): argument '\2' must be Tensor, not \3", "TypeError"),
    ("E207", r"^module \[(\w+)\] is missing the required \"forward\" function",
     r'Module [\1] is missing the required "forward" function', "NotImplementedError"),
    ("E208", r"^a Parameter is made of a tensor, not of an? (\w+)",
     r"'\1' object has no attribute 'detach'", "AttributeError"),
    ("E209", r"`([\w.]+)` has no `(\w+)` here",
     r"cannot import name '\2' from '\1'", "ImportError"),
    ("E304", r"^`vmap` got in_dim=", r"\g<0>", "ValueError"),
    ("E308", r"^Size mismatch between tensors", r"\g<0>", "AssertionError"),
    ("E308", r"^`interpolate` needs 3 to 5 dims", r"\g<0>", "NotImplementedError"),
    ("E308", r"^`cross_entropy` with scores of shape \((\d+), \d+\) needs targets of shape "
     r"\(\1,\), got \(\1, \d+\)", "0D or 1D target tensor expected, multi-target not supported",
     "RuntimeError"),
    ("E206", r"`(\w+)` is assigned in this function", r"cannot access local variable '\1' where "
     "it is not associated with a value", ""),
    ("E207", r"an? (\w+) has no attribute `(\w+)`", _attribute, ""),
    ("E208", r"`(\S+)` cannot combine an? (\w+) and an? (\w+)", _combine, ""),
    (
        "E208",
        r"an? (\w+) is not a function and cannot be called",
        r"'\1' object is not callable",
        "",
    ),
    ("E208", r"an? (\w+) has no len\(\)", r"object of type '\1' has no len()", ""),
    ("E208", r"an? (\w+) cannot be indexed", r"'\1' object is not subscriptable", ""),
    ("E208", r"an? (\w+) cannot be iterated over", r"'\1' object is not iterable", ""),
    ("E208", r"a 0-d tensor cannot be iterated", "iteration over a 0-d tensor", ""),
    ("E210", r"the dict has no key (.*)", r"\1", "KeyError"),
    ("E210", r"index -?\d+ is out of range for a (\w+)", r"\1 index out of range", "IndexError"),
    ("E210", r"the list does not hold that value", "list.remove(x): x not in list", "ValueError"),
    (
        "E210",
        r"the state does not fit (\w+): (.*)",
        _state,
        "RuntimeError",
    ),
    ("E211", r"(\d+) values? for (\d+) names", _unpacked, ""),
    ("E301", rf"`linear` cannot apply a weight of shape {_SHAPE} to an input of shape {_SHAPE}",
     _linear, ""),
    ("E301", rf"{_SHAPE} @ {_SHAPE}", _matmul, ""),
    ("E302", rf"cannot expand {_SHAPE} to {_SHAPE}", _expand, ""),
    ("E303", rf"cannot expand {_SHAPE} to {_SHAPE}", _expand, ""),
    ("E302", rf"cannot broadcast {_SHAPE} with {_SHAPE}", _broadcast, ""),
    ("E303", rf"cannot reshape {_SHAPE} with (\d+) elements? into (\(.*\))",
     _reshape, ""),
    (
        "E303",
        r"view size is not compatible",
        "view size is not compatible with input tensor's size and stride (at least one dimension "
        "spans across two contiguous subspaces). Use .reshape(...) instead.",
        "",
    ),
    ("E304", r"dim (-?\d+) is out of range: .* takes (-?\d+) to (-?\d+)", _dim, ""),
    (
        "E305",
        r"index (-?\d+) is out of range for dim (\d+) with (\d+) elements?",
        r"index \1 is out of bounds for dimension \2 with size \3",
        "",
    ),
    ("E305", r"slice step must be positive, got 0", "slice step cannot be zero", "ValueError"),
    ("E305", r"slice step must be positive", "step must be greater than zero", "ValueError"),
    ("E305", r"^`one_hot` cannot take class -", "Class values must be non-negative.",
     "RuntimeError"),
    ("E305", r"^`one_hot` cannot take class", "Class values must be smaller than num_classes.",
     "RuntimeError"),
    ("E305", r"^class (-?\d+) is out of range: there",
     r"Target \1 is out of bounds.", "IndexError"),
    ("E305", r"too many indices: \d+ for a tensor of (\d+)",
     r"too many indices for tensor of dimension \1", ""),
    ("E306", r"require grad", _FLOATS, ""),
    (
        "E307",
        rf"^`?{_KERNEL_NAMES}`? (?:needs (?!operands)|works|does).*?{_DTYPE}(?: tensors)?$",
        _kernel,
        "NotImplementedError",
    ),
    ("E307", r"gives (\w+), which cannot be stored in a (\w+) tensor",
     lambda m: f"result type {SCALAR_TYPES[m[1]]} can't be cast to the desired output type "
     f"{SCALAR_TYPES[m[2]]}", "RuntimeError"),
    ("E307", r"`allclose` compares tensors of one dtype, got (\w+) and (\w+)",
     lambda m: f"{SCALAR_TYPES[m[1]]} did not match {SCALAR_TYPES[m[2]]}", "RuntimeError"),
    ("E307", r"(expected m1 and m2 to have the same dtype.*)", r"\1", ""),
    ("E3", rf"cat along dim (\d+): shape {_SHAPE} of tensor (\d+) does not fit {_SHAPE}",
     _cat, ""),
    ("E3", rf"stack needs equal shapes, got {_SHAPE} and {_SHAPE} \(tensor (\d+)\)",
     lambda m: f"stack expects each tensor to be equal size, but got {_sizes(m[1])} at entry 0 and "
     f"{_sizes(m[2])} at entry {m[3]}", ""),
    ("E308", rf"with scores of shape {_SHAPE} needs targets of shape {_SHAPE}, got {_SHAPE}",
     lambda m: f"Expected input batch_size ({_sizes(m[1])[0]}) to match target batch_size "
     f"({_sizes(m[3])[0]}).", "ValueError"),
    ("E308", rf"the gradient must have shape {_SHAPE} and dtype \w+, not {_SHAPE}",
     lambda m: f"attempting to assign a gradient of size '{_sizes(m[2])}' to a tensor of size "
     f"'{_sizes(m[1])}'. Please ensure that the gradient and the tensor are the same size", ""),
    ("E3", rf"`matmul` cannot multiply {_SHAPE} with {_SHAPE}", _matmul, ""),
    ("E3", rf"`conv\dd` of input {_SHAPE} cannot use weight {_SHAPE} with groups=(\d+): it takes "
     r"(\d+) channels?, the input has (\d+)", _channels, ""),
    ("E205", r"invalid (learning rate): (.*)", r"Invalid \1: \2", "ValueError"),
    ("E401", r"", _SCALARS, ""),
    (
        "E402",
        r"numpy\(\) cannot be called",
        "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.",
        "",
    ),
    ("E402", r"input \d+ of grad\(\) does not require grad",
     "One of the differentiated Tensors does not require grad", ""),
    ("E402", r"retain_grad", "can't retain_grad on Tensor that has requires_grad=False", ""),
    ("E402", r"does not require grad", _NO_GRAD, ""),
    (
        "E405",
        r"view of a leaf",
        "a view of a leaf Variable that requires grad is being used in an in-place operation.",
        "",
    ),
    (
        "E405",
        r"",
        "a leaf Variable that requires grad is being used in an in-place operation.",
        "",
    ),
    ("E406", r"", _FREED, ""),
    (
        "E408",
        r"the truth of a tensor with 0 elements",
        "Boolean value of Tensor with no values is ambiguous",
        "",
    ),
    (
        "E408",
        r"the truth of a tensor",
        "Boolean value of Tensor with more than one value is ambiguous",
        "",
    ),
    ("E408", r"a tensor with (\d+) elements",
     r"a Tensor with \1 elements cannot be converted to Scalar", ""),
    (
        "E410",
        r"input (\d+) of grad",
        r"The differentiated Tensor at index \1 appears to not have been used in the graph. "
        "Set allow_unused=True if this is the desired behavior.",
        "",
    ),
    ("E503", r"`(linalg\.\w+)`: the factorization failed: the matrix is not positive-definite (.*)",
     r"\1: The factorization could not be completed because the input is not positive-definite \2.",
     ""),
    (
        "E503",
        r"`(linalg\.\w+)`: the matrix is singular: the diagonal element (\d+)",
        r"\1: The diagonal element \2 is zero, the inversion could not be completed because the "
        "input matrix is singular.",
        "",
    ),
    ("E504", r"^integer division by zero", "ZeroDivisionError", ""),
    ("E504", r"^integers to negative integer powers", "Integers to negative integer powers are not "
     "allowed.", ""),
    ("E504", r"^the number \d{20,} does not fit into", "int too big to convert", "OverflowError"),
    ("E504", r"^the number \d+ does not fit into int64",
     "value cannot be converted to type int64_t without overflow", ""),
    ("E504", r"division by zero.* / ", "division by zero", "ZeroDivisionError"),
    ("E504", r"division by zero.* // ", "integer division or modulo by zero", "ZeroDivisionError"),
    ("E504", r"division by zero.* % ", "integer modulo by zero", "ZeroDivisionError"),
    ("E504", r"math\.\w+ is not defined", "math domain error", "ValueError"),
    ("E601", r"assertion failed: (.*?)(?:: .*)?$", r"\1", ""),
)  # fmt: skip


def said(error: AutodiffError) -> tuple[str, str] | None:
    """The message, and the name of the exception or ""; None when nothing is known."""
    for code, pattern, words, kind in (*OP_WORDS, *LIBRARY_WORDS, *_TABLE):
        if not error.code.startswith(code):
            continue
        match = re.search(pattern, error.message, re.DOTALL)
        if match is not None:
            return (match.expand(words) if isinstance(words, str) else words(match)), kind
    return None
