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
from ...graph.op import constant, value_of
from ...graph.params import check_device
from ...graph.registry import F
from ...graph.state import grad_mode
from ..python.collections_module import named_tuple
from ..runtime.attributes import size_of
from ..values.dialect import kind_of, misfit
from ..values.factories import Uninitialized, parameter
from ..values.functions import call_value
from ..values.operations import truth
from ..values.values import Device, Method
from .modules import Module

MAX_DEPTH = 200


def _state_dict(
    self: Module, *, destination: Any = None, prefix: Any = "", keep_vars: Any = False
) -> dict[str, Any]:
    """Parameters and buffers by path; they share memory with the module's."""
    found: Any = destination
    if found is None:
        found = OrderedDict()
        found._metadata = {}  # as in PyTorch
    keep = truth(keep_vars)
    hooked: list[tuple[str, Module]] = []
    pending: list[tuple[str, Module, int]] = [(prefix, self, 0)]
    while pending:
        path, module, depth = pending.pop()
        if depth > MAX_DEPTH:
            raise fault("E507 modules-nested-more-levels", MAX_DEPTH)
        for hook in list(module.storing.values()):
            call_value(hook, [module, path, keep], {})
        call_value(module.get_attribute("_save_to_state_dict"), [found, path, keep], {})
        below = [(f"{path}{n}.", m, depth + 1) for n, m in module.modules.items() if m is not None]
        pending.extend(reversed(below))
        if module.stored:
            hooked.append((path, module))
    for path, module in reversed(hooked):
        for hook in list(module.stored.values()):
            call_value(hook, [module, found, path, {"version": 1}], {})
    return found


def _save_own(self: Module, destination: Any, prefix: Any, keep_vars: Any) -> None:
    """What `state_dict` stores of one module."""
    keep = truth(keep_vars)
    for name, tensor in _stored(self):
        whole = keep or type(tensor) is Uninitialized
        destination[prefix + name] = tensor if whole else wrap_view(F.detach(tensor.node), tensor)
    if self.cls.flat.get("get_extra_state") is not None:
        extra = call_value(self.get_attribute("get_extra_state"), [], {})
        destination[prefix + "_extra_state"] = extra


def _stored(module: Module) -> list[tuple[str, Tensor]]:
    own = [*module.parameters.items()]
    own += [(n, b) for n, b in module.buffers.items() if n not in module.transient]
    return [(name, tensor) for name, tensor in own if tensor is not None]


def _described(keys: Any) -> str:
    missing, unexpected = keys
    if not missing and not unexpected:
        return "<All keys matched successfully>"
    return f"_IncompatibleKeys(missing_keys={missing!r}, unexpected_keys={unexpected!r})"


# What `load_state_dict` returns.
_Matched = named_tuple(
    "_IncompatibleKeys",
    ["missing_keys", "unexpected_keys"],
    [],
    {"__repr__": Method("__repr__", _described)},
)


