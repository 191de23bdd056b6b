"""Literals made of several pieces: neighbouring strings, and lists that hold only numbers."""

from __future__ import annotations

from typing import Any

from . import tree as s


def merged(parts: list[s.Node]) -> list[s.Node]:
    """Parts of an f-string with neighbouring texts joined and empty ones left out."""
    result: list[s.Node] = []
    run: list[str] = []
    first: s.Node | None = None

    def flush() -> None:
        nonlocal first
        if first is not None and any(run):
            result.append(s.Constant("".join(run), first.span))
        run.clear()
        first = None

    for part in parts:
        if isinstance(part, s.Constant):
            first = first or part
            run.append(str(part.value))
        else:
            flush()
            result.append(part)
    flush()
    return result


_NOT_NUMERIC = object()


def _number_of(node: s.Node) -> object:
    """The number, or list of numbers, that a node is."""
    kind = type(node)
    if kind is s.NumList:
        return node.values  # type: ignore[attr-defined]  # by its type
    if kind is s.List:
        return _empties(node)
    sign = 1
    if kind is s.UnaryOp:
        op = node.op  # type: ignore[attr-defined]  # by its type
        if op not in "+-":
            return _NOT_NUMERIC
        sign = -1 if op == "-" else 1
        node = node.operand  # type: ignore[attr-defined]  # by its type
    if type(node) is s.Constant and type(node.value) in (int, float):
        return node.value if sign > 0 else -node.value  # type: ignore[operator]  # a number
    return _NOT_NUMERIC


def _empties(node: s.Node) -> object:
    """The value of a list that holds nothing but empty lists."""
    values = []
    for element in node.elements:  # type: ignore[attr-defined]  # a List
        value = _empties(element) if type(element) is s.List else _NOT_NUMERIC
        if value is _NOT_NUMERIC:
            return _NOT_NUMERIC
        values.append(value)
    return values


def numeric_values(elements: list[s.Node]) -> list[Any] | None:
    """The values of a list display of numbers and lists of them, if it holds any number."""
    values = []
    numeric = False
    for element in elements:
        value = _number_of(element)
        if value is _NOT_NUMERIC:
            return None
        numeric = numeric or type(element) is not s.List
        values.append(value)
    return values if numeric else None
