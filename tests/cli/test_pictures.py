"""Graphs as SVG: every node and edge once, text inside its box, nothing that breaks out, colours
that are legible on light and dark, large graphs by the lines of their programs."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import pytest

from autodiff_cli.render.graphs.drawing import Drawing, Wanted, drawing
from autodiff_cli.render.pictures import collapsed as collapsing
from autodiff_cli.render.pictures import png
from autodiff_cli.render.pictures.collapsed import MOST, collapsed
from autodiff_cli.render.pictures.page import picture_text
from autodiff_cli.render.pictures.svg import STYLE, graph_svg
from autodiff_cli.render.text import text_width
from autodiff_cli.session import Options
from autodiff_cli.source import Source
from tests.cli.test_graph import PROGRAMS
from tests.together import together

SVG = "{http://www.w3.org/2000/svg}"
EMPTY = '<svg xmlns="http://www.w3.org/2000/svg" width="{}" height="{}"></svg>'
ADVANCE = 12 * 1233 / 2048  # of DejaVu Sans Mono, the widest of the fonts

UGLY = """\
α = [0.5, 2.0]
名前 = [1.0, 3.0]
b = where(α<1, α, 名前)  # <a&b>
loss = sum(b * 名前) + ("]]>&<!--" == "x")
"""
LOOP = """\
import torch
x = torch.tensor([0.5, 0.2], requires_grad=True)
w = torch.tensor(0.9, requires_grad=True)
y = x
for i in range(250):
    y = y * w
    y = torch.sin(y)
    z = y + x
    y = z / 2
