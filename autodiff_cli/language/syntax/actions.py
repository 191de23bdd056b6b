"""The tree builder: one method for each action that `grammar/expr.lark` names.

Here are those that make statements; `expression_actions` and `parts` have the others.
"""

from __future__ import annotations

from ...errors import fault
from ...source import Span
from . import tree as s
from .action_base import Values, checked, fresh, makes, word
from .expression_actions import ExpressionActions, check_deletable, check_target, no_bare_star


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
    alias_as = makes(s.Alias, 0, word(2))
    word_alias = makes(s.Alias, word(0), None)
    word_alias_as = makes(s.Alias, word(0), word(2))
    return_statement = makes(s.Return, checked(1, no_bare_star))
    yield_value = makes(s.Yield, checked(1, no_bare_star), False)
    annotated_assign = annotation = makes(
        s.AnnAssign, checked(0, check_target, ":"), 2, checked(4, no_bare_star)
    )

    def module(self, v: Values, start: int, end: int) -> s.Module:
        return s.Module(v[0] if v else [], Span(self.source, 0, len(self.source.text)))

    empty_module = module

    def expression_statement(self, v: Values, start: int, end: int) -> s.Node:
        no_bare_star(v[0])
        return s.ExprStmt(v[0], Span(self.source, start, end))

    def assign(self, v: Values, start: int, end: int) -> s.Node:
        for target in v[0]:
            check_target(target)
        no_bare_star(v[1])
        return s.Assign(v[0], v[1], Span(self.source, start, end))

    def augmented_assign(self, v: Values, start: int, end: int) -> s.Node:
        op = self.text(v[1])
        check_target(v[0], single=op)
        no_bare_star(v[2])
        return s.AugAssign(v[0], op[:-1], v[2], Span(self.source, start, end))

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
    try_finally = makes(s.Try, 2, fresh, fresh, 5)
    for_statement = makes(s.For, checked(1, check_target), checked(3, no_bare_star), 5, 6)
    with_item = makes(s.WithItem, 0, checked(2, check_target))

    def elif_part(self, v: Values, start: int, end: int) -> Values:
        self.chained(v[4][0] if v[4] else None, start, "`elif` branches")
        return [s.If(v[1], v[3], v[4], Span(self.source, start, end))]

    def try_statement(self, v: Values, start: int, end: int) -> s.Node:
        for handler in v[3][:-1]:
            if handler.type is None:
                raise fault("E102 bare-except", span=handler.span)
        return s.Try(v[2], v[3], v[4], v[5], Span(self.source, start, end))

    def handler(self, v: Values, start: int, end: int) -> s.Handler:
        kind = v[1] if len(v) > 3 else None
        name = self.text(v[3]) if len(v) == 6 else None
        return s.Handler(kind, name, v[-1], Span(self.source, start, end))

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
        params = v[3] if len(v) > 7 else []
        self.check_parameters(params)
        span = Span(self.source, start, end)
        name = self.text(v[1])
        return s.FunctionDef(name, params, v[-1], [], v[-3], self.place(v[1]), span)

    function_with_parameters = function

    def class_plain(self, v: Values, start: int, end: int) -> s.Node:
        bases, keywords = self.split_arguments(v[3] if len(v) > 6 else [])
        span = Span(self.source, start, end)
        tree = s.ClassDef(self.text(v[1]), bases, keywords, v[-1], [], self.place(v[1]), span)
        return s.rename_private(tree)

    class_with_arguments = class_plain
