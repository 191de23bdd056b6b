"""The actions that make expressions, parameters and arguments.

What Python's grammar leaves to later checks (the order of arguments, chains too deep) is checked
here.
"""

from __future__ import annotations

from itertools import groupby
from sys import intern
from typing import Any

from ...errors import AutodiffError, fail, fault
from ...source import Span
from . import tree as s
from .action_base import Parts, Values, checked, fresh, makes, word
from .literals.numbers import MAX_NESTING, nested_too_deep

# ---- what may be assigned to, or deleted ---------------------------------------------------------

_WORDS: dict[type, str] = {
    s.Call: "a call",
    s.NumList: "a list of numbers",
    s.BinOp: "an expression",
    s.UnaryOp: "an expression",
    s.BoolOp: "an expression",
    s.Compare: "a comparison",
    s.IfExp: "a conditional expression",
    s.Lambda: "a lambda",
    s.JoinedStr: "a string",
    s.Dict: "a dict",
    s.Set: "a set",
    s.ListComp: "a comprehension",
    s.SetComp: "a comprehension",
    s.DictComp: "a comprehension",
    s.GeneratorExp: "a generator",
    s.Starred: "an unpacking",
}


def _refuse(node: s.Node, message: str, help: str) -> AutodiffError:
    return fail("E102", message, node.span, label="cannot be assigned to", help=help)


def check_target(node: s.Node, single: str = "") -> None:
    """Raise E102 unless `node` can be assigned to; `single` is an operator that wants one name."""
    kind = type(node)
    if kind in (s.Name, s.Attribute, s.Subscript):
        return
    shown = node.span.text[:40]
    if kind in (s.Tuple, s.List):
        if single:
            raise _refuse(
                node, f"`{single}` needs one target, not several", "write one statement for each"
            )
        _check_elements(node.elements)  # type: ignore[attr-defined]  # a Tuple or List
        return
    if kind is s.Starred:
        raise _refuse(node, f"`{shown}` must be in a list of targets", f"write `{shown}, = ...`")
    what = f"`{shown}`" if kind is s.Constant else _WORDS.get(kind, "this")
    help = f"write a name on the left: `y = {shown}`, or `==` to compare"
    if kind is s.Call and all(isinstance(part, s.Name) for part in (node.func, *node.args)):  # type: ignore[attr-defined]  # of a Call
        help = f"write `y = {shown}`; or, to define a function, `def {shown}: return ...`"
    raise _refuse(node, f"cannot assign to {what}", help)


def _check_elements(elements: list[s.Node]) -> None:
    starred = False
    for element in elements:
        if type(element) is s.Starred:
            if starred:
                raise _refuse(element, "two starred targets in one list", "keep one `*` only")
            starred = True
            check_target(element.value)
        else:
            check_target(element)


def check_deletable(node: s.Node) -> None:
    """Raise E102 unless `node` can be deleted."""
    if type(node) in (s.Tuple, s.List):
        for element in node.elements:  # type: ignore[attr-defined]  # a Tuple or List
            check_deletable(element)
    elif type(node) not in (s.Name, s.Attribute, s.Subscript):
        what = _WORDS.get(type(node), "this")
        raise fault("E102 cannot-delete-what", what=what, span=node.span)


def no_bare_star(node: s.Node | None) -> None:
    """Raise E102 for `*value` where nothing takes several."""
    if type(node) is s.Starred:
        raise fault("E102 cannot-stand-alone", node.span.text[:40], span=node.span)


