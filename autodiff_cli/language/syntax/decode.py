"""From the bytes of a file to a `Source`: UTF-8 and nothing else, said in words when it is not."""

from __future__ import annotations

from ...errors import AutodiffError, fail
from ...source import Source, Span

_SIGNATURES: dict[str, tuple[bytes, ...]] = {
    "UTF-32 text": (b"\xff\xfe\x00\x00", b"\x00\x00\xfe\xff"),
    "UTF-16 text": (b"\xff\xfe", b"\xfe\xff"),
    "a NumPy array file": (b"\x93NUMPY",),
    "a zip archive (or .npz or .pt file)": (b"PK\x03\x04",),
    "gzip-compressed data": (b"\x1f\x8b",),
    "a PNG picture": (b"\x89PNG",),
    "a JPEG picture": (b"\xff\xd8\xff",),
    "a GIF picture": (b"GIF8",),
    "a PDF document": (b"%PDF",),
    "a program": (b"\x7fELF",),
    "a Jupyter notebook": (b'{"cells"', b'{\n "cells"'),
    "a page of HTML": (b"<!DOCTYPE", b"<html"),
    "a pickle": (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05"),
}
_ANY_SIGNATURE = tuple(start for starts in _SIGNATURES.values() for start in starts)
_BOM = b"\xef\xbb\xbf"
_SAMPLE = 4096
_CONTROLS = frozenset(range(32)) - frozenset(b"\t\n\r\f\x1b")


def decode(data: bytes, name: str) -> Source:
    """The text of a file, without its byte-order mark and with `\\n` line ends; E109 otherwise."""
    if data.startswith(_BOM):
        data = data[len(_BOM) :]
    if data.startswith(_ANY_SIGNATURE):
        what = next(what for what, starts in _SIGNATURES.items() if data.startswith(starts))
        raise _not_text(name, what)
    zero = data.find(b"\0")
    if zero >= 0:
        raise _not_text(name, _kind_of_zeros(data), zero)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _not_utf8(data, name, error.start) from None
    return Source(text.replace("\r\n", "\n").replace("\r", "\n"), name)


def _kind_of_zeros(data: bytes) -> str:
    """What data with zero bytes looks like, from where they stand."""
    sample = data[:_SAMPLE]
    zeros = sample.count(0)
    if zeros >= len(sample) * 0.6:
        return "UTF-32 text"
    if zeros >= len(sample) * 0.4 and (not any(sample[1::2]) or not any(sample[::2])):
        return "UTF-16 text"
    return "binary data"


def _not_text(name: str, what: str, offset: int | None = None) -> AutodiffError:
    where = f": byte {offset} is zero" if offset is not None and what == "binary data" else ""
    if what.startswith("UTF-"):
        help = f"save it as UTF-8: `iconv -f {what.split()[0]} -t UTF-8 {name}`"
    elif "Jupyter" in what:
        help = f"save its code: `jupyter nbconvert --to script {name}`"
    elif "NumPy" in what or "npz" in what:
        help = f"read it from a program: `x = load('{name}')`"
    else:
        help = "give the file that holds the text of the program"
    return fail("E109", f"`{name}` is no program text, it looks like {what}{where}", help=help)


def _not_utf8(data: bytes, name: str, offset: int) -> AutodiffError:
    """The error of a byte that cannot be UTF-8, with its place in what could be read."""
    sample = data[max(0, offset - _SAMPLE // 2) : offset + _SAMPLE // 2]
    if sum(byte in _CONTROLS for byte in sample) > len(sample) * 0.05:
        return _not_text(name, "binary data")
    rest = data[offset : offset + 200].partition(b"\n")[0]
    before = data[:offset].decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    source = Source(before + rest.decode("utf-8", "replace"), name)
    line, _ = source.position(len(before))
    return fail(
        "E109",
        f"byte 0x{data[offset]:02x} at offset {offset} (line {line}) is not UTF-8",
        Span(source, len(before), len(before) + 1),
        label="not UTF-8",
        help=f"save the file as UTF-8: `iconv -f LATIN1 -t UTF-8 {name}`",
    )
