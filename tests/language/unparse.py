"""From a tree back to text: one canonical spelling, which parses to the same tree.

Works on a stack of pieces instead of by recursion, so that chains of any length can be written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from autodiff_cli.language.syntax import tree as s
from autodiff_cli.source import Span

# How tightly an expression binds; a piece that binds less tightly than its place gets parentheses.
(
    TUPLE, TEST, OR, AND, NOT, COMPARE, BAR, CARET, AMPERSAND, SHIFT, ARITHMETIC, TERM, FACTOR,
    POWER, PRIMARY,
) = range(15)  # fmt: skip

_BINARY = {
    "|": BAR, "^": CARET, "&": AMPERSAND, "<<": SHIFT, ">>": SHIFT, "+": ARITHMETIC,
    "-": ARITHMETIC, "*": TERM, "/": TERM, "//": TERM, "%": TERM, "@": TERM, "**": POWER,
}  # fmt: skip


class Slot:
    """A node to be written in a place that wants at least the given tightness."""

    __slots__ = ("level", "node")

    def __init__(self, node: s.Node, level: int = TEST):
        self.node = node
        self.level = level


class Block:
    """Statements to be written one level further in."""

    __slots__ = ("body",)

    def __init__(self, body: list[s.Node]):
        self.body = body


class Line:
    """Pieces of one line, or of the head of a block."""

    __slots__ = ("pieces",)

    def __init__(self, *pieces: Any):
        self.pieces = pieces


Piece = str | Slot
Pieces = list[Piece]


def unparse(node: s.Node) -> str:
    """The canonical text of a tree; a program ends with a line end, an expression does not."""
    if isinstance(node, s.Module):
        return _lines(node.body)
    if type(node) in _STATEMENTS:
        return _lines([node])
    return _expression([Slot(node, TUPLE)])


def _lines(body: list[s.Node]) -> str:
    out: list[str] = []
    pending: list[tuple[int, Any]] = [(0, statement) for statement in reversed(body)]
    while pending:
        depth, item = pending.pop()
        if isinstance(item, Line):
            out.append("    " * depth + _expression(list(item.pieces)) + "\n")
        elif isinstance(item, Block):
            pending.extend((depth + 1, statement) for statement in reversed(item.body))
        else:
            parts = _STATEMENTS[type(item)](item)
            pending.extend((depth, part) for part in reversed(parts))
    return "".join(out)


def _expression(pieces: Pieces) -> str:
    out: list[str] = []
    pending: list[Piece] = pieces[::-1]
    while pending:
        piece = pending.pop()
        if isinstance(piece, str):
            out.append(piece)
            continue
        level, parts = _EXPRESSIONS[type(piece.node)](piece.node)
        if level < piece.level:
            pending.append(")")
            pending.extend(reversed(parts))
            pending.append("(")
        else:
            pending.extend(reversed(parts))
    return "".join(out)


def _joined(groups: Iterable[Pieces], separator: str = ", ") -> Pieces:
    pieces: Pieces = []
    for position, group in enumerate(groups):
        if position:
            pieces.append(separator)
        pieces.extend(group)
    return pieces


def _slots(nodes: Iterable[s.Node], level: int = TEST) -> Pieces:
    return _joined([Slot(node, level)] for node in nodes)


# ---- expressions --------------------------------------------------------------------------------


def _constant(node: s.Constant) -> tuple[int, Pieces]:
    value = node.value
    if value is ...:
        return PRIMARY, ["..."]
    if isinstance(value, str):
        return PRIMARY, [_string(value)]
    return PRIMARY, [_number(value) if type(value) in (int, float) else repr(value)]


def _number(value: Any) -> str:
    """A number; an int gets parentheses where an attribute follows, an infinity is spelled out."""
    return repr(value).replace("inf", "1e999")


def _string(value: str) -> str:
    return repr(value)


def _number_list(node: s.NumList) -> tuple[int, Pieces]:
    return PRIMARY, [repr(node.values).replace("inf", "1e999")]


def _tuple(node: s.Tuple) -> tuple[int, Pieces]:
    if not node.elements:
        return PRIMARY, ["()"]
    pieces = _joined(_element(element) for element in node.elements)
    return TUPLE, [*pieces, ","] if len(node.elements) == 1 else pieces


def _element(node: s.Node) -> Pieces:
    return [Slot(node, TEST)]


def _dict(node: s.Dict) -> tuple[int, Pieces]:
    pairs: list[Pieces] = [
        ["**", Slot(value, BAR)] if key is None else [Slot(key), ": ", Slot(value)]
        for key, value in zip(node.keys, node.values, strict=True)
    ]
    return PRIMARY, ["{", *_joined(pairs), "}"]


def _unary(node: s.UnaryOp) -> tuple[int, Pieces]:
    if node.op == "not":
        return NOT, ["not ", Slot(node.operand, NOT)]
    return FACTOR, [node.op, Slot(node.operand, FACTOR)]


def _binary(node: s.BinOp) -> tuple[int, Pieces]:
    """The whole left spine at once, so that a long chain stays a flat list of pieces."""
    level = _BINARY[node.op]
    if node.op == "**":
        return POWER, [Slot(node.left, PRIMARY), " ** ", Slot(node.right, FACTOR)]
    return level, [Slot(node.left, level), f" {node.op} ", Slot(node.right, level + 1)]


def _boolean(node: s.BoolOp) -> tuple[int, Pieces]:
    level = OR if node.op == "or" else AND
    return level, _joined(([Slot(value, level + 1)] for value in node.values), f" {node.op} ")


def _compare(node: s.Compare) -> tuple[int, Pieces]:
    pieces: Pieces = [Slot(node.left, BAR)]
    for op, comparator in zip(node.ops, node.comparators, strict=True):
        pieces += [f" {op} ", Slot(comparator, BAR)]
    return COMPARE, pieces


def _arguments(args: list[s.Node], keywords: list[s.Keyword]) -> Pieces:
    groups: list[Pieces] = [[Slot(argument)] for argument in args]
    groups += [
        ["**" if keyword.name is None else f"{keyword.name}=", Slot(keyword.value)]
        for keyword in keywords
    ]
    return _joined(groups)


def _call(node: s.Call) -> tuple[int, Pieces]:
    return PRIMARY, [
        Slot(node.func, PRIMARY), "(", *_arguments(node.args, node.keywords), ")",
    ]  # fmt: skip


def _starred(node: s.Starred) -> tuple[int, Pieces]:
    return TEST, ["*", Slot(node.value, BAR)]


def _attribute(node: s.Attribute) -> tuple[int, Pieces]:
    value = node.value
    digits = isinstance(value, s.Constant) and type(value.value) in (int, float)
    place = Slot(value, PRIMARY + 1) if digits else Slot(value, PRIMARY)
    return PRIMARY, [place, f".{node.attr}"]


def _subscript(node: s.Subscript) -> tuple[int, Pieces]:
    index = node.index
    if isinstance(index, s.Tuple) and any(
        isinstance(element, (s.Slice, s.Starred)) for element in index.elements
    ):
        inner = _slots(index.elements)
        inner = [*inner, ","] if len(index.elements) == 1 else inner
    else:
        inner = [Slot(index, TUPLE)]
    return PRIMARY, [Slot(node.value, PRIMARY), "[", *inner, "]"]


def _slice(node: s.Slice) -> tuple[int, Pieces]:
    pieces: Pieces = []
    if node.lower is not None:
        pieces.append(Slot(node.lower))
    pieces.append(":")
    if node.upper is not None:
        pieces.append(Slot(node.upper))
    if node.step is not None:
        pieces += [":", Slot(node.step)]
    return TEST, pieces


def _conditional(node: s.IfExp) -> tuple[int, Pieces]:
    return TEST, [
        Slot(node.body, OR), " if ", Slot(node.test, OR), " else ", Slot(node.orelse, TEST),
    ]  # fmt: skip


def _parameters(params: list[s.Param], annotated: bool = True) -> Pieces:
    groups: list[Pieces] = []
    starred = False
    positional = sum(param.kind == "positional" for param in params)
    for number, param in enumerate(params, 1):
        if param.kind == "keyword" and not starred:
            groups.append(["*"])
            starred = True
        starred = starred or param.kind == "rest"
        prefix = {"rest": "*", "keywords": "**"}.get(param.kind, "")
        group: Pieces = [prefix + param.name]
        if annotated and param.annotation is not None:
            group += [": ", Slot(param.annotation)]
        if param.default is not None:
            group += [" = " if param.annotation is not None else "=", Slot(param.default)]
        groups.append(group)
        if number == positional:
            groups.append(["/"])
    return _joined(groups)


def _lambda(node: s.Lambda) -> tuple[int, Pieces]:
    params = _parameters(node.params, annotated=False)
    head: Pieces = ["lambda ", *params] if params else ["lambda"]
    return TEST, [*head, ": ", Slot(node.body)]


def _clauses(generators: list[s.Comprehension]) -> Pieces:
    pieces: Pieces = []
    for clause in generators:
        pieces += [" for ", *_target(clause.target), " in ", Slot(clause.iter, OR)]
        for condition in clause.ifs:
            pieces += [" if ", Slot(condition, OR)]
    return pieces


def _target(node: s.Node) -> Pieces:
    """A target before `in`, whose parts must not be comparisons."""
    return [Slot(node, TUPLE)]


def _comprehension(opening: str, closing: str) -> Callable[[Any], tuple[int, Pieces]]:
    def pieces(node: s.ListComp) -> tuple[int, Pieces]:
        return PRIMARY, [opening, Slot(node.elt), *_clauses(node.generators), closing]

    return pieces


def _dict_comprehension(node: s.DictComp) -> tuple[int, Pieces]:
    pair: Pieces = [Slot(node.key), ": ", Slot(node.value)]
    return PRIMARY, ["{", *pair, *_clauses(node.generators), "}"]


def _bracketed(opening: str, closing: str) -> Callable[[Any], tuple[int, Pieces]]:
    def pieces(node: s.List) -> tuple[int, Pieces]:
        return PRIMARY, [opening, *_slots(node.elements), closing]

    return pieces


_QUOTES = ("'", '"', "'''", '"""')


