"""The tree builder: one method for each action that `grammar/expr.lark` names.

Here are those that make statements; `expression_actions` and `parts` have the others.
"""

from __future__ import annotations

from typing import Any

from ...errors import fault
from ...source import Span
from . import tree as s
from .action_base import Values, Word, makes
from .expression_actions import ExpressionActions, check_deletable, check_target


class Builder(ExpressionActions):
    """Makes the nodes of one text."""

    # ---- simple statements ------------------------------------------------------------------

    pass_statement = makes(s.Pass)
    break_statement = makes(s.Break)
    continue_statement = makes(s.Continue)
    yield_from = makes(s.Yield, 2, True)
    raise_statement = makes(s.Raise, 1, 3)
    assert_statement = makes(s.Assert, 1, 3)
    global_statement = makes(s.Global, 1)
    nonlocal_statement = makes(s.Nonlocal, 1)
    import_statement = makes(s.Import, 1)
    import_from = makes(s.ImportFrom, 1, 3)
    import_from_listed = makes(s.ImportFrom, 1, 4)
    alias = makes(s.Alias, 0, None)
    alias_as = makes(s.Alias, 0, Word(2))
    word_alias = makes(s.Alias, Word(0), None)
    word_alias_as = makes(s.Alias, Word(0), Word(2))

    def empty_module(self, v: Values, start: int, end: int) -> s.Module:
        return s.Module([], Span(self.source, 0, len(self.source.text)))

    def module(self, v: Values, start: int, end: int) -> s.Module:
        return s.Module(v[0], Span(self.source, 0, len(self.source.text)))

    def expression_statement(self, v: Values, start: int, end: int) -> s.Node:
        self.no_bare_star(v[0])
        return s.ExprStmt(v[0], Span(self.source, start, end))

    def assign(self, v: Values, start: int, end: int) -> s.Node:
        for target in v[0]:
            check_target(target)
        self.no_bare_star(v[1])
        return s.Assign(v[0], v[1], Span(self.source, start, end))

    def augmented_assign(self, v: Values, start: int, end: int) -> s.Node:
        op = self.text(v[1])
        check_target(v[0], single=op)
        self.no_bare_star(v[2])
        return s.AugAssign(v[0], op[:-1], v[2], Span(self.source, start, end))

    def annotation(self, v: Values, start: int, end: int) -> s.Node:
        check_target(v[0], single=":")
        return s.AnnAssign(v[0], v[2], None, Span(self.source, start, end))

    def annotated_assign(self, v: Values, start: int, end: int) -> s.Node:
        check_target(v[0], single=":")
        self.no_bare_star(v[4])
        return s.AnnAssign(v[0], v[2], v[4], Span(self.source, start, end))

    def return_statement(self, v: Values, start: int, end: int) -> s.Node:
        value = v[1] if len(v) > 1 else None
        self.no_bare_star(value)
        return s.Return(value, Span(self.source, start, end))

    def yield_value(self, v: Values, start: int, end: int) -> s.Node:
        value = v[1] if len(v) > 1 else None
        self.no_bare_star(value)
        return s.Yield(value, False, Span(self.source, start, end))

    def delete_statement(self, v: Values, start: int, end: int) -> s.Node:
        targets = v[1].elements if isinstance(v[1], s.Tuple) else [v[1]]
        for target in targets:
            check_deletable(target)
        return s.Delete(targets, Span(self.source, start, end))

    def one_word(self, v: Values, start: int, end: int) -> list[str]:
        return [self.text(v[0])]

    def append_word(self, v: Values, start: int, end: int) -> list[str]:
        v[0].append(self.text(v[2]))
        return v[0]

    def word(self, v: Values, start: int, end: int) -> str:
        return self.text(v[0])

    def dotted(self, v: Values, start: int, end: int) -> str:
        return f"{v[0]}.{self.text(v[2])}"

    def import_everything(self, v: Values, start: int, end: int) -> s.Node:
        everything = [s.Alias("*", None, self.place(v[3]))]
        return s.ImportFrom(v[1], everything, Span(self.source, start, end))

    # ---- compound statements ----------------------------------------------------------------

    if_statement = makes(s.If, 1, 3, 4)
    while_statement = makes(s.While, 1, 3, 4)
    try_finally = makes(s.Try, 2, list, list, 5)

    def elif_part(self, v: Values, start: int, end: int) -> Values:
        self.chained(v[4][0] if v[4] else None, start, "`elif` branches")
        return [s.If(v[1], v[3], v[4], Span(self.source, start, end))]

    def for_statement(self, v: Values, start: int, end: int) -> s.Node:
        check_target(v[1])
        self.no_bare_star(v[3])
        return s.For(v[1], v[3], v[5], v[6], Span(self.source, start, end))

    def try_statement(self, v: Values, start: int, end: int) -> s.Node:
        for handler in v[3][:-1]:
            if handler.type is None:
                raise fault("E102 bare-except", span=handler.span)
        return s.Try(v[2], v[3], v[4], v[5], Span(self.source, start, end))

    def handler(self, v: Values, start: int, end: int) -> s.Handler:
        kind = v[1] if len(v) > 3 else None
        name = self.text(v[3]) if len(v) > 4 else None
        return s.Handler(kind, name, v[-1], Span(self.source, start, end))

    def with_item(self, v: Values, start: int, end: int) -> s.WithItem:
        target = v[2] if len(v) > 1 else None
        if target is not None:
            check_target(target)
        return s.WithItem(v[0], target, Span(self.source, start, end))

    def with_statement(self, v: Values, start: int, end: int) -> s.Node:
        items = v[1]
        only = items[0].expr
        together = only.elements if len(items) == 1 and isinstance(only, s.Tuple) else []
        starred = any(isinstance(element, s.Starred) for element in together)
        if together and items[0].target is None and not starred:
            # `with (a, b):` enters both; `with ():` and `with (*a,):` enter a tuple.
            items = [s.WithItem(element, None, element.span) for element in together]
        return s.With(items, v[3], Span(self.source, start, end))

    def decorated(self, v: Values, start: int, end: int) -> s.Node:
        v[1].decorators = v[0]
        return v[1]

    def function(self, v: Values, start: int, end: int) -> s.Node:
        return self.make_function(v[1], [], v[6], v[4], start, end)

    def function_with_parameters(self, v: Values, start: int, end: int) -> s.Node:
        return self.make_function(v[1], v[3], v[-1], v[-3], start, end)

    def make_function(
        self, name: int, params: Values, body: Values, returns: Any, start: int, end: int
    ) -> s.Node:
        self.check_parameters(params)
        span = Span(self.source, start, end)
        place = self.place(name)
        return s.FunctionDef(self.text(name), params, body, [], returns, place, span)

    def class_plain(self, v: Values, start: int, end: int) -> s.Node:
        span = Span(self.source, start, end)
        tree = s.ClassDef(self.text(v[1]), [], [], v[-1], [], self.place(v[1]), span)
        return s.rename_private(tree)

    def class_with_arguments(self, v: Values, start: int, end: int) -> s.Node:
        bases, keywords = self.split_arguments(v[3])
        span = Span(self.source, start, end)
        tree = s.ClassDef(self.text(v[1]), bases, keywords, v[-1], [], self.place(v[1]), span)
        return s.rename_private(tree)
