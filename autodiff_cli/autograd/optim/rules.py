"""The arithmetic of optimizers: one rule each, from a parameter and its gradient to the next value.

A rule is `rule(p, g, state, options) -> node`. It works on nodes, in PyTorch's order of operations,
and keeps what it remembers as tensors in `state`; nothing is computed here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...graph.dtypes import FLOAT32, FLOAT64
from ...graph.node import Node
from ...graph.op import constant, number
from ...graph.registry import F
from ...graph.state import STATE
from ...graph.symbolic_numbers import Varying, whole
from ..tensor import Tensor

State = dict[str, Any]
Options = dict[str, Any]
Rule = Callable[[Node, Node, State, Options], Node]


def item_of(value: Any) -> Any:
    """An option, which may be a one-element tensor, as it is in Python."""
    return value.item() if isinstance(value, Tensor) else value


def real(value: Any) -> Any:
    """An option that is a number; TypeError for others."""
    found = item_of(value)
    if isinstance(found, int | float | Varying):
        return found
    raise TypeError("an option must be a number")


def _scalar(value: float | Varying, kind: np.dtype) -> Node:
    """A number that is remembered as a tensor."""
    return value.node(kind, False) if type(value) is Varying else constant(np.asarray(value, kind))


def _times(x: Node, factor: float) -> Node:
    return F.mul.pair(x, number(factor))


def _plus(x: Node, summand: float) -> Node:
    return F.add.pair(x, number(summand))


def _plus_times(x: Node, y: Node, factor: float) -> Node:
    """`x + factor * y`, in single precision rounded once, as PyTorch's kernels do."""
    if x.dtype != FLOAT32:
        return x + _times(y, factor)
    return F.add_product.apply([x, y, number(factor, FLOAT32)])


def _lerp(start: Node, end: Node, weight: float) -> Node:
    """From `start` towards `end`, rounded as PyTorch's `lerp` is."""
    step = end - start
    if abs(weight) < 0.5:
        return _plus_times(start, step, weight)
    return _plus_times(end, step, weight - 1)


def _averaged_square(average: Node, g: Node, beta: float) -> Node:
    kept, new = _times(average, beta), _times(g, 1 - beta)
    return F.add_product.apply([kept, new, g]) if g.dtype == FLOAT32 else kept + new * g


def _stepped(p: Node, direction: Node, scale: Node, size: float) -> Node:
    """`p + size * direction / scale`."""
    return p + _times(direction, size) / scale


def _decayed(p: Node, g: Node, o: Options) -> Node:
    decay = real(o["weight_decay"])
    return _plus_times(g, p, decay) if decay else g


def _kept(state: State, name: str, node: Node) -> Node:
    """Remember a node as the tensor `name` of a state; the same tensor from then on."""
    tensor = state.get(name)
    if tensor is None:
        state[name] = Tensor(node)
    else:
        tensor._show(node)
    return node


def _memory(state: State, name: str, like: Node, value: float = 0.0) -> Node:
    """A remembered tensor, at first filled with `value`."""
    tensor = state.get(name)
    if tensor is None:
        tensor = state[name] = Tensor(constant(np.full(like.shape, value, like.dtype)))
    return tensor.node


def _counted(state: State) -> int:
    """One step more; the count is a tensor, as in PyTorch."""
    before = state.get("step")
    step: int = 1 if before is None else whole(before.item()) + 1
    _kept(state, "step", _scalar(step, _default_dtype()))
    return step


def sgd(p: Node, g: Node, state: State, o: Options) -> Node:
    g = _decayed(p, g, o)
    momentum = real(o["momentum"])
    if momentum:
        if state.get("momentum_buffer") is None:
            buffer = _kept(state, "momentum_buffer", F.alias(g))
        else:
            before = state["momentum_buffer"].node
            buffer = _plus_times(_times(before, momentum), g, 1 - real(o["dampening"]))
            _kept(state, "momentum_buffer", buffer)
        g = _plus_times(g, buffer, momentum) if o["nesterov"] else buffer
    return _plus_times(p, g, -real(o["lr"]))