class ExpressionActions(Parts):
    """One method for each action that makes an expression."""

    # ---- parameters -------------------------------------------------------------------------

    parameter = makes(s.Param, word(0), None, "normal", None)
    parameter_default = makes(s.Param, word(0), 2, "normal", None)
    parameter_annotated = makes(s.Param, word(0), 4, "normal", 2)
    parameter_star = makes(s.Param, "", None, "star", None)
    parameter_slash = makes(s.Param, "", None, "slash", None)
    parameter_rest = makes(s.Param, word(1), None, "rest", 3)
    parameter_keywords = makes(s.Param, word(1), None, "keywords", 3)

    def check_parameters(self, params: list[s.Param]) -> None:
        """Order, repetition and defaults; drops `/` and a lone `*`, and marks what they part."""
        seen: set[str] = set()
        starred = defaults = ended = False
        lone: s.Param | None = None
        for param in params:
            if ended:
                raise self.bad_parameter(param, "no parameter may follow `**`", "move it forward")
            if param.kind == "slash":
                before = params[: params.index(param)]
                if starred or not before or before[0].kind != "normal":
                    raise self.bad_parameter(param, "a `/` cannot stand here", "remove the `/`")
                for earlier in before:
                    earlier.kind = "positional"
            elif param.kind in ("star", "rest"):
                if starred:
                    raise self.bad_parameter(param, "there can be one `*` only", "remove this one")
                starred = True
                lone = param if param.kind == "star" else None
            elif param.kind == "keywords":
                ended = True
            elif starred:
                param.kind = "keyword"
                lone = None
            elif param.default is not None:
                defaults = True
            elif defaults:
                raise self.bad_parameter(
                    param,
                    f"parameter `{param.name}` without a default follows one with a default",
                    f"write `{param.name}=None`, or move `{param.name}` forward",
                )
            if param.name in seen:
                raise self.bad_parameter(
                    param, f"parameter `{param.name}` appears twice", f"rename `{param.name}`"
                )
            if param.name:
                seen.add(param.name)
        if lone is not None:
            raise self.bad_parameter(
                lone, "a parameter must follow the lone `*`", "write `*, name` or `*args`"
            )
        params[:] = [param for param in params if param.kind not in ("slash", "star")]

    def bad_parameter(self, param: s.Param, message: str, help: str) -> AutodiffError:
        return fail("E102", message, param.span, label="this parameter", help=help)

    # ---- operators --------------------------------------------------------------------------

    boolean_or = makes(s.BoolOp, "or", 0)
    boolean_and = makes(s.BoolOp, "and", 0)

    def binary(self, v: Values, start: int, end: int) -> s.Node:
        tokens = self.tokens
        at, stop = tokens.starts[v[1]], tokens.ends[v[1]]
        source = self.source
        op = source.text[at:stop]
        return s.BinOp(v[0], op, v[2], Span(source, at, stop), Span(source, start, end))

    def power(self, v: Values, start: int, end: int) -> s.Node:
        self.chained(v[2], start)
        return self.binary(v, start, end)

    def unary(self, v: Values, start: int, end: int) -> s.Node:
        self.chained(v[1], start)
        return s.UnaryOp(self.text(v[0]), v[1], Span(self.source, start, end))

    def chained(self, node: Any, start: int, what: str = "operators") -> None:
        """Refuse chains that nest to the right (`- - x`, `a ** b ** c`) beyond the limit."""
        depth = 0
        while True:
            kind = type(node)
            if kind is s.UnaryOp:
                node = node.operand
            elif kind is s.BinOp and node.op == "**":
                node = node.right
            elif kind is s.IfExp or (kind is s.If and len(node.orelse) == 1):
                node = node.orelse if kind is s.IfExp else node.orelse[0]
            elif kind is s.Lambda:
                node = node.body
            else:
                return
            depth += 1
            if depth >= MAX_NESTING:
                raise nested_too_deep(self.source, start, what)

    def comparator(self, v: Values, start: int, end: int) -> tuple[str, Span]:
        op = " ".join(self.text(index) for index in v)
        return op, Span(self.source, start, end)

    def compare_first(self, v: Values, start: int, end: int) -> s.Compare:
        op, place = v[1]
        return s.Compare(v[0], [op], [v[2]], [place], place)

    def compare_next(self, v: Values, start: int, end: int) -> s.Compare:
        comparison: s.Compare = v[0]
        op, place = v[1]
        comparison.ops.append(op)
        comparison.op_spans.append(place)
        comparison.comparators.append(v[2])
        return comparison

    def compare(self, v: Values, start: int, end: int) -> s.Node:
        v[0].span = Span(self.source, start, end)
        return v[0]

    def walrus(self, v: Values, start: int, end: int) -> s.Node:
        target = s.Name(self.text(v[0]), self.place(v[0]))
        return s.NamedExpr(target, v[2], Span(self.source, start, end))

    def conditional(self, v: Values, start: int, end: int) -> s.Node:
        self.chained(v[4], start)
        return s.IfExp(v[2], v[0], v[4], Span(self.source, start, end))

    def lambda_plain(self, v: Values, start: int, end: int) -> s.Node:
        params = v[1] if len(v) > 3 else []
        self.check_parameters(params)
        self.chained(v[-1], start)
        return s.Lambda(params, v[-1], Span(self.source, start, end))

    lambda_with_parameters = lambda_plain

    # ---- calls, attributes, subscripts --------------------------------------------------------

    call_plain = makes(s.Call, 0, fresh, fresh)
    keyword = makes(s.Keyword, word(0), 2)
    keyword_unpacked = makes(s.Keyword, None, 1)
    starred = makes(s.Starred, 1)
    slice = makes(s.Slice, 0, 2, 4)

    def call(self, v: Values, start: int, end: int) -> s.Node:
        args, keywords = self.split_arguments(v[2])
        return s.Call(v[0], args, keywords, Span(self.source, start, end))

    def bare_generator(self, v: Values, start: int, end: int) -> s.Node:
        node = s.GeneratorExp(v[0], v[1], Span(self.source, start, end))
        self.bare_generators.append(node)
        return node

    def split_arguments(self, arguments: Values) -> tuple[list[s.Node], list[s.Keyword]]:
        """Positional and keyword arguments, in order and none repeated."""
        args: list[s.Node] = []
        keywords: list[s.Keyword] = []
        names: set[str] = set()
        for argument in arguments:
            if type(argument) is s.Keyword:
                name = argument.name
                if name is not None and name in names:
                    raise fault("E102 keyword-argument-given-twice", name=name, span=argument.span)
                if name is not None:
                    names.add(name)
                keywords.append(argument)
            elif keywords and (
                type(argument) is not s.Starred or any(k.name is None for k in keywords)
            ):
                raise self.positional_after_keyword(argument, keywords)
            else:
                args.append(argument)
                bare = self.bare_generators if len(arguments) > 1 else ()  # these must be alone
                if bare and any(argument is one for one in bare):
                    raise fault(
                        "E102 generator-among-several-arguments",
                        argument.span.text[:60],
                        span=argument.span,
                    )
        return args, keywords

    def positional_after_keyword(
        self, argument: s.Node, keywords: list[s.Keyword]
    ) -> AutodiffError:
        text = argument.span.text[:40]
        named = "" if type(argument) is s.Starred else f", or write `name={text}`"
        before = keywords[0].name or "**"
        return fail(
            "E102",
            f"positional argument `{text}` follows keyword argument `{before}`",
            argument.span,
            label="no name, but after a name",
            help=f"move `{text}` before `{keywords[0].span.text[:40]}`{named}",
        )

    def attribute(self, v: Values, start: int, end: int) -> s.Node:
        place = self.place(v[2])
        return s.Attribute(v[0], self.text(v[2]), place, Span(self.source, start, end))

    def subscript(self, v: Values, start: int, end: int) -> s.Node:
        index = v[2]
        if type(index) is s.Starred:
            index = s.Tuple([index], index.span)
        return s.Subscript(v[0], index, Span(self.source, start, end))

    # ---- atoms ------------------------------------------------------------------------------

    constant_true = makes(s.Constant, True)
    constant_false = makes(s.Constant, False)
    constant_none = makes(s.Constant, None)
    constant_ellipsis = makes(s.Constant, ...)
    bare_tuple = makes(s.Tuple, 0)
    empty_tuple = makes(s.Tuple, fresh)
    tuple_display = makes(s.Tuple, 1)
    empty_list = makes(s.List, fresh)
    list_comprehension = makes(s.ListComp, 1, 2)
    generator = makes(s.GeneratorExp, 1, 2)
    set_display = makes(s.Set, 1)
    set_comprehension = makes(s.SetComp, 1, 2)
    empty_dict = makes(s.Dict, fresh, fresh)
    dict_comprehension = makes(s.DictComp, 1, 3, 4)
    clause = makes(s.Comprehension, checked(1, check_target), 3, fresh)

    def name(self, v: Values, start: int, end: int) -> s.Node:
        value = self.tokens.values[v[0]]
        word = value if isinstance(value, str) else self.source.text[start:end]
        return s.Name(word, Span(self.source, start, end))

    def constant(self, v: Values, start: int, end: int) -> s.Node:
        value: Any = self.tokens.values[v[0]]
        return s.Constant(value, Span(self.source, start, end))

    def number_list(self, v: Values, start: int, end: int) -> s.Node:
        values: Any = self.tokens.values[v[0]]
        return s.NumList(values, Span(self.source, start, end))

    def lone_tuple(self, v: Values, start: int, end: int) -> s.Node:
        return s.Tuple([v[0]], Span(self.source, start, end))

    def parenthesised(self, v: Values, start: int, end: int) -> s.Node:
        if len(v[1]) == 1:
            no_bare_star(v[1][0])
            return v[1][0]
        return s.Tuple(v[1], Span(self.source, start, end))

    def list_display(self, v: Values, start: int, end: int) -> s.Node:
        span = Span(self.source, start, end)
        values = numeric_values(v[1])
        return s.List(v[1], span) if values is None else s.NumList(values, span)

    def dict_pair(self, v: Values, start: int, end: int) -> tuple[Any, Any]:
        return v[0], v[2]

    def dict_unpacked(self, v: Values, start: int, end: int) -> tuple[Any, Any]:
        return None, v[1]

    def dict_display(self, v: Values, start: int, end: int) -> s.Node:
        keys = [key for key, _ in v[1]]
        values = [value for _, value in v[1]]
        return s.Dict(keys, values, Span(self.source, start, end))

    def clause_if(self, v: Values, start: int, end: int) -> s.Comprehension:
        v[0].ifs.append(v[2])
        return v[0]

    # ---- strings ----------------------------------------------------------------------------

    def string(self, v: Values, start: int, end: int) -> Values:
        return [s.Constant(self.text(v[0]), Span(self.source, start, end))]

    def fstring(self, v: Values, start: int, end: int) -> tuple[Values, Span]:
        return v[1], Span(self.source, start, end)

    def append_text(self, v: Values, start: int, end: int) -> Values:
        v[0].append(s.Constant(self.text(v[1]), self.place(v[1])))
        return v[0]

    def field(self, v: Values, start: int, end: int) -> s.Node:
        no_bare_star(v[1])
        debug = conversion = spec = None
        if v[2] is not None:
            debug = self.source.text[start + 1 : self.debug_end(v[2])]
        if v[3] is not None:
            conversion = self.text(v[3])
        if v[4] is not None:
            spec = s.JoinedStr(merged(v[4]), Span(self.source, start, end))
        return s.FormattedValue(v[1], conversion, spec, debug, Span(self.source, start, end))

    def debug_end(self, equal: int) -> int:
        """The end of `{value = ` up to what follows the blanks after the `=`."""
        text, at = self.source.text, self.tokens.ends[equal]
        while text[at] in " \t":
            at += 1
        return at

    def joined_strings(self, v: Values, start: int, end: int) -> s.Node:
        """Neighbouring literals joined: a Constant, or a JoinedStr if any is an f-string."""
        span = Span(self.source, start, end)
        parts: list[s.Node] = []
        formatted = False
        for piece in v[0]:
            formatted = formatted or isinstance(piece, tuple)
            parts.extend(piece[0] if isinstance(piece, tuple) else piece)
        parts = merged(parts)
        if formatted:
            return s.JoinedStr(parts, span)
        value = parts[0].value if parts else ""  # type: ignore[attr-defined]  # a Constant
        return s.Constant(intern(value), span)  # `is` holds between equal literals, as in Python


