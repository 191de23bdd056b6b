"""Tests generated from the op table: each sample of each op is checked in all ways that apply."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autodiff_cli.autograd import calls, reverse, rules
from autodiff_cli.autograd.tensor import AccumulateGrad, Tensor
from autodiff_cli.engine.evaluate import evaluate
from autodiff_cli.errors import AutodiffError
from autodiff_cli.graph.kinds import Kind
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.op import Op, constant, leaf, value_of
from autodiff_cli.graph.registry import OPS, F
from autodiff_cli.graph.samples import Bad
from autodiff_cli.graph.state import STATE
from autodiff_cli.language.runtime.attributes import get_attribute
from autodiff_cli.language.values.functions import call_value

from ..changed import Library, refused
from ..table import (
    Case,
    apply,
    array_of,
    arrays_of,
    bind,
    call,
    cases,
    each_op,
    nodes_of,
    parts,
    share,
    specs,
    weights,
    without_signs,
)

CASES = cases()
FIXTURE = Path(__file__).parents[1] / "fixtures" / "ops.npz"


@pytest.fixture(scope="session")
def reference() -> dict[str, dict[str, Any]]:
    """What PyTorch gave for each sample: values `outI`, gradients `grad/PLACE`; `saved`, the places
    of operands and results that may not be changed in place before backward."""
    found: dict[str, dict[str, Any]] = {}
    with np.load(FIXTURE) as data:
        for line in data["saved"].tolist():
            case, _, places = line.partition(" ")
            found[case] = {"saved": places}
        for name in data.files[:-1]:
            case, _, what = name.partition("/")
            found.setdefault(case, {})[what] = data[name]
    return found


def objective(case: Case, results: tuple[Node, ...]) -> Node | None:
    """One number of all float results that gradients reach."""
    total = None
    for i, node in enumerate(results):
        if node.requires_grad:
            term = F.sum(node * constant(weights(case, node.shape, f"w{i}").astype(node.dtype)))
            total = term if total is None else total + term
    return total


def gradients(case: Case, nodes: dict[str, Node], create_graph: bool = False) -> dict[str, Node]:
    """Gradients of the objective by place, zeros where it is not reached."""
    total = objective(case, apply(case, nodes))
    wanted = [place for place, node in nodes.items() if node.requires_grad]
    if total is None:
        return {}
    found = reverse.gradients(
        [(total, rules.ones_like(total))],
        [nodes[p] for p in wanted],
        create_graph=create_graph,
        retain_graph=True,
    )
    return {
        p: rules.zeros_like(nodes[p]) if g is None else g
        for p, g in zip(wanted, found, strict=True)
    }


@each_op(c for c in CASES if not c.op.public)
def test_shape_and_dtype_are_known_before_the_value(case: Case) -> None:
    results = apply(case, nodes_of(case, arrays_of(case)))
    evaluate([r for r in results if r.value is None])
    for node in results:
        assert node.value.shape == tuple(node.shape)
        assert node.value.dtype == node.dtype


@each_op(c for c in CASES if c.op.public)
def test_value_and_gradient_are_those_of_pytorch(
    case: Case, reference: dict[str, dict[str, Any]]
) -> None:
    expected = reference.get(case.name)
    assert expected, f"no reference values of {case.name}: python -m tests.oracles.ops"
    nodes = nodes_of(case, arrays_of(case))
    found = without_signs(case, parts(call(case, nodes)))
    assert len(found) == sum(name.startswith("out") for name in expected)
    for i, part in enumerate(found):
        value = value_of(part) if isinstance(part, Node) else np.asarray(part)
        if isinstance(part, Node):  # known before the value
            assert (part.shape, part.dtype) == (value.shape, value.dtype)
        wanted = expected[f"out{i}"]
        assert value.shape == wanted.shape
        assert value.dtype == wanted.dtype
        rtol = 1e-5 if value.dtype == np.float32 else 1e-7
        np.testing.assert_allclose(value, wanted, rtol=rtol, atol=rtol / 100)
    for place, g in gradients(case, nodes).items():
        if f"grad/{place}" in expected:
            np.testing.assert_allclose(value_of(g), expected[f"grad/{place}"], rtol=1e-6, atol=1e-9)


PROJECTIONS: dict[str, Callable[[Any], Any]] = {
    "symmetric": lambda x: _method(_method(x, "add", _method(x, "transpose", -2, -1)), "mul", 0.5),
    "lower": lambda x: _method(x, "tril"),
    "upper": lambda x: _method(x, "triu"),
}


def _results(case: Case, operands: dict[str, Any]) -> list[Any]:
    args, kwargs = bind(case, operands, PROJECTIONS)
    found = calls.call_ops((case.op,), case.op.name, tuple(args), kwargs)
    return _tensors(found)


def _tensors(found: Any) -> list[Any]:
    several = isinstance(found, list | tuple)
    return [x for part in found for x in _tensors(part)] if several else [found]


def _tensor(array: np.ndarray, grad: bool) -> Tensor:
    context = AccumulateGrad() if grad else None
    return Tensor(leaf(array, context) if context else constant(array), context)


def _method(x: Tensor, name: str, *args: Any, **kwargs: Any) -> Any:
    return call_value(get_attribute(x, name), list(args), kwargs)


# Refused here alone: the weights of attention. Not noticed here: the vector of `combinations`, that
# takes elements out there by a mask.
OTHERWISE = {
    **{f"multi_head_attention_forward-{i}": "0 1 2 5 11" for i in range(2)},
    **{f"combinations-{i}": "" for i in range(2)},
}
HERE = Library(_tensor, _results, _method, AutodiffError, lambda error: error.code == "E407")


@each_op(c for c in CASES if c.op.public and not c.number)
def test_what_pytorch_saves_is_not_changed_in_place(
    case: Case, reference: dict[str, dict[str, Any]]
) -> None:
    STATE.reset()
    places = OTHERWISE.get(case.name, reference[case.name].get("saved"))
    assert places is None or refused(case, HERE) == places


def test_the_table_has_what_was_recorded(reference: dict[str, dict[str, np.ndarray]]) -> None:
    """No op and no sample of those that PyTorch was asked for is lost."""
    assert not set(reference) - {case.name for case in CASES}


def slope(
    case: Case, arrays: dict[str, np.ndarray], direction: dict[str, np.ndarray], order: int
) -> float:
    """Central difference of the objective (order 1) or of its weighted gradients (order 2)."""

    def at(step: float) -> float:
        moved = {p: a + step * direction[p] if p in direction else a for p, a in arrays.items()}
        nodes = nodes_of(case, moved)
        if order == 1:
            total = objective(case, apply(case, nodes))
            assert total is not None
            return float(value_of(total))
        return sum(
            float((value_of(g) * weights(case, g.shape, f"v{p}")).sum())
            for p, g in gradients(case, nodes).items()
        )

    step = 1e-6
    return (at(step) - at(-step)) / (2 * step)


def differentiable(case: Case) -> bool:
    return (
        case.op.kind is not Kind.SOURCE
        and case.sample.order > 0
        and all(spec.dtype == "float64" for _, spec in specs(case) if spec.grad)
    )


@each_op(c for c in share(CASES, 3) if differentiable(c))
def test_gradients_agree_with_differences(case: Case) -> None:
    arrays = arrays_of(case)
    nodes = nodes_of(case, arrays)
    first = gradients(case, nodes, create_graph=True)
    if not first:
        return
    direction = {p: weights(case, arrays[p].shape, f"d{p}") for p in first}
    forward = sum(float((value_of(g) * direction[p]).sum()) for p, g in first.items())
    assert forward == pytest.approx(slope(case, arrays, direction, 1), rel=1e-5, abs=1e-6)
    if case.sample.order < 2:
        return
    total = None
    for p, g in first.items():
        if g.requires_grad:
            term = F.sum(g * constant(weights(case, g.shape, f"v{p}")))
            total = term if total is None else total + term
    if total is None:
        return
    places = list(first)
    second = reverse.gradients(
        [(total, rules.ones_like(total))],
        [nodes[p] for p in places],
        create_graph=False,
        retain_graph=True,
    )
    analytic = sum(
        float((value_of(g) * direction[p]).sum())
        for p, g in zip(places, second, strict=True)
        if g is not None
    )
    assert analytic == pytest.approx(slope(case, arrays, direction, 2), rel=2e-4, abs=2e-5)


OWN_RULE = [
    case
    for case in CASES
    if case.op.kind is Kind.COMPOSITE and case.op.vjp_rule is not None and case.sample.order > 0
]


@each_op(OWN_RULE)
def test_a_composites_own_rule_equals_its_bodys(case: Case) -> None:
    arrays = arrays_of(case)
    own = gradients(case, nodes_of(case, arrays))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(case.op, "vjp_rule", None)
        body = gradients(case, nodes_of(case, arrays))
    assert own.keys() == body.keys()
    for place, g in own.items():
        rtol = 1e-9 if g.dtype == np.float64 else 1e-6  # a few roundings of the dtype
        np.testing.assert_allclose(value_of(g), value_of(body[place]), rtol=rtol, atol=rtol / 10)


KINKED = [
    case
    for case in CASES
    if case.op.kink is not None
    and differentiable(case)
    and any(spec.grad for _, spec in specs(case))
]


@each_op(KINKED)
def test_samples_off_a_kink_have_a_distance(case: Case) -> None:
    """What was checked with differences lies off every kink that the op declares."""
    nodes = nodes_of(case, arrays_of(case))
    args, kwargs = bind(case, nodes)
    distance = value_of(case.op.kink(*case.op.bind(tuple(args), kwargs)))
    assert np.min(distance, initial=np.inf) > 1e-5


ERRORS = [
    Case(op, i, bad)  # type: ignore[arg-type]  # a Bad has args and kwargs like a sample
    for op in OPS.values()
    for i, bad in enumerate(op.errors)
]


@each_op(ERRORS)
def test_bad_arguments_are_named(case: Case) -> None:
    op, bad = case.op, case.sample
    arrays = {place: array_of(spec, f"{case.name}/{place}") for place, spec in specs(case)}
    args, kwargs = bind(case, nodes_of(case, arrays))
    with pytest.raises(AutodiffError) as caught:
        result = op(*args, **kwargs)
        evaluate([result] if isinstance(result, Node) else list(result))
    assert isinstance(bad, Bad)
    assert caught.value.code == bad.code
    assert bad.words in caught.value.message
    assert caught.value.diagnostic.helps


def test_every_op_has_samples_and_words() -> None:
    for op in OPS.values():
        assert op.doc, op.key
        assert op.samples or not op.public, op.key
        for sample in op.samples:
            assert sample.order == 2 or sample.because, op.key


def test_samples_reach_every_op(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ops that only rules use need no samples of their own when others apply them."""
    reached = {op.key for op in OPS.values() if op.samples}
    apply_op = Op.apply

    def recorded(op: Op, bound: list[Any]) -> Any:
        reached.add(op.key)
        return apply_op(op, bound)

    monkeypatch.setattr(Op, "apply", recorded)
    families = {op.family for op in OPS.values() if op.key not in reached}
    for case in CASES:
        if case.op.family in families:
            gradients(case, nodes_of(case, arrays_of(case)))
    assert set(OPS) - reached <= WRITTEN_BY_HANDLES


def test_primitives_stay_few(capsys: pytest.CaptureFixture[str]) -> None:
    primitives = [
        op
        for op in OPS.values()
        if op.kind not in (Kind.COMPOSITE, Kind.FUNCTION) and op.vjp_rule is not None
    ]
    with capsys.disabled():
        print(f"\n{len(OPS)} ops, {len(primitives)} differentiable primitives")
    assert len(primitives) <= PRIMITIVES


PRIMITIVES = 250

# In-place changes of tensors make these; tests of the language cover them.
WRITTEN_BY_HANDLES = {"copy_slices"}
