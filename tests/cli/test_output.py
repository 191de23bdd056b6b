"""What `run` prints: tables by width, plain text that runs again, strict JSON, files."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.pace import takes_at_most

SNAPSHOTS = Path(__file__).parent / "snapshots"

PROGRAMS = {
    "leaves": "x = [1, 2.5]; y = 3; loss = sum(x * y)",
    "constants": "k = const([1, 2]); b = k > 1; w = 2; loss = w * sum(k)",
    "scalars": "x = [1, 2]; n = len(x); flag = n > 1; r = 1 / n; loss = sum(x * n)",
    "not finite": "x = [1, nan, inf]; loss = sum(x * -inf)",
    "empty tensors": "x = zeros(0, 3, requires_grad=True); k = zeros(2, 0); loss = sum(x)",
    "dtypes": "f = tensor([0.1, 0.2], dtype=torch.float32, requires_grad=True); loss = sum(f)\n"
    "i = tensor([1, -2], dtype=torch.int32); o = ones(2, 2, dtype=torch.bool)",
    "one-element vector": "x = [3]; loss = x * x",
    "unreached": "x = 1; y = 2; loss = x * x",
    "names": "π = 3; 日本 = 2; loss = π * 日本",
    "zeros": "x = [-0.0, 0.0]; loss = sum(x * x)",
    "nothing": "",
}


def documents(text: str) -> list[dict[str, Any]]:
    """The documents of an output; the `cli` fixture has held them against their schema."""
    return [json.loads(line) for line in text.splitlines()]


# ------------------------------------------------------------------ tables


@pytest.mark.parametrize("width", [120, 80, 44, 30])
def test_the_demo_by_width(cli, width: int):
    result = cli("demo.expr", tty=True, NO_COLOR="1", COLUMNS=str(width))
    assert (result.code, result.err) == (0, "")
    assert result.out == (SNAPSHOTS / f"demo-{width}.txt").read_text("utf-8")
    assert all(len(line) <= width for line in result.out.splitlines())


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_width_works(cli, name: str):
    for width in (1, 7, 39, 40, 71, 72, 100):
        result = cli("-e", PROGRAMS[name], "--format", "rich", "--all", COLUMNS=str(width))
        assert result.code == 0
        if width >= 40:
            assert all(len(line) <= width for line in result.out.splitlines())


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('print("a", end="")\nx = 1\n', "a\n# autodiff"),
        ('print("a", end="")\nprint("", end="")\nx = 1\n', "a\n# autodiff"),
        ('print("a")\nx = 1\n', "a\n# autodiff"),
        ('print("a\\n", end="")\nprint("", end="")\nx = 1\n', "a\n# autodiff"),
        ('print("a", end="")\nprint("b", end="")\nx = 1\n', "ab\n# autodiff"),
        ("x = 1\n", "# autodiff"),
    ],
)
def test_what_follows_prints_begins_a_line(cli, text: str, shown: str):
    assert cli("-e", text).out.startswith(shown)


def test_columns_cut_are_counted(cli):
    result = cli("-e", "A = [[1.125, 2, 3, 4, 5, 6, 7, 8]]; loss = sum(A)", tty=True,
                 NO_COLOR="1", COLUMNS="36")  # fmt: skip
    assert re.search(r"… \d more columns", result.out)


def test_markup_is_text(cli):
    result = cli("-e", "B = [1, 2]; i = 1; loss = B[i] * 2  # [red]x[/red] :smile:", tty=True,
                 NO_COLOR="1", COLUMNS="80")  # fmt: skip
    assert "B[i]" in result.out


def test_large_tensors_are_summed_up(cli):
    result = cli("-e", "x = linspace(1, 2, 100) * 1; x.requires_grad_(); loss = sum(x ** 3)",
                 "--wrt", "x", tty=True, NO_COLOR="1", COLUMNS="100")  # fmt: skip
    assert "0% zero   0 nan   0 inf" in result.out
    assert "log10|g|" in result.out
    assert "..." in result.out
    ascii_only = cli("-e", "x = [1, 2]; loss = sum(x)", tty=True, encoding="ascii", COLUMNS="80")
    assert ascii_only.out.isascii()


def test_many_names(cli):
    lines = ["x = [1, 2]", "h0 = x * 1"] + [f"h{i} = tanh(h{i - 1})" for i in range(1, 30)]
    text = "\n".join([*lines, "loss = sum(h29)"])
    result = cli("-", stdin=text, tty=True, NO_COLOR="1", COLUMNS="100")
    assert "… 29 intermediate values not shown (--all, --show 'h*')" in result.out
    assert "not shown" not in cli("-", "--all", stdin=text, tty=True, COLUMNS="100").out
    assert "h3 " in cli("-", "--show", "h3", stdin=text, tty=True, NO_COLOR="1").out


def test_large_graphs_are_counted(cli):
    text = "x = 1\nfor i in range(500):\n    x = x * 1.001\nloss = x\n"
    result = cli("-", stdin=text, tty=True, NO_COLOR="1", COLUMNS="80")
    assert re.search(r"500 +<MulBackward0>", result.out)
    assert len(cli("-", "--all", stdin=text, tty=True, COLUMNS="80").out) < 20_000


def test_sharing_is_marked(cli):
    text = "x = 2; h = x * x; loss = h * h"
    result = cli("-e", text, "--only", "graph", tty=True, NO_COLOR="1", COLUMNS="80")
    assert "shared, used 2x" in result.out
    assert "↑ h" in result.out


def test_unreached_leaves_are_said(cli):
    result = cli("-e", PROGRAMS["unreached"], tty=True, NO_COLOR="1", COLUMNS="80")
    assert "not connected to loss" in result.out


def test_colours(cli):
    text = "x = [1, -2]; loss = sum(x ** 2)"
    heat = cli("-e", text, tty=True, TERM="xterm-256color", COLORTERM="truecolor").out
    assert ";48;2;" in heat
    assert "48;" not in cli("-e", text, tty=True, TERM="xterm").out
    assert "\x1b" not in cli("-e", text, tty=True, NO_COLOR="1").out
    assert "\x1b" not in cli("-e", text).out
    assert "\x1b[1mx\x1b[0m = " in cli("-e", text, FORCE_COLOR="1").out
    assert "\x1b" in cli("-e", text, "--color", "always", NO_COLOR="1").out


def test_only_and_show(cli):
    assert cli("demo.expr", "--only", "gradients", "--show", "A").out.splitlines()[1:] == [
        "A.grad = [[7.0, 10.0], [13.0, 16.0]]  # (2, 2)"
    ]
    graph = cli("demo.expr", "--only", "graph").out.splitlines()
    assert graph[1].startswith("# sum((A + B) * A) = 100")
    assert "did you mean `loss`" in cli("demo.expr", "--show", "los").err


def test_slips_in_names_exit_alike_and_those_in_options_too(cli):
    for command, option in (
        ("run", "--of"), ("run", "--wrt"), ("run", "--show"), ("run", "--heat"),
        ("jacobian", "--of"), ("jacobian", "--wrt"), ("hessian", "--of"), ("derive", "--wrt"),
        ("explain", "--node"), ("explain", "--of"), ("graph", "--of"), ("report", "--wrt"),
    ):  # fmt: skip
        result = cli(command, "demo.expr", option, "C")
        assert result.code == 3 and "error[E201]" in result.err, (command, option)
        assert "help: it has: " in result.err, (command, option)
        assert cli(command, "demo.expr", f"{option}x", "C").code == 2
    assert cli("why", "C", "demo.expr").code == 3


@pytest.mark.parametrize("command", ["run", "derive", "explain"])
def test_the_result_is_nothing_to_differentiate_by(cli, command: str):
    result = cli(command, "demo.expr", "--wrt", "loss")
    assert result.code == 3 and "help: it has: A, B\n" in result.err


@pytest.mark.parametrize("command", ["run", "jacobian", "derive", "explain", "why A"])
def test_forms_have_one_option(cli, command: str):
    texts = {
        cli(*command.split(), "demo.expr", flag, "json").out for flag in ("-f", "--to", "--format")
    }
    (text,) = texts
    assert json.loads(text)["status"] == "ok"


def test_forms_are_switches_too(cli):
    for command, switch, form in (
        ("derive", "--latex", "latex"), ("derive", "--statements", "expr"),
        ("explain", "--latex", "latex"), ("explain", "--markdown", "markdown"),
    ):  # fmt: skip
        one = cli(command, "demo.expr", switch)
        assert one.code == 0 and one.out == cli(command, "demo.expr", "--to", form).out != ""
        assert cli(command, "demo.expr", switch, "--to", "json").code == 2


# ------------------------------------------------------------------ plain


def test_plain(cli):
    assert cli("demo.expr").out == (SNAPSHOTS / "demo-plain.txt").read_text("utf-8")


@pytest.mark.parametrize("name", PROGRAMS)
def test_plain_runs_again_to_the_same(cli, name: str):
    first = cli("-e", PROGRAMS[name])
    assert (first.code, first.err) == (0, first.err)
    again = cli("-", stdin=first.out)
    assert again.code == 0, again.err

    def statements(text: str) -> list[str]:
        return [line.split("  #")[0] for line in text.splitlines()[1:]]

    assert statements(again.out) == statements(first.out)


@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "nothing"])
def test_asserts_hold(cli, name: str):
    asserts = cli("-e", PROGRAMS[name], "--asserts")
    assert asserts.code == 0
    assert asserts.out.startswith("assert ")
    checked = cli("-", stdin=PROGRAMS[name] + "\n" + asserts.out)
    assert checked.code == 0, checked.err


def test_what_a_program_prints_comes_first(cli):
    result = cli("-e", "x = 2; loss = x * x; print('hello')")
    assert result.out.startswith("hello\n# autodiff.plain/1")
    assert cli("-e", "print('only this')").out == "only this\n"


def test_what_a_snippet_prints_is_what_is_seen(cli):
    text = "import torch\nx = torch.arange(10_001)\ny = x[:2]\nprint(len(x))\ny.shape\n"
    first, header, large, small = cli("run", "-", stdin=text).out.splitlines()
    assert (first, header) == ("10001", "# autodiff.plain/1  <stdin>")
    assert large == "# x: 10001 numbers (--show x writes them)  # (10001,) int64 const"
    assert small == "y = const([0, 1])  # (2,) int64 const"
    assert "10000])" in cli("run", "-", "--show", "x", stdin=text).out
    assert "10000])" in cli("run", "-", "--all", stdin=text).out
    assert cli("run", "-", stdin="import torch\ntorch.ones(2).shape\n").out == "torch.Size([2])\n"


def test_a_bare_expression_is_its_value(cli):
    assert cli("-e", "sum([1, 2] ** 2)").out == "5\n"
    assert "# 12" in cli("-e", "x = 3; loss = x * x; x * 4").out


# ------------------------------------------------------------------ JSON


@pytest.mark.parametrize("name", PROGRAMS)
def test_documents_are_strict_and_valid(cli, name: str):
    (document,) = documents(cli("-e", PROGRAMS[name], "--format", "json").out)
    assert document["status"] == "ok"


def test_the_document_of_the_demo(cli):
    (document,) = documents(cli("demo.expr", "--format", "json").out)
    assert document["loss"] == "loss"
    assert document["tensors"]["A"] == {
        "shape": [2, 2], "dtype": "float64", "requires_grad": True, "is_leaf": True,
        "grad_fn": None, "value": [[1.0, 2.0], [3.0, 4.0]], "grad": [[7.0, 10.0], [13.0, 16.0]],
    }  # fmt: skip
    assert document["tensors"]["loss"]["grad_fn"] == "SumBackward0"
    assert document["tensors"]["loss"]["grad"] is None


def test_non_finite_numbers_are_strings(cli):
    text = "x = [1, nan, inf, -inf, -0.0]; r = float(nan)"
    (document,) = documents(cli("-e", text, "--format", "json").out)
    assert document["tensors"]["x"]["value"] == [1.0, "nan", "inf", "-inf", 0.0]
    assert str(document["tensors"]["x"]["value"][4]) == "-0.0"


def test_errors_are_documents(cli):
    result = cli("-e", "x = 1\nloss = x + yy", "--format", "json")
    (document,) = documents(result.out)
    error = document["error"]
    assert (error["code"], error["kind"]) == ("E201", "unknown-name")
    assert (error["line"], error["column"], error["end_line"], error["end_column"]) == (
        2,
        12,
        2,
        14,
    )
    assert "E201" in result.err


def test_prints_are_in_the_document(cli):
    (document,) = documents(cli("-e", "print('a\\nb')", "--format", "json").out)
    assert document["stdout"] == "a\nb\n"


def test_many_numbers_are_quick(cli):
    from autodiff_cli.render.document import dump
    from autodiff_cli.session import run
    from autodiff_cli.source import Source

    report = run(Source("x = arange(100000) * 0.5\n"))
    assert takes_at_most(20, lambda: dump(report))
    assert len(json.loads(dump(report))["tensors"]["x"]["value"]) == 100_000


# ------------------------------------------------------------------ files


def test_json_and_text_files(cli, tmp_path: Path):
    assert cli("demo.expr", "demo.expr", "-o", "out.json") == (0, "", "")
    assert len(documents((tmp_path / "out.json").read_text())) == 2
    assert cli("demo.expr", "-o", "out.txt").code == 0
    assert (tmp_path / "out.txt").read_text() == cli("demo.expr").out
    assert cli("demo.expr", "-o", "-").out == cli("demo.expr").out


def test_array_files(cli, tmp_path: Path):
    assert cli("demo.expr", "-o", "out.npz").code == 0
    with np.load(tmp_path / "out.npz") as data:
        assert sorted(data) == ["A", "A.grad", "B", "B.grad", "loss"]
        assert data["A.grad"].tolist() == [[7, 10], [13, 16]]
    for part, names in (("values", ["A", "B", "loss"]), ("gradients", ["A.grad", "B.grad"])):
        assert cli("demo.expr", "-o", "part.npz", "--only", part).code == 0
        with np.load(tmp_path / "part.npz") as data:
            assert sorted(data) == names
    assert cli("demo.expr", "-o", "g.npy", "--show", "A.grad").code == 0
    assert np.load(tmp_path / "g.npy").tolist() == [[7, 10], [13, 16]]
    assert cli("demo.expr", "-o", "g.csv", "--show", "A.grad").code == 0
    assert (tmp_path / "g.csv").read_text() == "7.0,10.0\n13.0,16.0\n"
    several = cli("demo.expr", "-o", "all.npy")
    assert several.code == 2
    assert "--show" in several.err
    assert not (tmp_path / "all.npy").exists()
    assert cli("-e", "x = zeros(2, 2, 2)", "-o", "x.csv").code == 2


def test_a_failed_program_leaves_the_file_as_it_was(cli, tmp_path: Path):
    (tmp_path / "out.npz").write_bytes(b"before")
    assert cli("-e", "x = yy", "-o", "out.npz").code == 3
    assert (tmp_path / "out.npz").read_bytes() == b"before"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["demo.expr", "out.npz"]


def test_a_tensor_may_be_called_file(cli, tmp_path: Path):
    assert cli("-e", "file = 2; loss = file * 3", "-o", "out.npz").code == 0
    with np.load(tmp_path / "out.npz") as data:
        assert data["file.grad"] == 3


# ------------------------------------------------------------------ modules and containers

# Gradients by hand: loss = (2 * 3 * a[0] + 3) * w + b with a[0] = 2, w = 5.
HELD = """import torch
import torch.nn as nn
a = [torch.tensor(2.0, requires_grad=True), torch.tensor(7.0, requires_grad=True)]
layers = {'w': torch.tensor(5.0, requires_grad=True), 'b': torch.tensor(1.0, requires_grad=True)}
model = nn.Sequential(nn.Linear(1, 1), nn.Identity())
with torch.no_grad():
    model[0].weight.fill_(6.0)
    model[0].bias.fill_(3.0)