def _moments(p: Node, g: Node, state: State, o: Options) -> tuple[Node, Node, Node]:
    """The decayed parameter and the running means of the slope and of its square."""
    beta1, beta2 = map(real, o["betas"])
    if o["decoupled_weight_decay"]:
        decay = real(o["weight_decay"])
        p = _times(p, 1 - real(o["lr"]) * decay) if decay else p
    else:
        g = _decayed(p, g, o)
    mean = _kept(state, "exp_avg", _lerp(_memory(state, "exp_avg", p), g, 1 - beta1))
    square = _averaged_square(_memory(state, "exp_avg_sq", p), g, beta2)
    return p, mean, _kept(state, "exp_avg_sq", square)


def adam(p: Node, g: Node, state: State, o: Options) -> Node:
    step = _counted(state)
    lr, eps = real(o["lr"]), real(o["eps"])
    beta1, beta2 = map(real, o["betas"])
    p, mean, square = _moments(p, g, state, o)
    if o["amsgrad"]:
        highest = F.maximum(_memory(state, "max_exp_avg_sq", p), square)
        square = _kept(state, "max_exp_avg_sq", highest)
    correction = (1 - beta2**step) ** 0.5
    scale = _plus(F.div.apply([F.sqrt(square), number(correction)]), eps)
    return _stepped(p, mean, scale, -(lr / (1 - beta1**step)))


def adamax(p: Node, g: Node, state: State, o: Options) -> Node:
    step = _counted(state)
    beta1, beta2 = map(real, o["betas"])
    g = _decayed(p, g, o)
    mean = _kept(state, "exp_avg", _lerp(_memory(state, "exp_avg", p), g, 1 - beta1))
    before = _times(_memory(state, "exp_inf", p), beta2)
    largest = F.maximum(before, _plus(F.abs(g), real(o["eps"])))
    _kept(state, "exp_inf", largest)
    return _stepped(p, mean, largest, -(real(o["lr"]) / (1 - beta1**step)))


def nadam(p: Node, g: Node, state: State, o: Options) -> Node:
    step = _counted(state)
    lr = real(o["lr"])
    beta1, beta2 = map(real, o["betas"])
    decay = real(o["momentum_decay"])
    if o["decoupled_weight_decay"]:
        p = _times(p, 1 - lr * real(o["weight_decay"]))
    else:
        g = _decayed(p, g, o)
    mu = beta1 * (1.0 - 0.5 * (0.96 ** (step * decay)))
    mu_next = beta1 * (1.0 - 0.5 * (0.96 ** ((step + 1) * decay)))
    product = state.get("mu_product")
    # PyTorch keeps the product in a tensor of the default dtype.
    kind = product.dtype if product is not None else _default_dtype()
    before = kind.type(1.0 if product is None else product.item())
    mu_product = float(before * kind.type(mu))
    _kept(state, "mu_product", constant(np.asarray(mu_product, kind)))
    mean = _kept(state, "exp_avg", _lerp(_memory(state, "exp_avg", p), g, 1 - beta1))
    square = _averaged_square(_memory(state, "exp_avg_sq", p), g, beta2)
    _kept(state, "exp_avg_sq", square)
    corrected = F.div.apply([square, number(1 - beta2**step)])
    scale = _plus(F.sqrt(corrected), real(o["eps"]))
    p = _stepped(p, g, scale, -lr * (1.0 - mu) / (1.0 - mu_product))
    return _stepped(p, mean, scale, (-lr * mu_next) / (1.0 - mu_product * mu_next))


def _default_dtype() -> np.dtype:
    return FLOAT64 if STATE.default_dtype == FLOAT64 else FLOAT32


def radam(p: Node, g: Node, state: State, o: Options) -> Node:
    step = _counted(state)
    lr = real(o["lr"])
    beta1, beta2 = map(real, o["betas"])
    p, mean, square = _moments(p, g, state, o)
    correction2 = 1 - beta2**step
    corrected = F.div.apply([mean, number(1 - beta1**step)])
    rho_inf = 2 / (1 - beta2) - 1
    rho = rho_inf - 2 * step * (beta2**step) / correction2
    update = _times(corrected, lr)
    if rho > 5.0:
        over = (rho - 4) * (rho - 2) * rho_inf
        rectified = (over / ((rho_inf - 4) * (rho_inf - 2) * rho)) ** 0.5
        scale = _plus(F.sqrt(square), real(o["eps"]))
        adaptive = F.div.apply([number(correction2**0.5), scale])
        update = _times(update * adaptive, rectified)
    return p - update


