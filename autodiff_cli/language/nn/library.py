"""What the library's files call besides the language: declaring and drawing parameters, checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from ...autograd.calls import call_ops
from ...autograd.random.counts import binomial, dirichlet, standard_gamma
from ...autograd.random.initial_values import fans, kaiming_std
from ...autograd.reverse import Pass
from ...autograd.tensor import Tensor, new_leaf
from ...errors import fail, fault
from ...graph.dtypes import is_float
from ...graph.op import Op, constant, value_of
from ...graph.params import BindError, to_dtype, to_int, type_name
from ...graph.registry import F
from ...graph.sizes import check_size
from ...graph.state import STATE, grad_mode
from ..random.generators import default_stream
from ..values.factories import Uninitialized
from ..values.formatting import formatted
from ..values.functions import call_value
from ..values.providers import from_above, late
from ..values.user_classes import Object, UserClass
from ..values.values import Builtin, builtins_of
from .modules import Module


def plain(value: Any) -> Any:
    """The number of a literal of a native file; other values as they are."""
    if isinstance(value, Tensor) and not value.shape and value.accumulator is not None:
        slot = value.accumulator
        if slot.literal:
            return int(value.item()) if slot.written_as_int else value.item()
    return value


# -- arguments ------------------------------------------------------------------------------------


def _require(condition: Any, words: str, help: Any, raises: str = "ValueError") -> None:
    """E205 in the words of PyTorch, which begin with a capital and end with a full stop, for what
    does not meet a condition; `help` is a text, or a function that makes one."""
    if not condition:
        first = words.partition(" ")[0]
        name = first.endswith(":") or not first[1:].islower()
        plain = (words if name else words[0].lower() + words[1:]).rstrip(".")
        text = help if isinstance(help, str) else call_value(help, [], {})
        raise fail("E205", plain, help=text, raises=raises, said=words)


def _divisor(most: int, *numbers: int) -> int:
    """The largest number up to `most` that divides all of some."""
    common = math.gcd(*numbers)
    return next((n for n in range(min(most, common), 1, -1) if common % n == 0), 1)


def _refuse(which: str, /, *facts: Any, **named: Any) -> None:
    raise fault(which, *facts, **named)


def _require_dims(condition: Any, message: str, raises: str = "ValueError") -> None:
    if not condition:
        raise fail(
            "E308",
            message,
            help="print(x.shape) before the call shows what is given",
            raises=raises,
        )


def _expect_dims(input: Any, *dims: int) -> None:
    """E308 for an input that has another number of dims."""
    n = len(input.shape)
    if n not in dims:
        raise fault("E308 input-dims", " or ".join([f"{d}D" for d in dims]), n)


def _whole(value: Any, name: str) -> int:
    """An int argument."""
    try:
        return to_int(plain(value) if not STATE.python else value)
    except BindError as error:
        digits = str(value).removesuffix(".0")
        advice = f"write `{name}={int(digits)}`" if digits.isdecimal() else "give an int"
        raise fault("E205 module-argument", name, error, advice=advice) from None


def _flag(value: Any, name: str) -> bool:
    """An argument that is True or False."""
    if not isinstance(value, bool):
        raise fault("E205 module-flag", name, type_name(value), wanted=bool(value))
    return value


def _sizes(value: Any, name: str) -> tuple[int, ...]:
    """A shape: an int or several."""
    if isinstance(value, list | tuple):
        return tuple([_whole(v, name) for v in value])
    return (_whole(value, name),)


def _spread(value: Any, count: int, name: str) -> tuple[int, ...]:
    """One int for each of `count` dims, or as many as given."""
    if not isinstance(value, list | tuple):
        return (_whole(value, name),) * count
    return _sizes(value, name)


# -- parameters -----------------------------------------------------------------------------------


def _declare(module: Module, name: str, shape: Any, dtype: Any = None) -> None:
    """Register a parameter of zeros, or None; its values are drawn by `reset_parameters`."""
    if shape is None:
        module.parameters[name] = None
        return
    kind = STATE.default_dtype if dtype is None else to_dtype(dtype)
    for size in shape:
        if size < 0:
            raise fault("E309 parameter-shape", size, tuple(shape))
    check_size(tuple(shape), kind)
    if not is_float(kind):
        raise fault("E306 only-floating-point-tensors-can", kind=kind)
    tensor = new_leaf(np.zeros(shape, kind), True)
    tensor.is_parameter = True
    module.parameters[name] = tensor


def _write(tensor: Tensor, values: np.ndarray) -> None:
    with grad_mode(False):
        tensor.overwrite(constant(np.ascontiguousarray(values, tensor.dtype)))


def _weight(module: Module) -> Tensor:
    tensor = module.parameters.get("weight")
    if tensor is None:
        raise fail("E207", f"a {module.cls.name} has no `weight`", help="it was removed")
    return tensor


def _within(tensors: Iterable[Tensor | None], bound: float) -> None:
    """Draw values at most so far from 0, a tensor after the other."""
    for tensor in tensors:
        if tensor is not None:
            _write(tensor, default_stream().uniform(tensor.shape, tensor.dtype, -bound, bound))


def _bound(fan: int) -> float:
    return 1 / math.sqrt(fan) if fan > 0 else 0.0


def _draw_weights(self: Module) -> None:
    """The weight of a linear map or a convolution, then its bias."""
    shape = _weight(self).shape
    if 0 not in shape:
        _within([_weight(self)], math.sqrt(3.0) * kaiming_std(shape, math.sqrt(5)))
    _within([self.parameters["bias"]], _bound(fans(shape)[0]))


def _draw_bilinear(self: Module) -> None:
    fan = _weight(self).shape[1]
    if fan <= 0:
        raise fault("E309 bilinear-needs-in1_features", in1_features=fan)
    _within(self.parameters.values(), _bound(fan))


def _draw_embedding(self: Module) -> None:
    """Standard normals, zeros in the padding row."""
    weight = _weight(self)
    values = default_stream().randn(weight.shape, weight.dtype)
    if self.fields["padding_idx"] is not None:
        values[self.fields["padding_idx"]] = 0
    _write(weight, values)


# -- distributions: copies of themselves, draws that have no function of PyTorch's -----------------


def _fresh_copy(value: Object) -> Object:
    """Another value of the same class with the same fields."""
    made = value.cls.__new__(value.cls)
    made.fields.update(value.fields)
    return made


def _moving(op: Op, draw: Callable[..., np.ndarray], concentration: Tensor) -> Tensor:
    """A draw that knows how it moves with its parameter."""
    values = constant(draw(value_of(concentration.node), default_stream()))
    return Tensor(op(values, concentration.node))


def _binomial(count: Tensor, prob: Tensor) -> Tensor:
    counts, probs = value_of(count.node), value_of(prob.node)
    return Tensor(constant(binomial(counts, probs, default_stream())))


# -- modules that change ---------------------------------------------------------------------------


def _forget(module: Module, name: str) -> None:
    module._forget(name)


def _await_values(module: Module, begins: Any = True) -> list[tuple[str, Tensor, bool]]:
    """Parameters and running statistics have no values until the first input, or until they are
    loaded; what is stored, and whether it has waited until now."""
    stored = [
        (name, tensor, type(tensor) is Uninitialized)
        for name, tensor in (module.parameters | module.buffers).items()
        if tensor is not None
    ]
    for _, tensor, waits in stored:
        if waits or (begins and is_float(tensor.dtype)):
            tensor.__class__ = Uninitialized if begins else Tensor
    return stored


def _computed(module: Module, name: str) -> None:
    """An attribute is what its parametrizations give; the class gets a class below it for that."""
    cls = module.cls
    if not cls.name.startswith("Parametrized"):
        cls = UserClass(f"Parametrized{cls.name}", [cls], {})
        module.__class__ = cls  # type: ignore[assignment]  # a class below that of the module

    def value(self: Module) -> Any:
        part = self.modules["parametrizations"].modules[name]
        kept = STATE.parametrized
        if kept is None:
            return part.call([], {})
        if part not in kept:
            kept[part] = part.call([], {})
        return kept[part]

    def write(self: Module, value: Any) -> None:
        part = self.modules["parametrizations"].modules[name]
        call_value(part.get_attribute("right_inverse"), [value], {})

    cls.names[name] = property(Builtin(name, value), Builtin(name, write))


def _keep_computed(kept: Any) -> Any:
    """Keep what is computed in `kept`, or nothing for None; what kept it until now."""
    STATE.parametrized, before = kept, STATE.parametrized
    return before


def _plain_again(module: Module, name: str) -> None:
    del module.cls.names[name]
    if not module.cls.names:
        module.__class__ = module.cls.bases[0]


def _others(self: Module, **plain: Any) -> str:
    """Write the attributes that differ from their defaults, for `extra_repr`."""
    found = [(name, self.get_attribute(name)) for name in plain]
    return "".join([f", {n}={formatted(v, '')}" for n, v in found if v != plain[n]])


def _named(tensor: Tensor, name: str) -> Tensor:
    """The tensor, its backward function called so."""
    if tensor.requires_grad:
        tensor.node.mark().name = name
    return tensor


def _running_pass() -> tuple[int | None, bool, Any]:
    """The number of the backward that is running, whether it is told what for, and whether
    checkpoints are to stop early."""
    now, early = Pass.running, STATE.early_stop
    return (None, False, early) if now is None else (now.number, now.targets is not None, early)


_OF_DATA = "random_order some_order batches loaded default_collate default_convert"
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "running_pass": _running_pass,
    "named": _named,
    "others": _others,
    "become": lambda module, cls: setattr(module, "__class__", cls),
    "forget": _forget,
    "await_values": _await_values,
    "computed": _computed,
    "keep_computed": _keep_computed,
    "plain_again": _plain_again,
    "require": _require,
    "divisor": _divisor,
    "refuse": _refuse,
    "expect_dims": _expect_dims,
    "require_dims": _require_dims,
    "whole": _whole,
    "flag": _flag,
    "sizes": _sizes,
    "spread": _spread,
    "declare": _declare,
    "fill": lambda tensor, value: _write(tensor, np.full(tensor.shape, value)),
    "draw_weights": _draw_weights,
    "draw_bilinear": _draw_bilinear,
    "draw_embedding": _draw_embedding,
    "draw_recurrent": lambda self: _within(
        self.parameters.values(), _bound(self.fields["hidden_size"])
    ),
    "is_optimizer": lambda value: from_above("nn.optimizers.OPTIMIZER").has_instance(value),
    "deep_copy": late("python.copying.deep_copy"),
    "fields_of": lambda value: value.fields,
    "fresh_copy": _fresh_copy,
    "standard_gamma": lambda x: _moving(F.standard_gamma, standard_gamma, x),
    "sample_dirichlet": lambda x: _moving(F.sample_dirichlet, dirichlet, x),
    "binomial": _binomial,
    "normed_weight": lambda *args: call_ops([F.weight_norm], "weight_norm", args, {}),
    **{name: late(f"nn.datasets.{name}") for name in _OF_DATA.split()},
}

SUPPORT = builtins_of(_FUNCTIONS)
