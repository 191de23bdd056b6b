"""Ops on a batch of examples: for every third sample of the table, vmap gives what each example
gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from autodiff_cli.autograd.batching.examples import Trace
from autodiff_cli.autograd.batching.rules import RULES
from autodiff_cli.autograd.reverse import gradients
from autodiff_cli.autograd.tensor import AccumulateGrad
from autodiff_cli.engine.evaluate import evaluate
from autodiff_cli.errors import AutodiffError
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.op import constant, leaf, value_of
from autodiff_cli.graph.registry import OPS, F
from autodiff_cli.graph.state import STATE
from tests.table import (
    Case,
    arrays_of,
    bind,
    cases,
    each_op,
    flat,
    seeded,
    share,
    specs,
    variables,
    weights,
)

from ..together import together

EXAMPLES = 3


def examples_of(case: Case) -> list[dict[str, np.ndarray]]:
    """Variants of the sample's arrays that keep signs, and symmetry of what is symmetric."""
    found = []
    for i in range(EXAMPLES):
        arrays = arrays_of(case)
        for place, spec in specs(case):
            if spec.grad:
                arrays[place] = arrays[place] * (1 - 0.07 * i)
        found.append(arrays)
    return found


def results(case: Case, nodes: dict[str, Node]) -> list[Node]:
    args, kwargs = bind(case, nodes)
    return [n for n in flat(case.op(*args, **kwargs)) if isinstance(n, Node)]


def gradients_of(case: Case, outputs: list[Node], inputs: list[Node], batch: bool) -> list[Any]:
    """Cotangents of inputs for weights of the outputs that are the same for all examples."""
    seeds = []
    for i, out in enumerate(outputs):
        if out.requires_grad:
            shape = out.shape[1:] if batch else out.shape
            weight = weights(case, shape, f"batch{i}").astype(out.dtype)
            seeds.append((out, constant(np.array(np.broadcast_to(weight, out.shape)))))
    if not seeds:
        return [None] * len(inputs)
    found = gradients(seeds, inputs, create_graph=batch, retain_graph=True)
    evaluate([g for g in found if g is not None])
    return [None if g is None else value_of(g) for g in found]


def check(case: Case, places: list[str]) -> None:
    STATE.reset()
    arrays = examples_of(case)
    shared = {p: a for p, a in arrays[0].items() if p not in places}
    expected: list[tuple[list[Any], list[Any]]] = []
    for example in arrays:
        nodes = {p: constant(a) for p, a in shared.items()}
        inputs = [leaf(example[p], AccumulateGrad()) for p in places]
        nodes.update(zip(places, inputs, strict=True))
        outputs = results(case, nodes)
        evaluate(outputs)
        values = [value_of(out) for out in outputs]
        expected.append((values, gradients_of(case, outputs, inputs, False)))
    nodes = {p: constant(a) for p, a in shared.items()}
    sources = [leaf(np.stack([a[p] for a in arrays]), AccumulateGrad()) for p in places]
    trace = Trace(EXAMPLES)
    try:
        with trace.running():
            nodes.update((p, trace.placeholder(s)) for p, s in zip(places, sources, strict=True))
            outputs = results(case, nodes)
    except AutodiffError as error:
        assert error.code == "E203", error  # the op needs values, as PyTorch's does
        assert case.op.name in NEED_VALUES, case.op.name
        return
    trace.lift(outputs)
    lifted = [trace.full(out) for out in outputs]
    for i, out in enumerate(lifted):
        assert out.shape == (EXAMPLES, *outputs[i].shape)
        for b in range(EXAMPLES):
            same(value_of(out)[b], expected[b][0][i])
    for i, g in enumerate(gradients_of(case, lifted, sources, True)):
        for b in range(EXAMPLES):
            wanted = expected[b][1][i]
            if wanted is None:
                assert g is None or not np.any(g)
            else:
                same(np.zeros_like(wanted) if g is None else g[b], wanted)


def same(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-9)


# Ops whose shape of result, or whose check, depends on values.
NEED_VALUES = {"allclose", "argwhere", "equal", "is_nonzero", "nonzero_places"}


WITH_VARIABLES = [case for case in share(cases(), 3) if variables(case)]


@each_op(WITH_VARIABLES)
def test_batched(case: Case) -> None:
    places = variables(case)
    check(case, places)
    if len(places) > 1 and case.number == 0:  # beside others that all examples share
        check(case, places[:1])


I, J = constant(np.array([1, 0])), constant(np.array([0, 1]))
PAIRS = constant(np.array([[1, 0, 1], [0, 1, 1]]))

# Shapes of an example's arrays, which of them all examples share, and what is made of them.
FUNCTIONS: list[tuple[list[tuple[int, ...]], set[int], Callable[..., Node]]] = [
    ([(2, 3, 2)], set(), lambda x: F.index(x, [I, None, J])),
    ([(3, 4, 2, 2)], set(), lambda x: F.index(x, [None, None, I, J])),
    ([(3, 2, 2, 4)], set(), lambda x: F.index(x, [None, PAIRS, PAIRS, None])),
    ([(3, 4, 5, 2)], set(), lambda x: F.index(x, [None, None, None, PAIRS])),
    ([(3, 2, 5, 2)], set(), lambda x: F.index(x, [None, PAIRS, None, PAIRS])),
    *[
        ([a, b], shared, F.solve)
        for a, b in (
            ((3, 3), (3,)), ((3, 3), (3, 2)), ((2, 3, 3), (2, 3)), ((2, 3, 3), (2, 3, 1)),
            ((2, 3, 3), (3, 2)), ((3, 3), (2, 3, 3)), ((3, 3), (3, 3)),
        )
        for shared in (set(), {0}, {1})
    ],
    *[
        ([a, b], shared, F.matmul)
        for a in ((3,), (2, 3), (2, 2, 3), (4, 1, 2, 3))
        for b in ((3,), (3, 2), (2, 3, 2), (4, 2, 3, 2))
        for shared in (set(), {0}, {1})
    ],
]  # fmt: skip


@together(FUNCTIONS)
def test_functions_of_examples(
    shapes: list[tuple[int, ...]], shared: set[int], function: Callable[..., Node]
) -> None:
    STATE.reset()
    arrays = []
    for i, shape in enumerate(shapes):
        array = seeded(i).uniform(0.5, 2.0, shape if i in shared else (EXAMPLES, *shape))
        arrays.append(array + 3 * np.eye(shape[-2], shape[-1]) if len(shape) > 1 else array)
    trace = Trace(EXAMPLES)
    with trace.running():
        given = [
            constant(a) if i in shared else trace.placeholder(constant(a))
            for i, a in enumerate(arrays)
        ]
        out = function(*given)
    trace.lift([out])
    found = value_of(trace.full(out))
    for at in range(EXAMPLES):
        one = function(*[constant(a if i in shared else a[at]) for i, a in enumerate(arrays)])
        same(found[at], value_of(one))


def test_rules_are_for_ops_that_exist() -> None:
    assert set(RULES) - {"cast"} <= set(OPS)
