"""Where two results part: the first value that departs, the node inside it, and how far the
difference spreads.

Invariant: values are compared in the order in which the first program computed them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...engine.evaluate import dependencies, evaluate
from ...errors import fail, fault
from ...graph import op as ops
from ...graph.kinds import Kind
from ...graph.node import Node
from ...graph.op import value_of
from ...language.program.report import Options, Report
from ...language.runtime.assertions import TOLERANCE, close_mask
from ...source import Source, Span
from ..snapshots import array_of, arrays_of, read
from ..watched import Watched


@dataclass(slots=True)
class Named:
    """One value: its name, how many times the name was assigned before, where, and its node."""

    name: str
    turn: int
    array: np.ndarray
    span: Span | None = None
    node: Node | None = None

    @property
    def key(self) -> tuple[str, int]:
        return self.name, self.turn


@dataclass(slots=True)
class Outcome:
    """The values of one side in order, and gradients by name."""

    title: str
    values: list[Named] = field(default_factory=list)
    gradients: dict[str, np.ndarray] = field(default_factory=dict)


@dataclass(slots=True)
class Departure:
    """One name whose values differ; `text` says how, `largest` is the largest relative error."""

    name: str
    text: str
    span: Span | None
    other: Span | None
    largest: float
    turn: int = 0
    inner: Node | None = None
    rows: list[tuple[str, str, str, str]] = field(default_factory=list)


@dataclass(slots=True)
class Comparison:
    """All departures, values before gradients, each in program order."""

    departures: list[Departure] = field(default_factory=list)
    gradients: list[Departure] = field(default_factory=list)
    only_left: list[str] = field(default_factory=list)
    only_right: list[str] = field(default_factory=list)
    values: int = 0
    compared_gradients: int = 0

    @property
    def equal(self) -> bool:
        return not (self.departures or self.gradients or self.only_left or self.only_right)


def outcome_of_program(source: Source, options: Options, title: str) -> Outcome:
    """Run a program and keep every assignment; raises AutodiffError."""
    program = Watched(source, options, trace=True)
    report = Report(source.name)
    program.run()
    program.fill(report)
    found = Outcome(title)
    turns: dict[str, int] = {}
    evaluate([node for _, _, node in program.history])
    for name, span, node in program.history:
        turn = turns.get(name, 0)
        turns[name] = turn + 1
        found.values.append(Named(name, turn, np.asarray(value_of(node)), span, node))
    for name, record in report.tensors.items():
        if name not in turns:
            found.values.append(Named(name, 0, record.value, record.node.span, record.node))
        if record.grad is not None:
            found.gradients[name] = record.grad
    for name, number in report.scalars.items():
        if (array := array_of(number)) is not None:
            found.values.append(Named(name, 0, array))
    return found


def outcome_of_arrays(arrays: dict[str, np.ndarray], title: str) -> Outcome:
    """Saved results: `A` and `A.grad`."""
    found = Outcome(title)
    for name, array in arrays.items():
        if name.endswith(".grad"):
            found.gradients[name.removesuffix(".grad")] = array
        else:
            found.values.append(Named(name, 0, array))
    return found


def compare(
    left: Outcome, right: Outcome, rtol: float | None = None, atol: float | None = None
) -> Comparison:
    """Everything in which two results differ."""
    found = Comparison()
    saved = not all(value.node is not None for side in (left, right) for value in side.values)
    ours = {value.key: value for value in _final(left, saved)}
    theirs = {value.key: value for value in _final(right, saved)}
    for key, value in ours.items():
        other = theirs.get(key)
        if other is None:
            found.only_left.append(value.name)
            continue
        found.values += 1
        departure = _departure(value.name, value.array, other.array, rtol, atol)
        if departure is None:
            continue
        departure.span, departure.other, departure.turn = value.span, other.span, value.turn
        if not found.departures and value.node is not None and other.node is not None:
            departure.inner = first_node(value.node, other.node, rtol, atol)
        found.departures.append(departure)
    found.only_right += [value.name for key, value in theirs.items() if key not in ours]
    for name in reversed(list(left.gradients)):
        if name not in right.gradients:
            found.only_left.append(f"{name}.grad")
            continue
        found.compared_gradients += 1
        pair = left.gradients[name], right.gradients[name]
        departure = _departure(f"{name}.grad", *pair, rtol, atol)
        if departure is not None:
            found.gradients.append(departure)
    found.only_right += [f"{n}.grad" for n in right.gradients if n not in left.gradients]
    return found


def _final(side: Outcome, saved: bool) -> list[Named]:
    """All assignments; only the last of each name when the other side knows no more."""
    if not saved:
        return side.values
    last = {value.name: value for value in side.values}
    return [Named(v.name, 0, v.array, v.span, v.node) for v in last.values()]


def _departure(
    name: str, a: np.ndarray, b: np.ndarray, rtol: float | None, atol: float | None
) -> Departure | None:
    text, largest, rows = differs(a, b, rtol, atol)
    return None if text is None else Departure(name, text, None, None, largest, rows=rows)


def differs(
    a: Any, b: Any, rtol: float | None = None, atol: float | None = None
) -> tuple[str | None, float, list[tuple[str, str, str, str]]]:
    """What differs between two arrays in words, the largest relative error, the worst elements."""
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        return f"shapes differ: {tuple(a.shape)} and {tuple(b.shape)}", float("inf"), []
    known = [TOLERANCE[d.name] for d in (a.dtype, b.dtype) if d.name in TOLERANCE]
    least, absolute = max(known, default=(0.0, 0.0))
    x, y = a.astype(np.float64), b.astype(np.float64)
    near = close_mask(
        x, y, least if rtol is None else rtol, absolute if atol is None else atol, True
    )
    if near.all():
        return None, 0.0, []
    with np.errstate(all="ignore"):
        error = np.nan_to_num(np.where(near, 0.0, np.abs(x - y)), nan=np.inf)
        relative = error / np.maximum(np.maximum(np.abs(x), np.abs(y)), 1e-300)
    largest = float(np.nan_to_num(relative, nan=np.inf).max())
    rows = []
    for at in np.argsort(-error, axis=None, kind="stable")[:3]:
        place = tuple(int(i) for i in np.unravel_index(int(at), x.shape))
        if error[place] > 0:
            rows.append(
                (str(list(place)), f"{x[place]:.9g}", f"{y[place]:.9g}", f"{error[place]:.3g}")
            )
    count = int((~near).sum())
    return f"{count} of {near.size} element{'' if near.size == 1 else 's'} differ", largest, rows


def first_node(left: Node, right: Node, rtol: float | None, atol: float | None) -> Node:
    """The innermost node that departs: its inputs agree, or the two graphs differ there."""
    node, other = left, right
    while True:
        if node.op.key != other.op.key or node.op is ops.LEAF:
            return other if node.op.kind is Kind.SOURCE else node
        ours, theirs = _named_inputs(node), _named_inputs(other)
        if len(ours) != len(theirs):
            return node
        for a, b in zip(ours, theirs, strict=True):
            if a.outputs is not None:
                continue
            if differs(value_of(a), value_of(b), rtol, atol)[0] is not None:
                node, other = a, b
                break
        else:
            return node


def _named_inputs(node: Node) -> tuple[Node, ...]:
    """What a person sees as the inputs of a node."""
    return node.inputs or dependencies(node)


def read_saved(path: str) -> dict[str, np.ndarray]:
    """Arrays of saved results: .npz, .json of `--format json`, or the plain form."""
    lower = path.lower()
    if lower.endswith(".npz"):
        return _read_npz(path)
    try:
        with open(path, "rb") as file:
            data = file.read(1 << 28)
    except OSError as error:
        raise fail("E701", f"cannot read `{path}`: {(error.strerror or '').lower()}") from None
    if lower.endswith(".json"):
        return _read_json(path, data)

    return {name: array for name, (array, _) in arrays_of(read(path, data).report).items()}


def _read_npz(path: str) -> dict[str, np.ndarray]:
    import zipfile

    try:
        with open(path, "rb") as file, np.load(file) as archive:
            return {name: np.asarray(archive[name]) for name in archive.files}
    except OSError as error:
        reason = (error.strerror or "it is no .npz file").lower()
        raise fail("E701", f"cannot read `{path}`: {reason}", help="check the path") from None
    except (ValueError, EOFError, zipfile.BadZipFile) as error:
        raise fail("E701", f"cannot read `{path}`: {str(error)[:200].lower()}") from None


def _read_json(path: str, data: bytes) -> dict[str, np.ndarray]:
    import json

    found: dict[str, np.ndarray] = {}
    try:
        document = json.loads(data)
        for name, record in document["tensors"].items():
            dtype = np.dtype(record["dtype"])
            for key, part in ((name, record["value"]), (f"{name}.grad", record["grad"])):
                if part is not None:
                    found[key] = np.array(part, np.float64).astype(dtype).reshape(record["shape"])
        for name, number in document.get("scalars", {}).items():
            if str(number).startswith("<"):  # an integer that nobody writes out
                continue
            array = array_of(float(number) if isinstance(number, str) else number)
            if array is not None:
                found[name] = array
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise fault("E702 holds-no-results-autodiff", path) from None
    return found
