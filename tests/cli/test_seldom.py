"""What seldom happens to a command: streams that are closed, files that cannot be written, several
programs in a terminal, memory that is gone; and the options that other tests leave alone."""

from __future__ import annotations

import io
import json
import math
import os
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from autodiff_cli.checks.model import FileResult, Item
from autodiff_cli.cli import changes, dispatch
from autodiff_cli.cli.commands import check, run
from autodiff_cli.cli.commands.ops import example_of
from autodiff_cli.cli.failures import last_failures, remember
from autodiff_cli.cli.fixing import Edit, _further, proposed
from autodiff_cli.cli.group import run_group
from autodiff_cli.cli.light_scipy import Light
from autodiff_cli.cli.main import _unraisable, main
from autodiff_cli.cli.progress import Bar
from autodiff_cli.cli.streams import Environment, OutputFailed, is_terminal
from autodiff_cli.cli.waiting import Sign
from autodiff_cli.errors import Exit, fault
from autodiff_cli.language.runtime.names import op_function
from autodiff_cli.outside import OUTSIDE, data_of
from autodiff_cli.render.files import CannotWrite
from autodiff_cli.repl import interactive
from autodiff_cli.source import Source

from ..together import together
from .conftest import Cli, Stream


def test_several_programs_in_a_terminal(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "b.expr").write_text("x = 3\nloss = x * x\n")
    for words in (["run"], ["graph"], ["why", "x"], ["explain"]):
        said = cli(*words, "b.expr", "b.expr", tty=True)
        assert said.code == 0, said
        titles = [line for line in said.out.splitlines() if line.startswith("── b.expr ──")]
        assert len(titles) == 2, (words, said.out)
    plain = cli("explain", "b.expr").out
    colors = cli("explain", "b.expr", "--color", "always", COLUMNS="20").out
    assert re.sub(r"\x1b\[[\d;]*m", "", colors) == plain != colors


def test_help_about_several(cli: Cli) -> None:
    one, other = cli("help", "run").out, cli("help", "E301").out
    assert cli("help", "run", "E301").out == f"{one}\n{other}"


def test_standard_input_is_read_once(cli: Cli) -> None:
    assert cli("run", "-", "-", "--only", "values", stdin="x = 3").out.count("x = 3") == 2
    said = cli("run", "-", stdin=None)
    assert (said.code, "standard input is closed" in said.err) == (2, True)
    said = cli("repl", stdin=None)
    assert (said.code, "standard input is closed" in said.err) == (2, True)


def test_a_folder_that_is_gone(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "gone").mkdir()
    os.chdir(tmp_path / "gone")
    os.rmdir(tmp_path / "gone")
    assert "there is no command and no file `rin`\nhelp: did you mean `run`" in cli("rin").err
    assert "cannot read `a.expr`: no such file or directory" in cli("check", "a.expr").err


