"""Diagnostics as plain data: what went wrong, where, and what to type instead.

Nothing here prints. Messages that take more than a line of code stand in `faults.txt`: blocks of a
code with a title, the message, and lines for `help`, `note`, `label`, `raises` and `named`, the
message with the name of a tensor, `it`. What PyTorch or
Python say there stands in lines `said`, of which the first counts whose conditions hold: `said
IndexError if name=argmax|argmin: {name}(): ...`. Codes are never reused; the first digit is the
phase (1 text, 2 names, 3 shapes and dtypes, 4 graph, 5 evaluation, 6 checks, 7 data files, 9
internal).
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import cache
from typing import Any

from .source import Span


class Exit(IntEnum):
    """The exit codes of every command."""

    OK = 0
    NO = 1
    USAGE = 2
    PROGRAM = 3
    EVALUATION = 4
    EMPTY = 5
    INTERNAL = 70
    INTERRUPTED = 130
    PIPE = 141

    @classmethod
    def worst(cls, codes: Iterable[Exit]) -> Exit:
        """The exit code of several results together."""
        found = set(codes)
        order = (cls.INTERNAL, cls.PROGRAM, cls.EVALUATION, cls.USAGE, cls.NO, cls.EMPTY)
        return next((code for code in order if code in found), cls.OK)


@dataclass(frozen=True, slots=True)
class Label:
    """A secondary place with a few words about it."""

    span: Span
    text: str


def labelled(span: Span | None, text: str) -> tuple[Label, ...]:
    """The label of a place; none where the place is not known."""
    return () if span is None else (Label(span, text),)


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error or warning.

    `message` is lower case without a full stop and names real shapes and values; `label` stands
    beside the primary span; `notes` explain; `helps` say what to type. `raises` is the class of
    the exception that PyTorch or Python raise there, where it is not the usual one of the code.
    """

    code: str
    message: str
    span: Span | None = None
    label: str = ""
    labels: tuple[Label, ...] = ()
    notes: tuple[str, ...] = ()
    helps: tuple[str, ...] = ()
    severity: str = "error"
    raises: str = ""

    @property
    def kind(self) -> str:
        return kinds()["E" + self.code[1:]]

    @property
    def exit_code(self) -> Exit:
        if self.code in ("E204", "E607"):
            return Exit.USAGE
        if self.code in ("E606", "E608"):
            return Exit.EVALUATION
        phase = self.code[1]
        if phase in "1234":
            return Exit.PROGRAM
        return {"6": Exit.NO, "9": Exit.INTERNAL}.get(phase, Exit.EVALUATION)


# What PyTorch or Python say, with blanks, the name of their exception or nothing, and the texts
# that facts must have for it.
Words = tuple[str, str, list[tuple[str, str]]]


class AutodiffError(Exception):
    """A failure of a program, its data or a command, carrying its `Diagnostic`.

    `code` (`E302`), `message`, `helps`, what to type instead, and `span`, the place in the program
    or None, are those of the diagnostic. Inside: `position` is the argument of a call that it is
    about, `callee` the function in Python's words (`Net.forward`), when those are known; `within`:
    an op refuses arguments that fit it; `which` is its block of `faults.txt`, `facts` are what the
    blanks there were filled with, `words` what others say."""

    position = -1
    callee = ""
    within = False
    which = ""
    facts: Mapping[str, Any] = {}
    words: Sequence[Words] = ()
    given: tuple[object, ...] | None = None  # what the exception of an `assert` holds

    def __init__(self, diagnostic: Diagnostic):
        super().__init__(diagnostic.message)
        self.diagnostic: Diagnostic = diagnostic

    @property
    def code(self) -> str:
        return self.diagnostic.code

    @property
    def message(self) -> str:
        return self.diagnostic.message

    @property
    def helps(self) -> tuple[str, ...]:
        return self.diagnostic.helps

    @property
    def span(self) -> Span | None:
        return self.diagnostic.span

    def amend(self, **changes: object) -> AutodiffError:
        """Add to the diagnostic in place (a span found by an outer layer, labels, helps)."""
        self.diagnostic = replace(self.diagnostic, **changes)  # type: ignore[arg-type]  # field names checked at run time by replace
        return self

    def told(self, given: tuple[object, ...]) -> AutodiffError:
        """The failure, with what a program that catches it gets."""
        self.given = given
        return self

    def __str__(self) -> str:
        span = self.span
        where = f"{span.source.name}:{span.line}:{span.column}: " if span else ""
        return "\n  help: ".join([f"{where}error[{self.code}]: {self.message}", *self.helps])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.diagnostic,)


class AutodiffValueError(AutodiffError, ValueError):
    """A failure where Python has a ValueError."""


class AutodiffTypeError(AutodiffError, TypeError):
    """A failure where Python has a TypeError."""


class AutodiffKeyError(AutodiffError, KeyError):
    """A failure where Python has a KeyError."""


def fail(
    code: str,
    message: str,
    span: Span | None = None,
    *,
    label: str = "",
    labels: tuple[Label, ...] = (),
    notes: tuple[str, ...] = (),
    help: str | tuple[str, ...] = (),
    raises: str = "",
    said: str = "",
) -> AutodiffError:
    """Build the error of a failure; the caller raises it. `said` is what PyTorch or Python say."""
    helps = (help,) if isinstance(help, str) else tuple(help)
    error = AutodiffError(
        Diagnostic(code, message, span, label, labels, notes, helps, raises=raises)
    )
    if said:
        error.words = [(said.replace("{", "{{").replace("}", "}}"), "", [])]
    return error


