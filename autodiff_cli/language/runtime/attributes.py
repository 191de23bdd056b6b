"""What stands after a dot: attributes and methods of every kind of value.

Only what these tables and the op table name can be reached; names that begin with an underscore
never.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import partial
from types import MethodType
from typing import Any

import numpy as np

from ...autograd import calls, gradients
from ...autograd.handles import wrap_view
from ...autograd.overwritten import recorded
from ...autograd.reverse import Pass
from ...autograd.tensor import Array, GradSlot, Tensor, as_array
from ...autograd.transform_levels import level_of
from ...autograd.views import base_of, first_place, single
from ...errors import AutodiffError, fail, fault
from ...graph.dtypes import SCALAR_TYPES, is_float
from ...graph.node import Node
from ...graph.op import LEAF, OUTPUT, Op, cast, constant, known, number, value_of
from ...graph.params import check_device, dim_in_range, to_int, to_tensor, type_name
from ...graph.registry import F
from ...graph.state import STATE, taken_out
from ...graph.strides import is_contiguous
from ...ops import public_names
from ...suggest import did_you_mean, suggest
from ..values.dialect import kind_of, private
from ..values.factories import legacy_dtype, legacy_tensor, make_tensor
from ..values.functions import call_value
from ..values.operations import flag, tensors_of, truth
from ..values.providers import from_above
from ..values.tensor_memory import StorageView, as_given, as_strided, look_at, resize
from ..values.value_attributes import (
    SPECIAL_NAMES,
    VALUE_ATTRIBUTES,
    Getter,
    function_fact,
    no_attribute,
    special_name,
    table_of,
)
from ..values.values import (
    CPU,
    STRIDED,
    Builtin,
    GradFn,
    Handle,
    Method,
    Namespace,
    Size,
    TypeName,
    UserFunction,
    is_callable,
)
from .names import NO_DTYPES, changed, member


def get_attribute(value: Any, name: str) -> Any:
    """`value.name`."""
    if isinstance(value, Tensor):
        return _tensor_attribute(value, name)
    if isinstance(value, Namespace):
        return member(value, name)
    own = getattr(type(value), "get_attribute", None)
    if own is not None:
        return own(value, name)
    methods = getattr(type(value), "methods", None)
    if methods is not None and name in (table := methods(value)):
        return Builtin(name, table[name])
    if is_callable(value) or (name == "__name__" and hasattr(value, "name")):
        return _function_attribute(value, name)
    table = table_of(value)
    if name.startswith("_") and name not in (table or ()):
        return special_name(value, name)
    if table is not None:
        getter = table.get(name)
        if getter is not None:
            return getter(value)
        if isinstance(value, MethodType):
            return get_attribute(value.__func__, name)
        if type(value).__module__ in ("builtins", "collections") and hasattr(type(value), name):
            raise fault("E203 attribute-not-here", kind_of(value), name=name)
        close = suggest(name, list(table))
        help = f"it has: {', '.join(sorted(table)[:12])}"
        if name == "backward" and isinstance(value, int | float):
            help = "a number has no graph: leave out the `.item()` that made it"
        help = f"did you mean `.{close[0]}`?" if close else help
        raise fault("E207 kind-no-attribute", kind_of(value), help, name=name)
    raise no_attribute(value, name)


FUNCTION_NAMES = ("__name__", "__qualname__", "__doc__", "__module__")


def _function_attribute(value: Any, name: str) -> Any:
    """Of functions and types: their names, what a program keeps in its own functions, and the
    methods that values of a type have."""
    if name in FUNCTION_NAMES:
        return function_fact(value, name)
    kept = getattr(value, "fields", None) or {}
    if type(value) is TypeName:
        found = _unbound(value, name)
        if found is not None:
            return found
    elif name in kept:
        return kept[name]
    return special_name(value, name)


def _unbound(kind: TypeName, name: str) -> Any:
    """`str.lower`, `torch.Tensor.exp`: a method as a function of its value."""
    found = kind.members.get(name)
    if found is not None:
        return found
    layout = LAYOUTS.get(kind.name)
    if kind.name == "torch.Tensor":
        public = not name.startswith("_")
        known = name in METHODS or (public and bool(calls.method(name) or _writing(name)))
    else:
        known = layout is not None and name in VALUE_ATTRIBUTES[layout]
    of_layout = layout is not None and name in SPECIAL_NAMES and hasattr(layout, name)
    if not (known or of_layout):
        return None

    def run(*args: Any, **kwargs: Any) -> Any:
        if not args:
            raise fault("E205 unbound-method", name=name, kind=kind)
        value, *rest = args
        if not kind.matches(value):
            raise fault("E208 method-kind", kind_of(value), name=name, kind=kind)
        return call_value(get_attribute(value, name), rest, kwargs)

    return Method(name, run)


def _writing(name: str) -> list[Op]:
    """The ops of a method that changes its tensor: `exp_`."""
    return [op for op in calls.method(name[:-1]) if op.inplace] if name.endswith("_") else []


LAYOUTS: dict[str, type] = {
    kind.__name__: kind for kind in VALUE_ATTRIBUTES if kind.__module__ == "builtins"
}


def set_attribute(value: Any, name: str, new: Any) -> None:
    """`value.name = new`."""
    if name.startswith("_") and isinstance(value, Tensor | Namespace):
        raise private(name)
    if isinstance(value, Tensor):
        _set_tensor_attribute(value, name, new)
        return
    own = getattr(type(value), "set_attribute", None)
    if own is not None:
        own(value, name, new)
        return
    if isinstance(value, defaultdict) and name == "default_factory":
        value.default_factory = new
        return
    if isinstance(value, UserFunction) and not name.startswith("__"):
        value.fields = value.fields or {}
        value.fields[name] = new
        return
    if isinstance(value, Namespace):
        if f"{value.path}.{name}" in from_above("torch.torch_stubs.ASSIGNABLE"):
            return
        if _is_free(value, name):
            STATE.assigned[value.path, name] = new
            return
    raise fault("E207 attribute-cannot-set", kind_of(value), name=name)


def _is_free(module: Namespace, name: str) -> bool:
    """Whether a program may give a module this name: it has none, or a number (`torch.pi`). Each is
    given once, so that a step which is replayed knows what it stands for."""
    try:
        found = member(module, name)
    except AutodiffError:
        return True
    return isinstance(found, int | float) and (module.path, name) not in STATE.assigned


# -- tensors --------------------------------------------------------------------------------------


def _grad(tensor: Tensor) -> Any:
    for hook in STATE.grad_read:
        hook()
    node = tensor.looked_at
    if node.requires_grad and node.op is not LEAF and not isinstance(tensor.accumulator, GradSlot):
        words = "the gradient of a result is not kept, `.grad` is None"
        STATE.warn("W403", words, _kept(node))
        return None
    return tensor.grad


def _kept(node: Node) -> str:
    """What to write where the gradient of a result is asked for."""
    name, text = ("", "") if node.span is None else (node.span.assigned, node.span.text)
    lead = f"{name} - "
    if name and text.startswith(lead) and f"{name}.grad" in text:
        step = f"{name} -= {text[len(lead) :]}"
        return f"`{name}` is a new tensor since this; change it: `with torch.no_grad(): {step}`"
    return "call `.retain_grad()` on it before backward()"


def _seen(tensor: Tensor) -> Node:
    """What a tensor shows, whatever became of its history; of a lazy layer's there is nothing."""
    return tensor.node if hasattr(tensor, "describe") else tensor.looked_at


