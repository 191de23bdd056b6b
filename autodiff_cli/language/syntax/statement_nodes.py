"""Statements of the syntax tree, the parts that statements and expressions are made of, and `Node`.

`syntax` has all the classes of the tree.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import FunctionType
from typing import Any

from ...source import Span


@cache
def _template(size: int) -> Callable[..., None]:
    """A constructor of `size` parts and the span, whose names are still to be given."""
    names = [f"part_{index}" for index in range(size)] + ["span"]
    body = "".join(f"\n    self.{name} = {name}" for name in names)
    found: dict[str, Any] = {}
    exec(f"def __init__(self, {', '.join(names)}):{body}", found)
    return found["__init__"]


class _Kind(type):
    """Gives a class of the tree slots and a constructor for the fields that it declares."""

    def __new__(meta, name: str, bases: Any, names: dict[str, Any]) -> Any:
        if "__slots__" not in names:
            fields = names["fields"] = names["__slots__"] = tuple(names.get("__annotations__", ()))
            parts = (*fields, "span")
            # One text for each number of fields is compiled, not one for each class: start-up.
            code = _template(len(fields)).__code__.replace(
                co_names=parts, co_varnames=("self", *parts)
            )
            names["__init__"] = FunctionType(code, {}, "__init__")
        return super().__new__(meta, name, bases, names)


class Node(metaclass=_Kind):
    """A piece of a program; `fields` of its class name its parts in the constructor's order."""

    __slots__ = ("span",)
    fields: tuple[str, ...] = ()
    span: Span

    def __init__(self, *parts: Any):
        """Take the fields in their order, then the span."""

    def __repr__(self) -> str:
        text = self.span.text
        return f"<{type(self).__name__} {text[:40]!r}{'...' if len(text) > 40 else ''}>"


class Keyword(Node):
    """`name=value` in a call or a class; the name None for `**value`."""

    name: str | None
    value: Node


class Alias(Node):
    """`name as asname` of an import; `asname` is None without `as`."""

    name: str
    asname: str | None


class WithItem(Node):
    """`expr as target` of a `with`."""

    expr: Node
    target: Node | None


class Comprehension(Node):
    """`for target in iter if ... if ...`."""

    target: Node
    iter: Node
    ifs: list[Node]


class Param(Node):
    """A parameter: `kind` is "normal", "positional" (before a `/`), "rest" (`*name`), "keyword"
    (after a `*`) or "keywords" (`**name`)."""

    name: str
    default: Node | None
    kind: str
    annotation: Node | None


# ---- statements ------------------------------------------------------------


class Module(Node):
    """A whole program."""

    body: list[Node]


class ExprStmt(Node):
    """An expression on its own."""

    value: Node


class Assign(Node):
    """`a = b = value`."""

    targets: list[Node]
    value: Node


class AugAssign(Node):
    """`target op= value`; `op` without the `=`."""

    target: Node
    op: str
    value: Node


class AnnAssign(Node):
    """`target: annotation = value`; the annotation is ignored."""

    target: Node
    annotation: Node
    value: Node | None


class FunctionDef(Node):
    """`def name(params): body`."""

    name: str
    params: list[Param]
    body: list[Node]
    decorators: list[Node]
    returns: Node | None
    name_span: Span


class ClassDef(Node):
    """`class name(bases, keywords): body`."""

    name: str
    bases: list[Node]
    keywords: list[Keyword]
    body: list[Node]
    decorators: list[Node]
    name_span: Span


class Return(Node):
    """`return value`."""

    value: Node | None


class If(Node):
    """`if`; an `elif` is an If alone in `orelse`."""

    test: Node
    body: list[Node]
    orelse: list[Node]


class For(Node):
    """`for target in iter: body`, `else` after a loop without break."""

    target: Node
    iter: Node
    body: list[Node]
    orelse: list[Node]


class While(Node):
    """`while test: body`."""

    test: Node
    body: list[Node]
    orelse: list[Node]


class With(Node):
    """`with expr as target, ...: body`."""

    items: list[WithItem]
    body: list[Node]


class Break(Node):
    """`break`."""


class Continue(Node):
    """`continue`."""


class Pass(Node):
    """`pass`."""


class Assert(Node):
    """`assert test, message`."""

    test: Node
    message: Node | None


class Delete(Node):
    """`del targets`."""

    targets: list[Node]


class Import(Node):
    """`import a.b as c, ...`."""

    names: list[Alias]


class ImportFrom(Node):
    """`from module import names`; one name `*` for everything."""

    module: str
    names: list[Alias]


class Global(Node):
    """`global names`."""

    names: list[str]


class Nonlocal(Node):
    """`nonlocal names`."""

    names: list[str]


class Raise(Node):
    """`raise value from cause`."""

    value: Node | None
    cause: Node | None


class Handler(Node):
    """`except type as name: body`; a bare `except` has no type."""

    type: Node | None
    name: str | None
    body: list[Node]


class Try(Node):
    """`try: body` with its handlers, `else` and `finally`."""

    body: list[Node]
    handlers: list[Handler]
    orelse: list[Node]
    final: list[Node]


class Yield(Node):
    """`yield value`, or `yield from value`."""

    value: Node | None
    each: bool
