"""What the README and the pages of docs/ show is what happens: transcripts, command lines, code."""

from __future__ import annotations

import doctest
import io
import re
import shlex
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path

import click
import numpy as np
import pytest

from autodiff_cli.catalogue import TOPICS
from autodiff_cli.cli import waiting
from autodiff_cli.cli.dispatch import COMMANDS
from autodiff_cli.cli.group import make_group
from autodiff_cli.cli.main import main
from autodiff_cli.cli.streams import Environment
from autodiff_cli.language.syntax.parser import parse
from autodiff_cli.repl.loop import Loop
from autodiff_cli.source import Source
from tests.together import together

ROOT = Path(__file__).parents[1]
FILES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = {path.name: path.read_text("utf-8") for path in FILES} | TOPICS
BLOCK = re.compile(r"^```(\w*)\n((?:(?!```).*\n)*)```$|((?:^ {4}.*\n|^\n(?= {4}))+)", re.MULTILINE)
SECONDS = re.compile(r"\d+\.\d\ds")


def blocks(page: str) -> list[tuple[str, str]]:
    """Kind (`text`, `python`, empty for an indented one) and text of the blocks of a page."""
    found = []
    for kind, fenced, indented in BLOCK.findall(PAGES[page]):
        found.append((kind, fenced or "".join(f"{x[4:]}\n" for x in indented.splitlines())))
    return found


class Terminal(io.StringIO):
    """A terminal of 80 columns."""

    encoding = "utf-8"  # type: ignore[assignment]  # a property there

    def isatty(self) -> bool:
        return True


def typed(line: str) -> str:
    """What a command line shows in the repository's folder."""
    words = shlex.split(line)
    if words[0] == "cat":
        return (ROOT / words[1]).read_text("utf-8")
    assert words[0] == "autodiff"
    screen = Terminal()
    main(words[1:], Environment(io.StringIO(), screen, screen, {"NO_COLOR": "1", "COLUMNS": "80"}))
    return screen.getvalue()


def transcripts() -> list[tuple[str, str]]:
    """Command lines behind `$ ` and what stands below them."""
    found = []
    for page in PAGES:
        for _, text in blocks(page):
            for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
                line, _, shown = part.partition("\n")
                if line != "autodiff":
                    found.append((line, shown))
    return found


def as_shown(shown: str, real: str) -> bool:
    """Whether output is as a page shows it; a line `...` stands for any lines."""
    pattern = [
        "*" if line.strip() == "..." else re.sub(r"[\[\]*?]", r"[\g<0>]", line)
        for line in shown.rstrip("\n").split("\n")
    ]
    pattern_text = "\n".join(SECONDS.sub("?.??s", line) for line in pattern)
    return fnmatchcase(SECONDS.sub("0.00s", real).rstrip("\n"), pattern_text)


@pytest.mark.parametrize(
    ("line", "shown"), transcripts(), ids=lambda text: text.split("\n")[0][:50]
)
def test_transcript(line: str, shown: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(waiting, "PATIENCE", 3600.0)  # no sign of life on a busy machine
    real = typed(line)
    assert as_shown(shown, real), real


def test_transcript_of_a_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (session,) = re.findall(
        r"^\$ autodiff\n(.*?)^```", (ROOT / "docs/repl.md").read_text(), re.MULTILINE | re.DOTALL
    )
    banner, *entries = re.split(r"^ad> ", session, flags=re.MULTILINE)
    assert banner.startswith("autodiff ")
    loop = Loop()
    for entry in entries:
        lines = entry.rstrip("\n").split("\n")
        more = [line for line in lines[1:] if line.startswith(" .. ")]
        given = "\n".join([lines[0], *(line.removeprefix(" .. ") for line in more)])
        reply = loop.feed(given)
        assert reply.output.rstrip("\n").split("\n") == lines[1 + len(more) :], given


# ------------------------------------------------------------------ command lines


def command_lines() -> list[str]:
    """Every command line that a page or the help of a command tells to type."""
    found = []
    for page in PAGES:
        for kind, text in blocks(page):
            if kind in ("", "text"):
                found += re.findall(r"^(?:\$ )?(autodiff(?: .*)?)$", text, re.MULTILINE)
    group = make_group()
    for name in COMMANDS:
        command = group.get_command(click.Context(group), name)
        assert command is not None
        found += re.findall(r"^ +(autodiff.*)$", command.epilog or "", re.MULTILINE)
    usage = re.compile(r"\[|autodiff why NAME|autodiff completion SHELL")
    return sorted({re.split(r" {3,}", line)[0] for line in found if not usage.search(line)})


@together(command_lines())
def test_options_of_a_command_line_exist(line: str) -> None:
    group = make_group()
    for part in re.split(r" && | \| ", line):
        words = shlex.split(re.split(r" [<>]", part)[0], comments=True)[1:]
        if not part.startswith("autodiff ") or not words:
            continue
        name = words.pop(0) if words[0] in COMMANDS else "run"
        command = group.get_command(click.Context(group), name)
        assert command is not None
        command.make_context(name, words, parent=click.Context(group))


def everyday() -> list[str]:
    text = (ROOT / "README.md").read_text("utf-8")
    part = text.partition("## Everyday use")[2].partition("##")[0]
    lines = re.findall(r"^    (.*?)(?: {2,}# .*)?$", part, re.MULTILINE)
    return [line for line in lines if line.startswith("autodiff ")]


@pytest.mark.parametrize("line", everyday())
def test_the_readme_runs_as_it_stands(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    words = []
    for word in shlex.split(line)[1:]:
        words += map(str, sorted(Path().glob(word))) if "/*" in word else [word]
    screen, errors = Terminal(), Terminal()
    assert main(words, Environment(io.StringIO(), screen, errors, {"NO_COLOR": "1"})) == 0
    assert screen.getvalue()
    assert not errors.getvalue()


def test_the_code_of_the_readme_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    codes = [text for kind, text in blocks("README.md") if kind == "python"]
    assert codes
    names = {"w": np.array([3.0]), "x": np.array([2.0]), "b": np.array([1.0])}
    for code in codes:
        exec(code, dict(names))


def test_the_session_of_the_page_on_python() -> None:
    code = "".join(text for kind, text in blocks("python.md") if kind == "pycon")
    test = doctest.DocTestParser().get_doctest(code, {}, "python.md", "python.md", 0)
    assert len(test.examples) > 10
    shown = io.StringIO()
    assert not doctest.DocTestRunner().run(test, out=shown.write).failed, shown.getvalue()


def read(kind: str, text: str) -> None:
    """Read a block of code that no other test runs, as what reads such a file does."""
    if kind == "python":
        compile(re.sub(r"^%.*$", "", text, flags=re.MULTILINE), "<page>", "exec")
    elif kind == "toml":
        tomllib.loads(text)
    elif kind == "yaml":
        pytest.importorskip("yaml").safe_load(text)
    elif kind == "text":
        parse(Source(text))
    else:
        assert kind in ("", "pycon", "lua"), kind


@together(PAGES)
def test_every_block_can_be_read(page: str) -> None:
    for kind, text in blocks(page):
        if not re.search(r"^\$ ", text, re.MULTILINE):
            read(kind, text)
