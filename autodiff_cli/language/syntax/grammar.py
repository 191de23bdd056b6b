"""The tables that parsing uses: those shipped, or, when the grammar was edited since, fresh ones.

A checksum of `grammar/expr.lark` is part of the tables, so that stale ones are never used.
"""

from __future__ import annotations

from binascii import crc32
from types import SimpleNamespace
from typing import Any

from ...source import shipped
from . import tables


def grammar_text() -> str:
    """The text of `grammar/expr.lark`; empty when there is none."""
    try:
        with open(shipped("grammar/expr.lark"), encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""


def checksum(grammar: str) -> str:
    """What tells one grammar from another."""
    return f"{crc32(grammar.encode()):08x}"


def tables_of(grammar: str) -> Any:
    """The tables of a grammar: an object with the names of the module `tables`."""
    if not grammar or checksum(grammar) == tables.GRAMMAR:
        return tables
    from .build import build

    return SimpleNamespace(**build(grammar))


TABLES: Any = tables_of(grammar_text())
