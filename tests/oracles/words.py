"""Records what the command says, word for word, of the programs of `refusals.txt`, of
`fixtures/wrong_programs.txt`, of `native_errors.txt` (errors and warnings), of those that leave the
domain of an operation, of lines of `slipped.txt` with a slip, and of texts of every length.

Run it with `python -m tests.oracles.words` after a message was changed on purpose, and read what
differs: these are the words that users see.
"""

from __future__ import annotations

import gzip
import io
import json
import keyword
import random
import re
import tokenize
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

from autodiff_cli.errors import AutodiffError, Diagnostic
from autodiff_cli.language.errors.domains import DOMAINS, OVERFLOW
from autodiff_cli.render.diagnostics import render
from autodiff_cli.session import Report, run
from autodiff_cli.source import Source
from tests.oracles.refusals import NAMES, lines, program

FIXTURES = Path(__file__).parents[1] / "fixtures"
FIXTURE = FIXTURES / "words.json.gz"
NATIVE = Path(__file__).with_name("native_errors.txt")


# Words of newer versions of Python and NumPy, and those that stand for them here.
NEWER = {
    r"cannot use '\w+' as a (?:set element|dict key) \((.*)\)$": r"\1",
    r"(too many values to unpack \(expected \d+), got \d+\)$": r"\1)",
    r"(non-default argument '\w+' follows default argument) '\w+'$": r"\1",
    r"(got an unexpected keyword argument '\w+')\. Did you mean '\w+'\?$": r"\1",
    r"without an implementation for (abstract methods?) '(.*)'$": r"with \1 \2",
    r"type dtype\('(\w+)'\) not compatible with finfo$": r"type <class 'numpy.\1'> not inexact",
}


# Operations at the edge of their domain: alone, in a product, of parts, behind something.
EDGES = (
    "x = [{}, {}]\nloss = sum({}(x))\n",
    "x = [{}, {}]\ny = x * 1\nz = y.{}() * y\nloss = sum(z * 0)\n",
    "x = [[{}, {}]]\nloss = torch.{}(x[0, 0] * 1) / x[0, 1]\n",
    "x = [{}, {}]\nloss = sum({}(x.double() * 1) - 1 / x)\n",
)


def said(error: AutodiffError) -> str:
    """All that is said of an error."""
    return _rendered(error.diagnostic)


def _rendered(diagnostic: Diagnostic) -> str:
    return same_words(render(diagnostic, "full", False, 100, unicode=False))


def told(report: Report) -> str:
    """All that is said of a run: its errors and its warnings."""
    errors = [] if report.error is None else [report.error, *report.more_errors]
    found = [error.diagnostic for error in errors]
    return "\n".join(map(_rendered, (*found, *report.warnings)))


def edges() -> list[str]:
    """Programs that leave the domain of an operation, or stand at its edge."""
    found = []
    bounds = {name: {d.low, d.high} - {None} for name, d in DOMAINS.items()}
    bounds |= {name: {*sizes} for name, sizes in OVERFLOW.items()}
    for name, values in bounds.items():
        for bound in sorted(v for v in values if v is not None):
            for form, at in zip(EDGES, (bound, bound - 1.5, bound + 1.5, bound), strict=True):
                found.append(form.format(at, 0.25, name))
    return found


def same_words(text: str) -> str:
    """A text in the words of Python 3.11 and NumPy 2.4."""
    for newer, older in NEWER.items():
        text = re.sub(newer, older, text, flags=re.MULTILINE)
    return text


def wrong() -> Iterator[str]:
    """Native programs that fail, or are warned of."""
    for path in (FIXTURES / "wrong_programs.txt", NATIVE):
        yield from path.read_text("utf-8").split("=====\n")


def words() -> dict[str, str]:
    """What is recorded, by program."""
    found: dict[str, str] = json.loads(gzip.decompress(FIXTURE.read_bytes()))
    return found


