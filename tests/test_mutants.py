"""`tests/oracles/mutate.py`: changes of a text as they are written into it."""

from __future__ import annotations

import ast

import pytest

from tests.oracles.mutants import walked
from tests.oracles.mutate import rewritten

TEXT = """\
def f(x, y=2):
    é = g(x, y, most=2) if (x >
        3 and y) else [x][0]
    x.append(1)
    return é  # the last

def g(a):
    return pow(
        a, 1,  # a bound
    )
"""


def changed() -> dict[str, str]:
    """Each change of the text, and the lines that it replaces."""
    _, walk = walked(TEXT)
    found = {}
    for ordinal in range(len(walk.sites)):
        site = walked(TEXT, {ordinal: 1})[1].sites[ordinal]
        text = rewritten(TEXT, {"span": site.span, "instead": site.instead})
        ast.parse(text)
        lines = TEXT.splitlines()
        others = [line for line in text.splitlines() if line not in lines]
        found[f"{site.before} -> {site.after}"] = "\n".join(others)
    return found


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        ("x > 3 -> x >= 3", "    é = g(x, y, most=2) if ((x >= 3) and y) else [x][0]"),
        ("0 -> 1", "        3 and y) else [x][(1)]"),
        ("g(x, y, most=2) -> g(x, y)", "    é = (g(x, y)) if (x >"),
        ("2 -> 3", "    é = g(x, y, most=(3)) if (x >"),
        ("x.append(1) -> ", "    pass"),
        ("return é -> return None", "    return None  # the last"),
        ("pow(a, 1) -> pow(1, a)", ""),  # the comment would get lost
    ],
)
def test_a_change_is_written_where_it_is(change: str, lines: str) -> None:
    assert changed()[change] == lines
