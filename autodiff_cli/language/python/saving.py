"""`torch.save` and `torch.load`: what a program saves is kept in memory until it ends, under the
name of the file. Nothing is pickled, and no file is written or read.
"""

from __future__ import annotations

import posixpath
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from ...autograd.tensor import Tensor
from ...errors import AutodiffError, fail, fault
from ...graph.params import check_device
from ..values.dialect import kind_of, misfit
from ..values.values import Device, Size
from .copying import deep_copy
from .loading import files

LONGEST_NAME = 4096
# What PyTorch loads unasked: these classes and none derived from them.
_TABLES = (dict, OrderedDict, Counter)
_ATOMS = (Tensor, bool, int, float, str, Size, Device, type(None))


class Buffer:
    """`io.BytesIO()`: a file without a name."""

    __slots__ = ()

    def methods(self) -> dict[str, Callable[..., Any]]:
        return {"seek": lambda offset, whence=0: offset, "close": lambda: None}


def file_name(file: Any) -> Any:
    """What a file is kept under."""
    if isinstance(file, Buffer):
        return file
    if getattr(getattr(file, "cls", None), "name", "") == "Path":
        file = file.describe_text()
    if not isinstance(file, str):
        raise misfit("the name of a file is a string, not", file, '"x.pt"')
    if len(file) > LONGEST_NAME:
        raise fail("E208", f"a file name of {len(file)} characters", help="use a shorter one")
    return posixpath.normpath(file)


def save(
    obj: Any, f: Any, pickle_module: Any = None, pickle_protocol: Any = 2, **options: Any
) -> None:
    """Keep a copy of a value; tensors that share memory still do in the copy."""
    files().saved[file_name(f)] = deep_copy(obj, results=True)


def load(
    f: Any,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: Any = None,
    mmap: Any = None,
    **options: Any,
) -> Any:
    """A copy of what was saved under this name."""
    name = file_name(f)
    if name not in files().saved:
        raise missing(f)
    check_device(map_location)
    kept = files().saved[name]
    if weights_only is None or weights_only is True:
        _check_plain(kept)
    return deep_copy(kept)


def missing(file: Any) -> AutodiffError:
    """The error for a file that the program did not save."""
    return fault("E701 there-no-file", str(file)[:100])


def _check_plain(kept: Any) -> None:
    """E703 for what PyTorch does not load unless it is asked for more than weights."""
    pending = [kept]
    seen: set[int] = set()
    while pending:
        value = pending.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        kind = type(value)
        if kind in _TABLES:
            pending.extend([*value, *value.values()])
        elif kind in (list, tuple, set):
            pending.extend(value)
        elif kind not in _ATOMS and not isinstance(value, np.dtype):
            raise fault("E703 what-was-saved-holds", kind_of(value))
