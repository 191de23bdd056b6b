"""What PyTorch says where an op refuses its arguments: rows for the table of `pytorch_words`."""

from __future__ import annotations

import re
from collections.abc import Callable

Words = Callable[[re.Match[str]], str]

_SHAPE = r"(\([\d, ]*\))"
SCALAR_TYPES = {
    "int64": "Long", "int32": "Int", "int16": "Short", "int8": "Char", "uint8": "Byte",
    "bool": "Bool", "float64": "Double", "float32": "Float", "float16": "Half",
}  # fmt: skip


def _sizes(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"-?\d+", text)]


def _bmm(match: re.Match[str]) -> str:
    left, right = _sizes(match[1]), _sizes(match[2])
    return (
        f"Expected size for first two dimensions of batch2 tensor to be: "
        f"{[left[0], left[2]]} but got: {right[:2]}."
    )


def _normalized(match: re.Match[str]) -> str:
    given, wanted = _sizes(match[1]), _sizes(match[2])
    return (
        f"Given normalized_shape={wanted}, expected input with shape "
        f"[*, {', '.join(map(str, wanted))}], but got input of size{given}"
    )


def _square(match: re.Match[str]) -> str:
    rows, columns = _sizes(match[2])[-2:]
    name = match[1] if match[1].startswith("linalg.") else f"linalg.{match[1]}"
    return (
        f"{name}: A must be batches of square matrices, but they are {rows} by {columns} matrices"
    )


