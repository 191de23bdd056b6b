"""What modules are stored as, and the dtypes they compute in: `state_dict()`, `to()`, copies."""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from ...autograd.handles import wrap_view
from ...autograd.tensor import Array, Tensor, new_leaf
from ...errors import fault
from ...graph.dtypes import DTYPES, is_float
from ...graph.node import Shape
from ...graph.op import constant, value_of
from ...graph.params import check_device
from ...graph.registry import F
from ...graph.state import grad_mode
from ..values.dialect import kind_of, misfit
from ..values.factories import Uninitialized
from ..values.functions import call_value
from ..values.operations import truth
from ..values.values import Device
from .modules import Module

MAX_DEPTH = 200


def _state_dict(self: Module, *, prefix: Any = "", keep_vars: Any = False) -> dict[str, Any]:
    """Parameters and buffers by path; they share memory with the module's."""
    found: dict[str, Any] = OrderedDict()
    found._metadata = {}  # type: ignore[attr-defined]  # as in PyTorch
    keep = truth(keep_vars)
    hooked: list[tuple[str, Module]] = []
    pending: list[tuple[str, Module, int]] = [(prefix, self, 0)]
    while pending:
        path, module, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise fault("E507 modules-nested-more-levels", MAX_DEPTH)
        for hook in list(module.storing.values()):
            call_value(hook, [module, path, keep], {})
        for name, tensor in _stored(module):
            whole = keep or type(tensor) is Uninitialized
            found[path + name] = tensor if whole else wrap_view(F.detach(tensor.node), tensor)
        if module.cls.flat.get("get_extra_state") is not None:
            extra = call_value(module.get_attribute("get_extra_state"), [], {})
            found[path + "_extra_state"] = extra
        below = [(f"{path}{n}.", m, depth + 1) for n, m in module.modules.items() if m is not None]
        pending.extend(reversed(below))
        if module.stored:
            hooked.append((path, module))
    for path, module in reversed(hooked):
        for hook in list(module.stored.values()):
            call_value(hook, [module, found, path, {}], {})
    return found


def _stored(module: Module) -> list[tuple[str, Tensor]]:
    own = [*module.parameters.items()]
    own += [(n, b) for n, b in module.buffers.items() if n not in module.transient]
    return [(name, tensor) for name, tensor in own if tensor is not None]


class Matched:
    """What `load_state_dict` returns."""

    __slots__ = ("missing", "unexpected")

    def __init__(self, missing: list[str], unexpected: list[str]):
        self.missing = missing
        self.unexpected = unexpected

    def get_attribute(self, name: str) -> Any:
        if name == "missing_keys":
            return self.missing
        if name == "unexpected_keys":
            return self.unexpected
        raise fault("E207 result-no-field", name=name)

    def describe(self) -> str:
        if not self.missing and not self.unexpected:
            return "<All keys matched successfully>"
        return (
            f"_IncompatibleKeys(missing_keys={self.missing!r}, unexpected_keys={self.unexpected!r})"
        )


def _load_state_dict(
    self: Module, state_dict: Any, strict: Any = True, assign: Any = False
) -> Matched:
    """Copy stored values into parameters and buffers of the same paths."""
    if not isinstance(state_dict, dict):
        raise fault("E208 state-dict-tensors", kind_of(state_dict))
    unversioned = not hasattr(state_dict, "_metadata")
    state_dict = OrderedDict(state_dict)
    for path, module in self.named_modules():
        for hook in list(module.loading.values()):
            prefix = f"{path}." if path else ""
            rest: list[Any] = [{}, truth(strict), [], [], []]
            call_value(hook, [module, state_dict, prefix, *rest], {})
    own: dict[str, Any] = {}
    for path, module in self.named_modules():
        prefix = f"{path}." if path else ""
        own.update((prefix + name, tensor) for name, tensor in _stored(module))
        if unversioned:
            later = {prefix + name for name in module.cls.flat.get("added_later", ())}
            state_dict = OrderedDict({n: own[n] for n in own if n in later} | state_dict)
        if module.cls.flat.get("set_extra_state") is not None:
            own[prefix + "_extra_state"] = module.get_attribute("set_extra_state")
    missing = [name for name in own if name not in state_dict]
    unexpected = [name for name in state_dict if name not in own]
    given = [(name, kept, state_dict[name]) for name, kept in own.items() if name in state_dict]
    fitting = [one for one in given if isinstance(one[1], Tensor)]
    for _, kept, stored in fitting:
        waits = type(kept) is Uninitialized
        if waits and isinstance(stored, Tensor):  # it learns its size here
            kept.__class__ = Tensor
            kept.adopt(new_leaf(np.zeros(stored.shape, kept.dtype)))
    differing = _differing(self.cls.name, fitting)
    for name, kept, stored in given:
        if not isinstance(kept, Tensor):
            call_value(kept, [stored], {})
        elif name in differing:
            continue
        elif truth(assign):
            _assign(self, name, kept, stored)
        else:
            with grad_mode(False):
                value = value_of(F.to_dtype(stored.looked_at, kept.dtype))
                kept.overwrite(constant(np.array(value)))
    matched = Matched(missing, unexpected)
    for _, module in self.named_modules():
        for hook in list(module.loaded.values()):
            call_value(hook, [module, matched], {})
    words = [f"{n} has shape {a} there, {b} here" for n, (a, b) in differing.items()]
    said = "".join(map(_mismatch, differing, differing.values()))
    if truth(strict) and (missing or unexpected):
        if unexpected:
            words.insert(0, f"unexpected {', '.join(map(str, unexpected))}")
            said = _keys("Unexpected", unexpected) + said
        if missing:
            words.insert(0, f"missing {', '.join(missing)}")
            said = _keys("Missing", missing) + said
        raise fault("E210 state-does-not-fit", said, self.cls.name, "; ".join(words))
    if words:
        raise fault("E308 sizes-state-do-not", said, "; ".join(words), owner=self.cls.name)
    return matched


