"""A recorded plan gives for other arrays what evaluating anew gives, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import autodiff_cli as ad
from autodiff_cli.autograd import reverse, rules
from autodiff_cli.autograd.tensor import AccumulateGrad
from autodiff_cli.engine.evaluate import evaluate, plan
from autodiff_cli.engine.plan.schedule import planned
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.op import argument, leaf, looked_at
from autodiff_cli.graph.registry import F
from autodiff_cli.language.program.compiled import Compiled
from autodiff_cli.source import Source

from ..table import Case, apply, arrays_of, cases, each_op, nodes_of, specs


def targets_of(case: Case, nodes: dict[str, Node]) -> list[Node]:
    """The float results and the gradients of their sum."""
    results = [r for r in apply(case, nodes) if r.dtype.kind == "f"]
    graded = [r for r in results if r.requires_grad]
    leaves = [n for n in nodes.values() if n.requires_grad]
    seeds = [(r, rules.ones_like(r)) for r in graded]
    found = reverse.gradients(seeds, leaves, create_graph=False, retain_graph=True)
    return results + [g for g in found if g is not None]


@each_op(case for case in cases() if case.number % 4 == 0)
def test_other_arrays(case: Case) -> None:
    arrays = arrays_of(case)
    inputs = {place: argument(array) for place, array in arrays.items()}
    graded = {place for place, spec in specs(case) if spec.grad}
    nodes = {p: leaf(n, AccumulateGrad()) if p in graded else n for p, n in inputs.items()}
    targets = targets_of(case, nodes)
    if looked_at(inputs.values()):
        return
    order, _ = plan(targets)
    recording = planned(order, list(inputs.values()), targets)
    others = {p: a * a.dtype.type(0.75) if a.dtype.kind == "f" else a for p, a in arrays.items()}
    for given in (others, arrays):
        wanted = targets_of(case, nodes_of(case, given))
        evaluate(wanted, last=True)
        found = recording.run([given[place] for place in inputs], own=True)
        for one, node in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one, node.value)


def compiled(text: str, wrt: tuple[str, ...] | None = None) -> Compiled:
    return Compiled(Source(text, "p.expr"), wrt, "loss")


def recorded(function: Compiled) -> int:
    return sum(known.plan is not None for known in function.plans.values())


def test_the_third_call_only_runs_the_plan() -> None:
    function = compiled("y = x * w\nloss = sum(y * y)")
    for scale in (1.0, 2.0, 3.0, 4.0):
        loss, grads = function(x=np.array([scale, 1.0]), w=np.array([1.0, 2.0]))
        assert loss == scale**2 + 4
        np.testing.assert_array_equal(grads["x"], [2 * scale, 8.0])
        np.testing.assert_array_equal(grads["w"], [2 * scale**2, 4.0])
    assert recorded(function) == 1
    assert function(x=np.ones(3), w=np.ones(3))[0] == 3
    assert function(x=np.ones(3, np.float32), w=np.ones(3))[0] == 3


@pytest.mark.parametrize(
    "text",
    [
        "if x > 0:\n    y = x * 2\nelse:\n    y = x * 3\nloss = y * 1.0",
        "y = x * (2 if x.item() > 0 else 3)\nloss = y * 1.0",
        "y = x\nwhile abs(y) < 4:\n    y = y * 2\nloss = y * 1.0",
    ],
    ids=["if", "item", "while"],
)
def test_programs_that_look_at_values_run_anew(text: str) -> None:
    function = compiled(text)
    for value in (1.0, -1.0, 1.0, -1.0, 3.0):
        loss, grads = function(x=np.array(value))
        fresh = compiled(text)(x=np.array(value))
        assert (loss, grads["x"]) == (fresh[0], fresh[1]["x"])
    assert recorded(function) == 0


def test_draws_and_effects_are_not_recorded() -> None:
    for text in (
        "import torch\nloss = (x * torch.rand(2)).sum()",
        "import torch\nloss = torch.nn.functional.dropout(x, 0.5).sum()",
        "print('hello')\nloss = sum(x)",
        "import random\nloss = (x * random.random()).sum()",
        "import numpy as np\nloss = (x * np.random.rand()).sum()",
        "import time\nloss = (x * time.perf_counter()).sum()",
        "import torch\ng = torch.Generator().manual_seed(0)\n"
        "loss = (x * torch.rand(2, generator=g)).sum()",
    ):
        function = compiled(text)
        for _ in range(4):
            function(x=np.ones(2))
        assert recorded(function) == 0


def test_each_call_draws_its_own_numbers() -> None:
    for text in (
        "import random\nloss = x * random.random()",
        "import time\nloss = x * time.time()",
    ):
        function = ad.value_and_grad(text, "x")
        assert len({float(function(x=1.0)[0]) for _ in range(5)}) == 5


def test_results_are_memory_of_their_own() -> None:
    n = 5000
    function = ad.value_and_grad("loss = sum(x + w * 1.0) + sum(c * x)", wrt=["x", "w", "c"])
    x, w, c = np.ones(n), np.ones(n), np.ones(n)
    for _ in range(4):
        _, grads = function(x=x, w=w, c=c)
        for g in grads.values():
            g += 1
        assert grads["x"][0] == 3
        assert grads["w"][0] == grads["c"][0] == 2
    assert x[0] == w[0] == c[0] == 1


def test_errors_keep_their_place() -> None:
    function = compiled("y = inverse(x)\nloss = sum(y)")
    for _ in range(4):
        function(x=np.eye(2))
    with pytest.raises(ad.AutodiffError) as caught:
        function(x=np.zeros((2, 2)))
    assert caught.value.span is not None
    assert caught.value.span.line == 1


def test_values_that_nobody_reads_again_are_let_go() -> None:
    node = argument(np.ones(4))
    last = node
    for _ in range(5):
        last = F.mul(last, 2.0)
    order, _ = plan([last])
    recording = planned(order, [node], [last])
    assert [len(step.done) for step in recording.steps] == [0, 1, 1, 1, 1]
