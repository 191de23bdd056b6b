"""What PyTorch says where its library refuses (optimizers, modules, transforms, random numbers):
rows for the table of `pytorch_words`."""

from __future__ import annotations

import re
from collections.abc import Callable

from .pytorch_op_words import SCALAR_TYPES

Words = Callable[[re.Match[str]], str]
Row = tuple[str, str, str | Words, str]

_SHAPE = r"(\([\d, ]*\))"
_ITEM = (
    "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling "
    ".item() on a Tensor, please try to rewrite what you're doing with other operations. If error "
    "is occurring somewhere inside PyTorch internals, please file a bug report."
)
_MUTATED_BY_VMAP = (
    "vmap: inplace arithmetic(self, *extra_args) is not possible because there exists a Tensor "
    "`other` in extra_args that has more elements than `self`. This happened due to `other` being "
    "vmapped over but `self` not being vmapped over in a vmap. Please try to use out-of-place "
    "operators instead of inplace arithmetic. If said operator is being called inside the PyTorch "
    "framework, please file a bug report instead."
)
_MUTATED = (
    "During a grad (vjp, jvp, grad, etc) transform, the function provided attempted to call "
    "in-place operation that would mutate a captured Tensor. This is not supported; please rewrite "
    "the function being transformed to explicitly accept the mutated Tensor(s) as inputs."
)
_RANDOM = (
    "vmap: called random operation while in randomness error mode. Please either use the 'same' "
    "or 'different' randomness flags on vmap or perform the randomness operation out of vmap"
)


def _size(text: str) -> str:
    return f"torch.Size({[int(n) for n in re.findall(r'[0-9]+', text)]})"


def _capital(match: re.Match[str]) -> str:
    return match[0][0].upper() + match[0][1:]


def _type(text: str) -> str:
    return f"<class '{text}'>"


def _sizes_differ(match: re.Match[str]) -> str:
    lines = [f"Error(s) in loading state_dict for {match[1]}:"]
    for part in match[2].split("; "):
        found = re.fullmatch(rf"(\S+) has shape {_SHAPE} there, {_SHAPE} here", part)
        if found is not None:
            lines.append(
                f"\tsize mismatch for {found[1]}: copying a param with shape {_size(found[2])} "
                f"from checkpoint, the shape in current model is {_size(found[3])}."
            )
    return "\n".join(lines)


_OPTIMIZERS: tuple[Row, ...] = (
    ("E205", r"^invalid (epsilon|momentum|weight_decay|alpha|lr_decay|rho|momentum_decay|"
     r"initial_accumulator_value|lambd): (.*)", r"Invalid \1 value: \2", "ValueError"),
    ("E205", r"^(?:invalid (?:beta parameter|eta values)|nesterov momentum).*", _capital,
     "ValueError"),
    ("E205", r"^some parameters appear in more than one", r"some parameters appear in more than "
     "one parameter group", "ValueError"),
    ("E205", r"^LBFGS takes one parameter group", "LBFGS doesn't support per-parameter options "
     "(parameter groups)", "ValueError"),
    ("E205", r"^an optimizer takes a list of parameters, not a tensor", "params argument given to "
     "the optimizer should be an iterable of Tensors or dicts, but got torch.FloatTensor", ""),
    ("E208", r"^an optimizer takes tensors, not an? (\w+)", r"optimizer can only optimize Tensors, "
     r"but one of the params is \1", ""),
    ("E411", r"^an optimizer cannot change a tensor that was computed",
     "can't optimize a non-leaf Tensor", "ValueError"),
    ("E210", r"^the state has \d+ parameter groups, the optimizer",
     "loaded state dict has a different number of parameter groups", "ValueError"),
    ("E210", r"^the state was made for other parameter groups", "loaded state dict contains a "
     "parameter group that doesn't match the size of optimizer's group", "ValueError"),
    ("E205", r"^(?:expected (?:\d+ lr_lambdas|positive integer)|tried to step).*", _capital,
     "ValueError"),
    ("E205", r"^(?:factor should be|constant multiplicative|starting multiplicative).*",
     lambda m: f"{_capital(m)}.", "ValueError"),
    ("E205", r"^give either total_steps, or epochs", "You must define either total_steps OR "
     "(epochs AND steps_per_epoch)", "ValueError"),
    ("E205", r"^mode \w+ is unknown!", r"\g<0>", "ValueError"),
    ("E205", r"^expected \d+ milestones for (\d+) schedulers, got (\d+)", "Sequential Schedulers "
     "expects number of schedulers provided to be one more than the number of milestone points, "
     r"but got number of schedulers \1 and the number of milestones to be equal to \2",
     "ValueError"),
    ("E205", r"^ChainedScheduler expects .*", r"\g<0>.", "ValueError"),
)  # fmt: skip

