"""The workloads as programs of this project; see with_numpy for the form."""

from __future__ import annotations

import ast
import io
import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np

import autodiff_cli
from autodiff_cli.cli.main import main
from autodiff_cli.cli.streams import Environment

from .snippets import Snippet, joined, kept, own_folder, snippets
from .workloads import batches, together

Results = dict[str, Any]
Job = Callable[[], Results]


def _graded(program: str, wrt: dict[str, Any], **rest: Any) -> Job:
    """A call of `value_and_grad`."""
    function = autodiff_cli.value_and_grad(program, wrt=list(wrt))

    def job() -> Results:
        value, found = function(**wrt, **rest)
        return {"loss": value, **found}

    return job


def _program(text: str, results: tuple[str, ...], **arrays: Any) -> Job:
    """A whole program that reads its arrays with `load`."""
    folder = own_folder()
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    path = folder / "program.py"
    path.write_text(text, encoding="utf-8")

    def job() -> Results:
        tensors = autodiff_cli.run(path)["tensors"]
        return {name: tensors[name]["value"] for name in results}

    return job


def neuron(w: Any, x: Any, b: Any) -> Job:
    return _graded("loss = sum((1 - sigmoid(w*x + b))**2)", {"w": w, "x": x, "b": b})


CHAIN = """\
y = x
for i in range(4):
    y = exp(-(tanh(y * 0.9 + 0.1) * x)) - 0.5
loss = sum(y)
"""


def chain(x: Any) -> Job:
    return _graded(CHAIN, {"x": x})


NORM = """\
h = gelu(layer_norm(x, weight.shape, weight, bias))
loss = cross_entropy(h, target)
"""


def norm(x: Any, weight: Any, bias: Any, target: Any) -> Job:
    return _graded(NORM, {"x": x, "weight": weight, "bias": bias}, target=target)


MLP = """\
h = relu(x @ W1 + b1)
h = relu(h @ W2 + b2)
loss = mean((h @ W3 + b3 - t)**2)
"""


def mlp(x: Any, t: Any, **weights: Any) -> Job:
    return _graded(MLP, weights, x=x, t=t)


LOGISTIC = """\
import torch
import torch.nn.functional as F
x = load("X.npy")
target = load("t.npy")
w = torch.zeros(x.shape[1], dtype=x.dtype, requires_grad=True)
b = torch.zeros((), dtype=x.dtype, requires_grad=True)
optimizer = torch.optim.SGD([w, b], lr=0.1)
for i in range(STEPS):
    optimizer.zero_grad()
    loss = F.binary_cross_entropy_with_logits(x @ w + b, target)
    loss.backward()
    optimizer.step()
"""


def logistic(X: Any, t: Any, steps: Any) -> Job:
    return _program(LOGISTIC.replace("STEPS", str(steps)), ("w", "b"), X=X, t=t)


CLASSIFY = "loss = binary_cross_entropy_with_logits(X @ w + b, t)"


def classify(w: Any, b: Any, X: Any, t: Any, count: Any) -> Job:
    return _graded(CLASSIFY, {"w": w, "b": b}, X=X, t=t)


def sizes(w: Any, b: Any, X: Any, t: Any, count: Any) -> Job:
    """A function for each call, which has seen no size."""
    return lambda: sizes_again(w, b, X, t, count)()


def sizes_again(w: Any, b: Any, X: Any, t: Any, count: Any) -> Job:
    function = autodiff_cli.value_and_grad(CLASSIFY, wrt=["w", "b"])
    given = batches(X, t, count)

    def job() -> Results:
        calls = [function(w=w, b=b, X=x, t=target) for x, target in given]
        return together([{"loss": value, **found} for value, found in calls])

    return job


SCALARS = """\
y = x
for i in range(STEPS):
    v = (y + sin(y) * 0.001) * 0.5
    y = v + v
loss = y
"""


def scalars(x: Any, steps: Any) -> Job:
    return _graded(SCALARS.replace("STEPS", str(steps)), {"x": x})


