"""Jacobians and Hessians as named blocks: JSON documents, program text, tables, files.

Invariant: every form names each block by what it differentiates, and no form but the tables for
people rounds or leaves out a number.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from ..suggest import free_name
from .document import enveloped
from .files import store_arrays
from .plain import gradient, painted
from .text import WORD, broken, dumped, format_number, format_shape, identifier, printable
from .values import cell_lines, fit_lines, strict, strict_number

if TYPE_CHECKING:
    from ..language.program.derivatives import Derivatives, Spectrum
    from .tables import Page

SCHEMAS = {"jacobian": "autodiff.jacobian/1", "hessian": "autodiff.hessian/1"}


# -- names ----------------------------------------------------------------------------------------


def title(found: Derivatives, names: tuple[str, str]) -> str:
    """`d y / d A  (2,)x(2, 2)`."""
    first, second = (printable(name, 80) for name in names)
    of = printable(found.text, 80)
    shapes = found.shapes
    if found.kind == "jacobian":
        sizes = f"{format_shape(found.shape)}x{format_shape(shapes[names[1]])}"
        return f"d {first} / d {second}  {sizes}"
    if found.part == "product":
        return f"Hessian of {of} times v, part of {second}  {format_shape(shapes[names[1]])}"
    if found.part == "diagonal":
        return f"d2 {of} / d {second}[i]**2  {format_shape(shapes[names[1]])}"
    sizes = f"{format_shape(shapes[names[0]])}x{format_shape(shapes[names[1]])}"
    return f"d2 {of} / d {first} d {second}  {sizes}"


_LETTERS = {"full": "H", "diagonal": "diag_H", "product": "Hv"}


def statement_names(found: Derivatives) -> dict[tuple[str, str], str]:
    """The name of each block in program text and files: `J_y_A`, `H_loss_A_B`."""
    head = "J" if found.kind == "jacobian" else _LETTERS[found.part]
    head += f"_{identifier(found.of)}" if found.of else ""
    names: dict[tuple[str, str], str] = {}
    taken: set[str] = set()
    for key in found.blocks:
        pair = found.kind == "hessian" and found.part == "full"
        parts = key if pair else key[1:]
        names[key] = free_name("_".join([head, *map(identifier, parts)]), taken)
    return names


def flattened(found: Derivatives) -> np.ndarray:
    """All blocks of a Jacobian side by side: a row for each element of the output."""
    rows = math.prod(found.shape)
    columns = [
        block.reshape(rows, math.prod(found.shapes[wrt]))
        for (_, wrt), block in found.blocks.items()
    ]
    return np.concatenate(columns, axis=1)


def column_ranges(found: Derivatives) -> dict[str, tuple[int, int]]:
    """Where each input's columns are in the flat layout."""
    ranges = {}
    start = 0
    for _, wrt in found.blocks:
        stop = start + math.prod(found.shapes[wrt])
        ranges[wrt] = start, stop
        start = stop
    return ranges


def named_arrays(found: Derivatives, flat: bool) -> dict[str, np.ndarray]:
    """The arrays of a file, by the names they have in program text."""
    if flat:
        return {f"J_{identifier(found.of)}" if found.of else "J": flattened(found)}
    names = statement_names(found)
    return {names[key]: block for key, block in found.blocks.items()}


# -- JSON -----------------------------------------------------------------------------------------


def _body(found: Derivatives, flat: bool) -> dict[str, Any]:
    of = {"of": found.of, "of_shape": list(found.shape)}
    if found.kind == "jacobian":
        of["mode"] = found.mode
        if not flat:
            return {**of, "blocks": _by_wrt(found)}
        columns = [
            {"name": name, "shape": list(found.shapes[name]), "start": start, "stop": stop}
            for name, (start, stop) in column_ranges(found).items()
        ]
        return {**of, "matrix": _entry(flattened(found)), "columns": columns}
    if found.part != "full":
        return {**of, found.part: _by_wrt(found)}
    blocks: dict[str, dict[str, Any]] = {}
    for (left, right), block in found.blocks.items():
        blocks.setdefault(left, {})[right] = _entry(block)
    result: dict[str, Any] = {**of, "blocks": blocks}
    spectrum = found.spectrum
    if spectrum is not None:
        result["eigenvalues"] = {
            "min": strict_number(float(spectrum.values[0])),
            "max": strict_number(float(spectrum.values[-1])),
            "negative": spectrum.negative,
            "zero": spectrum.zero,
            "positive": spectrum.positive,
        }
        result["definiteness"] = spectrum.definiteness
        result["point"] = spectrum.point
        result["gradient_norm"] = strict_number(spectrum.gradient_norm)
    return result


def _by_wrt(found: Derivatives) -> dict[str, Any]:
    return {wrt: _entry(block) for (_, wrt), block in found.blocks.items()}


def _entry(array: np.ndarray) -> dict[str, Any]:
    return {"shape": list(array.shape), "value": strict(array)}


