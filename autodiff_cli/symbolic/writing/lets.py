"""Parts of a formula that occur more than once, named: `t = tanh(x)`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from functools import lru_cache
from typing import Any

from .expression import (
    COLUMN,
    KINDS,
    Call,
    Expression,
    Infix,
    Listed,
    Name,
    Negative,
    Number,
    Transposed,
    axes_of,
    is_column,
)

MOST_LETS = 6
LEAST_SAVED = 3  # operators and calls that a name must save; one less where there are names
LETTERS = {
    "softmax": "p", "sigmoid": "p", "sub": "r", "tanh": "t", "inv": "M", "norm": "s", "sum": "s",
    "exp": "e", "outer": "M", "diag": "M", "solve": "u",
}  # fmt: skip
FREE = (Name, Number, Listed)
UNNAMED = (Transposed, Negative, Listed)
SPARE = ("u", "v", "w", "z", "h", "q", "a", "b", "c", "d", *map("t{}".format, range(1, 99)))


def cost_of(shown: Any) -> int:
    """The operators and calls of an expression."""
    cost: int | None = shown.cost
    if cost is None:
        own, inner = _opened(shown)
        cost = shown.cost = own + sum(map(cost_of, inner))
    return cost


def is_root(shown: Any) -> bool:
    """Whether something is the root of a number, or times or over another one, or a fraction: a
    number too."""
    if isinstance(shown, Infix) and shown.key in ("mul", "div"):
        return all(isinstance(x, Number) or is_root(x) for x in (shown.right, shown.left))
    return isinstance(shown, Call) and shown.function == "sqrt" and mentioned(shown) <= {"pi"}


def _opened(shown: Any) -> tuple[int, Sequence[Any]]:
    """The operators and calls of an expression by itself, and its parts."""
    found: tuple[int, Sequence[Any]] | None = shown.opened
    if found is None:
        own = int(not isinstance(shown, Listed))
        if isinstance(shown, Call) and shown.function == "einsum":
            own = len(shown.arguments) - 1  # the products that it is
        elif isinstance(shown, Negative):
            own = int(not leads_with_number(shown.inner))
        found = shown.opened = (0, ()) if is_root(shown) else (own, parts(shown))
    return found


def leads_with_number(shown: Any) -> bool:
    while isinstance(shown, Infix) and shown.key in ("mul", "div", "matmul"):
        shown = shown.left
    return isinstance(shown, Number)


@lru_cache(1 << 12)
def cost_with_lets(shown: Any) -> int:
    """The operators and calls of an expression once what is repeated is named."""
    rest, lets = with_lets(shown, ())
    return cost_of(rest) + sum(cost_of(part) for _, part in lets)


@lru_cache(1 << 12)
def distinct_cost(shown: Any) -> int:
    """The operators and calls of an expression, equal parts counted once."""
    seen: set[Any] = set()

    def count(part: Any) -> int:
        if not cost_of(part) or part in seen:
            return 0
        seen.add(part)
        own, inner = _opened(part)
        return own + sum(map(count, inner))

    return count(shown)


def with_lets(
    shown: Expression, taken: Container[str], lines: int = 1
) -> tuple[Expression, list[tuple[str, Expression]]]:
    """An expression, and the parts of it that got names, in an order in which they can be made;
    `lines`: how many it has already."""
    least = LEAST_SAVED - (lines > 1)
    lets: list[tuple[str, Any]] = []
    names: set[str] = set()
    for _ in range(MOST_LETS * lines):
        part = _repeated(shown, least)
        if part is None:
            break
        name = letter(part, taken, names)
        names.add(name)
        count = axes_of(part)
        sizes = None if count is None else (0,) * count  # that are not known
        stands = Name(name, COLUMN if is_column(part) else sizes)
        shown = _replaced(shown, part, stands)
        lets = [(other, _replaced(inner, part, stands)) for other, inner in lets]
        lets.append((name, part))
    return shown, in_order(lets)


def in_order(lets: list[tuple[str, Any]]) -> list[tuple[str, Expression]]:
    """Parts that have names in an order in which they can be made."""
    ordered: list[tuple[str, Expression]] = []
    while lets:
        names = {name for name, _ in lets}
        ready = next(
            (let for let in lets if mentioned(let[1]).isdisjoint(names - {let[0]})), lets[0]
        )
        lets.remove(ready)
        ordered.append(ready)
    return ordered


def _repeated(shown: Any, least: int) -> Any:
    """The part whose name saves most; None where none saves enough."""
    counts: Counter[Any] = Counter()

    def count(part: Any) -> None:
        if cost_of(part):
            for inner in _opened(part)[1]:
                count(inner)
            if type(part) not in UNNAMED:
                counts[part] += 1

    count(shown)
    best: tuple[int, int, Any] | None = None
    for part, uses in counts.items():
        cost = cost_of(part)
        saved = (uses - 1) * cost
        enough = saved >= least or (saved == 2 and cost == 1)
        if enough and (best is None or (saved, cost) > best[:2]):
            best = saved, cost, part
    return None if best is None else best[2]


def parts(shown: Any) -> list[Any]:
    """The expressions that are fields of one, or stand in a field."""
    found = []
    for field in shown:
        if type(field) in KINDS:
            found.append(field)
        elif type(field) is tuple:
            found += [part for part in field if type(part) in KINDS]
    return found


def _replaced(shown: Any, part: Any, by: Any) -> Any:
    return mapped(shown, lambda found: by if found == part else None)


def with_name(shown: Any, name: str, part: Any) -> Any:
    """An expression in which a name is what it stands for."""
    return mapped(shown, lambda x: part if type(x) is Name and x.text == name else None)


def renamed(shown: Any, names: Mapping[str, str]) -> Any:
    """With other names."""

    def change(part: Any) -> Any:
        return part._replace(text=names.get(part.text, part.text)) if type(part) is Name else None

    return mapped(shown, change)


def mapped(shown: Any, change: Callable[[Any], Any]) -> Any:
    """With the parts, from the whole on, for which `change` gives something replaced by that."""
    if type(shown) is tuple:
        return tuple([mapped(part, change) for part in shown])
    if type(shown) not in KINDS:
        return shown
    found = change(shown)
    return shown._make([mapped(field, change) for field in shown]) if found is None else found


def mentioned(shown: Any) -> set[str]:
    """The names in an expression, or in several."""
    return set(uses_of(shown))


def uses_of(shown: Any) -> list[str]:
    """The names in an expression, or in several, as often as they stand there."""
    if isinstance(shown, Name):
        return [shown.text]
    inner = shown if type(shown) is tuple else parts(shown)
    return [name for part in inner for name in uses_of(part)]


def letter(part: Any, taken: Container[str], names: Container[str]) -> str:
    """A name for a part of a formula that is not taken."""
    wanted = (*([LETTERS[_kind(part)]] if has_letter(part) else []), *SPARE)
    return next(name for name in wanted if name not in taken and name not in names)


def has_letter(part: Any) -> bool:
    """Whether what a part is usually has a certain letter."""
    return _kind(part) in LETTERS


def _kind(part: Any) -> str:
    return str(part.function if isinstance(part, Call) else getattr(part, "key", ""))