def _joined_string(node: s.JoinedStr) -> tuple[int, Pieces]:
    """An f-string, in the first kind of quotes that its fields leave free."""
    fields = [_field(part) for part in node.parts if isinstance(part, s.FormattedValue)]
    inside = "".join(fields)
    quote = next((quote for quote in _QUOTES if quote not in inside), '"""')
    rendered = iter(fields)
    text = "".join(
        _escaped(str(part.value), quote) if isinstance(part, s.Constant) else next(rendered)
        for part in node.parts
    )
    return PRIMARY, [f"f{quote}{text}{quote}"]


def _escaped(text: str, quote: str) -> str:
    body = repr(text + "'" if quote[0] == '"' else text + '"')[1:-2]
    body = body.replace("\\'", "'").replace('\\"', '"')
    body = body.replace(quote[0], "\\" + quote[0])
    return body.replace("{", "{{").replace("}", "}}")


def _field(node: s.FormattedValue) -> str:
    value = node.debug_text
    if value is None:
        value = _expression([Slot(node.value, TEST)])
        if value.startswith("{"):
            value = " " + value
        if isinstance(node.value, s.Lambda):
            value = f"({value})"
    conversion = f"!{node.conversion}" if node.conversion else ""
    return f"{{{value}{conversion}{_spec(node.format_spec)}}}"


