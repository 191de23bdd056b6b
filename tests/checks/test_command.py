"""`autodiff check` and `autodiff diff` as real processes: exit codes, reports, what is written."""

from __future__ import annotations

import io
import os
from pathlib import Path
from xml.etree import ElementTree

import pytest

from autodiff_cli.cli.main import main
from autodiff_cli.cli.streams import Environment

from .conftest import Run, read

BAD = "x = [1, 2]\nloss = sum(x * x)  #=> 6\nassert x.grad == [2, 5]\n"


def test_everything_passes(run: Run, folder: Path) -> None:
    done = run("check")
    assert done.returncode == 0 and done.stderr == ""
    first, blank, last = done.stdout.splitlines()
    assert first.startswith("demo.expr") and " ... " in first and "3 passed" in first
    assert not blank and last.startswith("1 file, 3 passed in ")
    assert os.listdir(folder) == ["demo.expr"]


def test_failures_are_shown_with_the_command_that_runs_them_again(
    run: Run, call: Run, folder: Path
) -> None:
    (folder / "bad.expr").write_text(BAD)
    done = run("check")
    assert done.returncode == 1
    assert ".FF." in done.stdout and "5 passed, 2 failed" in done.stdout
    assert "re-run: autodiff check bad.expr -k 'assert[3]'" in done.stdout
    assert "error[E601]" in done.stderr and "error[E603]" in done.stderr
    again = call("check", "--lf", "--format", "json")
    items = read(again.stdout, "check")["items"]
    assert [item["id"] for item in items] == ["bad.expr::assert[3]", "bad.expr::expect[2]"]
    alone = call("check", "bad.expr", "-k", "assert[3]")
    assert alone.returncode == 1 and "1 file, 1 failed" in alone.stdout
    assert "1 file, 2 failed" in call("check", "--lf").stdout  # what was not checked is kept
    assert not (folder / ".cache").exists()


def test_update_shows_a_diff_and_is_refused_under_ci(call: Run, folder: Path) -> None:
    (folder / "bad.expr").write_text(BAD)
    refused = call("check", "--update", CI="true")
    assert refused.returncode == 2 and (folder / "bad.expr").read_text() == BAD
    done = call("check", "bad.expr", "--update", "-k", "expect")
    assert done.returncode == 0
    assert "-loss = sum(x * x)  #=> 6" in done.stderr and "1 file written" in done.stdout
    assert (folder / "bad.expr").read_text() == BAD.replace("#=> 6", "#=> 5")
    assert sorted(os.listdir(folder)) == ["bad.expr", "demo.expr"]


def test_snapshots_and_orphans(call: Run, folder: Path) -> None:
    assert call("check", "--snapshot").returncode == 0
    assert sorted(os.listdir(folder)) == ["demo.expr", "demo.expr.snap"]
    (folder / "demo.expr").rename(folder / "other.expr")
    (folder / "demo.expr.npz").write_bytes(b"")  # what --full left
    orphaned = call("check")
    assert "remove: autodiff check --prune" in orphaned.stdout
    assert orphaned.returncode == 1 and "error[E605]" in orphaned.stderr
    assert call("check", "-k", "grad").returncode == 0
    assert call("check", "--prune").returncode == 0
    assert os.listdir(folder) == ["other.expr"]


def test_a_snapshot_made_by_run_is_one(call: Run, folder: Path) -> None:
    (folder / "demo.expr.snap").write_text(call("run", "demo.expr").stdout)
    done = call("check", "demo.expr")
    assert done.returncode == 0 and "4 passed" in done.stdout


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["check", "nowhere.expr"], 2),
        (["check", "--no-such-option"], 2),
        (["check", "-k", "and"], 2),
        (["check", "--review"], 2),
        (["check", "--junit", "no/such/folder/x.xml"], 2),
        (["check", "empty"], 5),
        (["check", "empty", "--allow-empty"], 0),
        (["check", "-k", "nothing"], 5),
        (["diff", "demo.expr"], 2),
        (["diff", "demo.expr", "nowhere.expr"], 2),
    ],
)
def test_exit_codes_of_wrong_commands(call: Run, folder: Path, words: list[str], code: int) -> None:
    (folder / "empty").mkdir()
    done = call(*words)
    assert done.returncode == code
    assert code == 0 or done.stderr.startswith("error:")