def rmsprop(p: Node, g: Node, state: State, o: Options) -> Node:
    _counted(state)
    lr, alpha = real(o["lr"]), real(o["alpha"])
    momentum = real(o["momentum"])
    g = _decayed(p, g, o)
    square = _averaged_square(_memory(state, "square_avg", p), g, alpha)
    _kept(state, "square_avg", square)
    buffer = _memory(state, "momentum_buffer", p) if momentum > 0 else None
    if o["centered"]:
        mean = _lerp(_memory(state, "grad_avg", p), g, 1 - alpha)
        _kept(state, "grad_avg", mean)
        square = square - mean * mean
    scale = _plus(F.sqrt(square), real(o["eps"]))
    if buffer is None:
        return _stepped(p, g, scale, -lr)
    buffer = _kept(state, "momentum_buffer", _times(buffer, momentum) + g / scale)
    return _plus_times(p, buffer, -lr)


def adagrad_start(p: Node, o: Options) -> State:
    """What Adagrad remembers before its first step."""
    state: State = {"step": Tensor(_scalar(0.0, _default_dtype()))}
    _memory(state, "sum", p, real(o["initial_accumulator_value"]))
    return state


def adagrad(p: Node, g: Node, state: State, o: Options) -> Node:
    first = real(o["initial_accumulator_value"])
    step = _counted(state)
    g = _decayed(p, g, o)
    total = _kept(state, "sum", _memory(state, "sum", p, first) + g * g)
    scale = _plus(F.sqrt(total), real(o["eps"]))
    return _stepped(p, g, scale, -(real(o["lr"]) / (1 + (step - 1) * real(o["lr_decay"]))))


def adadelta(p: Node, g: Node, state: State, o: Options) -> Node:
    _counted(state)
    rho, eps = real(o["rho"]), real(o["eps"])
    g = _decayed(p, g, o)
    square = _averaged_square(_memory(state, "square_avg", p), g, rho)
    _kept(state, "square_avg", square)
    before = _memory(state, "acc_delta", p)
    delta = F.sqrt(_plus(before, eps)) / F.sqrt(_plus(square, eps)) * g
    _kept(state, "acc_delta", _averaged_square(before, delta, rho))
    return _plus_times(p, delta, -real(o["lr"]))


def rprop(p: Node, g: Node, state: State, o: Options) -> Node:
    _counted(state)
    minus, plus = map(real, o["etas"])
    low, high = map(real, o["step_sizes"])
    sign = g * _memory(state, "prev", p)
    zero = number(0.0)
    turned, kept = F.lt(sign, zero), F.gt(sign, zero)
    factor = F.where(kept, number(plus, g.dtype), F.where(turned, number(minus, g.dtype), 1.0))
    size = F.clamp(_memory(state, "step_size", p, real(o["lr"])) * factor, low, high)
    _kept(state, "step_size", size)
    g = F.where(turned, F.zeros_like(g), g)
    _kept(state, "prev", g)
    return p - F.sign(g) * size


def asgd(p: Node, g: Node, state: State, o: Options) -> Node:
    lr, lambd = real(o["lr"]), real(o["lambd"])
    kind = _default_dtype()
    step = _counted(state)
    if "eta" not in state:
        _kept(state, "eta", _scalar(lr, kind))
        _kept(state, "mu", _scalar(1.0, kind))
    eta, mu = real(state["eta"]), real(state["mu"])
    average = _memory(state, "ax", p)
    g = _decayed(p, g, o)
    p = _plus_times(_times(p, 1 - lambd * eta), g, -eta)
    distance = p - average
    _kept(state, "ax", F.alias(p) if mu == 1 else _plus_times(average, distance, mu))
    decayed = lr / ((1 + lambd * lr * step) ** real(o["alpha"]))
    _kept(state, "eta", _scalar(decayed, kind))
    _kept(state, "mu", _scalar(1 / max(1, step - real(o["t0"])), kind))
    return p