loss = model(a[0].reshape(1)).sum() * layers['w'] + layers['b']
loss.backward()
"""
HELD_GRADIENTS = {
    "a[0]": 30, "a[1]": None, "layers['w']": 15, "layers['b']": 1, "model.0.weight": [[10]],
    "model.0.bias": [5],
}  # fmt: skip


def test_parameters_are_rows(cli, tmp_path: Path):
    (tmp_path / "held.py").write_text(HELD)
    (document,) = documents(cli("held.py", "--format", "json").out)
    found = document["tensors"]
    assert {name: found[name]["grad"] for name in HELD_GRADIENTS} == HELD_GRADIENTS
    assert document["loss"] is None  # the program differentiates itself
    table = cli("held.py", tty=True, NO_COLOR="1", COLUMNS="100").out
    assert re.search(r"^ model\.0\.weight +\(1, 1\) +\[\[10\]\]", table, re.M)
    assert re.search(r"^ a\[1\] +\(\) +not connected to loss$", table, re.M)
    assert "Graph   loss <- grad_fn" in table
    lines = cli("held.py").out.splitlines()
    assert "# model.0.bias.grad = tensor([5.0], dtype=torch.float32)  # (1,)" in lines
    assert cli("held.py", "-o", "out.npz").code == 0
    with np.load(tmp_path / "out.npz") as data:
        assert data["layers['w'].grad"] == 15
    again = cli("-", stdin=HELD + cli("held.py", "--asserts", "--only", "gradients").out)
    assert (again.code, again.err) == (0, "")


# What has attributes of the program's own, some of them named as the library's are.
OWN_ATTRIBUTES = """import torch
def f(): f.n += 1
f.n, f.fields, f.modules = 0, {'a': 1}, 3
class C:
    fields = {'a': torch.tensor(1.0, requires_grad=True)}
    modules = 4
