"""Turns the grammar into tables: in memory, or into `tables.py` by
`python -m autodiff_cli.language.syntax.build`.

The only module that imports lark. What it makes depends on the grammar alone (states are numbered
by a walk from the start state), so that a test can compare the committed tables with a fresh build.
"""

from __future__ import annotations

import json
import re
import sys
import zlib
from array import array
from binascii import b2a_base64
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from lark import Lark, Token
from lark.lexer import Lexer
from lark.parsers.lalr_analysis import Shift

from .grammar import checksum, grammar_text

TABLES = Path(__file__).resolve().with_name("tables.py")
END = "$END"
PATTERNS = ("QUOTE", "NAME", "NUMBER")
"""The terminals with a regular expression of their own, in the order in which they are tried."""


class _Unused(Lexer):
    """Stands where lark wants a lexer; this project has its own."""

    def __init__(self, conf: Any):
        del conf

    def lex(self, lexer_state: Any, parser_state: Any) -> Any:
        raise AssertionError("the tables are built, not run")


class _KeepTerminals:
    """A postlex that changes nothing, for its list of terminals to keep though no rule has them."""

    def __init__(self, grammar: str):
        self.always_accept = re.findall(r"^([A-Z_]+):", grammar, re.MULTILINE)

    def process(self, stream: Iterable[Token]) -> Iterable[Token]:
        return stream


def load_grammar(grammar: str, lexer: type[Lexer] = _Unused) -> Lark:
    """Lark's own parser of a grammar; shift/reduce conflicts are errors."""
    return Lark(
        grammar,
        parser="lalr",
        lexer=lexer,
        start="module",
        postlex=_KeepTerminals(grammar),
        maybe_placeholders=False,
        strict=True,
    )


def _trie_pattern(words: Iterable[str]) -> str:
    """A regular expression for the longest of `words` at a place."""
    branches: dict[str, set[str]] = {}
    for word in words:
        if word:
            branches.setdefault(word[0], set()).add(word[1:])
    singles = [head for head, rests in branches.items() if rests == {""}]
    parts = []
    if singles:
        parts.append("[" + "".join(re.escape(head) for head in sorted(singles)) + "]")
    for head in sorted(branches):
        rests = branches[head]
        if head not in singles:
            parts.append(re.escape(head) + _trie_pattern(rests) + ("?" if "" in rests else ""))
    return parts[0] if len(parts) == 1 and singles else "(?:" + "|".join(parts) + ")"


class _Tables:
    """Numbers for terminals, nonterminals, rules and states, and the rows between them."""

    def __init__(self, lark: Lark):
        table: Any = lark.parser.parser._parse_table
        self.states: dict[int, dict[str, Any]] = table.states
        self.start = table.start_states["module"]
        self.definitions = {terminal.name: terminal.pattern for terminal in lark.terminals}
        ignored = set(lark.ignore_tokens)
        declared = {
            symbol.name
            for rule in lark.rules
            for symbol in rule.expansion
            if symbol.is_term and symbol.name not in self.definitions
        }
        named = declared | set(self.definitions) - ignored - {"QUOTE"}
        self.terminals = [*sorted(named), END]
        self.nonterminals = sorted({rule.origin.name for rule in lark.rules})
        self.rules = sorted(lark.rules, key=lambda rule: (rule.origin.name, rule.order))
        self.numbers = self._number_states()

    def _number_states(self) -> dict[int, int]:
        numbers = {self.start: 0}
        order = [self.start]
        for state in order:
            for symbol, (action, target) in sorted(self.states[state].items()):
                if action is Shift and target not in numbers and symbol != END:
                    numbers[target] = len(order)
                    order.append(target)
        return numbers

    def rows(self) -> tuple[list[dict[int, int]], list[dict[int, int]]]:
        """For each state its actions (shift `s` as s, reduce `r` as -1-r) and its gotos."""
        terminal = {name: number for number, name in enumerate(self.terminals)}
        nonterminal = {name: number for number, name in enumerate(self.nonterminals)}
        rule = {rule: number for number, rule in enumerate(self.rules)}
        actions: list[dict[int, int]] = [{} for _ in self.numbers]
        gotos: list[dict[int, int]] = [{} for _ in self.numbers]
        for state, number in self.numbers.items():
            for symbol, (action, target) in sorted(self.states[state].items()):
                if action is not Shift:
                    actions[number][terminal[symbol]] = -1 - rule[target]
                elif symbol in terminal:
                    if symbol != END:
                        actions[number][terminal[symbol]] = self.numbers[target]
                else:
                    gotos[number][nonterminal[symbol]] = self.numbers[target]
        return actions, gotos

    def rule_actions(self) -> list[str]:
        """The builder's method for each rule; empty where the value is the single symbol's."""
        names = []
        for rule in self.rules:
            if rule.alias is None and len(rule.expansion) != 1:
                raise ValueError(f"an alternative of {rule.origin.name} has no action: {rule}")
            names.append(rule.alias or "")
        return names


