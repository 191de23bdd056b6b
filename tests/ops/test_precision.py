"""Python numbers given to ops keep all digits where tensors are float64, whatever the default
dtype is."""

from __future__ import annotations

from typing import Any

import numpy as np

from autodiff_cli.autograd import reverse, rules
from autodiff_cli.engine.evaluate import evaluate
from autodiff_cli.errors import AutodiffError
from autodiff_cli.graph.registry import F
from autodiff_cli.graph.samples import S
from autodiff_cli.graph.state import STATE

from ..table import Case, arrays_of, bind, cases, each_op, flat, nodes_of, specs


def has_floats(value: Any) -> bool:
    if isinstance(value, list | tuple):
        return any(map(has_floats, value))
    return type(value) is float


def moved(value: Any) -> Any:
    """The same argument with floats that float32 does not know."""
    if isinstance(value, list | tuple):
        return type(value)(map(moved, value))
    return value * 1.1 + 0.01 if type(value) is float else value


def with_numbers() -> list[Case]:
    """Samples of float64 tensors and Python floats that give the same each time."""
    return [
        Case(
            case.op,
            case.number,
            S(
                *map(moved, case.sample.args),
                **{k: moved(v) for k, v in case.sample.kwargs.items()},
            ),
        )
        for case in cases()
        if has_floats([*case.sample.args, *case.sample.kwargs.values()])
        and any(spec.dtype == "float64" for _, spec in specs(case))
    ]


def outcome(case: Case, default: str) -> list[np.ndarray]:
    """Values and gradients under a default dtype; nothing when the moved numbers are refused."""
    STATE.reset()
    STATE.default_dtype = np.dtype(default)
    nodes = nodes_of(case, arrays_of(case))
    args, kwargs = bind(case, nodes)
    try:
        results = flat(case.op(*args, **kwargs))
        total = sum((F.sum(r) for r in results if r.requires_grad), start=F.zeros(()))
        found = (
            reverse.gradients(
                [(total, rules.ones_like(total))],
                list(nodes.values()),
                create_graph=False,
                retain_graph=True,
            )
            if total.requires_grad
            else []
        )
        wanted = [node for node in (*results, *found) if node is not None]
        evaluate(wanted)
        return [node.value for node in wanted]
    except AutodiffError:
        return []
    finally:
        STATE.reset()


@each_op(with_numbers())
def test_numbers_keep_their_digits(case: Case) -> None:
    single, double = outcome(case, "float32"), outcome(case, "float64")
    assert len(single) == len(double)
    for one, other in zip(single, double, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
