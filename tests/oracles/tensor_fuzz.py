"""Random programs on shared memory, in-place changes and dtypes, here and in PyTorch.

Every program keeps a few tensors and changes them: views of views that are written through, leaves
that are updated between the parts of a loss, `.data`, `out=`, dtypes that meet. Run it by hand with
`python -m tests.oracles.tensor_fuzz 500 --seed 7`; PyTorch is needed. What differs is printed,
shortened line by line; a difference that was mended belongs into `snippets/`.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import random
import sys
import traceback
import warnings
from typing import Any

import numpy as np
import torch

from autodiff_cli.session import Options, run
from autodiff_cli.source import Source

HEADER = "import torch\nimport torch.nn.functional as F"
SHAPES = ((4,), (2, 3), (3, 2), (2, 2, 2), ())
DTYPES = ("float32", "float64", "int64", "int32", "uint8", "bool", "float16")
VIEWS = (
    "{}[0]", "{}[1:]", "{}[:, 0]", "{}[..., :1]", "{}.t()", "{}.T", "{}.view(-1)",
    "{}.unsqueeze(0)", "{}.squeeze()", "{}.detach()", "{}.data", "{}[None]", "{}[:]",
    "{}.diagonal()", "{}.reshape(-1)", "{}.transpose(0, 1)", "{}.narrow(0, 0, 1)",
    "{}.expand(2, 2)", "{}.flatten()", "{}.unbind(0)[0]", "{}.chunk(2)[0]", "{}.split(1)[0]",
    "{}.movedim(0, -1)", "{}.view_as({})", "{}.swapaxes(0, -1)",
)  # fmt: skip
OPS = (
    "{} * 2", "{} + {}", "{} * {}", "{}.exp()", "{}.sum()", "{}.mean()", "{} ** 2", "{}.clone()",
    "{}.sum(0)", "torch.relu({})", "{} - 1", "{} / 3",
    "torch.cat([{}.reshape(-1), {}.reshape(-1)])", "{}.softmax(-1)",
    "torch.where({} > 0, {}, 0.5)", "{}.cumsum(0)", "{}.sigmoid()", "{} @ {}", "{}.flip(0)",
    "F.mse_loss({}, {})", "{}.abs()", "{}.to(torch.{dtype})", "{}.max()", "{}.std()",
    "torch.stack([{}, {}])", "{}.sort()[0]", "{}.norm()", "{}.prod()", "{}.tanh()", "{}.log1p()",
)  # fmt: skip
CHANGES = (
    "{}.add_(1)", "{}.mul_({})", "{} *= 2", "{} += {}", "{}[0] = 3", "{}[..., 0] = {}[..., 0]",
    "{}[:] = 2", "{}[...] += 1", "{}.zero_()", "{}.fill_(2)", "{}.copy_({})", "{}.data.mul_(2)",
    "{}.data = {}.detach() * 2", "{}.data = {}", "{}.clamp_(0, 1)", "{}.exp_()", "{}[1:] += 1",
    "{}[{} > 1] = 0", "torch.add({}, 1, out={})", "torch.mul({}, {}, out={})", "{}.unsqueeze_(0)",
    "{}.squeeze_()", "{}.t_()", "{}.detach_()", "{}.requires_grad_()", "{}.requires_grad_(False)",
    "{}.masked_fill_({} > 0, 1)", "{}.sub_({})", "{}.relu_()", "{}.sqrt_()",
    "{}.index_fill_(0, torch.tensor([0]), 1)", "{}[[0]] = 2", "{}[0] += {}[0]", "{}.div_(2)",
    "{}.pow_(2)", "{}.neg_()", "{}.set_({})",
)  # fmt: skip
LOOKS = (
    "print({})", "print({}._version, {}.is_leaf, {}.requires_grad)", "print({}.grad)",
    "print({}.stride(), {}.is_contiguous())", "print({}.grad_fn)", "print({}.tolist())",
)  # fmt: skip
GRADIENTS = (
    "{}.sum().backward()", "{}.sum().backward(retain_graph=True)",
    "{new} = torch.autograd.grad({}.sum(), {}, retain_graph=True)[0]",
    "{new} = torch.autograd.grad(({} * 2).sum(), {}, create_graph=True)[0]",
    "{new} = torch.autograd.grad({}.sum(), {}, allow_unused=True)[0]",
    "opt = torch.optim.SGD([{}], lr=0.1); opt.step()", "{}.grad = None", "{}.retain_grad()",
)  # fmt: skip


class Program:
    """A program that grows line by line while PyTorch runs it; what PyTorch refuses stands in a
    `try`, or is left out."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.lines = [HEADER]
        self.scope: dict[str, Any] = {}
        exec(HEADER, self.scope)
        self.count = 0

    def name(self) -> str:
        tensors = [n for n, v in self.scope.items() if isinstance(v, torch.Tensor)]
        return self.random.choice(tensors[-6:])

    def new(self) -> str:
        self.count += 1
        return f"{'abcdefgh'[self.count % 8]}{self.count}"

    def filled(self, template: str) -> str:
        pieces = template.replace("{new}", self.new()).replace(
            "{dtype}", self.random.choice(DTYPES)
        )
        first, *rest = pieces.split("{}")
        name, out = self.name(), first
        for at, part in enumerate(rest):
            out += (name if not at or self.random.random() < 0.5 else self.name()) + part
        return out

    def leaf(self) -> str:
        shape, dtype = self.random.choice(SHAPES), self.random.choice(DTYPES[:2] * 3 + DTYPES)
        numbers = np.round(np.random.RandomState(self.random.randrange(99)).randn(*shape), 1)
        wants = dtype.startswith("float") and self.random.random() < 0.6
        made = f"torch.tensor({np.asarray(numbers).tolist()}).to(torch.{dtype})"
        return f"{self.new()} = {made}" + ".requires_grad_()" * wants

    def line(self) -> str:
        kind = self.random.random()
        if kind < 0.12:
            return self.leaf()
        if kind < 0.35:
            return f"{self.new()} = {self.filled(self.random.choice(VIEWS))}"
        if kind < 0.52:
            return f"{self.new()} = {self.filled(self.random.choice(OPS))}"
        if kind < 0.78:
            change = self.filled(self.random.choice(CHANGES))
            return f"with torch.no_grad(): {change}" if self.random.random() < 0.4 else change
        return self.filled(self.random.choice(LOOKS if kind < 0.88 else GRADIENTS))

    def grow(self, lines: int) -> str:
        for line in (self.leaf(), self.leaf()):
            exec(line, self.scope)
            self.lines.append(line)
        while len(self.lines) < lines:
            line = self.line()
            try:
                with contextlib.redirect_stdout(io.StringIO()):
                    exec(line, self.scope)
            except Exception as error:
                if self.random.random() < 0.8 or not isinstance(error, RuntimeError):
                    continue
                line = f"try: {line}\nexcept RuntimeError: print('refused')"
                if line.startswith("try: with"):
                    continue
            self.lines.append(line)
        return "\n".join(self.lines) + "\n"


