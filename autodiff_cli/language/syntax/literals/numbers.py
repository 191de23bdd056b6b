"""Numbers and lists of numbers: from their text to Python's int, float and nested lists.

Very long regular lists of floats become an array at once (`number_arrays`). Other long lists are
converted by the JSON decoder, at C speed and in linear time whatever the brackets do; short vectors
and matrices are split at their commas. What neither accepts goes through the grammar like any other
list, which makes the same node of the same text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import chain
from typing import TYPE_CHECKING

from ....errors import AutodiffError, fail, fault
from ....source import Source, Span, shortened
from ..tree import NumList

if TYPE_CHECKING:
    import numpy as np

MAX_DIGITS = 4300
"""Python's own bound on the digits of an integer (`sys.int_info.default_max_str_digits`)."""


MAX_NESTING = 200
MAX_NUMBERS = 30_000_000
MAX_ROWS = 3_000_000

_LONG = 256
_VERY_LONG = 1 << 15
"""Characters from which on an array is quicker than the JSON decoder, its imports included."""

_PIECE_SIZE = 1 << 16
_NUMERIC_BYTES = b"0123456789-+eE._,[] \t\n\r"
_SHORT_LIST = re.compile(r"\[(?:[-0-9., \n]++|\[[-0-9., \n]++\])++\]")
# Kept as text: `re` compiles, and remembers, the few that a program needs.
_NUMBERS_ONLY = r"[-+0-9eE._,\[\]\s]*+"
_BEGINS_NUMERIC = r"\[[\s\[]{0,400}+[-+.0-9]"
_BRACKET = r"[\[\]]"
_PIECE = r"#[^\n]*+|[\[\],]|[^\[\],#]++"
_NOT_PYTHON = r"(?<![0-9])\.(?![0-9])|\[\s*+,|\+\s*+[^\s0-9.]"
_BAD_UNDERSCORE = r"_(?![0-9])|(?<![0-9])_"
_TRAILING_COMMA = r",\s++\]"
_REPLACED = (
    (",]", "]"), ("[+", "["), (",+", ","), (" +", " "), ("\n+", "\n"),
    (".,", ".0,"), (".]", ".0]"), (". ", ".0 "), (".\n", ".0\n"), (".e", ".0e"), (".E", ".0E"),
    ("[.", "[0."), (",.", ",0."), (" .", " 0."), ("\n.", "\n0."), ("-.", "-0."),
)  # fmt: skip
"""From Python's spellings of numbers to JSON's, where no character before or after tells else."""


def parse_number(text: str, source: Source, start: int) -> int | float:
    """The value of a NUMBER token at `start`; E110 or E106 where it is none."""
    based = text[:2].lower() in ("0x", "0o", "0b")
    try:
        if not based and ("." in text or "e" in text or "E" in text):
            return float(text)
        if len(text) > MAX_DIGITS:
            raise _too_long(text, Span(source, start, start + len(text)))
        if not based and text[0] == "0" and text.strip("0_"):
            plain = text.lstrip("0_")
            raise fail(
                "E110",
                f"the number `{_short(text)}` begins with a zero",
                Span(source, start, start + len(text)),
                help=f"write `{_short(plain)}`, or `0o{_short(plain)}` for an octal number",
            )
        return int(text, 0)
    except ValueError:
        raise invalid_number(text, Span(source, start, start + len(text))) from None


def invalid_number(text: str, span: Span) -> AutodiffError:
    """The error of digits and letters that make no number."""
    digits = re.match(r"[0-9_.]*[0-9]", text)
    rest = text[digits.end() :] if digits else ""
    if digits and rest in ("j", "J"):
        return fault(
            "E106 complex-numbers-such-not", _short(text), _short(digits.group()), span=span
        )
    based = text[:2].lower() in ("0x", "0o", "0b")
    if digits and not based and rest.isidentifier() and not rest.startswith("_"):
        product = f"{_short(digits.group())} * {_short(rest)}"
        return fault("E110 not-number-2", _short(text), product=product, span=span)
    whole = re.match(r"[0-9]+(?:\.[0-9]+)?", text.replace("_", ""))
    plain = "0x1F" if based or not whole else whole.group()
    return fault("E110 not-number", _short(text), _short(plain), span=span)


