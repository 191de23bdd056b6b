"""Calling ops with tensor handles: overloads, conversion, views, in-place forms.

What PyTorch's argument parser does: the first overload whose signature fits is taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .. import ops as _ops  # noqa: F401  # importing it makes the table known
from ..errors import AutodiffError, fault
from ..graph import params
from ..graph.node import Node
from ..graph.op import OUTPUT, Op, constant
from ..graph.params import BindError
from ..graph.registry import F, overloads
from ..graph.state import STATE
from .handles import view_steps, wrap_view
from .literals import array_of, array_of_list, check_extent, has_tensor
from .tensor import Tensor


class Results(tuple):
    """Several results with names, PyTorch's `torch.return_types`: `.values`, `.indices`."""

    fields: tuple[str, ...] = ()
    name = ""


def call(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Apply the op with public name `name`; tensors in, tensors out.

    Raises E205 when no overload fits, and what the op itself raises.
    """
    return call_ops(overloads(name), name, args, kwargs)


def call_ops(ops: list[Op], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Apply the first of `ops` whose signature fits."""
    first = FLOATING.get(ops[0].family)
    if first and any(isinstance(a, list) for a in args) and isinstance(args[0], first):
        args = tuple(float_operand(a) for a in args)
    place = ops[0].index.get("inplace")
    if place is not None and (kwargs.get("inplace") or (len(args) > place and args[place])):
        return _in_place_by_option(ops, name, args, kwargs, place)
    try:
        nodes = tuple([a.node if type(a) is Tensor else a for a in args])
    except AutodiffError:  # a view whose history is lost: what needs none may look at it
        seen = [a.looked_at if isinstance(a, Tensor) else a for a in args]
        result = call_ops(ops, name, tuple(seen), kwargs)
        if isinstance(result, Tensor) and result.node is seen[0]:
            return args[0]
        for part in result if isinstance(result, tuple) else (result,):
            if isinstance(part, Tensor) and part.node.requires_grad:
                raise
        return result
    op = ops[0]
    if op.arity == len(nodes) and not kwargs:
        if op.arity == 1 and type(nodes[0]) is Node:
            return Tensor(op.one(nodes[0]))
    elif (known := op.apply_cached(nodes, kwargs)) is not None:
        return wrapped(op, known, args, kwargs)
    problems: list[tuple[Op, BindError]] = []
    for op in ops:
        try:
            bound = op.bind(args, kwargs)
        except BindError as error:
            problems.append((op, error))
            continue
        try:
            result = op.apply(bound)
        except BindError as error:  # a body converts what its signature leaves open
            raise does_not_fit(name, [(op, error)]) from None
        except AutodiffError as error:
            error.within = True
            raise
        return wrapped(op, result, args, kwargs)
    raise does_not_fit(name, problems)


def _in_place_by_option(
    ops: list[Op], name: str, args: tuple[Any, ...], kwargs: dict[str, Any], place: int
) -> Any:
    """`F.relu(x, inplace=True)`: the result is written into the first argument."""
    plain = (*args[:place], False, *args[place + 1 :]) if len(args) > place else args
    options = {key: value for key, value in kwargs.items() if key != "inplace"}
    target = args[0] if args else kwargs.get("input")
    if not isinstance(target, Tensor):
        return call_ops(ops, name, plain, options)
    target.check_writable()
    result = call_ops(ops, name, plain, options)
    call_in_place(result.node)
    target.write(result.node, result.node)
    return target


def call_in_place(node: Node) -> None:
    """Give the result of an in-place change the name that PyTorch has for it."""
    called = IN_PLACE_NAMES.get(node.grad_name) if node.requires_grad else None
    if called is not None:
        node.mark().name = called


# Families whose operands are floats, by what their first argument is: a list of whole numbers means
# floats there.
FLOATING: dict[str, type] = {"contraction": object, "einsum": str}


def float_operand(value: Any) -> Any:
    """A numeric list as a constant tensor of the default float dtype; other values as they are."""
    if isinstance(value, list) and value and not has_tensor(value):
        return Tensor(constant(array_of(value, STATE.default_dtype)))
    return value


def does_not_fit(name: str, problems: list[tuple[Op, BindError]]) -> AutodiffError:
    """E205: what is wrong with the best overload, and all signatures, of which the same in another
    order (a method's) count once."""
    op, error = problems[0]
    for other, other_error in problems:
        if other_error.argument in other.index and error.argument not in op.index:
            op, error = other, other_error
    signatures = {frozenset(o.index): f"`{o.signature()}`" for o, _ in reversed(problems)}
    listed = " or ".join(reversed(signatures.values()))
    if error.wants == "a tensor":
        given, value = error.given, error.value
        failure = fault(
            "E205 argument-must-tensor", name, error.argument, given, value, f"write {listed}"
        )
    else:
        failure = fault("E205 error", name, error, listed)
    failure.position = op.index.get(error.argument, -1)
    error.names = list(problems[0][0].index)
    failure.facts = {
        **failure.facts,
        "error": error,
        "signatures": [o.signature() for o, _ in problems],
    }
    return failure


def wrapped(op: Op, result: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Handles for the nodes of a result; views share storage with the argument they look at."""
    if type(result) is Node:
        if result.op.view or result.op is OUTPUT or result.handle is not None:
            return _maybe_view(result, args, kwargs)
        tensor = Tensor(result)
        if kwargs and kwargs.get("requires_grad") is True:
            tensor.set_requires_grad(True)
        return tensor
    if type(result) is tuple:
        parts = [wrapped(op, part, args, kwargs) for part in result]
        if op.fields:
            named = Results(parts)
            named.fields = op.fields
            named.name = op.name.replace(".", "_")
            return named
        return tuple(parts)
    return result


def _maybe_view(node: Node, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Tensor:
    for value in (*args, *kwargs.values()):
        for tensor in value if isinstance(value, list | tuple) else (value,):
            if isinstance(tensor, Tensor):
                if tensor.node is node:
                    return tensor
                if view_steps(node, tensor.node) is not None:
                    return wrap_view(node, tensor)
    return Tensor(node)


def method(name: str) -> list[Op]:
    """Ops that answer as a method of this name (`x.sum()`), or []."""
    return [
        op for op in overloads(name) if op.method and op.tensor_params and op.tensor_params[0] == 0
    ]


# Backward functions that PyTorch calls otherwise when the change is made in place.
IN_PLACE_NAMES = {
    "AcoshBackward0": "AcoshBackward1",
    "AsinhBackward0": "AsinhBackward1",
    "AtanhBackward0": "AtanhBackward1",
    "CeluBackward0": "CeluBackward1",
    "EluBackward0": "EluBackward1",
    "FillBackward0": "FillBackward2",
    "FillBackward1": "FillBackward3",
    "LeakyReluBackward0": "LeakyReluBackward1",
    "RreluWithNoiseBackward0": "RreluWithNoiseBackward1",
    "SqueezeBackward0": "SqueezeBackward3",
    "SqueezeBackward1": "SqueezeBackward4",
    "SqueezeBackward2": "SqueezeBackward5",
    "TBackward0": "TBackward1",
    "ThresholdBackward0": "ThresholdBackward1",
    "TransposeBackward0": "TransposeBackward1",
    "UnsqueezeBackward0": "UnsqueezeBackward1",
}


# In-place ops that may write one place several times.
FILLS = frozenset({"fill_", "index_fill_", "masked_fill_", "threshold_", "zero_"})


def in_place(
    tensor: Tensor, ops: list[Op], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Tensor:
    """`x.add_(y)`: the op's result is written into `x`."""
    tensor.check_writable()
    shared = tensor.storage is not None
    result = call_ops(ops, name, (tensor, *args), kwargs)
    call_in_place(result.node)
    if result.steps and result.storage is tensor.storage:
        tensor.become_view(result, shared)
        tensor.check_inference()
        return tensor
    if tuple(result.shape) != tuple(tensor.shape):
        raise fault(
            "E308 would-change-shape-tensor", name, tuple(tensor.shape), tuple(result.shape)
        )
    check_storable(f"{name}()", result.dtype, tensor)
    tensor.write(result.node, result.node, fills=name in FILLS)
    return tensor


def check_storable(what: str, result: np.dtype, tensor: Tensor) -> None:
    """E307 when a result would lose its kind in the tensor that is changed: floats in integers,
    numbers in bools."""
    target = tensor.dtype
    if (result.kind == "f" and target.kind != "f") or (result.kind != "b" and target.kind == "b"):
        name = "float" if result.kind == "f" else "long"
        raise fault("E307 gives-cannot-stored-tensor", what, result, target, name)


def node_of_list(values: Any) -> Node:
    """The node of a (nested) list of numbers and tensors; E107 when it is ragged."""
    if has_tensor(values):
        check_extent(values)
        nodes = [params.to_tensor(v) for v in values]
        shapes = {n.shape for n in nodes}
        if len(shapes) > 1:
            raise fault("E107 rows-list-different-shapes", sorted(shapes))
        return F.stack(tuple(nodes), 0)
    return array_of_list(values)


params.LATE.node_of_list = node_of_list
