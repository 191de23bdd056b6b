"""The syntax tree: one slotted class per construct, each with the span of its text.

Nodes are made by the parser and never changed afterwards; private names are renamed by it. The
span of an expression leaves out the parentheses around it, the span of what contains it takes them
in, as Python's positions do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from types import EllipsisType
from typing import TYPE_CHECKING, Any

from ...source import Span
from .statement_nodes import *  # noqa: F403  # this module has every class of the tree
from .statement_nodes import (
    ClassDef,
    Comprehension,
    Global,
    Import,
    ImportFrom,
    Keyword,
    Module,
    Node,
    Nonlocal,
    Param,
    Try,
)

if TYPE_CHECKING:
    from .literals.number_arrays import NumberArray


# ---- expressions ------------------------------------------------------------


class Name(Node):
    """A name."""

    id: str


class Constant(Node):
    """A number, string, True, False, None or `...`."""

    value: int | float | bool | str | EllipsisType | None


class NumList(Node):
    """A (nested) list of numbers only, as Python lists of int and float.

    A very long one is an array, and its lists are made when they are asked for.
    """

    __slots__ = ("array", "listed")
    fields = ("values",)

    def __init__(self, values: list[Any] | NumberArray, span: Span):
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
