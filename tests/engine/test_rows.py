"""Every op over blocks of rows: as NumPy has it with all rows at once, or refused by name."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from autodiff_cli.autograd.reverse import gradients
from autodiff_cli.autograd.rules import ones_like
from autodiff_cli.autograd.tensor import AccumulateGrad
from autodiff_cli.engine.evaluate import evaluate
from autodiff_cli.engine.rows.job import Job, combine, cut, pick
from autodiff_cli.engine.rows.passes import Passes, Rows
from autodiff_cli.errors import AutodiffError
from autodiff_cli.graph.dtypes import is_float
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.op import cast, constant, leaf
from autodiff_cli.graph.registry import F
from autodiff_cli.graph.state import STATE, own_state

from ..said import compare
from ..table import Case, apply, arrays_of, cases, listed, nodes_of, seeded, share, specs
from ..together import together


class Here:
    """Blocks in this process: arrays are cut when a job runs."""

    def __init__(self, bounds: list[int], axis: int = 0):
        self.bounds = bounds
        self.axis = axis

    def run(
        self, job: Job, arrays: list[Any], whole: list[Any], how: list[str | int], rows: Any = None
    ) -> list[Any]:
        bounds = self.bounds
        if rows is not None:
            arrays = [(pick(x, p, rows), p) for x, p in arrays]
            whole = [
                a if p is None else pick(a, p, rows) for a, p in zip(whole, job.whole, strict=True)
            ]
            bounds = [0, rows.size // 2, rows.size]
        parts = [
            job(a, b - a, [cut(x, rows, a, b - a) for x, rows in arrays], whole)
            for a, b in pairwise(bounds)
        ]
        return [combine(h, list(p)) for h, p in zip(how, zip(*parts, strict=True), strict=True)]

    def lazy(self, job: Job, arrays: list[Any], whole: list[Any], axis: int) -> Any:
        parts = [
            job(a, b - a, [cut(x, p, a, b - a) for x, p in arrays], whole)[0]
            for a, b in pairwise(self.bounds)
        ]
        return np.concatenate(parts, axis), (axis, parts[0].shape[axis] // self.bounds[1])


def _rows(nodes: dict[str, Node], case: Case, axis: int, which: slice) -> list[int] | None:
    """Block operands of a sample along an axis: some of those that have it, and are as long."""
    chosen = [p for p, _ in specs(case) if nodes[p].ndim > axis and nodes[p].shape[axis] > 1]
    chosen = chosen[which]
    if not chosen:
        return None
    total = nodes[chosen[0]].shape[axis]
    for place in chosen:
        node = nodes[place]
        if node.shape[axis] == total:
            node.value = Rows((node.value, (axis, 1)), node.shape, node.dtype, (axis, 1))
    return [0, 1, total]


def _computed(case: Case, blocked: tuple[int, slice] | None) -> list[Any] | None:
    """The results of a sample and its gradients; None where nothing can be blocked."""
    nodes = nodes_of(case, arrays_of(case))
    if blocked is not None:
        bounds = _rows(nodes, case, *blocked)
        if bounds is None:
            return None
        passes = Passes(Here(bounds), 1 << 30)
    try:
        if blocked is not None:
            STATE.observer = passes
        results = apply(case, nodes)
        seeds = []
        for i, out in enumerate(results):
            if out.requires_grad:
                weights = np.random.default_rng(i).normal(size=out.shape).astype(out.dtype)
                seeds.append((out, constant(weights)))
        inputs = [n for n in nodes.values() if is_float(n.dtype) and n.requires_grad]
        found = gradients(seeds, inputs, create_graph=False, retain_graph=True) if seeds else []
        targets = [*results, *(g for g in found if g is not None)]
        evaluate(targets)
        return [n.value for n in targets]
    finally:
        STATE.observer = None


def _known(value: Any) -> Any:
    if isinstance(value, Rows):
        found, rows = value.array
        assert value.rows == rows or value.measured is None
        return found
    return value


# The axis that is cut, and of which operands.
WAYS = {
    "rows": (0, slice(None)),
    "columns of the first": (1, slice(1)),
    "rows of the others": (0, slice(1, None)),
    "third axis": (2, slice(None)),
}


def _agrees(case: Case, way: tuple[int, slice], expected: list[Any] | None) -> bool | None:
    """Whether a sample is computed in blocks; None where nothing of it can be blocked."""
    try:
        found = _computed(case, way)
    except AutodiffError as error:
        assert error.code == "E606", (case.name, error)
        return False
    if found is None:
        return None
    assert expected is not None
    for one, other in zip(found, expected, strict=True):
        value = _known(one)
        assert value.shape == other.shape, (case.name, way, value.shape, other.shape)
        assert value.dtype == other.dtype, (case.name, way)
        close = 1e-10 if value.dtype == np.float64 else 1e-3 if value.dtype == np.float16 else 1e-5
        np.testing.assert_allclose(value, other, close, close / 100, err_msg=case.name)
    return True


def test_every_op(request: pytest.FixtureRequest) -> None:
    """One sample in four. What is refused is recorded: an op along whose rows blocks can be
    computed is none of it."""
    refused = []
    for case in share(cases(), 4):
        expected = _computed(case, None)
        for title, way in WAYS.items():
            if _agrees(case, way, expected) is False:
                refused.append((title, case))
    compare(request, listed(refused))


def _evaluated(expression: Any, arrays: list[np.ndarray], bounds: list[int]) -> tuple[Any, int]:
    """A scalar of blocked arrays, its gradients, and how many passes it took."""
    passes = 0

    class Counted(Here):
        def run(self, *given: Any) -> list[Any]:
            nonlocal passes
            passes += 1
            return super().run(*given)

    w = leaf(np.linspace(-1.0, 1.0, 3), AccumulateGrad())
    rows = [Rows((a, (0, 1)), a.shape, a.dtype, (0, 1)) for a in arrays]
    with own_state():
        STATE.observer = Passes(Counted(bounds), 1 << 30)
        out = expression(w, *map(constant, rows))
        (slope,) = gradients([(out, ones_like(out))], [w], create_graph=False, retain_graph=True)
        evaluate([out, slope])
    return (out.value, slope.value), passes


def _standardized(w: Any, x: Any, y: Any) -> Any:
    z = (x - F.mean(x, 0)) / F.std(x, 0)
    return F.mean((F.matmul(z, w) - y) ** 2)


def _logistic(w: Any, x: Any, y: Any) -> Any:
    z = F.matmul(x, w)
    return F.mean(F.softplus(z) - y * z)


INDICES = constant(np.array([1, 0, 5, 2, 3, 4]))

# Shapes of arrays, along which axis each is cut into rows (6 of them), and what is made of them.
PLACES: list[tuple[str, list[tuple[tuple[int, ...], int | None]], Callable[..., Any]]] = [
    ("dims before go", [((2, 3, 6), 2)], lambda x: F.diagonal(x, 0, 0, 1)),
    ("dims around go", [((2, 6, 2), 1)], lambda x: F.diagonal(x, 0, 0, 2)),
    ("sums before", [((2, 6, 3, 2), 1)], lambda x: F.sum(x, (0, 3))),
    ("sums that stay", [((2, 6, 3), 1)], lambda x: F.sum(x, 0, True)),
    ("one of one", [((1, 6), 1)], lambda x: F.unbind(x, 0)[0]),
    ("ones around go", [((1, 6, 1), 1)], lambda x: F.squeeze(x)),
    ("nothing before", [((4, 6), 1)], lambda x: F.cat([x, constant(np.zeros(0))], 0)),
    ("all rows", [((6, 3), 0)], lambda x: F.slice(x, 0, 0, 6, 1) * 2),
    ("all rows, copied", [((6, 3), 0)], lambda x: F.narrow_copy(x, 0, 0, 6)),
    ("rows in another order", [((6, 6), 0)], lambda x: F.index_select(x, 0, INDICES)),
    ("every other column", [((6, 6), 0)], lambda x: F.slice(x, 1, 0, 6, 2)),
    ("square", [((6, 6), 1)], lambda x: F.exp(F.select(x, 0, 1))),
    ("square, part", [((6, 6), 1)], lambda x: F.exp(F.slice(x, 0, 0, 2, 1))),
    ("two each", [((6, 4), 0)], lambda x: F.exp(F.select(F.view(x, (12, 2)), 1, 1))),
    *(
        (
            f"batches of rows times {shape}",
            [((6, 2, 3), 0), (shape, None)],
            lambda x, y: F.matmul(x, y),
        )
        for shape in ((6, 3, 2), (1, 3, 2), (3, 2), (3,), (2, 6, 3, 2), (2, 1, 3, 4))
    ),
    *(
        (
            f"{shape} times batches of rows",
            [(shape, None), ((6, 3, 2), 0)],
            lambda x, y: F.matmul(x, y),
        )
        for shape in ((6, 2, 3), (1, 2, 3), (2, 3), (3,), (2, 6, 2, 3))
    ),
    ("batches summed over", [((2, 3, 6), 2), ((2, 6, 3), 1)], lambda x, y: F.matmul(x, y)),
    ("columns of batches", [((2, 2, 3), None), ((2, 3, 6), 2)], lambda x, y: F.matmul(x, y)),
    ("a later product", [((4, 6, 2), 1)], lambda x: F.prod(x, 2)),
    ("one more dim", [((2, 6), 1)], lambda x: F.unsqueeze(x, 1)),
    ("samples", [((6, 2, 4, 4), 0), ((3, 2, 2, 2), None)], lambda x, w: F.conv2d(x, w)),
    ("weights have rows", [((1, 2, 4, 4), None), ((6, 2, 2, 2), 0)], lambda x, w: F.conv2d(x, w)),
    ("both have rows", [((6, 2, 4, 4), 0), ((6, 2, 2, 2), 0)], lambda x, w: F.conv2d(x, w)),
    ("indices too", [((6, 6), 0), ((6,), 0)], lambda x, i: F.index(x, [None, _long(i)])),
    ("of a table", [((4,), None), ((6, 2), 0)], lambda x, i: F.index(x, [_long(i)])),
    ("later ones", [((4, 4), None), ((6,), 0)], lambda x, i: F.index(x, [None, _long(i)])),
    (
        "two each beside a whole, taken",
        [((6, 4), 0), ((6, 4), None)],
        lambda x, y: F.index_select(_halves(x) * F.exp(_halves(y)), 0, INDICES),
    ),
    (
        "square of two each",
        [((12, 6, 2), 1)],
        lambda x: F.exp(F.select(F.reshape(x, (12, 12)), 0, 1)),
    ),
]
REFUSES = {"weights have rows", "both have rows", "indices too", "all rows, copied", "later ones"}


def _long(x: Any) -> Any:
    return cast(x, np.dtype(np.int64))


def _halves(x: Any) -> Any:
    return F.reshape(F.reshape(x, (12, 2)) * constant(np.arange(24.0).reshape(12, 2)), (6, 4))


def _placed(
    shapes: list[tuple[tuple[int, ...], int | None]],
    expression: Callable[..., Any],
    **limits: int,
) -> list[Any]:
    """What is made of arrays, and gradients: in blocks where limits are given."""
    given = []
    axes = {axis for _, axis in shapes if axis is not None} or {0}
    for i, (shape, axis) in enumerate(shapes):
        node = leaf(seeded(i).uniform(0.5, 2.0, shape), AccumulateGrad())
        if limits and axis is not None:
            node.value = Rows((node.value, (axis, 1)), shape, node.dtype, (axis, 1))
        given.append(node)
    with own_state():
        if limits:
            STATE.observer = Passes(Here([0, 2, 5, 6], min(axes)), **limits)
        out = expression(*given)
        targets = [out]
        if out.requires_grad:
            seed = constant(seeded("seed").uniform(size=out.shape))
            targets += gradients([(out, seed)], given, create_graph=False, retain_graph=True)
        targets = [t for t in targets if t is not None]
        evaluate(targets)
    return [t.value for t in targets]


@together(PLACES)
def test_where_rows_are(name: str, shapes: Any, expression: Callable[..., Any]) -> None:
    expected = _placed(shapes, expression)
    try:
        found = _placed(shapes, expression, max_bytes=1 << 30)
    except AutodiffError as error:
        assert error.code == "E606" and name in REFUSES, error
        return
    assert name not in REFUSES
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(_known(one), other, 1e-12)


# What is made beside rows and whether it is made in blocks where it is more than may be whole.
WHOLE = {
    "a number": (((), None), lambda x: F.expand(x, (6,)), True),
    "a column": (((6, 1), None), lambda x: F.expand(x, (6, 3)), False),
    "a row": (((1, 3), None), lambda x: F.expand(x, (6, 3)), True),
    "before": (((6,), None), lambda x: F.expand(x, (3, 6)), False),
    "later": (((3, 1), None), lambda x: F.expand(x, (3, 6)), True),
    "one of both": (((1,), None), lambda x: F.expand(x, (6, 6)), True),
    "zeros": (((6,), 0), lambda x: F.zeros((3, 6), dtype=x.dtype), True),
    "other": (((4, 1), None), lambda x: F.expand(x, (4, 3)), False),
}


@pytest.mark.parametrize("name", WHOLE)
def test_what_grows_is_in_blocks_where_it_is_too_large(name: str) -> None:
    (shape, axis), expression, grows = WHOLE[name]
    shapes = [(shape, axis)]
    (expected, *_) = _placed(shapes, expression)
    for whole, blocked in ((expected.nbytes, False), (expected.nbytes - 1, grows)):
        (found, *_) = _placed(shapes, expression, max_bytes=1 << 30, whole=whole)
        assert isinstance(found, Rows) == blocked
        assert np.array_equal(_known(found), expected)


EYE = constant(np.eye(3))

# Arrays, what is made of them, the limit, and the least number of bytes that is allowed.
BOUNDS: list[tuple[str, list[Any], Callable[..., Any], str, int]] = [
    ("sums", [((6, 20), 0)], lambda x: F.matmul(F.transpose(x, 0, 1), x), "max_bytes", 28_800),
    ("taken", [((6, 3), 0)], lambda x: F.slice(x, 0, 0, 2), "whole", 48),
    ("whole", [((6, 3), 0), ((6, 3), None)], lambda x, y: x * F.matmul(y, EYE), "whole", 144),
]


@pytest.mark.parametrize(("name", "shapes", "expression", "limit", "least"), BOUNDS)
def test_bounds(name: str, shapes: Any, expression: Any, limit: str, least: int) -> None:
    with pytest.raises(AutodiffError) as error:
        _placed(shapes, expression, **{"max_bytes": 1 << 30} | {limit: least - 1})
    assert error.value.code == "E606"
    found = _placed(shapes, expression, **{"max_bytes": 1 << 30} | {limit: least})
    np.testing.assert_allclose(_known(found[0]), _placed(shapes, expression)[0], 1e-12)


def test_results_with_columns_are_whole_where_they_may_be() -> None:
    for whole, blocked in ((144, False), (143, True)):
        (found,) = _placed(
            [((3, 6), 1)], lambda x: F.exp(F.detach(x)), max_bytes=1 << 30, whole=whole
        )
        assert isinstance(found, Rows) == blocked


def test_as_many_random_numbers_as_may_be_whole() -> None:
    passes = Passes(Here([0, 6]), 1 << 30, whole=48)
    passes.draws(48)
    with pytest.raises(AutodiffError, match="drawn one after the other"):
        passes.draws(49)


def test_passes_over_the_data() -> None:
    random = np.random.default_rng(3)
    x, y = random.normal(size=(17, 3)), random.normal(size=17)
    z = x @ np.linspace(-1.0, 1.0, 3)
    (loss, slope), passes = _evaluated(_logistic, [x, y], [0, 5, 6, 17])
    assert passes == 1
    np.testing.assert_allclose(loss, np.mean(np.logaddexp(0, z) - y * z), 1e-13)
    np.testing.assert_allclose(slope, x.T @ (1 / (1 + np.exp(-z)) - y) / 17, 1e-12)
    s = (x - x.mean(0)) / x.std(0, ddof=1)
    r = s @ np.linspace(-1.0, 1.0, 3) - y
    (loss, slope), passes = _evaluated(_standardized, [x, y], [0, 5, 6, 17])
    assert passes == 3  # the mean, what is squared around it, the loss with its gradient
    np.testing.assert_allclose(loss, np.mean(r**2), 1e-12)
    np.testing.assert_allclose(slope, 2 * s.T @ r / 17, 1e-11)


def test_numbers_of_rows_are_not_brought_here() -> None:
    rows = Rows(None, (10**9, 3), np.dtype(np.float64), (0, 1))
    for ask in (np.asarray, lambda r: r < 0, lambda r: r.tolist(), lambda r: r[0], list):
        with pytest.raises(AutodiffError) as found:
            ask(rows)
        assert found.value.code == "E606" and "22.4 GiB" in found.value.message
