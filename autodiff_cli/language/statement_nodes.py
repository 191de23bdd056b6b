"""Statements of the syntax tree, the parts that statements and expressions are made of, and `Node`.

`syntax` has all the classes of the tree.
"""

from __future__ import annotations

from ..source import Span


class Node:
    """A piece of a program; `fields` of its class name its parts in the constructor's order."""

    __slots__ = ("span",)
    fields: tuple[str, ...] = ()
    span: Span

    def __init_subclass__(cls) -> None:
        if "fields" not in vars(cls):
            code = vars(cls)["__init__"].__code__
            cls.fields = code.co_varnames[1 : code.co_argcount - 1]

    def __repr__(self) -> str:
        text = self.span.text
        return f"<{type(self).__name__} {text[:40]!r}{'...' if len(text) > 40 else ''}>"


class Keyword(Node):
    """`name=value` in a call or a class; the name None for `**value`."""

    __slots__ = ("name", "value")

    def __init__(self, name: str | None, value: Node, span: Span):
        self.name = name
        self.value = value
        self.span = span


class Alias(Node):
    """`name as asname` of an import; `asname` is None without `as`."""

    __slots__ = ("asname", "name")

    def __init__(self, name: str, asname: str | None, span: Span):
        self.name = name
        self.asname = asname
        self.span = span


class WithItem(Node):
    """`expr as target` of a `with`."""

    __slots__ = ("expr", "target")

    def __init__(self, expr: Node, target: Node | None, span: Span):
        self.expr = expr
        self.target = target
        self.span = span


class Comprehension(Node):
    """`for target in iter if ... if ...`."""

    __slots__ = ("ifs", "iter", "target")

    def __init__(self, target: Node, iter: Node, ifs: list[Node], span: Span):
        self.target = target
        self.iter = iter
        self.ifs = ifs
        self.span = span


class Param(Node):
    """A parameter: `kind` is "normal", "positional" (before a `/`), "rest" (`*name`), "keyword"
    (after a `*`) or "keywords" (`**name`)."""

    __slots__ = ("annotation", "default", "kind", "name")

    def __init__(
        self, name: str, default: Node | None, kind: str, annotation: Node | None, span: Span
    ):
        self.name = name
        self.default = default
        self.kind = kind
        self.annotation = annotation
        self.span = span


# ---- statements ------------------------------------------------------------


class Module(Node):
    """A whole program."""

    __slots__ = ("body",)

    def __init__(self, body: list[Node], span: Span):
        self.body = body
        self.span = span


class ExprStmt(Node):
    """An expression on its own."""

    __slots__ = ("value",)

    def __init__(self, value: Node, span: Span):
        self.value = value
        self.span = span


class Assign(Node):
    """`a = b = value`."""

    __slots__ = ("targets", "value")

    def __init__(self, targets: list[Node], value: Node, span: Span):
        self.targets = targets
        self.value = value
        self.span = span


class AugAssign(Node):
    """`target op= value`; `op` without the `=`."""

    __slots__ = ("op", "target", "value")

    def __init__(self, target: Node, op: str, value: Node, span: Span):
        self.target = target
        self.op = op
        self.value = value
        self.span = span


class AnnAssign(Node):
    """`target: annotation = value`; the annotation is ignored."""

    __slots__ = ("annotation", "target", "value")

    def __init__(self, target: Node, annotation: Node, value: Node | None, span: Span):
        self.target = target
        self.annotation = annotation
        self.value = value
        self.span = span


class FunctionDef(Node):
    """`def name(params): body`."""

    __slots__ = ("body", "decorators", "name", "name_span", "params", "returns")

    def __init__(
        self,
        name: str,
        params: list[Param],
        body: list[Node],
        decorators: list[Node],
        returns: Node | None,
        name_span: Span,
        span: Span,
    ):
        self.name = name
        self.params = params
        self.body = body
        self.decorators = decorators
        self.returns = returns
        self.name_span = name_span
        self.span = span


class ClassDef(Node):
    """`class name(bases, keywords): body`."""

    __slots__ = ("bases", "body", "decorators", "keywords", "name", "name_span")

    def __init__(
        self,
        name: str,
        bases: list[Node],
        keywords: list[Keyword],
        body: list[Node],
        decorators: list[Node],
        name_span: Span,
        span: Span,
    ):
        self.name = name
        self.bases = bases
        self.keywords = keywords
        self.body = body
        self.decorators = decorators
        self.name_span = name_span
        self.span = span


