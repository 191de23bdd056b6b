"""`torch.optim`: parameter groups, and steps that write new values into the parameters.

A step is recorded lazily, evaluated as a whole when it is complete, and then forgets how its values
came about: a loop of a million steps holds one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any

import numpy as np

from ...autograd.optim import rules
from ...autograd.optim.rules import item_of
from ...autograd.tensor import GradSlot, Tensor
from ...engine.evaluate import evaluate, release
from ...errors import fault
from ...graph.node import Node
from ...graph.op import constant, value_of
from ...graph.registry import F
from ...graph.state import STATE, grad_mode
from ..python.builtins import TYPES
from ..values.dialect import kind_of
from ..values.formatting import formatted
from ..values.functions import call_value
from ..values.housekeeping import HOUSEKEEPING
from ..values.operations import items_of, truth
from ..values.user_classes import Object, UserClass, library_class, special
from ..values.values import Handle
from .optimizer_options import SIGNATURES, number_options, options_of


class _Needed:
    """`torch.optim.optimizer.required`: stands for an option that every group must give."""

    __slots__ = ()

    def describe(self) -> str:
        return "<required parameter>"


NEEDED = _Needed()


def _states(values: Any = ()) -> defaultdict[Any, Any]:
    """What an optimizer remembers of each parameter, empty where nobody looked before."""
    return defaultdict(TYPES["dict"], values)


# -- groups ---------------------------------------------------------------------------------------


def _initialize(self: Object, params: Any, defaults: Any) -> None:
    self.fields["defaults"] = defaults
    self.fields["state"] = _states()
    self.fields["param_groups"] = []
    if isinstance(params, Tensor | Object):
        raise fault("E205 optimizer-takes-list-parameters", kind_of(params))
    found = list(items_of(params))
    if not found:
        raise fault("E205 optimizer-got-empty-parameter")
    groups = found if isinstance(found[0], dict) else [{"params": found}]
    for group in groups:
        add_group(self, group)


def add_group(self: Object, param_group: Any) -> None:
    """`add_param_group`: a group's options are those given, else the optimizer's."""
    if not isinstance(param_group, dict):
        raise fault("E205 parameter-group-dict-params", kind_of(param_group))
    if "params" not in param_group:
        raise fault("E205 parameter-group-misses-params")
    given = param_group["params"]
    if isinstance(given, set):
        raise fault("E205 set-parameters-no-order")
    params: list[Any] = [given] if isinstance(given, Tensor) else list(items_of(given))
    named = sum(isinstance(p, tuple) for p in params)
    if 0 < named < len(params):
        raise fault("E205 parameters-with-without-names")
    if named:
        param_group["param_names"] = [name for name, _ in params]
        params = [tensor for _, tensor in params]
    known = {id(p) for group in self.fields["param_groups"] for p in group["params"]}
    for tensor in params:
        _check_parameter(tensor, known, truth(self.fields["defaults"].get("differentiable")))
    param_group["params"] = params
    for name, value in self.fields["defaults"].items():
        if param_group.setdefault(name, value) is NEEDED:
            raise fault("E205 parameter-group-didn-t", name)
    self.fields["param_groups"].append(param_group)


def _check_parameter(tensor: Any, known: set[int], differentiable: bool) -> None:
    if not isinstance(tensor, Tensor):
        raise fault("E208 optimizer-takes-tensors", kind_of(tensor))
    if not (differentiable or tensor.is_leaf or isinstance(tensor.accumulator, GradSlot)):
        raise fault("E411 optimizer-cannot-change-tensor")
    if id(tensor) in known:
        raise fault("E205 some-parameters-appear-more")


def clear_gradient(tensor: Tensor, keep: bool) -> None:
    """Forget a gradient, or make it zero."""
    grad = tensor.grad
    if grad is None:
        return
    if keep:
        with grad_mode(False):
            grad.overwrite(F.zeros(grad.shape, dtype=grad.dtype))
    elif tensor.accumulator is not None:
        tensor.accumulator.grad = None


def _zero_grad(self: Object, set_to_none: Any = True) -> None:
    keep = not truth(set_to_none)
    for group in self.fields["param_groups"]:
        for tensor in group["params"]:
            clear_gradient(tensor, keep)


def _describe(self: Object) -> str:
    lines = [f"{self.cls.name} ("]
    for i, group in enumerate(self.fields["param_groups"]):
        lines.append(("\n" if i else "") + f"Parameter Group {i}")
        lines.extend(f"    {k}: {formatted(group[k], '')}" for k in sorted(group) if k != "params")
    return "\n".join([*lines, ")"])


def _hooks(self: Object, when: str) -> list[Any]:
    return list(self.fields.get(f"_optimizer_{when}_hooks", {}).values())


def _called(self: Object, when: str, *args: Any) -> None:
    for hook in _hooks(self, when):
        call_value(hook, [self, *args], {})


def _state_dict(self: Object) -> dict[str, Any]:
    _called(self, "state_dict_pre")
    numbers: dict[int, int] = {}
    groups = []
    for group in self.fields["param_groups"]:
        for tensor in group["params"]:
            numbers.setdefault(id(tensor), len(numbers))
        shown = {k: v for k, v in group.items() if k != "params"}
        groups.append({**shown, "params": [numbers[id(t)] for t in group["params"]]})
    state = {numbers[id(t)]: s for t, s in self.fields["state"].items() if id(t) in numbers}
    found = {"state": state, "param_groups": groups}
    _called(self, "state_dict_post", found)
    return found


def _load_state_dict(self: Object, state_dict: Any) -> None:
    from ..python.copying import deep_copy

    groups = self.fields["param_groups"]
    if not isinstance(state_dict, dict) or "param_groups" not in state_dict:
        kind = "KeyError" if isinstance(state_dict, dict) else "AttributeError"
        raise fault("E210 state-dict-param_groups", kind_of(state_dict), kind)
    _called(self, "load_state_dict_pre", state_dict)
    saved_groups = deep_copy(state_dict["param_groups"])
    if len(saved_groups) != len(groups):
        raise fault("E210 state-parameter-groups", len(saved_groups), len(groups))
    if [len(g["params"]) for g in saved_groups] != [len(g["params"]) for g in groups]:
        raise fault("E210 state-was-made-other")
    tensors = [t for group in groups for t in group["params"]]
    # The tensors of the state are shared, as in PyTorch.
    self.fields["state"] = _states({tensors[n]: dict(s) for n, s in state_dict["state"].items()})
    for group, saved in zip(groups, saved_groups, strict=True):
        group.update({k: v for k, v in saved.items() if k != "params"})
    state = {"state": self.fields["state"], "param_groups": groups}
    call_value(special(self, "__setstate__"), [state], {})
    _called(self, "load_state_dict_post")


def _no_step(self: Object, closure: Any = None) -> None:
    raise fault("E207 defines-no-step", self.cls.name)


# -- steps ----------------------------------------------------------------------------------------


def _evaluated(closure: Any) -> Any:
    """The loss of a closure, which may differentiate."""
    if closure is None:
        return None
    with grad_mode(True):
        return call_value(closure, [], {})


def _step(rule: rules.Rule) -> Callable[..., Any]:
    def step(self: Object, closure: Any = None) -> Any:
        loss = _evaluated(closure)
        before = Node.counter()
        states = self.fields["state"]
        # PyTorch asks for all buffers first: a parameter given twice begins with two.
        known = {**states} if rule is rules.sgd else states
        changed: list[Node] = []
        recorded = self.fields["defaults"].get("differentiable")
        if not isinstance(recorded, bool):
            raise fault("E205 differentiable-true-false")
        with grad_mode(recorded):
            for group in self.fields["param_groups"]:
                maximize = truth(group["maximize"])
                captured = truth(group.get("capturable", False))
                for tensor in group["params"]:
                    grad = tensor.grad
                    if grad is None:
                        continue
                    if captured:
                        raise fault("E205 capturable-on-cpu")
                    state = known.get(tensor, {})
                    g = grad.node
                    refused = None
                    try:
                        new = rule(tensor.node, F.neg(g) if maximize else g, state, group)
                    except (TypeError, ValueError) as error:
                        refused = error
                    if refused is not None:
                        number_options(self.cls.name, group)
                        raise refused
                    if state:
                        states[tensor] = state
                    (tensor.write if recorded else tensor.overwrite)(new)
                    changed.append(new)
                    changed.append(g)
                    changed.extend([s.node for s in state.values() if isinstance(s, Tensor)])
        if not recorded:
            settle(changed)
        HOUSEKEEPING.excuse(Node.counter() - before)
        return loss

    return step


def settle(nodes: list[Node]) -> None:
    """Evaluate what a step made and let go of its history."""
    if STATE.batching or STATE.recorder is not None:
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
    value = item_of(loss)
    if not isinstance(value, int | float):
        raise fault("E205 closure-lbfgs-return-loss", kind_of(loss))
    return float(value)


def _lbfgs_step(self: Object, closure: Any = None) -> Any:
    from ...autograd.optim import lbfgs

    groups = self.fields["param_groups"]
    if closure is None:
        raise fault("E205 lbfgs-evaluates-loss-several")
    group = groups[0]
    parameters = _Parameters(group["params"], closure)
    if group["line_search_fn"] not in (None, "strong_wolfe"):
        raise fault("E205 only-strong_wolfe-supported")
    states = self.fields["state"]
    state = states.setdefault(group["params"][0], {})
    loss = _evaluated(closure)
    first = _number(loss)
    options = {k: item_of(v) for k, v in group.items()}
    problem = lbfgs.Problem(parameters.evaluate, parameters.position, parameters.move_to)
    arrays = {name: _numbers(value) for name, value in state.items()}
    with np.errstate(all="ignore"):
        lbfgs.run(problem, first, parameters.gradient(), arrays, options)
    state.update((name, _tensors(value)) for name, value in arrays.items())
    return loss


def _numbers(value: Any) -> Any:
    """A state as L-BFGS computes with it."""
    if isinstance(value, list):
        return list(map(_numbers, value))
    return value_of(value.node)[()] if isinstance(value, Tensor) else value


def _tensors(value: Any) -> Any:
    """A state as programs see it."""
    if isinstance(value, list):
        return list(map(_tensors, value))
    if isinstance(value, np.ndarray | np.generic):
        return Tensor(constant(np.asarray(value)))
    return value


# -- hooks ---------------------------------------------------------------------------------------

_MOMENTS = [
    f"{what}_{at}" for what in ("step", "state_dict", "load_state_dict") for at in ("pre", "post")
]


def _hook(when: str) -> Callable[..., Handle]:
    table = f"_optimizer_{when}_hooks"
    return lambda self, hook: Handle(self.fields.setdefault(table, {}), hook)


def _hooked(step: Callable[..., Any]) -> Callable[..., Any]:
    """A step between its hooks."""

    def run(self: Object, *given: Any, **kwargs: Any) -> Any:
        args = (self, *given)
        for hook in _hooks(self, "step_pre"):
            changed = call_value(hook, [self, args, kwargs], {})
            if changed is not None:
                args, kwargs = changed
        result = step(*args, **kwargs)
        _called(self, "step_post", args, kwargs)
        return result

    return run


# -- the classes ----------------------------------------------------------------------------------

OPTIMIZER = library_class(
    "Optimizer",
    [],
    {
        "__init__": _initialize,
        "__repr__": _describe,
        "add_param_group": add_group,
        "zero_grad": _zero_grad,
        "state_dict": _state_dict,
        "load_state_dict": _load_state_dict,
        "step": _no_step,
        "__setstate__": lambda self, state: self.fields.update(state),
        **{f"register_{when}_hook": _hook(when) for when in _MOMENTS},
    },
)


def _constructor(name: str) -> Callable[..., None]:
    def initialize(self: Object, *args: Any, **kwargs: Any) -> None:
        params, options = options_of(name, args, kwargs)
        _initialize(self, params, options)
        groups = self.fields["param_groups"]
        if name == "Adagrad":
            for group in groups:
                for tensor in group["params"]:
                    self.fields["state"][tensor] = rules.adagrad_start(tensor.node, group)
        if name == "LBFGS" and len(groups) != 1:
            raise fault("E205 lbfgs-takes-parameter-group")

    return initialize


def _class(name: str) -> UserClass:
    rule = SIGNATURES[name][0]
    step = _hooked(_lbfgs_step if rule is None else _step(rule))
    # AdamW is an Adam whose weight decay is decoupled.
    base = CLASSES["Adam"] if name == "AdamW" else OPTIMIZER
    return library_class(name, [base], {"__init__": _constructor(name), "step": step})


CLASSES: dict[str, Any] = {"Optimizer": OPTIMIZER, "required": NEEDED}
for _name in sorted(SIGNATURES):
    CLASSES[_name] = _class(_name)