def _too_long(text: str, span: Span) -> AutodiffError:
    return fail(
        "E110",
        f"an integer of {len(text)} digits is too long: at most {MAX_DIGITS}",
        span,
        label=f"{len(text)} digits",
        help=f"write it as a floating point number, such as `{text[0]}.0e{min(len(text), 300)}`"
        if text[0] in "123456789"
        else "write a shorter number",
    )


def _short(text: str) -> str:
    return shortened(text, 40)


def nested_too_deep(source: Source, start: int, what: str = "brackets") -> AutodiffError:
    """The error of nesting beyond the limit, at the place that exceeds it."""
    return fail(
        "E108",
        f"{what} are nested more than {MAX_NESTING} levels deep",
        Span(source, start, min(start + 1, len(source.text))),
        label=f"level {MAX_NESTING + 1}",
        help="name the inner part: `part = ...` on a line of its own, then use `part`",
    )


def _row(text: str) -> list:
    """Numbers between commas; ValueError for what is none, or has leading zeros."""
    return [float(p) if "." in p else int(p, 0) for p in text.split(",")]


def short_list(text: str, at: int) -> tuple[list, int] | None:
    """Values and end of a short vector or matrix of plain numbers; None for anything else."""
    match = _SHORT_LIST.match(text, at, at + _LONG)
    if match is None:
        return None
    *rows, rest = match[0][1:-1].split("]")
    try:
        if not rows:
            return _row(rest), match.end()
        found: list[list] = []
        for row in rows:
            before, _, numbers = row.partition("[")
            if before.strip() != ("," if found else ""):
                return None
            found.append(_row(numbers))
    except ValueError:
        return None
    return None if rest.strip() else (found, match.end())


class NumListScanner:
    """Finds lists of numbers in one text, looking at every character a bounded number of times.

    A scan that fails at some character makes every list still open there fail too, so those are
    remembered and never tried again.
    """

    def __init__(self, text: str):
        self.text = text
        self.doomed: set[int] = set()
        self.plain_until = 0
        self.run_end = 0
        self._decode: Callable[[str, int], tuple[list, int]] | None = None

    def scan(self, at: int) -> tuple[list | np.ndarray | None, int] | None:
        """Values and end of the list of numbers at `at`; None to leave it to the grammar.

        The values are None if there are too many to hold.
        """
        short = short_list(self.text, at)
        if short is not None:
            return short
        if at < self.plain_until or at in self.doomed:
            return None
        if at >= self.run_end:
            self.run_end = self._numeric_until(at)
        if self.run_end - at < _LONG or not re.compile(_BEGINS_NUMERIC).match(self.text, at):
            return None
        if self._too_many(at):
            return None, at
        if self.run_end - at >= _VERY_LONG and "." in self.text[at : self.run_end]:
            from .number_arrays import read_array

            read = read_array(self.text, at, self.run_end)
            if read is not None:
                return read
        values, end = self._json(at)
        if values is not None and end <= self.run_end:
            return values, end
        if end >= self.run_end:
            self._doom(at, self.run_end)
            return None
        found = self._python_form(at)
        if found is None:
            self.plain_until = self.run_end
        return found

    def _numeric_until(self, at: int) -> int:
        """Where the characters that numbers and lists are made of end."""
        text = self.text
        while len(text) - at > _PIECE_SIZE:
            piece = text[at : at + _PIECE_SIZE].encode("ascii", "replace")
            if piece.translate(None, _NUMERIC_BYTES):
                break
            at += _PIECE_SIZE
        match = re.compile(_NUMBERS_ONLY).match(text, at)
        return match.end() if match else at

    def _too_many(self, at: int) -> bool:
        size = self.run_end - at
        return (size > MAX_ROWS and self.text.count("[", at, self.run_end) > MAX_ROWS) or (
            size > MAX_NUMBERS and self.text.count(",", at, self.run_end) > MAX_NUMBERS
        )

    def _json(self, at: int) -> tuple[list | None, int]:
        """The values and their end, or None and where the text stops being JSON."""
        if self._decode is None:
            from json import JSONDecoder

            self._decode = JSONDecoder().raw_decode
        try:
            return self._decode(self.text, at)
        except ValueError as error:
            return None, getattr(error, "pos", at)

    def _doom(self, at: int, end: int) -> None:
        """Remember the brackets in `[at, end)` that are still open at `end`."""
        opened: list[int] = []
        for match in re.compile(_BRACKET).finditer(self.text, at, end):
            if match.group() == "[":
                opened.append(match.start())
            elif opened:
                opened.pop()
        self.doomed.update(opened)

    def _python_form(self, at: int) -> tuple[list, int] | None:
        """A list with numbers in forms that JSON does not know: `1.`, `.5`, `1_0`, `+3`, `3,]`."""
        depth = 0
        for match in re.compile(_BRACKET).finditer(self.text, at, self.run_end):
            depth += 1 if match.group() == "[" else -1
            if depth == 0:
                end = match.end()
                break
        else:
            return None
        chunk = self.text[at:end]
        if "_" in chunk:
            if re.search(_BAD_UNDERSCORE, chunk):
                return None
            chunk = chunk.replace("_", "")
        if re.search(_NOT_PYTHON, chunk):
            return None
        chunk = re.sub(_TRAILING_COMMA, "]", chunk)
        for old, new in _REPLACED:
            chunk = chunk.replace(old, new)
        from json import loads

        try:
            return loads(chunk), end
        except (ValueError, RecursionError):
            return None