def _encode(rows: list[dict[int, int]]) -> str:
    """Rows as base64 of packed 16-bit numbers: how many rows, their lengths, then of each row its
    keys and its values, for rows repeat one another."""
    flat = array("h", [len(rows), *(2 * len(row) for row in rows)])
    for row in rows:
        flat.extend(row)
        flat.extend(row.values())
    if sys.byteorder == "big":
        flat.byteswap()
    return b2a_base64(zlib.compress(flat.tobytes(), 9), newline=False).decode("ascii")


def build(grammar: str) -> dict[str, str]:
    """The constants of `tables.py` for a grammar."""
    tables = _Tables(load_grammar(grammar))
    literals = {
        name: pattern.value
        for name, pattern in tables.definitions.items()
        if type(pattern).__name__ == "PatternStr"
    }
    keywords = {name: text for name, text in sorted(literals.items()) if text.isalpha()}
    operators = {name: text for name, text in sorted(literals.items()) if not text.isalpha()}
    groups = [f"({tables.definitions[name].value})" for name in PATTERNS]
    groups.append(f"({_trie_pattern(operators.values())})")
    comment = tables.definitions["COMMENT"].value
    join = tables.definitions["LINE_JOIN"].value
    blank = tables.definitions["BLANK"].value.removesuffix("++") + "*+"
    actions, gotos = tables.rows()
    spelled = {**keywords, **operators}
    return {
        "GRAMMAR": checksum(grammar),
        "TERMINALS": " ".join(tables.terminals),
        "NONTERMINALS": " ".join(tables.nonterminals),
        "LITERAL_NAMES": " ".join(spelled),
        "LITERAL_TEXTS": " ".join(spelled.values()),
        "PATTERN": f"{blank}(?:{'|'.join(groups)}|({comment})|(\\n)|({join}))",
        "RULE_ACTIONS": " ".join(name or "-" for name in tables.rule_actions()),
        "RULE_SIZES": " ".join(str(len(rule.expansion)) for rule in tables.rules),
        "RULE_ORIGINS": " ".join(
            str(tables.nonterminals.index(rule.origin.name)) for rule in tables.rules
        ),
        "ACTIONS": _encode(actions),
        "GOTOS": _encode(gotos),
    }


def generate() -> str:
    """The text of `tables.py`."""
    lines = [
        '"""LALR(1) tables of `grammar/expr.lark`. Generated, not edited:',
        "`python -m autodiff_cli.language.syntax.build` writes this file.",
        '"""',
        "",
        "from __future__ import annotations",
        "",
        "# ruff: noqa: E501 - data, a constant a line",
    ]
    lines += [f"{name} = {json.dumps(text)}" for name, text in build(grammar_text()).items()]
    return "\n".join([*lines, ""])


def main() -> None:
    TABLES.write_text(generate(), encoding="utf-8")


if __name__ == "__main__":
    main()
