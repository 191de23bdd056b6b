"""Reading .npy and .npz: what a header claims is checked against the bytes that are there."""

from __future__ import annotations

import struct
import warnings
from typing import IO, Any

import numpy as np

from ...errors import AutodiffError, fail, fault
from ...graph.dtypes import tensor_dtype
from ...graph.state import STATE
from .loading import shown, too_large, wrong_data

MAGIC = b"\x93NUMPY"
MAX_HEADER = 10_000
MAX_DIMS = 64
MAX_DIRECTORY = 8 << 20  # bytes of names in a .npz, some 100,000 members
RESAVE = "save it again with np.save, as floats, ints or bools"


def read_npy(text: str, file: IO[bytes], size: int, member: str = "") -> np.ndarray:
    """The array of an open .npy file of `size` bytes, in row-major order and native bytes."""
    return _Npy(text, file, f" ({member!r})" if member else "").read(size)


class _Npy:
    """An open .npy file; `where`: in which member of an archive."""

    def __init__(self, text: str, file: IO[bytes], where: str):
        self.text, self.file, self.where = text, file, where

    def wrong(self, why: str, more: str = "", help: str = RESAVE) -> AutodiffError:
        return wrong_data(self.text, f"{why}{self.where}{more}", help)

    def read(self, size: int) -> np.ndarray:
        shape, fortran, dtype, used = self.header()
        self.check_dtype(dtype)
        count = 1
        extent = dtype.itemsize
        for length in shape:
            if type(length) is not int or length < 0:
                raise self.wrong("has a damaged header", f": the shape {str(shape)[:60]}")
            count *= length
            extent *= max(length, 1)
        need = count * dtype.itemsize
        if len(shape) > MAX_DIMS or extent >= 1 << 62:
            raise self.wrong(f"claims the impossible shape {str(shape)[:80]}")
        if need > size - used:
            promised = f"its header promises shape {shape} of {dtype.name}, {need} bytes"
            raise self.wrong("is cut off", f": {promised}, but {max(size - used, 0)} follow")
        buffer = np.empty(need, np.uint8)
        self.fill(buffer.data)
        return self.native(buffer.view(dtype).reshape(shape, order="F" if fortran else "C"))

    def header(self) -> tuple[Any, bool, np.dtype, int]:
        """Shape, order, dtype and the bytes read so far."""
        start = self.file.read(8)
        if start[:6] != MAGIC:
            more = ": it is empty" if not start else ""
            raise self.wrong("is no .npy file", more, "save the array with np.save")
        if len(start) < 8 or start[6] not in (1, 2, 3):
            raise self.wrong("has a damaged header")
        wide = start[6] > 1
        field = self.file.read(4 if wide else 2)
        length = int.from_bytes(field, "little")
        if len(field) < (4 if wide else 2) or length > MAX_HEADER:
            raise self.wrong("has a damaged header")
        raw = self.file.read(length)
        if len(raw) < length:
            wanted = f"its header should have {length} bytes"
            raise self.wrong("is cut off", f": {wanted}, but {len(raw)} follow")
        return (*self.parsed(raw), 8 + len(field) + length)

    def parsed(self, raw: bytes) -> tuple[Any, bool, np.dtype]:
        from io import BytesIO

        from numpy.lib.format import read_array_header_2_0

        source = BytesIO(struct.pack("<I", len(raw)) + raw)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about headers that Python 2 wrote
                return read_array_header_2_0(source)
        except Exception:  # a hostile header makes it fail in ways that it does not document
            raise self.wrong("has a damaged header") from None

    def check_dtype(self, dtype: np.dtype) -> None:
        if dtype.hasobject:
            words = f"{shown(self.text)} holds pickled Python objects{self.where}"
            raise fail("E703", f"{words}, which are never loaded", label="pickled", help=RESAVE)
        if dtype.fields is not None or dtype.subdtype is not None:
            more = f", not numbers: {str(dtype)[:80]}"
            raise self.wrong("holds records", more, "save one array for each field")
        if tensor_dtype(dtype) is None:
            parts = "save the real and imaginary parts as two arrays"
            more = ", which is no kind of tensor"
            help = parts if dtype.kind == "c" else RESAVE
            raise self.wrong(f"holds {str(dtype)[:40]}", more, help)

    def fill(self, target: memoryview) -> None:
        at = 0
        while at < len(target):
            got = self.file.readinto(target[at : at + (1 << 20)])  # type: ignore[attr-defined]  # every binary file has it
            if not got:
                raise self.wrong("is cut off", f": {len(target) - at} bytes are missing")
            at += got

    def native(self, array: np.ndarray) -> np.ndarray:
        """The same numbers as one of the dtypes of tensors."""
        kind, width = array.dtype.kind, array.dtype.itemsize
        if kind == "b":
            return np.ascontiguousarray(array.view(np.uint8) != 0)
        if kind == "u" and width == 8 and (array > np.iinfo(np.int64).max).any():
            words = "holds unsigned integers above 2**63 - 1"
            raise self.wrong(words, help="save them as float64")
        target = tensor_dtype(array.dtype)
        assert target is not None
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
