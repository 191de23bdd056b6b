"""Calls and attributes become closures; methods of tensors are looked up once for each place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...autograd import calls
from ...autograd.tensor import Tensor
from ...errors import AutodiffError, fault
from ...graph.op import Op
from ...graph.state import STATE
from ..errors.operand_labels import placed, placed_attribute, placed_call
from ..syntax import tree as syntax
from ..values.functions import call_op, call_value, guarded
from ..values.plain_operands import refuse_plain
from ..values.providers import from_above
from ..values.values import Namespace, OpFunction, Scope
from .attributes import ATTRIBUTES, METHODS, OP_ATTRIBUTES, get_attribute
from .expressions import Context, callee, compile_expression, elements, keyword_dict
from .names import member

Run = Callable[[Scope], Any]


def compile_call(tree: syntax.Call, context: Context) -> Run:
    """The closure of a call."""
    arguments = elements(tree.args, context)
    keywords = [(k.name, compile_expression(k.value, context)) for k in tree.keywords]
    span = tree.span
    if isinstance(tree.func, syntax.Name) and tree.func.id == "super":
        return _super(tree, context)
    if isinstance(tree.func, syntax.Attribute):
        return _method_call(tree, tree.func, context)
    if isinstance(tree.func, syntax.Name):
        function = callee(tree.func, context)
    else:
        function = compile_expression(tree.func, context)

    def run(scope: Scope) -> Any:
        value = function(scope)
        args = arguments(scope)
        kwargs = keyword_values(keywords, scope, span) if keywords else {}
        STATE.span = span
        try:
            if type(value) is OpFunction:
                if len(args) == 1 and type(args[0]) is Tensor and not kwargs:
                    op = value.ops[0]
                    if op.arity == 1:
                        return Tensor(op.one(args[0].node))
                return call_op(value, args, kwargs)
            return call_value(value, args, kwargs, scope)
        except AutodiffError as error:
            if error.span is None:
                raise placed_call(error, tree, args, kwargs) from None
            raise

    return run


def keyword_values(keywords: list[tuple[str | None, Run]], scope: Scope, span: Any) -> Any:
    """The keyword arguments of a call."""
    kwargs: dict[str, Any] = {}
    for name, part in keywords:
        if name is None:
            more = keyword_dict(part(scope), span)
            twice = kwargs.keys() & more.keys()
            if twice:
                raise fault("E205 got-multiple-values-keyword", min(twice), span=span)
            kwargs.update(more)
        else:
            kwargs[name] = part(scope)
    return kwargs


def _method_call(tree: syntax.Call, function: syntax.Attribute, context: Context) -> Run:
    """`owner.name(...)`; for a tensor without making the bound method."""
    owner_run = compile_expression(function.value, context)
    read = attribute_reader(function)
    arguments = elements(tree.args, context)
    keywords = [(k.name, compile_expression(k.value, context)) for k in tree.keywords]
    span = tree.span
    name = function.attr
    plain = not (name in ATTRIBUTES or name in OP_ATTRIBUTES or name.startswith("_"))
    method = METHODS.get(name) if plain else None
    ops: list[Op] | None = None

    def run(scope: Scope) -> Any:
        nonlocal ops
        owner = owner_run(scope)
        of_tensor = plain and type(owner) is Tensor and owner.tag is None
        if of_tensor and method is None:
            if ops is None:
                ops = calls.method(name)
            of_tensor = bool(ops)
        value = None if of_tensor else read(owner)
        args = arguments(scope)
        kwargs = keyword_values(keywords, scope, span) if keywords else {}
        STATE.span = span
        try:
            if not of_tensor:
                if type(value) is OpFunction:
                    return call_op(value, args, kwargs)
                return call_value(value, args, kwargs, scope)
            if method is not None:
                return guarded(name, method, [owner, *args], kwargs)
            assert ops is not None
            if STATE.python and (args or kwargs):
                refuse_plain(ops, name, (owner, *args), kwargs, 1)
            return guarded(name, calls.call_ops, [ops, name, (owner, *args), kwargs], {})
        except AutodiffError as error:
            if error.span is None:
                subject = owner if type(owner) is Tensor and owner.tag is None else None
                raise placed_call(error, tree, args, kwargs, subject) from None
            raise

    return run


def _super(tree: syntax.Call, context: Context) -> Run:
    make_super = from_above("runtime.class_statements.make_super")
    arguments = elements(tree.args, context)
    span = tree.span

    def run(scope: Scope) -> Any:
        try:
            return make_super(scope, arguments(scope))
        except AutodiffError as error:
            raise placed(error, span) from None

    return run


def compile_attribute(tree: syntax.Attribute, context: Context) -> Run:
    """The closure of `value.name`."""
    value_run = compile_expression(tree.value, context)
    read = attribute_reader(tree)
    return lambda scope: read(value_run(scope))


def attribute_reader(tree: syntax.Attribute) -> Callable[[Any], Any]:
    """`read(value)` of an attribute."""
    name = tree.attr
    span = tree.span

    def read(value: Any) -> Any:
        STATE.span = span
        try:
            return member(value, name) if type(value) is Namespace else get_attribute(value, name)
        except AutodiffError as error:
            raise placed_attribute(error, tree, value) from None

    return read
