"""Commands, options, usage errors and exit codes."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autodiff_cli.catalogue import MANUAL, pages_with
from autodiff_cli.cli.dispatch import COMMANDS
from autodiff_cli.cli.options import RUN_OPTIONS, Command, memory, parse
from autodiff_cli.errors import Exit
from autodiff_cli.version import __version__


def test_version_is_one_line(cli):
    assert cli("--version") == (0, f"autodiff {__version__}\n", "")


def test_run_is_the_default(cli):
    assert cli("demo.expr").out == cli("run", "demo.expr").out
    assert cli("-e", "2 + 3") == (0, "5\n", "")
    assert cli(stdin="2 + 3") == (0, "5\n", "")
    assert cli("-", stdin="2 + 3") == (0, "5\n", "")


def test_an_empty_program_prints_nothing(cli):
    assert cli("run", stdin="") == (0, "", "")
    assert cli("run", "-", stdin="# nothing\n\n") == (0, "", "")


def test_no_input_is_never_waited_for(cli):
    result = cli("run", stdin_tty=True)
    assert (result.code, result.out) == (2, "")
    assert result.err.count("autodiff run") == 2
    assert cli(stdin=None).code == 2


def test_expressions_follow_the_file(cli):
    result = cli("demo.expr", "-e", "loss = 2 * loss", "-e", "print('x')", "--only", "gradients")
    assert result.out.startswith("x\n")
    assert "A.grad = [[14.0, 20.0], [26.0, 32.0]]" in result.out


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["rnu", "demo.expr"], ["`rnu`", "`run`"]),
        (["dmo"], ["`dmo`", "demo.expr"]),
        (["run", "--fromat", "json"], ["`--fromat`", "`--format`"]),
        (["run", "--format", "jsn", "demo.expr"], ["jsn", "json"]),
        (["run", "--only", "grads", "demo.expr"], ["grads", "gradients"]),
        (["run", "--precision", "0", "demo.expr"], ["0 is not between 1 and 17"]),
        (["run", "--max-memory", "lots", "demo.expr"], ["lots", "8G"]),
        (["run", "--timeout", "-1", "demo.expr"], ["-1"]),
        (["run", "-D", "x", "demo.expr"], ["NAME=VALUE"]),
        (["run", "-D", "3x=1", "demo.expr"], ["3x"]),
        (["run", "--loss"], ["--loss"]),
        (["run", "--allow-read", "nodir", "demo.expr"], ["nodir"]),
        (["run", "missing.expr"], ["missing.expr", "no such file"]),
        (["run", "demo.exp"], ["demo.exp", "did you mean `demo.expr`"]),
        (["run", "."], ["directory"]),
        (["run", "-o", "out.xyz", "demo.expr"], ["out.xyz", ".json"]),
        (["run", "-o", "no/out.json", "demo.expr"], ["no/out.json"]),
        (["run", "-o", "out.npz", "demo.expr", "demo.expr"], ["npz"]),
        (["run", "-D", "Q=1", "demo.expr"], ["E204", "Q"]),
        (["help", "nothing-like-this"], ["nothing-like-this"]),
        (["ops", "reluu"], ["`reluu`", "`relu`"]),
        (["run", "--timeout", "1.2e9", "demo.expr"], ["between 0 and 1e9"]),
    ],
)
def test_a_wrong_command_line_is_2(cli, argv, words):
    result = cli(*argv)
    assert (result.code, result.out) == (2, "")
    for word in words:
        assert word in result.err


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x = 2; loss = x", 0),
        ("assert 1 == 2", 1),
        ("x = (", 3),
        ("x = yy", 3),
        ("x = [1, 2] + [1, 2, 3]", 3),
        ("X = load('nothing.npy')", 4),
        ("x = zeros(10**6, 10**6)", 4),
    ],
)
def test_exit_codes(cli, text, code):
    result = cli("-e", text)
    assert result.code == code
    assert ("error[E" in result.err) == (code != 0)


def test_several_files(cli, tmp_path: Path):
    (tmp_path / "broken.expr").write_text("x = (\n")
    (tmp_path / "big.expr").write_text("x = zeros(10**6, 10**6)\n")
    assert cli("run", "demo.expr", "big.expr").code == 4
    assert cli("run", "big.expr", "broken.expr").code == 3
    result = cli("run", "--format", "json", "missing.expr", "demo.expr", "broken.expr")
    documents = [json.loads(line) for line in result.out.splitlines()]
    assert [d["file"] for d in documents] == ["missing.expr", "demo.expr", "broken.expr"]
    assert [d["status"] for d in documents] == ["error", "ok", "error"]
    assert documents[0]["error"]["kind"] == "cannot-read"
    assert documents[2]["error"]["line"] == 1
    assert "error[E1" in result.err
    quiet = cli("run", "-q", "--format", "json", "broken.expr")
    assert (quiet.code, quiet.err) == (3, "")
    assert cli("run", "demo.expr", "missing.expr").code == 2


def test_quiet_still_says_why(cli):
    assert "E201" in cli("-q", "-e", "x = yy").err


def test_verbose_and_diagnostics(cli):
    assert "demo.expr: ok" in cli("-v", "demo.expr").err
    concise = cli("--diagnostics", "concise", "-e", "x = yy").err
    assert concise.startswith("<expr>:1:5: error[E201]")
    assert json.loads(cli("--diagnostics", "json", "-e", "x = yy").err)["code"] == "E201"
    assert cli("--diagnostics", "github", "-e", "x = yy").err.startswith("::error ")


def test_internal_errors_are_one_diagnostic(cli, monkeypatch, tmp_path):
    def broken(*_: object) -> None:
        raise ZeroDivisionError("really")

    monkeypatch.setattr("autodiff_cli.language.program.running.run_program", broken)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    result = cli("run", "--format", "json", "demo.expr")
    assert result.code == 70
    assert json.loads(result.out)["error"]["code"] == "E900"
    assert "ZeroDivisionError: really" in result.err
    assert "Traceback" not in result.err
    (saved,) = tmp_path.glob("autodiff-crash-*.txt")
    assert "Traceback" in saved.read_text()
    assert "Traceback" in cli("--debug", "demo.expr").err


def test_timeout(cli):
    text = "x = 1\nwhile True:\n    x = x * 1\n"
    result = cli("run", "-", "--timeout", "0.2", "--max-steps", "100000000", stdin=text)
    assert result.code == 4
    assert "E508" in result.err


def test_an_endless_file_ends(cli):
    result = cli("run", "/dev/zero", "--max-memory", "1M")
    assert result.code == 4
    assert "E505" in result.err


def test_text_that_is_no_utf8(cli, tmp_path: Path):
    for name, data in {
        "utf16": "x = 1".encode("utf-16"),
        "utf32": "x = 1".encode("utf-32"),
        "binary": bytes(range(256)),
    }.items():
        (tmp_path / f"{name}.expr").write_bytes(data)
        result = cli("run", f"{name}.expr")
        assert result.code == 3, name
        assert "E109" in result.err


def test_defines(cli):
    assert "x.grad = 10.0" in cli("-e", "x = 2; loss = x**2", "-D", "x=5").out
    assert "y = 7.0" in cli("-e", "x = 2; loss = x**2", "-D", "+y=7").out
    later = ("-e", "x = 2; k = 3; loss = x**2", "-D", "x=y+1")
    assert "help: add it before: `-D +y=...`" in cli(*later).err
    assert "x.grad = 16.0" in cli("-D", "+y=7", *later).out
    result = cli("-e", "x = 2; loss = sum(x**2)", "-D", "x=@-", stdin="[1, 2]")
    assert "x.grad = [2.0, 4.0]" in result.out
    assert cli("-e", "x = 2; loss = x", "-D", "x=@-", stdin="{").code == 4


# ------------------------------------------------------------------ help


def test_help(cli):
    assert "run" in cli("--help").out
    for name in COMMANDS:
        page = cli(name, "--help")
        assert page.code == 0
        assert "Examples:" in page.out
        assert cli("help", name).out.startswith(page.out)
    assert "E302 (broadcast)" in cli("help", "E302").out
    assert "141" in cli("help", "exit-codes").out
    assert "Topics" in cli("help").out
    narrow = cli("help", tty=True, COLUMNS="44").out.split("\n")
    assert max(map(len, narrow)) <= 44
    first = next(at for at, line in enumerate(narrow) if line.startswith("Manual  "))
    listed = narrow[first : narrow.index("", first)]
    assert all(len(line) > 30 for line in listed[:-1]) and listed[1].startswith(" " * 8)
    assert "relu(input)" in cli("help", "relu").out
    assert cli("help", "RELU").out == cli("help", " relu ").out == cli("help", "relu").out
    assert "T(input)" in cli("help", "T").out and "t(input)" in cli("help", "t").out
    pages = (set(re.findall("[a-z]{9,}", page.read_text())) for page in MANUAL.values())
    words = Counter(word for page in pages for word in page)
    for count in (1, 3, 4):  # pages that have a word are named when they are few
        word = next(
            w
            for w in sorted(words)
            if words[w] == count == len(pages_with(w)) and not pages_with(w, 1)
        )
        said = cli("help", word).err
        assert all(f"`autodiff help {page}`" in said for page in pages_with(word)) is (count < 4)
    assert "#=> 30" in cli("help", "check").out
    assert "Ctrl-D" in cli("help", "repl").out
    assert "graph" in cli("help", "commands").out
    assert "did you mean `exit-codes`" in cli("help", "exit-code").err


def test_every_option_is_in_the_help(cli):
    page = cli("run", "-h").out
    for option in RUN_OPTIONS:
        assert option.flags[-1] in page


def test_every_option_and_code_is_documented(project: Path):
    page = (project / "docs" / "cli.md").read_text("utf-8")
    for option in RUN_OPTIONS:
        assert all(f"`{flag}" in page or f" {flag}" in page for flag in option.flags), option.flags
    for code in Exit:
        assert f"| {int(code)} |" in page


def test_ops(cli):
    assert "relu" in cli("ops").out
    page = cli("ops", "relu").out
    assert "torch.relu" in page
    assert "ReluBackward0" in page
    assert "x.relu()" in page
    assert cli("ops", "torch.relu").out == page
    listed = cli("ops", "log*").out
    assert "  logsumexp" in listed
    assert "relu" not in listed
    assert "arithmetic" not in cli("ops", "--category", "loss").out
    assert cli("ops", "--category", "nothing").code == 2
    assert "softmax" in cli("ops", "--search", "softmax").out
    data = json.loads(cli("ops", "relu", "--format", "json").out)
    assert data[0]["grad_fn"] == "ReluBackward0"


def test_ops_missing(cli):
    result = cli("ops", "--missing", "--format", "json")
    data = json.loads(result.out)
    assert "relu" not in data["missing"]
    assert 0 < len(data["missing"]) < data["known"]


# ------------------------------------------------------------------ one table, two parsers


def _click_parse(argv: list[str]) -> tuple[dict, list[str]] | None:
    import click

    from autodiff_cli.cli.group import make_command

    seen: list[tuple[dict, list[str]]] = []

    def callback(values, files, env):
        seen.append((values, files))
        return 0

    command = make_command(Command("run", RUN_OPTIONS, ("files", "FILE"), callback, "", ""))
    try:
        command.main(args=argv, prog_name="run", standalone_mode=False)
    except click.ClickException:
        return None
    return seen[0] if seen else None


WORDS = st.sampled_from([
    "-e", "--expr", "x=1", "-Dx=1", "-D", "--loss", "--of=loss", "--wrt", "a,b", "-qv", "-q", "-",
    "--", "demo.expr", "--format", "json", "--format=json", "-p3", "-p", "7", "-qp4", "--all",
    "--only", "values,graph", "--no", "-z", "--max-memory=8G", "--sci=1", "", "-o", "out.json",
])  # fmt: skip


@given(st.lists(WORDS, max_size=6))
def test_the_quick_parser_agrees_with_click(argv: list[str]):
    quick = parse(argv, RUN_OPTIONS)
    if quick is not None:
        assert quick == _click_parse(argv)


def test_the_quick_parser_takes_common_lines():
    for argv in (["a", "b"], ["-e", "x = 1", "--format=json"], ["-qDx=1", "a", "--loss", "y"]):
        quick = parse(argv, RUN_OPTIONS)
        assert quick is not None
        assert quick == _click_parse(argv)
    assert parse(["--help"], RUN_OPTIONS) is None
    assert parse(["--format", "jsn"], RUN_OPTIONS) is None


def test_amounts_of_memory():
    assert memory("8G") == memory("8 GiB") == 8 << 30
    assert memory("1.5k") == 1536
    assert memory("4096") == 4096
    for text in ("", "8X", "-1", "0", "1e9", "G"):
        with pytest.raises(ValueError):
            memory(text)


@pytest.mark.parametrize("command", ["run", "explain", "graph", "jacobian", "check", "why"])
def test_help_has_sections_and_the_engine_stands_last(cli, command: str) -> None:
    shown = cli(command, "--help", COLUMNS="80").out
    order = [shown.index(f"\n{head}:\n") for head in ("Options", "Output", "Engine")]
    assert order == sorted(order)
    assert shown.split("Options:\n")[1].lstrip().startswith("-")
    assert shown.index("--max-steps") > order[2] > shown.index("--color") > order[1]
    assert all(len(line) <= 80 for line in shown.splitlines())


@pytest.mark.parametrize("command", ["run", "explain", "graph", "jacobian", "derive", "hessian"])
def test_of_and_loss_are_one_option(cli, command: str) -> None:
    for flag in ("--of", "--loss"):
        result = cli(command, "demo.expr", flag, "lss")
        assert result.code == 3
        assert "--of lss: the name does not exist" in result.err
