"""`--fix`: what is corrected, what stays as it was, and that nothing else in a file changes."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autodiff_cli.cli.fixing import Edit, _further, _same, applied, edits_of, written_back
from autodiff_cli.errors import AutodiffError, Diagnostic, fail
from autodiff_cli.session import Report
from autodiff_cli.source import Source, Span

from ..said import compare


@pytest.mark.parametrize(
    ("text", "fixed"),
    [
        ("x = 3; loss = x^2", "x = 3; loss = x**2"),
        ("x = 3; loss = x^2 + (x^3)^2", "x = 3; loss = x**2 + (x**3)**2"),
        ("x = 3; x ^= 2", "x = 3; x **= 2"),
        ("A = [1, 2]; loss = sum(a * a)", "A = [1, 2]; loss = sum(A * A)"),
        ("x = [1, 2]; loss = sum(reul(x))", "x = [1, 2]; loss = sum(relu(x))"),
        ("x = [1, 2]; loss = x.summ()", "x = [1, 2]; loss = x.sum()"),
        ("def model(x):\n    return sum(x)\nloss = modle([1, 2])",
         "def model(x):\n    return sum(x)\nloss = model([1, 2])"),
        ("x = [1, 2]; y = sgimoid(x^2)\nloss = y.summ()",
         "x = [1, 2]; y = sigmoid(x**2)\nloss = y.sum()"),
        ("import torch\nx = torch.ones(2, requires_grad=True)\nloss = torch.smu(x)\n",
         "import torch\nx = torch.ones(2, requires_grad=True)\nloss = torch.sum(x)\n"),
    ],
)  # fmt: skip
def test_what_is_corrected(cli, tmp_path: Path, text: str, fixed: str):
    (tmp_path / "a.expr").write_text(text)
    result = cli("run", "--fix", "a.expr")
    assert result.code == 0, result.err
    assert (tmp_path / "a.expr").read_text() == fixed
    assert "--- a.expr\n+++ a.expr\n" in result.err
    again = cli("run", "--fix", "a.expr")
    assert (again.code, again.err) == (0, "")
    assert again.out == result.out


def test_what_cannot_be_corrected_stays(cli, tmp_path: Path):
    for text in (
        "x = 3; loss = x + nothing_like_it", "x = (", "x = [1, 2] + [1, 2, 3]", "x = 2",
        "import operator, torch\noperator.xor(torch.ones(2), 3)", "x = ones(2).reshape(3 ^ 0)",
        "x = [1, 2]; loss = sum(f(x))", "x = 2; loss = x * bar",  # F has no call, var no number
    ):  # fmt: skip
        (tmp_path / "a.expr").write_text(text)
        fixed, plain = cli("run", "--fix", "a.expr"), cli("run", "a.expr")
        assert fixed.code == plain.code and fixed.err.endswith(plain.err)
        assert (tmp_path / "a.expr").read_text() == text


@pytest.mark.parametrize(
    ("line", "proposed"),
    [
        ("y = (x * 2).item()", "y = (x * 2).sum().item()"),
        ("loss = nn.CrossEntropyLoss(x, t)", "loss = nn.CrossEntropyLoss()(x, t)"),
        ("y = torch.tensor([[1, 2, 3]] * 3) @ x.T",
         "y = torch.tensor([[1, 2, 3]] * 3).to(torch.float32) @ x.T"),
        ("x.sum().backward", "x.sum().backward()"),
        ("y = torch.sofmtaxx(x, 1)", "y = torch.softmax(x, 1)"),
        (">>> y = x", "y = x"), ("y = x²", "y = x**2"), ("%matplotlib inline", ""),
    ],
)  # fmt: skip
def test_what_may_mean_something_else_is_shown_and_not_written(
    cli, tmp_path: Path, line: str, proposed: str
):
    text = "import torch\nfrom torch import nn\nt = torch.tensor([0, 1])\n"
    text += f"x = torch.ones(2, 3, requires_grad=True)\n{line}\n"
    (tmp_path / "a.py").write_text(text)
    result = cli("run", "--fix", "a.py")
    assert (tmp_path / "a.py").read_text() == text
    assert "not written: it may compute something else\n--- a.py\n" in result.err
    assert f"\n-{line}\n" + f"+{proposed}\n" * bool(proposed) in result.err
    assert "--fix" not in cli("a.py").err
    (tmp_path / "a.py").write_text(text.replace(line, proposed))
    assert cli("run", "a.py").code == 0


@pytest.mark.parametrize(
    ("before", "line", "new"),
    [
        ("", "for i in range(2):\n    opt.step()", "opt = torch.optim.SGD([x], lr=0.1)"),
        ("bn = torch.nn.BatchNorm1d(3)\n", "for i in range(2):\n    bn(x)", "bn.eval()"),
    ],
)
def test_lines_that_are_missing_stand_before_the_statement(
    cli, tmp_path: Path, before: str, line: str, new: str
):
    text = f"import torch\nx = torch.ones(1, 3, requires_grad=True)\n{before}"
    (tmp_path / "a.py").write_text(f"{text}{line}\n")
    shown = "\n ".join(line.split("\n"))
    assert f"\n+{new}\n {shown}\n" in cli("run", "--fix", "a.py").err
    (tmp_path / "a.py").write_text(f"{text}{new}\n{line}\n")
    assert cli("run", "a.py").code == 0


def test_of_names_as_close_none_is_written(cli, tmp_path: Path):
    for text in ("import torch\nx = torch.ones(2)\ny = f(x)\n", "ab = 1; ac = 2; loss = ad * 2"):
        (tmp_path / "a.py").write_text(text)
        assert cli("run", "--fix", "a.py").code == 3
        assert (tmp_path / "a.py").read_text() == text


def test_what_helps_is_kept(cli, tmp_path: Path):
    (tmp_path / "a.expr").write_text("x = 3\nprint('once')\ny = x^2\nloss = y + unheard_of\n")
    result = cli("run", "--fix", "a.expr")
    assert result.code == 3
    assert "unheard_of" in result.err
    assert "y = x**2\n" in (tmp_path / "a.expr").read_text()
    (tmp_path / "a.expr").write_text("x = 3\nprint('once')\nloss = smu(x)\n")
    assert cli("run", "--fix", "a.expr").out.count("once") == 1


def test_texts_without_a_file_are_corrected_too(cli):
    result = cli("run", "--fix", "-e", "x = 3; loss = x^2")
    assert "x.grad = 6.0" in result.out
    assert "+x = 3; loss = x**2" in result.err
    assert "x.grad = 6.0" in cli("run", "--fix", "-", stdin="x = 3; loss = x^2").out
    assert cli("run", "-q", "--fix", "-e", "x = 3; loss = x^2").err == ""


def test_line_ends_and_marks_stay(cli, tmp_path: Path):
    data = b"\xef\xbb\xbfx = 3\r\n\rloss = x^2  # \xc3\xa9\n\r\n"
    (tmp_path / "a.expr").write_bytes(data)
    assert cli("run", "--fix", "a.expr").code == 0
    assert (tmp_path / "a.expr").read_bytes() == data.replace(b"^", b"**")


@given(st.text(st.sampled_from("ab^\r\n é\ufeff"), max_size=30))
def test_nothing_else_changes(text: str):
    data = text.encode("utf-8")
    seen = data.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    assert written_back(data, seen) == data
    edits = [Edit(at, at + 1, "**") for at, char in enumerate(seen) if char == "^"]
    assert written_back(data, applied(seen, edits)) == data.replace(b"^", b"**")


def test_a_file_that_cannot_be_written(cli, tmp_path: Path, monkeypatch):
    from autodiff_cli.render import files

    def refuse(path: str, data: bytes) -> None:
        raise files.CannotWrite("cannot write `a.expr`: read-only file system")

    monkeypatch.setattr("autodiff_cli.cli.commands.run.write_bytes", refuse)
    (tmp_path / "a.expr").write_text("x = 3; loss = x^2")
    result = cli("run", "--fix", "a.expr")
    assert "read-only" in result.err
    assert "x.grad = 6.0" in result.out


def test_it_is_proposed(cli, tmp_path: Path):
    (tmp_path / "a.expr").write_text("x = 3; loss = x^2\n")
    assert cli("a.expr").err.endswith("\nhelp: `autodiff run --fix a.expr` applies this\n\n")
    assert "--fix" not in cli("a.expr", "--format", "json").out
    assert "--fix" not in cli("-e", "x = 3; loss = x^2").err
    (tmp_path / "a.expr").write_text("x = 3; loss = x + [1, 2] + [1, 2, 3]\n")
    assert "--fix" not in cli("a.expr").err


def test_commands_that_are_proposed_can_be_pasted(cli, tmp_path):
    """Whatever a file is called: a shell takes its name for one word."""
    (tmp_path / "a;touch b.expr").write_text("x = [1, 2]\ny = x^2\n")
    assert "`autodiff run --fix 'a;touch b.expr'` applies this" in cli("a;touch b.expr").err
    (tmp_path / "c$(d).expr").write_text("x = [1, 2]\nloss = sum(x)  #=> 4\n")
    said = cli("check", "c$(d).expr").out
    assert "autodiff check 'c$(d).expr' -k" in said and "check c$(d)" not in said
    assert "autodiff diff 'c$(d).expr' -D" in cli("diff", "c$(d).expr").err


def test_which_changes_get_further(request: pytest.FixtureRequest):
    """Errors before and after a change, of like and other kinds, on all lines beside it."""
    text = "a = 1\nb = 22\nc = 333\nd = 4444\n"
    edits = [Edit(10, 12, "2"), Edit(10, 12, "222222"), Edit(10, 12, "2\nz = 0"),
             Edit(6, 13, ""), Edit(21, 22, "")]  # fmt: skip
    found = []

    def report(source: Source, code: str, at: int | None) -> Report:
        span = None if at is None else Span(source, at, min(at + 2, len(source.text)))
        error = AutodiffError(Diagnostic(code, "m", span)) if code else None
        return Report(source.name, error=error)

    for edit in edits:
        changed = Source(applied(text, [edit]), "a")
        for first in ("", "E101", "E105", "E201", "E301"):
            for at in (None, 0, 10, 12, 17):
                before = report(Source(text, "a"), first, at)
                row = []
                for then in ("E101", "E202", "E301"):
                    for place in (None, 0, 4, 8, 10, 11, 12, 13, 14, 16, 17, 19, 21, 24):
                        after = report(changed, then, place)
                        word = "f" if _further(before, after, text, edit) else "."
                        if before.error is not None:
                            assert after.error is not None
                            word += "s" if _same(before.error, after.error, [edit]) else "."
                        row.append(word)
                found.append(f"{edit.text!r} {first} {at}: {' '.join(row)}")
        good = Report("a")
        assert _further(report(Source(text, "a"), "E101", 0), good, text, edit)
        assert not _further(good, good, text, edit)
        warned = Report("a", warnings=[Diagnostic("W101", "m")])
        assert _further(warned, good, text, edit) and not _further(good, warned, text, edit)
    compare(request, found)


def test_a_statement_is_advised_for_lines_that_are_statements() -> None:
    source = Source("x.sum()\nx = 1\ny\n", "p.expr")
    error = fail("E201", "", Span(source, 14, 15), help="write `x = 2`").diagnostic
    assert next(iter(edits_of(error, source))) == (8, 13, "x = 2")
