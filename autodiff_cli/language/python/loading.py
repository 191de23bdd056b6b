"""`load(...)`: arrays from .npy, .npz, .csv and .json files inside a program's folder.

Files come from anywhere: nothing here unpickles, writes, waits for a pipe, or allocates what a file
merely claims to hold. Every failure names the file as the program wrote it.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from ...autograd.tensor import Tensor
from ...errors import AutodiffError, fail, fault
from ...graph.dtypes import is_float
from ...graph.params import BindError, to_dtype
from ...graph.sizes import bytes_text
from ...graph.state import STATE
from ...outside import OUTSIDE
from ..values.dialect import misfit
from ..values.factories import with_grad
from ..values.operations import truth
from ..values.providers import late

if TYPE_CHECKING:
    from pathlib import Path

PICKLES = frozenset({".pkl", ".pickle", ".pt", ".pth", ".bin", ".joblib"})


Loaded = np.ndarray | dict[str, np.ndarray]


READ: list[str] = []  # paths of the files that programs of this process read


class Files:
    """What a program may read: its own folder and allowed ones. `kept`: contents by path, for who
    runs statements again and must get the same from files.
    What a program saves stays in memory: `saved` by name, `folders` that it made; `environment` has
    the variables that it set, `search` what it put into `sys.path`; `program` is its own name."""

    __slots__ = (
        "allowed",
        "environment",
        "folder",
        "folders",
        "kept",
        "program",
        "saved",
        "search",
    )

    def __init__(
        self,
        folder: Path | str | None = None,
        allowed: tuple[Path, ...] = (),
        program: str | None = None,
    ) -> None:
        self.program = program
        self.folder = folder
        self.allowed = allowed
        self.kept: dict[tuple[str, bool], Loaded] | None = None
        self.saved: dict[Any, Any] = {}
        self.folders: set[str] = set()
        self.environment: dict[str, str] = {}
        self.search: list[str] = []

    def location(self) -> str | None:
        """`__file__`: where the program lies, if it is a file."""
        return None if self.program is None else os.path.abspath(self.program)


def files() -> Files:
    """The files of the program that runs."""
    if STATE.files is None:
        STATE.files = Files()
    found: Files = STATE.files
    return found


def load(path: Any, requires_grad: Any = False, header: Any = False, *, dtype: Any = None) -> Any:
    """The tensor of a file, or a dict of tensors; constant unless `requires_grad=True`."""
    if not isinstance(path, str):
        raise misfit("`load` takes the name of a file, not", path, "write `load('x.npy')`")
    try:
        kind = None if dtype is None else to_dtype(dtype)
    except BindError as error:
        raise fault("E205 load-argument-dtype", argument="dtype", error=error) from None
    wants_grad = truth(requires_grad)
    loaded = _read(path, _inside(path), truth(header))
    if isinstance(loaded, dict):
        return {
            key: _tensor(
                array, kind, wants_grad and is_float(array.dtype if kind is None else kind)
            )
            for key, array in loaded.items()
        }
    return _tensor(loaded, kind, wants_grad)


def _tensor(array: np.ndarray, kind: np.dtype | None, requires_grad: bool) -> Tensor:
    return with_grad(array if kind is None else array.astype(kind, copy=False), requires_grad)


def read_array(path_text: str, key: str | None = None, header: bool = False) -> np.ndarray:
    """The array of a file named on the command line, in any folder; `key` chooses from several."""
    try:
        loaded = _read(path_text, _resolved(path_text, os.getcwd()), header)
    except AutodiffError as error:
        if error.code == "E701":
            error.amend(helps=("check the name; it is looked for from the current folder",))
        elif error.code == "E505":
            blocks = "or compute it in blocks of rows: --engine dask"
            error.amend(helps=(*error.diagnostic.helps, blocks))
        raise
    name = shown(path_text)
    if isinstance(loaded, np.ndarray):
        if key is not None:
            raise fault("E702 holds-array", name=name, key=key, path_text=path_text)
        return loaded
    known = ", ".join(map(repr, list(loaded)[:8])) or "nothing"
    if key is None:
        if len(loaded) == 1:
            return next(iter(loaded.values()))
        raise fault("E702 holds-several-arrays", name=name, known=known, path_text=path_text)
    if key not in loaded:
        raise fail("E702", f"{name} holds no `{key}`", help=f"it holds {known}")
    return loaded[key]


def shown(text: str) -> str:
    """A file name in a message: on one line, and not too long."""
    readable = "".join(
        c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode()
        for c in text[:120]
    )
    return f"`{readable}{'...' if len(text) > 120 else ''}`"


# -- where a file is ------------------------------------------------------------------------------


def _resolved(text: str, folder: Path | str) -> str:
    """The absolute path with all links followed."""
    if not text or "\0" in text:
        raise fault("E701 no-file-name", shown(text))
    return os.path.realpath(os.path.join(folder, text))


def _inside(text: str) -> str:
    """The path of a file that the program may read; E704 otherwise, whether it exists or not."""
    known = files()
    folder = known.folder
    path = _resolved(text, os.getcwd() if folder is None else folder)
    for root in (*(() if folder is None else (folder,)), *known.allowed):
        within = os.path.realpath(root)
        if path == within or path.startswith(
            within if within.endswith(os.sep) else within + os.sep
        ):
            return path
    why = (
        "lies outside the program's folder"
        if folder is not None
        else "cannot be read: the program is no file, so it has no folder"
    )
    raise fault("E704 why", shown(text), why=why)


def _unreadable(text: str, why: str) -> AutodiffError:
    help = "check the name; names are relative to the program's own file"
    if "\\" in text:
        help = "write `/` between folders, not `\\`"
    return fail("E701", f"cannot read {shown(text)}: {why}", label="cannot be read", help=help)


def wrong_data(text: str, why: str, help: str) -> AutodiffError:
    return fail("E702", f"{shown(text)} {why}", label="wrong data", help=help)


def too_large(text: str, need: int) -> AutodiffError:
    return fault("E505 needs-memory", shown(text), bytes_text(need), bytes_text(STATE.max_bytes))


# -- reading --------------------------------------------------------------------------------------


def _read(text: str, path: str, header: bool) -> Loaded:
    kept = files().kept
    if kept is not None and (path, header) in kept:
        return kept[path, header]
    suffix = os.path.splitext(text)[1].lower()
    if suffix in PICKLES:
        raise fault("E703 pickle", shown(text))
    reader = _READERS.get(suffix)
    if reader is None:
        raise wrong_data(
            text,
            f"has {f'the suffix `{suffix[:20]}`' if suffix else 'no suffix'}, "
            "so its format is not known",
            "load .npy, .npz, .csv or .json files; --engine dask reads .zarr, .h5 and .parquet too",
        )
    with _opened(text, path) as file:
        size = os.fstat(file.fileno()).st_size
        if size > STATE.max_bytes:
            raise too_large(text, size)
        READ.append(path)
        OUTSIDE.record("read", path)
        try:
            loaded = reader(text, file, size, header)
        except OSError as error:
            raise _unreadable(text, _reason(error)) from None
    if kept is not None:
        kept[path, header] = loaded
    return loaded


def _opened(text: str, path: str) -> IO[bytes]:
    """A regular file, open for reading; never waits for a pipe or a device."""
    try:
        _refuse_special(text, os.stat(path).st_mode)
        flags = os.O_RDONLY
        for name in ("O_NONBLOCK", "O_NOFOLLOW", "O_BINARY"):  # no system has all of them
            flags |= getattr(os, name, 0)
        descriptor = os.open(path, flags)
        _refuse_special(text, os.fstat(descriptor).st_mode)
        return os.fdopen(descriptor, "rb")
    except (OSError, ValueError) as error:
        raise _unreadable(text, _reason(error)) from None


def _refuse_special(text: str, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise _unreadable(text, "it is a directory")
    if not stat.S_ISREG(mode):
        raise _unreadable(text, "it is no regular file")


def _reason(error: Exception) -> str:
    words = getattr(error, "strerror", None) or str(error)
    return words[:1].lower() + words[1:]


_READERS: dict[str, Callable[[str, IO[bytes], int, bool], Loaded]] = {
    ".npy": lambda text, file, size, header: late("python.array_files.read_npy")(text, file, size),
    ".npz": lambda text, file, size, header: late("python.array_files.read_npz")(text, file, size),
    ".csv": lambda text, file, size, header: late("python.text_files.read_csv")(text, file, header),
    ".json": lambda text, file, size, header: late("python.text_files.read_json")(text, file),
}
