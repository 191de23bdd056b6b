"""Random numbers: `torch.rand` and its kin, and the tensor methods that fill in place.

Draws happen at the call, in program order, so that a seeded program sees PyTorch's numbers; what
they give are constants, or leaves with `requires_grad=True`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from ...autograd.batching.examples import drawn
from ...autograd.random.counts import binomial
from ...autograd.tensor import Tensor
from ...errors import fault
from ...graph.dtypes import INT64, is_float
from ...graph.op import constant, value_of
from ...graph.params import (
    check_device,
    given_twice,
    to_dtype,
    to_float,
    to_int,
    to_shape,
    to_size,
    unknown_keyword,
)
from ...graph.registry import F
from ...graph.shapes import broadcast_shapes
from ...graph.state import STATE
from ...graph.strides import laid_out_as
from ..values.factories import with_grad
from ..values.operations import flag, truth
from ..values.out_arguments import written
from ..values.values import builtins_of
from . import dropouts, initializers
from .generators import DEFAULT, GENERATOR_TYPE, SEEDS, stream_of
from .random_arguments import (
    converted,
    fill,
    in_memory_order,
    memory_order,
    normal_,
    normals,
    number_argument,
    overwritten,
    tensor_argument,
    uniform_,
)

_IGNORED = ("layout", "pin_memory", "memory_format")


# -- arguments ------------------------------------------------------------------------------------


class Options:
    """What every factory takes by keyword."""

    __slots__ = ("dtype", "requires_grad", "stream")

    def __init__(self, name: str, options: dict[str, Any], default: np.dtype):
        options = dict(options)
        check_device(options.pop("device", None))
        self.stream = stream_of(options.pop("generator", None))
        dtype = options.pop("dtype", None)
        self.dtype = default if dtype is None else converted(name, "dtype", to_dtype, dtype)
        wanted = options.pop("requires_grad", False)
        self.requires_grad = wanted is not None and flag("requires_grad", wanted)
        for unknown in options:
            if unknown not in _IGNORED:
                takes = ("dtype", "requires_grad", "generator", "device")
                raise fault("E205 unknown-keyword", name, unknown_keyword(unknown, takes))


def _taken(name: str, args: tuple[Any, ...], options: dict[str, Any]) -> tuple[int, ...]:
    """A size given one by one, as a tuple, or as `size=`."""
    if "size" in options:
        if args:
            raise fault("E205 given-twice", name, given_twice("size"), "2, 3")
        return converted(name, "size", to_shape, options.pop("size"))
    if not args:
        raise fault("E205 misses-argument-size", name=name)
    return converted(name, "size", to_size, args[0] if len(args) == 1 else args)


# -- factories ------------------------------------------------------------------------------------


def _of_size(name: str) -> Callable[..., Tensor]:
    """`rand` or `randn`."""

    def run(*size: Any, **options: Any) -> Tensor:
        shape = _taken(name, size, options)
        o = Options(name, options, STATE.default_dtype)
        draw = getattr(o.stream, name)
        return _drawn(shape, lambda size: draw(size, o.dtype), o.requires_grad)

    return run


def _drawn(
    shape: tuple[int, ...], draw: Callable[[tuple[int, ...]], np.ndarray], requires_grad: bool
) -> Tensor:
    if STATE.different:
        return Tensor(drawn(shape, draw))
    if STATE.recorder is not None:
        return STATE.recorder.draw(lambda: draw(shape), requires_grad)
    return with_grad(draw(shape), requires_grad)


def _empty(*size: Any, **options: Any) -> Tensor:
    """PyTorch leaves these numbers undefined; here they are zeros."""
    shape = _taken("empty", size, options)
    o = Options("empty", options, STATE.default_dtype)
    return _required(Tensor(F.zeros(shape, dtype=o.dtype)), o.requires_grad)


def _required(tensor: Tensor, requires_grad: bool) -> Tensor:
    if requires_grad:
        tensor.set_requires_grad(True)
    return tensor


def _randint(*args: Any, **options: Any) -> Tensor:
    """`randint(high, size)`, `randint(low, high, size)`, each also by keyword."""
    names = (
        ("high", "size")
        if len(args) + sum(n in options for n in ("low", "high", "size")) == 2
        else ("low", "high", "size")
    )
    if len(args) > len(names):
        raise fault("E205 randint-takes-most-arguments", len(args))
    given = dict(zip(names, args, strict=False))
    for name in ("low", "high", "size"):
        if name in options:
            if name in given:
                raise fault("E205 given-twice", "randint", given_twice(name), "0, 10, (3,)")
            given[name] = options.pop(name)
    for name in names:
        if name not in given:
            raise fault("E205 randint-misses-argument", name=name)
    low = converted("randint", "low", to_int, given.get("low", 0))
    high = converted("randint", "high", to_int, given["high"])
    shape = converted("randint", "size", to_shape, given["size"])
    o = Options("randint", options, INT64)
    return _drawn(shape, lambda size: o.stream.randint(low, high, size, o.dtype), o.requires_grad)


def _randperm(n: Any, **options: Any) -> Tensor:
    o = Options("randperm", options, INT64)
    count = converted("randperm", "n", to_int, n)

    def draw(shape: tuple[int, ...]) -> np.ndarray:
        rows = [o.stream.randperm(count, o.dtype) for _ in range(math.prod(shape[:-1]))]
        return np.reshape(rows, shape)

    return _drawn((count,), draw, o.requires_grad)


def _randn_like(input: Any, **options: Any) -> Tensor:
    node = tensor_argument("randn_like", input).node
    return _like(
        "randn_like",
        input,
        options,
        lambda o, shape: (
            o.stream.randn(shape, o.dtype)
            if STATE.different
            else normals(o.stream, node, shape, o.dtype, 0.0, 1.0)
        ),
    )


def _randint_like(input: Any, low: Any = None, high: Any = None, **options: Any) -> Tensor:
    if high is None:
        low, high = 0, low
    start = converted("randint_like", "low", to_int, 0 if low is None else low)
    stop = converted("randint_like", "high", to_int, high)
    return _like(
        "randint_like",
        input,
        options,
        lambda o, shape: o.stream.randint(start, stop, shape, o.dtype),
    )


def _empty_like(input: Any, **options: Any) -> Tensor:
    tensor = tensor_argument("empty_like", input)
    o = Options("empty_like", options, tensor.dtype)
    return _required(Tensor(F.zeros_like(tensor.node, dtype=o.dtype)), o.requires_grad)


def _like(
    name: str,
    input: Any,
    options: dict[str, Any],
    draw: Callable[[Options, tuple[int, ...]], np.ndarray],
) -> Tensor:
    tensor = tensor_argument(name, input)
    o = Options(name, options, tensor.dtype)
    if STATE.different:
        return Tensor(drawn(tuple(tensor.shape), lambda size: draw(o, size)))
    like = tensor.node
    made = with_grad(in_memory_order(like, lambda shape: draw(o, shape)), o.requires_grad)
    laid_out_as(like, made.node)
    return made


# -- distributions --------------------------------------------------------------------------------


def _result(values: np.ndarray, grad_fn: str, *parameters: Tensor) -> Tensor:
    """A drawn constant, which has zero gradients towards parameters that require grad."""
    node = constant(values)
    if not STATE.grad or not any(p.requires_grad for p in parameters):
        return Tensor(node)
    return Tensor(
        F.drawn(
            node, parameters[0].node, parameters[1].node if len(parameters) > 1 else None, grad_fn
        )
    )


def _array(tensor: Tensor) -> np.ndarray:
    return np.asarray(value_of(tensor.node))


def _normal(mean: Any = 0.0, std: Any = 1.0, size: Any = None, **options: Any) -> Tensor:
    if not isinstance(mean, Tensor) and not isinstance(std, Tensor):
        if size is None:
            raise fault("E205 normal-two-numbers-misses")
        shape = converted("normal", "size", to_shape, size)
        o = Options("normal", options, STATE.default_dtype)
        center, width = (
            converted("normal", "mean", to_float, mean),
            converted("normal", "std", to_float, std),
        )
        return with_grad(o.stream.normal(center, width, shape, o.dtype), o.requires_grad)
    if size is not None:
        raise fault("E205 normal-takes-size-only")
    stream = Options("normal", options, STATE.default_dtype).stream
    if not isinstance(std, Tensor):
        values = stream.normal(_array(mean), converted("normal", "std", to_float, std))
        return _result(values, "NormalBackward1", mean)
    if not isinstance(mean, Tensor):
        values = stream.normal(converted("normal", "mean", to_float, mean), _array(std))
        return _result(values, "NormalBackward2", std)
    return _result(stream.normal(_array(mean), _array(std)), "NormalBackward3", mean, std)


def _bernoulli(input: Any, p: Any = None, *, generator: Any = None) -> Tensor:
    tensor = tensor_argument("bernoulli", input)
    stream = stream_of(generator)
    if p is None:
        return _result(stream.bernoulli(_array(tensor)), "BernoulliBackward0", tensor)
    chance = converted("bernoulli", "p", to_float, p)
    return Tensor(
        constant(
            in_memory_order(
                tensor.node, lambda shape: stream.bernoulli(chance, shape, tensor.dtype)
            )
        )
    )


def _multinomial(
    input: Any, num_samples: Any, replacement: Any = False, *, generator: Any = None
) -> Tensor:
    tensor = tensor_argument("multinomial", input)
    count = converted("multinomial", "num_samples", to_int, num_samples)
    stream, node = stream_of(generator), tensor.node

    def exponentials(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        return in_memory_order(node, lambda shape: stream.exponential(shape, dtype))

    found = stream.multinomial(_array(tensor), count, truth(replacement), exponentials)
    return Tensor(constant(found))


def _poisson(input: Any, generator: Any = None) -> Tensor:
    tensor = tensor_argument("poisson", input)
    return _result(stream_of(generator).poisson(_array(tensor)), "PoissonBackward0", tensor)


def _binomial(count: Any, prob: Any, generator: Any = None) -> Tensor:
    numbers, chances = tensor_argument("binomial", count), tensor_argument("binomial", prob)
    for what, tensor in (("count", numbers), ("prob", chances)):
        if not is_float(tensor.dtype):
            raise fault("E306 binomial-needs-floats", what, tensor.dtype.name)
    broadcast_shapes(numbers.shape, chances.shape)
    counts, probs = np.broadcast_arrays(_array(numbers), _array(chances))
    return _result(binomial(counts, probs, stream_of(generator)), "BinomialBackward0", chances)


def _with_out(name: str, draw: Callable[..., Any]) -> Callable[..., Any]:
    """The function with PyTorch's `out=`."""

    def run(*args: Any, out: Any = None, **kwargs: Any) -> Any:
        found = draw(*args, **kwargs)
        return found if out is None else written(name, found, out)

    return run


