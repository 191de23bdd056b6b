"""Tables, trees and pictures on the terminal at every width; from how many tensors and numbers on
less is shown."""

from __future__ import annotations

from io import StringIO
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from rich.text import Text

from autodiff_cli.language.program.running import run_program
from autodiff_cli.render import plain as plain_form
from autodiff_cli.render.graphs.outline import Outline
from autodiff_cli.render.graphs.tree import Bounds, Row, Tree, tree_lines
from autodiff_cli.render.pictures.blocks import picture
from autodiff_cli.render.plain import literal, plain
from autodiff_cli.render.selection import MANY, families, important
from autodiff_cli.render.tables import Page, terminal
from autodiff_cli.render.values import Look
from autodiff_cli.session import Options, Report
from autodiff_cli.source import Source
from tests.said import compare
from tests.together import together

VECTOR = [at / 8 for at in range(20)]
PROGRAMS = {
    "not finite": "x = [0, 4, -1]; w = [inf, nan, 2]; loss = sum(sqrt(x) * w)",
    "long": f"a_name_of_some_length = {VECTOR}; loss = sum(a_name_of_some_length)",
    "many": "".join(f"a{at} = {at}; b{at} = a{at} * 2\n" for at in range(22)) + "loss = b21 * 3",
}
LAYERS = "import torch\nnet = torch.nn.Sequential(*[torch.nn.Linear(2, 2) for _ in range({})])\n"


def ran(text: str) -> Report:
    name = "p.py" if text.startswith("import") else "p.expr"
    report = run_program(Source(text, name), Options())
    assert report.error is None, report.error
    return report


def shown(report: Report, look: Look, heat: bool = True, **further: Any) -> list[str]:
    """The lines of a report with the names of their styles."""
    lines: list[Text] = []
    console: Any = SimpleNamespace(print=lines.append, color_system="256" if heat else None)
    Page(console, look).report(report, **further)
    return [line.markup for line in lines]


@pytest.mark.parametrize("name", PROGRAMS)
def test_tables_at_every_width(name: str, request: pytest.FixtureRequest) -> None:
    report, parts = ran(PROGRAMS[name]), ("values", "gradients")
    found = ["\n".join(shown(report, Look(width=width), only=parts)) for width in range(20, 112)]
    compare(request, ["\n".join(found[at::8]) for at in range(8)], 8)


def test_colors_there_are(request: pytest.FixtureRequest) -> None:
    found = []
    for forced, depth, kind in product(
        (None, "1", "2", "3"), (None, "truecolor", "24bit"), (None, "xterm-256color")
    ):
        given = {"FORCE_COLOR": forced, "COLORTERM": depth, "TERM": kind}
        variables = {name: value for name, value in given.items() if value is not None}
        found.append(f"{variables} {terminal(StringIO(), True, variables).color_system}")
        assert terminal(StringIO(), False, variables).color_system is None
    compare(request, ["\n".join(found)])


TREE = [
    Row("", "loss = sum(a)", "<SumBackward0>", "()", value=" = 3"),
    Row("└── ", "a_name = b * c", "<MulBackward0>", "(2, 3)"),
    Row("    ├── ", "b", "<AccumulateGrad>", "(2, 3)"),
    Row("    └── ", "c", "<AccumulateGrad>", "see above", True),
    Row("        ", "", value="grad [[1, 2, 3], [4, 5, 6]]"),
]
TWO = [Row("", f"y = {'a' * 28}", "<A>", "(1000, 1000)"), Row("└── ", "a", "<B>", "see above")]
FEW = [Row("", "y = a", "<A>", "(1000, 1000, 1000, 1000, 1000)"), Row("└── ", "a", "<B>", "(2,)")]


def test_trees_at_every_width(request: pytest.FixtureRequest) -> None:
    found = [
        "\n".join(tree_lines(rows, width=width, unicode=unicode))
        for rows in (TREE, FEW, TWO)
        for width in range(4, 90)
        for unicode in (True, False)
    ]
    compare(request, ["\n".join(found[at::8]) for at in range(8)], 8)


