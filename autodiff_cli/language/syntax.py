"""The syntax tree: one slotted class per construct, each with the span of its text.

Nodes are made by the parser and never changed afterwards; private names are renamed by it. The
span of an expression leaves out the parentheses around it, the span of what contains it takes them
in, as Python's positions do.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import EllipsisType
from typing import TYPE_CHECKING, Any

from ..source import Span
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
    from .number_arrays import NumberArray


# ---- expressions ------------------------------------------------------------


class Name(Node):
    """A name."""

    __slots__ = ("id",)

    def __init__(self, id: str, span: Span):
        self.id = id
        self.span = span


class Constant(Node):
    """A number, string, True, False, None or `...`."""

    __slots__ = ("value",)

    def __init__(self, value: int | float | bool | str | EllipsisType | None, span: Span):
        self.value = value
        self.span = span


class NumList(Node):
    """A (nested) list of numbers only, as Python lists of int and float.

    A very long one is an array, and its lists are made when they are asked for.
    """

    __slots__ = ("array", "listed")

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

    __slots__ = ("elements",)

    def __init__(self, elements: list[Node], span: Span):
        self.elements = elements
        self.span = span


class Tuple(Node):
    """`(elements)`, with or without the parentheses."""

    __slots__ = ("elements",)

    def __init__(self, elements: list[Node], span: Span):
        self.elements = elements
        self.span = span


class Set(Node):
    """`{elements}`."""

    __slots__ = ("elements",)

    def __init__(self, elements: list[Node], span: Span):
        self.elements = elements
        self.span = span


class Dict(Node):
    """`{key: value}`; the key None unpacks the value (`**value`)."""

    __slots__ = ("keys", "values")

    def __init__(self, keys: list[Node | None], values: list[Node], span: Span):
        self.keys = keys
        self.values = values
        self.span = span


class UnaryOp(Node):
    """`op` is one of `+ - ~ not`."""

    __slots__ = ("op", "operand")

    def __init__(self, op: str, operand: Node, span: Span):
        self.op = op
        self.operand = operand
        self.span = span


class BinOp(Node):
    """`left op right`; `op_span` is the operator's place."""

    __slots__ = ("left", "op", "op_span", "right")

    def __init__(self, left: Node, op: str, right: Node, op_span: Span, span: Span):
        self.left = left
        self.op = op
        self.right = right
        self.op_span = op_span
        self.span = span


class BoolOp(Node):
    """`a and b and c`; two or more values."""

    __slots__ = ("op", "values")

    def __init__(self, op: str, values: list[Node], span: Span):
        self.op = op
        self.values = values
        self.span = span


class Compare(Node):
    """`left < b <= c`; `not in` and `is not` are one operator."""

    __slots__ = ("comparators", "left", "op_spans", "ops")

    def __init__(
        self, left: Node, ops: list[str], comparators: list[Node], op_spans: list[Span], span: Span
    ):
        self.left = left
        self.ops = ops
        self.comparators = comparators
        self.op_spans = op_spans
        self.span = span


class Call(Node):
    """`func(args, name=value)`; a Starred among `args`, a name None for `**value`."""

    __slots__ = ("args", "func", "keywords")

    def __init__(self, func: Node, args: list[Node], keywords: list[Keyword], span: Span):
        self.func = func
        self.args = args
        self.keywords = keywords
        self.span = span


class Starred(Node):
    """`*value`."""

    __slots__ = ("value",)

    def __init__(self, value: Node, span: Span):
        self.value = value
        self.span = span


class Attribute(Node):
    """`value.attr`."""

    __slots__ = ("attr", "attr_span", "value")

    def __init__(self, value: Node, attr: str, attr_span: Span, span: Span):
        self.value = value
        self.attr = attr
        self.attr_span = attr_span
        self.span = span


class Subscript(Node):
    """`value[index]`; several indices are a Tuple."""

    __slots__ = ("index", "value")

    def __init__(self, value: Node, index: Node, span: Span):
        self.value = value
        self.index = index
        self.span = span


class Slice(Node):
    """`lower:upper:step`."""

    __slots__ = ("lower", "step", "upper")

    def __init__(self, lower: Node | None, upper: Node | None, step: Node | None, span: Span):
        self.lower = lower
        self.upper = upper
        self.step = step
        self.span = span


class IfExp(Node):
    """`body if test else orelse`."""

    __slots__ = ("body", "orelse", "test")

    def __init__(self, test: Node, body: Node, orelse: Node, span: Span):
        self.test = test
        self.body = body
        self.orelse = orelse
        self.span = span


class NamedExpr(Node):
    """`name := value`."""

    __slots__ = ("target", "value")

    def __init__(self, target: Name, value: Node, span: Span):
        self.target = target
        self.value = value
        self.span = span


class Lambda(Node):
    """`lambda params: body`."""

    __slots__ = ("body", "params")

    def __init__(self, params: list[Param], body: Node, span: Span):
        self.params = params
        self.body = body
        self.span = span


class ListComp(Node):
    """`[elt for ...]`."""

    __slots__ = ("elt", "generators")

    def __init__(self, elt: Node, generators: list[Comprehension], span: Span):
        self.elt = elt
        self.generators = generators
        self.span = span


class SetComp(Node):
    """`{elt for ...}`."""

    __slots__ = ("elt", "generators")

    def __init__(self, elt: Node, generators: list[Comprehension], span: Span):
        self.elt = elt
        self.generators = generators
        self.span = span


class GeneratorExp(Node):
    """`(elt for ...)`."""

    __slots__ = ("elt", "generators")

    def __init__(self, elt: Node, generators: list[Comprehension], span: Span):
        self.elt = elt
        self.generators = generators
        self.span = span


class DictComp(Node):
    """`{key: value for ...}`."""

    __slots__ = ("generators", "key", "value")

    def __init__(self, key: Node, value: Node, generators: list[Comprehension], span: Span):
        self.key = key
        self.value = value
        self.generators = generators
        self.span = span


class JoinedStr(Node):
    """An f-string: Constants and FormattedValues."""

    __slots__ = ("parts",)

    def __init__(self, parts: list[Node], span: Span):
        self.parts = parts
        self.span = span


class FormattedValue(Node):
    """`{value!r:spec}`; `debug_text` is what `{value=}` shows before the value."""

    __slots__ = ("conversion", "debug_text", "format_spec", "value")

    def __init__(
        self,
        value: Node,
        conversion: str | None,
        format_spec: JoinedStr | None,
        debug_text: str | None,
        span: Span,
    ):
        self.value = value
        self.conversion = conversion
        self.format_spec = format_spec
        self.debug_text = debug_text
        self.span = span


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
    pending: list[Node] = list(module.body)
    for statement in pending:  # it grows
        if type(statement) is Import or type(statement) is ImportFrom:
            return True
        for body in bodies(statement):
            pending.extend(body)
    return False


def same(left: object, right: object) -> bool:
    """Whether two trees have the same structure and values, wherever they stand in their texts."""
    pending: list[tuple[object, object]] = [(left, right)]
    while pending:
        a, b = pending.pop()
        if type(a) is not type(b):
            return False
        if isinstance(a, Node):
            pending.extend((getattr(a, name), getattr(b, name)) for name in a.fields)
        elif isinstance(a, list):
            assert isinstance(b, list)
            if len(a) != len(b):
                return False
            pending.extend(zip(a, b, strict=True))
        elif isinstance(a, float):
            if repr(a) != repr(b):
                return False
        elif not isinstance(a, Span) and a != b:
            return False
    return True
