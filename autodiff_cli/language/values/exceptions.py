"""Exceptions of programs: the classes that `raise` and `except` name, and the exception that a
failure here would be in Python.

A failure of the limits, of the text, or of something that this language lacks is no exception:
catching it would give another result than Python's.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import ContextDecorator
from typing import Any

from ...errors import (
    AutodiffError,
    AutodiffKeyError,
    AutodiffTypeError,
    AutodiffValueError,
    Diagnostic,
)
from ...graph.state import STATE
from ...source import Span
from ..errors.pytorch_words import HINTS, said
from .formatting import represent, text
from .user_classes import Object, UserClass, library_class


class ErrorValue(Object):
    """A value of an exception class."""

    def __new__(cls, *args: Any) -> Any:
        self = super().__new__(cls)
        self.fields["args"] = args
        return self


def _represented(self: Any) -> str:
    inside = ", ".join(represent(a) for a in self.fields["args"])
    return f"{self.cls.name}({inside})"


def _said(self: Any) -> str:
    args = self.fields["args"]
    if len(args) != 1:
        return represent(args) if args else ""
    return represent(args[0]) if EXCEPTIONS["KeyError"] in self.cls.line else text(args[0])


class Raised(AutodiffError):
    """A failure that the program raised, with the exception's value."""

    def __init__(self, value: ErrorValue, span: Span | None):
        words, helps = value.describe_text(), ("this is the program's own error",)
        self.value, self.shown = value, f"{value.cls.name}{f': {words}' if words else ''}"
        super().__init__(Diagnostic("E212", f"the program raised {self.shown}", span, helps=helps))


def _init(self: ErrorValue, *args: Any) -> None:
    self.fields["args"] = args
    if EXCEPTIONS["StopIteration"] in self.cls.line:
        self.fields["value"] = args[0] if args else None


_METHODS: dict[str, Callable[..., Any]] = {
    "__init__": _init,
    "__repr__": _represented,
    "__str__": _said,
    "with_traceback": lambda self, traceback: self,
    "add_note": lambda self, note: self.fields.setdefault("__notes__", []).append(note),
}


# The classes below each class.
_BELOW = {
    "BaseException": "Exception KeyboardInterrupt GeneratorExit SystemExit",
    "Exception": """
        RuntimeError ValueError TypeError LookupError ArithmeticError AttributeError
        BufferError EOFError MemoryError ReferenceError SyntaxError SystemError
        StopAsyncIteration AssertionError NameError StopIteration ImportError OSError
        UnpicklingError Warning
    """,
    "RuntimeError": "NotImplementedError RecursionError _LinAlgError GradcheckError",
    "ValueError": "UnicodeError AxisError LinAlgError",
    "LookupError": "IndexError KeyError",
    "ArithmeticError": "ZeroDivisionError OverflowError FloatingPointError",
    "AttributeError": "FrozenInstanceError",
    "NameError": "UnboundLocalError",
    "ImportError": "ModuleNotFoundError",
    "OSError": """
        FileNotFoundError IOError TimeoutError PermissionError FileExistsError
        ConnectionError
    """,
    "Warning": "UserWarning DeprecationWarning FutureWarning RuntimeWarning",
}


def _classes() -> dict[str, UserClass]:
    found = {"BaseException": library_class("BaseException", [], _METHODS, ErrorValue)}
    for base, names in _BELOW.items():
        found.update((name, library_class(name, [found[base]], {})) for name in names.split())
    for name in ("__traceback__", "__cause__", "__context__"):
        found["BaseException"].names[name] = None
    return found


EXCEPTIONS = _classes()

# By code, what PyTorch or Python raise there where no more is known, if not a RuntimeError.
_KINDS = {
    "E107": "ValueError",
    "E201": "NameError",
    "E202": "NameError",
    "E205": "TypeError",
    "E206": "UnboundLocalError",
    "E207": "AttributeError",
    "E208": "TypeError",
    "E209": "ModuleNotFoundError",
    "E210": "KeyError",
    "E211": "ValueError",
    "E304": "IndexError",
    "E305": "IndexError",
    "E503": "_LinAlgError",
    "E507": "RecursionError",
    "E601": "AssertionError",
    "E602": "GradcheckError",
}
_NEVER = frozenset({"E203", "E505", "E506", "E508", "E900"})


