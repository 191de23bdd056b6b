"""A backward rule, every third of the table, made wrong by a thousandth is found and named."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from autodiff_cli.checks.blame import blamed
from autodiff_cli.checks.differences import GraphCheck
from autodiff_cli.errors import AutodiffError
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.op import constant
from tests.table import Case, apply, arrays_of, cases, each_op, nodes_of, seeded, share, specs

FACTOR = 1.001


def scaled(found: Any) -> Any:
    """Cotangents times the factor."""
    if isinstance(found, Node):
        return found * FACTOR if found.dtype.kind == "f" else found
    if isinstance(found, list | tuple):
        return type(found)(map(scaled, found))
    return found


def verdicts(case: Case) -> list[tuple[str, bool, str]]:
    """For every leaf of a sample: what the check says, whether its gradient is 0, and the op whose
    rule is to blame where it is wrong."""
    nodes = nodes_of(case, arrays_of(case))
    results = [
        n
        for n in apply(case, nodes)
        if isinstance(n, Node) and n.requires_grad and n.dtype.kind == "f"
    ]
    seeds = []
    for i, n in enumerate(results):
        weights = seeded(i).uniform(0.5, 1.5, n.shape)
        seeds.append((n, constant(np.asarray(weights, n.dtype))))
    if not seeds:
        return []
    check = GraphCheck(seeds)
    found = []
    for leaf in check.leaves():
        result = check.check(leaf)
        guilty = blamed(check, leaf, result) if result.kind == "wrong" else None
        key = guilty.op.key if guilty is not None else ""
        found.append((result.kind, not np.any(np.abs(result.gradient) > 1e-4), key))
    return found


SAMPLES: dict[str, list[Case]] = {}
for _case in cases():
    if (
        _case.op.vjp_rule is not None
        and _case.sample.order
        and any(spec.grad and spec.dtype == "float64" for _, spec in specs(_case))
        and "flat" not in _case.op.properties
    ):
        SAMPLES.setdefault(_case.op.key, []).append(_case)


@each_op(share((found[0] for found in SAMPLES.values()), 3))
def test_a_rule_that_is_off_by_a_thousandth_is_found(first: Case) -> None:
    op, key = first.op, first.op.key
    before: Callable[..., Any] = op.vjp_rule
    case = next((c for c in SAMPLES[key] if _right(c)), None)
    if case is None:  # nothing but zeros: there is no factor to see
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(op, "vjp_rule", lambda g, out, *args: scaled(before(g, out, *args)))
        found = [guilty for kind, _, guilty in verdicts(case) if kind == "wrong"]
    assert found and set(found) == {key}


def _right(case: Case) -> bool:
    """Whether the sample has a gradient that is right and not 0."""
    try:
        return ("right", False, "") in verdicts(case)
    except AutodiffError:
        return False
