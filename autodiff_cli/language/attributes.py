"""What stands after a dot: attributes and methods of every kind of value.

Only what these tables and the op table name can be reached; names that begin with an underscore
never.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..autograd import calls
from ..autograd.tensor import GradSlot, Tensor, wrap_view
from ..errors import AutodiffError, fail
from ..graph.dtypes import DTYPES, is_float
from ..graph.op import LEAF, cast, number, value_of
from ..graph.params import to_tensor
from ..graph.registry import F
from ..graph.state import STATE, taken_out
from ..suggest import suggest
from .operations import MODE, dict_key, equal, index, items_of, kind_of, truth
from .random_names import RANDOM_METHOD_NAMES
from .text import str_format
from .values import (
    CPU,
    Builtin,
    Device,
    GradFn,
    Namespace,
    Size,
    is_callable,
)

Getter = Callable[[Any], Any]


def get_attribute(value: Any, name: str) -> Any:
    """`value.name`."""
    if isinstance(value, Tensor):
        return _tensor_attribute(value, name)
    if isinstance(value, Namespace):
        from .names import member

        return member(value, name)
    own = getattr(value, "get_attribute", None)
    if own is not None:
        return own(name)
    methods = getattr(value, "methods", None)
    if methods is not None and name in (table := methods()):
        return Builtin(name, table[name])
    if name in ("__name__", "__qualname__") and (is_callable(value) or hasattr(value, "name")):
        return value.name.rpartition(".")[2]
    if name == "__class__":
        from .builtins import type_of

        return type_of(value)
    if name.startswith("_"):
        raise private(name)
    table = _TABLES.get(type(value)) or next(
        (t for k, t in _TABLES.items() if isinstance(value, k)), None
    )
    if table is not None:
        getter = table.get(name)
        if getter is not None:
            return getter(value)
        close = suggest(name, list(table))
        raise fail(
            "E207",
            f"{kind_of(value)} has no attribute `{name}`",
            help=f"did you mean `.{close[0]}`?"
            if close
            else f"it has: {', '.join(sorted(table)[:12])}",
        )
    raise fail(
        "E207",
        f"{kind_of(value)} has no attribute `{name}`",
        help="tensors, lists, dicts and strings have methods",
    )


def private(name: str) -> AutodiffError:
    return fail(
        "E207",
        f"`{name}` cannot be reached: names that begin with `_` are not part of the language",
        help="use public attributes and methods",
    )


def set_attribute(value: Any, name: str, new: Any) -> None:
    """`value.name = new`."""
    if name.startswith("_") and isinstance(value, Tensor | Namespace):
        raise private(name)
    if isinstance(value, Tensor):
        _set_tensor_attribute(value, name, new)
        return
    own = getattr(value, "set_attribute", None)
    if own is not None:
        own(name, new)
        return
    raise fail(
        "E207",
        f"attribute `{name}` of {kind_of(value)} cannot be set",
        help="tensors have .grad, .data, .requires_grad",
    )


# -- tensors --------------------------------------------------------------------------------------

GRAD_READ: list[Callable[[], None]] = []


def _grad(tensor: Tensor) -> Any:
    for hook in GRAD_READ:
        hook()
    node = tensor.node
    if node.requires_grad and node.op is not LEAF and not isinstance(tensor.accumulator, GradSlot):
        from .warnings import warn

        warn(
            "W403",
            "the gradient of a result is not kept, `.grad` is None",
            help="call `.retain_grad()` on it before backward()",
        )
        return None
    return tensor.grad


def _data(tensor: Tensor) -> Tensor:
    return wrap_view(F.data_alias(tensor.node), tensor)


def _grad_fn(tensor: Tensor) -> Any:
    node = tensor.node
    return None if not node.requires_grad or node.op is LEAF else GradFn(node)


ATTRIBUTES: dict[str, Getter] = {
    "shape": lambda t: Size(t.shape),
    "dtype": lambda t: t.dtype,
    "ndim": lambda t: len(t.shape),
    "grad": _grad,
    "grad_fn": _grad_fn,
    "requires_grad": lambda t: t.requires_grad,
    "is_leaf": lambda t: t.is_leaf,
    "data": _data,
    "device": lambda t: CPU,
    "itemsize": lambda t: t.dtype.itemsize,
    "nbytes": lambda t: t.node.numel * t.dtype.itemsize,
    "is_cuda": lambda t: False,
    "is_sparse": lambda t: False,
    "is_quantized": lambda t: False,
    "names": lambda t: (None,) * len(t.shape),
    "retains_grad": lambda t: isinstance(t.accumulator, GradSlot),
    "output_nr": lambda t: 0,
}

# Attributes that are ops.
OP_ATTRIBUTES = frozenset({"T", "mT", "H", "mH", "real"})


def _tensor_attribute(tensor: Tensor, name: str) -> Any:
    if tensor.tag == "numpy" and name in ("size", "shape"):
        return tensor.node.numel if name == "size" else tuple(tensor.shape)
    getter = ATTRIBUTES.get(name)
    if getter is not None:
        return getter(tensor)
    if name in OP_ATTRIBUTES:
        return calls.call(name, (tensor,), {})
    method = METHODS.get(name)
    if method is not None:
        return Builtin(name, lambda *args, **kwargs: method(tensor, *args, **kwargs))
    if not name.startswith("_"):
        ops = calls.method(name)
        if ops:
            if tensor.tag == "numpy":
                return Builtin(
                    name, lambda *args, **kwargs: _array_method(tensor, ops, name, args, kwargs)
                )
            return Builtin(
                name, lambda *args, **kwargs: calls.call_ops(ops, name, (tensor, *args), kwargs)
            )
        if name.endswith("_"):
            ops = [op for op in calls.method(name[:-1]) if op.inplace]
            if ops:
                return Builtin(
                    name, lambda *args, **kwargs: calls.in_place(tensor, ops, name, args, kwargs)
                )
        own = getattr(tensor, "extra", None)
        if own is not None:
            return own(name)
    else:
        raise private(name)
    close = suggest(name, [*ATTRIBUTES, *METHODS, *OP_ATTRIBUTES, *_op_methods()])
    raise fail(
        "E207",
        f"a tensor has no attribute `{name}`",
        label="no such attribute",
        help=f"did you mean `.{close[0]}`?" if close else "list all operations: autodiff ops",
        notes=(f"PyTorch: 'Tensor' object has no attribute '{name}'",),
    )


def _array_method(
    array: Tensor, ops: list[Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """A method of a NumPy array: the result is one again."""
    if name == "round" and args:
        kwargs = {"decimals": args[0]}
        args = ()
    result = calls.call_ops(ops, name, (array, *args), kwargs)
    if isinstance(result, Tensor):
        result.tag = "numpy"
    return result


def _op_methods() -> list[str]:
    from ..ops.index import WHERE

    return [name for name in WHERE if "." not in name]


def _set_tensor_attribute(tensor: Tensor, name: str, new: Any) -> None:
    if name == "grad":
        if isinstance(new, list | int | float) and not MODE.python:
            new = Tensor(cast(to_tensor(new), tensor.dtype))
        if new is not None and not isinstance(new, Tensor):
            raise fail(
                "E208",
                f"a gradient is a tensor or None, not {kind_of(new)}",
                help="assign None to clear it",
            )
        tensor.grad = new
    elif name == "data":
        if not isinstance(new, Tensor):
            raise fail(
                "E208",
                f".data must be a tensor, not {kind_of(new)}",
                help="write `torch.tensor(...)`",
            )
        tensor.adopt(new)
    elif name == "requires_grad":
        tensor.set_requires_grad(truth(new))
    else:
        raise fail(
            "E207",
            f"the attribute `{name}` of a tensor cannot be set",
            help="assignable are .grad, .data and .requires_grad",
        )


def _size(tensor: Tensor, dim: Any = None) -> Any:
    return (
        Size(tensor.shape)
        if dim is None
        else Size(tensor.shape)[index([*range(len(tensor.shape))], dim)]
    )


def _backward(
    tensor: Tensor,
    gradient: Any = None,
    retain_graph: Any = None,
    create_graph: Any = False,
    inputs: Any = None,
) -> None:
    from ..autograd import tensor as handles

    if gradient is not None and not isinstance(gradient, Tensor):
        gradient = (
            Tensor(calls.node_of_list(gradient))
            if isinstance(gradient, list | tuple)
            else Tensor(F.full((), float(gradient)))
        )
    if isinstance(inputs, Tensor):
        inputs = [inputs]
    handles.backward(
        [tensor],
        [gradient],
        retain_graph=None if retain_graph is None else truth(retain_graph),
        create_graph=truth(create_graph),
        inputs=inputs,
    )


def _requires_grad_(tensor: Tensor, requires_grad: Any = True) -> Tensor:
    tensor.set_requires_grad(truth(requires_grad))
    return tensor


def _detach(tensor: Tensor) -> Tensor:
    return wrap_view(F.detach(tensor.node), tensor)


def _detach_(tensor: Tensor) -> Tensor:
    tensor._show(F.detach(tensor.node))
    return tensor


def _numpy(tensor: Tensor, force: Any = False) -> Tensor:
    if tensor.requires_grad and not truth(force):
        raise fail(
            "E402",
            "numpy() cannot be called on a tensor that requires grad",
            help="write `.detach().numpy()`",
        )
    array = wrap_view(F.data_alias(tensor.node), tensor)
    array.tag = "numpy"
    return array


def _to(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    return calls.call("to", (tensor, *args), kwargs)


def check_device(value: Any) -> None:
    """Only the CPU exists."""
    if isinstance(value, str) and value.split(":")[0] != "cpu":
        raise fail(
            "E203",
            f"there is no device `{value}` here, tensors live on the cpu",
            help="write `'cpu'`, or leave it out",
        )


def _type(tensor: Tensor, dtype: Any = None, **kwargs: Any) -> Any:
    if dtype is None:
        names = {
            "float64": "Double",
            "float32": "Float",
            "float16": "Half",
            "int64": "Long",
            "int32": "Int",
            "int16": "Short",
            "int8": "Char",
            "uint8": "Byte",
            "bool": "Bool",
        }
        return f"torch.{names[tensor.dtype.name]}Tensor"
    if isinstance(dtype, str):
        short = dtype.removeprefix("torch.").removesuffix("Tensor").lower()
        dtype = DTYPES.get({"char": "int8", "byte": "uint8"}.get(short, short))
    return _to(tensor, dtype)


def _copy_(tensor: Tensor, src: Any, non_blocking: Any = False) -> Tensor:
    tensor.check_writable()
    node = src.node if isinstance(src, Tensor) else to_tensor(src)
    tensor.write(F.copy_over(tensor.node, node))
    return tensor


def _zero_(tensor: Tensor) -> Tensor:
    node = tensor.node
    if node.requires_grad and STATE.grad:
        zeros = F.fill(node, number(0))
        zeros.mark().name = "ZeroBackward0"
    else:
        zeros = F.zeros_like(node)
    tensor.write(zeros)
    return tensor


def _register_hook(tensor: Tensor, hook: Any) -> Any:
    from .functions import call_value

    node = tensor.node
    if not node.requires_grad:
        raise fail(
            "E402", "a hook needs a tensor that requires grad", help="make its inputs require grad"
        )

    def run(g: Any) -> Any:
        replaced = call_value(hook, [Tensor(g)], {})
        return replaced.node if isinstance(replaced, Tensor) else None

    hooks = node.mark().hooks
    key = len(hooks) + 1
    while key in hooks:
        key += 1
    hooks[key] = run
    return Handle(hooks, key)


class Handle:
    """What `register_hook` returns."""

    __slots__ = ("hooks", "key")

    def __init__(self, hooks: dict[int, Any], key: int):
        self.hooks = hooks
        self.key = key

    def get_attribute(self, name: str) -> Any:
        if name == "remove":
            return Builtin("remove", lambda: self.hooks.pop(self.key, None) and None)
        raise fail("E207", f"a hook handle has no attribute `{name}`", help="it has `.remove()`")


def _tolist(tensor: Tensor) -> Any:
    if tensor.node.numel > 10_000_000:
        raise fail("E505", "a list of more than 10 million numbers", help="use the tensor itself")
    return taken_out(tensor.node, value_of(tensor.node).tolist())


def _retain(tensor: Tensor) -> None:
    tensor.retain_grad()


def _new(values: Any, tensor: Tensor, kwargs: dict[str, Any]) -> Tensor:
    from .factories import make_tensor

    kwargs.setdefault("dtype", tensor.dtype)
    return make_tensor(values, **kwargs)


def _random_method(name: str) -> Callable[..., Any]:
    def run(tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
        from .random_functions import RANDOM_METHODS

        return RANDOM_METHODS[name](tensor, *args, **kwargs)

    return run


METHODS: dict[str, Callable[..., Any]] = {
    **{name: _random_method(name) for name in RANDOM_METHOD_NAMES},
    "item": lambda t: t.item(),
    "tolist": _tolist,
    "size": _size,
    "dim": lambda t: len(t.shape),
    "ndimension": lambda t: len(t.shape),
    "numel": lambda t: t.node.numel,
    "nelement": lambda t: t.node.numel,
    "element_size": lambda t: t.dtype.itemsize,
    "backward": _backward,
    "retain_grad": _retain,
    "requires_grad_": _requires_grad_,
    "detach": _detach,
    "detach_": _detach_,
    "numpy": _numpy,
    "cpu": lambda t, *a, **k: t,
    "cuda": lambda t, *a, **k: check_device("cuda"),
    "to": _to,
    "type": _type,
    "type_as": lambda t, other: _to(t, other),
    "copy_": _copy_,
    "zero_": _zero_,
    "register_hook": _register_hook,
    "is_floating_point": lambda t: is_float(t.dtype),
    "is_complex": lambda t: False,
    "is_signed": lambda t: t.dtype.kind in "if",
    "get_device": lambda t: -1,
    "new_tensor": lambda t, values, **k: _new(values, t, k),
    "is_inference": lambda t: False,
    "pin_memory": lambda t: t,
    "share_memory_": lambda t: t,
}


# -- Python's own values --------------------------------------------------------------------------


def _bound(name: str, function: Callable[..., Any]) -> Getter:
    return lambda value: Builtin(name, lambda *args, **kwargs: function(value, *args, **kwargs))


def _texts(method: str) -> Getter:
    return _bound(method, lambda value, *args: _bounded_text(getattr(value, method)(*args)))


def _bounded_text(result: Any) -> Any:
    if isinstance(result, str) and len(result) > 50_000_000:
        raise fail("E505", "the text would be too long", help="build it in smaller parts")
    return result


def _justify(method: str) -> Getter:
    def run(value: str, width: int, fill: str = " ") -> str:
        if width > 100_000:
            raise fail("E505", f"a text of width {width}", help="use a smaller width")
        return getattr(value, method)(width, fill)

    return _bound(method, run)


def _zfill(value: str, width: int) -> str:
    if width > 100_000:
        raise fail("E505", f"a text of width {width}", help="use a smaller width")
    return value.zfill(width)


def _replace(value: str, old: str, new: str, count: int = -1) -> str:
    if len(value) * max(len(new), 1) > 50_000_000 and (value.count(old) * len(new)) > 50_000_000:
        raise fail("E505", "the text would be too long", help="build it in smaller parts")
    return value.replace(old, new, count)


def _join(separator: str, parts: Any) -> str:
    found = items_of(parts)
    for part in found:
        if not isinstance(part, str):
            raise fail(
                "E208",
                f"join() needs strings, not {kind_of(part)}",
                help="convert with str(x) or f'{x}'",
            )
    if sum(map(len, found)) + len(separator) * len(found) > 50_000_000:
        raise fail("E505", "the text would be too long", help="build it in smaller parts")
    return separator.join(found)


def _append(values: list[Any], item: Any) -> None:
    if len(values) >= 10_000_000:
        raise fail("E505", "a list of more than 10 million items", help="use a tensor")
    values.append(item)


def _extend(values: list[Any], items: Any) -> None:
    found = items_of(items)
    if len(values) + len(found) > 10_000_000:
        raise fail("E505", "a list of more than 10 million items", help="use a tensor")
    values.extend(found)


def _remove(values: list[Any], item: Any) -> None:
    for i, value in enumerate(values):
        if value is item or equal(value, item):
            del values[i]
            return
    raise fail("E210", "the list does not hold that value", help="check with `in` first")


def _find(values: Any, item: Any) -> int:
    for i, value in enumerate(values):
        if value is item or equal(value, item):
            return i
    raise fail("E210", "the list does not hold that value", help="check with `in` first")


def _sort(values: list[Any], key: Any = None, reverse: Any = False) -> None:
    from .builtins import sorted_values

    values[:] = sorted_values(values, key, reverse)


def _get(values: dict[Any, Any], key: Any, default: Any = None) -> Any:
    return values.get(dict_key(key), default)


def _pop_key(values: dict[Any, Any], key: Any, *default: Any) -> Any:
    return values.pop(dict_key(key), *default)


_STRINGS: dict[str, Getter] = (
    {
        name: _texts(name)
        for name in (
            "upper",
            "lower",
            "strip",
            "lstrip",
            "rstrip",
            "split",
            "rsplit",
            "splitlines",
            "startswith",
            "endswith",
            "find",
            "rfind",
            "count",
            "title",
            "capitalize",
            "isdigit",
            "isalpha",
            "isalnum",
            "isspace",
            "isupper",
            "islower",
            "removeprefix",
            "removesuffix",
            "partition",
            "rpartition",
            "index",
            "swapcase",
        )
    }
    | {name: _justify(name) for name in ("ljust", "rjust", "center")}
    | {
        "zfill": _bound("zfill", _zfill),
        "replace": _bound("replace", _replace),
        "join": _bound("join", _join),
        "format": _bound("format", lambda value, *args, **kwargs: str_format(value, args, kwargs)),
    }
)

_LISTS: dict[str, Getter] = {
    "append": _bound("append", _append),
    "extend": _bound("extend", _extend),
    "insert": _bound("insert", lambda v, at, item: v.insert(at, item)),
    "pop": _bound("pop", lambda v, at=-1: v.pop(at)),
    "remove": _bound("remove", _remove),
    "clear": _bound("clear", lambda v: v.clear()),
    "copy": _bound("copy", lambda v: v.copy()),
    "reverse": _bound("reverse", lambda v: v.reverse()),
    "sort": _bound("sort", _sort),
    "index": _bound("index", _find),
    "count": _bound("count", lambda v, item: sum(1 for x in v if equal(x, item))),
}

_TUPLES: dict[str, Getter] = {"index": _LISTS["index"], "count": _LISTS["count"]}

_DICTS: dict[str, Getter] = {
    "items": _bound("items", lambda v: list(v.items())),
    "keys": _bound("keys", lambda v: list(v.keys())),
    "values": _bound("values", lambda v: list(v.values())),
    "get": _bound("get", _get),
    "pop": _bound("pop", _pop_key),
    "setdefault": _bound(
        "setdefault", lambda v, key, default=None: v.setdefault(dict_key(key), default)
    ),
    "update": _bound("update", lambda v, other=(), **kwargs: v.update(dict(other), **kwargs)),
    "copy": _bound("copy", lambda v: v.copy()),
    "clear": _bound("clear", lambda v: v.clear()),
}

_SETS: dict[str, Getter] = {
    "add": _bound("add", lambda v, item: v.add(dict_key(item))),
    "discard": _bound("discard", lambda v, item: v.discard(item)),
    "remove": _bound("remove", lambda v, item: v.remove(item)),
    "union": _bound("union", lambda v, *o: v.union(*[items_of(x) for x in o])),
    "intersection": _bound("intersection", lambda v, *o: v.intersection(*[items_of(x) for x in o])),
    "difference": _bound("difference", lambda v, *o: v.difference(*[items_of(x) for x in o])),
}

_GRAD_FNS: dict[str, Getter] = {
    "name": _bound("name", lambda v: v.name),
    "next_functions": lambda v: v.next_functions,
    "variable": lambda v: v.node.handle() if v.is_leaf and v.node.handle is not None else None,
}


def _results_attribute(value: Any, name: str) -> Any:
    if name in value.fields:
        return value[value.fields.index(name)]
    raise fail(
        "E207", f"the result has no field `{name}`", help=f"it has: {', '.join(value.fields)}"
    )


calls.Results.get_attribute = _results_attribute  # type: ignore[attr-defined]  # programs read fields by name

_TABLES: dict[type, dict[str, Getter]] = {
    str: _STRINGS,
    list: _LISTS,
    Size: {**_TUPLES, "numel": _bound("numel", lambda v: v.numel())},
    tuple: _TUPLES,
    dict: _DICTS,
    set: _SETS,
    GradFn: _GRAD_FNS,
    float: {
        "is_integer": _bound("is_integer", lambda v: v.is_integer()),
        "item": _bound("item", lambda v: v),
        "real": lambda v: v,
    },
    int: {
        "bit_length": _bound("bit_length", lambda v: v.bit_length()),
        "item": _bound("item", lambda v: v),
    },
    slice: {"start": lambda v: v.start, "stop": lambda v: v.stop, "step": lambda v: v.step},
    range: {"start": lambda v: v.start, "stop": lambda v: v.stop, "step": lambda v: v.step},
    np.dtype: {
        "is_floating_point": lambda v: is_float(v),
        "is_complex": lambda v: False,
        "itemsize": lambda v: v.itemsize,
    },
    Device: {"type": lambda v: "cpu", "index": lambda v: None},
}
