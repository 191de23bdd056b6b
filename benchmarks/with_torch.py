"""The workloads in PyTorch's eager mode; see with_numpy for the form."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from .snippets import joined, kept, snippets
from .workloads import batches, together

Results = dict[str, Any]
Job = Callable[[], Results]


def graded(loss: Callable[..., Any], wrt: dict[str, Any], **rest: Any) -> Job:
    """A call that computes a loss and its gradients."""
    leaves = {name: torch.tensor(array, requires_grad=True) for name, array in wrt.items()}
    constants = {name: torch.tensor(array) for name, array in rest.items()}

    def job() -> Results:
        value = loss(**leaves, **constants)
        found = torch.autograd.grad(value, list(leaves.values()))
        return {
            "loss": value.detach().numpy(),
            **{name: g.numpy() for name, g in zip(leaves, found, strict=True)},
        }

    return job


def neuron_loss(w: Any, x: Any, b: Any) -> Any:
    return ((1 - torch.sigmoid(w * x + b)) ** 2).sum()


def neuron(w: Any, x: Any, b: Any) -> Job:
    return graded(neuron_loss, {"w": w, "x": x, "b": b})


def chain_loss(x: Any) -> Any:
    y = x
    for _ in range(4):
        y = torch.exp(-(torch.tanh(y * 0.9 + 0.1) * x)) - 0.5
    return y.sum()


def chain(x: Any) -> Job:
    return graded(chain_loss, {"x": x})


def norm_loss(x: Any, weight: Any, bias: Any, target: Any) -> Any:
    return F.cross_entropy(F.gelu(F.layer_norm(x, weight.shape, weight, bias)), target)


def norm(x: Any, weight: Any, bias: Any, target: Any) -> Job:
    return graded(norm_loss, {"x": x, "weight": weight, "bias": bias}, target=target)


def mlp_loss(x: Any, t: Any, **w: Any) -> Any:
    h = torch.relu(x @ w["W1"] + w["b1"])
    h = torch.relu(h @ w["W2"] + w["b2"])
    return ((h @ w["W3"] + w["b3"] - t) ** 2).mean()


def mlp(x: Any, t: Any, **weights: Any) -> Job:
    return graded(mlp_loss, weights, x=x, t=t)


def logistic(X: Any, t: Any, steps: Any) -> Job:
    x, target = torch.tensor(X), torch.tensor(t)

    def job() -> Results:
        w = torch.zeros(x.shape[1], dtype=x.dtype, requires_grad=True)
        b = torch.zeros((), dtype=x.dtype, requires_grad=True)
        optimizer = torch.optim.SGD([w, b], lr=0.1)
        for _ in range(int(steps)):
            optimizer.zero_grad()
            loss = F.binary_cross_entropy_with_logits(x @ w + b, target)
            loss.backward()
            optimizer.step()
        return {"w": w.detach().numpy(), "b": b.item()}

    return job


def _classify_loss(w: Any, b: Any, X: Any, t: Any) -> Any:
    return F.binary_cross_entropy_with_logits(X @ w + b, t)


def classify(w: Any, b: Any, X: Any, t: Any, count: Any) -> Job:
    return graded(_classify_loss, {"w": w, "b": b}, X=X, t=t)


def sizes(w: Any, b: Any, X: Any, t: Any, count: Any) -> Job:
    given = batches(X, t, count)
    jobs = [graded(_classify_loss, {"w": w, "b": b}, X=x, t=target) for x, target in given]
    return lambda: together([job() for job in jobs])


sizes_again = sizes


def scalars(x: Any, steps: Any) -> Job:
    def loss(x: Any) -> Any:
        y = x
        for _ in range(int(steps)):
            v = (y + torch.sin(y) * 0.001) * 0.5
            y = v + v
        return y

    return graded(loss, {"x": x})


scalars_program = scalars_library = scalars


def rnn(W: Any, U: Any, x: Any, steps: Any) -> Job:
    def loss(W: Any, U: Any, x: Any) -> Any:
        h = torch.zeros(len(W), dtype=W.dtype)
        for i in range(len(x)):
            h = torch.tanh(W @ h + U @ x[i])
        return (h * h).sum()

    return graded(loss, {"W": W, "U": U}, x=x)


def conv_loss(x: Any, w: Any) -> Any:
    return (F.conv2d(x, w, padding=1) ** 2).sum()


def conv(x: Any, w: Any) -> Job:
    return graded(conv_loss, {"x": x, "w": w})


def max_pool(x: Any) -> Job:
    return graded(lambda x: (F.max_pool2d(x, 3, 2) ** 2).sum(), {"x": x})


def avg_pool(x: Any) -> Job:
    return graded(lambda x: (F.avg_pool2d(x, 3, 2) ** 2).sum(), {"x": x})


def jacobian(x: Any, W1: Any, W2: Any, W3: Any) -> Job:
    w1, w2, w3, at = (torch.tensor(a) for a in (W1, W2, W3, x))
    jacobian = torch.func.jacrev(lambda x: torch.tanh(w3 @ torch.tanh(w2 @ torch.tanh(w1 @ x))))
    return lambda: {"J": jacobian(at).numpy()}


def hessian(x: Any, W: Any) -> Job:
    w, at = torch.tensor(W), torch.tensor(x)
    hessian = torch.func.hessian(lambda x: (torch.tanh(w @ x) ** 2).sum())
    return lambda: {"H": hessian(at).numpy()}


Names = dict[str, Any]
"""The names of a program that ran."""


def _shown(names: Names, out: Any) -> None:
    """Write the names' values and gradients, as `print` would."""
    for name, value in names.items():
        if isinstance(value, torch.Tensor):
            out.write(f"{name} = {value}\n")
            if value.is_leaf and value.grad is not None:
                out.write(f"{name}.grad = {value.grad}\n")


def _executed(text: str) -> Names:
    """Run a program: the snippets of this folder, nobody else's text."""
    names: Names = {}
    exec(compile(text, "<snippet>", "exec"), names)
    return names


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def many(seed: Any, count: Any) -> Job:
    """Read, compile, run, show."""
    programs = snippets(int(seed), int(count))
    paths = kept([snippet.torch for snippet in programs], ".py")

    def job() -> Results:
        out, found = io.StringIO(), []
        for snippet, path in zip(programs, paths, strict=True):
            names = _executed(_read(path))
            _shown(names, out)
            found.append([names[name].grad for name in snippet.wrt])
        return {"gradients": joined(found)}

    return job


def many_exec(seed: Any, count: Any) -> Job:
    """Run only: compiled ahead, nothing read, nothing shown."""
    programs = snippets(int(seed), int(count))
    compiled = [compile(snippet.torch, "<snippet>", "exec") for snippet in programs]

    def job() -> Results:
        found = []
        for snippet, code in zip(programs, compiled, strict=True):
            names: Names = {}
            exec(code, names)
            found.append([names[name].grad for name in snippet.wrt])
        return {"gradients": joined(found)}

    return job


def many_check(seed: Any, count: Any) -> Job:
    """Read, compile, run, and compare the gradients with differences."""
    programs = snippets(int(seed), int(count))
    texts = [f"{snippet.torch}\n\n{snippet.objective}" for snippet in programs]
    paths = kept(texts, ".py")

    def job() -> Results:
        right = 0
        for snippet, path in zip(programs, paths, strict=True):
            names = _executed(_read(path))
            leaves = [names[name] for name in snippet.wrt]
            torch.autograd.gradcheck(names["objective"], leaves)
            right += len(leaves)
        return {"right": right}

    return job
