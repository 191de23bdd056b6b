"""Reading .csv and .json: numbers as text, bounded before they are parsed."""

from __future__ import annotations

import re
from typing import IO, Any

import numpy as np

from ...autograd.literals import array_of
from ...errors import AutodiffError, fault
from ...graph.state import STATE
from .loading import Loaded, shown, too_large, wrong_data

CHUNK = 1 << 20
MAX_ROW = 32 << 20  # bytes of one row of a .csv file
# Bytes that a value takes at most, by what its text begins with or ends with.
_SIZES = {b"[": 200, b",": 32, b"{": 300, b":": 100}
NON_FINITE = {"nan": float("nan"), "inf": float("inf"), "-inf": float("-inf")}


def _check_text(text: str, start: bytes) -> None:
    for mark, name in (
        (b"\xff\xfe", "UTF-16"),
        (b"\xfe\xff", "UTF-16"),
        (b"\0\0\xfe\xff", "UTF-32"),
    ):
        if start.startswith(mark):
            raise wrong_data(text, f"is {name} text, not UTF-8", "save it as UTF-8")
    if b"\0" in start:
        raise wrong_data(text, "is no text", "load binary arrays from .npy files")


# -- csv ------------------------------------------------------------------------------------------


def read_csv(text: str, file: IO[bytes], header: bool) -> np.ndarray:
    """The rows of a file of numbers separated by commas, in the default float dtype."""
    count = _survey(text, file)
    if count * 8 > STATE.max_bytes:
        raise too_large(text, count * 8)
    from io import TextIOWrapper
    from warnings import catch_warnings, simplefilter

    file.seek(0)
    lines = TextIOWrapper(file, encoding="utf-8-sig")
    try:
        with catch_warnings():
            simplefilter("ignore")  # about files without rows, which are refused below
            array = np.loadtxt(
                lines,
                np.float64,
                delimiter=",",
                quotechar='"',
                skiprows=1 if header else 0,
                ndmin=2,
            )
    except UnicodeDecodeError:
        raise wrong_data(text, "is no UTF-8 text", "save it as UTF-8") from None
    except ValueError as error:
        raise _csv_error(text, str(error), header) from None
    finally:
        lines.detach()
    if not array.size:
        raise wrong_data(
            text, "holds no numbers", "write one row of numbers a line, separated by commas"
        )
    return array.astype(STATE.default_dtype, copy=False)


def _survey(text: str, file: IO[bytes]) -> int:
    """An upper bound of the numbers in a file; refuses binary data and endless rows."""
    separators = row = 0
    while chunk := file.read(CHUNK):
        _check_text(text, chunk)
        separators += chunk.count(b",") + chunk.count(b"\n") + chunk.count(b"\r")
        first = chunk.find(b"\n")
        row += len(chunk) if first < 0 else first
        if row > MAX_ROW:
            raise fault("E505 row-more-mib", shown(text), MAX_ROW >> 20)
        if first >= 0:
            row = len(chunk) - chunk.rfind(b"\n")
    return separators + 1


def _csv_error(text: str, words: str, header: bool) -> AutodiffError:
    found = re.match(
        r"could not convert string (.*) to float64 at row (\d+), column (\d+)", words, re.DOTALL
    )
    if found is not None:
        cell, row, column = found[1], int(found[2]), found[3]
        if cell in ("''", '""'):
            return wrong_data(
                text,
                f"has an empty cell in row {row + 1}, column {column}",
                "write `nan` for missing numbers",
            )
        if ";" in cell or "\\t" in cell:
            return wrong_data(
                text,
                f"has {cell[:40]} in row {row + 1}: numbers are not separated by commas",
                "separate numbers with commas",
            )
        help = (
            "write numbers only"
            if row or header
            else "skip the first row: `load(..., header=True)`"
        )
        return wrong_data(
            text, f"has {cell[:40]}, which is no number, in row {row + 1}, column {column}", help
        )
    found = re.match(r"the number of columns changed from (\d+) to (\d+) at row (\d+)", words)
    if found is not None:
        return wrong_data(
            text,
            f"is ragged: row {found[3]} has {found[2]} numbers, the rows before it {found[1]}",
            "give every row the same number of columns",
        )
    return wrong_data(
        text,
        f"is no table of numbers: {words[:80]}",
        "write one row of numbers a line, separated by commas",
    )


# -- json -----------------------------------------------------------------------------------------


def read_json(text: str, file: IO[bytes]) -> Loaded:
    """A number, a nested list of numbers, or a dict of those."""
    data = file.read(STATE.max_bytes + 1)
    need = len(data) + sum(size * data.count(sign) for sign, size in _SIZES.items())
    if need > STATE.max_bytes:
        raise too_large(text, need)
    _check_text(text, data[:4])
    value = _parsed(text, data)
    if isinstance(value, dict):
        return {key: _array(text, entry, f" under {key[:40]!r}") for key, entry in value.items()}
    return _array(text, value, "")


def _parsed(text: str, data: bytes) -> Any:
    import json

    try:
        return json.loads(data.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise wrong_data(text, "is no UTF-8 text", "save it as UTF-8") from None
    except RecursionError:
        raise wrong_data(text, "is nested too deeply", "write a list of rows") from None
    except json.JSONDecodeError as error:
        if not data.strip():
            raise wrong_data(text, "is empty", "write a list of numbers: [1.0, 2.0]") from None
        raise wrong_data(
            text,
            f"is no JSON: {error.msg.lower()} in line {error.lineno}, column {error.colno}",
            "write a list of numbers: [1.0, 2.0]",
        ) from None
    except ValueError:  # an integer of thousands of digits
        raise wrong_data(
            text, "holds an integer that is too large", "write it as a float"
        ) from None


def _array(text: str, value: Any, where: str) -> np.ndarray:
    """The array of a number or nested list, with the dtype that `torch.tensor` gives it."""
    try:
        return array_of(_numbers(text, value, where))
    except AutodiffError as error:
        if error.code in ("E702", "E505"):
            raise
        raise wrong_data(
            text,
            f"holds no array{where}: {error.diagnostic.message[:120]}",
            "write a list of rows of one length",
        ) from None


def _numbers(text: str, value: Any, where: str) -> Any:
    """The value with the words for non-finite numbers replaced; anything else is refused."""
    if isinstance(value, list):
        if all(type(item) is float or type(item) is int for item in value):
            return value
        return [_numbers(text, item, where) for item in value]
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, str) and value in NON_FINITE:
        return NON_FINITE[value]
    what = (
        "null"
        if value is None
        else f"the text {value[:30]!r}"
        if isinstance(value, str)
        else "an object"
    )
    raise wrong_data(
        text, f"holds {what}{where}, not numbers", "write a list of numbers, or one dict of lists"
    )
