"""What a session shows, at every width of its terminal."""

from __future__ import annotations

import numpy as np
import pytest

from autodiff_cli.render.values import Look
from autodiff_cli.repl.show import (
    LONGEST,
    assigned_line,
    gradient_block,
    side_by_side,
    table,
    value_lines,
)
from autodiff_cli.repl.words import banner
from tests.said import compare

from .conftest import Session

WIDTHS = range(20, 104)
COMMANDS = [
    ":list", ":info W", ":grad", ":history", "W", "name_of_all", "pair", ":time",
]  # fmt: skip
LINES = [
    "A = [[1, 2, -0.5], [4, 5, 6e-9]]", "W = (arange(90) / 8).reshape(9, 10).requires_grad_()",
    "name_of_all = 'a text that is longer than a line of a narrow terminal is'", "n = 3",
    "pair = (A, {'a': n}, [None, True])", "def f(a, b=2):\n    return a * b\n\n", "日本 = [2.5]",
    "loss = sum(A * A) * 日本[0] + sum(W)",
]  # fmt: skip


@pytest.mark.parametrize("command", COMMANDS)
def test_commands(
    command: str, session: Session, request: pytest.FixtureRequest, width: list[int]
) -> None:
    said = []
    for width[0] in WIDTHS:
        session.loop.inputs.clear()
        said.append(session.loop.feed(command).output)
    compare(request, ("".join(said[at : at + 23]) for at in range(0, len(said), 23)), 4)


@pytest.fixture
def width(session: Session) -> list[int]:
    """Where the width of the session's terminal stands."""
    found = [80]
    for line in LINES:
        assert session.loop.feed(line).status == "ok"
    session.loop.around.width = session.loop.around.message_width = lambda: found[0]
    return found


def test_the_banner_has_names_where_there_is_room() -> None:
    whole = banner("names: A", 200)
    assert banner("names: A", len(whole)) == whole
    assert whole.startswith(f"{banner('names: A', len(whole) - 1)}   names")


def test_values(request: pytest.FixtureRequest) -> None:
    arrays = [np.arange(n) / 8 for n in (0, 1, 4, 5, 9)] + [np.eye(3) * 1e-9, np.float64(2.5)]
    values = [1, 2.5, True, None, "x" * 70, "tab\t\x07", (1, 2), [3], {"a": 1}, {4}, range(3)]
    looks = [Look(width=w, unicode=w % 7 > 0, max_elements=w % 5 + 2) for w in WIDTHS]
    found = ["\n".join(value_lines("y" * (LONGEST + more), Look(), False)) for more in (-1, 0, 1)]
    for look in looks:
        said = [assigned_line("name", value, look) for value in values]
        said += [line for v in values for p in (0, 1) for line in value_lines(v, look, p > 0)]
        blocks = [gradient_block(f"a{a.size}", np.asarray(a), look) for a in arrays]
        blocks.append(gradient_block("none", None, look))
        said += [*side_by_side(blocks, look.width), *(line for block in blocks for line in block)]
        rows = [("a", "bb" * i, "word and " * 2 * i) for i in range(3)]
        said += [*table(rows, look.width), *table([], look.width)]
        found.append("\n".join(said))
    compare(request, found, 1)
