"""`-o FILE`: reports as .json, .npz, .npy, .csv or .txt, written aside and then renamed.

Invariant: the target is either complete or as it was.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, Any

from ..errors import reason_of
from ..suggest import named

if TYPE_CHECKING:
    import numpy as np

    from ..session import Report

SUFFIXES = (".json", ".npz", ".npy", ".csv", ".txt", ".zarr")
SINGLE = (".npz", ".npy", ".csv", ".zarr")  # these hold the results of one program


class CannotWrite(Exception):
    """The request cannot be met: a wrong command line, or a file that cannot be written."""

    def __init__(self, message: str, help: str = ""):
        super().__init__(message)
        self.message = message
        self.help = help


def suffix_of(path: str) -> str:
    """The suffix that chooses the format; `CannotWrite` for any other."""
    suffix = os.path.splitext(path)[1].lower()
    if suffix not in SUFFIXES:
        raise CannotWrite(
            f"cannot tell the format of `{path}` from its suffix",
            f"name it with one of {', '.join(SUFFIXES)}",
        )
    return suffix


def check_target(path: str, programs: int) -> None:
    """Refuse before anything runs what would fail at the end."""
    suffix = suffix_of(path)
    if programs > 1 and suffix in SINGLE:
        raise CannotWrite(
            f"a {suffix} file holds the results of one program, not of {programs}",
            "write .json or .txt, or run the programs one by one",
        )
    check_place(path)


def check_place(path: str) -> None:
    """Refuse a target that is a folder or lies in none."""
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path):
        raise CannotWrite(f"cannot write `{path}`: it is a folder")
    if not os.path.isdir(folder):
        raise CannotWrite(f"cannot write `{path}`: there is no folder `{folder}`")


def write_text(path: str, text: str) -> None:
    """A text file, UTF-8."""
    write_bytes(path, text.encode("utf-8", "backslashreplace"))


def write_bytes(path: str, data: bytes) -> None:
    """A file of these bytes."""
    replace_file(path, lambda file: file.write(data))


def write_arrays(path: str, report: Report, only: tuple[str, ...], show: tuple[str, ...]) -> None:
    """Tensors of one report: `A` and `A.grad` in an .npz, a single one in .npy and .csv."""
    arrays = named_arrays(report, only, show)
    choose = "choose one with --show, for example --show loss or --show A.grad"
    if arrays:
        choose += f"; there are {', '.join(list(arrays)[:8])}"
    store_arrays(path, arrays, "tensor", choose, "write .npy or .npz")


def write_zarr(path: str, report: Report, show: tuple[str, ...], cluster: Any) -> None:
    """A zarr store of the tensors that are in blocks, all or those of names that were chosen."""
    chosen = {n for glob in show or "*" for n in named(glob, report.blocked)}
    if not chosen:
        raise CannotWrite(f"nothing in blocks would go into `{path}`", "add --engine dask")
    cluster.store(path, {name: rows for name, rows in report.blocked.items() if name in chosen})


def store_arrays(
    path: str, arrays: dict[str, np.ndarray], what: str, choose: str, reshape: str
) -> None:
    """All arrays in an .npz, a single one in an .npy or .csv; how else to do it where it fails."""
    suffix = suffix_of(path)
    if suffix == ".npz":
        replace_file(path, lambda file: write_npz(file, arrays))
        return
    if len(arrays) != 1:
        raise CannotWrite(
            f"a {suffix} file holds one {what}, and {len(arrays) or 'none'} would go into `{path}`",
            choose,
        )
    ((name, array),) = arrays.items()
    if suffix == ".npy":
        import numpy as np

        replace_file(path, lambda file: np.save(file, array, allow_pickle=False))
        return
    if array.ndim > 2:
        raise CannotWrite(
            f"`{name}` has shape {array.shape}, and a .csv file holds at most two dims", reshape
        )
    replace_file(path, lambda file: file.write(_csv(array).encode("ascii")))


def named_arrays(
    report: Report, only: tuple[str, ...], show: tuple[str, ...]
) -> dict[str, np.ndarray]:
    """Values by name and gradients by `NAME.grad`, of the names and parts that were chosen."""
    from .selection import matching

    found: dict[str, np.ndarray] = {}
    keys = [key for name in report.tensors for key in (name, f"{name}.grad")]
    wanted = {key for glob in show for key in named(glob, keys)}
    for record in matching(report, show):
        for key, array, part in (
            (record.name, record.value, "values"),
            (f"{record.name}.grad", record.grad, "gradients"),
        ):
            if array is not None and (not only or part in only) and (not show or key in wanted):
                found[key] = array
    return found


def write_npz(file: IO[bytes], arrays: dict[str, np.ndarray]) -> None:
    """An .npz archive of these arrays, the same bytes every time."""
    # Not numpy's savez: it takes names as keywords, and a tensor may be called `file`.
    import zipfile

    import numpy as np

    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            entry = zipfile.ZipInfo(f"{name}.npy")  # a fixed date: the same bytes every time
            with archive.open(entry, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(array), allow_pickle=False)


def _csv(array: np.ndarray) -> str:
    import numpy as np

    from .values import shortest

    rows: Sequence[Sequence[object]] = shortest(np.atleast_2d(array))
    return "".join(",".join(map(repr, row)) + "\n" for row in rows)


def replace_file(path: str, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file and put it in place of `path`; devices and pipes are written directly."""
    target = os.path.realpath(path)
    try:
        if os.path.exists(target) and not os.path.isfile(target):
            with open(target, "wb") as file:
                write(file)
            return
        temporary = f"{target}.{os.getpid()}.tmp"
        try:
            with open(temporary, "xb") as file:
                write(file)
            os.replace(temporary, target)
        except BaseException:
            if os.path.exists(temporary):
                os.unlink(temporary)
            raise
    except OSError as error:
        raise CannotWrite(f"cannot write `{path}`: {reason_of(error)}") from None
