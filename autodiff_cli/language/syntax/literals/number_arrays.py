"""Long regular lists of floats: from their text straight to one array.

The commas and brackets give the shape, `decimals` reads the numbers between them, and the few that
it leaves open are read one by one. Whatever is not a regular list of floats here (ragged, mixed
with integers or something else, wrong) is None, and read as any other list.
"""

from __future__ import annotations

import re

import numpy as np

from .decimals import WINDOW, read_decimals

_BLOCK = 16_384
"""Numbers read at a time: their intermediate arrays stay in the processor's cache."""

_FIRST_PIECE, _PIECE = 1 << 14, 1 << 18
_AFTER = 16
_MAX_BLANKS = 64
_MAX_DIMENSIONS = 32
_SPACE, _COMMA, _OPEN, _CLOSE = 32, 44, 0x5B, 0x5D
_BLANK = np.zeros(256, bool)
_BLANK[[9, 10, 13, 32]] = True

_DIGITS = r"[0-9](?:_?[0-9])*+"
_NUMBER = (
    rf"[-+]?[ \t\r\n]*+(?:(?:(?:{_DIGITS})?\.{_DIGITS}|{_DIGITS}\.)(?:[eE][-+]?{_DIGITS})?"
    rf"|{_DIGITS}[eE][-+]?{_DIGITS})"
)
"""A float as the language spells it, with its sign."""

_MAX_LENGTH = 4000


class _NotNumbers(Exception):
    """The text is something else than a regular list of numbers in usual forms."""


def read_array(text: str, at: int, until: int) -> tuple[np.ndarray, int] | None:
    """The list of numbers that begins with the bracket at `at`, and its end, before `until`.

    Looks at few characters beyond the list's end. None where the list is not regular, or holds
    anything but numbers.
    """
    try:
        found = _marks(text, at, until)
        if found is None:
            return None
        characters, marks = found
        starts, ends, shape = _parts(characters, marks)
        array = _numbers(characters, starts, ends)
    except _NotNumbers:
        return None
    return array.reshape(shape), at + int(marks[-1]) + 1 - WINDOW


# ---- commas and brackets -----------------------------------------------------------------------


def _marks(text: str, at: int, until: int) -> tuple[np.ndarray, np.ndarray] | None:
    """The list's characters after `WINDOW` blanks, and where its commas and brackets stand."""
    characters = np.empty(WINDOW + until - at + _AFTER, np.uint8)
    characters[:WINDOW] = _SPACE
    found: list[np.ndarray] = []
    depth, place, size = 0, WINDOW, _FIRST_PIECE
    while at < until:
        try:
            encoded = text[at : min(at + size, until)].encode("ascii")
        except UnicodeEncodeError:
            return None
        piece = characters[place : place + len(encoded)]
        piece[:] = np.frombuffer(encoded, np.uint8)
        brackets = piece - np.uint8(_OPEN)
        marked = brackets <= _CLOSE - _OPEN
        turns = np.flatnonzero(marked)
        marked |= piece == _COMMA
        marks = np.flatnonzero(marked)
        found.append(marks + place)
        if len(turns):
            depths = np.cumsum(_OPEN + 1 - piece[turns].astype(np.int64)) + depth
            closing = turns[depths == 0]
            if len(closing):
                found[-1] = found[-1][marks <= closing[0]]
                place += len(encoded)
                characters[place : place + _AFTER] = _SPACE
                return characters, np.concatenate(found)
            depth = int(depths[-1])
        at += len(encoded)
        place += len(encoded)
        size = min(2 * size, _PIECE)
    return None


