"""Did-you-mean: close names, and what other libraries' names are called here.

Invariant: the answer depends only on the words given (never on their order), and takes a few
milliseconds for thousands of candidates.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable
from fnmatch import fnmatchcase
from functools import cache

from .errors import AutodiffError, fail

_LONGEST = 80


def dotted(name: str) -> str:
    """What the spellings of a tensor inside another value have in common: `model[0].weight` and
    `model.0.weight`, `layers['w']` and `layers.w`."""
    return name if name.isidentifier() else ".".join(re.findall(r"[^][.'\"]+", name))


def named(pattern: str, names: Iterable[str]) -> list[str]:
    """The names that a glob or a name in any spelling means."""
    names = list(names)
    if pattern in names:
        return [pattern]
    found = [name for name in names if fnmatchcase(name, pattern)]
    plain = dotted(pattern)
    return found or [name for name in names if fnmatchcase(dotted(name), plain)]


def suggest(
    word: str, candidates: Iterable[str], limit: int = 3, own: Container[str] = ()
) -> list[str]:
    """Up to `limit` candidates that `word` was probably meant to be, the best first; those of
    `own` count as half an edit closer.

    A candidate is close when its edit distance (optimal string alignment, letter case ignored) is
    at most a third of the word's length, at least 1 and at most 3, or when one contains the other.
    Beside a good hit, others one edit further away are listed too. A one-letter word matches
    only the same letter in the other case: any two letters are one edit apart.
    """
    if not word or len(word) > _LONGEST:
        return []
    folded = word.lower()
    pool = {candidate for candidate in candidates if candidate and candidate != word}
    if len(word) == 1:
        return sorted(candidate for candidate in pool if candidate.lower() == folded)[:limit]
    closest = min(3, max(1, len(word) // 3))
    letters = set(folded)
    found: list[tuple[float, bool, int, str]] = []
    for candidate in pool:
        length = len(candidate)
        if length > _LONGEST:
            continue
        other = candidate.lower()
        contained = _containment(folded, other)
        distance: float = closest + 2
        # Lower bounds, and far cheaper: each edit adds a letter at most, and removes one at most.
        if abs(length - len(word)) <= closest + 1 >= len(letters.difference(other)):
            distance = distance_of(folded, other, closest + 1)
        if length == 1 and distance and not folded.startswith(other):
            continue
        if distance >= max(length, len(word)):  # no letter in common
            continue
        if contained is not None:
            distance = min(distance - 0.5, contained)
        if distance <= closest + 1:
            distance -= 0.5 * (candidate in own)
            found.append((distance, not likely(folded, other), abs(length - len(word)), candidate))
    found.sort()
    good = found and found[0][0] <= closest
    return [candidate for *_, candidate in found[:limit]] if good else []


def did_you_mean(close: list[str]) -> list[str]:
    """The line of help that offers close names, if there are any."""
    return [f"did you mean {' or '.join(f'`{name}`' for name in close)}?"] if close else []


def meant(word: str, known: Iterable[str], otherwise: str) -> str:
    """The line of help for a word that is unknown: the closest one, else `otherwise`."""
    return next(iter(did_you_mean(suggest(word, known, 1))), otherwise)


def unknown(message: str, word: str, known: Iterable[str], what: str = "tensors") -> AutodiffError:
    """E201: a word names nothing that the program has; with the closest name, or those it has."""
    known = list(known)
    has = f"it has: {', '.join(known[:12])}" if known else f"the program has no {what}"
    return fail("E201", message, help=meant(word, known, has))


def files_like(path: str) -> list[str]:
    """A file of the same folder that is called nearly so, if there is one."""
    folder, name = os.path.split(path)
    try:
        beside = os.listdir(folder or ".")[:2000]
    except (OSError, ValueError):
        return []
    return [os.path.join(folder, other) for other in suggest(name, beside, 1)]


def free_name(wanted: str, taken: set[str]) -> str:
    """A name that is not taken yet: `wanted`, or with a number behind it; it is taken then."""
    found, count = wanted, 1
    while found in taken:
        count += 1
        found = f"{wanted}_{count}"
    taken.add(found)
    return found


def meant_file(path: str) -> list[str]:
    """The line of help that offers it."""
    return did_you_mean(files_like(path))


def suggest_op(word: str, candidates: Iterable[str]) -> list[str]:
    """The same of operations: what other libraries call so comes first."""
    found = filter(None, [synonym(word), *suggest(word, candidates)])
    return list(dict.fromkeys(found))[:3]


def likely(word: str, other: str) -> bool:
    """Whether letters were swapped or left out: of equally close words the likelier slip."""
    rest = iter(other)
    return sorted(word) == sorted(other) or all(letter in rest for letter in word)


def _containment(word: str, other: str) -> float | None:
    """A score for words that contain each other (a prefix is better), else None."""
    if len(word) > 3 and word[0] + word[-1] == other[0] + other[-1] and likely(word, other):
        return 1.0  # letters are left out: `params`
    short, long = sorted((word, other), key=len)
    if len(short) < 3 or short not in long or 3 * len(short) < len(long):
        return None
    return 0.9 if long.startswith(short) else 1.0


def distance_of(left: str, right: str, most: int) -> int:
    """Insertions, deletions, replacements and swaps of neighbours between two words; `most + 1`
    when there are more than `most`.

    Of the table of distances of all beginnings a column at a time: bit i says whether the distance
    of `left[: i + 1]` is one more, or one fewer, than that of `left[:i]` (Hyyrö, 2003)."""
    if not left:
        return min(len(right), most + 1)
    last = 1 << len(left) - 1
    every = 2 * last - 1
    places: dict[str, int] = {}
    for i, char in enumerate(left):
        places[char] = places.get(char, 0) | 1 << i
    more, fewer, same, before, distance = every, 0, 0, 0, len(left)
    for char in right:
        here = places.get(char, 0)
        swapped = (~same & here) << 1 & before
        same = ((here & more) + more ^ more | here | fewer | swapped) & every
        up = fewer | every & ~(same | more)
        down = same & more
        distance += bool(up & last) - bool(down & last)
        up = up << 1 | 1
        more = (down << 1 | ~(same | up)) & every
        fewer = up & same
        before = here
    return min(distance, most + 1)


def synonym(word: str) -> str | None:
    """What to write here for a name of NumPy, JAX, TensorFlow, MATLAB or plain mathematics."""
    name, known = word.lower(), synonyms()
    prefixes = (other for other in known if other.endswith(".") and name.startswith(other))
    return known.get(name.removeprefix(next(prefixes, "")))


@cache
def synonyms() -> dict[str, str]:
    """What each name of other libraries is called here, from `synonyms.txt`; their prefixes, the
    longest first, are called nothing."""
    with open(os.path.join(os.path.dirname(__file__), "synonyms.txt"), encoding="utf-8") as file:
        lines = [line.rstrip("\n").partition(" = ") for line in file]
    return {name: here for here, _, names in lines for name in names.split()}