_MODULES: tuple[Row, ...] = (
    ("E307", r"^`linear` needs an input and a weight of one dtype, got (\w+) and (\w+)",
     lambda m: "mat1 and mat2 must have the same dtype, but got "
     f"{SCALAR_TYPES[m[1]]} and {SCALAR_TYPES[m[2]]}", "RuntimeError"),
    ("E205", r"^(?:num_channels \(|in_channels must|out_channels must|num_layers must|Sum of input "
     r"lengths|sampler option|batch_size should|num_samples should).*", r"\g<0>", "ValueError"),
    ("E205", r"^dropout should be a number in range \[0, 1\]", r"\g<0> representing the "
     "probability of an element being zeroed", "ValueError"),
    ("E205", r"^`reduction` cannot be '(.*)'", r"\1 is not a valid value for reduction",
     "ValueError"),
    ("E207", r"^(parameter|module)s cannot be assigned before", r"cannot assign \1 before "
     "Module.__init__() call", ""),
    ("E208", r"^`(\w+)` is a parameter, it cannot become a tensor", r"cannot assign "
     r"'torch.FloatTensor' as parameter '\1' (torch.nn.Parameter or None expected)", ""),
    ("E208", r"^`(\w+)` must be a Parameter or None, not a tensor", r"cannot assign "
     r"'torch.FloatTensor' object to parameter '\1' (torch.nn.Parameter or None required)", ""),
    ("E208", r"^the buffer `(\w+)` must be a tensor or None, not an? (\w+)", r"cannot assign '\2' "
     r"object to buffer '\1' (torch Tensor or None required)", ""),
    ("E205", r"^the name of a (\w+) is a string without a dot, not '.*\..*'",
     r'''\1 name can't contain "."''', "KeyError"),
    ("E208", r"^(?:a \w+ holds modules|`\w+` must be a module), not an? (\w+)",
     r"\1 is not a Module subclass", ""),
    ("E208", r"^a state is a dict of tensors, not an? (\w+)", lambda m: "Expected state_dict to be "
     f"dict-like, got {_type(m[1])}.", ""),
    ("E308", r"^the sizes of the state do not fit (\w+): (.*)", _sizes_differ, "RuntimeError"),
    ("E210", r"^a \w+ has no key '?(.*?)'?$", r"\1", "KeyError"),
    ("E210", r"^index (-?\d+) is out of range for a (?:Sequential|ModuleList|ParameterList)",
     r"index \1 is out of range", "IndexError"),
    ("E308", rf"^`(conv(\d)d)` needs input of (\d) or (\d) dims .* got {_SHAPE} and",
     lambda m: f"Expected {m[3]}D (unbatched) or {m[4]}D (batched) input to {m[1]}, but got input "
     f"of size: {_size(m[5])[11:-1]}", ""),
    ("E308", r"^`max_pool2d` needs a tensor of 3 or 4 dims",
     "non-empty 3D or 4D (batch mode) tensor expected for input", ""),
    ("E30", r"^`embedding`.* (?:needs|takes) (?:int|whole)", "Expected tensor for argument #1 "
     "'indices' to have one of the following scalar types: Long, Int; but got torch.FloatTensor "
     "instead (while checking arguments for embedding)", ""),
    ("E205", r"^no gain is known for '(.*)'", r"Unsupported nonlinearity \1", "ValueError"),
    ("E308", r"^fan in and fan out need", "Fan in and fan out can not be computed for tensor with "
     "fewer than 2 dimensions", "ValueError"),
    ("E205", r"^the mode is fan_in or fan_out, not '(.*)'", r"Mode \1 not supported, please use "
     "one of ['fan_in', 'fan_out']", "ValueError"),
    ("E308", r"^\w+_ needs (2 or more|2|3, 4,? or 5) dimensions, not shape", lambda m: "Only "
     f"tensors with {m[1].replace('4 or', '4, or')} dimensions are supported", "ValueError"),
    ("E308", r"^expected 4D input \(got .*", r"\g<0>", "ValueError"),
    ("E308", r"^`batch_norm`: (\w+) has shape \((\d+),\), expected \((\d+),\)",
     r"\1 should contain \3 elements not \2", ""),
    ("E308", r"^(\w+: Expected input to be .* got \dD) instead", r"\1 tensor instead",
     "ValueError"),
    ("E308", rf"^`conv\dd` with kernel {_SHAPE} does not fit into {_SHAPE}",
     lambda m: "Calculated padded input size per channel: "
     f"({m[2].strip('(,)').replace(', ', ' x ')}). Kernel size: "
     f"({m[1].strip('(,)').replace(', ', ' x ')}). Kernel size can't be greater than actual input "
     "size", ""),
)  # fmt: skip