def test_files_that_cannot_be_written(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    long = f"{'a' * 300}.json"
    said = cli("run", "demo.expr", "demo.expr", "-o", long)
    assert (said.code, "file name too long" in said.err) == (2, True)
    said = cli("check", "demo.expr", GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY="/no/where")
    assert said.code == 0
    assert "warning: cannot write the step summary: No such file or directory" in said.err

    def refuse(path: object, *args: object) -> None:
        raise CannotWrite(f"cannot write `{path}`: no room")

    with monkeypatch.context() as patched:
        patched.setattr(check, "replace_file", refuse)
        said = cli("check", "demo.expr", "--junit", "it.xml")
        assert (said.code, "cannot write `it.xml`: no room" in said.err) == (2, True)
        patched.setattr(changes, "write_bytes", refuse)
        said = cli("check", "demo.expr", "--snapshot")
        assert said.code == 1 and "cannot write `demo.expr.snap`: no room" in said.err
        patched.undo()
        patched.setattr(changes, "replace_file", refuse)
        said = cli("check", "demo.expr", "--snapshot", "--full")
        assert said.code == 1 and "cannot write `demo.expr.npz`: no room" in said.err


def test_full_arrays_beside_a_snapshot(cli: Cli) -> None:
    assert cli("check", "demo.expr", "--snapshot", "--full").code == 0
    with np.load("demo.expr.npz") as found:
        assert {name: found[name].tolist() for name in found} == {
            "A": [[1, 2], [3, 4]], "A.grad": [[7, 10], [13, 16]], "B": [[5, 6], [7, 8]],
            "B.grad": [[1, 2], [3, 4]], "loss": 100.0,
        }  # fmt: skip
    said = cli("check", "demo.expr", "--snapshot", CI="1")
    assert (said.code, "no snapshots are made under CI" in said.err) == (2, True)


def test_only_what_failed(cli: Cli, tmp_path: Path) -> None:
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert "everything is checked" in cli("check", "demo.expr", "--lf", **cache).err
    (tmp_path / "strict.py").write_text(
        "# check: strict\nimport torch\n"
        "x = torch.tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)\n"
        "k = float(x.sum())\nloss = (x * k).sum()\nloss.backward()\n"
    )
    said = cli("check", "strict.py", **cache)
    assert said.code == 1 and "error[W602]" in said.err and "warning" not in said.err


def test_words_that_have_no_meaning(cli: Cli) -> None:
    said = cli("lsp", "x.expr")
    assert said == (2, "", "error: lsp takes no FILE: an editor sends its programs\n")
    said = cli("run", "nowhere/demo.expr")
    assert said == (2, "", "error: cannot read `nowhere/demo.expr`: no such file or directory\n")
    assert "did you mean `run`" in cli("rnu").err
    assert "no file `dema`\nhelp: did you mean `demo.expr`?" in cli("dema").err


def test_a_fault_before_a_command(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "load_command", lambda name: 1 // 0)
    said = cli("run", "demo.expr")
    assert said.code == 70 and said.err.startswith("error[E900]: internal error: ZeroDivisionError")
    assert "Traceback" not in said.err and "Traceback" in cli("run", "demo.expr", "--debug").err


def test_an_interrupt_that_python_hides(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before 3.12 one that strikes in `__set_name__` is the cause of a RuntimeError."""

    def struck(*_: object) -> None:
        raise RuntimeError("Error calling __set_name__") from KeyboardInterrupt()

    for place in ("language.program.running.run_program", "cli.dispatch.load_command"):
        with monkeypatch.context() as patched:
            patched.setattr(f"autodiff_cli.{place}", struck)
            assert cli("run", "demo.expr") == (130, "", "interrupted\n")


def test_one_value_that_is_used_often(cli: Cli) -> None:
    text = f"a = 1.5\nb = a * 2\nloss = sum(stack([{', '.join(['b'] * 70)}]))\n"
    rows = cli("run", "-", "--only", "graph", stdin=text).out.splitlines()[1:]
    assert len(rows) == 41 and rows[-1] == "#     ├── … 1 more node (--all)"
    assert len(cli("run", "-", "--only", "graph", "--all", stdin=text).out.splitlines()) == 74


def test_pytorch_is_not_there(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    from autodiff_cli.checks.beside_torch import against_torch

    monkeypatch.setattr(against_torch, "torch_folders", list)
    said = cli("check", "demo.expr", "--against", "torch")
    assert (said.code, "PyTorch is not installed here" in said.err) == (2, True)


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [(MemoryError, 4, "error[E505]"), (RecursionError, 4, "nested too deeply")],
)
def test_what_runs_out(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, error: type[Exception], code: int, words: str
) -> None:
    def fails(*args: object) -> None:
        raise error

    monkeypatch.setattr(run.Run, "compute", fails)
    said = cli("run", "demo.expr")
    assert (said.code, words in said.err) == (code, True)


def test_ops_without_results_and_lists(cli: Cli) -> None:
    def shown(name: str) -> object:
        return example_of(op_function(name).ops[0])  # type: ignore[union-attr]  # it is one

    matrix = "tensor([[-0.7, -0.3, 0.2], [0.6, 1.1, 1.5]])"
    assert shown("ldexp") == (
        f"ldexp({matrix}, tensor([0, 1, 2]))", "-> [[-0.7, -0.6, 0.8], [0.6, 2.2, 6]]"
    )  # fmt: skip
    assert shown("full") == ("full([2, 3], 1.5)", "-> [[1.5, 1.5, 1.5], [1.5, 1.5, 1.5]]")
    assert shown("frexp") == (f"frexp({matrix})", "")
    assert shown("where") is shown("tensordot") is None
    listed = cli("ops", "--missing").out.splitlines()
    assert len(listed) == len(
        json.loads(cli("ops", "--missing", "--format", "json").out)["missing"]
    )
    assert all(re.fullmatch(r"(torch|Tensor)\.[\w.]+", name) for name in listed)


def test_differences(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "a.expr").write_text("".join(f"v{i} = {i}\n" for i in range(60)) + "u = 1\n")
    (tmp_path / "c.expr").write_text("a = 1; 日本 = a * 2; b = a * 3\n")
    (tmp_path / "b.expr").write_text("".join(f"v{i} = {i} + 1e-3\n" for i in range(60)) + "w = 1\n")
    said = cli("diff", "a.expr", "b.expr")
    assert said.code == 1
    assert "  ... and 9 more" in said.out
    assert "only left: u\nonly right: w\n" in said.out
    assert cli("diff", "a.expr", "b.expr", "--atol", "1e-2").out.count("relative error") == 0
    assert cli("diff", "a.expr", "b.expr", "--rtol", "-1").code == 2
    assert "give one program or two files" in cli("diff").err
    said = cli("diff", "-D", "a=1", "--with", "a=2", "c.expr")
    assert "\n  日本  1 of" in said.out and "\n  b     1 of" in said.out
    assert cli("diff", "a.expr", "a.expr", "a.expr").code == 2


def test_repairs(cli: Cli) -> None:
    said = cli("why", "x", "--fixed", "-e", "x = 3\ny = 2\nloss = y * 2")
    assert said.out == "x = 3\ny = 2\nloss = y * 2\n"
    assert said.err.startswith("no repair was found: ")
    source = Source("import torch\nx = torch.ones(2)\ny = torch.tensor(x)\n", "a.py")
    failed = SimpleNamespace(error=fault("E505 ran-out-memory", "it", ""), warnings=[])
    warned = SimpleNamespace(
        error=None, warnings=[fault("E505 ran-out-memory", "it", "").diagnostic]
    )
    assert proposed(warned, source, lambda changed: failed) is None
    assert not _further(warned, failed, "", Edit(0, 0, ""))
    assert cli("why", "x", "--fixed", "-e", "x = y").out == ""


@pytest.mark.parametrize("words", [["--show", ","], ["--timeout", "0"], ["--timeout", "x"]])
def test_wrong_values(cli: Cli, words: list[str]) -> None:
    assert cli("run", "demo.expr", *words).code == 2


def test_streams_that_went_away(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = io.StringIO()
    closed.close()
    assert not is_terminal(closed)
    bar = Bar(closed, 3)
    bar.shown = True
    bar.clear()
    assert not bar.shown and bar.stream is None
    sign = Sign(Environment(None, None, None, {}), "it", str)
    sign._write("x")
    assert sign.over.is_set()
    err = Stream(tty=True)
    sign = Sign(Environment(None, None, err, {"COLUMNS": "20"}), "it " * 10, str)
    sign.over.set()
    sign._draw()
    assert err.getvalue() == "\rit it it it it it …\x1b[K"
    env = Environment(None, None, None, {})
    env.sign = Sign(env, "it", str)
    env.note("said")
    assert env.sign.over.is_set()
    env = Environment(None, closed, None, {})
    monkeypatch.setattr(sys, "stdout", closed)
    with pytest.raises(OutputFailed):
        env.write("x")
    assert env.stdout is None
    assert data_of(1 << 30) == 0


def test_what_generators_raise_when_they_are_let_go(capsys: pytest.CaptureFixture[str]) -> None:
    def generator() -> object:
        yield

    lost = {"exc_type": ValueError, "exc_value": ValueError("x"), "exc_traceback": None}
    more = {"err_msg": None, "object": None}
    _unraisable(SimpleNamespace(**lost, **{**more, "object": generator()}))
    _unraisable(SimpleNamespace(**{**lost, "exc_value": MemoryError()}, **more))
    assert capsys.readouterr().err == ""
    with pytest.raises(TypeError, match="UnraisableHookArgs"):  # it is handed on
        _unraisable(SimpleNamespace(**lost, **more))
    assert not hasattr(Light("scipy.special"), "__nothing__")
    assert Light("scipy.special").__getattr__("_ufuncs").__name__ == "scipy.special._ufuncs"


def test_an_interrupt_of_what_is_printed(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: Stream, text: str) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(Stream, "write", interrupted)
    env = Environment(None, Stream(), None, {})
    assert main(["ops"], env) == 130
    with pytest.raises(KeyboardInterrupt):
        run_group(["ops"], env)


def test_scripts(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    def fed(*words: str, text: str, encoding: str = "utf-8") -> tuple[int, str, str]:
        out, err = Stream(encoding=encoding), Stream()
        stdin = io.TextIOWrapper(io.BytesIO(text.encode()))
        return (
            main(["repl", *words], Environment(stdin, out, err, {})),
            out.getvalue(),
            err.getvalue(),
        )

    said = fed(text="A = [1.0, 2.0]\nloss = sum(A.detach() * 2 + A * 0)\n:why A\n")
    found = "A.grad is zero: times-zero\n  `A * 0` multiplies with a number, which is 0\n"
    assert (said[0], said[1].startswith(f"{found} --> <session>:2:29\n"), said[2]) == (0, True, "")
    said = fed(text="A = [1.0, 2.0]\nloss = sum(A * A)\n:graph\n", encoding="ascii")
    assert "\n`-- A * A " in said[1] and said[1].isascii()
    data = tmp_path_factory.mktemp("data") / "x.npy"
    np.save(data, [1.0, 2.0])
    assert fed(text=f"load('{data}')\n")[0] == 4
    assert fed("--allow-read", str(data.parent), text=f"load('{data}')\n")[1] == "[1, 2]\n"
    with monkeypatch.context() as patched:
        patched.setattr(interactive, "compile_block", lambda *given: 1 // 0)
        code, _, err = fed(text="x = 2\n")
        assert code == 70 and err.startswith("error[E900]: internal error: ZeroDivisionError")
    said = fed(text="x = [1.0, 2.0]\n:list\nprint(3)\n:quit\nprint(4)\n")
    assert said == (0, "x  (2,)  float64 leaf\n3\n", "")
    code, out, err = fed("-e", "y = 2", text="print(y)\ny = z\nprint(5)\n")
    assert (code, out) == (3, "tensor(2., requires_grad=True)\n")
    assert "error[E201]: name `z` is not defined" in err

    def broken(self: Stream, size: int = -1) -> str:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(Stream, "read", broken)
    said = cli("repl")
    assert said.code == 2 and "cannot read standard input: [Errno 5]" in said.err
    assert "cannot read `<stdin>`: input/output error" in cli("run", "-").err


@pytest.mark.parametrize("name", ["sin", "log", "sqrt"])
def test_long_chains_of_single_numbers(cli: Cli, name: str) -> None:
    """What runs on Python's numbers is what Python computes."""
    text = f"x = 0.5\ny = x\nfor i in range(2000):\n    y = {name}(y) * 0.05 + 1\nloss = y\n"
    y = 0.5
    for _ in range(2000):
        y = getattr(math, name)(y) * 0.05 + 1
    found = json.loads(cli("run", "--format", "json", "-e", text).out)
    assert found["tensors"]["loss"]["value"] == pytest.approx(y, rel=1e-12)


def test_what_a_process_before_had_done_counts(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    item = Item("a.expr", "run", status="failed", note="updated")
    known: dict[str, list[Any]] = {"program": [(Exit.EVALUATION, ["# of the first\n"])]}
    known["file"] = [(FileResult("a.expr", [item]), 3)]
    monkeypatch.setattr(type(OUTSIDE), "records", lambda self, kind: known.get(kind, []))
    assert cli("run", "gone.expr", "demo.expr", "-o", "it.txt").code == Exit.EVALUATION
    assert (tmp_path / "it.txt").read_text().startswith("# of the first\n# autodiff.plain/1")
    (tmp_path / "a.expr").write_text("x = 1 / 0")
    result = cli("check", "a.expr", "demo.expr")
    assert result.code == Exit.NO and "3 files written" in result.out


@together(["y", "yes", " A", "all", "n", "NO", "q", "quit", "", "what\nn"])
def test_answers_of_a_review(answer: str) -> None:
    err = io.StringIO()
    env = Environment(io.StringIO(answer), None, err, {})
    asked = changes.Changes(env, review=True, quiet=False)
    kept = answer.strip().lower()[:1] in tuple("ya")
    assert asked._accepted("p") == kept
    assert err.getvalue().count("write p? [y]es [n]o [a]ll [q]uit ") == 1 + ("\n" in answer)
    assert asked.accept_all == (answer.strip().lower()[:1] == "a")
    assert asked.quit == (answer[:1] in tuple("q") or not answer)
    if asked.accept_all or asked.quit:
        assert asked._accepted("p") == asked.accept_all and "p? " in err.getvalue()


def test_failures_of_a_folder_of_the_same_key_are_not_those_of_this_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    cache = {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    remember(cache, set(), ["a.expr::x"])
    assert last_failures(cache) == ["a.expr::x"]
    (kept,) = (tmp_path / "cache" / "autodiff").iterdir()
    kept.write_text(kept.read_text().replace(str(tmp_path), "elsewhere"))
    assert last_failures(cache) == []