# -- in place -------------------------------------------------------------------------------------


def _random_(tensor: Tensor, from_: Any = None, to: Any = ..., *, generator: Any = None) -> Tensor:
    """`random_()`, `random_(to)`, `random_(from, to)`."""
    name = "RandomBackward0"
    if to is ...:
        name = "RandomBackward2" if from_ is None else "RandomBackward1"
        from_, to = None, from_
    low = None if from_ is None else converted("random_", "from", to_int, from_)
    high = None if to is None else converted("random_", "to", to_int, to)
    stream = stream_of(generator)
    return fill(tensor, name, lambda shape: stream.random(shape, tensor.dtype, low, high))


def _bernoulli_(tensor: Tensor, p: Any = 0.5, *, generator: Any = None) -> Tensor:
    stream = stream_of(generator)
    if not isinstance(p, Tensor):
        chance = number_argument("bernoulli_", "p", p)
        return fill(
            tensor,
            "BernoulliBackward2",
            lambda shape: stream.bernoulli(chance, shape, tensor.dtype),
        )
    node = tensor.node
    chances = _array(Tensor(F.expand(p.node, node.shape)))
    order = memory_order(node)
    ordered = chances if order is None else chances.transpose(order)
    return fill(
        tensor, "BernoulliBackward1", lambda shape: stream.bernoulli(ordered, shape, node.dtype)
    )