def there(text: str) -> tuple[str, dict[str, Any], str]:
    """What PyTorch prints and leaves, and the class of what it raises."""
    out, scope, raised = io.StringIO(), {"__name__": "__main__"}, ""
    with contextlib.redirect_stdout(out):
        try:
            exec(compile(text, "<program>", "exec"), scope)
        except Exception as error:
            raised = type(error).__name__
    return out.getvalue(), scope, raised


def close(a: Any, b: Any) -> bool:
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    with np.errstate(all="ignore"):
        return a.shape == b.shape and bool(np.allclose(a, b, rtol=2e-3, atol=2e-4, equal_nan=True))


def difference(text: str) -> str:
    """What differs first between both, or ''."""
    printed, scope, raised = there(text)
    try:
        report = run(Source(text, "program.py"), Options(backward=False))
    except Exception:
        return "crash: " + traceback.format_exc().splitlines()[-1]
    if (report.error is None) != (not raised):
        return f"PyTorch: {raised or 'runs'}, here: {report.error}"
    if raised:
        return ""
    for name, value in scope.items():
        record = report.tensors.get(name)
        if not isinstance(value, torch.Tensor) or record is None:
            continue
        try:
            flags = (value.is_leaf, value.requires_grad, str(value.dtype)[6:], tuple(value.shape))
        except RuntimeError:
            continue  # a view whose history PyTorch has lost
        found = (record.is_leaf, record.requires_grad, record.dtype, tuple(record.shape))
        if flags != found:
            return f"{name}: {flags}, here {found}"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            grad = value.grad
        if not close(record.value, value.detach().numpy()):
            return f"{name}: {value.tolist()}, here {record.value.tolist()}"
        if (grad is None) != (record.grad is None):
            return f"{name}.grad: {grad}, here {record.grad}"
        if grad is not None and not close(record.grad, grad.numpy()):
            return f"{name}.grad: {grad.tolist()}, here {record.grad.tolist()}"
    if len(printed.split()) != len(report.stdout.split()):
        return f"printed {printed!r}, here {report.stdout!r}"
    return ""


def shortened(text: str) -> str:
    """The program without the lines that the difference does not need."""
    blocks = text.replace("\nexcept", "\x00except").splitlines()
    at = len(blocks) - 1
    while at > 1:
        shorter = [*blocks[:at], *blocks[at + 1 :]]
        program = "\n".join(shorter).replace("\x00", "\n") + "\n"
        if there(program)[2] not in ("NameError", "SyntaxError") and difference(program):
            blocks = shorter
        at -= 1
    return "\n".join(blocks).replace("\x00", "\n") + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=300)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    differ = 0
    for seed in range(options.seed, options.seed + options.count):
        text = Program(seed).grow(14)
        found = difference(text)
        if found:
            differ += 1
            short = shortened(text)
            print(f"=== seed {seed}: {difference(short) or found}\n{short}")
    print(f"{differ} of {options.count} differ")
    sys.exit(differ > 0)


if __name__ == "__main__":
    main()
