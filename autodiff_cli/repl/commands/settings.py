"""`:set`: what can be changed while the session runs."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ...graph.dtypes import DTYPES
from ...suggest import meant
from ..entries import Problem

if TYPE_CHECKING:
    from ..loop import Loop


_DIGITS = re.compile("[0-9]{1,20}")


class Setting(NamedTuple):
    """`convert` makes the value of a text, or raises ValueError with what it should be."""

    name: str
    values: str
    help: str
    convert: Callable[[str], Any]


def _choice(*words: str) -> Callable[[str], str]:
    def convert(text: str) -> str:
        if text not in words:
            raise ValueError(f"one of {', '.join(words)}")
        return text

    return convert


def _switch(text: str) -> bool:
    found = {"on": True, "off": False, "true": True, "false": False}.get(text.lower())
    if found is None:
        raise ValueError("on or off")
    return found


def _number(low: int, high: int) -> Callable[[str], int]:
    def convert(text: str) -> int:
        if not _DIGITS.fullmatch(text) or not low <= int(text) <= high:
            raise ValueError(f"a whole number from {low} to {high}")
        return int(text)

    return convert


def _prompt(text: str) -> str:
    if not text.isprintable() or len(text) > 40:
        raise ValueError("a short text on one line")
    return text.strip("'\"") + ("" if text.endswith((" ", "'", '"')) else " ")


_TABLE = (
    Setting("echo", "short|full|none", "what an assignment prints", _choice("short", "full",
            "none")),
    Setting("hint", "on|off", "shape and value while typing", _switch),
    Setting("fuzzy", "on|off", "completion of letters with others between them", _switch),
    Setting("precision", "N", "significant digits", _number(1, 17)),
    Setting("max-elements", "N", "larger tensors are summed up", _number(0, 10**6)),
    Setting("sci", "on|off", "numbers in scientific notation", _switch),
    Setting("nan", "warn|error|ignore", "what a NaN or an infinity is",
            _choice("warn", "error", "ignore")),
    Setting("dtype", "float64|float32|float16", "the dtype of plain numbers, in an empty session",
            _choice("float64", "float32", "float16")),
    Setting("prompt", "TEXT", "what stands before the cursor", _prompt),
)  # fmt: skip

SETTINGS: dict[str, Setting] = {setting.name: setting for setting in _TABLE}


def change(loop: Loop, words: str) -> None:
    """`:set` lists, `:set NAME` shows, `:set NAME VALUE` changes."""
    name, _, value = words.partition(" ")
    if not name:
        from .inspect import columns

        rows = [(f"{s.name} {_shown(loop, s.name)}", f"{s.help} ({s.values})") for s in _TABLE]
        for line in columns(rows, loop):
            loop.say(line)
        return
    name, equals, rest = name.partition("=")
    setting = SETTINGS.get(name)
    if setting is None:
        there = f"there are: {', '.join(SETTINGS)}"
        raise Problem(f"there is no setting `{name[:60]}`", meant(name, SETTINGS, there))
    value = rest if equals else value.strip()
    if not value:
        loop.say(f"{name} {_shown(loop, name)}   {setting.help} ({setting.values})")
        return
    try:
        converted = setting.convert(value)
    except ValueError as error:
        raise Problem(f"`{name}` takes {error}, not `{value[:60]}`") from None
    if name == "dtype":
        _set_dtype(loop, converted)
    else:
        setattr(loop.settings, name.replace("-", "_"), converted)
    loop.say(f"{name} {_shown(loop, name)}")


def _set_dtype(loop: Loop, name: str) -> None:
    session = loop.session
    if session.entries:
        raise Problem(
            "the dtype of numbers can be chosen only before the first statement",
            "`:reset` begins anew",
        )
    session.options = replace(session.options, dtype=name)
    session.world["default_dtype"] = DTYPES[name]


def _shown(loop: Loop, name: str) -> str:
    if name == "dtype":
        return str(loop.session.world["default_dtype"].name)
    value = getattr(loop.settings, name.replace("-", "_"))
    return ("on" if value else "off") if isinstance(value, bool) else str(value).strip()


def whole_number(words: str, command: str, default: int = 1) -> int:
    """The count that `:undo 3` gives."""
    if not words:
        return default
    if not _DIGITS.fullmatch(words) or not 0 < int(words) <= 10**6:
        raise Problem(f"`:{command}` takes a number of entries, not `{words[:60]}`")
    return int(words)
