"""The statement that makes a class: its body runs in a scope of its own, then the class is made of
the names in it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import AutodiffError, fail
from ..graph.state import STATE
from . import syntax
from .classes import UserClass, Wrapped
from .expressions import Context, compile_expression
from .functions import call_value
from .kinds import kind_of
from .operand_labels import placed
from .values import Scope, TypeName, UserFunction

# Special methods that a class may define.
SPECIAL = frozenset(
    f"__{name}__"
    for name in [
        "init",
        "call",
        "repr",
        "str",
        "len",
        "getitem",
        "setitem",
        "iter",
        "next",
        "delitem",
        "getattr",
        "setattr",
        "contains",
        "bool",
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "add",
        "radd",
        "sub",
        "rsub",
        "mul",
        "rmul",
        "truediv",
        "rtruediv",
        "floordiv",
        "rfloordiv",
        "mod",
        "rmod",
        "pow",
        "rpow",
        "matmul",
        "rmatmul",
        "neg",
        "pos",
        "abs",
        "hash",
        "post_init",
        "iadd",
        "isub",
        "imul",
        "itruediv",
        "enter",
        "exit",
        "float",
        "invert",
    ]
)


def compile_class(tree: syntax.ClassDef, context: Context) -> Callable[[Scope], Any]:
    """The closure of a class statement."""
    from .statements import compile_block

    _check_body(tree)
    bases = [(compile_expression(b, context), b.span) for b in tree.bases]
    inner = Context(False, path=f"{context.path}{tree.name}.")
    inner.in_class = True
    block = compile_block(tree.body, inner)
    decorators = [(compile_expression(d, context), d.span) for d in tree.decorators]
    annotated = [
        s.target.id
        for s in tree.body
        if isinstance(s, syntax.AnnAssign) and isinstance(s.target, syntax.Name)
    ]

    def run(scope: Scope) -> Any:
        parents = []
        for base, span in bases:
            value = base(scope)
            if isinstance(value, UserClass):
                parents.append(value)
            elif not (isinstance(value, TypeName) and value.name == "object"):
                raise fail(
                    "E203",
                    f"{kind_of(value)} cannot be a base class",
                    span,
                    help="bases are classes, nn.Module, autograd.Function",
                )
        cell = Scope(scope)
        body = Scope(cell)
        block(body)
        cls = UserClass(tree.name, parents, body.names, tree.name_span)
        cls.annotated = annotated
        cell.names["__class__"] = cls
        for value in body.names.values():
            wrapped = isinstance(value, Wrapped)
            for function in (value.function, value.setter) if wrapped else (value,):
                if isinstance(function, UserFunction) and function.scope is body:
                    function.scope = cell
        made: Any = cls if cls.finish is None else cls.finish(cls)
        for decorate, span in reversed(decorators):
            STATE.span = span
            try:
                made = call_value(decorate(scope), [made], {})
            except AutodiffError as error:
                raise placed(error, span) from None
        scope.names[tree.name] = made
        return None

    return run


def _check_body(tree: syntax.ClassDef) -> None:
    for statement in tree.body:
        if isinstance(statement, syntax.FunctionDef):
            name = statement.name
            if name.startswith("__") and name.endswith("__") and name not in SPECIAL:
                raise fail(
                    "E106",
                    f"`{name}` cannot be defined",
                    statement.name_span,
                    label="not part of the language",
                    help="use a plain method name",
                )