class I(int): pass
c, i, row = C(), I(3), []
c.cls, c.fields, i.w = 5, 3, torch.tensor(2.0, requires_grad=True)
row.append(row)
row.append(torch.tensor(3.0, requires_grad=True))
class L(list):
    def __getitem__(self, key): raise ValueError(key)
    def __iter__(self): raise ValueError(self)
class D(dict):
    def items(self): raise ValueError(self)
class K(int):
    def __repr__(self): raise ValueError(0)
    def __hash__(self): return 1
w = torch.tensor(1.0, requires_grad=True)
lists, maps = L([w]), D(a=w)
keys = {10**5000: w, K(1): w, "x" * 1000: w, 2: w}
m = torch.nn.Identity()
m.fields, m.cls, m.extra = 3, 4, [torch.tensor(4.0, requires_grad=True)]
(i.w * row[1] * m.extra[0]).backward()
"""


def test_attributes_of_the_programs_own(cli):
    (document,) = documents(cli("-", "--format", "json", stdin=OWN_ATTRIBUTES).out)
    found = {name: tensor["grad"] for name, tensor in document["tensors"].items()}
    assert found == {"i.w": 12, "row[1]": 8, "w": None, "m.extra[0]": 6}


@pytest.mark.parametrize(
    ("spelling", "names"),
    [
        ("model.0.weight", ["model.0.weight"]), ("model[0].weight", ["model.0.weight"]),
        ("model*", ["model.0.weight", "model.0.bias"]), ("a[0]", ["a[0]"]), ("a[*]", ["a[0]"]),
        ("layers.w", ["layers['w']"]), ('layers["w"]', ["layers['w']"]),
    ],
)  # fmt: skip
def test_spellings_of_a_parameter(cli, tmp_path: Path, spelling: str, names: list[str]):
    (tmp_path / "held.py").write_text(HELD.replace("loss.backward()\n", ""))
    (document,) = documents(cli("held.py", "--wrt", spelling, "--format", "json").out)
    found = {n: t["grad"] for n, t in document["tensors"].items() if t["grad"] is not None}
    assert found == {name: HELD_GRADIENTS[name] for name in names}
    explained = cli("explain", "held.py", "--wrt", spelling).out
    assert all(f"g({name}) = " in explained for name in names)
    if "*" not in spelling:
        (answer,) = documents(cli("why", spelling, "held.py", "--format", "json").out)
        assert (answer["name"], answer["verdict"]) == (names[0], "ok")


def test_only_what_is_asked_for_is_shown_of_a_backward_of_ones_own(cli, tmp_path: Path):
    (tmp_path / "held.py").write_text(HELD)
    only = ("--only", "gradients")
    lines = cli("held.py", "--wrt", "model*", *only).out.splitlines()[1:]
    assert [line.split()[1] for line in lines] == ["model.0.weight.grad", "model.0.bias.grad"]
    apart = ("-e", "x = 1; y = 3; loss = x * x")
    for program, name in ((["held.py"], "a[1]"), (apart, "y")):
        table = cli(*program, "--wrt", name, *only, tty=True, NO_COLOR="1").out
        assert re.search(rf"^ {re.escape(name)} +\(\) +not connected to loss$", table, re.M)


def test_unknown_parameters_are_refused(cli, tmp_path: Path):
    (tmp_path / "held.py").write_text(HELD)
    for command in (["run", "held.py", "--wrt", "model.0.wieght"], ["why", "model.0.wieght"]):
        result = cli(*command, *([] if "held.py" in command else ["held.py"]))
        assert (result.code, "did you mean `model.0.weight`?" in result.err) == (3, True)


MANY_WEIGHTS = """import torch
ws = [torch.ones(2, 2, requires_grad=True) for _ in range(200)]
vs = [torch.ones(3, requires_grad=True) for _ in range(2)]
for step in range(3):
    loss = sum((w * k).sum() for k, w in enumerate(ws[:100])) + sum(v.sum() for v in vs)
    loss.backward()