def class_of(error: AutodiffError) -> UserClass | None:
    """The exception class that a failure is for programs; None when they cannot catch it."""
    if isinstance(error, Raised):
        return error.value.cls
    if error.diagnostic.raises:
        return EXCEPTIONS[error.diagnostic.raises]
    code = error.code
    known = said(error)
    if code == "E203" and known is not None:
        return EXCEPTIONS[known[1]]  # PyTorch refuses it too
    if code in _NEVER or (code[1] in "17" and code not in _KINDS):
        return None
    if error.which == "E207 member-not-here":
        return None  # PyTorch may have it
    cause = type(error.__context__).__name__
    if known is not None and known[1]:
        return EXCEPTIONS[known[1]]
    if cause in EXCEPTIONS and code != "E503":  # the kernels of PyTorch's ops
        return EXCEPTIONS[cause]
    of_op = error.within and code == "E205"
    return EXCEPTIONS["RuntimeError" if of_op else _KINDS.get(code, "RuntimeError")]


_OURS = {
    "ValueError": AutodiffValueError,
    "TypeError": AutodiffTypeError,
    "KeyError": AutodiffKeyError,
}


_OPTION = re.compile(r"`?--(?:(of|wrt|grad-output)(?: (\w+))?|(max-\w+|chunk)(?: (\d+)([MG])?)?)`?")


def _argument(found: re.Match[str]) -> str:
    """An option of the command as the argument that it is in Python."""
    word, text, limit, number, size = found.groups()
    name = (word or limit).replace("-", "_").replace("of", "loss")
    value = f'"{text}"' if text else number or "..."
    shift = {None: "", "M": " << 20", "G": " << 30"}[size]
    return f"`{name}={value}{shift}`"


class Handed(ContextDecorator):
    """A context out of which a failure comes as what a caller in Python may catch: also a
    ValueError, TypeError or KeyError, where Python or NumPy raise those, with arguments in its
    helps, and without the frames of ours between the caller and the program."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: Any, trace: object) -> None:
        if kind is not None and issubclass(kind, AutodiffError):
            shapes = [EXCEPTIONS["ValueError"]] if error.code[1] == "3" else []
            known = filter(None, (class_of(error), *shapes))
            names = (cls.name for one in known for cls in one.line)
            error.__class__ = next((_OURS[n] for n in names if n in _OURS), AutodiffError)
            message, *helps = (_OPTION.sub(_argument, t) for t in (error.message, *error.helps))
            error.amend(message=message, helps=tuple(helps))
            error.__traceback__ = None


def caught(error: AutodiffError, wanted: list[UserClass]) -> ErrorValue | None:
    """The exception that an `except` of these classes gets; None when it is not for it."""
    cls = class_of(error)
    if cls is None or not any(one in cls.line for one in wanted):
        return None
    if isinstance(error, Raised):
        return error.value
    given = error.given
    value: ErrorValue = cls(*((_words(error, cls.name),) if given is None else given))
    return value


def closing() -> Raised:
    """What a generator that is closed raises where it stands."""
    return Raised(EXCEPTIONS["GeneratorExit"](), STATE.span)


def is_a(error: AutodiffError, name: str) -> bool:
    """Whether a failure is an exception of the class of that name, or of one below it."""
    cls = class_of(error)
    return cls is not None and EXCEPTIONS[name] in cls.line


def _words(error: AutodiffError, kind: str) -> Any:
    """The exception's message, in the words of PyTorch where they are known."""
    for note in error.diagnostic.notes:
        if note.startswith("PyTorch: "):
            hint = HINTS.get(error.code, "") if note.endswith(" instead.") else ""
            return note.removeprefix("PyTorch: ") + hint
    cause = error.__context__
    if isinstance(cause, Exception) and type(cause).__name__ == kind:
        return cause.args[0] if kind == "KeyError" and cause.args else str(cause)
    return _said_words(error) or error.message


def _said_words(error: AutodiffError) -> str | None:
    known = said(error)
    if known is None:
        return None
    return error.callee + known[0][known[0].index("()") :] if error.callee else known[0]


def note_words(error: AutodiffError) -> None:
    """Tell PyTorch's words for a failure of tensors beside ours, for who looks for them."""
    notes = error.diagnostic.notes
    if error.code[1] in "345" and not any(note.startswith("PyTorch: ") for note in notes):
        words = _said_words(error)
        if words:
            error.amend(notes=(*notes, f"PyTorch: {words}"))