def test_bad_files_fail_alone(run: Run, call: Run, folder: Path) -> None:
    (folder / "a_syntax.expr").write_text("x = [1, 2\n")
    (folder / "b_bytes.expr").write_bytes(b"x = 1  # \xff\xfe\n")
    (folder / "c_hangs.expr").write_text("x = 1\nwhile True:\n    x = x * 1\n")
    (folder / "d_nan.expr").write_text("x = -1\nloss = sqrt(x)\n")
    (folder / "e_folder.expr").mkdir()
    (folder / "f_link.expr").symlink_to("nowhere")
    (folder / "g_zero.expr").write_bytes(b"\0" * 100)
    (folder / "h_empty.expr").write_bytes(b"")
    (folder / "i_deep.expr").write_text("x = " + "(" * 5000 + "1" + ")" * 5000 + "\n")
    done = run("check", "--timeout", "0.4", "--format", "json", "-q")
    data = read(done.stdout, "check")
    codes = {
        item["file"]: item["diagnostic"]["code"] for item in data["items"] if "diagnostic" in item
    }
    assert codes.pop("c_hangs.expr") in ("E506", "E508")
    assert codes == {
        "a_syntax.expr": "E101", "b_bytes.expr": "E109", "d_nan.expr": "E501",
        "f_link.expr": "E701", "g_zero.expr": "E109", "i_deep.expr": "E108",
    }  # fmt: skip
    assert done.returncode == data["exit_code"] == 3 and "Traceback" not in done.stderr
    assert call("check", "f_link.expr", "demo.expr", "-q").returncode == 2
    (folder / "f_link.expr").unlink()
    assert run("check", "--timeout", "0.4", "-q").returncode == 3
    for name in ("a_syntax", "b_bytes", "g_zero", "i_deep"):
        (folder / f"{name}.expr").unlink()
    assert call("check", "d_nan.expr").returncode == 4
    passed = read(call("check", "demo.expr", "h_empty.expr", "--format", "json").stdout, "check")
    assert passed["exit_code"] == 0 and passed["summary"]["passed"] == 4


def test_junit_is_read_back(call: Run, folder: Path) -> None:
    (folder / "bad.expr").write_text(BAD + "# \x1b[31m\nassert '\x07' == 'é<&>'\n")
    assert call("check", "--junit", "out.xml").returncode == 1
    root = ElementTree.parse(folder / "out.xml").getroot()
    suite = root[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("errors")) == ("8", "3", "0")
    case = next(c for c in suite if c.get("name") == "assert[3]")
    assert (case.get("file"), case.get("line")) == ("bad.expr", "3")
    assert case[0].tag == "failure" and "E601" in (case[0].text or "")


def test_many_files_in_processes_come_in_order(run: Run, folder: Path) -> None:
    for i in range(12):
        (folder / f"f{i:02d}.expr").write_text(f"x = {i}\nloss = x * x  #=> {i * i}\n")
    (folder / "f05.expr").write_text("x = \n")
    done = run("check", "-j", "2", "--durations", "2")
    names = [line.split()[0] for line in done.stdout.splitlines() if ".expr  " in line[:20]]
    assert names == sorted(names) and len(names) == 13
    assert done.returncode == 3 and "error[E102]" in done.stderr


def test_first_failure_stops(call: Run, folder: Path) -> None:
    (folder / "a.expr").write_text("x = 1\nassert x == 2\n")
    done = call("check", "-x")
    assert done.returncode == 1 and "demo.expr" not in done.stdout


def test_github_annotations(call: Run, folder: Path) -> None:
    (folder / "bad.expr").write_text(BAD)
    done = call("check", GITHUB_ACTIONS="true", GITHUB_STEP_SUMMARY=str(folder / "summary.md"))
    assert "::error file=bad.expr,line=3,col=" in done.stderr
    assert "| `bad.expr` | 2 passed, 2 FAILED |" in (folder / "summary.md").read_text()


def test_collect_lists_items(call: Run) -> None:
    done = call("check", "--collect", "--order", "2")
    assert done.stdout.splitlines() == [
        f"demo.expr::{label}" for label in ("run", "grad[A]", "hess[A]", "grad[B]", "hess[B]")
    ]


def test_pytorch_is_imported_only_when_asked_for(run: Run, call: Run, folder: Path) -> None:
    (folder / "torch.py").write_text("raise SystemExit('torch was imported')\n")
    assert run("check", "-q").returncode == 0
    (folder / "torch.py").unlink()
    done = call("check", "-k", "torch", "--against", "torch")
    missing = "PyTorch is not installed" in done.stderr
    assert done.returncode == (2 if missing else 0)


# -- diff -----------------------------------------------------------------------------------------


