"""`tests/oracles/weak.py`: which changes of a text are seen to make another value."""

from __future__ import annotations

import ast

from tests.oracles.mutants import CHANGED, COMPARED, Compared
from tests.oracles.weak import Comparer, Numbered

from .together import together

TEXT = """
def f(x, y=2):
    return g(x, y, most=2) if x > 3 and y else [x][0]

def g(a, b, most=2):
    return min(a, b, most)

class Kept:
    def keep(self, value):
        self.value = value
"""


def seen(calls: str) -> dict[str, bool]:
    """The changes that were come by, and whether they made another value."""
    numbered = Numbered()
    comparer = Comparer(numbered, 0, arrays=False)
    tree = ast.fix_missing_locations(comparer.visit(numbered.visit(ast.parse(TEXT))))
    compared = Compared(bytearray(len(numbered.sites)))
    exec(compile(f"{ast.unparse(tree)}\n{calls}", "text", "exec"), {COMPARED: compared})
    marks = [(site, compared.marks[site.ordinal]) for site in comparer.compared]
    return {f"{site.before} -> {site.after}": mark == CHANGED for site, mark in marks if mark}


@together(
    [
        ("f(5)", "x > 3 -> x >= 3", False),
        ("f(3)", "x > 3 -> x >= 3", True),
        ("f(5)", "3 -> 4", False),
        ("f(4)", "3 -> 4", True),
        ("f(5)", "x > 3 and y -> x > 3 or y", False),
        ("f(1)", "x > 3 and y -> x > 3 or y", True),
        ("f(1)", "0 -> 1", True),
        ("f(5)", "g(x, y, most=2) -> g(x, y)", False),
        ("f(5)", "g(x, y, most=2) -> g(y, x, most=2)", True),
        ("f(5, 5)", "g(x, y, most=2) -> g(y, x, most=2)", False),
        ("k = Kept(); k.keep(1)", "self.value = value -> ", True),
        ("k = Kept(); k.value = 1; k.keep(1)", "self.value = value -> ", False),
    ]
)
def test_a_change_is_seen_where_it_makes_another_value(
    calls: str, change: str, changed: bool
) -> None:
    assert seen(calls)[change] is changed


def test_what_has_effects_is_done_once() -> None:
    tree = ast.parse("def f(x): return x.pop() + 1 if x.pop() > 2 else 0")
    numbered = Numbered()
    comparer = Comparer(numbered, 0, arrays=False)
    text = ast.unparse(ast.fix_missing_locations(comparer.visit(numbered.visit(tree))))
    names = {COMPARED: Compared(bytearray(len(numbered.sites)))}
    exec(text, names)
    assert names["f"]([1, 5, 4]) == 6