def blocks(*path: str) -> list[list[str]]:
    """The lines of each block of a text file of the package; blank lines part blocks."""
    with open(os.path.join(os.path.dirname(__file__), *path), encoding="utf-8") as file:
        return [block.split("\n") for block in file.read().strip("\n").split("\n\n")]


@cache
def kinds() -> dict[str, str]:
    """All codes with what they are called, from the headings of `catalogue/errors.txt`."""
    headings = (lines[0].partition(":")[0] for lines in blocks("catalogue", "errors.txt"))
    return dict(heading.split() for heading in headings)


def _blanks(text: str) -> list[str]:
    from string import Formatter

    return [field for _, field, _, _ in Formatter().parse(text) if field]


@cache
def faults() -> dict[str, list[str]]:
    """The blocks of `faults.txt` by their first line: the lines below it."""
    return {which: lines for which, *lines in blocks("faults.txt")}


@cache
def worded(which: str) -> tuple[str, list[tuple[str, str]], list[str], list[Words]]:
    """A block of `faults.txt`: the message, the lines below it by what they are, the names of the
    blanks in the order of the text, and what others say."""
    message, *more = faults()[which]
    lines, words, fields = [], [], _blanks(message)
    for line in more:
        head, _, text = line.partition(": ")
        part, _, options = head.partition(" ")
        if part == "said":
            kind, _, conditions = options.partition("if ")
            when = [c.partition("=")[::2] for c in conditions.split(", ") if c]
            words.append((text, kind.strip(), when))
            fields += [fact for fact, _ in when]
            fields += text.split()[1:] if text.startswith("@") else _blanks(text)
        else:
            lines.append((part, text))
            fields += _blanks(text)
    names = dict.fromkeys(re.split(r"[.:\[]", field)[0] for field in fields if field != "it")
    return message, lines, list(names), words


def fault(
    which: str,
    /,
    *facts: Any,
    span: Span | None = None,
    labels: tuple[Label, ...] = (),
    **named: Any,
) -> AutodiffError:
    """Build the error that `faults.txt` words: `which` is its code and title there, facts fill the
    blanks in the order in which the text names them, or by name; `span` is its place, `labels` are
    others."""
    message, lines, names, words = worded(which)
    rest = [name for name in names if name not in named]
    rest.sort(key=lambda name: int(name) if name.isdigit() else -1)
    named.update(zip(rest, facts, strict=True))
    parts: dict[str, list[str]] = {"help": [], "note": [], "raises": [], "label": []}
    for part, text in lines:
        if part == "named":
            continue
        filled = _filled(text, named)
        parts[part].append(filled if text.startswith("PyTorch: ") else _singular(filled))
    error = fail(
        which[:4],
        _singular(_filled(message, named)),
        span,
        label="".join(parts["label"]),
        labels=labels,
        help=tuple(parts["help"]),
        notes=tuple(parts["note"]),
        raises="".join(parts["raises"]),
    )
    error.which, error.facts, error.words = which, named, words
    return error


def named_message(error: AutodiffError, name: str) -> str:
    """The message with the name of the tensor it is about, where `faults.txt` has words for it."""
    lines = worded(error.which)[1] if error.which else ()
    found = next((text for part, text in lines if part == "named"), "")
    return _filled(found, {**error.facts, "it": name})


@cache
def filler() -> Any:
    """What fills blanks: tuples of numbers are shapes."""
    from string import Formatter

    class Filler(Formatter):
        def get_value(self, key: int | str, args: Any, kwargs: Any) -> Any:
            return kwargs[str(key)]

        def format_field(self, value: Any, form: str) -> str:
            if type(value) is tuple and not any(isinstance(part, str) for part in value):
                inside = ", ".join(map(str, value))  # numbers of NumPy as numbers
                return f"({inside},)" if len(value) == 1 else f"({inside})"
            return format(value, form)

    return Filler()


def _filled(line: str, facts: dict[str, Any]) -> str:
    return filler().vformat(line, (), facts) if "{" in line or "}" in line else line


_COUNTED = "entrie|classe|axe|element|row|column|channel|number|value|name|group|level|character"
_ONE = re.compile(rf"(?<![\w.,-])(there are )?\b1 ({_COUNTED})s\b")
_ENDINGS = {"entrie": "entry", "classe": "class", "axe": "axis"}


def _singular(text: str) -> str:
    """A count of one says so: `1 entries` is 1 entry."""
    return _ONE.sub(lambda m: f"{'there is ' if m[1] else ''}1 {_ENDINGS.get(m[2], m[2])}", text)


def refused(
    code: str, message: str, words: str, help: str, raises: str = "RuntimeError"
) -> AutodiffError:
    """A failure with the class and the words of PyTorch's exception."""
    return fail(code, message, help=help, notes=(f"PyTorch: {words}",), raises=raises)


def reason_of(error: Exception) -> str:
    """What the system says of a file that cannot be used."""
    number = getattr(error, "errno", None)
    return os.strerror(number).lower() if number else str(error)


@dataclass(slots=True, kw_only=True)
class Ended:
    """What the results of all commands can tell: what the program printed, whether it failed, and
    the exit code."""

    stdout: str = ""
    error: AutodiffError | None = None
    more_errors: list[AutodiffError] = field(default_factory=list)
    warnings: list[Diagnostic] = field(default_factory=list)

    @property
    def partial(self) -> bool:
        """Whether there are results beside the error."""
        return False

    @property
    def status(self) -> str:
        return "ok" if self.error is None else "error"

    @property
    def exit_code(self) -> Exit:
        return Exit.OK if self.error is None else self.error.diagnostic.exit_code