def _spec(spec: s.JoinedStr | None) -> str:
    if spec is None:
        return ""
    parts = [
        repr(part.value)[1:-1] if isinstance(part, s.Constant) else _field(part)
        for part in spec.parts
        if isinstance(part, (s.Constant, s.FormattedValue))
    ]
    return ":" + "".join(parts)


def _yield(node: s.Yield) -> tuple[int, Pieces]:
    word = "yield from" if node.each else "yield"
    return -1, [word, *([] if node.value is None else [" ", Slot(node.value, TUPLE)])]


_EXPRESSIONS: dict[type, Callable[[Any], tuple[int, Pieces]]] = {
    s.Name: lambda node: (PRIMARY, [node.id]),
    s.NamedExpr: lambda node: (-1, [node.target.id, " := ", Slot(node.value)]),
    s.Yield: _yield,
    s.Constant: _constant,
    s.NumList: _number_list,
    s.List: _bracketed("[", "]"),
    s.Tuple: _tuple,
    s.Set: _bracketed("{", "}"),
    s.Dict: _dict,
    s.UnaryOp: _unary,
    s.BinOp: _binary,
    s.BoolOp: _boolean,
    s.Compare: _compare,
    s.Call: _call,
    s.Starred: _starred,
    s.Attribute: _attribute,
    s.Subscript: _subscript,
    s.Slice: _slice,
    s.IfExp: _conditional,
    s.Lambda: _lambda,
    s.ListComp: _comprehension("[", "]"),
    s.SetComp: _comprehension("{", "}"),
    s.GeneratorExp: _comprehension("(", ")"),
    s.DictComp: _dict_comprehension,
    s.JoinedStr: _joined_string,
}


# ---- statements ---------------------------------------------------------------------------------


def _assign(node: s.Assign) -> list[Any]:
    pieces: Pieces = []
    for target in node.targets:
        pieces += [Slot(target, TUPLE), " = "]
    return [Line(*pieces, Slot(node.value, TUPLE))]


def _annotated(node: s.AnnAssign) -> list[Any]:
    pieces: Pieces = [Slot(node.target), ": ", Slot(node.annotation)]
    if node.value is not None:
        pieces += [" = ", Slot(node.value, TUPLE)]
    return [Line(*pieces)]


