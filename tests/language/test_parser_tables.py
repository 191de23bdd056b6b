"""The committed tables are the grammar's, and lark accepts what our driver accepts."""

from __future__ import annotations

import subprocess
import sys
import zlib
from binascii import a2b_base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lark import Lark, Token
from lark.exceptions import UnexpectedInput
from lark.lexer import Lexer

from autodiff_cli.language.syntax import actions, build, grammar, tables
from autodiff_cli.language.syntax.lexer import tokenize
from autodiff_cli.language.syntax.parser import Machine, SyntaxProblem
from autodiff_cli.language.syntax.tokens import END, ERROR, TERMINALS
from autodiff_cli.source import Source


def _unpacked(text: str) -> dict[str, Any]:
    """The constants of a text of tables, the packed ones as bytes: every zlib packs its own way."""
    found: dict[str, Any] = {}
    exec(text, found)
    packed = {name: zlib.decompress(a2b_base64(found[name])) for name in ("ACTIONS", "GOTOS")}
    return {name: packed.get(name, value) for name, value in found.items() if name.isupper()}


def test_committed_tables_equal_a_fresh_build() -> None:
    committed = build.TABLES.read_text(encoding="utf-8")
    fresh = build.generate()
    assert committed.partition("ACTIONS =")[0] == fresh.partition("ACTIONS =")[0]
    assert _unpacked(committed) == _unpacked(fresh)


def test_an_edited_grammar_needs_no_build(monkeypatch: pytest.MonkeyPatch) -> None:
    text = grammar.grammar_text()
    assert grammar.tables_of(text) is tables
    monkeypatch.setattr(grammar, "shipped", lambda path: "")  # a copy of the package without it
    assert grammar.tables_of(grammar.grammar_text()) is tables
    edited = text.replace('LAMBDA: "lambda"', 'LAMBDA: "fun"')
    assert edited != text
    fresh = grammar.tables_of(edited)
    assert "fun" in fresh.LITERAL_TEXTS.split()
    assert "lambda" not in fresh.LITERAL_TEXTS.split()


def test_every_action_of_the_grammar_is_a_method() -> None:
    named = set(tables.RULE_ACTIONS.split()) - {"-"}
    missing = sorted(name for name in named if not hasattr(actions.Builder, name))
    assert not missing


class OurLexer(Lexer):
    """Feeds our tokens to lark's own parser."""

    __future_interface__ = 1

    def __init__(self, conf: Any):
        del conf

    def lex(self, lexer_state: Any, parser_state: Any) -> Iterator[Token]:
        text = lexer_state.text  # itself in old versions of lark
        tokens = tokenize(Source(str(getattr(text, "text", text))))
        for index, kind in enumerate(tokens.kinds):
            if kind != END:
                name = "ERROR" if kind == ERROR else TERMINALS[kind]
                yield Token(name, tokens.text(index))


@pytest.fixture(scope="module")
def lark_parser() -> Lark:
    return build.load_grammar(grammar.grammar_text(), OurLexer)


PROGRAMS = [
    "",
    "x = 1\n",
    "def f(a, *b, c=1, **d) -> e:\n    return a\n",
    "@a\nclass A(B, c=D): pass\n",
    "for i, in x[1:2, ::3]:\n    continue\nelse: pass\n",
    "with a as b, c: del d, e\n",
    "f'{x!r:>{y}}{z=}' 'a'\n",
    "x = [a for b in c if d] + {e: f, **g}\n",
    "lambda *, a: a if b else c\n",
    "from a.b import (c as d, e,)\n",
    "x, *y = z = 1,\n",
    "x += 1; y: int = 2; assert z, 'w'\n",
    "x = = 1\n",
    "x y\n",
    "if x\n    y\n",
    "if x:\ny\n",
    "def f(a:\n",
    "x = (1\n",
    "x[1:2:3:4]\n",
    "{1: 2, 3}\n",
    "else: x\n",
    "try: x\n",
    "x = a if b\n",
    "f(a.b=1)\n",
    "  x\n",
    "import a.b as\n",
    "x := 1\n",
    "@a\nx\n",
    "not = 3\n",
    "for x in: y\n",
    "f'{}'\n",
    "x.1\n",
]


@pytest.mark.parametrize("text", PROGRAMS)
def test_lark_accepts_the_same(lark_parser: Lark, text: str) -> None:
    try:
        Machine(tokenize(Source(text))).run()
        ours = True
    except SyntaxProblem:
        ours = False
    try:
        lark_parser.parse(text)
        theirs = True
    except UnexpectedInput:
        theirs = False
    assert ours is theirs


def test_parsing_does_not_import_lark(project: Path) -> None:
    program = (
        "import sys; from autodiff_cli.language.syntax.parser import parse;"
        "from autodiff_cli.source import Source; parse(Source('x = [1, 2]\\n'));"
        "print([m for m in ('lark', 'json', 'rich', 'numpy') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=project, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"
