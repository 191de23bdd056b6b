"""Jacobians and Hessians of a program that has run: named blocks, computed a few rows at a time.

The graph is pure, so a derivative belongs to the values that the objective was computed from,
whatever the program did to its tensors afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...autograd.literals import array_of
from ...autograd.reverse import gradients
from ...autograd.rules import history, ones_like
from ...autograd.tensor import Tensor
from ...autograd.transforms.jacobians import Piece, columns, goes_forward, rows
from ...engine.evaluate import evaluate
from ...errors import AutodiffError, Diagnostic, Ended, fail, fault
from ...graph.node import Node
from ...graph.op import constant, value_of
from ...graph.sizes import check_size, shape_text
from ...graph.state import STATE, grad_mode
from ...source import Source
from ...suggest import meant
from ..errors.exhaustion import Exhaustion
from .report import Options
from .running import Program
from .variables import Variable, objective_of, quoted, variables_of

MOST_ENTRIES = 10**7
MOST_PASSED = 10**9  # entries computed and let go for a diagonal
SMALL = 64  # the eigenvalues of a Hessian with so many rows are always told

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Request:
    """What is wanted. `part` of a Hessian: `full`, `diagonal`, or `product` with `vector`;
    `force`: however large it is."""

    kind: str = "jacobian"
    of: str | None = None
    wrt: tuple[str, ...] = ()
    mode: str = "auto"
    part: str = "full"
    vector: str = ""
    eigenvalues: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True)
class Spectrum:
    """The eigenvalues of a Hessian in ascending order, how many are negative, zero (to rounding)
    and positive, and the norm of the gradient at the same point."""

    values: np.ndarray
    negative: int
    zero: int
    positive: int
    gradient_norm: float
    stationary: bool

    @property
    def definiteness(self) -> str:
        if self.negative and self.positive:
            return "indefinite"
        if not self.negative and not self.positive:
            return "zero"
        sign = "negative" if self.negative else "positive"
        return f"{sign} semidefinite" if self.zero else f"{sign} definite"

    @property
    def point(self) -> str | None:
        """What kind of point this is: None where second derivatives do not decide, or the
        gradient is not zero."""
        if not self.stationary:
            return None
        kinds = {
            "positive definite": "minimum",
            "negative definite": "maximum",
            "indefinite": "saddle",
        }
        return kinds.get(self.definiteness)


@dataclass(slots=True)
class Derivatives(Ended):
    """What was found. Blocks go by the names they differentiate: `(of, wrt)` in a Jacobian, a
    diagonal or a product, `(wrt, wrt)` in a Hessian."""

    file: str
    kind: str = "jacobian"
    part: str = "full"
    of: str | None = None
    text: str = ""
    shape: Shape = ()
    shapes: dict[str, Shape] = field(default_factory=dict)
    mode: str = "reverse"
    blocks: dict[tuple[str, str], np.ndarray] = field(default_factory=dict)
    spectrum: Spectrum | None = None


class Differentiated(Program):
    """A program whose end is not its backward: what it reads of gradients on the way it gets."""

    def differentiate(self) -> None:
        if not self.ended:
            super().differentiate()


def derivatives(source: Source, options: Options, request: Request) -> Derivatives:
    """Run a program and find its Jacobian or Hessian; what goes wrong is in the result too."""
    found = Derivatives(source.name, request.kind, request.part)
    # A dotted name or an element is no name that the program assigns; it is looked up afterwards.
    plain = tuple(name for name in request.wrt if "." not in name and "[" not in name)
    program = Differentiated(source, replace(options, loss=None, wrt=plain, grad_output=None))
    try:
        with Exhaustion("the derivative", "choose fewer: --wrt"):
            program.run()
            with grad_mode(True):
                _differentiate(program, request, found)
            _check_finite(found, options.nan)
    except AutodiffError as error:
        found.error = error
        found.more_errors = program.more_errors
    if found.error is not None:
        found.blocks.clear()
    found.stdout = "".join(program.printed)
    found.warnings[:0] = STATE.warnings
    STATE.grad_read.clear()
    return found


def _differentiate(program: Differentiated, request: Request, found: Derivatives) -> None:
    objective = objective_of(program, request.of, request.kind)
    out = objective.node
    found.of, found.text, found.shape = objective.name, objective.text, out.shape
    chosen = variables_of(program, objective, request.wrt, found.warnings)
    found.shapes = {variable.name: variable.node.shape for variable in chosen}
    if request.kind == "jacobian":
        _jacobian(objective.text, out, chosen, request, found)
    else:
        _hessian(program, objective.text, out, chosen, request, found)


# -- Jacobians ------------------------------------------------------------------------------------


def _jacobian(
    text: str, out: Node, chosen: list[Variable], request: Request, found: Derivatives
) -> None:
    total = sum(variable.node.numel for variable in chosen)
    _refuse_large(out.numel * total, f"the Jacobian of {quoted(text)}", request.force)
    inputs = [variable.node for variable in chosen]
    forward = goes_forward(out, inputs, request.mode)
    found.mode = "forward" if forward else "reverse"
    try:
        arrays = _by_columns(out, inputs) if forward else _by_rows(out, inputs)
    except AutodiffError as error:
        if not forward or request.mode != "auto" or error.code != "E404":
            raise  # forward mode needs the derivative of the derivative rule
        found.mode = "reverse"
        arrays = _by_rows(out, inputs)
    for variable, array in zip(chosen, arrays, strict=True):
        key = (text, variable.name)
        found.blocks[key] = array.reshape((*out.shape, *variable.node.shape))


def _refuse_large(
    entries: int, what: str, force: bool, help: str = "", limit: int | None = None
) -> None:
    most = MOST_ENTRIES if limit is None else limit
    if entries > most and not force:
        raise fault(
            "E505 entries-more-than", what, entries, most, help or "choose fewer inputs: --wrt NAME"
        )


def _by_rows(out: Node, inputs: list[Node]) -> list[np.ndarray]:
    """Reverse mode: for each input a matrix with a row for each element of `out`."""
    arrays = [_matrix(out, x) for x in inputs]
    for start, stop, parts in _evaluated(rows(out, inputs)):
        for array, part in zip(arrays, parts, strict=True):
            if part is not None:
                array[start:stop] = part
    return arrays


def _by_columns(out: Node, inputs: list[Node]) -> list[np.ndarray]:
    """Forward mode: the same matrices, some columns at a time."""
    arrays = []
    for at, x in enumerate(inputs):
        array = _matrix(out, x)
        for start, stop, (part,) in _evaluated(columns(out, inputs, at)):
            assert part is not None
            array[:, start:stop] = part.T
        arrays.append(array)
    return arrays


def _matrix(out: Node, x: Node) -> np.ndarray:
    """Zeros for each element of both, where the limit of memory has room for them."""
    shape = (out.numel, x.numel)
    check_size(shape, x.dtype)
    return np.zeros(shape, x.dtype)


def _evaluated(pieces: Iterator[Piece]) -> Iterator[tuple[int, int, list[np.ndarray | None]]]:
    """Pieces of a Jacobian as arrays, of which one at a time exists."""
    for start, stop, nodes in pieces:
        evaluate([node for node in nodes if node is not None])
        yield start, stop, [None if node is None else value_of(node) for node in nodes]


# -- Hessians -------------------------------------------------------------------------------------


def _hessian(
    program: Differentiated,
    text: str,
    out: Node,
    chosen: list[Variable],
    request: Request,
    found: Derivatives,
) -> None:
    _check_independent(chosen)
    total = sum(variable.node.numel for variable in chosen)
    if request.part == "full":
        _refuse_large(
            total * total, f"the Hessian of {quoted(text)}", request.force,
            "a product with a vector needs no Hessian: --hvp ones; its diagonal alone: --diag",
        )  # fmt: skip
    nodes = [variable.node for variable in chosen]
    firsts = gradients([(out, ones_like(out))], nodes, create_graph=True, retain_graph=True)
    if request.part == "product":
        vector = vector_of(program, request.vector, chosen)
        for variable, array in zip(chosen, _product(firsts, nodes, vector), strict=True):
            found.blocks[text, variable.name] = array
    elif request.part == "diagonal":
        passed = sum(variable.node.numel**2 for variable in chosen)
        what = f"what the diagonal of the Hessian of {quoted(text)} is taken from"
        _refuse_large(passed, what, request.force, limit=MOST_PASSED)
        for variable, first in zip(chosen, firsts, strict=True):
            found.blocks[text, variable.name] = _diagonal(first, variable.node)
    else:
        _pairs(firsts, chosen, found)
        if request.eigenvalues or total <= SMALL:
            found.spectrum = _spectrum(firsts, chosen, found)


def _check_independent(chosen: list[Variable]) -> None:
    for variable in chosen:
        before = set(history(variable.node)) - {variable.node}
        for other in chosen:
            if other.node in before:
                raise fail(
                    "E411",
                    f"{quoted(variable.name)} is computed from {quoted(other.name)}: a Hessian "
                    "needs variables that do not depend on one another",
                    variable.node.span,
                    help=f"choose one of them: --wrt {variable.name}",
                )


def _product(
    firsts: list[Node | None], nodes: list[Node], vector: list[np.ndarray]
) -> list[np.ndarray]:
    """The Hessian times a vector, without the Hessian."""
    seeds = [
        (first, constant(v.astype(first.dtype)))
        for first, v in zip(firsts, vector, strict=True)
        if first is not None and first.requires_grad
    ]
    found = gradients(seeds, nodes, create_graph=False, retain_graph=True)
    evaluate([g for g in found if g is not None])
    return [
        np.zeros(x.shape, x.dtype) if g is None else value_of(g)
        for g, x in zip(found, nodes, strict=True)
    ]


def _diagonal(first: Node | None, x: Node) -> np.ndarray:
    """Second derivatives by each element alone; a few rows exist at a time."""
    diagonal = np.zeros(x.numel, x.dtype)
    if first is not None:
        for start, stop, (part,) in _evaluated(rows(first, [x], kept=False)):
            if part is not None:
                diagonal[start:stop] = part[np.arange(stop - start), np.arange(start, stop)]
    return diagonal.reshape(x.shape)


def _pairs(firsts: list[Node | None], chosen: list[Variable], found: Derivatives) -> None:
    """Every block; those below the diagonal are the others transposed."""
    matrices: dict[tuple[int, int], np.ndarray] = {}
    for i, first in enumerate(firsts):
        nodes = [variable.node for variable in chosen[i:]]
        if first is None:
            found_rows = [np.zeros((chosen[i].node.numel, x.numel), x.dtype) for x in nodes]
        else:
            found_rows = _by_rows(first, nodes)
        for j, matrix in enumerate(found_rows, i):
            matrices[i, j] = matrix
            if i != j:
                matrices[j, i] = matrix.T.astype(chosen[i].node.dtype)
    for i, left in enumerate(chosen):
        for j, right in enumerate(chosen):
            shape = (*left.node.shape, *right.node.shape)
            found.blocks[left.name, right.name] = matrices[i, j].reshape(shape)


def _spectrum(
    firsts: list[Node | None], chosen: list[Variable], found: Derivatives
) -> Spectrum | None:
    """Eigenvalues of the whole Hessian; None for an empty one, or when it is not finite."""
    names = [(variable.name, variable.node.numel) for variable in chosen]
    whole = np.block([[found.blocks[a, b].reshape(m, n) for b, n in names] for a, m in names])
    if not whole.size or not np.isfinite(whole).all():
        return None
    epsilon = float(np.finfo(whole.dtype).eps)
    wide = whole.astype(np.float64)
    values = np.linalg.eigvalsh(wide / 2 + wide.T / 2)
    largest = float(np.abs(values).max())
    rounding = 8 * len(values) * epsilon * largest
    negative, positive = int((values < -rounding).sum()), int((values > rounding).sum())
    slopes = [first for first in firsts if first is not None]
    evaluate(slopes)
    norm = float(np.linalg.norm([np.linalg.norm(value_of(g).astype(float)) for g in slopes]))
    return Spectrum(
        values, negative, len(values) - negative - positive, positive, norm,
        norm <= epsilon**0.5 * max(1.0, largest),
    )  # fmt: skip


# -- the vector of a product, as it is given on the command line -----------------------------------


def vector_of(program: Program, text: str, chosen: list[Variable]) -> list[np.ndarray]:
    """One array for each variable. The text is `ones`, a number for every element, a dict by name
    (others are zero), for several variables a list with one for each, or all elements in a row;
    `@file` holds such an array."""
    if text.strip() == "ones":
        return [np.ones(v.node.shape) for v in chosen]
    value = program.given(text, "<--hvp>")
    if isinstance(value, dict):
        return _by_name(value, chosen)
    if len(chosen) > 1 and isinstance(value, list | tuple) and len(value) == len(chosen):
        parts = [_array(part) for part in value]
        total = sum(v.node.numel for v in chosen)
        flat = total == len(chosen) and all(part.ndim == 0 for part in parts)
        if not flat:
            return [_shaped(part, v) for part, v in zip(parts, chosen, strict=True)]
    return _split(_array(value), chosen)


def _by_name(given: dict[Any, Any], chosen: list[Variable]) -> list[np.ndarray]:
    names = [v.name for v in chosen]
    for name in given:
        if name not in names:
            raise fail(
                "E201",
                f"--hvp: `{name}` is not one of the variables {', '.join(names)}",
                help=meant(str(name), names, "choose variables with --wrt"),
            )
    return [
        _shaped(_array(given[v.name]), v) if v.name in given else np.zeros(v.node.shape)
        for v in chosen
    ]


def _array(value: Any) -> np.ndarray:
    if isinstance(value, Tensor):
        found = np.asarray(value_of(value.node))
    elif isinstance(value, np.ndarray):
        found = value
    elif isinstance(value, bool | int | float | list | tuple):
        found = array_of(list(value) if isinstance(value, tuple) else value)
    else:
        raise fault("E208 hvp-vector-made-numbers", type(value).__name__)
    return found.astype(np.float64)


def _shaped(array: np.ndarray, variable: Variable) -> np.ndarray:
    """A number for every element, the same shape, or the elements in a row."""
    shape = variable.node.shape
    if array.ndim == 0:
        return np.full(shape, float(array))
    if array.shape == shape:
        return array
    if array.ndim == 1 and array.size == variable.node.numel:
        return array.reshape(shape)
    raise fault("E308 hvp-vector-shape-variable", variable=variable, array=array, shape=shape)


def _split(array: np.ndarray, chosen: list[Variable]) -> list[np.ndarray]:
    """All elements in a row, cut into the shapes of the variables."""
    if len(chosen) == 1 or array.ndim == 0:
        return [_shaped(array, v) for v in chosen]
    total = sum(v.node.numel for v in chosen)
    if array.ndim != 1 or array.size != total:
        raise fail(
            "E308",
            f"--hvp: the vector has shape {shape_text(array.shape)}, the variables "
            f"{', '.join(v.name for v in chosen)} have {total} elements together",
            help="give a list with one for each, a dict by name, or all elements in a row",
        )
    ends = np.cumsum([v.node.numel for v in chosen])[:-1]
    return [
        part.reshape(v.node.shape) for part, v in zip(np.split(array, ends), chosen, strict=True)
    ]


# -- what is not finite ---------------------------------------------------------------------------


def _check_finite(found: Derivatives, action: str) -> None:
    """Warn of the first block with a NaN or an infinity, or fail with E501 or E502."""
    if action == "ignore":
        return
    tests: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
        ("501", "NaN", np.isnan),
        ("502", "infinite", np.isinf),
    )
    for digits, word, test in tests:
        for names, array in found.blocks.items():
            count = int(test(array).sum())
            if count:
                message = (
                    f"{count} of {array.size} derivatives in the block of "
                    f"{' and '.join(map(quoted, names))} are {word}"
                )
                if action == "error":
                    raise fail("E" + digits, message, help="look at the values: autodiff run")
                found.warnings.append(Diagnostic("W" + digits, message, severity="warning"))
                return