def test_diff_of_programs(call: Run, folder: Path) -> None:
    (folder / "a.expr").write_text("A = [1, 2]\nB = A * 2\ny = B + sin(A)\nloss = sum(y ** 2)\n")
    (folder / "b.expr").write_text("A = [1, 2]\nB = A * 2\ny = B + cos(A)\nloss = sum(y ** 2)\n")
    same = call("diff", "a.expr", "a.expr")
    assert same.returncode == 0 and "no departure: 4 values and 1 gradients" in same.stdout
    done = call("diff", "a.expr", "b.expr")
    assert done.returncode == 1
    assert "first departure: `y`  a.expr:3" in done.stdout
    assert "in `sin(A)` (sin), a.expr:3:9" in done.stdout
    assert "2 of 4 values and 1 of 1 gradients depart" in done.stdout
    data = read(call("diff", "a.expr", "b.expr", "--format", "json").stdout, "diff")
    assert [entry["name"] for entry in data["values"]] == ["y", "loss"]
    (folder / "a.expr").write_text("A = [[1, 2], [5, 6]]\nloss = sum(cat([A, A]).sum(0) ** 2)\n")
    for other, op in (("cat([A, A]).sum(1)", "(sum)"), ("cat([A, A, A]).sum(0)", "(cat)")):
        (folder / "b.expr").write_text(f"A = [[1, 2], [5, 6]]\nloss = sum({other} ** 2)\n")
        assert f"{op}, a.expr:2:" in call("diff", "a.expr", "b.expr").stdout
    (folder / "b.expr").write_text("A = [1, 2]\nfor e in [A * 2, A * 3]: pass\nloss = sum(e)\n")
    assert "no departure: 3 values" in call("diff", "b.expr", "b.expr").stdout


def test_diff_of_defines_and_saved_results(call: Run, folder: Path) -> None:
    done = call("diff", "demo.expr", "-D", "B=[[0, 0], [0, 0]]", "--with", "B=[[0, 0], [0, 1]]")
    assert done.returncode == 1 and "first departure: `B`" in done.stdout
    assert call("run", "demo.expr", "-o", "r.npz").returncode == 0
    (folder / "r.json").write_text(call("run", "demo.expr", "--format", "json").stdout)
    assert call("diff", "r.npz", "demo.expr").returncode == 0
    assert call("diff", "r.json", "r.npz").returncode == 0
    (folder / "r.npz").write_bytes(b"PK\x03\x04broken")
    broken = call("diff", "r.npz", "demo.expr")
    assert broken.returncode == 4 and "error[E701]" in broken.stderr
    for name in ("d.npz", "d.txt"):
        (folder / name).mkdir()
        said = call("diff", name, "demo.expr").stderr
        assert said.startswith(f"error[E701]: cannot read `{name}`: is a directory\n")


def test_diff_of_many_values(call: Run, folder: Path) -> None:
    """Fifty beside the first, twenty names of one side: of more how many there are."""
    for count in (51, 52):
        for name, more in (("a", 0), ("b", 1)):
            text = "".join(f"v{i} = {i + more}\n" for i in range(count))
            (folder / f"{name}.expr").write_text(text)
        said = call("diff", "a.expr", "b.expr").stdout
        assert said.count("relative error up to") == 50
        assert ("  ... and 1 more\n" in said) is (count == 52)
    for count, more in ((20, ""), (21, " and 1 more"), (23, " and 3 more")):
        (folder / "a.expr").write_text("x = 1\n")
        (folder / "b.expr").write_text("x = 2\n" + "".join(f"v{i} = {i}\n" for i in range(count)))
        names = ", ".join(f"v{i}" for i in range(20))
        assert f"only right: {names}{more}\n" in call("diff", "a.expr", "b.expr").stdout


# -- review ---------------------------------------------------------------------------------------