def test_pictures_at_every_width(request: pytest.FixtureRequest) -> None:
    array = np.array([[0, 0.25, -1, 0.5], [1, np.nan, 0, -0.75], [0.015, 0.02, 0.1, -0.1]])
    found = [
        "\n".join(
            line.markup
            for line in picture(name, numbers, color=color, unicode=unicode, width=width)
        )
        for name, numbers in (("x.grad", array), ("x.grad", np.tile(array, 3)), ("日本", array))
        for width in (*range(1, 30), 80)
        for color, unicode in ((True, True), (False, True), (False, False))
    ]
    compare(request, ["\n".join(found[at::6]) for at in range(6)], 8)


def test_how_large_a_graph_is_drawn_as_a_tree() -> None:
    outline = Outline.of_report(ran("x = 2; loss = x * x + x"))
    count = len(outline.nodes)
    assert Tree(outline, Bounds(nodes=count)).draw()[0].label == "x * x + x"
    (said, *_) = Tree(outline, Bounds(nodes=count - 1)).draw()
    assert said.label == f"{count} nodes, too many for a tree (--all)"
    rows = Tree(outline, Bounds()).draw()
    assert Tree(outline, Bounds(rows=len(rows))).draw() == rows
    *above, last = Tree(outline, Bounds(rows=len(rows) - 1)).draw()
    assert (above, last.label) == (rows[:-1], "… 1 more node (--all)")


# ------------------------------------------------------------------ of many


def test_from_how_many_on_tensors_are_taken_together() -> None:
    """Parameters in more than twenty tensors, those of one shape in one row; in no more rows than
    that large ones are shown."""
    for layers in (MANY // 2, MANY // 2 + 1):
        report = ran(LAYERS.format(layers))
        records = list(report.tensors.values())
        few = len(records) <= MANY
        assert [len(group.members) for group in families(records)] == (
            [1] * MANY if few else [layers] * 2
        )
        assert ("tensors alike" in "\n".join(shown(report, Look()))) == (not few)
        assert ("alike (--show" in plain(report)) == (not few)
        assert "alike" not in plain(report, all=True)
    for further in ("", "x = torch.ones(1, requires_grad=True)\n"):
        lines = shown(ran(LAYERS.format(MANY // 2) + further), Look(max_elements=1))
        assert any("[[" in line for line in lines) == (not further)


def test_from_how_many_on_intermediate_values_are_left_out() -> None:
    for count in (MANY, MANY + 1):
        text = f"x0 = 1\n{''.join(f'x{at + 1} = x{at} * 2{chr(10)}' for at in range(count - 1))}"
        report = ran(text)
        records = list(report.tensors.values())
        assert len(records) == count
        assert (important(report, records) == records) == (count == MANY)
        said = f"{count - 3} intermediate values not shown"
        assert (said in "\n".join(shown(report, Look()))) == (count > MANY)


def test_from_how_many_on_numbers_of_a_snippet_are_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(plain_form, "MOST_NUMBERS", 4)
    text = plain(ran("import torch\na = torch.ones(4)\nb = torch.ones(5)\n"))
    assert "a = " in text and "b = " not in text and "# b: 5 numbers" in text


# ------------------------------------------------------------------ program text


DTYPES = ["float64", "float32", "float16", "int64", "int32", "uint8", "bool"]


@together(product(DTYPES, [0, 1, 3], [False, True]), group=42)
def test_what_is_written_makes_the_same_tensor(dtype: str, size: int, requires_grad: bool) -> None:
    array = np.arange(size).astype(dtype)
    requires_grad = requires_grad and array.dtype.kind == "f"
    found = ran(f"x = {literal(array, requires_grad)}").tensors["x"]
    assert (found.dtype, found.requires_grad) == (dtype, requires_grad)
    assert found.value.tolist() == array.tolist()
