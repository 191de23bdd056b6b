"""Reading .npy and .npz: what a header claims is checked against the bytes that are there."""

from __future__ import annotations

import struct
import warnings
from typing import IO, Any

import numpy as np

from ...errors import AutodiffError, fail, fault
from ...graph.dtypes import BOOL, DTYPES, INT32, INT64
from ...graph.state import STATE
from .loading import shown, too_large, wrong_data

MAGIC = b"\x93NUMPY"
MAX_HEADER = 10_000
MAX_DIMS = 64
MAX_DIRECTORY = 8 << 20  # bytes of names in a .npz, some 100,000 members
RESAVE = "save it again with np.save, as floats, ints or bools"


def read_npy(text: str, file: IO[bytes], size: int, member: str = "") -> np.ndarray:
    """The array of an open .npy file of `size` bytes, in row-major order and native bytes."""
    where = f" ({member!r})" if member else ""
    shape, fortran, dtype, used = _header(text, file, where)
    _check_dtype(text, dtype, where)
    count = 1
    extent = dtype.itemsize
    for length in shape:
        if type(length) is not int or length < 0:
            raise wrong_data(
                text, f"has a damaged header{where}: the shape {str(shape)[:60]}", RESAVE
            )
        count *= length
        extent *= max(length, 1)
    if len(shape) > MAX_DIMS or extent >= 1 << 62:
        need = count * dtype.itemsize
        raise wrong_data(
            text,
            f"claims the impossible shape {str(shape)[:80]}{where}"
            + (f", {need} bytes" if need < 1 << 80 else ""),
            RESAVE,
        )
    need = count * dtype.itemsize
    if need > size - used:
        raise wrong_data(
            text,
            f"is cut off{where}: its header promises shape {shape} of {dtype.name}, {need} bytes, "
            f"but {max(size - used, 0)} follow",
            RESAVE,
        )
    if need > STATE.max_bytes:
        raise too_large(text, need)
    buffer = np.empty(need, np.uint8)
    _fill(text, file, buffer.data, where)
    array = buffer.view(dtype).reshape(shape, order="F" if fortran else "C")
    return _native(text, array, where)


def _header(text: str, file: IO[bytes], where: str) -> tuple[Any, bool, np.dtype, int]:
    """Shape, order, dtype and the bytes read so far."""
    start = file.read(8)
    if start[:6] != MAGIC:
        raise wrong_data(
            text,
            f"is no .npy file{where}" + (": it is empty" if not start else ""),
            "save the array with np.save",
        )
    if len(start) < 8 or start[6] not in (1, 2, 3):
        raise wrong_data(text, f"has a damaged header{where}", RESAVE)
    wide = start[6] > 1
    field = file.read(4 if wide else 2)
    length = int.from_bytes(field, "little")
    if len(field) < (4 if wide else 2) or length > MAX_HEADER:
        raise wrong_data(text, f"has a damaged header{where}", RESAVE)
    raw = file.read(length)
    if len(raw) < length:
        raise wrong_data(
            text,
            f"is cut off{where}: its header should have {length} bytes, but {len(raw)} follow",
            RESAVE,
        )
    shape, fortran, dtype = _parsed(text, raw, where)
    return shape, fortran, dtype, 8 + len(field) + length


def _parsed(text: str, raw: bytes, where: str) -> tuple[Any, bool, np.dtype]:
    from io import BytesIO

    from numpy.lib.format import read_array_header_2_0

    source = BytesIO(struct.pack("<I", len(raw)) + raw)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about headers that Python 2 wrote
            return read_array_header_2_0(source, max_header_size=MAX_HEADER)
    except Exception:  # a hostile header makes the parser fail in ways that it does not document
        raise wrong_data(text, f"has a damaged header{where}", RESAVE) from None


