"""`torch.func.functional_call` and `stack_module_state`: modules that run with other tensors.

The tensors of a module are its own again when the call is over, whatever happened in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ...autograd.storage import without_history
from ...autograd.tensor import Tensor
from ...errors import fault, refused
from ...graph.registry import F
from ...graph.sizes import shape_text
from ..values.dialect import kind_of
from ..values.functions import call_value
from ..values.operations import items_of, truth
from ..values.values import builtins_of
from .module_methods import get_submodule
from .modules import Module

Given = dict[str, Tensor | None]
Place = tuple[str, Given, str]


def functional_call(
    module: Any,
    parameter_and_buffer_dicts: Any,
    args: Any = None,
    kwargs: Any = None,
    *,
    tie_weights: Any = True,
    strict: Any = False,
) -> Any:
    """Call a module with other tensors in place of its parameters and buffers."""
    target = _module("functional_call", module)
    given = _given(parameter_and_buffer_dicts)
    places = list(_tables(target))
    new = _tied(places, given) if truth(tie_weights) else given
    names = [path for path, table, name in places if table[name] is not None]
    if truth(strict):
        _check_names(target, names, new)
    for path in given.keys() - {path for path, *_ in places}:
        get_submodule(target, path.rpartition(".")[0])
    if kwargs is not None and not isinstance(kwargs, dict):
        raise fault("E208 functional_call-needs-kwargs-dict", kind_of(kwargs))
    values = () if args is None else args if isinstance(args, tuple) else (args,)
    with _replaced(places, new, given):
        return call_value(target, list(values), {} if kwargs is None else kwargs)


def _module(name: str, value: Any) -> Module:
    if not isinstance(value, Module):
        raise fault("E208 needs-nn-module", kind_of(value), name=name)
    return value


def _given(dicts: Any) -> Given:
    if not isinstance(dicts, dict | tuple | list):
        raise fault("E208 functional_call-needs-dict-tensors", kind_of(dicts), type(dicts))
    found: Given = {}
    for part in dicts if isinstance(dicts, tuple | list) else (dicts,):
        if not isinstance(part, dict):
            raise fault("E208 functional_call-needs-dict-tensors-2", kind_of(part))
        for key, value in part.items():
            if key in found:
                raise fault("E205 functional_call-got-two-dicts", key=key)
            if value is not None and not isinstance(value, Tensor):
                raise fault("E208 functional_call-tensor-not", kind_of(value), key=key)
            found[key] = value
    return dicts if isinstance(dicts, dict) else found


def _tables(module: Module) -> Iterator[Place]:
    """Every place of a tensor: its path, the table and the name in it."""
    for path, inner in module.named_modules(once=False):
        for table in (inner.parameters, inner.buffers):
            for name in table:
                yield (f"{path}.{name}" if path else name), table, name


def _tied(places: list[Place], given: Given) -> Given:
    """What is given for one name of a tensor is for all of its names."""
    found = dict(given)
    names: dict[int, list[str]] = {}
    for path, table, name in places:
        if table[name] is not None:
            names.setdefault(id(table[name]), []).append(path)
    for paths in names.values():
        values = {id(given[path]): given[path] for path in paths if path in given}
        if len(values) > 1:
            raise fault("E205 functional_call-tied", sorted(paths), names=", ".join(sorted(paths)))
        for value in values.values():
            found.update(dict.fromkeys(paths, value))
    return found


def _check_names(module: Module, names: list[str], given: Given) -> None:
    missing = [name for name in names if name not in given]
    unknown = [name for name in given if name not in names]
    if missing or unknown:
        word, wrong = ("misses", missing) if missing else ("got unknown", unknown)
        parts = [f"Error(s) in reparametrizing for {module.cls.name}:"]
        for kind, found in (("Unexpected", unknown), ("Missing", missing)):
            if found:
                parts.append(f"\t{kind} key(s): {', '.join(map(repr, sorted(found)))}.")
        raise refused(
            "E205",
            f"`functional_call` with strict=True {word} {', '.join(wrong)}"[:200],
            "\n".join(parts),
            f"the module has: {', '.join(names)}"[:200],
        )


@contextmanager
def _replaced(places: list[Place], new: Given, given: Given) -> Iterator[None]:
    """Modules with other tensors; what is given learns what the call made of them."""
    changed = [(path, table, name, table[name]) for path, table, name in places if path in new]
    try:
        for path, table, name, _ in changed:
            table[name] = new[path]
        yield
    finally:
        given.update({path: table[name] for path, table, name, _ in changed if path in given})
        for _, table, name, tensor in changed:
            table[name] = tensor


def stack_module_state(models: Any) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Parameters and buffers of modules of one kind, stacked in a first dim that counts modules."""
    modules = [_module("stack_module_state", m) for m in items_of(models)]
    if not modules:
        raise fault("E205 stack_module_state-needs-least-model")
    if len({truth(m.get_attribute("training")) for m in modules}) > 1:
        raise fault("E205 stack_module_state-needs-one-mode")
    if len({id(m.cls) for m in modules}) > 1:
        raise fault("E205 stack_module_state-needs-models-class")
    parameters = [dict(m.named("parameters")) for m in modules]
    buffers = [dict(m.named("buffers")) for m in modules]
    return _stacked(parameters), _stacked(buffers)


def _stacked(states: list[dict[str, Tensor]]) -> dict[str, Tensor]:
    found: dict[str, Tensor] = {}
    for name, first in states[0].items():
        tensors = [state[name] for state in states if name in state]
        shapes = {t.shape for t in tensors}
        if len(tensors) != len(states) or len(shapes) > 1:
            raise fault("E308 has-shapes", name, ", ".join(shape_text(s) for s in sorted(shapes)))
        if len({t.requires_grad for t in tensors}) > 1:
            raise fault("E205 stack_module_state-needs-one-requires_grad", name=name)
        stacked = Tensor(F.stack(tuple(without_history(t.node) for t in tensors), 0))
        if first.requires_grad:
            stacked.set_requires_grad(True)
        found[name] = stacked
    return found


NAMES = builtins_of({f.__name__: f for f in (functional_call, stack_module_state)})
