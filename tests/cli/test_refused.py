"""What is said of command lines that cannot be what is meant, on wide and narrow terminals."""

from __future__ import annotations

from pathlib import Path

import pytest

from autodiff_cli.cli.dispatch import COMMANDS, load_command
from tests.said import compare
from tests.together import together

from .conftest import Cli

LINES = [
    "check --review", "check --watch --update", "check -k (", "check -k a_and", "check nothing.x",
    "check --junit no/such.xml", "check -k nothing", "check --lf", "check --collect -k grad",
    "diff", "diff a b c", "diff demo.expr", "diff demo.expr nothing.expr", "why", "why demo.expr",
    "why Z demo.expr", "derive --latex --statements demo.expr", "derive --raw --simplify demo.expr",
    "derive --steps --order 2 demo.expr", "derive --latex --to numpy demo.expr",
    "explain --to latex --markdown demo.expr", "hessian --hvp ones --diag demo.expr",
    "graph -o it.xyz demo.expr", "graph -f png demo.expr", "graph -f svg -o it.svg - demo.expr",
    "report --open -o - demo.expr", "run --scheduler x demo.expr", "run --workers 2 demo.expr",
    "run --watch -e x=1", "run --watch -", "run demo.expr -o it.npy", "run demo.expr -o no/it.json",
    "run demo.expr --plot -o it.gif", "run demo.expr demo.expr --plot -o it.png", "run -D 3=4",
    "run -D x", "run --max-memory 1", "run --timeout never", "run --precision 18 demo.expr",
    "run --heat Z demo.expr", "run --show Z demo.expr", "run --nan maybe", "run --onyl values",
    "completion", "completion bsh", "ops nothing", "ops --category nope", "ops --torch torch.nope",
    "help nothing", "help E999", "nothing", "nothing.expr", "--nothing", "run", "explain",
    "jacobian --mode backward demo.expr", "jacobian --layout flt demo.expr", "lsp extra",
    "repl nothing.expr", "derive --to jx demo.expr", "check --order 3", "check --seed -1",
]  # fmt: skip
CI = ["check --update", "check --prune", "check --review", "check --snapshot", "check"]


@together(LINES, group=20)
def test_refused(line: str, cli: Cli) -> None:
    for columns in ("100", "40"):
        cli(*line.split(), tty=True, stdin=None, COLUMNS=columns)


@together(CI)
def test_refused_where_nobody_looks(line: str, cli: Cli) -> None:
    cli(*line.split(), CI="true")


def test_pages_are_coloured_where_somebody_reads_them(cli: Cli) -> None:
    for variables in ({}, {"NO_COLOR": "1"}, {"TERM": "dumb"}, {"LC_ALL": "C"}):
        for tty in (True, False):
            shown = cli("help", "why", tty=tty, COLUMNS="60", **variables).out
            assert ("\x1b[" in shown) == (tty and not variables)


TEXTS = (
    """
abc||1|0|-1|2.5|1_000|+7|17|18|4096|4097|100000|100001|1e3|nan|inf|1e9|2e9|1K|1023|800m|1.5GiB
2x|1024T|1025T|9999999999999999999999999|a,b| a , ,b|,|*|float|flaot32|doubel|x=1|x=[1,2]|x|=3
+x=2|+=2|1=2|x= |no/such|rich,plain|values,vlaues|rcih
""".strip()
    .replace("\n", "|")
    .split("|")
)


def test_what_options_take(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each option of each command, of texts of all kinds and of its words with a letter too few."""
    monkeypatch.chdir(tmp_path)
    found: dict[str, None] = {}
    for name in COMMANDS:
        for option in load_command(name).options:
            if not option.metavar or option.convert is str:
                continue
            words = getattr(option.convert, "words", ())
            answers = [" ".join(option.flags)]
            for text in (*TEXTS, *words, *(word[:-1] for word in words)):
                try:
                    answers.append(f"{text!r}: {option.convert(text)!r}")
                except ValueError as error:
                    answers.append(f"{text!r}: {error}")
            found["\n".join(answers)] = None
    compare(request, found, 8)
