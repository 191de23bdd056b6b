"""What programs use of `json`, `re` and `pprint`: functions of texts and of Python's own values."""

from __future__ import annotations

import json
import pprint
import re
from collections.abc import Callable, Iterator
from typing import Any

from ...errors import fail
from ...graph.state import STATE
from ..values.dialect import misfit
from ..values.exceptions import EXCEPTIONS, Raised
from ..values.formatting import MAX_TEXT, represent, too_long
from ..values.housekeeping import count_step
from ..values.user_classes import UserClass, library_class
from ..values.values import builtins_of


class _Printer(pprint.PrettyPrinter):
    """Lays out the containers; what they hold is written as it is everywhere."""

    def format(
        self, value: Any, context: dict[int, int], maxlevels: int, level: int
    ) -> tuple[str, bool, bool]:
        if type(value) in (dict, list, tuple):
            return super().format(value, context, maxlevels, level)
        return str(represent(value)), True, False


def _bounded(value: Any, indent: Any) -> None:
    """E505 for a value whose text would have no end, however it is laid out."""
    represent(value)
    if indent is not None and not (isinstance(indent, int) and 0 <= indent <= 100):
        raise fail("E203", "an indent is a number of 0 to 100 spaces here", help="indent=4")


def _pretty(
    value: Any, *, indent: Any = 1, width: Any = 80, depth: Any = None, **layout: Any
) -> str:
    _bounded(value, indent)
    return _Printer(indent, width, depth, **layout).pformat(value)


def _pretty_print(value: Any, **layout: Any) -> None:
    STATE.write(_pretty(value, **layout) + "\n")


# -- json -----------------------------------------------------------------------------------------


def _loads(text: Any) -> Any:
    if not isinstance(text, str):
        raise misfit("json.loads() takes a string, not", text, "a string")
    return _guarded(json.loads, text)


def _dumps(value: Any, *, indent: Any = None, sort_keys: Any = False) -> Any:
    _bounded(value, indent)
    return _guarded(json.dumps, value, indent=indent, sort_keys=sort_keys, default=_no_json)


def _no_json(value: Any) -> Any:
    raise misfit("JSON has no form for", value, "lists, dicts, numbers, strings: `x.tolist()`")


def _guarded(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A call of Python's; it fails as the program would see it fail."""
    try:
        return function(*args, **kwargs)
    except (ValueError, TypeError, re.error, OverflowError) as error:
        kind = type(error)
        if kind in _ERRORS:
            value = _ERRORS[kind].__new__(_ERRORS[kind])
            _tell(value, error)
        else:
            value = EXCEPTIONS[kind.__name__](str(error))
        raise Raised(value, None) from None
    except RecursionError:
        raise fail("E505", "text of too many levels", help="nest less deeply") from None


def _error(kind: Any, base: str) -> UserClass:
    """The class of an error of Python's that knows where in a text it is."""

    def init(self: Any, *args: Any) -> None:
        _tell(self, kind(*args))

    return library_class(kind.__name__, [EXCEPTIONS[base]], {"__init__": init})


def _tell(value: Any, error: Exception) -> None:
    value.fields.update(vars(error), args=error.args)


_ERRORS: dict[Any, Any] = {
    json.JSONDecodeError: _error(json.JSONDecodeError, "ValueError"),
    re.error: _error(re.error, "Exception"),
}


# -- re -------------------------------------------------------------------------------------------


def _matches(pattern: Any, string: Any) -> Iterator[re.Match[str]]:
    """Where a pattern is found; together they are no endless text."""
    for part in (pattern, string):
        if not isinstance(part, str):
            raise misfit("patterns and what they are looked for in are strings, not", part, "text")
    found = 0
    for match in _guarded(re.compile, pattern).finditer(string):
        found += sum(len(part or "") for part in (match.group(), *match.groups()))
        if found > MAX_TEXT:
            raise too_long()
        count_step()
        yield match


def _find(pattern: Any, string: Any) -> list[Any]:
    return [
        match.group() if not parts else parts[0] if len(parts) == 1 else parts
        for match in _matches(pattern, string)
        for parts in [match.groups("")]
    ]


def _split(pattern: Any, string: Any) -> list[Any]:
    pieces: list[Any] = []
    end = 0
    for match in _matches(pattern, string):
        pieces += [string[end : match.start()], *match.groups()]
        end = match.end()
    return [*pieces, string[end:]]


def _substitute(pattern: Any, by: Any, string: Any) -> str:
    if not isinstance(by, str):
        raise fail("E203", "re.sub() puts strings in place here", help="loop over re.split()")
    pieces, end, size = [], 0, 0
    plain = "\\" not in by  # nothing to expand
    for match in _matches(pattern, string):
        if len(by) * len(string) > 10 * MAX_TEXT or size > MAX_TEXT:
            raise too_long()
        piece = by if plain else _guarded(match.expand, by)
        pieces += [string[end : match.start()], piece]
        size += len(piece)
        end = match.end()
    return "".join([*pieces, string[end:]])


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "json.dumps": _dumps,
    "json.loads": _loads,
    "pprint.pformat": _pretty,
    "pprint.pprint": _pretty_print,
    "re.findall": _find,
    "re.split": _split,
    "re.sub": _substitute,
}
MEMBERS = {
    **builtins_of(_FUNCTIONS),
    "json.JSONDecodeError": _ERRORS[json.JSONDecodeError],
    "re.error": _ERRORS[re.error],
}
