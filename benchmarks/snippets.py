"""Many small programs: native ones and pasted PyTorch snippets, with the same in PyTorch and the
gradients by hand in NumPy.

Each function draws its numbers and makes one `Snippet`; `snippets(seed, count)` takes them in turn.
"""

from __future__ import annotations

import ast
import atexit
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

Array = np.ndarray


@dataclass(frozen=True)
class Snippet:
    """One program. `gradients` computes what its leaves `wrt` get, in this order; `torch` is the
    same program for PyTorch, which a pasted snippet is already."""

    text: str
    torch: str
    wrt: tuple[str, ...]
    gradients: Callable[[], list[Any]]

    @property
    def pasted(self) -> bool:
        return self.text == self.torch

    @property
    def objective(self) -> str:
        """A function for PyTorch: what the program computes of its leaves up to `backward()`."""
        inside: list[str] = []
        touched = set(self.wrt)
        for statement in ast.parse(self.torch).body:
            names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
            stored = {name.id for name in names if isinstance(name.ctx, ast.Store)}
            text = ast.unparse(statement)
            if text.endswith(".backward()"):
                inside.append("return " + text.removesuffix(".backward()"))
                break
            if stored.isdisjoint(self.wrt) and any(name.id in touched for name in names):
                inside += text.split("\n")
                touched |= stored
        return "\n    ".join([f"def objective({', '.join(self.wrt)}):", *inside]) + "\n"


class Numbers:
    """Random numbers as program text and as arrays."""

    def __init__(self, random: np.random.Generator):
        self.random = random

    def array(self, *shape: int) -> Array:
        """Numbers of three decimals between -1.5 and 1.5."""
        return np.round(self.random.uniform(-1.5, 1.5, shape), 3)


def _t(array: Array, grad: bool = True) -> str:
    """A float64 tensor in PyTorch's words."""
    return f"torch.tensor({array.tolist()}, dtype=torch.float64, requires_grad={grad})"


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


# -- native ---------------------------------------------------------------------------------------


def _product(numbers: Numbers) -> Snippet:
    a, b = numbers.array(2, 2), numbers.array(2, 2)
    text = f"A = {a.tolist()}\nB = {b.tolist()}\nloss = sum((A + B) * A)\n"
    torch = f"import torch\nA = {_t(a)}\nB = {_t(b)}\nloss = ((A + B) * A).sum()\nloss.backward()\n"
    return Snippet(text, torch, ("A", "B"), lambda: [2 * a + b, a])


def _neuron(numbers: Numbers) -> Snippet:
    w, x, b = numbers.array(3), numbers.array(3), numbers.array()
    text = (
        "# one neuron\n"
        f"w = {w.tolist()}\nx = const({x.tolist()})\nb = {b.tolist()}\n"
        "y = sigmoid(w @ x + b)\nloss = (y - 1)**2\n"
    )
    torch = (
        f"import torch\nw = {_t(w)}\nx = {_t(x, False)}\nb = {_t(b)}\n"
        "y = torch.sigmoid(w @ x + b)\nloss = (y - 1)**2\nloss.backward()\n"
    )

    def gradients() -> list[Any]:
        y = _sigmoid(w @ x + b)
        slope = 2 * (y - 1) * y * (1 - y)
        return [slope * x, slope]

    return Snippet(text, torch, ("w", "b"), gradients)


def _curve(numbers: Numbers) -> Snippet:
    x = numbers.array()
    text = f"x = {x.tolist()}\ny = x**2 * sin(x)\nz = exp(-x)\nloss = y + z\n"
    torch = (
        f"import torch\nx = {_t(x)}\ny = x**2 * torch.sin(x)\nz = torch.exp(-x)\nloss = y + z\n"
        "loss.backward()\n"
    )
    return Snippet(text, torch, ("x",), lambda: [2 * x * np.sin(x) + x**2 * np.cos(x) - np.exp(-x)])


def _regression(numbers: Numbers) -> Snippet:
    x, y, w, b = numbers.array(4, 2), numbers.array(4), numbers.array(2), numbers.array()
    text = (
        f"X = const({x.tolist()})\ny = const({y.tolist()})\nw = {w.tolist()}\nb = {b.tolist()}\n"
        "residual = X @ w + b - y\nloss = mean(residual**2)\n"
    )
    torch = (
        f"import torch\nX = {_t(x, False)}\ny = {_t(y, False)}\nw = {_t(w)}\nb = {_t(b)}\n"
        "residual = X @ w + b - y\nloss = (residual**2).mean()\nloss.backward()\n"
    )

    def gradients() -> list[Any]:
        slope = (x @ w + b - y) / 2
        return [slope @ x, slope.sum()]

    return Snippet(text, torch, ("w", "b"), gradients)