def size_of(tensor: Tensor) -> tuple[int, ...]:
    """The shape of a tensor, if it has one yet."""
    if hasattr(tensor, "describe"):
        raise fault("E308 uninitialized", tensor.describe())
    return tensor.shape


def _data(tensor: Tensor) -> Tensor:
    return wrap_view(F.data_alias(tensor.looked_at), tensor)


def _version(tensor: Tensor) -> int:
    if tensor.inferred:
        raise fault("E405 inference-tensor-counts-no")
    return tensor.version


ATTRIBUTES: dict[str, Getter] = {
    "shape": lambda t: Size(size_of(t)),
    "dtype": lambda t: t.dtype,
    "ndim": lambda t: len(t.shape),
    "grad": _grad,
    "grad_fn": lambda tensor: None if tensor.is_leaf else GradFn(tensor.node),
    "requires_grad": lambda t: t.requires_grad,
    "is_leaf": lambda t: t.is_leaf,
    "data": _data,
    "device": lambda t: CPU,
    "layout": lambda t: STRIDED,
    "itemsize": lambda t: t.dtype.itemsize,
    "nbytes": lambda t: _seen(t).numel * t.dtype.itemsize,
    "is_cuda": lambda t: False,
    "is_sparse": lambda t: False,
    "is_quantized": lambda t: False,
    "is_meta": lambda t: False,
    "names": lambda t: (None,) * len(t.shape),
    "retains_grad": lambda t: isinstance(t.accumulator, GradSlot),
    "output_nr": lambda t: t.node.args[1] if t.node.op is OUTPUT else 0,
    "_version": _version,
    "_base": lambda t: base_of(t),
}