def _parts(
    characters: np.ndarray, marks: np.ndarray
) -> tuple[np.ndarray, np.ndarray, tuple[int, ...]]:
    """Where the numbers begin and end, with blanks around them, and the shape of the list."""
    kinds = characters[marks]
    left, right = marks[:-1] + 1, marks[1:]
    turns = np.flatnonzero(kinds != _COMMA)
    if len(turns) == 2:
        starts, ends = left, right
        if len(starts) > 1 and _all_blank(characters, left[-1:], right[-1:]):
            starts, ends = starts[:-1], ends[:-1]
        return starts, ends, (len(starts),)
    before, after = kinds[:-1], kinds[1:]
    if np.any((before == _CLOSE) & (after == _OPEN)):
        raise _NotNumbers
    numeric = (before != _CLOSE) & (after != _OPEN)
    last = np.flatnonzero((before == _COMMA) & (after == _CLOSE))
    numeric[last[_blank(characters, left[last], right[last])]] = False
    others = np.flatnonzero(~numeric)
    if not _all_blank(characters, left[others], right[others]):
        raise _NotNumbers
    return left[numeric], right[numeric], _shape(kinds, turns, numeric)


def _shape(kinds: np.ndarray, turns: np.ndarray, numeric: np.ndarray) -> tuple[int, ...]:
    """The shape that the brackets tell; `numeric` says after which marks a number comes."""
    opening = kinds[turns] == _OPEN
    depths = np.cumsum(np.where(opening, 1, -1))
    levels = int(depths.max())
    if levels > _MAX_DIMENSIONS:
        raise _NotNumbers
    shape: list[int] = []
    # A closing bracket leaves the depth one less than its list's.
    children = np.cumsum(numeric)
    rows = np.flatnonzero(~opening & (depths == levels - 1))
    # Between a row's brackets stand all its numbers, and no number stands elsewhere.
    closed = children[turns[rows] - 1]
    opened = np.flatnonzero(opening & (depths == levels))
    if np.any(children[turns[opened]] - numeric[turns[opened]] != np.append(0, closed[:-1])):
        raise _NotNumbers
    if closed[-1] != children[-1]:
        raise _NotNumbers
    shape.append(_same(np.diff(closed, prepend=0)))
    for level in range(levels - 1, 0, -1):
        outer = np.flatnonzero(~opening & (depths == level - 1))
        shape.append(_same(np.diff(np.searchsorted(rows, outer), prepend=0)))
        rows = outer
    return tuple(reversed(shape))


def _same(sizes: np.ndarray) -> int:
    size = int(sizes[0])
    if size == 0 or np.any(sizes != size):
        raise _NotNumbers
    return size


# ---- blanks ------------------------------------------------------------------------------------


def _trim(
    characters: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The parts between two marks without the blanks around them; one of blanks only becomes
    empty."""
    starts = starts + _BLANK[characters[starts]]
    pending = np.flatnonzero(_BLANK[characters[starts]])
    for _ in range(_MAX_BLANKS):
        if not len(pending):
            break
        starts[pending] += 1
        pending = pending[_BLANK[characters[starts[pending]]]]
    else:
        raise _NotNumbers
    pending = np.flatnonzero(_BLANK[characters[ends - 1]] & (starts < ends))
    if len(pending):
        ends = ends.copy()
    for _ in range(_MAX_BLANKS):
        if not len(pending):
            return starts, ends
        ends[pending] -= 1
        pending = pending[_BLANK[characters[ends[pending] - 1]]]
    raise _NotNumbers


def _blank(characters: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Which parts hold nothing but blanks."""
    starts, ends = _trim(characters, starts, ends)
    return starts == ends


def _all_blank(characters: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> bool:
    return bool(_blank(characters, starts, ends).all())


# ---- numbers -----------------------------------------------------------------------------------


def _numbers(characters: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """All numbers, flat."""
    values = np.empty(len(starts))
    for begin in range(0, len(starts), _BLOCK):
        block = slice(begin, begin + _BLOCK)
        values[block] = _read_block(characters, starts[block], ends[block])
    return values


def _read_block(characters: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    starts, ends = _trim(characters, starts, ends)
    if np.any(starts == ends):
        raise _NotNumbers
    values, unread = read_decimals(characters, starts, ends)
    places = np.flatnonzero(unread).tolist()
    if len(places) > len(starts) // 4 + 16:
        raise _NotNumbers
    match_number = re.compile(_NUMBER).fullmatch
    for place in places:
        number = characters[starts[place] : ends[place]].tobytes().decode("ascii")
        if len(number) > _MAX_LENGTH or match_number(number) is None:
            raise _NotNumbers
        values[place] = float("".join(number.split()))
    return values