# ---- literals of several pieces ------------------------------------------------------------------


def merged(parts: list[s.Node]) -> list[s.Node]:
    """Parts of an f-string with neighbouring texts joined and empty ones left out."""
    result: list[s.Node] = []
    for is_text, group in groupby(parts, lambda part: isinstance(part, s.Constant)):
        run: list[Any] = list(group)
        if is_text:
            words = "".join([str(part.value) for part in run])
            run = [s.Constant(words, run[0].span)] if words else []
        result += run
    return result


_NOT_NUMERIC = object()


def _number_of(node: s.Node) -> object:
    """The number, or list of numbers, that a node is."""
    kind = type(node)
    if kind is s.NumList:
        return node.values  # type: ignore[attr-defined]  # by its type
    if kind is s.List:
        return _empties(node)
    negative = False
    if kind is s.UnaryOp:
        op = node.op  # type: ignore[attr-defined]  # by its type
        if op not in "+-":
            return _NOT_NUMERIC
        negative = op == "-"
        node = node.operand  # type: ignore[attr-defined]  # by its type
    if type(node) is s.Constant and type(node.value) in (int, float):
        return -node.value if negative else node.value  # type: ignore[operator]  # a number
    return _NOT_NUMERIC


def _empties(node: s.Node) -> object:
    """The value of a list that holds nothing but empty lists."""
    values = []
    for element in node.elements:  # type: ignore[attr-defined]  # a List
        value = _empties(element) if type(element) is s.List else _NOT_NUMERIC
        if value is _NOT_NUMERIC:
            return _NOT_NUMERIC
        values.append(value)
    return values


def numeric_values(elements: list[s.Node]) -> list[Any] | None:
    """The values of a list display of numbers and lists of them, if it holds any number."""
    values = []
    numeric = False
    for element in elements:
        value = _number_of(element)
        if value is _NOT_NUMERIC:
            return None
        numeric = numeric or type(element) is not s.List
        values.append(value)
    return values if numeric else None