def _check_dtype(text: str, dtype: np.dtype, where: str) -> None:
    if dtype.hasobject:
        raise fail(
            "E703",
            f"{shown(text)} holds pickled Python objects{where}, which are never loaded",
            label="pickled",
            help=RESAVE,
        )
    if dtype.fields is not None or dtype.subdtype is not None:
        raise wrong_data(
            text,
            f"holds records{where}, not numbers: {str(dtype)[:80]}",
            "save one array for each field",
        )
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise wrong_data(
            text,
            f"holds {str(dtype)[:40]}{where}, which is no kind of tensor",
            "save the real and imaginary parts as two arrays" if dtype.kind == "c" else RESAVE,
        )


def _fill(text: str, file: IO[bytes], target: memoryview, where: str) -> None:
    at = 0
    while at < len(target):
        got = file.readinto(target[at : at + (1 << 20)])  # type: ignore[attr-defined]  # every binary file has it
        if not got:
            raise wrong_data(
                text, f"is cut off{where}: {len(target) - at} bytes are missing", RESAVE
            )
        at += got


def _native(text: str, array: np.ndarray, where: str) -> np.ndarray:
    """The same numbers as one of the dtypes of tensors."""
    kind, width = array.dtype.kind, array.dtype.itemsize
    if kind == "b":
        return np.ascontiguousarray(array.view(np.uint8) != 0)
    if kind == "u" and width > 1:
        if width == 8 and array.size and int(array.max()) > np.iinfo(np.int64).max:
            raise wrong_data(
                text, f"holds unsigned integers above 2**63 - 1{where}", "save them as float64"
            )
        target = INT32 if width == 2 else INT64
    else:
        target = DTYPES[array.dtype.newbyteorder("=").name]
    assert target != BOOL
    return np.ascontiguousarray(array.astype(target, copy=False)).reshape(array.shape)


def read_npz(text: str, file: IO[bytes], size: int) -> dict[str, np.ndarray]:
    """All arrays of an archive by name; names lead nowhere, since nothing is unpacked to disk."""
    _check_directory(text, file, size)
    from zipfile import ZipFile

    try:
        with ZipFile(file) as archive:
            members = [
                info
                for info in archive.infolist()
                if not info.is_dir() and info.filename.endswith(".npy")
            ]
            total = sum(info.file_size for info in members)
            if total > STATE.max_bytes:
                raise too_large(text, total)
            if not members:
                raise wrong_data(text, "holds no arrays", "save arrays with np.savez")
            return {
                info.filename.removesuffix(".npy"): _member(text, archive, info) for info in members
            }
    except (AutodiffError, MemoryError):
        raise
    except Exception as error:  # zipfile fails in many ways on damaged archives
        raise wrong_data(
            text,
            f"is a damaged archive: {str(error)[:80] or type(error).__name__}",
            "save the arrays again with np.savez",
        ) from None


def _member(text: str, archive: Any, info: Any) -> np.ndarray:
    if info.flag_bits & 1:
        raise wrong_data(
            text, f"is encrypted ({info.filename[:60]!r})", "save the arrays with np.savez"
        )
    if info.compress_type not in (0, 8):
        raise wrong_data(
            text,
            f"is compressed in a way NumPy never uses ({info.filename[:60]!r})",
            "save the arrays with np.savez_compressed",
        )
    with archive.open(info) as file:
        return read_npy(text, file, info.file_size, info.filename[:60])


def _check_directory(text: str, file: IO[bytes], size: int) -> None:
    """Refuse an archive whose list of members would itself fill the memory."""
    tail_size = min(size, 65_557 + 76)
    file.seek(size - tail_size)
    tail = file.read(tail_size)
    at = tail.rfind(b"PK\5\6")
    if at < 0 or at + 22 > len(tail):
        raise wrong_data(
            text,
            "is no .npz archive" + (": it is empty" if not size else ", or it is cut off"),
            "save the arrays with np.savez",
        )
    listed = int.from_bytes(tail[at + 12 : at + 16], "little")
    if at >= 76 and tail[at - 76 : at - 72] == b"PK\6\6":
        listed = int.from_bytes(tail[at - 36 : at - 28], "little")
    if listed > MAX_DIRECTORY:
        raise fault("E505 lists-too-many-members", shown(text), listed=listed)
    file.seek(0)
