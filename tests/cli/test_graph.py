"""`autodiff graph`: four forms, deterministic bytes, labels that cannot break out, large graphs."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

from autodiff_cli.render.graphs.drawing import Drawing, Wanted, drawing
from autodiff_cli.session import Options
from autodiff_cli.source import Source

from ..together import together

DEMO = """\
flowchart BT
  A["A (2, 2)"] --> n1["A + B<br/>AddBackward0 (2, 2)"]
  B["B (2, 2)"] --> n1
  n1 --> n2["(A + B) * A<br/>MulBackward0 (2, 2)"]
  A --> n2
  n2 --> n3["loss = sum((A + B) * A) = 100<br/>SumBackward0"]
"""

PROGRAMS = {
    "shared": "x = [1, 2]; h = x * x; loss = sum(h * h + x)",
    "broadcast": "W = [[1, 2], [3, 4]]; b = [0.5, -1]; loss = sum((W @ b + b) ** 2)",
    "several results": "x = [3, 1, 2]; v, i = sort(x); loss = sum(v * [1, 2, 3])",
    "composites": "x = [[1, 2, 0], [3, 1, 4]]\n"
    "loss = cross_entropy(layer_norm(x, [3]), const([2, 0]))",
    "stack": "a = 2; b = 3; loss = sum(stack([a, b, a]) ** 2)",
    "views": "x = [[1, 2], [3, 4]]; loss = sum(x.T[0] * x[:, 1])",
    "dtypes": "f = tensor([0.5, 2.0], dtype=torch.float32, requires_grad=True); d = [1, 2]\n"
    "loss = sum(f * d)",
    "overwritten": "x = [1, 2]; y = x * 3; y[0] = 5; loss = sum(y * y)",
    "unpacked": "A = [[1, 2], [3, 4]]\ndef f(x):\n  return x * 2\na, b = A\n*c, d = f(A)\n"
    "(p, q), r = A + 1, 2\nrows = [*f(A * 3)]\nt = 0\nfor row in f(A * 4):\n  t = t + row\n"
    "for e, g in A:\n  t = t + e * g\n"
    "loss = sum(a * b + c[0] * d + p * q + rows[0] + t + [u * v for u, v in A * A][0])\n"
    "loss = loss + sum(sum([s * s for s in f(A * 5)]))",
    "modules": "import torch\nm = torch.nn.Linear(2, 3)\n"
    "loss = m(torch.ones(4, 2)).pow(2).mean()\nloss.backward()",
    "steps": "import torch\nw = torch.tensor(2.0, requires_grad=True)\n"
    "o = torch.optim.SGD([w], lr=0.1)\nloss = w ** 3\nloss.backward()\no.step()",
    "hooks": "import torch\nx = torch.tensor(2.0, requires_grad=True)\nh = x * x\n"
    "h.retain_grad()\nh.register_hook(lambda g: g * 2)\nloss = h * 3\nloss.backward()",
}  # fmt: skip


def drawn(text: str, **wanted) -> Drawing:
    found = drawing(Source(text, "<test>"), Options(), Wanted(**wanted))
    assert found.error is None, found.error
    return found


# ------------------------------------------------------------------ the data


@together(PROGRAMS)
def test_what_edges_carry_adds_up(name: str):
    found = drawn(PROGRAMS[name], values=True, grads=True)
    for vertex in found.vertices:
        given = [edge.grad for edge in found.edges if edge.source == vertex.id]
        if vertex.id != found.root and vertex.grad is not None:
            np.testing.assert_allclose(sum(given), vertex.grad, rtol=1e-6)
        assert all(size >= 0 for size in vertex.shape)


def test_gradients_are_those_of_run(cli):
    for text in (PROGRAMS["shared"], PROGRAMS["broadcast"], PROGRAMS["composites"]):
        report = json.loads(cli("-e", text, "--format", "json").out)
        graph = json.loads(cli("graph", "-e", text, "-f", "json", "--grads", "--values").out)
        for node in graph["nodes"]:
            if node["kind"] == "leaf":
                assert np.allclose(node["grad"], report["tensors"][node["name"]]["grad"])
                assert node["value"] == report["tensors"][node["name"]]["value"]


def test_a_gradient_is_that_of_the_values_at_the_time():
    found = drawn(PROGRAMS["steps"], grads=True, values=True)
    (leaf,) = [vertex for vertex in found.vertices if vertex.kind == "leaf"]
    assert (leaf.name, float(leaf.value), float(leaf.grad)) == ("w", 2.0, 12.0)


def test_names_of_modules_and_lists():
    found = drawn(PROGRAMS["modules"])
    assert {v.name for v in found.vertices} >= {"m.weight", "m.bias", "loss"}
    found = drawn("p = [tensor(1.0, requires_grad=True)]; loss = p[0] * 2")
    assert "p[0]" in {v.name for v in found.vertices}


def test_constants_are_counted_or_drawn():
    text = "c = const([1, 2]); x = [3, 4]; loss = sum(x * c * 2)"
    (product,) = [v for v in drawn(text).vertices if v.text == "x * c"]
    assert product.constants == 1
    kinds = [v.kind for v in drawn(text, all=True).vertices]
    assert kinds.count("constant") == 1


def test_nan_is_marked_once():
    text = "x = [1, 2]\nfor i in range(4):\n    x = sqrt(x - 1)\nloss = sum(x)"
    found = drawn("x = [-1, 4]; loss = sum(sqrt(x) * 2)")
    assert [(v.text, v.note) for v in found.vertices if v.note] == [("sqrt(x)", "nan starts here")]
    assert [v.note for v in drawn(text).vertices if v.note] == ["nan starts here"]


# ------------------------------------------------------------------ forms


def test_the_demo(cli):
    assert cli("graph", "demo.expr", "-f", "mermaid") == (0, DEMO, "")
    rows = cli("graph", "demo.expr").out.splitlines()
    assert rows[0].startswith("sum((A + B) * A) = 100        <SumBackward0>")
    assert "shared, used 2x" in rows[-1]
    dot = cli("graph", "demo.expr", "-f", "dot", "--direction", "LR").out
    assert dot.startswith('digraph "loss of demo.expr" {\n  rankdir=LR;\n')
    assert '  "A" -> "n2";\n' in dot
    document = json.loads(cli("graph", "demo.expr", "-f", "json").out)
    assert document["root"] == "n3"
    assert [e["from"] for e in document["edges"] if e["to"] == "n2"] == ["n1", "A"]


def test_values_and_gradients(cli):
    mermaid = cli("graph", "demo.expr", "-f", "mermaid", "--values", "--grads").out
    assert 'A -->|"[[6, 8], [10, 12]]"| n2' in mermaid
    assert "grad [[7, 10], [13, 16]]" in mermaid
    tree = cli("graph", "demo.expr", "--values", "--grads").out
    assert "value [[6, 16], [30, 48]]" in tree
    assert "grad [[1, 3], [2, 4]]" not in tree


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "unpacked"])
def test_the_same_bytes_every_time(cli, name: str):
    for form in ("tree", "dot", "mermaid", "json"):
        argv = ("graph", "-e", PROGRAMS[name], "-f", form, "--values", "--grads", "--all")
        first = cli(*argv)
        assert first.code == 0, first.err
        assert first.out
        assert cli(*argv) == first


HOSTILE = """\
s = {'a"]; click b "javascript:x" <b>&amp;\\\\': 2.0}
end = [1, 2]
x = [1.5, 2] if "|}]--%%" else 0
y = x * s['a"]; click b "javascript:x" <b>&amp;\\\\'] * end
loss = sum(y*end*x)
"""


def test_labels_are_escaped(cli):
    mermaid = cli("graph", "-", "-f", "mermaid", stdin=HOSTILE).out
    for line in mermaid.splitlines()[1:]:
        assert line.count('"') == 2 * line.count('["')
        label = "".join(re.findall(r'"([^"]*)"', line)).replace("<br/>", "")
        assert not set(label) & set('<>&"\\`|{}~')
    assert "end[" not in mermaid
    assert "y#42;end#42;x" in mermaid
    dot = cli("graph", "-", "-f", "dot", stdin=HOSTILE).out
    for line in dot.splitlines():
        assert len(re.findall(r'(?<!\\)(?:\\\\)*"', line)) % 2 == 0
    assert '\\"]; click b' in dot
    ids = re.findall(r'^  "([^"]*)" \[', dot, re.M)
    assert len(ids) == len(set(ids))


def test_control_characters_do_not_reach_the_terminal(cli):
    text = "x = 2; y = {'\x1b[31m\u202e': x}['\x1b[31m\u202e'] * 3; loss = y"
    for form in ("tree", "dot", "mermaid", "json"):
        result = cli("graph", "-e", text, "-f", form)
        assert not set(result.out) & {"\x1b", "\u202e"}, form


def test_large_graphs(cli):
    text = "x = 1\nfor i in range(500):\n    x = x * 1.001\nloss = x\n"
    tree = cli("graph", "-", stdin=text).out
    assert "501 nodes, too many for a tree (--all, --max-nodes)" in tree
    assert len(cli("graph", "-", "--all", stdin=text).out) > len(tree)
    for form in ("dot", "mermaid"):
        part = cli("graph", "-", "-f", form, "--max-nodes", "5", stdin=text).out
        assert "496 nodes not drawn" in part
        assert part.count("MulBackward0") == 5
    document = json.loads(cli("graph", "-", "-f", "json", stdin=text).out)
    assert (len(document["nodes"]), document["omitted"]) == (501, 0)
    part = json.loads(cli("graph", "-", "-f", "json", "--max-nodes", "5", stdin=text).out)
    assert (len(part["nodes"]), part["omitted"]) == (5, 496)


@pytest.mark.parametrize("width", [120, 80, 44, 30, 12])
def test_trees_by_width(cli, width: int):
    text = "a = [1, 2, 3]\nb = tanh(a)\nloss = sum(sin(cos(exp(b * 2) ** 2))) / 1000"
    result = cli("graph", "-e", text, "--values", tty=True, NO_COLOR="1", COLUMNS=str(width))
    assert result.code == 0
    said = " ".join(result.out.replace("│", " ").split())  # lines go on below themselves
    assert "value [0.761594, 0.964028, 0.995055]" in said
    if width >= 30:
        deepest = 3 if width == 30 else 0  # numbers are not broken
        assert all(len(row) <= width + deepest for row in result.out.splitlines())


def test_files(cli, tmp_path: Path):
    assert cli("graph", "demo.expr", "-o", "g.mmd") == (0, "", "")
    assert (tmp_path / "g.mmd").read_text() == DEMO
    assert cli("graph", "demo.expr", "-o", "g.dot").code == 0
    assert (tmp_path / "g.dot").read_text().startswith("digraph")
    assert cli("graph", "demo.expr", "-f", "mermaid", "-o", "README.md").code == 0
    assert (tmp_path / "README.md").read_text() == DEMO
    unknown = cli("graph", "demo.expr", "-o", "g.gif")
    assert unknown.code == 2 and "-f" in unknown.err
    assert cli("graph", "demo.expr", "-o", "nowhere/g.dot").code == 2


@together(PROGRAMS)
def test_all_is_what_the_result_is_made_of(name: str):
    """What a leaf was filled with (draws of a module's weights) is no part of the graph."""
    found = drawn(PROGRAMS[name], all=True)
    used = {edge.source for edge in found.edges} | {found.root}
    assert used == {vertex.id for vertex in found.vertices}


# ------------------------------------------------------------------ errors


def test_errors(cli):
    assert cli("graph", "-e", "x = const(2); loss = x * 2").code == 3
    assert "--of NAME" in cli("graph", "-e", "x = [1, 2]; y = x * 2", "--grads").err
    assert cli("graph", "-e", "x = [1, 2]; y = x * 2").code == 0
    assert "did you mean `loss`" in cli("graph", "demo.expr", "--of", "los").err
    assert cli("graph", "missing.expr").code == 2
    result = cli("graph", "-e", "x = yy", "-f", "json")
    assert (result.code, json.loads(result.out)["error"]["code"]) == (3, "E201")
    assert cli("graph", stdin_tty=True).code == 2
    assert cli("graph", "demo.expr", "demo.expr", "-f", "mermaid").out == DEMO * 2


def test_trees_of_the_nodes_nearest_to_the_result(cli) -> None:
    text = "x = 2; y = 3; loss = exp(sin(x * y) + cos(x))"
    for most, left in (("2", "more operand"), ("4", "more operand"), ("20", "")):
        shown = cli("graph", "-e", text, "--max-nodes", most).out
        assert shown.startswith("exp(") and "too many" not in shown
        assert (left in shown) if left else ("more" not in shown)
    assert len(cli("graph", "-e", text, "--max-nodes", "2").out.splitlines()) < len(
        cli("graph", "-e", text, "--max-nodes", "4").out.splitlines()
    )


def test_products_of_matrices_in_numpys_name(cli) -> None:
    out = cli("-e", "A = [[1, 2], [3, 4]]; loss = sum(np.dot(A, A))").out
    assert "loss = 54.0" in out and "A.grad = [[7.0, 11.0], [9.0, 13.0]]" in out
