"""Decimal numbers in a text, many at once, as the float64 that `float` makes of each.

Eight characters at a time are one 64-bit word, and every step works on all numbers of a block. A
number `M * 10**-e` with `M < 2**63` is a product of two pairs of floats whose error is bounded; if
both ends of that bound round to the same float64, that is the correctly rounded one. Whatever the
bound leaves open, and every other spelling, is marked and left to the caller.
"""

from __future__ import annotations

from functools import cache

import numpy as np

WINDOW = 32
"""How many characters must stand in the text before the first number: a window ends at a number's
end and may begin before it."""

_MAX_DIGITS = 24
_MAX_WHOLE = 18
_MAX_HEAD = 921
"""Of 24 digits, how much the first eight may be worth: `922 * 10**16` reaches `2**63`."""

_ZEROS = np.uint64(0x3030303030303030)
_SIXES = np.uint64(0x0606060606060606)
_HIGH = np.uint64(0xF0F0F0F0F0F0F0F0)
_LOW_OF_FOUR = np.uint64(0x000000FF000000FF)
_PLACES_LEFT = np.uint64(0x000F424000000064)
_PLACES_RIGHT = np.uint64(0x0000271000000001)
_SPLITTER = 134217729.0
_MARGIN = 2.0**-100
"""More than the error of the product, relative to it: about 2**-102.4 (twelve times 2**-106)."""

_DOT, _MINUS, _ZERO = 46, 45, 48


def _halves(value: float) -> tuple[float, float]:
    """Two floats of 26 bits whose sum is the value."""
    scaled = value * _SPLITTER
    high = scaled - (scaled - value)
    return high, value - high


@cache
def _powers_of_ten() -> tuple[np.ndarray, ...]:
    """10**-e for each count of digits: rounded, its halves, and what rounding took away."""
    rows = []
    for whole in (10**count for count in range(_MAX_DIGITS + 1)):
        power = 1 / whole
        top, bottom = power.as_integer_ratio()
        rest = (bottom - top * whole) / (bottom * whole)
        rows.append((power, *_halves(power), rest))
    return tuple(np.array(rows).T.copy())