def _function(node: s.FunctionDef) -> list[Any]:
    head: Pieces = [f"def {node.name}(", *_parameters(node.params), ")"]
    if node.returns is not None:
        head += [" -> ", Slot(node.returns)]
    return [*_decorators(node.decorators), Line(*head, ":"), Block(node.body)]


def _class(node: s.ClassDef) -> list[Any]:
    arguments = _arguments(node.bases, node.keywords)
    head: Pieces = [f"class {node.name}"]
    if arguments:
        head += ["(", *arguments, ")"]
    return [*_decorators(node.decorators), Line(*head, ":"), Block(node.body)]


def _decorators(decorators: list[s.Node]) -> list[Any]:
    return [Line("@", Slot(decorator)) for decorator in decorators]


def _if(node: s.If) -> list[Any]:
    parts: list[Any] = []
    word = "if "
    while True:
        parts += [Line(word, Slot(node.test), ":"), Block(node.body)]
        rest = node.orelse
        if len(rest) == 1 and isinstance(rest[0], s.If):
            node, word = rest[0], "elif "
            continue
        return parts + _else(rest)


def _else(body: list[s.Node]) -> list[Any]:
    return [Line("else:"), Block(body)] if body else []


def _for(node: s.For) -> list[Any]:
    head = Line("for ", *_target(node.target), " in ", Slot(node.iter, TUPLE), ":")
    return [head, Block(node.body), *_else(node.orelse)]


def _while(node: s.While) -> list[Any]:
    return [Line("while ", Slot(node.test), ":"), Block(node.body), *_else(node.orelse)]


def _with(node: s.With) -> list[Any]:
    items: list[Pieces] = []
    for item in node.items:
        if item.target is None:
            items.append([Slot(item.expr)])
        else:
            items.append([Slot(item.expr), " as ", Slot(item.target, BAR)])
    return [Line("with ", *_joined(items), ":"), Block(node.body)]


def _try(node: s.Try) -> list[Any]:
    parts: list[Any] = [Line("try:"), Block(node.body)]
    for handler in node.handlers:
        head: Pieces = ["except"]
        if handler.type is not None:
            head += [" ", Slot(handler.type)]
        if handler.name is not None:
            head.append(f" as {handler.name}")
        parts += [Line(*head, ":"), Block(handler.body)]
    parts += _else(node.orelse)
    return parts + ([Line("finally:"), Block(node.final)] if node.final else [])


def _names(names: list[s.Alias]) -> str:
    return ", ".join(
        name.name if name.asname is None else f"{name.name} as {name.asname}" for name in names
    )


def _word(word: str, *values: s.Node | None, between: str = ", ") -> list[Any]:
    given = [value for value in values if value is not None]
    level = TUPLE if len(values) == 1 else TEST
    inner = _joined(([Slot(value, level)] for value in given), between)
    return [Line(word, *([" ", *inner] if inner else []))]


_STATEMENTS: dict[type, Callable[[Any], list[Any]]] = {
    s.ExprStmt: lambda node: [Line(Slot(node.value, TUPLE))],
    s.Assign: _assign,
    s.AugAssign: lambda node: [Line(Slot(node.target), f" {node.op}= ", Slot(node.value, TUPLE))],
    s.AnnAssign: _annotated,
    s.FunctionDef: _function,
    s.ClassDef: _class,
    s.Return: lambda node: _word("return", node.value),
    s.If: _if,
    s.For: _for,
    s.While: _while,
    s.With: _with,
    s.Try: _try,
    s.Break: lambda node: [Line("break")],
    s.Continue: lambda node: [Line("continue")],
    s.Pass: lambda node: [Line("pass")],
    s.Assert: lambda node: _word("assert", node.test, node.message),
    s.Delete: lambda node: [Line("del ", *_slots(node.targets))],
    s.Import: lambda node: [Line(f"import {_names(node.names)}")],
    s.ImportFrom: lambda node: [Line(f"from {node.module} import {_names(node.names)}")],
    s.Global: lambda node: [Line(f"global {', '.join(node.names)}")],
    s.Nonlocal: lambda node: [Line(f"nonlocal {', '.join(node.names)}")],
    s.Raise: lambda node: _word("raise", node.value, node.cause, between=" from "),
}


def same(left: object, right: object) -> bool:
    """Whether two trees have the same structure and values, wherever they stand in their texts."""
    pending: list[tuple[object, object]] = [(left, right)]
    while pending:
        a, b = pending.pop()
        if type(a) is not type(b):
            return False
        if isinstance(a, s.Node):
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
