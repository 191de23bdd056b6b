"""`.snap` files: the results of a program in the plain form, beside it; read back and compared.

Invariant: a damaged snapshot is an error that names its line; it is never taken for an old one
that may be overwritten.
"""

from __future__ import annotations

import re
from os.path import commonprefix
from typing import Any

import numpy as np

from ..errors import AutodiffError, Diagnostic, fail, fault
from ..graph.node import Node
from ..graph.op import LEAF, OUTPUT
from ..language.errors.array_diff import most_different
from ..language.program.report import Options, Report, TensorRecord
from ..language.program.running import run_program
from ..language.runtime.assertions import TOLERANCE, close_mask
from ..language.syntax.decode import decode
from ..source import Source, Span

SUFFIX = ".snap"
HEADER = "# autodiff.plain/"
LARGE = 1000
PROBES = 64
MAX_CHAIN = 4000
_DESCRIBED = re.compile(r"^(\w+) = .*  # (\([0-9, ]*\) \w+ \w+)$", re.MULTILINE)
_SUMMARY = re.compile(
    r"^#: (?P<name>\w+(?:\.grad)?) (?P<shape>\([0-9, ]*\)) (?P<dtype>\w+)"
    r" mean=(?P<mean>\S+) min=(?P<min>\S+) max=(?P<max>\S+) probes=\[(?P<probes>[^\]]*)\]$"
)


class Snapshot:
    """What a `.snap` file says."""

    def __init__(self, source: Source, report: Report, summaries: dict[str, dict[str, str]]):
        self.source = source
        self.report = report
        self.summaries = summaries
        self.described = dict(_DESCRIBED.findall(source.text))
        chain = re.search(r"^#: chain (.*)$", source.text, re.MULTILINE)
        self.chain = chain[1] if chain else None

    def arrays(self) -> dict[str, tuple[np.ndarray, str]]:
        """Values and gradients by name, with their dtype."""
        return arrays_of(self.report)


def arrays_of(report: Report) -> dict[str, tuple[np.ndarray, str]]:
    """Values by name, gradients by `NAME.grad`."""
    found: dict[str, tuple[np.ndarray, str]] = {}
    for name, record in report.named.items():
        found[name] = (record.value, record.dtype)
        if record.grad is not None:
            found[f"{name}.grad"] = (record.grad, record.dtype)
    for name, number in report.scalars.items():
        if (array := array_of(number)) is not None:
            found[name] = (array, array.dtype.name)
    return found


def array_of(number: float) -> np.ndarray | None:
    """A number of Python that can be compared: None for integers beyond all floats."""
    array = np.asarray(number)
    if array.dtype != object:
        return array
    try:
        return np.asarray(float(number))
    except OverflowError:
        return None


# -- writing --------------------------------------------------------------------------------------


def write(report: Report, plain: Any) -> str:
    """The text of a snapshot: the plain form; large tensors are summed up."""
    small: dict[str, TensorRecord] = {}
    lines: list[str] = []
    for name, record in report.named.items():
        if record.value.size <= LARGE:
            small[name] = record
            continue
        lines.append(_summary(name, record.value, record.dtype))
        if record.grad is not None:
            lines.append(_summary(f"{name}.grad", record.grad, record.dtype))
    name = report.file.replace("\\", "/").rpartition("/")[2]
    shown = Report(name, loss=report.loss, tensors=small, scalars=report.scalars)
    text = plain(shown)
    if not text.startswith(HEADER):
        text = f"{HEADER}1  {name}\n" + text
    if report.graph is not None:
        lines.append(f"#: chain {chain(report.graph)}")
    return text + "".join(line + "\n" for line in lines)


def _summary(name: str, array: np.ndarray, dtype: str) -> str:
    flat = array.reshape(-1).astype(np.float64)
    probes = ", ".join(repr(float(v)) for v in flat[_places(flat.size)])
    low, mean, high = float(flat.min()), float(flat.mean()), float(flat.max())
    shape = tuple(int(n) for n in array.shape)
    return f"#: {name} {shape} {dtype} mean={mean!r} min={low!r} max={high!r} probes=[{probes}]"


