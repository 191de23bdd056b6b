"""Kinks over the whole table: at points where elements tie, vanish or lie on whole and half
numbers, no op is taken for wrong, and every op that has a kink there declares it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from autodiff_cli.checks.differences import GraphCheck
from autodiff_cli.checks.slopes import STEP
from autodiff_cli.errors import AutodiffError
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.op import constant, value_of
from autodiff_cli.graph.samples import T, t
from tests.said import compare
from tests.table import Case, apply, arrays_of, bind, cases, each_op, nodes_of, seeded, specs

HALVES = [0.5, -0.5, 1.5, -1.5, 1.0, 0.0]
PLACES = {
    "whole": lambda random, shape: random.randint(-2, 3, shape).astype(float),
    "equal": lambda random, shape: np.ones(shape),
    "zero": lambda random, shape: np.zeros(shape),
    "half": lambda random, shape: np.resize(HALVES, shape),
    "three": lambda random, shape: np.resize([3.0, -3.0], shape),
}
ANYWHERE = t()
# Factors of matrices that are singular there have no slope at all, and no kink to be far from.
SINGULAR = {"lu_factor_raw", "lstsq_raw", "linalg_qr"}


def placed(case: Case, place: str) -> dict[str, np.ndarray]:
    """The sample's floats moved to such points, as far as the op is defined there."""
    arrays = arrays_of(case)
    for name, spec in specs(case):
        if spec.within:
            arrays[name] = np.zeros(_shape(spec)) + np.eye(_shape(spec)[-1])
        elif spec.dtype.startswith("float"):
            random = seeded(f"{case.name}/{name}")
            found = PLACES[place](random, _shape(spec))
            if (spec.low, spec.high) != (ANYWHERE.low, ANYWHERE.high):
                found = np.clip(found, np.ceil(spec.low * 2) / 2, np.floor(spec.high * 2) / 2)
            arrays[name] = np.asarray(found, np.float64)
    return arrays


def _shape(spec: T) -> tuple[int, ...]:
    return spec.shape or (() if spec.values is None else np.shape(spec.values))


def checked(case: Case, place: str) -> Iterator[tuple[GraphCheck, Node]]:
    """A check of every leaf of the op's results there; nothing where it is not defined."""
    try:
        nodes = nodes_of(case, placed(case, place))
        results = [
            n
            for n in apply(case, nodes)
            if isinstance(n, Node) and n.requires_grad and n.dtype.kind == "f"
        ]
        seeds = []
        for i, n in enumerate(results):
            random = seeded(i)
            weights = random.uniform(0.5, 1.5, n.shape) * random.choice([-1, 1], n.shape)
            seeds.append((n, constant(np.asarray(weights, n.dtype))))
        check = GraphCheck(seeds)
        if not all(np.isfinite(check.replay.value(n)).all() for n in results):
            return
        for leaf in check.leaves():
            yield check, leaf
    except AutodiffError:
        return


ALL = [
    case
    for case in cases()
    if any(spec.grad and spec.dtype.startswith("float") for _, spec in specs(case))
    and "whole slope" not in case.op.properties
]
SOME = [
    (case, place)
    for at, case in enumerate(case for case in ALL if not case.number)
    for number, place in enumerate(PLACES)
    if (number == at % len(PLACES) and (case.op.kink is not None or at % 2))
    or (case.op.kink is not None and number == (at + 2) % len(PLACES))
]


@each_op(SOME)
def test_no_op_is_wrong_at_a_kink_and_every_kink_is_declared(case: Case, place: str) -> None:
    for check, leaf in checked(case, place):
        nodes = check.replay.order
        declared = check.kinks_behind(leaf)
        check.kinks_behind = lambda leaf, at=nodes[-1:]: at  # type: ignore[method-assign,misc]  # both sides
        found = check.check(leaf)
        conventions = any("convention" in node.op.properties for node in nodes)
        assert found.kind != "wrong" or conventions, found.rows
        singular = any(node.op.key in SINGULAR for node in nodes)
        kink = found.kind == "kink" and not (conventions or singular)
        assert declared or not kink or _steep(found.rows), found.rows


def _steep(rows: list) -> bool:
    """Slopes that no step resolves are no kinks: both sides agree."""
    return all(abs(r.verdict.left - r.verdict.right) <= STEP * abs(r.verdict.left) for r in rows)


KINKED = {case.op.key: case.op for case in ALL if case.op.kink is not None}


def distances(case: Case) -> Iterator[float]:
    """How far the declared kink is from points of each kind: of the nearest one, and in sum."""
    for place in PLACES:
        try:
            args, kwargs = bind(case, nodes_of(case, placed(case, place)))
            found = value_of(case.op.kink(*case.op.bind(tuple(args), kwargs)))
        except AutodiffError:
            continue
        yield float(np.fmin.reduce(found, axis=None, initial=np.inf))
        yield float(np.nansum(found))


def test_a_declared_kink_is_reached(request: pytest.FixtureRequest) -> None:
    """Somewhere among these points the distance is 0; all are what they were."""
    told = []
    for key in KINKED:
        known = {case.name: [*distances(case)] for case in ALL if case.op.key == key}
        assert min(d for found in known.values() for d in found[::2]) < 1e-5, key
        told += [
            f"{n}: {' '.join(f'{round(d, 4) + 0:g}' for d in found)}" for n, found in known.items()
        ]
    compare(request, told)