def _exponential_(tensor: Tensor, lambd: Any = 1.0, *, generator: Any = None) -> Tensor:
    return overwritten("exponential", tensor, generator, lambd=lambd)


def _geometric_(tensor: Tensor, p: Any, *, generator: Any = None) -> Tensor:
    return overwritten("geometric", tensor, generator, p=p)


RANDOM_METHODS: dict[str, Callable[..., Any]] = {
    "uniform_": uniform_,
    "normal_": normal_,
    "random_": _random_,
    "bernoulli_": _bernoulli_,
    "exponential_": _exponential_,
    "cauchy_": lambda tensor, median=0.0, sigma=1.0, *, generator=None: overwritten(
        "cauchy", tensor, generator, median=median, sigma=sigma
    ),
    "geometric_": _geometric_,
    "log_normal_": lambda tensor, mean=1.0, std=2.0, *, generator=None: overwritten(
        "log_normal", tensor, generator, mean=mean, std=std
    ),
    "bernoulli": _bernoulli,
    "multinomial": _multinomial,
}


def _functions() -> dict[str, Callable[..., Any]]:
    draws: dict[str, Callable[..., Any]] = {
        "rand": _of_size("rand"),
        "randn": _of_size("randn"),
        "randint": _randint,
        "randperm": _randperm,
        "rand_like": lambda input, **options: _like(
            "rand_like", input, options, lambda o, shape: o.stream.rand(shape, o.dtype)
        ),
        "randn_like": _randn_like,
        "randint_like": _randint_like,
        "empty": _empty,
        "empty_like": _empty_like,
        "normal": _normal,
        "bernoulli": _bernoulli,
        "multinomial": _multinomial,
        "poisson": _poisson,
        "binomial": _binomial,
    }
    return {
        **{name: _with_out(name, draw) for name, draw in draws.items()},
        **dropouts.functions(plain=True),
        **{f"nn.functional.{name}": run for name, run in dropouts.functions(plain=False).items()},
        **SEEDS,
        **{f"random.{name}": function for name, function in SEEDS.items()},
        **{f"nn.init.{name}": function for name, function in initializers.FUNCTIONS.items()},
    }


RANDOM: dict[str, Any] = {
    **builtins_of(_functions()),
    "Generator": GENERATOR_TYPE,
    "default_generator": DEFAULT,
}
