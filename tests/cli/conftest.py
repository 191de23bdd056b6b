"""A command line in this process: streams are captured, nothing of the real terminal is seen."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import jsonschema
import pytest
from rich.style import Style

import autodiff_cli.render as render
from autodiff_cli.cli import waiting
from autodiff_cli.cli.main import main
from autodiff_cli.cli.streams import Environment
from autodiff_cli.engine import profile
from autodiff_cli.language.program import profiled_program, running

from ..said import compare, lines_of

DEMO = "A = [[1, 2], [3, 4]]\nB = [[5, 6], [7, 8]]\nloss = sum((A + B) * A)\n"


class Stream(io.StringIO):
    """A text stream that says what it is told to about itself."""

    def __init__(self, text: str = "", tty: bool = False, encoding: str = "utf-8"):
        super().__init__(text)
        self.tty = tty
        self.named = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]  # a plain attribute in StringIO
        return self.named

    @property
    def buffer(self) -> io.BytesIO:
        return io.BytesIO(self.read().encode())

    def isatty(self) -> bool:
        return self.tty


@cache
def validator(schema: str) -> Any:
    """Of the schema that ships for `autodiff.run/1`."""
    name = schema.removeprefix("autodiff.").replace("/", "-")
    path = Path(render.__file__ or "").parent / "schema" / f"{name}.json"
    data = json.loads(path.read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(data)
    return jsonschema.Draft202012Validator(data)


def hold_against_schema(text: str) -> None:
    """Whatever document a command writes in a test is strict JSON as its schema says."""

    def refuse(word: str) -> None:
        raise ValueError(word)

    for line in text.splitlines():
        if line.startswith('{"schema": '):
            document = json.loads(line, parse_constant=refuse)
            validator(document["schema"]).validate(document)


class Result(NamedTuple):
    code: int
    out: str
    err: str


Cli = Callable[..., Result]


TIMED = {"--profile", "--timeout"}  # they say how long something took
WRITTEN = {".csv", ".dot", ".html", ".json", ".md", ".mmd", ".snap", ".svg", ".tex", ".txt", ".xml"}


def written(folder: Path) -> Iterator[str]:
    """The texts that a test wrote, in short; of Matplotlib's pictures their size, parts, words."""
    for path in sorted(folder.rglob("*")):
        if path.suffix in WRITTEN and path.is_file() and path.parent.name != "autodiff":  # a cache
            text = path.read_bytes().decode("utf-8", "replace")
            if "Matplotlib" not in text:
                yield f"{path.name}: {lines_of(text, 2)}"
                continue
            words = [w for w in re.findall(r">([^<>]*)</text>", text) if re.search(r"[^\W\d]", w)]
            drawn = [*re.findall("<svg[^>]*", text), text.count('id="axes_'), *words]
            yield f"{path.name}: {drawn}"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """The seconds of a clock by which a microsecond passes from one look to the next, whatever the
    machine does."""
    now = [0.0]

    def look() -> float:
        now[0] += 1e-6
        return now[0]

    for user in (profile, profiled_program, running):
        monkeypatch.setattr(user, "perf_counter", look)
    yield now


@pytest.fixture
def cli(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Cli]:
    """Call the command in an empty folder with `demo.expr` in it; all that it says is compared
    with what it said."""
    shown: list[str] = []
    timed: list[str] = []
    varying = set() if "clock" in request.fixturenames else TIMED
    monkeypatch.chdir(tmp_path)
    # On a busy machine a sign of life would appear in what is compared.
    monkeypatch.setattr(waiting, "PATIENCE", 3600.0)
    (tmp_path / "demo.expr").write_text(DEMO)

    def call(
        *argv: str,
        stdin: str | None = "",
        tty: bool = False,
        stdin_tty: bool = False,
        encoding: str = "utf-8",
        **variables: str,
    ) -> Result:
        for kept in (Style.parse, Style._add):  # with the codes of the terminal they were shown on
            kept.cache_clear()
        variables.setdefault("XDG_CACHE_HOME", f"{tmp_path}-cache")  # no other test's failures
        given = None if stdin is None else Stream(stdin, stdin_tty)
        out, err = Stream(tty=tty, encoding=encoding), Stream(tty=tty, encoding=encoding)
        code = main(list(argv), Environment(given, out, err, variables))
        hold_against_schema(out.getvalue())
        timed.extend(varying & {*argv})
        if argv[:1] != ("help",) and not varying & {*argv}:  # but for the manual
            shown.extend((f"{code} {out.getvalue()}", err.getvalue()))
        return Result(code, out.getvalue(), err.getvalue())

    yield call
    most = getattr(request.module, "MOST_LINES", 20)
    compare(request, [*shown, *([] if timed else written(tmp_path))], most)