class Return(Node):
    """`return value`."""

    __slots__ = ("value",)

    def __init__(self, value: Node | None, span: Span):
        self.value = value
        self.span = span


class If(Node):
    """`if`; an `elif` is an If alone in `orelse`."""

    __slots__ = ("body", "orelse", "test")

    def __init__(self, test: Node, body: list[Node], orelse: list[Node], span: Span):
        self.test = test
        self.body = body
        self.orelse = orelse
        self.span = span


class For(Node):
    """`for target in iter: body`, `else` after a loop without break."""

    __slots__ = ("body", "iter", "orelse", "target")

    def __init__(self, target: Node, iter: Node, body: list[Node], orelse: list[Node], span: Span):
        self.target = target
        self.iter = iter
        self.body = body
        self.orelse = orelse
        self.span = span


class While(Node):
    """`while test: body`."""

    __slots__ = ("body", "orelse", "test")

    def __init__(self, test: Node, body: list[Node], orelse: list[Node], span: Span):
        self.test = test
        self.body = body
        self.orelse = orelse
        self.span = span


class With(Node):
    """`with expr as target, ...: body`."""

    __slots__ = ("body", "items")

    def __init__(self, items: list[WithItem], body: list[Node], span: Span):
        self.items = items
        self.body = body
        self.span = span


class Break(Node):
    """`break`."""

    __slots__ = ()

    def __init__(self, span: Span):
        self.span = span


class Continue(Node):
    """`continue`."""

    __slots__ = ()

    def __init__(self, span: Span):
        self.span = span


class Pass(Node):
    """`pass`."""

    __slots__ = ()

    def __init__(self, span: Span):
        self.span = span


class Assert(Node):
    """`assert test, message`."""

    __slots__ = ("message", "test")

    def __init__(self, test: Node, message: Node | None, span: Span):
        self.test = test
        self.message = message
        self.span = span


class Delete(Node):
    """`del targets`."""

    __slots__ = ("targets",)

    def __init__(self, targets: list[Node], span: Span):
        self.targets = targets
        self.span = span


class Import(Node):
    """`import a.b as c, ...`."""

    __slots__ = ("names",)

    def __init__(self, names: list[Alias], span: Span):
        self.names = names
        self.span = span


class ImportFrom(Node):
    """`from module import names`; one name `*` for everything."""

    __slots__ = ("module", "names")

    def __init__(self, module: str, names: list[Alias], span: Span):
        self.module = module
        self.names = names
        self.span = span


class Global(Node):
    """`global names`."""

    __slots__ = ("names",)

    def __init__(self, names: list[str], span: Span):
        self.names = names
        self.span = span


class Nonlocal(Node):
    """`nonlocal names`."""

    __slots__ = ("names",)

    def __init__(self, names: list[str], span: Span):
        self.names = names
        self.span = span


class Raise(Node):
    """`raise value from cause`."""

    __slots__ = ("cause", "value")

    def __init__(self, value: Node | None, cause: Node | None, span: Span):
        self.value = value
        self.cause = cause
        self.span = span


class Handler(Node):
    """`except type as name: body`; a bare `except` has no type."""

    __slots__ = ("body", "name", "type")

    def __init__(self, type: Node | None, name: str | None, body: list[Node], span: Span):
        self.type = type
        self.name = name
        self.body = body
        self.span = span


class Try(Node):
    """`try: body` with its handlers, `else` and `finally`."""

    __slots__ = ("body", "final", "handlers", "orelse")

    def __init__(
        self,
        body: list[Node],
        handlers: list[Handler],
        orelse: list[Node],
        final: list[Node],
        span: Span,
    ):
        self.body = body
        self.handlers = handlers
        self.orelse = orelse
        self.final = final
        self.span = span


class Yield(Node):
    """`yield value`, or `yield from value`."""

    __slots__ = ("each", "value")

    def __init__(self, value: Node | None, each: bool, span: Span):
        self.value = value
        self.each = each
        self.span = span
