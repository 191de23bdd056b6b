"""The workloads in JAX, compiled; see with_numpy for the form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from .workloads import batches, together

jax.config.update("jax_enable_x64", True)

Results = dict[str, Any]
Job = Callable[[], Results]


def _graded(loss: Callable[..., Any], wrt: dict[str, Any], **rest: Any) -> Job:
    """A call that computes a loss and its gradients, compiled at the first one."""
    leaves = {name: jnp.asarray(array) for name, array in wrt.items()}
    constants = {name: jnp.asarray(array) for name, array in rest.items()}
    compiled = jax.jit(jax.value_and_grad(lambda leaves, rest: loss(**leaves, **rest)))

    def job() -> Results:
        value, found = jax.block_until_ready(compiled(leaves, constants))
        return {"loss": value, **found}

    return job


def neuron(w: Any, x: Any, b: Any) -> Job:
    return _graded(
        lambda w, x, b: jnp.sum((1 - jax.nn.sigmoid(w * x + b)) ** 2), {"w": w, "x": x, "b": b}
    )


def chain(x: Any) -> Job:
    def loss(x: Any) -> Any:
        y = x
        for _ in range(4):
            y = jnp.exp(-(jnp.tanh(y * 0.9 + 0.1) * x)) - 0.5
        return jnp.sum(y)

    return _graded(loss, {"x": x})


def norm(x: Any, weight: Any, bias: Any, target: Any) -> Job:
    def loss(x: Any, weight: Any, bias: Any, target: Any) -> Any:
        centered = x - x.mean(1, keepdims=True)
        scale = jax.lax.rsqrt((centered * centered).mean(1, keepdims=True) + 1e-5)
        h = jax.nn.gelu(centered * scale * weight + bias, approximate=False)
        picked = jnp.take_along_axis(jax.nn.log_softmax(h, 1), target[:, None], 1)
        return -picked.mean()

    return _graded(loss, {"x": x, "weight": weight, "bias": bias}, target=target)


def mlp(x: Any, t: Any, **weights: Any) -> Job:
    def loss(x: Any, t: Any, **w: Any) -> Any:
        h = jax.nn.relu(x @ w["W1"] + w["b1"])
        h = jax.nn.relu(h @ w["W2"] + w["b2"])
        return jnp.mean((h @ w["W3"] + w["b3"] - t) ** 2)

    return _graded(loss, weights, x=x, t=t)


def logistic(X: Any, t: Any, steps: Any) -> Job:
    x, target = jnp.asarray(X), jnp.asarray(t)

    def loss(parameters: Any) -> Any:
        w, b = parameters
        z = x @ w + b
        return jnp.mean(jnp.logaddexp(0, z) - target * z)

    @jax.jit
    def train(parameters: Any) -> Any:
        def step(parameters: Any, _: Any) -> Any:
            found = jax.grad(loss)(parameters)
            return tuple(p - 0.1 * g for p, g in zip(parameters, found, strict=True)), None

        return jax.lax.scan(step, parameters, None, int(steps))[0]

    start = (jnp.zeros(x.shape[1], x.dtype), jnp.zeros((), x.dtype))

    def job() -> Results:
        w, b = jax.block_until_ready(train(start))
        return {"w": w, "b": b}

    return job


def _classify_loss(w: Any, b: Any, X: Any, t: Any) -> Any:
    z = X @ w + b
    return jnp.mean(jnp.logaddexp(0, z) - t * z)


def classify(w: Any, b: Any, X: Any, t: Any, count: Any) -> Job:
    return _graded(_classify_loss, {"w": w, "b": b}, X=X, t=t)


def sizes_again(w: Any, b: Any, X: Any, t: Any, count: Any) -> Job:
    jobs = [classify(w, b, *batch, count) for batch in batches(X, t, count)]
    return lambda: together([job() for job in jobs])


def rnn(W: Any, U: Any, x: Any, steps: Any) -> Job:
    def loss(W: Any, U: Any, x: Any) -> Any:
        def step(h: Any, row: Any) -> Any:
            return jnp.tanh(W @ h + U @ row), None

        h, _ = jax.lax.scan(step, jnp.zeros(len(W), W.dtype), x)
        return jnp.sum(h * h)

    return _graded(loss, {"W": W, "U": U}, x=x)


def conv(x: Any, w: Any) -> Job:
    def loss(x: Any, w: Any) -> Any:
        return jnp.sum(jax.lax.conv(x, w, (1, 1), "SAME") ** 2)

    return _graded(loss, {"x": x, "w": w})


def _pooled(x: Any, start: Any, combine: Any) -> Any:
    return jax.lax.reduce_window(x, start, combine, (1, 1, 3, 3), (1, 1, 2, 2), "VALID")


def max_pool(x: Any) -> Job:
    return _graded(lambda x: jnp.sum(_pooled(x, -jnp.inf, jax.lax.max) ** 2), {"x": x})


def avg_pool(x: Any) -> Job:
    return _graded(lambda x: jnp.sum((_pooled(x, 0.0, jax.lax.add) / 9) ** 2), {"x": x})


def jacobian(x: Any, W1: Any, W2: Any, W3: Any) -> Job:
    w1, w2, w3, at = (jnp.asarray(a) for a in (W1, W2, W3, x))
    compiled = jax.jit(jax.jacrev(lambda x: jnp.tanh(w3 @ jnp.tanh(w2 @ jnp.tanh(w1 @ x)))))
    return lambda: {"J": jax.block_until_ready(compiled(at))}


def hessian(x: Any, W: Any) -> Job:
    w, at = jnp.asarray(W), jnp.asarray(x)
    compiled = jax.jit(jax.hessian(lambda x: jnp.sum(jnp.tanh(w @ x) ** 2)))
    return lambda: {"H": jax.block_until_ready(compiled(at))}
