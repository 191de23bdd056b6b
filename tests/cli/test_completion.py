"""Completion: the protocol of each shell in real processes, a real bash, what is imported."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "autodiff_cli"]


@pytest.fixture
def ask(tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch):
    """What a shell is answered at the end of a line, each answer without its type."""
    (tmp_path / "demo.expr").write_text("A = [1, 2]\nrate = 0.1; loss = sum(A * rate)\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(project))

    def call(*words: str, shell: str = "bash") -> list[str]:
        cword = words[-1] if shell == "fish" else str(len(words))
        variables = {
            "COMP_WORDS": " ".join(["autodiff", *words]), "COMP_CWORD": cword,
            "_AUTODIFF_COMPLETE": f"{shell}_complete",
        }  # fmt: skip
        done = subprocess.run(
            COMMAND, capture_output=True, text=True, env={**os.environ, **variables}, timeout=60
        )
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout.splitlines()

    return call


def test_what_is_completed(ask):
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


def test_files_are_left_to_the_shell(ask):
    assert ask("run", "de") == ["file,de"]
    assert ask("demo.e") == ["file,demo.e"]
    assert ask("run", "demo.expr", "-o", "x") == ["file,x"]
    assert ask("run", "demo.expr", "--allow-read", "x") == ["dir,x"]


def test_names_of_the_program(ask):
    assert ask("run", "demo.expr", "--loss", "l") == ["plain,loss"]
    assert ask("run", "demo.expr", "--wrt", "A,r") == ["plain,A,rate"]
    assert ask("run", "demo.expr", "--heat", "A.") == ["plain,A.grad"]
    assert ask("run", "demo.expr", "-D", "ra") == ["plain,rate="]
    assert ask("run", "missing.expr", "--loss", "l") == []
    assert ask("run", "demo.expr", "--timeout", "1") == []
    assert ask("run", "-e", "other=3", "demo.expr", "--loss", "o") == ["plain,other"]


@pytest.mark.parametrize("shell", ["zsh", "fish", "powershell"])
def test_other_shells(ask, shell: str):
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


def test_answers_do_without_numpy(ask, tmp_path: Path):
    for words in ("autodiff help soft", "autodiff run demo.expr --loss l", "autodiff "):
        code = (
            "import os, sys\n"
            f"os.environ.update(COMP_WORDS={words!r}, COMP_CWORD='{words.count(' ')}',\n"
            "    _AUTODIFF_COMPLETE='bash_complete')\n"
            "from autodiff_cli.cli.main import main\n"
            "assert main([]) == 0\n"
            "sys.exit(bool({'numpy', 'scipy', 'lark', 'rich'} & set(sys.modules)))\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")


def test_nonsense_is_answered_with_nothing(ask):
    assert ask("nothing-like", "this", "--at-all", "x") == ["file,x"]
    for instruction in ("bash_nonsense", "nosuch_complete", ""):
        done = subprocess.run(
            COMMAND, capture_output=True, env={**os.environ, "_AUTODIFF_COMPLETE": instruction}
        )
        assert (done.returncode, done.stdout, done.stderr) == (1, b"", b"")


def test_a_real_bash(ask, tmp_path: Path):
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
