"""`autodiff why`: forms of the answer, repairs, errors, exit codes."""

from __future__ import annotations

import json

import pytest

from autodiff_cli.graph.state import STATE

CUT = """\
import torch
w = torch.tensor([1.0, 2.0], requires_grad=True)
b = torch.tensor(2.0, requires_grad=True)
print("never shown")
h = w.detach() * 3
loss = (h * b).sum()
loss.backward()
"""
ROOT = "x = [0, 4]\nloss = sum(where(x > 0, sqrt(x), 0))\n"


@pytest.fixture
def programs(tmp_path):
    (tmp_path / "cut.py").write_text(CUT)
    (tmp_path / "root.expr").write_text(ROOT)


def test_json_has_the_five_fields_and_the_repair(cli, programs) -> None:
    done = cli("why", "w", "cut.py", "--format", "json")
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out) == {
        "schema": "autodiff.why/1",
        "file": "cut.py",
        "status": "ok",
        "name": "w",
        "verdict": "none",
        "cause": "detached",
        "line": 5,
        "message": "`w.detach()` leaves the graph: backward sees a constant",
        "fix": CUT.replace("w.detach()", "w"),
    }


def test_plain_is_one_line_and_what_changes(cli, programs) -> None:
    done = cli("why", "w", "cut.py")
    assert done.code == 0
    assert done.out == (
        "cut.py:5: w.grad is None: detached: `w.detach()` leaves the graph: backward sees a "
        "constant\nfix: 5 - h = w.detach() * 3\nfix: 5 + h = w * 3\n"
    )


def test_a_terminal_sees_the_expression(cli, programs) -> None:
    done = cli("why", "x", "root.expr", tty=True, COLUMNS="80", NO_COLOR="1")
    assert done.out.splitlines() == [
        "x.grad has NaN: nan-backward",
        "  the slope of `sqrt(x)` makes NaN where `x` is 0 at [0]; the gradient that",
        "  comes in is 0",
        " --> root.expr:2:25",
        "  |",
        "2 | loss = sum(where(x > 0, sqrt(x), 0))",
        "  |                         ^^^^^^^",
        "",
        "help: this keeps the gradient; it was run",
        "2 - loss = sum(where(x > 0, sqrt(x), 0))",
        "2 + loss = sum(where(x > 0, sqrt(where(x > 0, x, ones_like(x))), 0))",
    ]


@pytest.mark.parametrize("columns", ["120", "80", "44", "30"])
@pytest.mark.parametrize("color", ["always", "never"])
def test_no_line_of_prose_is_wider_than_the_terminal(cli, programs, columns, color) -> None:
    done = cli("why", "x", "root.expr", "--no-fix", "--color", color, tty=True, COLUMNS=columns)
    assert ("\x1b[" in done.out) == (color == "always")
    if color == "never":
        assert all(len(line) <= int(columns) for line in done.out.splitlines())


def test_ascii_terminals(cli, programs) -> None:
    done = cli("why", "x", "root.expr", tty=True, encoding="ascii", COLUMNS="30")
    assert done.out.isascii()


def test_the_repaired_program_alone(cli, programs) -> None:
    fixed = cli("why", "w", "cut.py", "--fixed")
    assert fixed.out == CUT.replace("w.detach()", "w")
    fine = cli("why", "w", "-", "--fixed", stdin=fixed.out)
    assert fine.out == fixed.out
    assert "no repair was found" in fine.err


def test_without_a_repair(cli, programs) -> None:
    assert json.loads(cli("why", "w", "cut.py", "--no-fix", "--format", "json").out)["fix"] is None


def test_a_line_a_define_and_standard_input(cli) -> None:
    line = cli("why", "x", "-e", "x = [0, 1]; loss = sum(log(x))", "-D", "x=[1., 2.]")
    assert line.out.startswith("x.grad is fine: nothing is wrong with the gradient of `x`")
    piped = cli("why", "a", stdin="a = 2\nloss = a - a\n")
    assert "a.grad is zero: cancelled" in piped.out


def test_another_loss(cli) -> None:
    done = cli("why", "b", "-e", "a = 1; b = 2; loss = a * 3; other = b ** 2", "--of", "other")
    assert "b.grad is fine" in done.out


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["why"], 2, "whose gradient?"),
        (["why", "w"], 2, ""),
        (["why", "w", "missing.py"], 2, "missing.py"),
        (["why", "ww", "cut.py"], 3, "did you mean `w`?"),
        (["why", "w.data", "cut.py"], 3, "is not a name"),
        (["why", "w[n + 1]", "cut.py"], 3, "`w[n + 1]` is not a name"),
        (["why", "1 +", "cut.py"], 3, "error"),
        (["why", "p", "-e", "p = {'a': tensor(1.)}; w = 2; loss = w * p['a']"], 3, "`p['a']`"),
        (["why", "h[0]", "-e", "h = [1, 2"], 3, "E101"),
        (["why", "cut.py"], 3, "whose gradient? `cut.py` is a file"),
        (["why", "x", "-e", "x = [1, 2]; y = x @ [[1, 2, 3]]"], 3, "E301"),
        (["why", "z", "-e", "x = [1, 2]; sum(x).backward(); z = x @ [[1, 2, 3]]"], 3, "E301"),
    ],
)
def test_what_cannot_be_asked(cli, programs, words, code, text) -> None:
    done = cli(*words, stdin=None)
    assert done.code == code
    assert text in done.err


def test_an_error_is_a_document_too(cli, programs) -> None:
    done = cli("why", "ww", "cut.py", "--format", "json")
    assert done.code == 3
    assert json.loads(done.out)["error"]["code"] == "E201"


def test_a_program_that_stops_later_is_answered(cli) -> None:
    text = "import torch\nx = torch.ones(2, requires_grad=True)\ny = x * 3\ny.sum().backward()\n"
    done = cli("why", "y", "-", stdin=text + "print(y.grad.norm())\n")
    assert done.code == 0
    assert "y.grad is None: not-a-leaf" in done.out
    assert "note: the program stops in line 5" in done.out


def test_loops_that_other_numbers_would_not_end(cli) -> None:
    text = "import torch\nw = torch.tensor(3.0, requires_grad=True)\nb = w.detach() * 0 + 1\n"
    text += "b.requires_grad_()\nn = 0\nwhile n < w:\n    n += 1\nloss = b * n\nloss.backward()\n"
    done = cli("why", "w", "-", stdin=text)
    assert "comparison" in done.out or "detached" in done.out


def test_nothing_is_left_behind_for_the_next_run(cli, programs) -> None:
    cli("why", "w", "cut.py")
    assert not (STATE.observers or STATE.attempts or STATE.readers)
    assert cli("run", "-e", "x = 3; loss = x**2").out.endswith("x.grad = 6.0  # ()\n")


def test_a_name_of_a_file_that_is_not_there_is_no_name(cli) -> None:
    result = cli("why", "nothing.expr", tty=True)
    assert result.code == 3 and "`autodiff why NAME nothing.expr`" in result.err
