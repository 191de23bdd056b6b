"""The formulas of each op of the table, held against the gradients of reverse mode.

What `derive` shows was compared before: where a formula is wrong the graph of the gradient is shown
instead, so nobody would notice that one is lost. Here formulas are asked for without that, found on
one set of inputs and evaluated on another. Which inputs of which samples have one, and how long it
is, was recorded (`RECORD_SAID=1` does): one may get shorter, but not longer, wrong or lost. So were
its words and those of what it was chosen from, all of which are the gradient, and its derivation.
Samples of an op that come by nothing that others do not are left out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock
from zlib import crc32

import numpy as np

from autodiff_cli.autograd import reverse, rules
from autodiff_cli.autograd.tensor import Tensor
from autodiff_cli.errors import AutodiffError
from autodiff_cli.explain.blackboard import Known, Line, derivation
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.op import constant, value_of
from autodiff_cli.graph.registry import F
from autodiff_cli.graph.samples import T
from autodiff_cli.language.runtime.expressions import Context, compile_expression
from autodiff_cli.language.syntax.parser import parse
from autodiff_cli.language.values.values import Scope
from autodiff_cli.source import Source
from autodiff_cli.symbolic import derivation as derivations
from autodiff_cli.symbolic.derivation import Formula, Formulas
from autodiff_cli.symbolic.shorter import opened, ways
from autodiff_cli.symbolic.terms import NoFormula, Sum
from autodiff_cli.symbolic.writing.expression import NO_MASKS, Expression, expression_of, text
from autodiff_cli.symbolic.writing.forms import Form
from autodiff_cli.symbolic.writing.latex import latex
from autodiff_cli.symbolic.writing.lets import cost_of
from autodiff_cli.symbolic.writing.matrix_form import Printer, printed

from ..said import said as recorded
from ..table import Case, apply, array_of, cases, each_op, nodes_of, specs, weights

FIXTURE = Path(__file__).parents[1] / "fixtures" / "formulas.json"
RECORDED: dict[str, dict[str, list[int | None]]] = (
    json.loads(FIXTURE.read_text("utf-8")) if FIXTURE.exists() else {}
)
RECORD = bool(os.environ.get("RECORD_SAID"))
# The samples that were recorded; of ops that programs call where there is none yet, all.
KNOWN = {name.rpartition("-")[0] for name in RECORDED}
CASES = [
    case
    for case in cases()
    if case.name in RECORDED
    or (RECORD and case.op.public and case.op.differentiable and case.op.key not in KNOWN)
]


def drawn(spec: T, seed: str) -> np.ndarray:
    """Those of a sample, beside the edges that it may be about: formulas are for points inside."""
    found = array_of(spec, seed)
    if spec.values is None or found.dtype.kind != "f":
        return found
    moved = found + np.random.RandomState(crc32(seed.encode())).uniform(0.01, 0.1, found.shape)
    return np.asarray(moved, found.dtype)


def made(case: Case, seed: str) -> tuple[dict[str, Node], Node | None, dict[Node, str]]:
    """Inputs by place, a weighted sum of the results, and what may be named in a formula."""
    nodes = nodes_of(case, {place: drawn(spec, case.name + place + seed)
                            for place, spec in specs(case)})  # fmt: skip
    names = {node: f"x{place}".replace(".", "_") for place, node in nodes.items()}
    total = None
    for i, node in enumerate(apply(case, nodes)):
        if node.requires_grad:
            weight = constant(weights(case, node.shape, f"w{i}").astype(node.dtype))
            names[weight] = f"c{i}"
            term = F.sum(node * weight)
            total = term if total is None else total + term
    return nodes, total, names


def evaluated(shown: Expression, names: Mapping[str, Any]) -> np.ndarray:
    scope = Scope()
    scope.names.update({n: v if isinstance(v, Tensor) else Tensor(v) for n, v in names.items()})
    (statement,) = parse(Source(text(shown), "formula")).body
    found = compile_expression(statement.value, Context())(scope)  # type: ignore[attr-defined]  # an Assign
    return np.asarray(found.numpy() if isinstance(found, Tensor) else found)


def gradient_of(total: Node, node: Node) -> np.ndarray | None:
    (found,) = reverse.gradients(
        [(total, rules.ones_like(total))], [node], create_graph=False, retain_graph=False
    )
    return None if found is None else value_of(found)


def tried(printer: Printer, sum_: Sum) -> Iterator[Form]:
    """The forms of a sum by itself, with its brackets multiplied out, and after each change."""
    for other in (sum_, opened(printer.algebra, sum_), *ways(printer.algebra, sum_, [])):
        with suppress(NoFormula):
            if other is not None:
                yield printer._form(other)


def lengths(case: Case, place: str) -> tuple[list[int | None], list[str]]:
    """The cost of the formula for an input, and how many lines lead to it; None: it has none. Then
    in words what is shown, and what was not because it is longer."""
    nodes, total, names = made(case, "")
    if total is None or not nodes[place].requires_grad:
        return [None, None], []
    others, again, others_names = made(case, "again")
    given = {name: constant(value_of(node)) for node, name in others_names.items()}
    expected = None if again is None else gradient_of(again, others[place])
    if expected is None or not np.isfinite(expected).all():
        return [None, None], []
    rtol = 1e-3 if expected.dtype.itemsize < 8 else 1e-8
    largest = float(np.abs(expected).max(initial=1.0))

    def is_right(shown: Expression, lets: Any = ()) -> bool:
        known: dict[str, Any] = dict(given)
        for name, part in lets:
            known[name] = Tensor(constant(evaluated(part, known)))
        value = evaluated(shown, known)
        return value.shape == expected.shape and np.allclose(value, expected, rtol, rtol * largest)

    def seen(printer: Printer, sum_: Sum) -> Expression:
        shown = printed(printer, sum_)
        other.update(dict.fromkeys(tried(printer, sum_)))
        return shown

    found: list[int | None] = [None, None]
    words: list[str] = []
    other: dict[Form, None] = {}
    try:
        with mock.patch.object(derivations, "printed", seen):
            formulas = Formulas(total, [nodes[place]], names, {}).by([nodes[place]])
        for formula in formulas:
            if is_right(formula.shown, formula.lets):
                written = latex(formula.shown)
                assert written.count(r"\left") == written.count(r"\right")
                found[0] = formula.cost
                words += [*said(formula), written]
    except (NoFormula, AutodiffError):  # or one in words that programs do not have
        pass
    for form in other if found[0] is not None else ():
        value = np.broadcast_to(evaluated(form.shown, given), expected.shape)
        np.testing.assert_allclose(value, expected, rtol, rtol * largest)
        words.append(f"{cost_of(form.shown)} {form.marks} {text(form.shown, spaced=True)}")
    try:
        known_names = Known(names, {}, {}, {}, ())
        lines = derivation(total, nodes[place], known_names, "change", NO_MASKS, True)
        change = weights(case, expected.shape, "change").astype(expected.dtype)
        known = {**given, "change": constant(change)}
        for name, part in (let for line in lines for let in line.lets):
            known[name] = Tensor(constant(evaluated(part, known)))
        value = evaluated(lines[-1].shown, known)
        if np.allclose(value, (expected * change).sum(), rtol * 10, rtol * largest):
            found[1] = len(lines)
            words += [part for line in lines for part in (*said(line), *line.rules)]
    except (NoFormula, AutodiffError):
        pass
    return found, words


def said(line: Formula | Line) -> Iterator[str]:
    yield from (f"{name} = {text(part, spaced=True)}" for name, part in line.lets)
    yield text(line.shown, spaced=True)


@each_op(CASES)
def test_formulas_are_the_gradients(case: Case) -> None:
    both = {place: lengths(case, place) for place, spec in specs(case) if spec.grad}
    found = {place: numbers for place, (numbers, _) in both.items()}
    texts = [f"{place}: " + "\n".join(words) for place, (_, words) in both.items() if words]
    _, total, names = made(case, "")
    if total is not None:
        shown = expression_of(total, names)
        texts.append(f"{text(shown, spaced=True)}\n{latex(shown)}")
        given = {name: constant(value_of(node)) for node, name in names.items()}
        with suppress(AutodiffError):  # in words that programs do not have
            same = np.allclose(evaluated(shown, given), value_of(total), 1e-3)
            assert same or not case.op.public  # of which some are given what only fits
    if RECORD:
        RECORDED.pop(case.name, None)
        if any(number is not None for pair in found.values() for number in pair):
            RECORDED[case.name] = found
        rows = (f"{json.dumps(key)}: {json.dumps(RECORDED[key])}" for key in sorted(RECORDED))
        FIXTURE.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")
    for place, numbers in RECORDED.get(case.name, {}).items():
        for now, before in zip(found[place], numbers, strict=True):
            assert before is None or (now is not None and now <= before)
    if texts:
        recorded("explain").compare(f"test_formulas.py::{case.name}", texts, 1)