class Terminal(io.StringIO):
    """A stream that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("answers", "written"),
    [("y\nn\n", 1), ("n\ny\n", 1), ("a\n", 2), ("q\n", 0), ("", 0), ("what\nn\nn\n", 0)],
)
def test_review_asks_for_every_change(folder: Path, answers: str, written: int) -> None:
    before = "x = 3\nloss = x * x  #=> 8\n"
    for name in ("a.expr", "b.expr"):
        (folder / name).write_text(before)
    out, err = io.StringIO(), Terminal()
    variables = {"XDG_CACHE_HOME": str(folder.parent)}
    code = main(["check", "--review"], Environment(Terminal(answers), out, err, variables))
    texts = [(folder / name).read_text() for name in ("a.expr", "b.expr")]
    assert sum(text != before for text in texts) == written
    assert code == (0 if written == 2 else 1)
    assert "-loss = x * x  #=> 8" in err.getvalue()


def test_an_interrupted_update_loses_nothing(
    call: Run, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "bad.expr").write_text(BAD)

    def interrupted(source: str, target: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    assert call("check", "bad.expr", "--update").returncode == 130
    assert (folder / "bad.expr").read_text() == BAD
    assert sorted(os.listdir(folder)) == ["bad.expr", "demo.expr"]


def test_documents_of_every_verdict_are_described_by_their_schemas(call: Run, folder: Path) -> None:
    programs = {
        "cut": "x = [1, 2]\nloss = sum(x * x.detach())\n",
        "kink": "x = [0, 1]\nloss = sum(relu(x))  #=> 1\n",
        "noisy": "x = [0, 1]\nloss = sum(sqrt(x + 1e-30))\n",
        "failed": BAD,
        "error": "x = \n",
        "日本 \udcff": "x = [1, 2]\nloss = sum(x * x)\nassert x == 'π'\n",
    }
    for name, text in programs.items():
        (folder / f"{name}.expr").write_bytes(text.encode())
    document = read(call("check", "--order", "2", "--format", "json").stdout, "check")
    assert {item["status"] for item in document["items"]} == {
        "passed", "cut", "kink", "noisy", "failed", "error",
    }  # fmt: skip
    assert sum(document["summary"].values()) == len(document["items"]) + len(programs) + 1


def test_documents_of_diff_are_described_by_their_schema(call: Run, folder: Path) -> None:
    (folder / "a.expr").write_text("A = [1, 2]\nloss = sum(A)\n")
    (folder / "b.expr").write_text("A = [1, 2, inf]\nB = A\nloss = sum(A)\n")
    for words in (["a.expr", "a.expr"], ["a.expr", "b.expr"], ["b.expr", "a.expr"]):
        document = read(call("diff", *words, "--format", "json").stdout, "diff")
        assert document["equal"] is (words[0] == words[1])
    assert document["values"][0]["difference"] == "shapes differ: (3,) and (2,)"
    assert document["values"][0]["relative_error"] == "inf"


# -- progress -------------------------------------------------------------------------------------


def test_the_bar_never_shares_a_line_with_output(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("autodiff_cli.cli.progress.PATIENCE", -1.0)
    for name in ("a.expr", "b.expr"):
        (folder / name).write_text("x = 3\nloss = x * x\n")

    def shown(**variables: str) -> str:
        both = Terminal()  # one terminal shows both streams
        main(["check"], Environment(io.StringIO(), both, both, {"NO_COLOR": "1", **variables}))
        return both.getvalue()

    text = shown()
    assert "[######              ] 1/3" in text and "[#############       ] 2/3" in text
    for line in text.split("\n"):
        assert not line.rpartition("\r\x1b[K")[2].startswith("["), line
    assert "[####" not in shown(CI="true")


@pytest.mark.parametrize("width", [120, 80, 44, 30])
def test_lines_of_files_fit_the_terminal(folder: Path, width: int) -> None:
    (folder / "bad.expr").write_text(BAD)
    out = Terminal()
    variables = {"NO_COLOR": "1", "COLUMNS": str(width), "XDG_CACHE_HOME": str(folder)}
    main(["check"], Environment(io.StringIO(), out, io.StringIO(), variables))
    lines = out.getvalue().split("\n\n")[0].split("\n")
    assert all(len(line) <= width for line in lines)
    words = " ".join(lines).split()
    assert "bad.expr" in words and ".FF." in words and "FAILED" in words


@pytest.mark.parametrize(
    ("name", "data", "code"),
    [
        ("r.npz", b"no archive", "E701"),
        ("r.json", b"{}", "E702"),
        ("r.json", b"[1]", "E702"),
        ("r.json", b"{", "E702"),
    ],
)
def test_what_holds_no_results(call: Run, folder: Path, name: str, data: bytes, code: str) -> None:
    (folder / name).write_bytes(data)
    done = call("diff", name, "demo.expr")
    assert done.returncode == 4 and f"error[{code}]" in done.stderr and name in done.stderr


def test_saved_scalars_and_plain_forms(call: Run, folder: Path) -> None:
    (folder / "n.py").write_text(
        "import torch\nx = torch.tensor(2.0, requires_grad=True)\nk = 3\nf = 1.5\nbig = 10**5000\n"
        "nan = float('nan')\nb = k > 2\nloss = x * k\nloss.backward()\n"
    )
    assert call("run", "n.py", "-o", "n.json").returncode == 0
    assert call("run", "n.py", "-o", "n.txt").returncode == 0
    assert call("diff", "n.json", "n.py").returncode == 0
    assert call("diff", "n.txt", "n.json").returncode == 0
    text = (folder / "n.json").read_text()
    assert '"f": 1.5' in text
    (folder / "n.json").write_text(text.replace('"f": 1.5', '"f": 1.75'))
    done = call("diff", "n.json", "n.py")
    assert done.returncode == 1 and "1.75" in done.stdout