def scalars_program(x: Any, steps: Any) -> Job:
    """The command line itself, its output in memory; everything is built anew by each call."""
    text = f"x = {float(x)!r}\n" + SCALARS.replace("STEPS", str(steps))

    def job() -> Results:
        out, err = io.StringIO(), io.StringIO()
        if main(["run", "--format", "json", "-e", text], Environment(None, out, err, {})):
            raise RuntimeError(err.getvalue())
        return _loss_and_slope(json.loads(out.getvalue()))

    return job


def scalars_library(x: Any, steps: Any) -> Job:
    """The same through the library, which leaves Python's collector as it is."""
    text = f"x = {float(x)!r}\n" + SCALARS.replace("STEPS", str(steps))
    return lambda: _loss_and_slope(autodiff_cli.run(text))


def _loss_and_slope(report: Any) -> Results:
    tensors = report["tensors"]
    return {"loss": tensors["loss"]["value"], "x": tensors["x"]["grad"]}


RNN = """\
h = zeros(len(W))
for i in range(len(x)):
    h = tanh(W @ h + U @ x[i])
loss = sum(h * h)
"""


def rnn(W: Any, U: Any, x: Any, steps: Any) -> Job:
    return _graded(RNN, {"W": W, "U": U}, x=x)


def conv(x: Any, w: Any) -> Job:
    return _graded("loss = sum(conv2d(x, w, padding=1)**2)", {"x": x, "w": w})


def max_pool(x: Any) -> Job:
    return _graded("loss = sum(max_pool2d(x, 3, 2)**2)", {"x": x})


def avg_pool(x: Any) -> Job:
    return _graded("loss = sum(avg_pool2d(x, 3, 2)**2)", {"x": x})


def jacobian(x: Any, **weights: Any) -> Job:
    program = "y = tanh(W3 @ tanh(W2 @ tanh(W1 @ x)))"
    function = autodiff_cli.jacobian(program, wrt="x", **weights)
    return lambda: {"J": function(x=x)}


def hessian(x: Any, W: Any) -> Job:
    function = autodiff_cli.hessian("loss = sum(tanh(W @ x)**2)", wrt="x", W=W)
    return lambda: {"H": function(x=x)}


def literal(values: Any) -> Job:
    text = "A = " + json.dumps(values.tolist())
    return lambda: {"A": autodiff_cli.run(text)["tensors"]["A"]["value"]}


class Printed:
    """The gradients that `autodiff run` printed, read when somebody asks for the array."""

    def __init__(self, text: str, programs: list[Snippet]):
        self.text = text
        self.programs = programs

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        blocks = self.text.split("# autodiff.plain/")[1:]
        found = []
        for snippet, block in zip(self.programs, blocks, strict=True):
            read = dict(re.findall(r"^(\w+)\.grad = (.*)  #", block, re.MULTILINE))
            found.append([ast.literal_eval(read[name]) for name in snippet.wrt])
        return joined(found)


def many(seed: Any, count: Any) -> Job:
    """The command line itself, with its output in memory."""
    programs = snippets(int(seed), int(count))
    return _command(["run"], programs, lambda text: {"gradients": Printed(text, programs)})


many_exec = many


def many_check(seed: Any, count: Any) -> Job:
    """How many gradients are right: every item that passes but the runs themselves."""
    programs = snippets(int(seed), int(count))

    def found(text: str) -> Results:
        passed = re.findall(r"(\d+) passed", text)
        return {"right": int(passed[-1]) - len(programs)}

    return _command(["check"], programs, found)


def _command(words: list[str], programs: list[Snippet], found: Callable[[str], Results]) -> Job:
    """A command on files of these programs, and what it makes of its output."""
    words = words + kept([snippet.text for snippet in programs], ".expr")

    def job() -> Results:
        out, err = io.StringIO(), io.StringIO()
        if main(words, Environment(None, out, err, {})):
            raise RuntimeError(err.getvalue())
        return found(out.getvalue())

    return job
