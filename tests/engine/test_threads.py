"""Tiles and parts on several threads: the same numbers for any number of them, errors in place,
forks, and several threads of the user."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import autodiff_cli as ad
import autodiff_cli.engine.evaluate as engine
from autodiff_cli.autograd import reverse, rules
from autodiff_cli.autograd.tensor import AccumulateGrad
from autodiff_cli.engine import blas, threaded_kernels
from autodiff_cli.engine.threads import WORKERS, Workers, available
from autodiff_cli.errors import fail
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.op import constant, leaf
from autodiff_cli.graph.registry import F
from autodiff_cli.graph.state import STATE
from autodiff_cli.ops import load_all
from autodiff_cli.session import run
from autodiff_cli.source import Source

from ..regimes import fused, same

load_all()

GENERATOR = np.random.default_rng(0)
X = GENERATOR.uniform(-1, 1, (100, 16))
W = GENERATOR.uniform(-1, 1, 16)
IMAGES = GENERATOR.uniform(-1, 1, (6, 3, 12, 12))
FILTERS = GENERATOR.uniform(-1, 1, (4, 3, 3, 3))


def layer_norm(x: Node, w: Node) -> Node:
    return F.sum(F.square(F.sub(F.layer_norm(x, (16,), w, w), 0.3)))


def neuron(x: Node, w: Node) -> Node:
    return F.sum(F.square(F.sub(1.0, F.sigmoid(F.mul(x, w)))))


def columns(x: Node, w: Node) -> Node:
    return F.sum(F.mul(F.logsumexp(F.mul(x, w), 0), F.var(x, 0)))


def convolved(x: Node, w: Node) -> Node:
    return F.sum(F.square(F.conv2d(x, w)))


PROGRAMS: list[tuple[Callable[[Node, Node], Node], np.ndarray, np.ndarray]] = [
    (layer_norm, X, W), (neuron, X, W), (columns, X, W), (convolved, IMAGES, FILTERS),
]  # fmt: skip


def results(program: Callable[[Node, Node], Node], *arrays: np.ndarray) -> list[np.ndarray]:
    STATE.reset()
    leaves = [leaf(array, AccumulateGrad()) for array in arrays]
    loss = program(*leaves)
    found = reverse.gradients(
        [(loss, rules.ones_like(loss))], leaves, create_graph=False, retain_graph=True
    )
    targets = [loss, *[g for g in found if g is not None]]
    engine.evaluate(targets)
    return [node.value for node in targets]


@pytest.mark.parametrize(("program", "x", "w"), PROGRAMS, ids=lambda v: getattr(v, "__name__", ""))
def test_numbers_do_not_depend_on_threads(
    program: Any, x: np.ndarray, w: np.ndarray, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threaded_kernels, "CUT_FROM", 1)
    answers = []
    for threads in (1, 2, 3, 2, 5):
        with fused(256, threads):
            answers.append(results(program, x, w))
    for answer in answers[1:]:
        for one, other in zip(answer, answers[0], strict=True):
            same(one, other)


def test_numbers_do_not_change_from_run_to_run() -> None:
    x = GENERATOR.uniform(-1, 1, (700, 300))
    w = GENERATOR.uniform(-1, 1, 300)
    first = results(neuron, x, w)
    for _ in range(3):
        for one, other in zip(results(neuron, x, w), first, strict=True):
            same(one, other)


def test_a_failure_keeps_its_place_and_the_team(monkeypatch: pytest.MonkeyPatch) -> None:
    def failing(x: np.ndarray) -> np.ndarray:
        if (x == 7).any():
            raise fail("E503", "seven", help="take another")
        return np.tanh(x)

    monkeypatch.setattr(F.tanh, "kernel", failing)
    program = "x = [[1.0, 2], [3, 4], [5, 6], [7, 8]]\ny = x * 1.5 / 1.5\nz = tanh(y)\nw = z + 1\n"
    for threads in (1, 2, 3):
        with fused(8, threads):
            report = run(Source(program, "seven.expr"))
            assert report.error is not None
            assert (report.error.code, report.error.message) == ("E503", "seven")
            assert report.error.span is not None
            assert report.error.span.line == 3
            same(engine_value(F.mul(constant(X), 2.0)), X * 2)


def engine_value(node: Node) -> np.ndarray:
    engine.evaluate([node])
    return node.value


def test_the_first_failure_counts_and_the_team_goes_on() -> None:
    team = Workers()
    team.limit = 3
    done: list[int] = []

    def failing(at: int) -> Callable[[], None]:
        def job() -> None:
            done.append(at)
            raise ValueError(at)

        return job

    for _ in range(3):
        with pytest.raises(ValueError, match="1"):
            team.share([lambda: done.append(0), failing(1), failing(2)])
        assert sorted(done) == [0, 1, 2]
        done.clear()
    with pytest.raises(ValueError, match="0"):
        team.share([failing(0), failing(1), failing(2)])
    done.clear()
    team.share([lambda: done.append(0), lambda: done.append(1)])
    assert sorted(done) == [0, 1]


def test_an_interrupted_caller_waits_for_the_others() -> None:
    team = Workers()
    team.limit = 2
    go, ended = threading.Event(), []

    def slow() -> None:
        go.wait(10)
        ended.append(True)

    def interrupted() -> None:
        go.set()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        team.share([interrupted, slow])
    assert ended == [True]
    team.share([lambda: ended.append(True), lambda: ended.append(True)])
    assert len(ended) == 3


def test_a_call_within_a_job_runs_its_jobs_one_by_one() -> None:
    team = Workers()
    found: list[int] = []
    team.share([lambda: team.share([lambda i=i: found.append(i) for i in range(3)]), lambda: None])
    assert found == [0, 1, 2]


def test_the_caller_may_use_its_cpus_afterwards() -> None:
    before, within = available(), []
    WORKERS.share([lambda: within.append(available()) for _ in before[:2]])
    assert len(before) < 2 or sorted(within) == [[place] for place in before[:2]]
    with pytest.raises(ZeroDivisionError):
        WORKERS.share([lambda: 1 // 0, lambda: None])  # type: ignore[list-item, return-value]  # it only raises
    assert available() == before


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_fork_has_a_team_of_its_own() -> None:
    if not hasattr(os, "fork"):
        return
    with fused(64, 2):
        first = results(neuron, X, W)
        stop = threading.Event()

        def busy() -> None:
            while not stop.is_set():
                results(layer_norm, X, W)

        other = threading.Thread(target=busy)
        other.start()
        try:
            for _ in range(3):
                assert _same_in_child(first)
        finally:
            stop.set()
            other.join()
        same(results(neuron, X, W)[0], first[0])


def _same_in_child(wanted: list[np.ndarray]) -> bool:
    child = os.fork()
    if not child:
        try:
            found = results(neuron, X, W)
            equal = all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))
            os._exit(0 if equal else 1)
        finally:
            os._exit(2)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("rows", [50, 20_000])
def test_threads_of_the_user(rows: int) -> None:
    """Calls, programs and plain evaluations at the same time share no state."""
    f = ad.value_and_grad("y = tanh(x * k) * 1.5\nloss = sum(y * y)", wrt=["x"])
    wrong: list[object] = []

    def work(k: float) -> None:
        x = np.full(rows, 0.5)
        slope = 2 * (1.5 * np.tanh(k * 0.5)) * 1.5 * k * (1 - np.tanh(k * 0.5) ** 2)
        for _ in range(8):
            _, grads = f(x=x, k=np.array(k))
            if not np.allclose(grads["x"], slope):
                wrong.append(("call", k))
            program = f"x = full(({rows},), {k})\nloss = sum(x * x) / {rows}\n"
            found = ad.run(program, backward=False)["tensors"]["loss"]["value"]
            if not np.allclose(found, k * k):
                wrong.append(("run", k, found))
            node = F.mul(F.exp(constant(x)), k)
            engine.evaluate([node])
            if not np.allclose(node.value, np.exp(0.5) * k):
                wrong.append(("evaluate", k))

    team = [threading.Thread(target=work, args=(float(k),)) for k in range(1, 5)]
    for thread in team:
        thread.start()
    for thread in team:
        thread.join()
    assert not wrong


def test_processors_that_this_process_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3, 1}, raising=False)
    assert (available(), Workers().count()) == ([1, 3], 2)
    monkeypatch.delattr(os, "sched_getaffinity")  # as elsewhere than on Linux
    for count, places in ((3, [0, 1, 2]), (None, [0])):
        monkeypatch.setattr(os, "cpu_count", lambda count=count: count)
        assert available() == places


def test_blas_has_its_threads_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "MANAGED", False)
    libraries = blas._libraries()

    def threads() -> set[int]:
        return {library.num_threads for library in libraries.lib_controllers}

    with libraries.limit(limits=2):
        with blas.single():
            with blas.single():
                assert threads() == {1}
            assert threads() == {1}
        assert threads() == {2}


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_blas_has_as_many_threads_as_there_may_be(
    threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blas, "MANAGED", True)
    monkeypatch.setattr(WORKERS, "limit", threads)
    with blas._libraries().limit(limits=1), blas.many():
        (found,) = {library["num_threads"] for library in blas._libraries().info()}
    assert found == threads


# Shapes of images, whether they are worth threads, and into how many parts they are cut.
IMAGE_PARTS = [
    ((1, 2, 256, 128), False, 1),
    ((2, 1, 256, 128), True, 2),
    ((2, 1, 256, 127), False, 2),
    ((0, 1, 256, 256), False, 0),
    ((16, 2, 128, 256), True, 8),
    ((16, 2, 128, 128), True, 4),
]


@pytest.mark.parametrize(("shape", "cut", "parts"), IMAGE_PARTS)
def test_parts_of_images(shape: tuple[int, ...], cut: bool, parts: int) -> None:
    images = constant(np.broadcast_to(1.0, shape))
    node = F.max_pool2d(images, 2)
    (node,) = [n for n in engine.plan([node])[0] if "samplewise" in n.op.properties]
    assert threaded_kernels.is_cut(node) == cut
    assert threaded_kernels.parts_of(node) == parts