loss = y.sum()
"""
ALL = {**PROGRAMS, "ugly": UGLY}


def drawn(text: str, name: str = "<a&b>.expr", **wanted: bool) -> Drawing:
    name = name.replace(".expr", ".py") if text.startswith("import") else name
    found = drawing(Source(text, name), Options(), Wanted(**wanted))
    assert found.error is None, found.error
    return found


def parts(svg: str, kind: str) -> list[ElementTree.Element]:
    groups = ElementTree.fromstring(svg).iter(f"{SVG}g")
    return [group for group in groups if kind in group.get("class", "").split()]


@together([(name, direction) for name in ALL for direction in ("BT", "LR")], group=13)
def test_every_node_and_edge_once(name: str, direction: str) -> None:
    found = drawn(ALL[name], values=True, grads=True)
    svg = graph_svg(found, direction=direction)
    shown = collapsed(found)
    nodes, edges = parts(svg, "node"), parts(svg, "edge")
    assert [node.get("data-id") for node in nodes] == [vertex.id for vertex in shown.vertices]
    ids = {node.get("data-id"): node.get("id") for node in nodes}
    assert list(ids.values()) == [f"n{at}" for at in range(1, len(nodes) + 1)]
    assert [(edge.get("data-from"), edge.get("data-to"), edge.get("data-operand"))
            for edge in edges] == [
        (ids[edge.source], ids[edge.target], str(edge.operand)) for edge in shown.edges
    ]  # fmt: skip
    for edge, element in zip(shown.edges, edges, strict=True):
        label = "".join(element.itertext())
        assert bool(label) == (edge.grad is not None or edge.count > 1)
    for vertex, element in zip(shown.vertices, nodes, strict=True):
        assert element.get("data-line") == (str(vertex.span.line) if vertex.span else None)
        assert ("root" in element.get("class", "")) == (vertex.id == shown.root)


@together(ALL)
def test_text_is_inside_its_box(name: str) -> None:
    svg = graph_svg(drawn(ALL[name], values=True, grads=True))
    groups = parts(svg, "node") + parts(svg, "label")
    assert groups
    for group in groups:
        box = group.find(f"{SVG}rect")
        assert box is not None
        x, y, width, height = (float(box.get(key, "")) for key in ("x", "y", "width", "height"))
        lines = [line for line in group.iter(f"{SVG}tspan") if line.get("x")]
        assert lines
        for line in lines:
            left, base = float(line.get("x", "")), float(line.get("y", ""))
            assert x < left and y + 9 <= base <= y + height - 3
            assert left + text_width("".join(line.itertext())) * ADVANCE < x + width


@pytest.mark.parametrize("name", ["ugly", "stack"])
def test_nothing_from_outside_and_nothing_that_runs(name: str) -> None:
    for text in (graph_svg(drawn(ALL[name])), picture_text(drawn(ALL[name]), True)):
        bare = text.replace("http://www.w3.org/2000/svg", "").lower()
        for word in ("http:", "https:", "href", "url(", "<script", "style=", "@import"):
            assert word not in bare, word
        assert not re.search(r"<[^>]* on[a-z]+=", bare)


def test_names_and_expressions_are_text() -> None:
    svg = graph_svg(drawn(UGLY, values=True))
    said = " ".join("".join(part.itertext()) for part in parts(svg, "node")).replace("\xa0", " ")
    assert "where(α<1, α, 名前)" in said and "名前 (2,)" in said
    title = ElementTree.fromstring(svg).find(f"{SVG}title")
    assert title is not None and title.text == "Graph of loss in <a&b>.expr"


def test_the_same_program_has_the_same_bytes() -> None:
    for text in (UGLY, PROGRAMS["modules"]):
        first, second = (graph_svg(drawn(text, values=True, grads=True)) for _ in "ab")
        assert first == second


def test_large_graphs_are_drawn_by_lines() -> None:
    found = drawn(LOOP)
    shown = collapsed(found)
    assert len(found.vertices) > MOST > len(shown.vertices)
    assert sum(vertex.count for vertex in shown.vertices) == len(found.vertices) == 1003
    lines = Counter((v.kind, v.span.line) for v in found.vertices if v.span)
    assert {(v.kind, v.span.line): v.count for v in shown.vertices if v.span} == lines
    texts = {v.text for v in shown.vertices if v.count > 1}
    assert texts == {"y = y * w", "y = torch.sin(y)", "z = y + x", "y = z / 2"}
    given = {(a.split()[0], b.split()[0]): edge.count for edge in shown.edges
             for a, b in [(edge.source, edge.target)]}  # fmt: skip
    assert sum(given.values()) == len(found.edges)
    assert Counter(given.values())[249] == 1  # from the last line back to the first
    assert collapsed(shown) is shown
    back = parts(graph_svg(found), "back")
    assert len(back) == 1 and "".join(back[0].itertext()) == "249x"


def test_from_how_many_nodes_on_lines_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    found = drawn(LOOP.replace("250", "3"))
    for most in (len(found.vertices), len(found.vertices) - 1):
        monkeypatch.setattr(collapsing, "MOST", most)
        shown = collapsed(found)
        assert (shown is found) == (most == len(found.vertices))
    assert {edge.count for edge in shown.edges} == {1, 2, 3}
    labels = {"".join(label.itertext()) for label in parts(graph_svg(shown), "label")}
    assert {"2x", "3x"} <= labels


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("sin(cos(exp(x)))", "1 x ExpBackward0, 1 x CosBackward0, 1 x SinBackward0"),
        ("sin(cos(sin(exp(tanh(x)))))",
         "2 x SinBackward0, 1 x TanhBackward0, 1 x ExpBackward0, 1 others"),
    ],
)  # fmt: skip
def test_functions_of_a_line_are_counted(
    line: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collapsing, "MOST", 0)
    found = collapsed(drawn(f"x = 0.5\ny = {line}\nloss = y * 2\n"))
    assert f"{said}, each from the last" in [vertex.grad_fn for vertex in found.vertices]


def test_a_leaf_that_is_used_everywhere_takes_little_room() -> None:
    """Its line runs straight beside the steps, whatever their number."""
    steps = "".join(f"y{at + 1} = y{at} + x\n" for at in range(90))
    svg = graph_svg(drawn(f"x = [0.5, 0.2]\ny0 = x * 2\n{steps}loss = sum(y90)\n"))
    nodes = parts(svg, "node")
    assert len(nodes) == 93 < MOST and len(svg) < 1000 * len(nodes)
    width = float(ElementTree.fromstring(svg).get("width", ""))
    assert width < 400


# ------------------------------------------------------------------ colours


def themes() -> list[dict[str, str]]:
    found = re.findall(r"svg\.graph \{ (--g-[^}]*)\}", STYLE)
    return [dict(re.findall(r"--g-([a-z-]+): (#[0-9a-f]{6});", text)) for text in found]


def luminance(color: str) -> float:
    """As WCAG 2 has it."""
    parts = [int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(a: str, b: str) -> float:
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_colours_are_legible_on_light_and_dark() -> None:
    light, dark = themes()
    assert luminance(light["paper"]) > 0.9 and luminance(dark["paper"]) < 0.02
    for colors in (light, dark):
        for paper in ("paper", "box", "leaf"):
            for ink in ("ink", "dim", "grad", "bad"):
                assert contrast(colors[ink], colors[paper]) >= 4.5, (ink, paper)
        for line in ("edge", "rim", "leaf-rim", "root-rim", "bad"):
            assert contrast(colors[line], colors["paper"]) >= 3, line
    assert set(re.findall(r"var\(--g-([a-z-]+)\)", STYLE)) == set(light) == set(dark)


# ------------------------------------------------------------------ the command


def test_forms_by_suffix(cli, tmp_path: Path) -> None:
    svg, page = tmp_path / "demo.svg", tmp_path / "demo.html"
    assert cli("graph", "-e", UGLY, "--grads", "-o", svg).code == 0
    ElementTree.fromstring(svg.read_text("utf-8"))
    assert cli("graph", "-e", UGLY, "--grads", "-f", "svg").out == svg.read_text("utf-8")
    assert cli("graph", "-e", UGLY, "--values", "-o", page).code == 0
    text = page.read_text("utf-8")
    assert "Content-Security-Policy" in text and "<td>where(α&lt;1, α, 名前)</td>" in text
    two = cli("graph", "demo.expr", "demo.expr", "-o", svg)
    assert two.code == 2 and "of one program" in two.err
    assert cli("graph", "-e", "x = y", "-o", tmp_path / "no.svg").code == 3
    assert not (tmp_path / "no.svg").exists()


def test_a_png(cli, tmp_path: Path) -> None:
    pytest.importorskip("resvg_py", reason="the extra `pictures` is not installed")
    pytest.importorskip("matplotlib", reason="the extra `pictures` is not installed")
    path = tmp_path / "demo.png"
    assert cli("graph", "-e", UGLY, "-o", path).code == 0
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    width = float(re.findall(r'width="([0-9.]+)"', cli("graph", "-e", UGLY, "-f", "svg").out)[0])
    assert int.from_bytes(data[16:20], "big") == pytest.approx(2 * width, abs=1)
    assert cli("graph", "-e", UGLY, "-f", "png").code == 2


def test_sizes_of_large_pngs(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("resvg_py", reason="the extra `pictures` is not installed")
    pytest.importorskip("matplotlib", reason="the extra `pictures` is not installed")
    monkeypatch.setattr(png, "_SIDE", 300)
    monkeypatch.setattr(png, "_PIXELS", 6400)
    for size, wanted in (((20, 10), (40, 20)), ((200, 4), (300, 6)), ((4, 200), (6, 300))):
        data = png.png(EMPTY.format(*size))
        assert (int.from_bytes(data[16:20]), int.from_bytes(data[20:24])) == wanted
    assert int.from_bytes(png.png(EMPTY.format(100, 100))[16:20]) == 80


def test_a_missing_extra_is_said(cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("autodiff_cli.render.pictures.png.find_spec", lambda name: None)
    done = cli("graph", "-e", "no program", "-o", tmp_path / "demo.png")
    assert done.code == 2 and "pip install 'autodiff-cli[pictures]'" in done.err
    assert "Traceback" not in done.err and "-f svg" in done.err
