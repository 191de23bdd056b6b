"""`torch.optim`: parameter groups, and steps that write new values into the parameters.

A step is recorded lazily, evaluated as a whole when it is complete, and then forgets how its values
came about: a loop of a million steps holds one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..autograd import optim
from ..autograd.optim import real
from ..autograd.tensor import GradSlot, Tensor
from ..engine.evaluate import evaluate, release
from ..errors import fail
from ..graph.node import Node
from ..graph.op import constant, value_of
from ..graph.registry import F
from ..graph.state import STATE, grad_mode
from .classes import Instance, UserClass
from .functions import call_value
from .library import plain
from .operations import items_of, kind_of, truth
from .text import represent, text
from .values import Builtin


class States(dict):
    """What an optimizer remembers of each parameter, empty where nobody looked before."""

    __slots__ = ()

    def __missing__(self, tensor: Any) -> dict[str, Any]:
        self[tensor] = made = {}  # type: dict[str, Any]
        return made

    def describe(self) -> str:
        return f"defaultdict(<class 'dict'>, {represent(dict(self))})"


# -- groups ---------------------------------------------------------------------------------------


def _initialize(self: Instance, params: Any, defaults: Any) -> None:
    self.fields["defaults"] = defaults
    self.fields["state"] = States()
    self.fields["param_groups"] = []
    if isinstance(params, Tensor):
        raise fail(
            "E205",
            f"an optimizer takes a list of parameters, not {kind_of(params)}",
            help="write `[w]`, `[w, b]` or `model.parameters()`",
        )
    found = list(items_of(params))
    if not found:
        raise fail(
            "E205",
            "the optimizer got an empty parameter list",
            help="give leaves: `[w, b]` or `model.parameters()`",
        )
    groups = found if isinstance(found[0], dict) else [{"params": found}]
    for group in groups:
        add_group(self, group)


def add_group(self: Instance, param_group: Any) -> None:
    """`add_param_group`: a group's options are those given, else the optimizer's."""
    if not isinstance(param_group, dict) or "params" not in param_group:
        raise fail(
            "E205",
            f"a parameter group is a dict with `params`, not {kind_of(param_group)}",
            help="write `{'params': [w], 'lr': 0.1}`",
        )
    given = param_group["params"]
    params = [given] if isinstance(given, Tensor) else list(items_of(given))
    if params and isinstance(params[0], tuple):
        param_group["param_names"] = [name for name, _ in params]
        params = [tensor for _, tensor in params]
    known = {id(p) for group in self.fields["param_groups"] for p in group["params"]}
    for tensor in params:
        _check_parameter(tensor, known)
    param_group["params"] = params
    for name, value in self.fields["defaults"].items():
        param_group.setdefault(name, value)
    self.fields["param_groups"].append(param_group)


def _check_parameter(tensor: Any, known: set[int]) -> None:
    if not isinstance(tensor, Tensor):
        raise fail(
            "E208", f"an optimizer takes tensors, not {kind_of(tensor)}", help="give leaves: `[w]`"
        )
    if not (tensor.is_leaf or isinstance(tensor.accumulator, GradSlot)):
        raise fail(
            "E411",
            "an optimizer cannot change a tensor that was computed",
            help="give leaves: `torch.tensor(..., requires_grad=True)` or `nn.Parameter(...)`",
            notes=("PyTorch: can't optimize a non-leaf Tensor",),
        )
    if id(tensor) in known:
        raise fail(
            "E205",
            "some parameters appear in more than one parameter group",
            help="put each tensor into one group",
        )


def clear_gradient(tensor: Tensor, keep: bool = False) -> None:
    """Forget a gradient, or make it zero."""
    grad = tensor.grad
    if grad is None:
        return
    if keep:
        with grad_mode(False):
            grad.overwrite(F.zeros(grad.shape, dtype=grad.dtype))
    elif tensor.accumulator is not None:
        tensor.accumulator.grad = None


def _zero_grad(self: Instance, set_to_none: Any = True) -> None:
    keep = not truth(set_to_none)
    for group in self.fields["param_groups"]:
        for tensor in group["params"]:
            clear_gradient(tensor, keep)


def _describe(self: Instance) -> str:
    lines = [f"{self.cls.name} ("]
    for i, group in enumerate(self.fields["param_groups"]):
        lines.append(("\n" if i else "") + f"Parameter Group {i}")
        lines.extend(f"    {k}: {text(group[k])}" for k in sorted(group) if k != "params")
    return "\n".join([*lines, ")"])


def _state_dict(self: Instance) -> dict[str, Any]:
    numbers: dict[int, int] = {}
    groups = []
    for group in self.fields["param_groups"]:
        for tensor in group["params"]:
            numbers.setdefault(id(tensor), len(numbers))
        shown = {k: v for k, v in group.items() if k != "params"}
        groups.append({**shown, "params": [numbers[id(t)] for t in group["params"]]})
    state = {numbers[id(t)]: s for t, s in self.fields["state"].items() if id(t) in numbers}
    return {"state": state, "param_groups": groups}


def _load_state_dict(self: Instance, state_dict: Any) -> None:
    from .module_state import deep_copy

    groups = self.fields["param_groups"]
    given = state_dict if isinstance(state_dict, dict) else {}
    saved_groups = deep_copy(given.get("param_groups", []))
    if [len(g["params"]) for g in saved_groups] != [len(g["params"]) for g in groups]:
        raise fail(
            "E210",
            "the state was made for other parameter groups",
            help="give what `state_dict()` of the same optimizer returned",
        )
    tensors = [t for group in groups for t in group["params"]]
    # The tensors of the state are shared, as in PyTorch.
    self.fields["state"] = States({tensors[n]: dict(s) for n, s in given["state"].items()})
    for group, saved in zip(groups, saved_groups, strict=True):
        group.update({k: v for k, v in saved.items() if k != "params"})


def _no_step(self: Instance, closure: Any = None) -> None:
    raise fail(
        "E207", f"`{self.cls.name}` defines no `step`", help="define `def step(self, closure=None):`"
    )


# -- steps ----------------------------------------------------------------------------------------


def _evaluated(closure: Any) -> Any:
    """The loss of a closure, which may differentiate."""
    if closure is None:
        return None
    with grad_mode(True):
        return call_value(closure, [], {})


def _step(rule: optim.Rule) -> Callable[..., Any]:
    def step(self: Instance, closure: Any = None) -> Any:
        loss = _evaluated(closure)
        states = self.fields["state"]
        changed: list[Node] = []
        with grad_mode(False):
            for group in self.fields["param_groups"]:
                sign = -1 if truth(group["maximize"]) else 1
                for tensor in group["params"]:
                    grad = tensor.grad
                    if grad is None:
                        continue
                    state = states.get(tensor, {})
                    g = grad.node
                    new = rule(tensor.node, F.neg(g) if sign < 0 else g, state, group)
                    if state:
                        states[tensor] = state
                    tensor.overwrite(new)
                    changed.append(new)
                    changed.append(g)
                    changed.extend([s.node for s in state.values() if isinstance(s, Tensor)])
        settle(changed)
        return loss

    return step


def settle(nodes: list[Node]) -> None:
    """Evaluate what a step made and let go of its history."""
    if STATE.batching:
        return
    evaluate(nodes)
    release(nodes, 0)


# -- L-BFGS ---------------------------------------------------------------------------------------


class _Parameters:
    """The parameters of L-BFGS as one flat array, and its closure."""

    def __init__(self, tensors: list[Tensor], closure: Any):
        self.tensors = tensors
        self.closure = closure

    def evaluate(self) -> tuple[float, np.ndarray]:
        loss = _evaluated(self.closure)
        return _number(loss), self.gradient()

    def gradient(self) -> np.ndarray:
        parts = []
        evaluate([t.grad.node for t in self.tensors if t.grad is not None])
        for tensor in self.tensors:
            grad = tensor.grad
            zeros = np.zeros(tensor.node.numel, tensor.dtype)
            parts.append(zeros if grad is None else np.ravel(value_of(grad.node)))
        return np.concatenate(parts)

    def position(self) -> np.ndarray:
        return np.concatenate([np.ravel(value_of(t.node)) for t in self.tensors])

    def move_to(self, x: np.ndarray) -> None:
        at = 0
        with grad_mode(False):
            for tensor in self.tensors:
                count = tensor.node.numel
                part = np.array(x[at : at + count], tensor.dtype).reshape(tensor.shape)
                tensor.overwrite(constant(part))
                at += count


def _number(loss: Any) -> float:
    value = real(loss)
    if not isinstance(value, int | float):
        raise fail(
            "E205",
            f"the closure of LBFGS must return the loss, not {kind_of(loss)}",
            help="end it with `return loss`",
        )
    return float(value)


def _lbfgs_step(self: Instance, closure: Any = None) -> Any:
    from ..autograd import lbfgs

    groups = self.fields["param_groups"]
    if closure is None:
        raise fail(
            "E205",
            "LBFGS evaluates the loss several times, `step` needs a closure",
            help="write `def closure(): opt.zero_grad(); loss = ...; loss.backward(); return loss`",
        )
    group = groups[0]
    parameters = _Parameters(group["params"], closure)
    if group["line_search_fn"] not in (None, "strong_wolfe"):
        raise fail("E205", "only 'strong_wolfe' is supported", help="line_search_fn='strong_wolfe'")
    states = self.fields["state"]
    state = states.setdefault(group["params"][0], {})
    loss = _evaluated(closure)
    first = _number(loss)
    options = {k: real(v) for k, v in group.items()}
    problem = lbfgs.Problem(parameters.evaluate, parameters.position, parameters.move_to)
    with np.errstate(all="ignore"):
        lbfgs.run(problem, first, parameters.gradient(), state, options)
    return loss


# -- the classes ----------------------------------------------------------------------------------

OPTIMIZER = UserClass(
    "Optimizer",
    [],
    {
        name: Builtin(name, function)
        for name, function in (
            ("__init__", _initialize),
            ("__repr__", _describe),
            ("add_param_group", add_group),
            ("zero_grad", _zero_grad),
            ("state_dict", _state_dict),
            ("load_state_dict", _load_state_dict),
            ("step", _no_step),
        )
    },
    None,
)
OPTIMIZER.fixed = True

_COMMON = {"foreach": None, "maximize": False, "differentiable": False}
_CAPTURED = {**_COMMON, "capturable": False}
_BETAS = (0.9, 0.999)

# Options in PyTorch's order with their defaults; those after the bar only by keyword.
_SIGNATURES: dict[str, tuple[Any, dict[str, Any], dict[str, Any]]] = {
    "SGD": (
        optim.sgd,
        {"lr": 1e-3, "momentum": 0, "dampening": 0, "weight_decay": 0, "nesterov": False},
        {**_COMMON, "fused": None},
    ),
    "Adam": (
        optim.adam,
        {"lr": 1e-3, "betas": _BETAS, "eps": 1e-8, "weight_decay": 0, "amsgrad": False},
        {**_CAPTURED, "fused": None, "decoupled_weight_decay": False},
    ),
    "AdamW": (
        optim.adam,
        {"lr": 1e-3, "betas": _BETAS, "eps": 1e-8, "weight_decay": 1e-2, "amsgrad": False},
        {**_CAPTURED, "fused": None},
    ),
    "Adamax": (
        optim.adamax,
        {"lr": 2e-3, "betas": _BETAS, "eps": 1e-8, "weight_decay": 0, "foreach": None},
        {"maximize": False, "differentiable": False, "capturable": False},
    ),
    "NAdam": (
        optim.nadam,
        {
            "lr": 2e-3,
            "betas": _BETAS,
            "eps": 1e-8,
            "weight_decay": 0,
            "momentum_decay": 4e-3,
            "decoupled_weight_decay": False,
        },
        _CAPTURED,
    ),
    "RAdam": (
        optim.radam,
        {
            "lr": 1e-3,
            "betas": _BETAS,
            "eps": 1e-8,
            "weight_decay": 0,
            "decoupled_weight_decay": False,
        },
        _CAPTURED,
    ),
    "RMSprop": (
        optim.rmsprop,
        {
            "lr": 1e-2,
            "alpha": 0.99,
            "eps": 1e-8,
            "weight_decay": 0,
            "momentum": 0,
            "centered": False,
            "capturable": False,
            **_COMMON,
        },
        {},
    ),
    "Adagrad": (
        optim.adagrad,
        {
            "lr": 1e-2,
            "lr_decay": 0,
            "weight_decay": 0,
            "initial_accumulator_value": 0,
            "eps": 1e-10,
            "foreach": None,
        },
        {"maximize": False, "differentiable": False, "fused": None},
    ),
    "Adadelta": (
        optim.adadelta,
        {"lr": 1.0, "rho": 0.9, "eps": 1e-6, "weight_decay": 0, "foreach": None},
        {"capturable": False, "maximize": False, "differentiable": False},
    ),
    "Rprop": (
        optim.rprop,
        {"lr": 1e-2, "etas": (0.5, 1.2), "step_sizes": (1e-6, 50)},
        _CAPTURED,
    ),
    "ASGD": (
        optim.asgd,
        {"lr": 1e-2, "lambd": 1e-4, "alpha": 0.75, "t0": 1e6, "weight_decay": 0, **_CAPTURED},
        {},
    ),
    "LBFGS": (
        None,
        {
            "lr": 1,
            "max_iter": 20,
            "max_eval": None,
            "tolerance_grad": 1e-7,
            "tolerance_change": 1e-9,
            "history_size": 100,
            "line_search_fn": None,
        },
        {},
    ),
}


def _constructor(name: str) -> Callable[..., None]:
    _, positional, keywords = _SIGNATURES[name]
    order = list(positional)
    signature = f"{name}(params, " + ", ".join(f"{k}={text(v)}" for k, v in positional.items()) + ")"

    def wrong(message: str) -> Exception:
        return fail("E205", f"`{name}` {message}", help=f"it is `{signature}`")

    def initialize(self: Instance, *args: Any, **kwargs: Any) -> None:
        if args:
            params, args = args[0], args[1:]
        elif "params" in kwargs:
            params = kwargs.pop("params")
        else:
            raise wrong("misses its argument `params`")
        if len(args) > len(order):
            raise wrong(f"takes {len(order) + 1} arguments but {len(args) + 1} were given")
        given = dict(zip(order, args, strict=False))
        for key, value in kwargs.items():
            if key in given:
                raise wrong(f"got several values for argument `{key}`")
            if key not in positional and key not in keywords:
                raise wrong(f"got an unexpected keyword argument `{key}`")
            given[key] = value
        options = {**positional, **keywords, **{k: plain(v) for k, v in given.items()}}
        _check_options(name, options)
        if name == "AdamW":
            options["decoupled_weight_decay"] = True
        if name == "LBFGS" and options["max_eval"] is None:
            options["max_eval"] = options["max_iter"] * 5 // 4
        _initialize(self, params, options)
        if name == "Adagrad":
            for group in self.fields["param_groups"]:
                for tensor in group["params"]:
                    self.fields["state"][tensor] = optim.adagrad_start(tensor.node, group)
        if name == "LBFGS" and len(self.fields["param_groups"]) != 1:
            raise fail(
                "E205", "LBFGS takes one parameter group", help="give a list of tensors: `[w, b]`"
            )

    return initialize


_NOT_NEGATIVE = ("lr", "eps", "weight_decay", "momentum", "alpha", "lr_decay", "rho")
_WORDS = {"lr": "learning rate", "eps": "epsilon"}


def _check_options(name: str, options: dict[str, Any]) -> None:
    for key in _NOT_NEGATIVE:
        if key not in options:
            continue
        value = real(options[key])
        if not isinstance(value, int | float):
            raise fail(
                "E205",
                f"`{name}` argument `{key}` must be a number, not {kind_of(value)}",
                help=f"for example `{key}=0.1`",
            )
        if not value >= 0:
            raise fail(
                "E205",
                f"invalid {_WORDS.get(key, key)}: {value}",
                help=f"`{key}` is not negative",
            )
    for i, beta in enumerate(_pair(name, "betas", options)):
        if not 0 <= beta < 1:
            raise fail(
                "E205", f"invalid beta parameter at index {i}: {beta}", help="betas=(0.9, 0.999)"
            )
    etas = _pair(name, "etas", options)
    if etas and not 0 < etas[0] < 1 < etas[1]:
        raise fail("E205", f"invalid eta values: {etas[0]}, {etas[1]}", help="etas=(0.5, 1.2)")
    if options.get("nesterov") and (real(options["momentum"]) <= 0 or real(options["dampening"])):
        raise fail(
            "E205",
            "nesterov momentum requires a momentum and zero dampening",
            help="write `momentum=0.9, nesterov=True`",
        )


def _pair(name: str, key: str, options: dict[str, Any]) -> tuple[Any, ...]:
    if key not in options:
        return ()
    values = options[key]
    if not isinstance(values, list | tuple) or len(values) != 2:
        raise fail("E205", f"`{name}` argument `{key}` must be two numbers", help=f"{key}=(0.5, 1.2)")
    pair = tuple(real(v) for v in values)
    if not all(isinstance(v, int | float) for v in pair):
        raise fail("E205", f"`{name}` argument `{key}` must be two numbers", help=f"{key}=(0.5, 1.2)")
    return pair


def _class(name: str) -> UserClass:
    rule = _SIGNATURES[name][0]
    step = _lbfgs_step if rule is None else _step(rule)
    names = {"__init__": Builtin(name, _constructor(name)), "step": Builtin("step", step)}
    made = UserClass(name, [OPTIMIZER], names, None)
    made.fixed = True
    return made


CLASSES: dict[str, UserClass] = {"Optimizer": OPTIMIZER, **{n: _class(n) for n in _SIGNATURES}}
# A `Adam` instance is what AdamW makes too.
CLASSES["AdamW"].bases = [CLASSES["Adam"]]
CLASSES["AdamW"].mro = [CLASSES["AdamW"], CLASSES["Adam"], OPTIMIZER]