@cache
def _whole_limits() -> tuple[np.ndarray, np.ndarray]:
    """For each count of digits after the point: 10**count, and the largest whole part that keeps
    all the digits together below 2**62."""
    powers = [10**count if count < 19 else 0 for count in range(_MAX_DIGITS + 1)]
    limits = [2**62 // power - 1 if power else 0 for power in powers]
    return np.array(powers), np.array(limits)


def _eight_digits(word: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """The numbers that eight characters each stand for; `seen` collects marks of other characters.

    The characters are already minus "0". Works in place.
    """
    scratch = word + _SIXES
    seen |= scratch
    seen |= word
    np.right_shift(word, 8, out=scratch)
    word *= 10
    word += scratch
    np.right_shift(word, 16, out=scratch)
    scratch &= _LOW_OF_FOUR
    scratch *= _PLACES_RIGHT
    word &= _LOW_OF_FOUR
    word *= _PLACES_LEFT
    word += scratch
    word >>= 32
    return word


def _keep_last(word: np.ndarray, count: np.ndarray) -> None:
    """Zero all but the last `count` characters of each word."""
    shift = (8 - np.clip(count, 0, 8)).astype(np.uint64)
    shift *= 8
    word >>= shift
    word <<= shift


def _digits_before(
    text: np.ndarray, ends: np.ndarray, counts: np.ndarray, seen: np.ndarray
) -> np.ndarray:
    """The number made by the last `counts` characters, at most 24, before each of `ends`.

    Where it reaches 2**63, `seen` gets a mark.
    """
    windows = np.ndarray((len(text) - WINDOW + 1,), f"V{WINDOW}", text, 0, (1,))
    words = windows[ends - WINDOW].view("<u8").reshape(-1, WINDOW // 8)
    least, most = int(counts.min()), int(counts.max())
    total: np.ndarray | None = None
    for position, place in enumerate((1, 10**8, 10**16)):
        passed = 8 * position
        if most <= passed:
            break
        word = words[:, 3 - position] ^ _ZEROS
        if least < passed + 8:
            _keep_last(word, counts - passed)
        number = _eight_digits(word, seen).view(np.int64)
        if total is None:
            total = number
            continue
        if position == 2:
            seen |= np.where(number > _MAX_HEAD, _HIGH, np.uint64(0))
        number *= place
        total += number
    assert total is not None, "some number has a digit"
    return total


def _find_points(text: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Where the decimal points stand, looked for among the first characters; -1 for none."""
    points = starts + 1
    pending = np.flatnonzero(text[points] != _DOT)
    if not len(pending):
        return points
    for _ in range(_MAX_WHOLE):
        places = points[pending] + 1
        points[pending] = places
        inside = places < ends[pending]
        points[pending[~inside]] = -1
        inside &= text[places] != _DOT
        pending = pending[inside]
        if not len(pending):
            return points
    points[pending] = -1
    return points


def _whole_parts(
    text: np.ndarray, starts: np.ndarray, points: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """What stands before the points, and where that is no number."""
    counts = points - starts
    if int(counts.max()) == 1:
        digits = text[starts] - np.uint8(_ZERO)
        return digits.astype(np.int64), digits > 9
    seen = np.zeros(len(starts), np.uint64)
    before = _digits_before(text, points, counts, seen)
    return before, (seen & _HIGH) != 0


def read_decimals(
    text: np.ndarray, starts: np.ndarray, ends: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The decimal numbers in `text[start:end]`, without blanks around them, and which are left to
    the caller.

    `text` holds characters as uint8, `WINDOW` of them before the first number and a few after the
    last; no part is empty. Reads `-?[0-9]+\\.[0-9]+` with up to 18 digits before the point and 24
    after it.
    """
    negative = text[starts] == _MINUS
    starts = starts + negative
    points = _find_points(text, starts, ends)
    unread = points == -1
    np.copyto(points, starts + 1, where=unread)
    counts = ends - points - 1
    unread |= counts < 1
    unread |= counts > _MAX_DIGITS
    np.clip(counts, 1, _MAX_DIGITS, out=counts)
    seen = np.zeros(len(starts), np.uint64)
    mantissas = _digits_before(text, ends, counts, seen)
    seen &= _HIGH
    unread |= seen != 0
    before, strange = _whole_parts(text, starts, points)
    powers, limits = _whole_limits()
    unread |= strange
    unread |= before > limits.take(counts)
    before *= powers.take(counts)
    mantissas += before
    values, uncertain = _scaled(mantissas, counts)
    unread |= uncertain
    values *= 1 - 2 * negative.astype(np.int8)
    return values, unread


def _scaled(mantissas: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`mantissas * 10**-places` rounded once, and where that is not certain."""
    power, power_high, power_low, power_rest = (table.take(places) for table in _powers_of_ten())
    high = mantissas.astype(np.float64)
    # A mantissa that is no number (marked already) may have reached 2**63.
    with np.errstate(invalid="ignore"):
        low = (mantissas - high.astype(np.int64)).astype(np.float64)
    product = high * power
    scratch = high * _SPLITTER
    left = scratch - high
    np.subtract(scratch, left, out=left)
    right = np.subtract(high, left, out=scratch)
    # What rounding took away from the product, exactly (Dekker).
    rest = left * power_high
    rest -= product
    left *= power_low
    rest += left
    power_high *= right
    rest += power_high
    right *= power_low
    rest += right
    high *= power_rest
    low *= power
    low += high
    rest += low
    margin = np.abs(product, out=scratch)
    margin *= _MARGIN
    least = rest - margin
    least += product
    rest += margin
    rest += product
    return rest, rest != least