_TRANSFORMS: tuple[Row, ...] = (
    ("E203", r"^the value of a tensor is needed inside vmap", _ITEM, "RuntimeError"),
    ("E203", r"^inside vmap, a tensor from outside cannot be changed in place", _MUTATED_BY_VMAP,
     "RuntimeError"),
    ("E203", r"^a function that is differentiated cannot change a tensor from outside", _MUTATED,
     "RuntimeError"),
    ("E203", r"^vmap called a random operation", _RANDOM, "RuntimeError"),
)  # fmt: skip

_RANDOM_NUMBERS: tuple[Row, ...] = (
    ("E205", r"^normal needs std >= 0, not (-?[\d.]+?)(?:\.0)?$",
     r"normal expects std >= 0.0, but found std \1", "RuntimeError"),
    ("E205", r"^exponential_ needs lambd > 0, not (-?[\d.]+?)(?:\.0)?$",
     r"exponential_ expects lambda > 0.0, but found lambda=\1", "RuntimeError"),
    ("E205", r"^geometric_ needs p in \(0, 1\), not (-?[\d.]+?)(?:\.0)?$",
     r"geometric_ expects p to be in (0, 1), but got p=\1", "RuntimeError"),
    ("E205", r"^bernoulli_ needs a probability in \[0, 1\], not (-?[\d.]+?)(?:\.0)?$",
     r"bernoulli_ expects p to be in [0, 1], but got p=\1", "RuntimeError"),
    ("E205", r"^uniform_ needs from <= to, not from=(-?[\d.]+?)(?:\.0)? and to=(-?[\d.]+?)"
     r"(?:\.0)?$", r"uniform_ expects to return a [from, to) range, but found from=\1 > to=\2",
     "RuntimeError"),
    ("E205", r"^cauchy_ needs sigma > 0, not (-?[\d.]+?)(?:\.0)?$",
     r"cauchy_ expects sigma > 0.0, but found sigma=\1", "RuntimeError"),
    ("E205", r"^log_normal_ needs std > 0, not (-?[\d.]+?)(?:\.0)?$",
     r"log_normal_ expects std > 0.0, but found std=\1", "RuntimeError"),
    ("E205", r"^multinomial needs finite weights >= 0",
     "probability tensor contains either `inf`, `nan` or element < 0", "RuntimeError"),
    ("E205", r"^multinomial cannot draw \d+ of \d+ categories without",
     "cannot sample n_sample > prob_dist.size(-1) samples without replacement", "RuntimeError"),
    ("E205", r"^random numbers need low < high, not low=(-?\d+) and high=(-?\d+)",
     r"random_ expects 'from' to be less than 'to', but got from=\1 >= to=\2", "RuntimeError"),
    ("E3", r"^randperm needs n >= 0, not (-\d+)",
     r"Trying to create tensor with negative dimension \1: [\1]", "RuntimeError"),
    ("E205", r"^poisson needs every rate", "invalid Poisson rate, expected rate to be "
     "non-negative", "RuntimeError"),
    ("E205", r"^bernoulli needs every probability", "Expected p_in >= 0 && p_in <= 1 to be true, "
     "but got false.  (Could this error message be improved?  If so, please report an enhancement "
     "request to PyTorch.)", "RuntimeError"),
    ("E205", r"^dropout needs a probability in \[0, 1\], not (.*)", "dropout probability has to be "
     r"between 0 and 1, but got \1", "ValueError"),
)  # fmt: skip

LIBRARY_WORDS: tuple[Row, ...] = (*_OPTIMIZERS, *_MODULES, *_TRANSFORMS, *_RANDOM_NUMBERS)