# Code, pattern of the message, what to say, the exception where it is not the code's usual one.
OP_WORDS: tuple[tuple[str, str, str | Words, str], ...] = (
    ("E107", r"row (\[.*\]) has (\d+) entries, the first has (\d+)",
     lambda m: f"expected sequence of length {m[3]} at dim {m[1].count('[')} (got {m[2]})",
     "ValueError"),
    ("E107", r"has a number, the first", "not a sequence", "TypeError"),
    ("E107", r"mixes numbers and lists", "'list' object cannot be interpreted as an integer",
     "TypeError"),
    ("E205", r"^multinomial needs weights with a sum > 0",
     "invalid multinomial distribution (sum of probabilities <= 0)", "RuntimeError"),
    ("E205", r"^normal needs every std >= 0", "normal expects all elements of std >= 0.0",
     "RuntimeError"),
    ("E205", r"^dropout probability has to be between 0 and 1.*", r"\g<0>", "ValueError"),
    ("E205", r"^`clamp` needs min or max",
     "torch.clamp: At least one of 'min' or 'max' must not be None", "RuntimeError"),
    ("E301", rf"^`bmm` cannot multiply {_SHAPE} with {_SHAPE}", _bmm, ""),
    ("E301", r"^`einsum` .*'(\w)' has size (\d+) in operand (\d+) of shape .* but (\d+) before",
     r"einsum(): subscript \1 has size \2 for operand \3 which does not broadcast with previously "
     r"seen size \4", ""),
    ("E303", r"^split sizes (\(.*\)) sum to -?\d+, but dim (\d+) has (\d+) elements?",
     lambda m: f"split_with_sizes expects split_sizes to sum exactly to {m[3]} (input tensor's "
     f"size at dimension {m[2]}), but got split_sizes={_sizes(m[1])}", "RuntimeError"),
    ("E304", r"^a dim appears more than once in", "permute(): duplicate dims are not allowed.",
     "RuntimeError"),
    ("E305", r"^`(?:embedding\w*|index_select)`: index", "index out of range in self",
     "IndexError"),
    ("E305", r"^`(?:gather|scatter\w*|take_along_dim)`: index (-?\d+) is out of range for dim "
     r"(\d+) with (\d+)", r"index \1 is out of bounds for dimension \2 with size \3",
     "RuntimeError"),
    ("E305", r"^narrow: start -?\d+ and length -", "narrow(): length must be non-negative.",
     "RuntimeError"),
    ("E305", r"^narrow: start (\d+) and length (\d+) exceed dim \d+ with (\d+)",
     r"start (\1) + length (\2) exceeds dimension size (\3).", "RuntimeError"),
    ("E305", r"^split into pieces of 0", "split_size can only be 0 if dimension size is 0",
     "RuntimeError"),
    ("E305", r"^split into pieces of (-\d+)",
     r"split expects split_size be non-negative, but got split_size=\1", "RuntimeError"),
    ("E305", r"^unfold needs a positive step, got (.*)", r"step is \1 but must be > 0",
     "RuntimeError"),
    ("E305", rf"^the mask of shape {_SHAPE} does not fit the dims {_SHAPE}",
     lambda m: f"The shape of the mask {_sizes(m[1])} at index 0 does not match the shape of the "
     f"indexed tensor {_sizes(m[2])} at index 0", "IndexError"),
    ("E305", r"^chunk into (-?\d+)", r"chunk expects `chunks` to be greater than 0, got: \1",
     "RuntimeError"),
    ("E305", r"^tensor_split into (-?\d+)", r"number of sections must be larger than 0, got \1",
     "RuntimeError"),
    ("E30", r"^diagonal needs two different dims, got (-?\d+) and (-?\d+)",
     r"diagonal dimensions cannot be identical \1, \2", "RuntimeError"),
    ("E306", r"^(gather|index_select) needs an integer index",
     lambda m: f"{m[1]}(): Expected dtype int32{' or ' if '_' in m[1] else '/'}int64 for index",
     "RuntimeError"),
    ("E306", r"^scatter\w*: the tensor is",
     "scatter(): Expected self.dtype to be equal to src.dtype", "RuntimeError"),
    ("E306", r"^index_add: the tensor is (\w+), the source (\w+)",
     lambda m: f"index_add_(): self ({SCALAR_TYPES[m[1]]}) and source ({SCALAR_TYPES[m[2]]}) must "
     "have the same scalar type", "RuntimeError"),
    ("E306", r"^index_copy: the tensor is (\w+), the source (\w+)",
     lambda m: "index_copy_(): self and source expected to have the same dtype, but got (self) "
     f"{SCALAR_TYPES[m[1]]} and (source) {SCALAR_TYPES[m[2]]}", "RuntimeError"),
    ("E306", r"^index_put: the tensor is (\w+), the source (\w+)",
     lambda m: "Index put requires the source and destination dtypes match, got "
     f"{SCALAR_TYPES[m[1]]} for the destination and {SCALAR_TYPES[m[2]]} for the source.",
     "RuntimeError"),
    ("E307", r"^`(?:std|var)\w*` needs floating point",
     "std and var only support floating point and complex dtypes", "RuntimeError"),
    ("E307", r"^`bitwise_not` works on", "~ (operator.invert) is only implemented on integer and "
     "Boolean-type tensors", "TypeError"),
    ("E307", r"^`-` does not work on bool", "Negation, the `-` operator, on a bool tensor is not "
     "supported. If you are trying to invert a mask, use the `~` or `logical_not()` operator "
     "instead.", "RuntimeError"),
    ("E308", r"^repeat \(.*\) of shape", "Number of dimensions of repeat dims can not be smaller "
     "than number of dimensions of tensor", "RuntimeError"),
    ("E308", r"^masked_scatter: \d+ true places", "Number of elements of source < number of ones "
     "in mask", "RuntimeError"),
    ("E308", r"^`(argmax|argmin)` of an empty tensor", r"\1(): Expected reduction dim to be "
     "specified for input.numel() == 0.", "IndexError"),
    ("E308", r"^`(\w+)` of an empty tensor", r"\1(): Expected reduction dim to be specified for "
     "input.numel() == 0. Specify the reduction dim with the 'dim' argument.", "RuntimeError"),
    ("E308", r"^`(\w+)` over dim (\d+) of shape .*: there are no elements",
     r"\1(): Expected reduction dim \2 to have non-zero size.", "IndexError"),
    ("E3", r"^cat needs at least one tensor", "torch.cat(): expected a non-empty list of Tensors",
     "ValueError"),
    ("E3", r"^stack needs at least one tensor", "stack expects a non-empty TensorList",
     "RuntimeError"),
    ("E303", r"^only one size may be -1", "only one dimension can be inferred", "RuntimeError"),
    ("E205", r"^`arange` needs a step", "step must be nonzero", "RuntimeError"),
    ("E205", r"^`arange` from", "upper bound and lower bound inconsistent with step sign",
     "RuntimeError"),
    ("E309", r"^the number of steps", "number of steps must be non-negative", "RuntimeError"),
    ("E504", r"^`bincount` takes no", "bincount only supports 1-d non-negative integral inputs.",
     "RuntimeError"),
    ("E305", r"^unfold of size (\d+) from dim (\d+) with (\d+) elements?",
     r"maximum size for tensor at dimension \2 is \3 but size is \1", "RuntimeError"),
    ("E307", r"^`mean` needs floating point numbers, got (\w+)",
     lambda m: "mean(): could not infer output dtype. Input dtype must be either a floating point "
     f"or complex dtype. Got: {SCALAR_TYPES.get(m[1], m[1])}", "RuntimeError"),
    ("E307", r"^`nll_loss` needs class numbers as int64, got (\w+)",
     lambda m: f"expected target dtype to be Long or Byte, but got {SCALAR_TYPES.get(m[1], m[1])}",
     "RuntimeError"),
    ("E308", r"^`batch_norm` in training needs more than 1 value .*, got shape \((.*?),?\)",
     r"Expected more than 1 value per channel when training, got input size torch.Size([\1])",
     "ValueError"),
    ("E308", r"^`topk` of", "selected index k out of range", "RuntimeError"),
    ("E308", rf"^`layer_norm`: the last dims of {_SHAPE} are not (\(.*?\))", _normalized,
     "RuntimeError"),
    ("E308", rf"^`([\w.]+)` needs square matrices, got shape {_SHAPE}", _square, "RuntimeError"),
    ("E309", r"^a size cannot be negative", "zeros: Dimension size must be non-negative.",
     "RuntimeError"),
    ("E401", r"^`grad` needs a function that returns a scalar, this one returned shape (\(.*\))",
     lambda m: "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor "
     f"with {len(_sizes(m[1]))} dims. Maybe you wanted to use the vjp or jacrev APIs instead?", ""),
    ("E402", r"^a hook needs a tensor that requires grad",
     "cannot register a hook on a tensor that doesn't require gradient", ""),
    ("E411", r"requires_grad can be switched off only for leaves",
     "you can only change requires_grad flags of leaf variables. If you want to use a computed "
     "variable in a subgraph that doesn't require differentiation use var_no_grad = "
     "var.detach().", ""),
    ("E4", r"^`\w+` defines no backward", "You must implement either the backward or vjp method "
     "for your custom autograd.Function to use it with backward mode AD.", "NotImplementedError"),
    ("E4", rf"^function (\w+) returned a gradient of shape {_SHAPE} for an argument of shape "
     rf"{_SHAPE}",
     lambda m: f"Function {m[1]} returned an invalid gradient at index 0 - got {_sizes(m[2])} but "
     f"expected shape compatible with {_sizes(m[3])}", ""),
    ("E504", r"^`binary_cross_entropy` needs probabilities",
     "all elements of input should be between 0 and 1", "RuntimeError"),
)  # fmt: skip
