"""What programs use of `os`, `sys` and their like: names of files, an environment that is empty,
arguments that nobody gave, and files that are kept in memory for as long as the program runs.

Nothing here reaches the system: every name is written out in a table.
"""

from __future__ import annotations

import posixpath
import string
import sys
import time
import unicodedata
from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import AutodiffError, fail, fault
from ...graph.state import STATE
from ..runtime.namespaces import TORCH_VERSION
from ..values.dialect import misfit
from ..values.exceptions import EXCEPTIONS, Raised
from ..values.functions import call_value
from ..values.housekeeping import count_step
from ..values.values import Namespace, builtins_of
from .builtins import TYPES
from .loading import files
from .saving import Buffer, file_name, missing


class TextStream:
    """`sys.stdout` or `sys.stderr`; what goes to the latter is not kept."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def methods(self) -> dict[str, Callable[..., Any]]:
        return {"write": self.write, "flush": lambda: None, "isatty": lambda: False}

    def write(self, text: Any) -> int:
        if not isinstance(text, str):
            raise misfit("write() takes a string, not", text, "str(x)")
        if self.name == "stdout":
            STATE.write(text)
        return len(text)


# -- os -------------------------------------------------------------------------------------------


def _make_folder(name: Any, mode: Any = 511, exist_ok: Any = False) -> None:
    folder = file_name(name)
    if folder in files().folders and not exist_ok:
        raise fault("E701 folder-there-already", folder=folder)
    while folder and folder not in ("/", "."):
        files().folders.add(folder)
        folder = posixpath.dirname(folder)


def _remove(path: Any) -> None:
    if files().saved.pop(file_name(path), None) is None:
        raise missing(path)


def _is_file(path: Any) -> bool:
    return file_name(path) in files().saved


def _is_folder(path: Any) -> bool:
    return file_name(path) in files().folders


def _texts(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of texts alone."""

    def run(*parts: Any) -> Any:
        for part in parts:
            if not isinstance(part, str):
                raise misfit("a path is a string, not", part, "str(x)")
        return function(*parts)

    return run


# -- sys, timeit, importlib -----------------------------------------------------------------------


def _exit(status: Any = None) -> None:
    raise Raised(EXCEPTIONS["SystemExit"](*([] if status is None else [status])), None)


def is_finished(error: AutodiffError) -> bool:
    """Whether a failure is `sys.exit()`: the program ends there, and all is well."""
    value = getattr(error, "value", None)
    return value is not None and value.cls.name == "SystemExit" and not any(value.fields["args"])


def _timed(stmt: Any, setup: Any = None, timer: Any = None, number: Any = 1000000) -> float:
    if isinstance(stmt, str):
        raise fail("E203", "timeit() takes a function here, no text", help="timeit(lambda: f(x))")
    start = time.perf_counter()
    for _ in range(number):
        count_step()
        call_value(stmt, [], {})
    return time.perf_counter() - start


def _version(package: Any) -> str:
    known = {"torch": TORCH_VERSION, "numpy": np.__version__}
    if package not in known:
        raise fail("E203", f"the version of {package!r} is not known here", help="'torch'")
    return known[package]


# -- the tables -----------------------------------------------------------------------------------

_OF_PATHS = "join basename dirname splitext split normpath abspath relpath isabs"
_OF_FLOATS = "max min epsilon dig mant_dig max_exp max_10_exp min_exp min_10_exp radix rounds"
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "os.makedirs": _make_folder,
    "os.mkdir": _make_folder,
    "os.remove": _remove,
    "os.unlink": _remove,
    "os.getenv": lambda key, default=None: files().environment.get(key, default),
    **{f"os.path.{name}": _texts(getattr(posixpath, name)) for name in _OF_PATHS.split()},
    "os.path.realpath": _texts(posixpath.abspath),  # where links lead is not looked up
    "os.path.exists": lambda path: _is_file(path) or _is_folder(path),
    "os.path.isfile": _is_file,
    "os.path.isdir": _is_folder,
    "sys.exit": _exit,
    "io.BytesIO": Buffer,
    "gc.collect": lambda generation=2: 0,
    "timeit.default_timer": time.perf_counter,
    "timeit.timeit": _timed,
    "importlib.metadata.version": _version,
    "unicodedata.normalize": _texts(unicodedata.normalize),
    "unicodedata.category": _texts(unicodedata.category),
}
_READ: dict[str, Callable[[], Any]] = {
    "os.environ": lambda: files().environment,
    "sys.argv": lambda: [files().program or "program"],
    "sys.path": lambda: files().search,
}
MEMBERS: dict[str, Any] = {
    **builtins_of(_FUNCTIONS),
    **{
        path: Namespace(f"python.{path}")
        for path in ("os.path", "importlib.metadata", "sys.float_info")
    },
    **{f"sys.float_info.{name}": getattr(sys.float_info, name) for name in _OF_FLOATS.split()},
    "os.sep": "/",
    "os.linesep": "\n",
    "os.X_OK": 1,
    "os.name": "posix",
    "os.PathLike": TYPES["str"],
    "sys.stdout": TextStream("stdout"),
    "sys.stderr": TextStream("stderr"),
    "sys.version": sys.version,
    "sys.version_info": tuple(sys.version_info),
    "sys.platform": sys.platform,
    "sys.maxsize": sys.maxsize,
    **{
        f"string.{name}": getattr(string, name)
        for name in (
            "ascii_letters", "ascii_lowercase", "ascii_uppercase", "digits", "hexdigits",
            "printable", "punctuation", "whitespace",
        )
    },
}  # fmt: skip


def member(path: str) -> Any:
    """What a path names (`os.path.join`); None when there is no such thing here."""
    read = _READ.get(path)
    return MEMBERS.get(path) if read is None else read()