def _classes(numbers: Numbers) -> Snippet:
    logits = numbers.array(2, 3)
    text = f"logits = {logits.tolist()}\np = log_softmax(logits, dim=1)\nloss = -mean(p[:, 0])\n"
    torch = (
        f"import torch\nlogits = {_t(logits)}\np = torch.log_softmax(logits, dim=1)\n"
        "loss = -p[:, 0].mean()\nloss.backward()\n"
    )

    def gradients() -> list[Any]:
        p = np.exp(logits)
        return [(p / p.sum(1, keepdims=True) - np.array([1.0, 0, 0])) / 2]

    return Snippet(text, torch, ("logits",), gradients)


def _function(numbers: Numbers) -> Snippet:
    x = numbers.array(4)
    text = f"def f(x):\n    return x**3 - 2*x\n\nx = {x.tolist()}\nloss = sum(f(x))\n"
    torch = (
        f"import torch\ndef f(x):\n    return x**3 - 2*x\n\nx = {_t(x)}\nloss = f(x).sum()\n"
        "loss.backward()\n"
    )
    return Snippet(text, torch, ("x",), lambda: [3 * x**2 - 2])


def _repeated(numbers: Numbers) -> Snippet:
    x = numbers.array()
    text = f"x = {x.tolist()}\ny = x\nfor i in range(3):\n    y = sin(y) * x\nloss = y\n"
    torch = (
        f"import torch\nx = {_t(x)}\ny = x\nfor i in range(3):\n    y = torch.sin(y) * x\n"
        "loss = y\nloss.backward()\n"
    )

    def gradients() -> list[Any]:
        y, slope = x, 1.0
        for _ in range(3):
            y, slope = np.sin(y) * x, np.cos(y) * slope * x + np.sin(y)
        return [slope]

    return Snippet(text, torch, ("x",), gradients)


# -- pasted ---------------------------------------------------------------------------------------


def _squares(numbers: Numbers) -> Snippet:
    x = numbers.array(5)
    text = f"import torch\n\nx = {_t(x)}\ny = (x**2).sum()\ny.backward()\n"
    return Snippet(text, text, ("x",), lambda: [2 * x])


def _layer(numbers: Numbers) -> Snippet:
    w, x, b = numbers.array(2, 3), numbers.array(3), numbers.array(2)
    text = (
        f"import torch\n\nW = {_t(w)}\nb = {_t(b)}\nx = {_t(x, False)}\n"
        "h = torch.tanh(W @ x + b)\nloss = h.sum()\nloss.backward()\n"
    )

    def gradients() -> list[Any]:
        slope = 1 - np.tanh(w @ x + b) ** 2
        return [slope[:, None] * x, slope]

    return Snippet(text, text, ("W", "b"), gradients)


def _distance(numbers: Numbers) -> Snippet:
    x, y = numbers.array(3, 2), numbers.array(3, 2)
    text = (
        "import torch\nimport torch.nn.functional as F\n\n"
        f"prediction = {_t(x)}\ntarget = {_t(y, False)}\n"
        "loss = F.mse_loss(prediction, target)\nloss.backward()\n"
    )
    return Snippet(text, text, ("prediction",), lambda: [(x - y) / 3])


def _step(numbers: Numbers) -> Snippet:
    w, x = numbers.array(3), numbers.array(3)
    text = (
        f"import torch\nw = {_t(w)}\nx = {_t(x, False)}\n"
        "optimizer = torch.optim.SGD([w], lr=0.1)\n"
        "loss = ((w - x)**2).mean()\nloss.backward()\noptimizer.step()\n"
    )
    return Snippet(text, text, ("w",), lambda: [2 * (w - x) / 3])


def _matrices(numbers: Numbers) -> Snippet:
    a, b = numbers.array(2, 3), numbers.array(3, 2)
    text = (
        f"import torch\na = {_t(a)}\nb = {_t(b)}\nc = torch.relu(a @ b)\n"
        "d = c.mean() + a.pow(2).sum()\nd.backward()\n"
    )

    def gradients() -> list[Any]:
        slope = (a @ b > 0) / 4
        return [slope @ b.T + 2 * a, a.T @ slope]

    return Snippet(text, text, ("a", "b"), gradients)


MAKERS = (
    _product,
    _squares,
    _neuron,
    _layer,
    _curve,
    _distance,
    _regression,
    _step,
    _classes,
    _matrices,
    _function,
    _repeated,
)


def snippets(seed: int, count: int) -> list[Snippet]:
    """`count` programs with numbers of their own; the same for the same seed."""
    numbers = Numbers(np.random.default_rng(seed))
    return [MAKERS[i % len(MAKERS)](numbers) for i in range(count)]


def own_folder() -> Path:
    """A new folder that goes when the process ends."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def kept(texts: list[str], ending: str) -> list[str]:
    """The paths of the texts, written into files of a folder of their own."""
    folder, paths = own_folder(), []
    for number, text in enumerate(texts):
        path = folder / f"program{number:03}{ending}"
        path.write_text(text, encoding="utf-8")
        paths.append(str(path))
    return paths


def joined(gradients: list[list[Any]]) -> Array:
    """The gradients of many programs as one flat array."""
    return np.concatenate([np.ravel(gradient) for each in gradients for gradient in each])
