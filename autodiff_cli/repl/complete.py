"""What could be typed next: names with shapes, operations with signatures, attributes, keyword
arguments, files, commands.

Only tables are read; nothing is evaluated, and the session does not change.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from ..autograd.tensor import Tensor
from ..errors import AutodiffError
from ..graph.registry import overloads
from ..language.runtime.attributes import ATTRIBUTES, OP_ATTRIBUTES
from ..language.runtime.names import builtin, known_names, member, names_of, op_function
from ..language.values.user_classes import Object
from ..language.values.values import Builtin, Namespace, OpFunction, UserFunction
from ..ops import public_names
from ..render.text import clip, format_shape
from .commands.settings import SETTINGS
from .commands.table import COMMANDS
from .show import summary

if TYPE_CHECKING:
    from .loop import Loop


class Candidate(NamedTuple):
    """`text` replaces the last `length` characters; `about` is asked only when it is shown."""

    text: str
    length: int
    about: Callable[[], str] = str


MOST = 400
LONGEST_INPUT = 20_000
KEYWORDS = (
    "and", "assert", "break", "class", "continue", "def", "del", "elif", "else", "False", "for",
    "if", "import", "in", "lambda", "None", "not", "or", "pass", "return", "True", "while",
    "with",
)  # fmt: skip
_DATA = (".npy", ".npz", ".csv", ".json")
_FILE = re.compile(r"\bload\(\s*[rf]?([\"'])([^\"'\n]*)\Z")
_DOTTED = re.compile(r"((?:[^\W\d]\w*\.)+|[)\]]\.)(\w*)\Z")
_WORD = re.compile(r"[^\W\d]\w*\Z")
_METHODS = (
    "add_", "backward", "clone", "detach", "detach_", "item", "mul_", "numpy", "register_hook",
    "requires_grad_", "retain_grad", "size", "sub_", "tolist", "zero_",
)  # fmt: skip


def candidates(before: str, loop: Loop) -> list[Candidate]:
    """What fits before the cursor, the likeliest first."""
    if len(before) > LONGEST_INPUT:
        return []
    match = matcher(loop.settings.fuzzy)
    line = before.rpartition("\n")[2]
    if before.lstrip().startswith(":"):
        found = _command(before.lstrip(), loop, match)
    elif file := _FILE.search(line):
        found = _files(file[2], match, _DATA)
    elif dotted := _DOTTED.search(line):
        found = _attributes(dotted[1], dotted[2], loop, match)
    else:
        found = _names(before, loop, match)
    result: dict[str, Candidate] = {}
    for candidate in found:
        result.setdefault(candidate.text, candidate)
    return list(result.values())[:MOST]


Matcher = Callable[[str, str], bool]


def matcher(fuzzy: bool) -> Matcher:
    """Whether a word is meant by what was typed: its beginning, or letters in their order."""

    def begins(typed: str, word: str) -> bool:
        return word.startswith(typed)

    def contains(typed: str, word: str) -> bool:
        letters = iter(word.lower())
        return all(letter in letters for letter in typed.lower())

    return contains if fuzzy else begins


# -- commands -------------------------------------------------------------------------------------


def _command(before: str, loop: Loop, match: Matcher) -> Iterator[Candidate]:
    name, space, rest = before[1:].partition(" ")
    if not space:
        yield from _words(name, COMMANDS, match, lambda found: COMMANDS[found].help)
        return
    chosen = COMMANDS.get(name)
    if chosen is None:
        return
    word = rest.rpartition(" ")[2]
    match chosen.completes:
        case "files":
            yield from _files(rest.lstrip(), match, (".expr", ".py", ".txt", ".json", ".dot"))
            if name == "save" and word:
                yield from _words(word, ["--asserts"], match)
        case "settings":
            yield from _settings(rest, match)
        case "list":
            yield from _words(word, ("leaves", "values", "defs"), match)
        case "help":
            yield from _words(word, [f":{c}" for c in COMMANDS], match)
            yield from _plain_names(word, loop, match)
        case "names":
            yield from _session_names(word, loop, match)


def _settings(rest: str, match: Matcher) -> Iterator[Candidate]:
    name, space, value = rest.lstrip().partition(" ")
    if not space:
        yield from _words(name, SETTINGS, match, lambda found: SETTINGS[found].help)
    elif name in SETTINGS and "|" in SETTINGS[name].values:
        yield from _words(value, SETTINGS[name].values.split("|"), match)


def _words(
    typed: str, words: Iterable[str], match: Matcher, about: Callable[[str], str] | None = None,
    end: str = "",
) -> Iterator[Candidate]:  # fmt: skip
    """The words that are meant, with what is said about each, and what is put behind it."""
    for word in words:
        if match(typed, word):
            said = partial(about, word) if about is not None else str
            yield Candidate(word + end, len(typed), said)


def _files(typed: str, match: Matcher, suffixes: tuple[str, ...]) -> Iterator[Candidate]:
    folder, _, name = typed.rpartition("/")
    place = os.path.expanduser(f"{folder}/") if "/" in typed else "."
    try:
        with os.scandir(place) as entries:
            found = sorted((e.name, e.is_dir()) for e in islice(entries, 5000))
    except (OSError, ValueError):
        return
    for entry, is_folder in found:
        if entry.startswith(".") and not name.startswith("."):
            continue
        if match(name, entry) and (is_folder or entry.lower().endswith(suffixes)):
            yield Candidate(entry + ("/" if is_folder else ""), len(name))


# -- names ----------------------------------------------------------------------------------------


def _names(before: str, loop: Loop, match: Matcher) -> Iterator[Candidate]:
    found = _WORD.search(before)
    word = found[0] if found else ""
    call = open_call(before)
    if call is not None:
        yield from _words(
            word, _parameters(call[0], loop), match, lambda _: "keyword argument", "="
        )
    yield from _session_names(word, loop, match)
    if word:
        yield from _plain_names(word, loop, match, own=False)
        yield from _words(word, KEYWORDS, match)


def _session_names(word: str, loop: Loop, match: Matcher) -> Iterator[Candidate]:
    names = loop.session.scope.names
    own = [name for name in names if name != "_"]
    yield from _words(word, own, match, lambda name: about(names.get(name), loop))


def _plain_names(word: str, loop: Loop, match: Matcher, own: bool = True) -> Iterator[Candidate]:
    if own:
        yield from _session_names(word, loop, match)
    if not word:
        return
    with loop.session.dialect():
        known = sorted(known_names(), key=len)
    yield from _words(word, known, match, signature)


def about(value: Any, loop: Loop) -> str:
    """A value in a few words, never computing anything."""
    if isinstance(value, Tensor):
        return f"{format_shape(tuple(value.shape))} {value.dtype.name}"
    return summary(value, loop.look)


def signature(name: str) -> str:
    """`softmax(input, dim, dtype=None)` of an operation; empty when the name is none."""
    found = op_function(name)
    return "" if found is None else clip(found.ops[0].signature(), 100)


# -- after a dot ----------------------------------------------------------------------------------


def _attributes(owner: str, word: str, loop: Loop, match: Matcher) -> Iterator[Candidate]:
    value = _value(owner.rstrip("."), loop) if owner[0] not in ")]" else None
    if isinstance(value, Namespace):
        prefix = "" if value.path in ("", "np") else f"{value.path}."
        names = sorted(_public(names_of(value)))
        yield from _words(word, names, match, lambda name: _op_signature(prefix + name))
        return
    if isinstance(value, Object):
        own = _own(value)
        yield from _words(word, _public(own), match, lambda name: about(own[name], loop))
        yield from _words(word, _public(value.cls.flat), match, lambda _: "of the class")
    if value is None or isinstance(value, Tensor):
        names = ["grad", "T", "shape", *sorted({*ATTRIBUTES, *OP_ATTRIBUTES})]
        yield from _words(word, names, match, lambda _: "attribute")
        if isinstance(value, Tensor) or word:
            methods = {*_METHODS, *(name for name in public_names() if "." not in name)}
            yield from _words(word, sorted(methods), match, signature, "(")


def _own(value: Any) -> dict[str, Any]:
    """What a value of a class holds, by name."""
    tables = [getattr(value, kind, {}) for kind in ("parameters", "buffers", "modules", "fields")]
    return {name: part for table in tables for name, part in table.items()}


def _public(names: Iterable[str]) -> list[str]:
    return [name for name in names if not name.startswith("_")]


def _op_signature(path: str) -> str:
    ops = overloads(path)
    return clip(ops[0].signature(), 100) if ops else ""


def _value(dotted: str, loop: Loop) -> Any:
    """What a dotted name is, without evaluating attributes of tensors."""
    head, *rest = dotted.split(".")
    names = loop.session.scope.names
    with loop.session.dialect():
        value = names[head] if head in names else builtin(head)
    for name in rest:
        if isinstance(value, Namespace):
            try:
                value = member(value, name)
            except AutodiffError:
                return None
        else:
            value = _own(value).get(name) if isinstance(value, Object) else None
    return value


# -- calls ----------------------------------------------------------------------------------------

_CALLED = re.compile(r"([^\W\d][\w.]*)\s*\Z")
_STRINGS = re.compile(r"\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'|#[^\n]*")


def open_call(before: str) -> tuple[str, int] | None:
    """The dotted name of the innermost call that is open at the cursor, and the number of
    arguments before it."""
    text = _STRINGS.sub(lambda match: "_" * len(match[0]), before[-LONGEST_INPUT:])
    depth = 0
    commas = 0
    for at in reversed(range(len(text))):
        char = text[at]
        if char in ")]}":
            depth += 1
        elif char in "([{":
            if depth:
                depth -= 1
                continue
            if char == "(":
                called = _CALLED.search(text, 0, at)
                if called and called[1] not in KEYWORDS:
                    return called[1], commas
            commas = 0
        elif char == "," and not depth:
            commas += 1
    return None


def _parameters(called: str, loop: Loop) -> list[str]:
    """Names of the arguments that a call takes."""
    value = _value(called, loop)
    if isinstance(value, UserFunction):
        return [*value.params.positional, *value.params.keyword]
    ops = value.ops if isinstance(value, OpFunction) else overloads(called.rpartition(".")[2])
    names: dict[str, None] = {}
    for op in ops:
        names.update((param.name, None) for param in op.params)
    return list(names)[1:] if "." in called and not isinstance(value, OpFunction) else list(names)


def call_signature(before: str, loop: Loop) -> str:
    """The signature of the call that the cursor is in."""
    call = open_call(before)
    if call is None:
        return ""
    value = _value(call[0], loop)
    if isinstance(value, UserFunction):
        names = ", ".join([*value.params.positional, *value.params.keyword])
        return f"{value.name}({names})"
    if isinstance(value, OpFunction):
        return value.ops[0].signature()
    if isinstance(value, Builtin) and not loop.session.python:
        return signature(value.name)  # Python's `sum` where it has an operation's arguments too
    if value is None and "." in call[0]:
        return _op_signature(call[0].rpartition(".")[2])
    return ""
