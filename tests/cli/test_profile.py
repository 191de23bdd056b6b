"""`run --profile` and `run --plan`: what people and programs read, at any width, in any form."""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from autodiff_cli.graph.registry import F
from autodiff_cli.render.plan import count_text
from autodiff_cli.render.profile import seconds_text

BIG = """\
w = linspace(-1, 1, 200000).reshape(200, 1000).requires_grad_()
y = sigmoid(w * 3 + 0.5)
loss = sum((1 - y) ** 2)
"""


# The same with no big array in the document.
INSIDE = """\
def slope():
    w = linspace(-1, 1, 200000).reshape(200, 1000).requires_grad_()
    sum((1 - sigmoid(w * 3 + 0.5)) ** 2).backward()
    return sum(w.grad)
total = slope()
"""


def documents(out: str) -> list[dict]:
    return [json.loads(line) for line in out.splitlines()]


# ------------------------------------------------------------------ plain text and JSON


def test_plain_text_stays_a_program(cli, tmp_path: Path):
    result = cli("demo.expr", "--profile", "--plan")
    assert result.code == 0
    added = result.out.removeprefix(cli("demo.expr").out)
    assert added != result.out
    assert all(line.startswith("# ") for line in added.splitlines())
    tree = cli("demo.expr", "--profile", "--only", "graph").out.splitlines()
    (root,) = [line for line in tree if "SumBackward0" in line]
    assert re.fullmatch(r"# sum\(\(A \+ B\) \* A\) = 100 +<SumBackward0> +\d+\.\d%  \(\)", root)
    (tmp_path / "again.expr").write_text(result.out)
    again = cli("again.expr", "--format", "json")
    first = cli("demo.expr", "--format", "json")
    assert documents(again.out)[0]["tensors"]["A"]["grad"] == [[7.0, 10.0], [13.0, 16.0]]
    assert documents(first.out)[0]["tensors"]["A"]["grad"] == [[7.0, 10.0], [13.0, 16.0]]


def test_documents_have_them_when_asked(cli):
    (plain,) = documents(cli("demo.expr", "--format", "json").out)
    assert "profile" not in plain
    assert "plan" not in plain
    (found,) = documents(cli("demo.expr", "--format", "json", "--profile", "--plan").out)
    profile, plan = found["profile"], found["plan"]
    assert sum(line["share"] for line in profile["lines"]) == pytest.approx(1)
    parts = sum(profile[key] for key in ("kernels", "parsing", "building", "planning"))
    assert parts == pytest.approx(profile["seconds"])
    added = next(line for line in profile["lines"] if line["text"] == "A + B")
    assert (added["line"], added["column"], added["end_column"]) == (3, 13, 18)
    assert plan["ran"] is False
    assert [unit["kind"] for unit in plan["units"]] == ["kernel"] * len(plan["units"])


def test_groups_in_text(cli, tmp_path: Path):
    (tmp_path / "inside.expr").write_text(INSIDE)
    out = cli("inside.expr", "--plan").out
    slope = "sigmoid(w * 3 + 0.5)"
    assert f"\n#    forward w * 3, w * 3 + 0.5, {slope}, 1 - {slope}, sum(w.grad)\n" in out
    assert f"\n#    backward (1 - {slope}) ** 2, 1 - {slope}, {slope}, w * 3\n" in out


def test_groups_in_documents(cli, tmp_path: Path):
    (tmp_path / "inside.expr").write_text(INSIDE)
    (found,) = documents(cli("inside.expr", "--format", "json", "--plan").out)
    plan = found["plan"]
    assert plan["ran"] is True
    (group,) = [unit for unit in plan["units"] if unit["kind"] == "group"]
    assert group["rows"] * int(np.prod(group["row"])) == 200_000
    phases = {piece["phase"] for piece in group["expressions"]}
    assert phases == {"forward", "backward"}
    assert "def tile(" in group["source"]
    for array in group["outputs"]:
        assert array["bytes"] == int(np.prod(array["shape"])) * 8


def test_nothing_evaluated(cli):
    (found,) = documents(cli("-e", "print(3)", "--plan", "--profile", "--format", "json").out)
    assert found["plan"] is None
    assert found["profile"]["lines"] == []
    out = cli("-e", "print(3)", "--plan", "--profile").out
    assert "nothing was evaluated" in out
    assert out.startswith("3\n")


def test_a_wrong_program_says_only_that(cli):
    for form in ("plain", "json"):
        result = cli("-e", "x = [1, 2] + [1, 2, 3]", "--profile", "--plan", "--format", form)
        assert result.code == 3
        assert "E302" in result.err
        assert "Profile" not in result.out
        assert '"profile"' not in result.out


@pytest.mark.parametrize("flag", ["--profile=yes", "--plan=1", "--profil", "--no-plan"])
def test_wrong_command_lines(cli, flag: str):
    assert cli("run", "demo.expr", flag).code == 2


def test_several_files_have_their_own(cli, tmp_path: Path):
    (tmp_path / "other.expr").write_text("q = 2\nloss = q * q * q\n")
    found = documents(cli("demo.expr", "other.expr", "--profile", "--format", "json").out)
    files = [{line["file"] for line in doc["profile"]["lines"]} for doc in found]
    assert files == [{"demo.expr"}, {"other.expr"}]


def test_files(cli, tmp_path: Path):
    assert cli("demo.expr", "--profile", "-o", "out.json").code == 0
    assert "profile" in json.loads((tmp_path / "out.json").read_text())
    assert cli("demo.expr", "--profile", "-o", "out.txt").out == ""
    assert "# Profile" in (tmp_path / "out.txt").read_text()
    result = cli("demo.expr", "--plan", "-o", "out.npz")
    assert result.out.startswith("# Plan")
    assert sorted(np.load(tmp_path / "out.npz").files) == ["A", "A.grad", "B", "B.grad", "loss"]