# Attributes that are ops.
OP_ATTRIBUTES = frozenset({"T", "mT", "H", "mH", "real"})


def _tensor_attribute(tensor: Tensor, name: str) -> Any:
    if type(tensor) is Array:
        from ..values.arrays import attribute

        found = attribute(tensor, name)
        if found is not None:
            return found
    if name == "materialize" and hasattr(tensor, name):
        return Builtin(name, getattr(tensor, name))
    getter = ATTRIBUTES.get(name)
    if getter is not None:
        return getter(tensor)
    if name in OP_ATTRIBUTES:
        return calls.call(name, (tensor,), {})
    method = METHODS.get(name)
    if method is not None:
        return Builtin(name, lambda *args, **kwargs: method(tensor, *args, **kwargs), tensor)
    if not name.startswith("_"):
        ops = calls.method(name)
        if ops:
            return Builtin(
                name,
                lambda *args, **kwargs: calls.call_ops(ops, name, (tensor, *args), kwargs),
                tensor,
            )
        ops = _writing(name)
        if ops:
            return Builtin(
                name, lambda *args, **kwargs: changed(tensor, ops, name, args, kwargs), tensor
            )
    else:
        return special_name(tensor, name)
    if name in NO_DTYPES:
        raise fail("E203", f"tensors of dtype {name} do not exist here", help=NO_DTYPES[name])
    others = [known for known in public_names() if "." not in known]
    close = suggest(name, [*ATTRIBUTES, *METHODS, *OP_ATTRIBUTES, *others])
    raise fault(
        "E207 tensor-no-attribute",
        f"did you mean `.{close[0]}`?" if close else "list all operations: autodiff ops",
        name=name,
    )


_SUBGRAPH = (
    " If you want to use a computed variable in a subgraph that doesn't require differentiation "
    "use var_no_grad = var.detach()."
)


def _set_tensor_attribute(tensor: Tensor, name: str, new: Any) -> None:
    if name == "grad":
        if isinstance(new, list | int | float) and not STATE.python:
            new = Tensor(cast(to_tensor(new), tensor.dtype))
        if new is not None and not isinstance(new, Tensor):
            raise fault("E208 gradient-assigned-tensor-none", kind_of(new), type_name(new))
        if new is tensor:
            raise fault("E205 own-gradient")
        tensor.grad = new
    elif name == "data":
        if not isinstance(new, Tensor):
            raise fault("E208 data-tensor", kind_of(new))
        if tensor.requires_grad and not is_float(new.dtype):
            raise fault("E307 data-tensor-requires-grad", new=new)
        tensor.adopt(new)
    elif name == "requires_grad":
        wanted = flag("requires_grad", new)
        if not tensor.is_leaf:
            words = "you can only change requires_grad flags of leaf variables."
            raise fault("E411 requires_grad-can-set-only", "" if wanted else _SUBGRAPH, words=words)
        tensor.set_requires_grad(wanted, "only {} and complex dtype {}")
    else:
        close = did_you_mean([f".{n}" for n in suggest(name, ("grad", "data", "requires_grad"), 1)])
        advice = close[0] if close else "assignable are .grad, .data and .requires_grad"
        raise fault("E207 attribute-tensor-cannot-set", name=name, advice=advice)


def _backward(
    tensor: Tensor,
    gradient: Any = None,
    retain_graph: Any = None,
    create_graph: Any = False,
    inputs: Any = None,
) -> None:
    if gradient is not None and not isinstance(gradient, Tensor):
        if STATE.python:
            raise fault("E208 gradient-given-backward", kind_of(gradient))
        gradient = (
            Tensor(calls.node_of_list(gradient))
            if isinstance(gradient, list | tuple)
            else Tensor(F.full((), float(gradient)))
        )
    gradients.backward(
        [tensor],
        [gradient],
        retain_graph=None if retain_graph is None else truth(retain_graph),
        create_graph=truth(create_graph),
        inputs=None if inputs is None else tensors_of(inputs, "inputs"),
    )


def _requires_grad_(tensor: Tensor, requires_grad: Any = True) -> Tensor:
    if STATE.levels:
        raise inside("requires_grad_")
    tensor.set_requires_grad(flag("requires_grad", requires_grad), "only {} dtype {}")
    return tensor


