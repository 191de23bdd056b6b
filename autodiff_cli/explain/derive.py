"""Derivatives as formulas: the graph of a gradient written in the names of the program.

Invariant: a formula that could be evaluated was, and gave the gradient; one that could not be is
marked as not verified.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ..autograd.tensor import Tensor
from ..engine.evaluate import evaluate
from ..errors import AutodiffError, Diagnostic, Ended, fault
from ..graph.node import Node
from ..graph.op import LEAF, constant, value_of
from ..graph.state import STATE, grad_mode
from ..language.runtime.expressions import Context, compile_expression
from ..language.syntax.parser import parse
from ..language.syntax.tree import ExprStmt
from ..language.values.values import Scope
from ..source import Source
from ..symbolic.expression import Expression, expression_of, text
from ..symbolic.latex import latex, name
from ..symbolic.simplify import NoFormula, Simplifier
from .choosing import variables
from .model import Request
from .naming import Names
from .record import Seeds, recorded, untouched
from .source import Observed, under_observation
from .units import Units
from .words import readable

if TYPE_CHECKING:
    from ..language.program.report import Options

LONGEST = 2000  # characters of a formula


@dataclass(frozen=True, slots=True)
class Derivative:
    """`d OF / d wrt` as program text and as LaTeX."""

    wrt: str
    text: str
    latex: str
    wrt_latex: str
    shape: tuple[int, ...]
    verified: bool


@dataclass(frozen=True, slots=True)
class Derived(Ended):
    """The derivatives of a program, or the error that prevented them."""

    file: str
    of: str = ""
    of_latex: str = ""
    derivatives: tuple[Derivative, ...] = ()
    stdout: str = ""
    error: AutodiffError | None = None
    more_errors: tuple[AutodiffError, ...] = ()
    warnings: tuple[Diagnostic, ...] = field(default=())


def derive_source(source: Source, options: Options, request: Request, raw: bool = False) -> Derived:
    """Run a program and write down the derivatives of what it differentiates; `raw`: as the rules
    gave them."""

    def make(program: Observed, seeds: Seeds, objective: str) -> Derived:
        with untouched([node for pair in seeds for node in pair]), grad_mode(False):
            return _derived(program, seeds, objective, request, raw)

    return under_observation(
        source, options, request, make, lambda error: Derived(source.name, error=error)
    )


def _derived(
    program: Observed, seeds: Seeds, objective: str, request: Request, raw: bool
) -> Derived:
    recording = recorded(seeds)
    units = Units(recording)
    names = Names(program, recording, units.visible(), program.assigned, units.through)
    of = objective or " + ".join(names[n] for n, _ in seeds)
    warnings: list[Diagnostic] = []
    wanted = variables(program, recording, names, units, request.wrt, of, warnings)
    ends = {v.node for v in wanted}
    known = {
        node: shown for node, shown in names.of.items()
        if node.op is LEAF or node in ends or not node.requires_grad
    }  # fmt: skip
    short = _shortened(known)
    evaluate([recording.used[v.node] for v in wanted])
    found: list[Derivative] = []
    for variable in wanted:
        gradient = recording.used[variable.node]
        formula, verified = _formula(gradient, short, raw, of, variable.name)
        called = short.get(variable.node, variable.name)
        found.append(Derivative(
            called, text(formula, 0, not raw), latex(formula), name(called),
            variable.node.shape, verified,
        ))  # fmt: skip
    return Derived(program.source.name, of, name(of), tuple(found), warnings=tuple(warnings))


def _shortened(known: dict[Node, str]) -> dict[Node, str]:
    """`x` for `x#1` where no other value of that name is mentioned."""
    count: dict[str, int] = {}
    for shown in known.values():
        base = shown.partition("#")[0]
        count[base] = count.get(base, 0) + 1
    return {
        node: base if count[base := shown.partition("#")[0]] == 1 else shown
        for node, shown in known.items()
    }


def _formula(
    gradient: Node, names: dict[Node, str], raw: bool, of: str, wrt: str
) -> tuple[Expression, bool]:
    """The formula of a gradient, and whether it was found to give it."""
    doubted = False
    try:
        formula = None if raw else Simplifier(names).expression(gradient)
    except NoFormula as problem:
        if problem.node is not None:
            raise _no_formula(problem.node, of, wrt) from None
        raise _too_long(of, wrt) from None
    if formula is not None:
        agrees = _agrees(text(formula, 0, True), gradient, names)
        doubted = agrees is False
        if not doubted:
            return _short(formula, of, wrt), agrees is True
    formula = expression_of(gradient, names)
    if not readable(formula):
        raise _too_long(of, wrt)
    agrees = _agrees(text(formula), gradient, names)
    if agrees is False:
        raise _no_formula(gradient, of, wrt)
    return _short(formula, of, wrt), agrees is True


def _short(formula: Expression, of: str, wrt: str) -> Expression:
    if len(text(formula)) > LONGEST:
        raise _too_long(of, wrt)
    return formula


def _agrees(formula: str, gradient: Node, names: dict[Node, str]) -> bool | None:
    """Whether a formula has the value of the gradient; None when it cannot be evaluated here."""
    scope = Scope(None, True)
    for node, shown in names.items():
        if shown.isidentifier():
            scope.names[shown] = Tensor(constant(value_of(node)))
    before, STATE.python = STATE.python, False  # formulas have the names of native programs
    try:
        (statement,) = parse(Source(formula, "<derivative>")).body
        if not isinstance(statement, ExprStmt):
            return None
        result = compile_expression(statement.value, Context(True))(scope)
    except AutodiffError as error:
        if error.code == "E508":
            raise
        return None
    except (RecursionError, ValueError):
        return None
    finally:
        STATE.python = before
    found = result.numpy() if isinstance(result, Tensor) else np.asarray(result)
    expected = value_of(gradient)
    if found.shape != expected.shape:
        return False
    narrow = expected.dtype.itemsize < 8
    finite = np.isfinite(expected)
    largest = float(np.abs(expected[finite]).max(initial=0.0))
    return bool(np.allclose(
        found, expected, rtol=1e-3 if narrow else 1e-7,
        atol=(1e-4 if narrow else 1e-9) * max(1.0, largest), equal_nan=True,
    ))  # fmt: skip


def _no_formula(node: Node, of: str, wrt: str) -> AutodiffError:
    span = node.span
    what = f"`{' '.join(span.text.split())[:60]}`" if span is not None else f"`{node.op.name}`"
    return fault("E404 d-d-no-formula", of, wrt, what, span=span)


def _too_long(of: str, wrt: str) -> AutodiffError:
    return fault("E505 d-d-too-long", of, wrt)
