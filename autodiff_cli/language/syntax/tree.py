"""The syntax tree: one slotted class per construct, each with the span of its text.

Nodes are made by the parser and never changed afterwards; private names are renamed by it. The
span of an expression leaves out the parentheses around it, the span of what contains it takes them
in, as Python's positions do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import cache
from types import EllipsisType, FunctionType
from typing import TYPE_CHECKING, Any

from ...source import Span

if TYPE_CHECKING:
    import numpy as np


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


# ---- expressions ------------------------------------------------------------


class Name(Node):
    """A name."""

    id: str


class Constant(Node):
    """A number, string, True, False, None or `...`."""

    value: int | float | bool | str | EllipsisType | None


class NumList(Node):
    """A (nested) list of numbers only, as Python lists of int and float.

    A very long one of floats is an array, and its lists are made when they are asked for.
    """

    __slots__ = ("array", "listed")
    fields = ("values",)

    def __init__(self, values: list[Any] | np.ndarray, span: Span):
        self.listed = values if isinstance(values, list) else None
        self.array = None if isinstance(values, list) else values
        self.span = span

    @property
    def values(self) -> list[Any]:
        if self.listed is None:
            assert self.array is not None
            return self.array.tolist()
        return self.listed


class List(Node):
    """`[elements]`."""

    elements: list[Node]


class Tuple(Node):
    """`(elements)`, with or without the parentheses."""

    elements: list[Node]


class Set(Node):
    """`{elements}`."""

    elements: list[Node]


class Dict(Node):
    """`{key: value}`; the key None unpacks the value (`**value`)."""

    keys: list[Node | None]
    values: list[Node]


class UnaryOp(Node):
    """`op` is one of `+ - ~ not`."""

    op: str
    operand: Node


class BinOp(Node):
    """`left op right`; `op_span` is the operator's place."""

    left: Node
    op: str
    right: Node
    op_span: Span


class BoolOp(Node):
    """`a and b and c`; two or more values."""

    op: str
    values: list[Node]


class Compare(Node):
    """`left < b <= c`; `not in` and `is not` are one operator."""

    left: Node
    ops: list[str]
    comparators: list[Node]
    op_spans: list[Span]


class Call(Node):
    """`func(args, name=value)`; a Starred among `args`, a name None for `**value`."""

    func: Node
    args: list[Node]
    keywords: list[Keyword]


class Starred(Node):
    """`*value`."""

    value: Node


class Attribute(Node):
    """`value.attr`."""

    value: Node
    attr: str
    attr_span: Span


class Subscript(Node):
    """`value[index]`; several indices are a Tuple."""

    value: Node
    index: Node


class Slice(Node):
    """`lower:upper:step`."""

    lower: Node | None
    upper: Node | None
    step: Node | None


class IfExp(Node):
    """`body if test else orelse`."""

    test: Node
    body: Node
    orelse: Node


class NamedExpr(Node):
    """`name := value`."""

    target: Name
    value: Node


class Lambda(Node):
    """`lambda params: body`."""

    params: list[Param]
    body: Node


class ListComp(Node):
    """`[elt for ...]`."""

    elt: Node
    generators: list[Comprehension]


class SetComp(Node):
    """`{elt for ...}`."""

    elt: Node
    generators: list[Comprehension]


class GeneratorExp(Node):
    """`(elt for ...)`."""

    elt: Node
    generators: list[Comprehension]


class DictComp(Node):
    """`{key: value for ...}`."""

    key: Node
    value: Node
    generators: list[Comprehension]


class JoinedStr(Node):
    """An f-string: Constants and FormattedValues."""

    parts: list[Node]


class FormattedValue(Node):
    """`{value!r:spec}`; `debug_text` is what `{value=}` shows before the value."""

    value: Node
    conversion: str | None
    format_spec: JoinedStr | None
    debug_text: str | None


# ---- walking -----------------------------------------------------------------------------------


def children(node: Node) -> list[Node]:
    """The nodes directly below a node, in the order of its fields."""
    found: list[Node] = []
    if type(node) is NumList:
        return found
    for name in node.fields:
        value = getattr(node, name)
        if isinstance(value, Node):
            found.append(value)
        elif isinstance(value, list):
            found.extend(item for item in value if isinstance(item, Node))
    return found


def operand(node: Node) -> str:
    """The text of a node, in parentheses where an attribute of it or an operator needs them."""
    text = node.span.text
    simple = Name | Constant | Call | Attribute | Subscript | NumList | List
    return text if isinstance(node, simple) else f"({text})"


def below(node: Node) -> list[Node]:
    """The statements in the blocks of a statement."""
    return [statement for body in bodies(node) for statement in body]


def within(
    trees: Iterable[Node],
    closed: type[Node] | tuple[type[Node], ...] = (),
    further: Callable[[Node], Iterable[Node]] = children,
) -> Iterator[Node]:
    """Trees and what is `further` down, in no order; what `closed` kinds contain is left out."""
    pending = list(trees)
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, closed):
            pending.extend(further(node))


def walk(node: Node) -> Iterator[Node]:
    """A node and everything below it, parents first, without recursion."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(reversed(children(current)))


def private(name: str, owner: str) -> str:
    """What Python makes of the name `__name` in a class: `_Owner__name`."""
    hidden = name.startswith("__") and not name.endswith("__")
    plain = owner.lstrip("_")
    return f"_{plain}{name}" if hidden and plain else name


def rename_private(tree: ClassDef) -> ClassDef:
    """Rename the private names in the body of a class."""
    if "__" not in tree.span.text:
        return tree
    for statement in tree.body:
        for node in walk(statement):
            for field in ("id", "attr", "name", "asname"):
                name = getattr(node, field, None)
                if type(name) is str:
                    setattr(node, field, private(name, tree.name))
            if isinstance(node, Global | Nonlocal):
                node.names = [private(name, tree.name) for name in node.names]
    return tree


def bodies(node: Node) -> list[list[Node]]:
    """The lists of statements that a statement contains."""
    found: list[list[Node]] = []
    if "body" not in node.fields:
        return found
    for field in ("body", "orelse", "final"):
        value = getattr(node, field, None)
        if isinstance(value, list):
            found.append(value)
    if isinstance(node, Try):
        found[1:1] = [handler.body for handler in node.handlers]
    return found


def has_import(module: Module) -> bool:
    """Whether a program has an `import` line, at module level or in any block."""
    statements = list(module.body)
    for statement in statements:  # it grows
        if type(statement) is Import or type(statement) is ImportFrom:
            return True
        for body in bodies(statement):
            statements.extend(body)
    return False
