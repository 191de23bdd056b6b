"""Standard input that is no terminal: no prompt, no echo, the exit code of the first error."""

from __future__ import annotations

import ast
import io
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from autodiff_cli.cli.main import main
from autodiff_cli.cli.streams import Environment
from autodiff_cli.outside import OUTSIDE
from autodiff_cli.repl.script import pieces

from ..recorded import cases
from ..together import together

SCRIPTS = [
    ("2 + 3\n", "5\n", 0),
    ("", "", 0),
    ("A = [1.0, 2.0]\nloss = sum(A * A)\n:grad\n", "A.grad  [2, 4]\n", 0),
    ("A = [\n 1.0,\n 2.0]\nsum(A)", "3\n", 0),
    ("def f(x):\n  y = x\n\n  return y + 1\nf(1)\n", "2\n", 0),
    ("if 0:\n  print(1)\nelse:\n  print(2)\nprint(3)\n", "2\n3\n", 0),
    ("for i in range(2):\n  if i:\n    print(i)\nprint('end')\n", "1\nend\n", 0),
    ("try:\n  1 / 0\nexcept ZeroDivisionError:\n  print(1)\nfinally:\n  print(2)\n", "1\n2\n", 0),
    ("x = 1; x\n:quit\nundefined\n", "1\n", 0),
    ("1\nundefined\n2\n", "1\n", 3),
    ("1\nx = [1, 2\n", "1\n", 3),
    ("1\n1 / 0\n2\n", "1\n", 4),
    ("assert 1 == 2\n2\n", "", 1),
    (":nothing\n2\n", "", 2),
    (":load nothing.expr\n2\n", "", 2),
    (">>> x = 3\n>>> x + 1\n", "4\n", 0),
    ("ad> x = 3\nx  3\nad> x + 1\n4\n", "4\n", 0),
    ("x = 3\nx?\n", "x  () float64 leaf\n  3\n  made by   x = 3\n", 0),
    ("x = '''\n:quit\n'''\n2\n", "", 3),
]


@together(SCRIPTS)
def test_scripts(text: str, output: str, code: int) -> None:
    stdin: Any = io.StringIO(text)
    stdin.buffer = io.BytesIO(text.encode())
    out, err = io.StringIO(), io.StringIO()
    assert main(["repl"], Environment(stdin, out, err, {})) == code
    assert out.getvalue() == output
    assert bool(err.getvalue()) == bool(code)


def test_pieces_are_statements() -> None:
    """With their decorators and all lines of brackets; a blank line belongs to what is above."""
    parts = ["x = 1\n", "@f\n@g\ndef h():\n  if x:\n    return 1\n", "(\n2)\n\n",
             "@f\nclass A:\n  y = 1\n", "if x:\n  y = 2\nelse:\n  y = 3\n", "y\n", "z"]  # fmt: skip
    found = list(pieces("".join(parts)))
    assert [text.rstrip("\n") for text, _ in found] == [part.rstrip("\n") for part in parts]
    above = ["".join(parts[:at]).count("\n") for at in range(len(parts))]
    assert [number for _, number in found] == above


@pytest.mark.parametrize(("option", "code"), [("--max-depth", "E507"), ("--max-steps", "E506")])
def test_limits_hold(option: str, code: str) -> None:
    stdin: Any = io.StringIO()
    stdin.buffer = io.BytesIO(b"def f(n):\n  return f(n + 1)\n\nf(0)\n")
    out, err = io.StringIO(), io.StringIO()
    assert main(["repl", option, "27"], Environment(stdin, out, err, {})) == 4
    assert f"error[{code}]" in err.getvalue()
    assert "27" in err.getvalue()


def test_messages_have_the_lines_of_the_script() -> None:
    text = "x = 1\n\ny = [\n 1,\n 2]\nz = x +\\\n undefined\n"
    stdin: Any = io.StringIO()
    stdin.buffer = io.BytesIO(text.encode())
    err = io.StringIO()
    assert main(["repl"], Environment(stdin, io.StringIO(), err, {})) == 3
    assert "--> <stdin>:7:2" in err.getvalue()


@pytest.mark.skipif(sys.platform != "linux", reason="logged on Linux only")
def test_the_log_of_a_script_grows_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each input costs as much as the one before it, wherever it stands."""
    monkeypatch.setattr(OUTSIDE, "journal", os.memfd_create("journal"))
    sizes = []
    for text in ("x = 1\n" * 100, "x = 1\n" * 200):
        stdin: Any = io.StringIO(text)
        stdin.buffer = io.BytesIO(text.encode())
        assert main(["repl"], Environment(stdin, io.StringIO(), io.StringIO(), {})) == 0
        sizes.append(os.lseek(OUTSIDE.journal, 0, os.SEEK_END))
    assert sizes[1] - sizes[0] < 2.05 * sizes[0]
    os.close(OUTSIDE.journal)


def test_pieces() -> None:
    text = "@decorated\ndef f(x):\n  return x\n\n\nx = 1\n:list\ny = 2; z = 3\n"
    found = [piece.strip() for piece, _ in pieces(text)]
    assert found == ["@decorated\ndef f(x):\n  return x", "x = 1", ":list", "y = 2; z = 3"]


def test_long_scripts_are_split_in_linear_time() -> None:
    rows = ",\n".join(str([float(j) for j in range(10)]) for _ in range(3000))
    text = f"A = [\n{rows}]\n" + "".join(f"x{i} = {i}\n" for i in range(3000))
    assert sum(1 for _ in pieces(text)) == 3001


def test_nothing_of_the_editor_is_imported(project: Path) -> None:
    code = (
        "import sys; from autodiff_cli.cli.main import main; code = main(['repl', '-q']);"
        "assert not {'prompt_toolkit', 'pygments', 'asyncio', 'rich'} & set(sys.modules); "
        "sys.exit(code)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input="2 + 3\n", capture_output=True, text=True, cwd=project,
        timeout=60, check=False,
    )  # fmt: skip
    assert (done.stdout, done.stderr, done.returncode) == ("5\n", "", 0)


def test_files_and_code_come_first(tmp_path: Path) -> None:
    path = tmp_path / "a.expr"
    path.write_text("A = [1.0, 2.0]\n")
    stdin: Any = io.StringIO()
    stdin.buffer = io.BytesIO(b"sum(A) + b\n")
    out = io.StringIO()
    assert main(["repl", str(path), "-e", "b = 4"], Environment(stdin, out, io.StringIO(), {})) == 0
    assert out.getvalue().endswith("7\n")


@together(cases("programs")[::8], lambda case: case["id"])
def test_pieces_are_the_statements_that_python_finds(case: dict[str, Any]) -> None:
    starts = {
        min(part.lineno for part in (tree, *getattr(tree, "decorator_list", ())))
        for tree in ast.parse(case["source"]).body
    }
    found = set()
    for piece, before in pieces(case["source"]):
        lines = piece.split("\n")
        blank = next(i for i, line in enumerate(lines) if line.split("#")[0].strip())
        found.add(before + 1 + blank)
    assert found == starts