def dump(found: Any, kind: str, flat: bool = False) -> str:
    """The document as one line, with its line end; `found` may be the report of a run that never
    began."""
    return dumped(enveloped(SCHEMAS[kind], found, lambda: _body(found, flat)))


# -- program text ---------------------------------------------------------------------------------


def plain(found: Derivatives, *, flat: bool = False, color: bool = False) -> str:
    """One statement for each block; run as a program it gives the same numbers."""
    of = f"  of={found.of}" if found.of else ""
    lines = [f"# {SCHEMAS[found.kind]}  {printable(found.file, WORD)}{of}"]
    if flat:
        ((name, matrix),) = named_arrays(found, True).items()
        lines.append(f"{name} = {gradient(matrix)}  # {_flat_title(found, matrix)}")
    else:
        names = statement_names(found)
        lines += [
            f"{names[key]} = {gradient(block)}  # {title(found, key)}"
            for key, block in found.blocks.items()
        ]
    if found.spectrum is not None:
        lines += [f"# {line}" for line in verdict(found.spectrum, 17)]
    if color:
        lines = [painted(line) for line in lines]
    return "\n".join(lines) + "\n"


def _flat_title(found: Derivatives, matrix: np.ndarray) -> str:
    ranges = ", ".join(f"{n} [{a}:{b}]" for n, (a, b) in column_ranges(found).items())
    of = printable(found.text, 80)
    return f"d {of}  {format_shape(matrix.shape)}  columns: {printable(ranges)}"


def verdict(spectrum: Spectrum, precision: int, sci: bool = False) -> list[str]:
    """What the eigenvalues say."""

    def number(value: float) -> str:
        return repr(float(value)) if precision == 17 else format_number(value, precision, sci)

    smallest = 0.0 if spectrum.zero and not spectrum.negative else spectrum.values[0]
    largest = 0.0 if spectrum.zero and not spectrum.positive else spectrum.values[-1]
    counts = f"{spectrum.negative} negative, {spectrum.zero} zero, {spectrum.positive} positive"
    lines = [f"eigenvalues: min {number(smallest)}, max {number(largest)}  ({counts})"]
    norm = number(spectrum.gradient_norm)
    if not spectrum.stationary:
        shapes = {"indefinite": " (saddle)", "positive definite": " (convex here)",
                  "negative definite": " (concave here)"}  # fmt: skip
        kind = shapes.get(spectrum.definiteness, "")
        lines.append(
            f"{spectrum.definiteness}{kind}; the gradient is not zero here, its norm is {norm}"
        )
    elif spectrum.point == "saddle":
        lines.append(f"indefinite: a saddle point (gradient norm {norm})")
    elif spectrum.point is not None:
        lines.append(
            f"{spectrum.definiteness}: a strict local {spectrum.point} (gradient norm {norm})"
        )
    else:
        lines.append(
            f"{spectrum.definiteness}: second derivatives do not decide (gradient norm {norm})"
        )
    return lines


# -- tables and files -----------------------------------------------------------------------------


def print_blocks(found: Derivatives, page: Page, *, flat: bool) -> None:
    """Print each block under its title, laid out for the width there is."""
    from rich.text import Text

    look = page.look
    if flat:
        matrix = flattened(found)
        shown = [(_flat_title(found, matrix), matrix)]
    else:
        shown = [(title(found, key), block) for key, block in found.blocks.items()]
    single = all(block.size == 1 for block in found.blocks.values())
    if len(shown) > 1 and found.kind == "hessian" and single:
        shown = [_of_numbers(found)]
    for at, (name, array) in enumerate(shown):
        if at:
            page.line()
        page.line(Text(name, "bold"))
        for line in fit_lines(cell_lines(array, look), look.width - 2):
            page.line(Text("  " + line))
    if found.spectrum is not None:
        page.line()
        for line in verdict(found.spectrum, look.precision, look.sci):
            page.line(Text("\n  ".join(broken(line, look.width - 2))))


def _of_numbers(found: Derivatives) -> tuple[str, np.ndarray]:
    """The Hessian in single numbers as one matrix."""
    names = list(dict.fromkeys(first for first, _ in found.blocks))
    values = np.array([block.item() for block in found.blocks.values()])
    if found.part == "full":
        values = values.reshape(len(names), len(names))
    else:
        names = [second for _, second in found.blocks]
    rows = ", ".join(printable(name, 80) + "[0]" * len(found.shapes[name]) for name in names)
    what = {"full": "d2 {}", "product": "Hessian of {} times v", "diagonal": "diagonal of d2 {}"}
    of = what[found.part].format(printable(found.text, 80))
    return f"{of}  by {rows}  {format_shape(values.shape)}", values


def write_blocks(path: str, found: Derivatives, flat: bool) -> None:
    """All blocks in an .npz, a single one in an .npy or .csv."""
    store_arrays(
        path,
        named_arrays(found, flat),
        "array",
        "choose one with --wrt, or write .npz",
        "write .npy or .npz, or a Jacobian with --layout flat",
    )