def _places(size: int) -> np.ndarray:
    """Where a large tensor is probed: spread over it, never only at multiples of a power of two."""
    return (np.arange(PROBES) * size // PROBES + np.arange(PROBES) * 7) % size


def chain(node: Node) -> str:
    """The grad_fn names behind a result, nested as in the graph, up to a length."""
    parts: list[str] = []
    length = 0
    pending: list[Node | str] = [node]
    while pending:
        at = pending.pop()
        if isinstance(at, str):
            parts.append(at)
        elif at.op is OUTPUT:
            pending.append(at.args[0])
            continue
        elif at.op is LEAF:
            parts.append("AccumulateGrad")
        else:
            inputs = [n for n in at.inputs if n.requires_grad]
            parts.append(at.grad_name + ("(" if inputs else ""))
            if inputs:
                pending.append(")")
                for i, n in enumerate(reversed(inputs)):
                    if i:
                        pending.append(", ")
                    pending.append(n)
        length += len(parts[-1])
        if length > MAX_CHAIN:
            return "".join(parts) + "..."
    return "".join(parts)


# -- reading --------------------------------------------------------------------------------------


def read(path: str, data: bytes) -> Snapshot:
    """The snapshot in a file; E604 naming the line when it is damaged."""
    try:
        source = decode(data, path)
    except AutodiffError as error:
        raise _damaged(error.diagnostic) from None
    lines = source.text.split("\n")
    if not source.text.startswith(HEADER):
        raise fault("E604 no-snapshot-line-does", path, HEADER, span=_line(source, 1))
    if not source.text.endswith("\n"):
        raise fault(
            "E604 snapshot-truncated-line", path, len(lines), span=_line(source, len(lines))
        )
    summaries: dict[str, dict[str, str]] = {}
    for number, line in enumerate(lines, 1):
        if line.startswith("#: chain "):
            continue
        if line.startswith("#:"):
            match = _SUMMARY.match(line)
            if match is None or not _numbers(match):
                raise _damaged_line(source, number)
            summaries[match["name"]] = match.groupdict()
        elif line and not line.startswith("#") and not re.match(r"[\w.]+ = ", line):
            raise _damaged_line(source, number)
    report = run_program(source, Options(nan="ignore", backward=False))
    if report.error is not None:
        raise _damaged(report.error.diagnostic, source)
    return Snapshot(source, report, summaries)


def _numbers(match: re.Match[str]) -> bool:
    try:
        words = [match["mean"], match["min"], match["max"], *match["probes"].split(",")]
        return len([float(word) for word in words]) == PROBES + 3
    except ValueError:
        return False


def _line(source: Source, number: int) -> Span:
    start = source.starts[min(number, len(source.starts)) - 1]
    return Span(source, start, start + min(len(source.line(number)), 200))


def _damaged_line(source: Source, number: int) -> AutodiffError:
    return fault("E604 snapshot-damaged-line", source.name, number, span=_line(source, number))


def _damaged(diagnostic: Diagnostic, source: Source | None = None) -> AutodiffError:
    span = diagnostic.span
    where = f" in line {span.line}" if span else ""
    name = source.name if source else span.source.name if span else "the file"
    return fault("E604 snapshot-damaged", name, where, diagnostic.message, span=span)


# -- comparing ------------------------------------------------------------------------------------


def compare(snapshot: Snapshot, report: Report) -> list[Diagnostic]:
    """What differs, as E604 and, for values that no longer exist, E605."""
    found: list[Diagnostic] = []
    old, new = snapshot.arrays(), arrays_of(report)
    for name in (*snapshot.summaries, *old):
        if name not in new:
            found.append(_diagnostic(snapshot, name, "is gone", "E605"))
            continue
        summary = snapshot.summaries.get(name)
        text = (
            difference(old[name][0], new[name][0], old[name][1], new[name][1])
            if summary is None
            else _summary_difference(summary, *new[name])
        )
        if text:
            found.append(_diagnostic(snapshot, name, text))
    for name in new:
        if name not in old and name not in snapshot.summaries:
            found.append(_diagnostic(snapshot, name, "is new, the snapshot does not have it"))
    found.extend(_graph_differences(snapshot, report))
    return found


def _graph_differences(snapshot: Snapshot, report: Report) -> list[Diagnostic]:
    found = []
    for name, text in snapshot.described.items():
        record = report.tensors.get(name)
        if record is None or name not in snapshot.report.tensors:
            continue
        origin = record.grad_fn or ("leaf" if record.requires_grad else "const")
        if text.rpartition(" ")[2] != origin:
            found.append(
                _diagnostic(snapshot, name, f"was {text.rpartition(' ')[2]}, now it is {origin}")
            )
    if snapshot.chain is not None and report.graph is not None and not found:
        now = chain(report.graph)
        if now != snapshot.chain:
            at = len(commonprefix([snapshot.chain, now]))  # noqa: RUF071 - of texts
            text = f"the chain of grad_fn differs: was {snapshot.chain[at : at + 60]!r}, "
            text += f"now {now[at : at + 60]!r}"
            found.append(_diagnostic(snapshot, "#: chain", text))
    return found


def difference(old: np.ndarray, new: np.ndarray, old_dtype: str, new_dtype: str) -> str | None:
    """What differs between two arrays beyond the tolerance of their dtype; shapes first."""
    if old.shape != new.shape:
        return f"shapes differ: was {tuple(old.shape)}, now {tuple(new.shape)}"
    if old_dtype != new_dtype:
        return f"dtypes differ: was {old_dtype}, now {new_dtype}"
    rtol, atol = TOLERANCE.get(new_dtype, (0.0, 0.0))
    a, b = new.astype(np.float64), old.astype(np.float64)
    near = close_mask(a, b, rtol, atol, True)
    return most_different(b, a, near, "was {:.9g}, now it is {:.9g}")


def _summary_difference(summary: dict[str, str], array: np.ndarray, dtype: str) -> str | None:
    shape = str(tuple(int(n) for n in array.shape))
    if summary["shape"] != shape:
        return f"shapes differ: was {summary['shape']}, now {shape}"
    if summary["dtype"] != dtype:
        return f"dtypes differ: was {summary['dtype']}, now {dtype}"
    flat = array.reshape(-1).astype(np.float64)
    now = [flat.mean(), flat.min(), flat.max(), *flat[_places(flat.size)]]
    words = [summary["mean"], summary["min"], summary["max"], *summary["probes"].split(",")]
    was = [float(word) for word in words]
    if difference(np.array(was), np.array(now), dtype, dtype) is None:
        return None
    return f"mean, min, max or probed elements differ: mean was {was[0]:.9g}, now {now[0]:.9g}"


def _diagnostic(snapshot: Snapshot, name: str, text: str, code: str = "E604") -> Diagnostic:
    text_of, number = snapshot.source.text, 1
    for begin in (f"\n{name} ", f"\n#: {name} "):
        if begin in text_of:
            number = snapshot.source.position(text_of.index(begin) + 1)[0]
    subject = "the graph" if name == "#: chain" else f"`{name}`"
    helps = "the value belongs to nothing; `--update` writes the snapshot anew"
    return fail(
        code,
        f"{subject}: {text}",
        _line(snapshot.source, number),
        help=helps if code == "E605" else "if the new value is right: --update",
    ).diagnostic
