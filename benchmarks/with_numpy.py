"""The workloads in NumPy, forward and backward written by hand: the reference of all results.

Each function takes the arrays of a workload and returns what is measured: a call without
arguments whose results are compared by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from .snippets import joined, snippets
from .workloads import batches, together

Results = dict[str, Any]
Job = Callable[[], Results]


def neuron(w: Any, x: Any, b: Any) -> Job:
    def job() -> Results:
        s = 1 / (1 + np.exp(-(w * x + b)))
        r = 1 - s
        slope = -2 * r * s * r
        return {"loss": np.sum(r * r), "w": slope * x, "x": slope * w, "b": slope}

    return job


def chain(x: Any) -> Job:
    def job() -> Results:
        y = x
        kept = []
        for _ in range(4):
            t = np.tanh(y * 0.9 + 0.1)
            v = np.exp(-(t * x))
            kept.append((t, v))
            y = v - 0.5
        g = np.ones_like(x)
        to_x = np.zeros_like(x)
        for t, v in reversed(kept):
            g = -(g * v)
            to_x += g * t
            g = g * x * (1 - t * t) * 0.9
        return {"loss": np.sum(y), "x": to_x + g}

    return job


def norm(x: Any, weight: Any, bias: Any, target: Any) -> Job:
    from scipy.special import erf

    rows = len(x)
    every = np.arange(rows)
    half = x.dtype.type(math.sqrt(0.5))
    scale = x.dtype.type(1 / math.sqrt(2 * math.pi))

    def job() -> Results:
        centered = x - x.mean(1, keepdims=True)
        inverse = 1 / np.sqrt((centered * centered).mean(1, keepdims=True) + 1e-5)
        normal = centered * inverse
        h = normal * weight + bias
        below = 0.5 * (1 + erf(h * half))
        a = h * below
        a -= a.max(1, keepdims=True)
        p = np.exp(a)
        total = p.sum(1, keepdims=True)
        loss = np.mean(np.log(total[:, 0]) - a[every, target])
        p /= total
        p[every, target] -= 1
        p /= rows
        g = p * (below + h * np.exp(-0.5 * h * h) * scale)
        to_normal = g * weight
        dots = (to_normal * normal).mean(1, keepdims=True)
        to_x = (to_normal - to_normal.mean(1, keepdims=True) - normal * dots) * inverse
        return {"loss": loss, "x": to_x, "weight": (g * normal).sum(0), "bias": g.sum(0)}

    return job


def mlp(x: Any, t: Any, W1: Any, b1: Any, W2: Any, b2: Any, W3: Any, b3: Any) -> Job:
    def job() -> Results:
        h1 = np.maximum(x @ W1 + b1, 0)
        h2 = np.maximum(h1 @ W2 + b2, 0)
        error = h2 @ W3 + b3 - t
        g3 = error * (2 / error.size)
        g2 = (g3 @ W3.T) * (h2 > 0)
        g1 = (g2 @ W2.T) * (h1 > 0)
        return {
            "loss": np.mean(error * error),
            "W1": x.T @ g1,
            "W2": h1.T @ g2,
            "W3": h2.T @ g3,
            "b1": g1.sum(0),
            "b2": g2.sum(0),
            "b3": g3.sum(0),
        }

    return job


def logistic(X: Any, t: Any, steps: Any) -> Job:
    def job() -> Results:
        w, b = np.zeros(X.shape[1]), 0.0
        for _ in range(int(steps)):
            g = (1 / (1 + np.exp(-(X @ w + b))) - t) * (1 / len(t))
            w -= 0.1 * (g @ X)
            b -= 0.1 * g.sum()
        return {"w": w, "b": b}

    return job


def _classified(w: Any, b: Any, X: Any, t: Any) -> Results:
    z = X @ w + b
    g = (1 / (1 + np.exp(-z)) - t) / len(t)
    return {"loss": np.mean(np.logaddexp(0, z) - t * z), "w": g @ X, "b": g.sum()}


def classify(count: Any, **arrays: Any) -> Job:
    return lambda: _classified(**arrays)


def sizes(w: Any, b: Any, X: Any, t: Any, count: Any) -> Job:
    def job() -> Results:
        return together([_classified(w, b, *batch) for batch in batches(X, t, count)])

    return job


sizes_again = sizes


def scalars(x: Any, steps: Any) -> Job:
    """Python floats, which are faster than arrays of one number."""

    def job() -> Results:
        y = float(x)
        slopes = []
        for _ in range(int(steps)):
            slopes.append(1 + math.cos(y) * 0.001)
            v = (y + math.sin(y) * 0.001) * 0.5
            y = v + v
        g = 1.0
        for slope in reversed(slopes):
            g *= slope
        return {"loss": y, "x": g}

    return job


scalars_program = scalars_library = scalars


def rnn(W: Any, U: Any, x: Any, steps: Any) -> Job:
    def job() -> Results:
        h = np.zeros(len(W))
        kept = [h]
        for row in x:
            h = np.tanh(W @ h + U @ row)
            kept.append(h)
        g = 2 * h
        slopes = np.empty((len(x), len(W)))
        for i in range(len(x) - 1, -1, -1):
            slopes[i] = g * (1 - kept[i + 1] * kept[i + 1])
            g = W.T @ slopes[i]
        return {"loss": h @ h, "W": slopes.T @ np.array(kept[:-1]), "U": slopes.T @ x}

    return job


def conv(x: Any, w: Any) -> Job:
    """im2col, one product of matrices for each of forward, weights and input."""
    channels, height, width = x.shape[1:]
    features = len(w)

    def job() -> Results:
        padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
        windows = sliding_window_view(padded, (3, 3), (2, 3)).transpose(1, 4, 5, 0, 2, 3)
        columns = windows.reshape(channels * 9, -1)
        y = w.reshape(features, -1) @ columns
        g = 2 * y
        to_columns = (w.reshape(features, -1).T @ g).reshape(windows.shape)
        to_padded = np.zeros_like(padded)
        for i in range(3):
            for j in range(3):
                to_padded[:, :, i : i + height, j : j + width] += to_columns[:, i, j].transpose(
                    1, 0, 2, 3
                )
        return {
            "loss": np.sum(y * y),
            "w": (g @ columns.T).reshape(w.shape),
            "x": to_padded[:, :, 1:-1, 1:-1],
        }

    return job


def _windows(x: Any) -> Any:
    """All windows of 3 by 3 with stride 2, as nine planes."""
    rows, columns = ((n - 3) // 2 + 1 for n in x.shape[2:])
    return np.stack(
        [
            x[:, :, i : i + 2 * rows - 1 : 2, j : j + 2 * columns - 1 : 2]
            for i in range(3)
            for j in range(3)
        ]
    )


def _from_windows(g: Any, x: Any) -> Any:
    rows, columns = g.shape[-2:]
    to_x = np.zeros_like(x)
    for at in range(9):
        i, j = divmod(at, 3)
        to_x[:, :, i : i + 2 * rows - 1 : 2, j : j + 2 * columns - 1 : 2] += g[at]
    return to_x


def max_pool(x: Any) -> Job:
    def job() -> Results:
        windows = _windows(x)
        at = windows.argmax(0)
        y = np.take_along_axis(windows, at[None], 0)[0]
        g = np.zeros_like(windows)
        np.put_along_axis(g, at[None], (2 * y)[None], 0)
        return {"loss": np.sum(y * y), "x": _from_windows(g, x)}

    return job


def avg_pool(x: Any) -> Job:
    def job() -> Results:
        y = _windows(x).sum(0) / 9
        g = np.broadcast_to(2 * y / 9, (9, *y.shape))
        return {"loss": np.sum(y * y), "x": _from_windows(g, x)}

    return job


def jacobian(x: Any, W1: Any, W2: Any, W3: Any) -> Job:
    def job() -> Results:
        h1 = np.tanh(W1 @ x)
        h2 = np.tanh(W2 @ h1)
        h3 = np.tanh(W3 @ h2)
        rows = (1 - h3 * h3)[:, None] * W3
        rows = rows * (1 - h2 * h2) @ W2
        return {"J": rows * (1 - h1 * h1) @ W1}

    return job


def hessian(x: Any, W: Any) -> Job:
    def job() -> Results:
        h = np.tanh(W @ x)
        squares = h * h
        curvature = 2 * (1 - squares) * (1 - 3 * squares)
        return {"H": W.T @ (curvature[:, None] * W)}

    return job


def literal(values: Any) -> Job:
    import json

    text = json.dumps(values.tolist())
    return lambda: {"A": np.array(json.loads(text))}


def many(seed: Any, count: Any) -> Job:
    programs = snippets(int(seed), int(count))
    return lambda: {"gradients": joined([snippet.gradients() for snippet in programs])}


many_exec = many


def many_check(seed: Any, count: Any) -> Job:
    """What is to be found, counted: nobody checks by hand."""
    programs = snippets(int(seed), int(count))
    return lambda: {"right": sum(len(snippet.wrt) for snippet in programs)}