def first_depth(values: list | np.ndarray) -> int:
    """How deep the first elements of nested lists go."""
    depth = 0
    inner: object = values
    if not isinstance(values, list):
        return values.ndim
    while isinstance(inner, list):
        depth += 1
        inner = inner[0] if inner else None
    return depth


def find_ragged(node: NumList) -> tuple[Span, tuple[int, ...], str] | None:
    """The first row whose length or depth differs from the first one's.

    Returns the row's span, the shape that a row at that depth should have, and a message; None for
    a regular list. Works level by level, at C speed, and reads the text only to place the error.
    """
    if node.array is not None:
        return None
    level: list = [node.values]
    depth = 0
    while True:
        kinds = set(map(type, level))
        if list not in kinds:
            return None
        if len(kinds) > 1 or len(set(map(len, level))) > 1:
            return _describe_ragged(node, level, depth)
        level = list(chain.from_iterable(level))
        depth += 1


def _shape_of(value: object) -> tuple[int, ...]:
    shape = []
    while isinstance(value, list):
        shape.append(len(value))
        value = value[0] if value else None
    return tuple(shape)


def _describe_ragged(node: NumList, level: list, depth: int) -> tuple[Span, tuple[int, ...], str]:
    expected = level[0]
    size = _size(expected)
    index = next(index for index, value in enumerate(level) if _size(value) != size)
    value = level[index]
    shape = _shape_of(expected)
    span = _place(node, depth, index) or node.span
    if not isinstance(expected, list):
        message = f"a list where the elements before it are numbers: {_short(span.text)}"
    elif not isinstance(value, list):
        message = f"a number where the rows before it have {_elements(len(expected))}"
    else:
        message = f"this row has {_elements(len(value))}, the first row has {len(expected)}"
    return span, shape, message


def _size(value: object) -> int:
    return len(value) if isinstance(value, list) else -1


def _elements(count: int) -> str:
    return f"{count} element" if count == 1 else f"{count} elements"


def _place(node: NumList, depth: int, index: int) -> Span | None:
    """Where element `index` stands among all elements at `depth` (0: the list itself)."""
    text, start = node.span.text, node.span.start
    level, seen = 0, -1
    begin: int | None = None
    for match in re.finditer(_PIECE, text):
        piece = match.group()
        if piece[0] == "#":
            continue
        if piece == "]":
            level -= 1
            if level == depth and seen == index and begin is not None:
                return Span(node.span.source, start + begin, start + match.end())
        elif piece == ",":
            continue
        else:
            if level == depth and (piece == "[" or piece.strip(" \t\f\r\n()+-\\")):
                seen += 1
                if seen == index:
                    lead = len(piece) - len(piece.lstrip())
                    begin = match.start() + lead
                    if piece != "[":
                        return Span(
                            node.span.source, start + begin, start + begin + len(piece.strip())
                        )
            if piece == "[":
                level += 1
    return None