def _load_state_dict(self: Module, state_dict: Any, strict: Any = True, assign: Any = False) -> Any:
    """Copy stored values into parameters and buffers of the same paths."""
    if not isinstance(state_dict, dict):
        raise fault("E208 state-dict-tensors", kind_of(state_dict))
    missing: list[Any] = []
    unexpected: list[Any] = []
    errors: list[Any] = []
    about: dict[str, Any] = {"assign_to_params_buffers": truth(assign)}
    if hasattr(state_dict, "_metadata"):
        about["version"] = 1

    def load(module: Module, state: dict[str, Any], prefix: str, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise fault("E507 modules-nested-more-levels", MAX_DEPTH)
        given = [state, prefix, about, True, missing, unexpected, errors]
        call_value(module.get_attribute("_load_from_state_dict"), given, {})
        for name, child in module.modules.items():
            if child is not None:
                path = f"{prefix}{name}."
                below = {key: state[key] for key in state if key.startswith(path)}
                load(child, below, path, depth + 1)
        matched = _Matched(missing, unexpected)
        for hook in list(module.loaded.values()):
            call_value(hook, [module, matched], {})

    load(self, OrderedDict(state_dict), "", 0)
    said = "".join(f"\n\t{error}" for error in errors)
    words = [error.words if isinstance(error, Mismatch) else str(error) for error in errors]
    if truth(strict) and (missing or unexpected):
        if unexpected:
            words.insert(0, f"unexpected {', '.join(map(str, unexpected))}")
            said = _keys("Unexpected", unexpected) + said
        if missing:
            words.insert(0, f"missing {', '.join(map(str, missing))}")
            said = _keys("Missing", missing) + said
        raise fault("E210 state-does-not-fit", said, self.cls.name, "; ".join(words))
    if words:
        raise fault("E308 sizes-state-do-not", said, "; ".join(words), owner=self.cls.name)
    return _Matched(missing, unexpected)


def _load_own(
    self: Module,
    state_dict: Any,
    prefix: Any,
    local_metadata: Any,
    strict: Any,
    missing_keys: Any,
    unexpected_keys: Any,
    error_msgs: Any,
) -> None:
    """What `load_state_dict` does with one module: stored values go into its parameters and
    buffers; what is missing, unexpected or of another size is told."""
    given = [state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs]
    for hook in list(self.loading.values()):
        call_value(hook, [self, *given], {})
    own = dict(_stored(self))
    if "version" not in local_metadata:
        for name in self.cls.flat.get("added_later", ()):
            if name in own:
                state_dict.setdefault(prefix + name, own[name])
    for name, tensor in own.items():
        if prefix + name not in state_dict:
            missing_keys.append(prefix + name)
            continue
        stored = state_dict[prefix + name]
        waits = type(tensor) is Uninitialized
        if waits and type(stored) is Uninitialized:
            continue
        if waits and isinstance(stored, Tensor):  # it learns its size here
            tensor.__class__ = Tensor
            tensor.adopt(new_leaf(np.zeros(stored.shape, tensor.dtype)))
        error = _mismatch(self.cls.name, prefix + name, tensor, stored)
        if error is not None:
            error_msgs.append(error)
        elif local_metadata.get("assign_to_params_buffers"):
            _assign(self, name, tensor, stored)
        else:
            with grad_mode(False):
                value = value_of(F.to_dtype(stored.looked_at, tensor.dtype))
                tensor.overwrite(constant(np.array(value)))
    extra = prefix + "_extra_state"
    takes = self.cls.flat.get("set_extra_state") is not None
    if takes and extra in state_dict:
        call_value(self.get_attribute("set_extra_state"), [state_dict[extra]], {})
    elif takes:
        missing_keys.append(extra)
    for key in list(state_dict):
        first, rest, _ = key.removeprefix(prefix).partition(".")
        known = first in self.modules if rest else first in own or (takes and key == extra)
        if key.startswith(prefix) and not known:
            unexpected_keys.append(key)


def _assign(self: Module, name: str, tensor: Tensor, given: Tensor) -> None:
    """The stored tensor takes the place of a buffer, or of a parameter if it is one; another is a
    parameter in its memory."""
    if name in self.buffers:
        self.buffers[name] = given
    elif given.is_parameter:
        self.parameters[name] = given
    else:
        self.parameters[name] = parameter(given, tensor.requires_grad)


def _keys(what: str, names: list[Any]) -> str:
    """What PyTorch says of keys of a state."""
    quoted = ", ".join(f'"{name}"' for name in names)
    return f"\n\t{what} key(s) in state_dict: {quoted}. "


class Mismatch(str):
    """What PyTorch says of a tensor of another size, and our words for it."""

    words = ""


def _mismatch(owner: str, name: str, tensor: Tensor, value: Any) -> Mismatch | None:
    """How a stored tensor does not fit."""
    if not isinstance(value, Tensor) or isinstance(value, Array):
        kind = "numpy.ndarray" if isinstance(value, Array) else type(value).__name__
        said = (
            f'\n\tWhile copying the parameter named "{name}", expected torch.Tensor or '
            f"Tensor-like object from checkpoint but received <class '{kind}'>"
        )
        raise fault("E208 state-needs-tensors", said, kind, name=name, owner=owner)
    there, here = size_of(value), size_of(tensor)
    if there == here:
        return None
    error = Mismatch(
        f"size mismatch for {name}: copying a param with shape torch.Size({list(there)}) from "
        f"checkpoint, the shape in current model is torch.Size({list(here)})."
    )
    error.words = f"{name} has shape {there} there, {here} here"
    return error


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
    "_save_to_state_dict": _save_own,
    "_load_from_state_dict": _load_own,
    "to": _to,
    "type": _to,
    "double": _as("float64"),
    "float": _as("float32"),
    "half": _as("float16"),
    "cuda": lambda self, device=None: check_device("cuda"),
    "to_empty": lambda self, *, device, recurse=True: _to(self, device),
}