def _assign(self: Module, path: str, tensor: Tensor, given: Tensor) -> None:
    """The stored tensor itself takes the place of a parameter or buffer."""
    owner, _, name = path.rpartition(".")
    found = self
    for part in owner.split(".") if owner else []:
        found = found.modules[part]
    if name in found.buffers:
        found.buffers[name] = given
    elif given.is_parameter:
        found.parameters[name] = given
    else:
        made = found.parameters[name] = new_leaf(value_of(given.node).copy(), tensor.requires_grad)
        made.is_parameter = True


def _keys(what: str, names: list[Any]) -> str:
    """What PyTorch says of keys of a state."""
    quoted = ", ".join(f'"{name}"' for name in names)
    return f"\n\t{what} key(s) in state_dict: {quoted}. "


def _mismatch(name: str, shapes: tuple[Shape, Shape]) -> str:
    """What PyTorch says of a tensor of another size."""
    there, here = (f"torch.Size({list(shape)})" for shape in shapes)
    return (
        f"\n\tsize mismatch for {name}: copying a param with shape {there} from checkpoint, "
        f"the shape in current model is {here}."
    )


def _differing(owner: str, given: list[tuple[str, Tensor, Any]]) -> dict[str, tuple[Shape, Shape]]:
    """The shapes of stored tensors that are not those here, there and here, by their names."""
    differing = {}
    for name, tensor, value in given:
        if not isinstance(value, Tensor) or isinstance(value, Array):
            kind = "numpy.ndarray" if isinstance(value, Array) else type(value).__name__
            said = (
                f'\n\tWhile copying the parameter named "{name}", expected torch.Tensor or '
                f"Tensor-like object from checkpoint but received <class '{kind}'>"
            )
            raise fault("E208 state-needs-tensors", said, kind, name=name, owner=owner)
        there, here = value.looked_at.shape, tensor.looked_at.shape
        if there != here:
            differing[name] = there, here
    return differing


# -- dtypes ---------------------------------------------------------------------------------------


def _to(self: Module, *args: Any, **kwargs: Any) -> Module:
    """`to(dtype)`, `to(device)`, `to(tensor)`: floating-point tensors change their dtype."""
    given = (*args, *kwargs.values())
    for value in given:
        if not isinstance(value, Tensor | np.dtype | str | Device | bool | None):
            words = "`to` takes a dtype or a device, not"
            raise misfit(words, value, "torch.float64", raises="")
    kinds = "".join(
        "T" if isinstance(value, Tensor) else _LETTERS.get(type(value), "t") for value in args
    )
    if not _ORDER.fullmatch(kinds):
        listed = ", ".join(kind_of(value) for value in args)
        raise fault("E205 to-in-this-order", listed)
    for value in given:
        if isinstance(value, Tensor | np.dtype):
            dtype = value.dtype if isinstance(value, Tensor) else value
            if not is_float(dtype):
                raise fault("E208 module-can-only-floating", value=dtype)
            _cast(self, dtype)
        elif isinstance(value, str | Device):
            check_device(value)
    return self


_LETTERS = {bool: "b", str: "d", Device: "d", type(None): "n"}
_ORDER = re.compile("([dn]([tn]b?b?)?|[tT]b?b?)?")


def _cast(self: Module, dtype: np.dtype) -> None:
    for _, module in self.named_modules():
        for tensor in (*module.parameters.values(), *module.buffers.values()):
            if tensor is not None and is_float(tensor.dtype) and tensor.dtype != dtype:
                with grad_mode(False):
                    cast = Tensor(F.detach(F.to_dtype(tensor.looked_at, dtype)))
                    grad = tensor.grad
                    tensor.adopt(cast)
                    if grad is not None:
                        tensor.grad = Tensor(F.to_dtype(grad.node, dtype))


def _as(dtype: str) -> Callable[[Module], Module]:
    def run(self: Module) -> Module:
        _cast(self, DTYPES[dtype])
        return self

    return run


METHODS: dict[str, Callable[..., Any]] = {
    "state_dict": _state_dict,
    "load_state_dict": _load_state_dict,
    "to": _to,
    "type": _to,
    "double": _as("float64"),
    "float": _as("float32"),
    "half": _as("float16"),
    "cuda": lambda self, device=None: check_device("cuda"),
    "to_empty": lambda self, *, device, recurse=True: _to(self, device),
}
