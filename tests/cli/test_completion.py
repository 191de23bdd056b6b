"""Completion: the protocol of each shell, a real bash, what is imported."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from autodiff_cli.cli.main import main
from autodiff_cli.cli.streams import Environment

from .conftest import Stream

Ask = Callable[..., list[str]]


def answered(instruction: str) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of the command that a shell calls."""
    out, err = Stream(), Stream()
    code = main([], Environment(None, out, err, {"_AUTODIFF_COMPLETE": instruction}))
    return code, out.getvalue(), err.getvalue()


@pytest.fixture
def ask(tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """What a shell is answered at the end of a line, each answer without its type."""
    (tmp_path / "demo.expr").write_text("A = [1, 2]\nrate = 0.1; loss = sum(A * rate)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(project))

    def call(*words: str, shell: str = "bash") -> list[str]:
        cword = words[-1] if shell == "fish" else str(len(words))
        monkeypatch.setenv("COMP_WORDS", " ".join(["autodiff", *words]))
        monkeypatch.setenv("COMP_CWORD", cword)
        code, out, err = answered(f"{shell}_complete")
        assert (code, err) == (0, "")
        return out.splitlines()

    return call


def test_what_is_completed(ask: Ask):
    assert ask("gra") == ["plain,graph"]
    assert {"plain,run", "plain,check", "plain,help"} <= set(ask(""))
    assert ask("run", "demo.expr", "--prec") == ["plain,--precision"]
    assert ask("run", "demo.expr", "--format", "j") == ["plain,json"]
    assert ask("run", "demo.expr", "--format", "=", "j") == ["plain,json"]  # bash splits so
    assert ask("run", "--only", "values,gr") == ["plain,values,graph", "plain,values,gradients"]
    assert ask("graph", "demo.expr", "-f", "m") == ["plain,mermaid"]
    assert ask("help", "E30")[:2] == ["plain,E301", "plain,E302"]
    assert ask("help", "exit") == ["plain,exit-codes"]
    assert ask("help", "softma") == ["plain,softmax"]
    assert "plain,log_softmax" in ask("ops", "log")
    assert ask("completion", "z") == ["plain,zsh"]


def test_files_are_left_to_the_shell(ask: Ask):
    assert ask("run", "de") == ["file,de"]
    assert ask("demo.e") == ["file,demo.e"]
    assert ask("run", "demo.expr", "-o", "x") == ["file,x"]
    assert ask("run", "demo.expr", "--allow-read", "x") == ["dir,x"]


def test_names_of_the_program(ask: Ask):
    assert ask("run", "demo.expr", "--loss", "l") == ["plain,loss"]
    assert ask("run", "demo.expr", "--wrt", "A,r") == ["plain,A,rate"]
    assert ask("run", "demo.expr", "--heat", "A.") == ["plain,A.grad"]
    assert ask("run", "demo.expr", "-D", "ra") == ["plain,rate="]
    assert ask("run", "missing.expr", "--loss", "l") == []
    assert ask("run", "demo.expr", "--timeout", "1") == []
    assert ask("run", "-e", "other=3", "demo.expr", "--loss", "o") == ["plain,other"]


@pytest.mark.parametrize("shell", ["zsh", "fish", "powershell"])
def test_other_shells(ask: Ask, shell: str):
    from click.shell_completion import get_completion_class

    if get_completion_class(shell) is None:  # a click from before it knew PowerShell
        assert shell == "powershell"
        return
    assert any("graph" in line for line in ask("gra", shell=shell))
    assert any("softmax" in line for line in ask("help", "softm", shell=shell))


def test_scripts(cli):
    for shell in ("bash", "zsh", "fish"):
        script = cli("completion", shell)
        assert script.code == 0
        assert "_AUTODIFF_COMPLETE" in script.out
        assert "autodiff" in script.out
    assert cli("completion", "/bin/bash").out == cli("completion", "bash").out
    wrong = cli("completion", "fsih")
    assert wrong.code == 2 and "did you mean `fish`" in wrong.err
    assert cli("completion").code == 2


def test_answers_do_without_numpy(ask: Ask, tmp_path: Path):
    code = (
        "import os, sys\n"
        "from autodiff_cli.cli.main import main\n"
        "for words in 'autodiff help soft', 'autodiff run demo.expr --loss l', 'autodiff ':\n"
        "    os.environ.update(COMP_WORDS=words, COMP_CWORD=str(words.count(' ')),\n"
        "        _AUTODIFF_COMPLETE='bash_complete')\n"
        "    assert main([]) == 0\n"
        "    assert not {'numpy', 'scipy', 'lark', 'rich'} & set(sys.modules), words\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "plain,softmax\n" in done.stdout and "plain,loss\nplain,run\n" in done.stdout


def test_nonsense_is_answered_with_nothing(ask: Ask):
    assert ask("nothing-like", "this", "--at-all", "x") == ["file,x"]
    for instruction in ("bash_nonsense", "nosuch_complete", ""):
        assert answered(instruction) == (1, "", "")


def test_a_real_bash(ask: Ask, tmp_path: Path):
    import pexpect

    if shutil.which("bash") is None:  # the protocol is tested above
        return

    program = tmp_path / "bin" / "autodiff"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m autodiff_cli "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    bash = pexpect.spawn(
        "bash", ["--norc", "--noprofile"], timeout=60, encoding="utf-8",
        env={**os.environ, "PATH": path, "PS1": "$ ", "TERM": "dumb", "HISTFILE": ""},
    )  # fmt: skip
    bash.sendline('eval "$(autodiff completion bash)"; echo rea""dy')
    bash.expect("ready")
    bash.send("autodiff run demo.expr --diagn\t")
    bash.expect("--diagnostics ")
    bash.send("conc\t")
    bash.expect("concise ")
    bash.sendline("\x15exit")
    bash.expect(pexpect.EOF)
    bash.close()