# ------------------------------------------------------------------ the slow one


def test_a_slow_kernel_is_the_top_line(cli, clock, monkeypatch: pytest.MonkeyPatch):
    op = F.sin
    kernel = op.kernel

    def slow(x):
        clock[0] += 0.05
        return kernel(x)

    monkeypatch.setattr(op, "kernel", slow)
    text = "x = [0.5, 1.5, 2.5]\ny = exp(x) * x\nz = sin(y) + y\nloss = sum(z * z)\n"
    (found,) = documents(cli("-", "--profile", "--format", "json", stdin=text).out)
    top = found["profile"]["lines"][0]
    assert (top["text"], top["phase"], top["line"]) == ("sin(y)", "forward", 3)
    assert top["seconds"] >= 0.05
    assert top["share"] > 0.5
    shown = cli("-", "--profile", stdin=text, tty=True, NO_COLOR="1", COLUMNS="80").out
    rows = shown[shown.index("Profile") :].splitlines()
    assert rows[2].endswith("sin(y)")
    assert "all kernels" in shown
    (tree,) = [row for row in shown.splitlines() if "SinBackward0" in row]
    assert float(tree.split("%")[0].split()[-1]) > 50


# ------------------------------------------------------------------ terminals


@pytest.mark.parametrize("width", [80, 30])
def test_lines_fit(cli, tmp_path: Path, width: int):
    (tmp_path / "big.expr").write_text(BIG)
    for name in ("big.expr", "demo.expr"):
        flags = ("--profile", "--plan", "--only", "gradients")
        result = cli(name, *flags, tty=True, NO_COLOR="1", COLUMNS=str(width))
        assert result.code == 0
        start = result.out.index("Plan")
        assert all(len(line) <= width for line in result.out[start:].splitlines()), result.out
        assert "Profile" in result.out
        assert "100.0%" in result.out


def test_many_expressions_are_counted(cli):
    text = "x = [1.0, 2]\ny = x\n" + "".join(f"y = y * x + {n}\n" for n in range(30))
    text += "loss = sum(y)\n"
    brief = cli("-", "--profile", "--plan", stdin=text, tty=True, NO_COLOR="1").out
    assert "more lines (--all)" in brief
    assert "more (--all)" in brief[brief.index("Plan") : brief.index("Profile")]
    everything = cli("-", "--profile", "--plan", "--all", stdin=text, tty=True, NO_COLOR="1").out
    assert "(--all)" not in everything[everything.index("Plan") :]


def test_the_code_is_shown_with_v(cli, tmp_path: Path):
    (tmp_path / "big.expr").write_text(BIG)
    words = ("big.expr", "--plan", "--no-backward", "--show", "loss")
    assert "def tile(" in cli(*words, "-v").out
    assert "def tile(" not in cli(*words).out


def test_colours_change_nothing_but_colours(cli):
    variables = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "COLUMNS": "80"}
    colored = cli("demo.expr", "--plan", tty=True, **variables).out
    plain = cli("demo.expr", "--plan", tty=True, NO_COLOR="1", COLUMNS="80").out
    uncoloured = re.sub(r"\x1b\[[0-9;]*m", "", colored)
    assert uncoloured.replace("Values   < 0 > 0\n", "Values\n", 1) == plain
    ascii_only = cli("demo.expr", "--plan", "--profile", tty=True, encoding="ascii").out
    assert ascii_only.isascii()


def test_text_of_programs_is_never_markup(cli):
    text = "B = [1.0, 2]\ni = 1\nloss = sum(B[i:] * B[i:])\n"
    out = cli("-", "--profile", "--plan", stdin=text, tty=True).out
    assert "B[i:]" in out


def test_amounts():
    assert [seconds_text(s) for s in (0, 1.234e-6, 0.0123, 0.9996, 1.5, 250)] == [
        "0.00 us", "1.23 us", "12.3 ms", "1.00 s", "1.50 s", "250 s",
    ]  # fmt: skip
    assert [count_text(n) for n in (0, 999, 1000, 134217728, 10**12, 10**15)] == [
        "0 ", "999 ", "1.0 k", "134 M", "1.0 T", "1000 T",
    ]  # fmt: skip


# ------------------------------------------------------------------ waiting for an evaluation

LONG = "x = ones(1000, 2000)\ny = x\nfor i in range(20):\n    y = sin(y) + x\nz = sum(y)\n"
IMPATIENT = """\
import sys
from autodiff_cli.cli import main, waiting
waiting.PATIENCE, waiting.PAUSE = 0.001, 0.02
sys.exit(main.main(["long.expr", "--only", "graph", "--plan", "-o", "plan.txt"]))
"""


def test_a_long_evaluation_shows_that_it_runs(tmp_path: Path, project: Path):
    import pexpect

    (tmp_path / "long.expr").write_text(LONG)
    variables = {k: v for k, v in os.environ.items() if k not in ("CI", "COLUMNS")}
    variables |= {"PYTHONPATH": str(project), "TERM": "xterm"}
    child = pexpect.spawn(
        sys.executable, ["-c", IMPATIENT], cwd=str(tmp_path), env=variables, timeout=60,
        encoding="utf-8",
    )  # fmt: skip
    child.expect(r"running long.expr  [\d.]+ s")
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
    assert child.before.endswith("\r\x1b[K")
    assert "group of 41 nodes" in (tmp_path / "plan.txt").read_text()