"""


@pytest.mark.parametrize("width", [120, 80, 44])
def test_many_parameters_are_summed_up(cli, width: int):
    shown = cli("-", stdin=MANY_WEIGHTS, tty=True, NO_COLOR="1", COLUMNS=str(width)).out
    assert len(shown.splitlines()) < 60
    assert all(len(line) <= width for line in shown.splitlines())
    assert "100 tensors alike" in shown
    assert "not connected to loss" in shown
    assert "594" in shown  # the largest norm: 3 steps of 99 in 2 x 2
    plain = cli("-", stdin=MANY_WEIGHTS).out
    assert len(plain.splitlines()) < 20
    assert "# ws[*]: 100 tensors alike (--show 'ws[*]' writes them)" in plain
    glob = "--show", "ws[*]"
    assert len(cli("-", *glob, stdin=MANY_WEIGHTS).out.splitlines()) == 301


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 3", "nothing is computed from what requires grad"),
        ("x = [1, 2]; y = x * 2", "y is not a single number, its shape is (2,)"),
        (HELD.replace("loss.backward()", ""), "calls no backward(); --of loss does it"),
        (
            HELD.replace("loss.backward()", "torch.autograd.grad(loss, a[0])"),
            "autograd.grad return",
        ),
        (HELD + "layers['w'].grad = None", "cleared after backward()"),
        (HELD + "model[0].bias.requires_grad_(False); model.zero_grad()", "requires_grad=False"),
        ("x = [1, 2]; y = x * 2; b = y * y", "b is not a single number, its shape is (2,)"),
    ],
)
def test_why_there_is_no_gradient(cli, text: str, words: str):
    shown = cli("-", stdin=text, tty=True, NO_COLOR="1", COLUMNS="120").out
    assert words in shown.partition("Gradients")[2]
    narrow = cli("-", stdin=text, tty=True, NO_COLOR="1", COLUMNS="44").out
    assert words in " ".join(narrow.partition("Gradients")[2].split())
    assert all(len(line) <= 44 for line in narrow.splitlines())


def test_other_leaves_than_asked_for_are_not_missing(cli):
    for wrt, name in (("B", "A"), ("A", "B")):
        shown = cli("demo.expr", "--wrt", wrt, tty=True, NO_COLOR="1", COLUMNS="80").out
        assert "not connected" not in shown
        assert f"\n {name} " not in shown.partition("Gradients")[2]


def test_infinities_are_extremes(cli):
    text = "x = [0, 4]; loss = sum(sqrt(x))"
    shown = cli("-e", text, tty=True, NO_COLOR="1", COLUMNS="80").out
    assert re.search(r"\[inf, 0\.25\] +inf +0\.25 +inf$", shown, re.M)


def test_one_number_is_not_repeated(cli):
    shown = cli("-e", "x = 3; loss = x ** 2", tty=True, NO_COLOR="1", COLUMNS="80").out
    assert shown.split()[-2:] == ["()", "6"]
    assert "-0" not in cli("-e", "x = -0.0; loss = x * x", tty=True, NO_COLOR="1").out


def test_rows_of_a_narrow_tree_differ_and_say_what_has_no_room(cli):
    text = (
        "x = [[1.0, 2], [3, 4]]\nloss = ((((x @ x + 1).tanh() @ x + 2).tanh() @ x + 3).exp()).sum()"
    )
    for width in ("80", "44", "30"):
        shown = cli("-e", text, "--only", "graph", tty=True, NO_COLOR="1", COLUMNS=width).out
        labels = [line.split("<")[0].strip(" │├└─") for line in shown.splitlines()]
        inner = [label for label in labels if "(" in label]
        assert len(inner) == len(set(inner)) >= 6
        assert ("grad_fn: no room" in shown) == ("<MmBackward0>" not in shown)


def test_the_tree_follows_the_form_of_numbers(cli):
    options = ("--sci", "-p", "3", "--only", "graph")
    shown = cli("-e", "x = 1234.5; loss = x * 1", *options, tty=True, NO_COLOR="1").out
    assert "x * 1 = 1.23e+03" in shown.replace("1.23e+3", "1.23e+03")


def test_the_locale_c_is_ascii(cli):
    assert cli("demo.expr", tty=True, NO_COLOR="1", LC_ALL="C").out.isascii()
    assert cli("-e", "x = yy", tty=True, NO_COLOR="1", LC_ALL="C").err.isascii()


def test_escaped_names_stand_in_columns(cli):
    text = "größe = [[1, 2], [3, 4]]; ö = [1, 2]; loss = sum(größe * ö)"
    for command in ("run", "explain"):
        shown = cli(command, "-e", text, tty=True, NO_COLOR="1", LC_ALL="C").out
        assert shown.isascii()
        rows = [line for line in shown.splitlines() if re.match(r" +(g\()?(\\xf6|gr)", line)]
        column = r" \(2" if command == "run" else r" \+?= "
        ends = [m.end() for line in rows if (m := re.search(column, line))]
        assert len(ends) >= 4
        assert len({*ends[:2]}) == len({*ends[-2:]}) == 1
    bad = cli("-e", "größe = [1, 2]; y = größe * [1, 2, 3]", tty=True, NO_COLOR="1", LC_ALL="C")
    source, marks = bad.err.splitlines()[3:5]
    assert source.index(" * ") + 1 == marks.index("^")
    assert marks[: marks.index("^")].count("-") == len(r"gr\xf6\xdfe")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("demo.expr", "--dtype", "float"), "did you mean float32?"),
        (
            ("demo.expr", "-D", "A=[[1,2],[3]]"),
            "-D A=[[1,2],[3]]: ragged list: row [1] has 1 entry",
        ),
        (("why", "demo.expr"), "put a name before it: `autodiff why NAME demo.expr`"),
        (("-e", "A = [[1], [3, 4]]"), "row [1] has 2 entries, the first has 1 entry\n"),
        (("-e", "x = [[1, 2]]; y = x.expand(3, 4)"), "dim 1 has 2 elements; only 1"),
        (("-e", "x = [[1]]; cross_entropy(x, [1])"), "there is 1 class"),
        (("-e", "assert tensor([1.0]) == tensor([2.0])"), "the only element differs"),
    ],
)
def test_wrong_command_lines(cli, arguments: tuple[str, ...], words: str):
    assert words in cli(*arguments, stdin_tty=True).err


def test_losses_are_found_by_category(cli):
    assert "cross_entropy " in cli("ops", "--category", "loss").out
    assert "  their" not in cli("ops", "--category", "loss").out


def test_formulas_of_other_alphabets(cli):
    latex = cli("derive", "--latex", "-e", "α = 3; 名前 = 2; loss = α * sin(名前)").out
    assert r"\partial \alpha}" in latex
    assert "ensuremath" not in latex  # KaTeX has no such command


def test_commands_to_run_again_are_quoted(cli, tmp_path: Path):
    (tmp_path / "a.expr").write_text("assert 3 == 4\n")
    assert "re-run: autodiff check a.expr -k 'assert[1]'" in cli("check", "a.expr").out
