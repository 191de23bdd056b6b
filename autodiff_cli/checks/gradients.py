"""The `grad[...]` and `hess[...]` items of a program, and the words of their diagnostics.

Invariant: an item fails only when a rule or a backward of the program is wrong, or, in a file that
says `# check: strict`, also at a cut.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import numpy as np

from ..errors import AutodiffError, Diagnostic, Label, fault, labelled
from ..graph.node import Node
from ..graph.sizes import shape_text
from ..language.program.variables import leaf_names, named_tensors
from ..language.runtime.assertions import close_mask
from ..numerals import aligned
from . import model
from .blame import blamed
from .cuts import convention
from .deadline import go_on_after
from .differences import GraphCheck, LeafResult, Row
from .slopes import ATOL, COMPLEX_STEP, NOISY, RIGHT, RTOL, WRONG, Verdict
from .verify import unseen_dependence

if TYPE_CHECKING:
    from .runner import FileCheck

LOOSE = {"float32": (1e-3, 1e-4), "float16": (5e-2, 1e-2)}
STATUS = {
    RIGHT: model.PASSED, WRONG: model.FAILED, "kink": model.KINK, "cut": model.CUT,
    NOISY: model.NOISY,
}  # fmt: skip


def gradient_items(check: FileCheck) -> None:
    """Add the gradient items of a program that has run."""
    program = check.program
    assert program is not None
    names = leaf_names(named_tensors(program))
    done: set[str] = set()
    for seeds in reversed(program.passes):  # the last backward first: it is what is shown
        graph = GraphCheck(
            seeds,
            rtol=check.wishes.rtol if check.wishes.rtol is not None else RTOL,
            atol=check.wishes.atol if check.wishes.atol is not None else ATOL,
            seed=check.settings.seed,
        )
        leaves = graph.leaves()
        for leaf in leaves:
            graph.names[leaf] = names.get(leaf.args[0]) or _unnamed(leaf)
        leaves = [
            n for n in leaves if graph.names[n] not in done and _wanted(check, graph.names[n])
        ]
        done.update(graph.names[leaf] for leaf in leaves)
        _claim(check, graph, leaves)
        for leaf in leaves:
            name = graph.names[leaf]
            _first_order(check, graph, leaf, name)
            if check.settings.order >= 2 or check.wishes.hessian:
                _second_order(check, graph, leaf, name)


def _claim(check: FileCheck, graph: GraphCheck, leaves: list[Node]) -> None:
    """One backward for all leaves; what fails there fails in its item."""
    if check.settings.collect or not leaves:
        return
    try:
        graph.claim(leaves)
    except AutodiffError as error:
        go_on_after(error)


def _unnamed(leaf: Node) -> str:
    span = leaf.span
    return "leaf" if span is None else f"leaf@{span.line}:{span.column}"


def _wanted(check: FileCheck, name: str) -> bool:
    wishes = check.wishes
    if any(fnmatchcase(name, pattern) for pattern in wishes.nograd):
        return False
    return not wishes.wrt or any(fnmatchcase(name, pattern) for pattern in wishes.wrt)


@contextmanager
def judged(item: model.Item) -> Iterator[None]:
    """Time what is done for an item; what fails there is its error, but for the limit of time."""
    started = time.perf_counter()
    try:
        yield
    except AutodiffError as error:
        go_on_after(error)
        item.status, item.diagnostic = model.ERROR, error.diagnostic
    item.seconds = time.perf_counter() - started


def _first_order(check: FileCheck, graph: GraphCheck, leaf: Node, name: str) -> None:
    item = check.item("grad", name, leaf.span.line if leaf.span else 1)
    if not check.add(item) or check.settings.collect:
        return
    with judged(item):
        result = graph.check(leaf)
        guilty = None
        if result.kind == WRONG:
            guilty = blamed(graph, leaf, result)
        by_design = None if guilty is None else convention(guilty)
        if by_design is not None:
            result.kind, result.cuts = "cut", [by_design]
        item.status = STATUS[result.kind]
        if result.kind == RIGHT:
            _after(check, graph, leaf, item, result)
        elif result.kind == WRONG:
            item.diagnostic = wrong(leaf, name, result, guilty)
        else:
            item.diagnostic = undecided(leaf, name, result)
            if result.kind == "cut" and check.wishes.strict:
                item.status = model.FAILED
                item.diagnostic = cut(leaf, name, result, "error")


def _after(
    check: FileCheck, graph: GraphCheck, leaf: Node, item: model.Item, result: LeafResult
) -> None:
    """What else may be wrong with a gradient that is right for its graph: values that were read
    out of the graph, and what was kept in the leaf's own dtype."""
    assert check.program is not None
    kept = check.report.tensors.get(item.name)
    once = check.program.differentiated and check.program.backwards == 1
    if kept is not None and kept.grad is not None and once:
        kind = kept.dtype
        rtol, atol = LOOSE.get(kind, (1e-6, 1e-8))
        if not close_mask(kept.grad, result.gradient, rtol, atol, True).all():
            item.status = model.FAILED
            item.diagnostic = fault(
                "E602 kept-gradient-differs", item.name, kind, span=leaf.span
            ).diagnostic
            return
    found = unseen_dependence(check, graph, leaf, item.name, result.gradient)
    if found is not None:
        item.status = model.FAILED if check.wishes.strict else model.CUT
        item.diagnostic = found