def inside(name: str) -> AutodiffError:
    beside = " (or perhaps using torch.autograd.functional.* APIs)" if name[-1] == "_" else ""
    return fault("E411 cannot-called-inside-transform", name=name, beside=beside)


def _size(tensor: Tensor, dim: Any = None) -> Any:
    shape = tensor.shape
    if dim is None:
        return Size(shape)
    if not shape:
        raise fault("E304 needs-no-dim", "size", dim)
    return shape[dim_in_range(to_int(dim), len(shape))]


def _detach_(tensor: Tensor) -> Tensor:
    if base_of(tensor) is not None:
        raise fault("E411 view-cannot-detached-place")
    tensor.forget_history()
    return tensor


def _numpy(tensor: Tensor, force: Any = False) -> Tensor:
    if tensor.requires_grad and STATE.grad and not truth(force):
        raise fault("E402 numpy-cannot-called-tensor-requires")
    if not known(tensor.node):
        np.asarray(value_of(tensor.node))  # says why not
    return as_array(_data(tensor))


def _to(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    return calls.call("to", (tensor, *args), kwargs)


def _type(tensor: Tensor, dtype: Any = None, **kwargs: Any) -> Any:
    if dtype is None:
        return f"torch.{SCALAR_TYPES[tensor.dtype.name]}Tensor"
    return _to(tensor, legacy_dtype(dtype))


def _copy_(tensor: Tensor, src: Any, non_blocking: Any = False) -> Tensor:
    tensor.check_writable()
    if isinstance(src, list | tuple) and STATE.python:
        raise fault("E208 copy-copies-tensor-not")
    node = src.node if isinstance(src, Tensor) else to_tensor(src)
    if src is tensor and not single(tensor.node):
        tensor.count_change()
        return tensor
    source = src if isinstance(src, Tensor) else None
    tensor.write(F.copy_over(tensor.node, node), source=source)
    return tensor


def _zero_(tensor: Tensor) -> Tensor:
    node = tensor.node
    if (node.requires_grad and STATE.grad) or STATE.dual:
        zeros = F.fill(node, number(0))
        zeros.mark().name = "ZeroBackward0"
    else:
        zeros = F.zeros_like(node)
    tensor.write(zeros, fills=True)
    return tensor


def _register_hook(tensor: Tensor, hook: Any) -> Any:
    node = recorded(tensor.node)
    if not node.requires_grad:
        raise fault("E402 hook-needs-tensor-requires")
    level = level_of(node)

    def run(g: Any) -> Any:
        if level is not None and not level.is_target_of(Pass.running):
            return g  # of another transform, to which the tensor is another one
        given = None if g is None else Tensor(g)
        replaced = call_value(hook, [given], {})
        if replaced is None or given is None:
            return given and given.node  # it may have been changed in place
        if not isinstance(replaced, Tensor):
            raise fault("E208 hook-returns-tensor-none", kind_of(replaced), type(replaced).__name__)
        name = getattr(hook, "name", "hook")
        if replaced.dtype != g.dtype:
            types = _type(given), _type(replaced)
            raise fault("E307 hook-changed-dtype", replaced, g, name, types[0], types[1])
        if replaced.shape != g.shape:
            raise fault(
                "E308 hook-returned-shape-gradient-shape", replaced=replaced, g=g, name=name
            )
        return replaced.node

    if node.op is OUTPUT and not node.mark().hooks:
        node.args[0].mark().hooked.append(node)
    return Handle(node.mark().hooks, run)


def _after_accumulation(tensor: Tensor, hook: Any) -> Handle:
    """`register_post_accumulate_grad_hook`: called with the leaf once its `.grad` is complete."""
    accumulator = tensor.accumulator
    if tensor.node.op is not LEAF or accumulator is None:
        raise fault(
            "E411 hooks-after-accumulation-leaves",
            "post accumulate grad hooks cannot be registered on non-leaf tensors"
            if tensor.requires_grad
            else "cannot register a hook on a tensor that doesn't require gradient",
        )

    def run() -> bool:
        """Whether it gives another tensor."""
        found = call_value(hook, [tensor], {})
        return found is not None and found is not tensor

    return Handle(accumulator.hooks, run)


def _tolist(tensor: Tensor) -> Any:
    node = tensor.looked_at
    if node.numel > 10_000_000:
        raise fail("E505", "a list of more than 10 million numbers", help="use the tensor itself")
    return taken_out(node, value_of(node).tolist())


def _masked_scatter_(tensor: Tensor, mask: Any, source: Any) -> Tensor:
    """`x.masked_scatter_(mask, x)` reads what it has written already, as PyTorch does."""
    bools = isinstance(mask, Tensor) and mask.dtype.kind == "b"
    own = source is tensor or (
        isinstance(source, Tensor)
        and source.storage is tensor.storage is not None
        and first_place(source) == first_place(tensor)
        and source.node.numel == tensor.node.numel
        and is_contiguous(source.node)
    )
    if own and bools and is_contiguous(tensor.node):
        values = value_of(tensor.node).ravel().copy()
        places = np.flatnonzero(value_of(F.expand(mask.node, tensor.shape)))
        read = values.copy()
        for at, place in enumerate(places):
            read[at] = values[place] = values[at]
        source = Tensor(F.with_value(source.node, constant(read.reshape(source.shape))))
    return changed(tensor, calls.method("masked_scatter"), "masked_scatter_", (mask, source), {})


def _fill_diagonal(tensor: Tensor, fill_value: Any, wrap: Any = False) -> Tensor:
    tensor.check_writable()
    mask = np.zeros(tensor.shape, bool)
    np.fill_diagonal(mask, True, truth(wrap))
    value = fill_value.item() if isinstance(fill_value, Tensor) else fill_value
    filled = F.masked_fill(tensor.node, constant(mask), value)
    filled.mark().name = "CopySlices"  # it writes through a view
    tensor.write(filled)
    return tensor


def _retain(tensor: Tensor) -> None:
    if STATE.levels:
        raise inside("retain_grad")
    tensor.retain_grad()


def _random(name: str, tensor: Tensor, *args: Any, **kwargs: Any) -> Any:
    return from_above("random.functions.RANDOM_METHODS")[name](tensor, *args, **kwargs)


_DRAWN = """
    uniform_ normal_ random_ bernoulli_ exponential_ cauchy_ geometric_ log_normal_ bernoulli
    multinomial
"""
RANDOM_METHOD_NAMES = tuple(_DRAWN.split())

METHODS: dict[str, Callable[..., Any]] = {
    **{name: partial(_random, name) for name in RANDOM_METHOD_NAMES},
    "item": lambda t: t.item(),
    "tolist": _tolist,
    "size": _size,
    "dim": lambda t: _seen(t).ndim,
    "ndimension": lambda t: _seen(t).ndim,
    "numel": lambda t: _seen(t).numel,
    "nelement": lambda t: _seen(t).numel,
    "element_size": lambda t: t.dtype.itemsize,
    "backward": _backward,
    "retain_grad": _retain,
    "requires_grad_": _requires_grad_,
    "detach": lambda tensor: wrap_view(F.detach(tensor.looked_at), tensor),
    "detach_": _detach_,
    "numpy": _numpy,
    "data_ptr": lambda t: (
        id(t.share()) + t.dtype.itemsize * first_place(t) if t.looked_at.numel else 0
    ),
    "storage_offset": lambda t: first_place(t),
    "cpu": lambda t, *a, **k: t,
    "cuda": lambda t, *a, **k: check_device("cuda"),
    "to": _to,
    "type": _type,
    "type_as": lambda t, other: _to(t, as_given("type_as", other)),
    "copy_": _copy_,
    "zero_": _zero_,
    "fill_diagonal_": _fill_diagonal,
    "masked_scatter_": _masked_scatter_,
    "register_hook": _register_hook,
    "register_post_accumulate_grad_hook": _after_accumulation,
    "is_floating_point": lambda t: is_float(t.dtype),
    "is_complex": lambda t: False,
    "is_signed": lambda t: t.dtype.kind in "if",
    "get_device": lambda t: -1,
    "new": lambda tensor, *args, device=None: legacy_tensor(tensor.dtype, *args),
    "storage": StorageView,
    "untyped_storage": StorageView,
    "as_strided": as_strided,
    "set_": look_at,
    "resize_": resize,
    "resize_as_": lambda t, other: resize(t, *as_given("resize_as_", other).shape),
    "new_tensor": lambda t, values, **k: make_tensor(values, **{"dtype": t.dtype, **k}),
    "is_inference": lambda t: t.inferred,
    "_is_view": lambda t: base_of(t) is not None,
    "pin_memory": lambda t: t,
    "share_memory_": lambda t: t,
}