SLIPPED = Path(__file__).with_name("slipped.txt")
# What stands where something else should: for a name, a number, a text; anything at all.
FOR = {
    tokenize.NAME: ("None", "[]", "{0[0]}{0}", "x.{0}"),
    tokenize.NUMBER: ("'a'", "-9", "[{0}]", "2.5", "None", "x"),
    tokenize.STRING: ("3", "None", "'no'", "x"),
}
ANYTHING = (")", "]", ":", "=", ",", "else", "3", "in", "*", "def", "x", "'", "{", "==", ".", "\n")
SLIPS = 6  # of a line, at most, of each of two kinds


def slips() -> Iterator[str]:
    """Programs with one slip: a word, number or text is another, or a token is missing, there
    twice, or another one."""
    for number, line in enumerate(SLIPPED.read_text("utf-8").splitlines()):
        text = program(line)
        before = text.index(NAMES) + len(NAMES)
        lines = text.splitlines(keepends=True)
        starts = [0, *accumulate(map(len, lines))]
        meant, written = [], []
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            start, end = (starts[row - 1] + column for row, column in (token.start, token.end))
            if start < before or not token.string.strip():
                continue
            if not keyword.iskeyword(token.string):
                meant += [(start, end, new.format(token.string)) for new in FOR.get(token.type, ())]
            other = ANYTHING[len(written) % len(ANYTHING)]
            written += [(start, end, new) for new in ("", token.string * 2, other)]
        for found in (meant, written):
            some = random.Random(number).sample(found, min(len(found), SLIPS))
            yield from (text[:start] + new + text[end:] for start, end, new in some)


# Texts of every length where one is told: where they are cut, and what stands in one line.
LONG = (
    "{0} = [0.0, 1.0]\nloss = sum(log({0}))\n",
    "{0} = [0.0, 1.0]\nloss = sum({0}.sqrt() / {0})\n",
    "x = [1.0]\ny = {0} + x\n",
    "{0} = [1.0, 2.0]\n{0} * 2\n",
    "x = '{0}'\ny = x + 1\n",
    "x = {{'{0}': 1}}\ny = x['q']\n",
    "x = {{'a': 1}}\ny = x['{0}']\n",
    "import torch\nx = torch.ones(2)\nx.{0}()\n",
    "assert '{0}' == 'q'\n",
    "x = 3\nx('{0}')\n",
    "raise ValueError('{0}')\n",
    "print(f'{{1:{0}}}')\n",
    "int('{0}')\n",
    "x = [1.0, 2.0]\ny = sum(x, {0}=1)\n",
    "def {0}(a): return a\n{0}()\n",
    "x = {1}.5.5\n",
    "x = 2 ** 3 {0}\n",
    "import torch\nx = torch.ones(2)\nfor a in {0}.b: pass\n",
    "if {0} + 1\n    y = 1\n",
    "while {0}(1,\n    2)\n    y = 1\n",
    "for a in [1, 2,\n    {1}]\n    y = 1\n",
    "with {0} as f\n    y = 1\n",
)
LENGTHS = range(26, 86, 4)


def long_texts(form: str) -> list[str]:
    """Programs of a form, with names of every length."""
    word, number = "abcdefghij" * 9, "1234567890" * 9
    return [form.format(word[:n], number[:n]) for n in LENGTHS]


def main() -> None:
    """Write the fixture."""
    known = words() if FIXTURE.exists() else {}
    found = {}
    cases = [(line, program(line), "refused.py") for line in lines()]
    cases += [(text, text, "wrong.expr") for text in (*wrong(), *edges(), *slips())]
    cases += [(text, text, "wrong.expr") for form in LONG for text in long_texts(form)]
    for key, text, name in cases:
        found[key] = told(run(Source(text, name)))
        if not found[key] and name == "refused.py":
            print("not refused:", key)
            del found[key]
            continue
        if known.get(key, found[key]) != found[key]:
            print(f"--- {known[key]}\n+++ {found[key]}")
    with gzip.GzipFile(FIXTURE, "wb", mtime=0) as file:
        file.write((json.dumps(found, indent=0) + "\n").encode())
    print(len(found), "programs")


if __name__ == "__main__":
    main()