def _second_order(check: FileCheck, graph: GraphCheck, leaf: Node, name: str) -> None:
    item = check.item("hess", name, leaf.span.line if leaf.span else 1)
    if not check.add(item) or check.settings.collect:
        return
    with judged(item):
        result = graph.check_second(leaf)
        item.status = STATUS[result.kind]
        if result.kind == WRONG:
            lines, shape = "\n" + table(result.rows), shape_text(leaf.shape)
            item.diagnostic = fault(
                "E602 second-order-check-failed", name, lines, shape, span=leaf.span
            ).diagnostic
        elif result.kind != RIGHT:
            item.diagnostic = undecided(leaf, name, result)
    error = item.diagnostic
    if error is not None and error.code == "E404":  # PyTorch has none either: nothing to compare
        item.status = model.NOISY
        item.diagnostic = replace(error, severity="warning", code="W404")


# -- words ----------------------------------------------------------------------------------------


def _headline(name: str, result: LeafResult) -> str:
    if result.rows[0].index is None:
        count = f"{result.count} of {result.total} random directions disagree"
    elif result.by_direction:
        count = f"at least {result.count} of {result.total} elements disagree"
    else:
        count = f"{result.count} of {result.total} elements disagree"
    return f"gradient check failed for `{name}`: {count}"


def wrong(leaf: Node, name: str, result: LeafResult, guilty: Node | None) -> Diagnostic:
    """E602 of a gradient that is wrong; `guilty` is the node whose rule is to blame."""
    labels: tuple[Label, ...] = ()
    span, label = leaf.span, _leaf_label(leaf)
    helps: tuple[str, ...] = ("if the difference is meant: `# check: nograd " + name + "`",)
    if guilty is not None and guilty.span is not None:
        custom = guilty.op.key == "custom_function"
        rule = guilty.grad_name.removesuffix("Backward") if custom else guilty.op.name
        labels = labelled(span, label)
        span, label = guilty.span, f"the backward of `{rule}` gives another slope"
        if custom:
            helps = ("correct the `backward` of your Function", *helps)
        else:
            helps = (f"report a bug in the backward rule of `{guilty.op.name}`", *helps)
    return Diagnostic(
        "E602", _headline(name, result), span, label, labels,
        ("\n" + table(result.rows), _method(result.rows)), helps,
    )  # fmt: skip


def cut(leaf: Node, name: str, result: LeafResult, severity: str) -> Diagnostic:
    """E602 or W602 of a gradient that a cut explains."""
    first = result.cuts[0]
    word = first.word
    labels = [*labelled(leaf.span, _leaf_label(leaf))]
    labels += [Label(c.node.span, c.reason) for c in result.cuts[1:5] if c.node.span]
    if severity == "error":
        headline = _headline(name, result)
    else:
        headline = f"the gradient of `{name}` {first.effect} `{word}`"
    return Diagnostic(
        ("E" if severity == "error" else "W") + "602",
        headline,
        first.node.span or leaf.span,
        first.reason,
        tuple(labels),
        ("\n" + table(result.rows), _method(result.rows)),
        (f"expected with `{word}`; exclude it: `# check: nograd {name}`",),
        severity,
    )


def undecided(leaf: Node, name: str, result: LeafResult) -> Diagnostic:
    """W602 of a gradient on a kink, behind a cut, or lost in noise."""
    if result.kind == "cut":
        return cut(leaf, name, result, "warning")
    count = f"{result.count} of {result.total}"
    what = "directions" if result.by_direction else "elements"
    if result.kind == "kink":
        label = "the slopes of both sides differ here"
        node = next((n for n in result.kinks if n.span is not None), None)
        span = node.span if node is not None else leaf.span
        message = f"`{name}` is on a kink in {count} {what}"
        if all(_between(row.verdict) for row in result.rows):
            message += "; backward's slope lies between both"
        rows, help = side_table(result.rows), "nothing is wrong; move the point to check the slope"
    else:
        label, span = _leaf_label(leaf), leaf.span
        message = f"the gradient of `{name}` is too noisy to be checked in {count} {what}"
        rows, help = table(result.rows), "scale the values so that the loss is near 1"
        pairs = [(row.verdict.claimed, row.verdict.measured) for row in result.rows]
        if not np.isfinite(pairs).all():
            message = (
                f"the gradient of `{name}` is not finite in {count} {what}: nothing to compare"
            )
            help = "see `autodiff run`, which names where nan and inf begin"
    return Diagnostic("W602", message, span, label, (), ("\n" + rows,), (help,), "warning")


def _between(v: Verdict) -> bool:
    rounding = 1e-4 * max(abs(v.left), abs(v.right))
    return min(v.left, v.right) - rounding <= v.claimed <= max(v.left, v.right) + rounding


def _leaf_label(leaf: Node) -> str:
    return f"checked leaf, shape {shape_text(tuple(leaf.shape))}"


def _method(rows: list[Row]) -> str:
    if rows[0].verdict.step == COMPLEX_STEP:
        return "float64, complex step; worst element first"
    return "float64, h = cbrt(eps) * max(1, |x|); worst element first"


def _place(row: Row) -> str:
    return "direction" if row.index is None else str(list(row.index)) if row.index else "()"


def table(rows: list[Row]) -> str:
    """Claimed and measured slopes, one row an element."""
    cells: list[tuple[str, ...]] = [
        ("index", "backward", "central difference", "abs diff", "allowed", "step")
    ]
    for row in rows:
        v = row.verdict
        cells.append(
            (
                _place(row), f"{v.claimed:.9g}", f"{v.measured:.9g}",
                f"{abs(v.claimed - v.measured):.3g}", f"{v.allowed:.2g}", f"{v.step:.2g}",
            )
        )  # fmt: skip
    return "\n".join(aligned(cells))


def side_table(rows: list[Row]) -> str:
    """The slopes of both sides."""
    cells: list[tuple[str, ...]] = [("index", "backward", "left slope", "right slope")]
    for row in rows:
        v = row.verdict
        cells.append((_place(row), f"{v.claimed:.9g}", f"{v.left:.6g}", f"{v.right:.6g}"))
    return "\n".join(aligned(cells))
