"""Calls that were bound before are applied as they would be anew."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from autodiff_cli.autograd import calls  # noqa: F401  # the table
from autodiff_cli.errors import AutodiffError
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.op import constant, number, value_of
from autodiff_cli.graph.registry import OPS, F
from autodiff_cli.graph.state import STATE
from autodiff_cli.language.program.compiled import Compiled
from autodiff_cli.language.values.housekeeping import HOUSEKEEPING
from autodiff_cli.source import Source

from ..said import compare
from ..table import arrays_of, bind, cases, flat, listed, nodes_of

X = np.arange(6.0).reshape(2, 3)


def test_true_is_not_one() -> None:
    x = constant(X)
    for _ in range(2):
        assert F.sum(x, 1, True).shape == (2, 1)
        with pytest.raises(AutodiffError):
            F.sum(x, True)
        assert F.sum(x, 1).shape == (2,)


def test_calls_that_are_alike_are_bound_once() -> None:
    x = constant(X)
    known = OPS["permute"].known
    assert known is not None
    known.clear()
    for count, dims in ((1, (1, 0)), (1, (1, 0)), (2, (0, 1)), (2, (1, 0))):
        F.permute(x, dims)
        assert len(known) == count


def test_dims_count_from_the_tensor_given() -> None:
    for shape in ((2, 3), (2, 3, 4), (2, 3), (5,)):
        for _ in range(2):
            assert F.sum(constant(np.ones(shape)), -1).shape == shape[:-1]


def test_dtypes_are_told_apart() -> None:
    for dtype, result in (("float32", "float32"), ("int8", "int64"), ("float64", "float64")):
        for _ in range(2):
            assert F.sum(constant(X.astype(dtype))).dtype.name == result


def test_integers_beside_floats_are_cast_every_time() -> None:
    """And refused in native programs, also where the language took them before."""
    k, x = constant(np.arange(3)), constant(np.ones(3))
    for _ in range(3):
        assert all(node.dtype == x.dtype for node in F.matmul(k, x).inputs)
    STATE.python = True
    try:
        with pytest.raises(AutodiffError, match="E307"):
            F.matmul(k, x)
    finally:
        STATE.python = False


def test_the_size_limit_holds_for_every_op(request: pytest.FixtureRequest) -> None:
    """What is made in one piece is refused one byte above the limit, and not at it, also where the
    same call was made before; which ops need less or more than their results is recorded."""
    odd = []
    STATE.reset()
    for op in OPS.values():  # so many calls are kept, and no more
        if op.known:
            op.known.clear()
    before = STATE.max_bytes
    for case in (c for c in cases() if c.number < 2):
        nodes = nodes_of(case, arrays_of(case))
        args, kwargs = bind(case, nodes)
        results = [flat(case.op(*args, **kwargs)) for _ in range(3)][-1]
        most = max((n.numel * n.dtype.itemsize for n in results), default=0)
        said = []
        for limit in (most - 1, most):
            try:
                STATE.max_bytes = limit
                case.op(*args, **kwargs)
                said.append("fits")
            except AutodiffError as error:
                said.append(error.code)
            finally:
                STATE.max_bytes = before
        if said != ["E505", "fits"]:
            odd.append((" and ".join(said), case))
    compare(request, listed(odd))


def test_zeros_keep_their_sign() -> None:
    for _ in range(2):
        assert np.signbit(value_of(number(-0.0)))
        assert not np.signbit(value_of(number(0.0)))


def test_a_long_chain_is_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HOUSEKEEPING, "every", 50)
    function = Compiled(
        Source("y = x\nfor i in range(200):\n    y = sin(y) * 1.5\nloss = y\n"), ("x",), "loss"
    )
    found = [function(x=np.array(0.3)) for _ in range(3)]
    assert all(known.plan is not None for known in function.plans.values())
    assert found[0] == found[1] == found[2]


def spread(*shape: int, dtype: str = "float64") -> Node:
    """An array of ones that takes no memory."""
    return constant(np.broadcast_to(np.ones((), dtype), shape))


FITTING = {
    "an op of two": lambda n: F.add(spread(10, 1), spread(1, n)),
    "an op of one": lambda n: F.exp(spread(10, n)),
    "an op of three": lambda n: F.where(spread(10, 1, dtype="bool"), spread(1, n), 0.0),
    "a reduction": lambda n: F.sum(spread(10, n, 2), 2),
    "a product": lambda n: F.matmul(spread(10, 1), spread(1, n)),
    "several results": lambda n: F.sort(spread(10, n)),
    "a function": lambda n: F.softmax(spread(10, n), 1),
    "numbers of four bytes": lambda n: F.add(
        spread(20, 1, dtype="float32"), spread(1, n, dtype="float32")
    ),
}


@pytest.mark.parametrize("made", FITTING.values(), ids=FITTING)
def test_what_does_not_fit_is_refused_before_it_is_computed(
    made: Callable[[int], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(STATE, "max_bytes", 800)
    for _ in range(3):  # bound in full, then as it was bound
        made(10)
        with pytest.raises(AutodiffError, match="E505"):
            made(11)
