"""The plain form: a report as program text, one statement a line, every digit.

Invariant: run again, the text gives tensors of the same names, values and dtypes, leaves where
there were tensors that require grad. What is no statement is a comment.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..numerals import format_number, writable
from .selection import Family, families, matching
from .text import WORD, format_count, format_shape, printable
from .values import shortest

if TYPE_CHECKING:
    from ..session import Report, TensorRecord
    from .profile import StyledLine

MOST_NUMBERS = 10_000  # of one tensor of a snippet that are written out unasked
VERSION = "autodiff.plain/1"
BOLD, DIM, RESET = "\x1b[1m", "\x1b[2m", "\x1b[0m"


def plain(
    report: Report,
    *,
    only: tuple[str, ...] = (),
    show: tuple[str, ...] = (),
    asserts: bool = False,
    all: bool = False,
    color: bool = False,
) -> str:
    """The text of a report, with a line end after every line; empty for an empty program."""
    records = matching(report, show)
    if report.shown is not None and not any(record.requires_grad for record in records):
        return report.shown + "\n"
    lines = list(_lines(report, records, only, show, asserts, all))
    if not lines:
        return ""
    if not asserts:
        lines.insert(0, _header(report))
    if color:
        lines = [painted(line) for line in lines]
    return "\n".join(lines) + "\n"


def _header(report: Report) -> str:
    objective = f"  objective={report.loss}" if report.loss else ""
    return f"# {VERSION}  {printable(report.file, WORD)}{objective}"


def _lines(
    report: Report,
    records: list[TensorRecord],
    only: tuple[str, ...],
    show: tuple[str, ...],
    asserts: bool,
    all: bool,
) -> Iterator[str]:
    for name, array in report.blocked.items():
        found = array.measured
        numbers = [f"{k} {format_number(v)}" for k, v in found.shown().items()]
        where = f"{array.dtype} in {format_count(found.blocks, 'block')}"
        yield f"# {name}: {format_shape(array.shape)} {where}; {', '.join(numbers)}"
    told = report.snippet and not (all or show or asserts)
    large = [record for record in records if record.value.size > MOST_NUMBERS] if told else []
    groups = families(records) if not (all or show or asserts) else []
    many = [group for group in groups if len(group.members) > 1]
    left = {record.name for record in [*large, *(r for group in many for r in group.members)]}
    records = [record for record in records if record.name not in left] if left else records
    if not only or "values" in only:
        for record in large:
            yield (
                f"# {record.name}: {record.value.size} numbers (--show {record.name} writes them)"
                f"  # {describe(record)}"
            )
        for record in records:
            value = literal(record.value, record.requires_grad)
            yield (
                assertion(record.name, record.value)
                if asserts
                else (f"{_start(record)} = {value}  # {describe(record)}")
            )
        for group in many:
            yield f"# {group.name}: {_together(group)}  # {describe(group.members[0])}"
        if not show and not asserts:
            for name, number in report.scalars.items():
                kind = type(number).__name__
                if writable(number):
                    yield f"{name} = {kind}({number!r})  # {kind}"
                else:
                    yield f"# {name}: {format_number(number)}  # {kind}"
        if report.shown is not None and not asserts:
            yield from (f"# {line}" for line in report.shown.split("\n"))
    if "graph" in only and report.graph is not None:
        from .graphs.outline import Outline
        from .graphs.tree import Bounds, Tree, everything, tree_lines

        column = None
        if report.profile is not None:
            from .profile import shares

            column = shares(report.profile, 10_000)
        bounds = everything(10_000) if all else Bounds()
        rows = Tree(Outline.of_report(report), bounds, None, column).draw()
        yield from (f"# {line}" for line in tree_lines(rows, width=10_000, unicode=True))
    if not only or "gradients" in only:
        yield from _gradients(records, asserts)


def _gradients(records: Iterable[TensorRecord], asserts: bool) -> Iterator[str]:
    for record in records:
        if record.grad is not None:
            text = f"{gradient(record.grad)}  # {format_shape(record.grad.shape)}"
            yield (
                assertion(f"{record.name}.grad", record.grad)
                if asserts
                else f"{_start(record)}.grad = {text}"
            )


def _start(record: TensorRecord) -> str:
    """The name; that of a tensor inside another value makes no program text, but a comment."""
    return f"# {record.name}" if record.inside else record.name


def _together(group: Family) -> str:
    count = format_count(len(group.members), "tensor")
    return f"{count} alike (--show '{group.name}' writes them)"


def describe(record: TensorRecord) -> str:
    """`(2, 2) float64 leaf`: shape, dtype, and how the tensor came to be."""
    origin = record.grad_fn or ("leaf" if record.requires_grad else "const")
    return f"{format_shape(record.shape)} {record.dtype} {origin}"


def literal(array: np.ndarray, requires_grad: bool) -> str:
    """Program text that makes this tensor, as a leaf if it requires grad, else as a constant."""
    known = array.dtype in _PLAIN if array.size else array.dtype == np.float64
    further = [] if known else [f"dtype=torch.{array.dtype.name}"]
    if requires_grad:
        further.append("requires_grad=True")
    if array.size == 0:
        return f"zeros({', '.join([*map(str, array.shape), *further])})"
    text = repr(shortest(array))
    if not known:
        return f"tensor({', '.join([text, *further])})"
    return text if requires_grad else f"const({text})"


# What `const(...)` makes of floats, ints and bools in a native program.
_PLAIN = (np.dtype(np.float64), np.dtype(np.int64), np.dtype(np.bool_))


def gradient(array: np.ndarray) -> str:
    """Program text of a gradient; a list or number takes the dtype of its tensor."""
    if array.dtype == np.float64 and array.size:
        return repr(shortest(array))
    return literal(array, False)


def assertion(name: str, array: np.ndarray) -> str:
    """The statement that holds when the tensor has this value."""
    name = re.sub(r"\.(\d+)", r"[\1]", name)  # `model[0].weight` in a program
    if array.size == 0:
        return f"assert {name}.shape == {format_shape(array.shape)}"
    text = repr(shortest(array))
    if array.dtype.kind == "f" and np.isnan(array).any():
        other = f"tensor({text}, dtype=torch.{array.dtype.name})"
        return f"assert allclose({name}, {other}, equal_nan=True)"
    return f"assert {name} == {text}"


def comments(lines: Iterable[StyledLine], color: bool) -> str:
    """Lines with styles as comments of program text."""
    texts = ["# " + "".join(text for text, _ in line).rstrip() for line in lines]
    return "".join((painted(text) if color else text) + "\n" for text in texts)


def painted(line: str) -> str:
    """Names bold, comments dim."""
    statement, mark, comment = line.partition("# ")
    name, equals, rest = statement.partition(" = ")
    painted = f"{BOLD}{name}{RESET}{equals}{rest}" if equals else statement
    return painted + (f"{DIM}{mark}{comment}{RESET}" if mark else "")
