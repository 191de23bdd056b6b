"""Sessions and files: what `:save` writes runs again to the same; what cannot be used says why."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autodiff_cli.repl.commands import files
from autodiff_cli.repl.history import history_path, open_history
from tests.repl.conftest import Session

SESSIONS = [
    ["A = [[1, 2], [3, 4]]", "B = A + 1", "loss = sum(A * B)"],
    ["x = 1", "x = 2", "y = x + 1"],
    ["x = 1", "y = x + 1", "x = 5"],
    ["A = [1.0, 2.0]", "loss = sum(A)", "loss = sum(A * A)", "loss"],
    ["n = 3", "def f(x):\n  return x * n\n\n", "n = 4", "y = f(2)"],
    ["b = const([1.0, 2.0])", "b[0] = 5", "c = b * 2", "b += 1"],
    ["A = [1.0, 2.0]", "loss = sum(A * A)", "loss.backward()", "g = A.grad * 2"],
    ["2 + 3", "k = _ * 2", "7", "m = k + _"],
    ["n = 1", "import torch.nn.functional as G", "x = G.relu([-1.0, 2.0])"],
    ["A = [1.0]", "import torch", "import numpy as np", "B = np.exp(A) + torch.sin(A)"],
    [
        "A = [1.0]",
        "import math as m",
        "from torch import nn as N",
        "import torch.optim as O",
        "from numpy import linalg",
        "B = A * m.pi",
        "L = N.ReLU()",
        "o = O.SGD([A], linalg.norm([1.0]))",
    ],
    ["import torch", "x = torch.ones(2, requires_grad=True)", "y = (x * 2).sum()", "y.backward()"],
    ["torch.manual_seed(3)", "r = rand(2)", "r", "q = rand(2)"],
    ["a = 1; b = a + 1; a = 7", "c = [a, b]"],
    ["for i in range(3):\n  s = i * 2\n\n", "t = s"],
]


@pytest.mark.parametrize("lines", SESSIONS, ids=[lines[-1] for lines in SESSIONS])
def test_round_trip(session: Any, lines: list[str]) -> None:
    for line in lines:
        session(line)
    session(":save it.expr")
    other = Session()
    other(":load it.expr")
    assert other.state() == session.state()


def test_saved_text_is_what_is_needed(session: Any) -> None:
    for line in ["A = [1.0, 2.0]", "A", "w = 1", "w = 2", "loss = sum(A * w)", ":list", "print(A)"]:
        session(line)
    assert session(":save it.expr") == "3 statements written to it.expr\n"
    assert Path("it.expr").read_text() == "A = [1.0, 2.0]\nw = 2\nloss = sum(A * w)\n"


def test_history_files(tmp_path: Path) -> None:
    assert history_path({"AUTODIFF_HISTORY": "~/h"}) == os.path.expanduser("~/h")
    assert history_path({"XDG_STATE_HOME": "/s"}) == "/s/autodiff/history"
    assert history_path({}) == os.path.expanduser("~/.local/state/autodiff/history")
    for word in ("a", "b", "b", "a"):
        history = open_history({"AUTODIFF_HISTORY": str(tmp_path / "deep" / "h")})
        history.append_string(f"{word}\n{word}")
    assert list(history.load_history_strings()) == ["a\na", "b\nb"]
    assert (tmp_path / "deep" / "h").read_text().count("+b\n") == 4


@pytest.mark.parametrize("line", ["import collections as c", "from collections import deque"])
def test_imports_that_make_a_file_python(session: Any, line: str) -> None:
    session("A = [1.0]")
    session(line)
    assert f"with `{line}` a file is Python" in session.fails(":save it.expr")
    assert "begin with the import" in session.fails(":explain")


def test_save_asserts(session: Any) -> None:
    for line in ["A = [1.0, 2.0]", "loss = sum(A * A)"]:
        session(line)
    assert "2 statements and 2 assertions" in session(":save it.expr --asserts")
    text = Path("it.expr").read_text()
    assert text.endswith("assert loss == 5.0\nassert A.grad == [2.0, 4.0]\n")
    for line in [":reset", "A = const([1.0, 2.0])", "B = A * 2"]:
        session(line)
    assert "2 statements and 2 assertions" in session(":save no.expr --asserts")
    assert Path("no.expr").read_text().endswith("assert B == [2.0, 4.0]\n")
    other = Session()
    other(":load it.expr")
    assert "2 passed" in other(":check") or "passed" in other(":check")


def test_save_asserts_what_has_a_gradient_and_a_name(session: Any) -> None:
    for line in ["import torch", "x = torch.ones(2, requires_grad=True)", "y = x.sum()",
                 "ps = [torch.ones(2, requires_grad=True)]", "ps[0].sum().backward()"]:  # fmt: skip
        session(line)
    session(":save it.py --asserts")
    lines = Path("it.py").read_text().split("\n")
    assert [line for line in lines if line.startswith("assert")] == ["assert y == 2.0"]
    assert any(line.startswith("assert y == ") for line in lines)
    session("y.backward()")
    session(":save it.py --asserts")
    assert "assert x.grad == [1.0, 1.0]\n" in Path("it.py").read_text()


def test_an_import_of_what_is_there_anyway_is_not_saved(session: Any) -> None:
    for line in ["A = [1.0, 2.0]", "import torch.nn", "import numpy as np", "import np"]:
        session.tell(line)
    session(":save it.expr")
    assert "import" not in Path("it.expr").read_text()
    assert "torch.nn =" not in Path("it.expr").read_text()


def test_files_up_to_a_size_are_loaded(session: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MOST_BYTES", 1 << 20)
    Path("a.expr").write_text("A = 1\n".ljust(1 << 20))
    session(":load a.expr")
    Path("a.expr").write_text("A = 1\n".ljust((1 << 20) + 1))
    assert "longer than 1 MiB" in session.fails(":load a.expr")


def test_load_adds_and_can_be_undone(session: Any) -> None:
    Path("a.expr").write_text("# a comment\nA = [1.0, 2.0]\nloss = sum(A)\n")
    session("B = 3")
    assert "2 statements loaded from a.expr" in session(":load a.expr")
    session(":undo")
    assert list(session.state()) == ["B"]


def test_load_reads_beside_the_file(session: Any) -> None:
    Path("deep").mkdir()
    np.save("deep/x.npy", np.array([1.0, 2.0]))
    Path("deep/a.expr").write_text("x = load('x.npy')\n")
    session(":load deep/a.expr")
    assert session("x") == "[1, 2]\n"
    session("x[0] = 9.0")
    session(":undo")
    assert session("x") == "[1, 2]\n"


def test_load_what_cannot_be_loaded(session: Any) -> None:
    session("B = 3")
    before = session.state()
    Path("wrong.expr").write_text("A = [1.0, 2.0]\nB = 5\nC = A @ ones(3)\n")
    Path("syntax.expr").write_text("A = [1.0, 2.0\n")
    Path("binary.expr").write_bytes(b"\xff\xfe\x00\x01")
    Path("snippet.expr").write_text("import torch\nx = torch.ones(2)\n")
    os.mkfifo("pipe.expr")
    for name, message in [
        ("wrong.expr", "E301"),
        ("syntax.expr", "E101"),
        ("binary.expr", "E109"),
        ("snippet.expr", "`:reset` first"),
        ("nothing.expr", "no such file"),
        ("wron.expr", "did you mean `wrong.expr`?"),
        (".", "no regular file"),
        ("pipe.expr", "no regular file"),
        ("", "takes one file name"),
        ("a b", "takes one file name"),
        ("'a", "no such file"),
        ("a\0b", "cannot read"),
    ]:
        assert message in session.fails(f":load {name}"), name
        assert session.state() == before


def test_save_what_cannot_be_saved(session: Any) -> None:
    assert "nothing to save" in session.fails(":save it.expr")
    session("B = 3")
    Path("folder").mkdir()
    Path("a.txt").touch()
    for name, message in [
        ("missing/it.expr", "no such file or directory"),
        ("folder", "is a directory"),
        ("/dev/full", "no space left"),
        ("a.txt/it.expr", "not a directory"),
        ("", "takes one file name"),
    ]:
        assert message in session.fails(f":save {name}"), name
    assert session("B") == "3\n"
    assert sorted(os.listdir()) == ["a.txt", "folder"]


def test_spaces_in_names(session: Any) -> None:
    session("B = 3")
    session(":save 'my file.expr'")
    session(":reset")
    session(":load 'my file.expr'")
    assert session("B") == "3\n"
