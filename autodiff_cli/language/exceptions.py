"""Exceptions of programs: the classes that `raise` and `except` name, and the exception that a
failure here would be in Python.

A failure of the limits, of the text, or of something that this language lacks is no exception:
catching it would give another result than Python's.
"""

from __future__ import annotations

from typing import Any

from ..errors import AutodiffError, Diagnostic
from ..graph.params import BindError
from ..source import Span
from .classes import Instance, UserClass
from .pytorch_words import HINTS, said
from .text import represent, text
from .values import Builtin


class ErrorValue(Instance):
    """A value of an exception class."""

    __slots__ = ()

    def made(self, args: list[Any]) -> None:
        self.fields["args"] = tuple(args)

    def describe(self) -> str:
        if self.special("__repr__") is not None:
            return super().describe()
        inside = ", ".join(represent(a) for a in self.fields["args"])
        return f"{self.cls.name}({inside})"

    def describe_text(self) -> str:
        if self.special("__str__") is not None:
            return super().describe_text()
        args = self.fields["args"]
        if len(args) != 1:
            return represent(args) if args else ""
        return represent(args[0]) if self.cls.name == "KeyError" else text(args[0])

    def get_attribute(self, name: str) -> Any:
        if name == "message" and name not in self.fields:
            return super().get_attribute("message")
        return super().get_attribute(name)


class Raised(AutodiffError):
    """A failure that the program raised, with the exception's value."""

    def __init__(self, value: ErrorValue, span: Span | None):
        words = value.describe_text()
        super().__init__(
            Diagnostic(
                "E212",
                f"the program raised {value.cls.name}{f': {words}' if words else ''}",
                span,
                helps=("this is the program's own error",),
            )
        )
        self.value = value


def _init(self: ErrorValue, *args: Any) -> None:
    self.fields["args"] = args


_TREE = {
    "Exception": "BaseException",
    "KeyboardInterrupt": "BaseException",
    "SystemExit": "BaseException",
    "RuntimeError": "Exception",
    "NotImplementedError": "RuntimeError",
    "RecursionError": "RuntimeError",
    "_LinAlgError": "RuntimeError",
    "GradcheckError": "RuntimeError",
    "ValueError": "Exception",
    "TypeError": "Exception",
    "LookupError": "Exception",
    "IndexError": "LookupError",
    "KeyError": "LookupError",
    "ArithmeticError": "Exception",
    "ZeroDivisionError": "ArithmeticError",
    "OverflowError": "ArithmeticError",
    "FloatingPointError": "ArithmeticError",
    "AttributeError": "Exception",
    "AssertionError": "Exception",
    "NameError": "Exception",
    "UnboundLocalError": "NameError",
    "StopIteration": "Exception",
    "ImportError": "Exception",
    "ModuleNotFoundError": "ImportError",
    "OSError": "Exception",
    "FileNotFoundError": "OSError",
    "FileExistsError": "OSError",
    "UnpicklingError": "Exception",
    "IOError": "OSError",
    "Warning": "Exception",
    "UserWarning": "Warning",
    "DeprecationWarning": "Warning",
    "FutureWarning": "Warning",
    "RuntimeWarning": "Warning",
}


def _classes() -> dict[str, UserClass]:
    root = UserClass("BaseException", [], {"__init__": Builtin("__init__", _init)}, None)
    root.make = ErrorValue
    found = {"BaseException": root}
    for name, base in _TREE.items():
        found[name] = UserClass(name, [found[base]], {}, None)
    for cls in found.values():
        cls.fixed = True
    return found


EXCEPTIONS = _classes()

# By code, the exceptions that PyTorch or Python raise there, the usual one first.
_KINDS: dict[str, tuple[str, ...]] = {
    "E107": ("ValueError", "TypeError"),
    "E201": ("NameError",),
    "E202": ("NameError",),
    "E205": ("TypeError", "ValueError", "RuntimeError"),
    "E206": ("UnboundLocalError",),
    "E207": ("AttributeError",),
    "E208": ("TypeError", "ValueError", "RuntimeError"),
    "E209": ("ModuleNotFoundError",),
    "E210": ("KeyError", "IndexError", "RuntimeError"),
    "E211": ("ValueError",),
    "E304": ("IndexError", "RuntimeError"),
    "E305": ("IndexError", "TypeError", "RuntimeError"),
    "E503": ("_LinAlgError",),
    "E504": ("ZeroDivisionError", "OverflowError", "ValueError", "RuntimeError"),
    "E507": ("RecursionError",),
    "E601": ("AssertionError",),
    "E602": ("GradcheckError",),
}
_NEVER = frozenset({"E203", "E505", "E506", "E508", "E900"})


def kinds(error: AutodiffError) -> tuple[UserClass, ...]:
    """The exception classes that a failure may be, the likeliest first; () when it is none."""
    if isinstance(error, Raised):
        return (error.value.cls,)
    if error.diagnostic.raises:
        return (EXCEPTIONS[error.diagnostic.raises],)
    code = error.code
    known = said(error)
    if code == "E203" and known is not None:
        return (EXCEPTIONS[known[1]],)  # PyTorch refuses it too
    if code in _NEVER or (code[1] in "17" and code not in _KINDS):
        return ()
    if code == "E207" and error.message.endswith("does not exist here"):
        return ()  # PyTorch may have it
    cause = error.__context__
    names = _KINDS.get(code, ("RuntimeError", "ValueError", "IndexError", "TypeError"))
    if code == "E210" and "iterator" in error.message:
        names = ("StopIteration",)
    if known is not None and known[1]:
        names = (known[1],)
    if isinstance(cause, Exception) and not isinstance(cause, AutodiffError | BindError):
        name = type(cause).__name__
        if name in EXCEPTIONS:
            names = (name, *names)
    return tuple(EXCEPTIONS[name] for name in names)


def caught(error: AutodiffError, wanted: list[UserClass]) -> ErrorValue | None:
    """The exception that an `except` of these classes gets; None when it is not for it."""
    for cls in kinds(error):
        if any(one in cls.mro for one in wanted):
            if isinstance(error, Raised):
                return error.value
            value = ErrorValue(cls)
            value.made([_words(error, cls.name)])
            return value
    return None


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
