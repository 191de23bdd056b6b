"""Expressions become closures: `compile_expression(tree) -> run(scope) -> value`.

A closure sets `STATE.span` to its own text before it applies an op, and gives every error that has
no place yet the place of its expression.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import AutodiffError, fault
from ...graph.state import STATE
from ...graph.symbolic_numbers import later
from ...source import Span
from ..errors.operand_labels import placed, placed_choice, placed_comparison, placed_index
from ..syntax import tree as syntax
from ..syntax.scoping import declared_global
from ..values.dialect import kind_of
from ..values.formatting import converted, formatted
from ..values.functions import Parameters
from ..values.operations import compare, iterate, mapping, truth, unary
from ..values.providers import from_above, late
from ..values.subscripts import dict_key, index
from ..values.values import OpFunction, Scope, UserFunction
from .names import builtin
from .unknown_names import unknown_name, unknown_op

Run = Callable[[Scope], Any]
Unknown = Callable[[str, Span, Scope], AutodiffError]


class Context:
    """Where code stands: at module level, or in a function or class with these local names."""

    __slots__ = ("global_names", "in_class", "locals", "module_level", "nonlocal_names", "path")

    def __init__(self, local_names: frozenset[str] | None = None, path: str = ""):
        self.module_level = local_names is None
        self.path = path  # what stands before the names of functions and classes made here
        self.locals = local_names or frozenset()
        self.global_names: set[str] = set()
        self.nonlocal_names: set[str] = set()
        self.in_class = False

    def declare(self, body: list[syntax.Node], outer: set[str]) -> None:
        """Of names that a body assigns and that are no own of it, where they are."""
        self.global_names = declared_global(body) if outer else set()
        self.nonlocal_names = outer - self.global_names


def compile_expression(tree: syntax.Node, context: Context) -> Run:
    """The closure of an expression."""
    return COMPILERS[type(tree)](tree, context)


# -- names and literals ---------------------------------------------------------------------------


_MISSING: Any = object()


def _name(tree: syntax.Name, context: Context, unknown: Unknown = unknown_name) -> Run:
    name = tree.id
    span = tree.span
    local = name in context.locals
    of_class = local and context.in_class  # until it is assigned, the module's
    op: OpFunction | None = None  # what the name means when nobody assigned it, once it was asked

    def run(scope: Scope) -> Any:
        nonlocal op
        value = scope.names.get(name, _MISSING)
        if value is _MISSING:
            at = scope.outermost() if of_class else scope
            value = _assigned(name, span, at, local and not of_class)
            if value is _MISSING:
                value = op or builtin(name)
                if value is None:
                    raise unknown(name, span, scope)
                if type(value) is OpFunction:
                    op = value
        return value

    return run


def _assigned(name: str, span: Span, scope: Scope, local: bool) -> Any:
    """The value of a name, here or further out; `_MISSING` when nobody assigned it."""
    at: Scope | None = scope
    while at is not None:
        value = at.names.get(name, _MISSING)
        if value is not _MISSING:
            return value
        if local and (at.function or at.outer is None):
            raise fault("E206 assigned-function", name=name, span=span)
        at = at.outer
    return _MISSING


def _constant(tree: syntax.Constant, context: Context) -> Run:
    value = tree.value
    return lambda scope: value


def _copied(values: list[Any]) -> list[Any]:
    return [_copied(v) if type(v) is list else v for v in values]


def _numlist(tree: syntax.NumList, context: Context) -> Run:
    if tree.array is not None:
        return lambda scope: tree.values
    values = tree.values
    if values and type(values[0]) is list:
        return lambda scope: _copied(values)
    return lambda scope: values.copy()


def elements(trees: list[syntax.Node], context: Context) -> Callable[[Scope], list[Any]]:
    """The values of displays and arguments, with `*value` unpacked."""
    runs = [COMPILERS[type(t)](t, context) for t in trees]
    if syntax.Starred not in map(type, trees):
        if len(runs) == 1:
            one = runs[0]
            return lambda scope: [one(scope)]
        if not runs:
            return lambda scope: []

        def run(scope: Scope) -> list[Any]:
            return [r(scope) for r in runs]

        return run
    starred = [t.value.span if isinstance(t, syntax.Starred) else None for t in trees]

    def run_starred(scope: Scope) -> list[Any]:
        values: list[Any] = []
        for r, star in zip(runs, starred, strict=True):
            if star is not None:
                value = r(scope)
                STATE.span = star
                values.extend(iterate(value))
            else:
                values.append(r(scope))
        return values

    return run_starred


def _tuple(tree: syntax.Tuple, context: Context) -> Run:
    parts = elements(tree.elements, context)
    return lambda scope: tuple(parts(scope))


def _set(tree: syntax.Set, context: Context) -> Run:
    parts = elements(tree.elements, context)
    return lambda scope: {dict_key(v, tree.span) for v in parts(scope)}


def _dict(tree: syntax.Dict, context: Context) -> Run:
    pairs = [
        (None if k is None else compile_expression(k, context), compile_expression(v, context))
        for k, v in zip(tree.keys, tree.values, strict=True)
    ]

    def run(scope: Scope) -> Any:
        result: dict[Any, Any] = {}
        for key, value in pairs:
            if key is not None:
                result[dict_key(key(scope), tree.span)] = value(scope)
                continue
            given = value(scope)
            more = mapping(given)
            if more is None:
                kind = type(given).__name__
                raise fault("E208 dict-needs-dict", kind_of(given), kind, span=tree.span)
            result.update(more)
        return result

    return run


# -- operators ------------------------------------------------------------------------------------


def _unary(tree: syntax.UnaryOp, context: Context) -> Run:
    operand = compile_expression(tree.operand, context)
    span = tree.span
    symbol = tree.op
    if symbol == "not":
        return lambda scope: not _true(operand(scope), span)

    def run(scope: Scope) -> Any:
        value = operand(scope)
        STATE.span = span
        try:
            return unary(symbol, value)
        except AutodiffError as error:
            raise placed(error, span) from None

    return run


def _true(value: Any, span: Any) -> bool:
    if value is True or value is False:
        return value
    try:
        return truth(value)
    except AutodiffError as error:
        raise placed(error, span) from None


def compile_truth(tree: syntax.Node, context: Context) -> Callable[[Scope], bool]:
    """The closure of a condition."""
    run = compile_expression(tree, context)
    span = tree.span
    return lambda scope: _true(run(scope), span)


def _bool(tree: syntax.BoolOp, context: Context) -> Run:
    runs = [(compile_expression(v, context), v.span) for v in tree.values]
    stop_at = tree.op == "or"

    def run(scope: Scope) -> Any:
        value = None
        last = len(runs) - 1
        for i, (part, span) in enumerate(runs):
            value = part(scope)
            if i < last and _true(value, span) is stop_at:
                return value
        return value

    return run


def _compare(tree: syntax.Compare, context: Context) -> Run:
    first = compile_expression(tree.left, context)
    rest = [
        (op, compile_expression(t, context))
        for op, t in zip(tree.ops, tree.comparators, strict=True)
    ]
    span = tree.span
    sides = [tree.left, *tree.comparators]

    def run(scope: Scope) -> Any:
        left = first(scope)
        result: Any = True
        for i, (symbol, part) in enumerate(rest):
            right = part(scope)
            STATE.span = span
            try:
                result = compare(symbol, left, right)
                if i < len(rest) - 1 and not truth(result):
                    return result
            except AutodiffError as error:
                between = ((sides[i], left), (sides[i + 1], right))
                raise placed_comparison(error, span, between) from None
            left = right
        return result

    return run


def _named(tree: syntax.NamedExpr, context: Context) -> Run:
    """`name := value` binds in the function around, also from a comprehension."""
    value_run = compile_expression(tree.value, context)
    assign = from_above("runtime.assignment.name_target")(tree.target.id, context)

    def run(scope: Scope) -> Any:
        value = value_run(scope)
        at = scope
        while not at.function and at.outer is not None:
            at = at.outer
        assign(at, value)
        return value

    return run


def _conditional(tree: syntax.IfExp, context: Context) -> Run:
    test = compile_truth(tree.test, context)
    body = compile_expression(tree.body, context)
    orelse = compile_expression(tree.orelse, context)

    def run(scope: Scope) -> Any:
        try:
            chosen = test(scope)
        except AutodiffError as error:
            raise placed_choice(error, tree) from None
        return body(scope) if chosen else orelse(scope)

    return run


# -- calls, attributes, indices -------------------------------------------------------------------


def keyword_dict(value: Any, span: Any) -> dict[str, Any]:
    """What `**value` adds to the keyword arguments."""
    known = mapping(value)
    if known is not None and all(isinstance(k, str) for k in known):
        return known
    raise fault("E208 needs-dict-string-keys", kind_of(value), span=span)


def callee(tree: syntax.Name, context: Context) -> Run:
    """A bare name that is called: unknown ones are unknown operations."""
    return _name(tree, context, unknown_op)


def _subscript(tree: syntax.Subscript, context: Context) -> Run:
    value_run = compile_expression(tree.value, context)
    index_run = compile_expression(tree.index, context)
    span = tree.span

    def run(scope: Scope) -> Any:
        value = value_run(scope)
        key = index_run(scope)
        STATE.span = span
        try:
            return index(value, key)
        except AutodiffError as error:
            raise placed_index(error, tree, value) from None

    return run


def _slice(tree: syntax.Slice, context: Context) -> Run:
    parts = [
        None if p is None else compile_expression(p, context)
        for p in (tree.lower, tree.upper, tree.step)
    ]
    return lambda scope: slice(*[None if p is None else p(scope) for p in parts])


# -- functions ------------------------------------------------------------------------------------


def _lambda(tree: syntax.Lambda, context: Context) -> Run:
    parameters = Parameters(tree.params, tree, f"{context.path}<lambda>")
    names = frozenset(p.name for p in tree.params)
    inner = Context(names, f"{context.path}<lambda>.<locals>.")
    body = compile_expression(tree.body, inner)
    defaults = compile_defaults(tree.params, context)
    span, in_class = tree.span, context.in_class

    def run(scope: Scope) -> Any:
        positional, keyword = defaults(scope)
        around = scope.outer if in_class else scope
        return UserFunction("<lambda>", parameters, body, around, span, positional, keyword)

    return run


def _yield(tree: syntax.Yield, context: Context) -> Run:
    what = "yields inside of lambdas"
    raise fault("E106 not-part-language", "write a `def`", what=what, span=tree.span)


def compile_defaults(
    params: list[syntax.Param], context: Context
) -> Callable[[Scope], tuple[list[Any], dict[str, Any]]]:
    """Default values of a signature, evaluated when the function is made."""
    positional = [
        compile_expression(p.default, context)
        for p in params
        if p.kind in ("positional", "normal") and p.default is not None
    ]
    keyword = [
        (p.name, compile_expression(p.default, context))
        for p in params
        if p.kind == "keyword" and p.default is not None
    ]
    return lambda scope: ([r(scope) for r in positional], {n: r(scope) for n, r in keyword})


# -- strings --------------------------------------------------------------------------------------


def _joined(tree: syntax.JoinedStr, context: Context) -> Run:
    parts = [compile_expression(p, context) for p in tree.parts]

    def run(scope: Scope) -> Any:
        texts = [p(scope) for p in parts]
        found = later(lambda *parts: "".join(parts), texts)
        return "".join(texts) if found is None else found

    return run


def _formatted(tree: syntax.FormattedValue, context: Context) -> Run:
    value_run = compile_expression(tree.value, context)
    spec_run = None if tree.format_spec is None else compile_expression(tree.format_spec, context)
    debug = tree.debug_text or ""
    conversion = tree.conversion or ("r" if debug and spec_run is None else None)
    span = tree.value.span

    def run(scope: Scope) -> str:
        value = value_run(scope)
        STATE.span = span
        try:
            value = converted(value, conversion)
            return debug + formatted(value, "" if spec_run is None else spec_run(scope))
        except AutodiffError as error:
            raise placed(error, span) from None

    return run


COMPILERS: dict[type, Callable[[Any, Context], Run]] = {
    syntax.Name: _name,
    syntax.Constant: _constant,
    syntax.NumList: _numlist,
    syntax.List: lambda tree, context: elements(tree.elements, context),
    syntax.Tuple: _tuple,
    syntax.Set: _set,
    syntax.Dict: _dict,
    syntax.Starred: lambda tree, context: compile_expression(tree.value, context),
    syntax.BinOp: late("runtime.operators.compile_binary"),
    syntax.UnaryOp: _unary,
    syntax.BoolOp: _bool,
    syntax.Compare: _compare,
    syntax.IfExp: _conditional,
    syntax.NamedExpr: _named,
    syntax.Call: late("runtime.calling.compile_call"),
    syntax.Attribute: late("runtime.calling.compile_attribute"),
    syntax.Subscript: _subscript,
    syntax.Slice: _slice,
    syntax.Lambda: _lambda,
    syntax.Yield: _yield,
    syntax.ListComp: late("runtime.comprehensions.compile_list"),
    syntax.GeneratorExp: late("runtime.comprehensions.compile_generator"),
    syntax.SetComp: late("runtime.comprehensions.compile_set"),
    syntax.DictComp: late("runtime.comprehensions.compile_dict"),
    syntax.JoinedStr: _joined,
    syntax.FormattedValue: _formatted,
}
