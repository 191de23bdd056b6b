"""Functions of programs in a process of their own: the same answers, and limits from outside."""

from __future__ import annotations

import io
import sys
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autodiff_cli as ad
from autodiff_cli import isolated
from autodiff_cli.errors import Label, fail
from autodiff_cli.source import Source, Span
from tests.pace import PATIENCE

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are bounded on Linux")

PROGRAM = "y = tanh(W @ x)\nloss = sum(y**2)"
W = np.array([[1.0, -2.0], [0.5, 1.0], [3.0, 0.0]])
X = np.array([0.5, -0.25])
FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "value_and_grad": (), "jvp": (np.array([1.0, -1.0]),), "jacobian": (),
}  # fmt: skip


def same(one: Any, other: Any) -> None:
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert list(one) == list(other)
        for name in one:
            same(one[name], other[name])
    elif isinstance(one, tuple):
        for a, b in zip(one, other, strict=True):
            same(a, b)
    else:
        np.testing.assert_array_equal(one, other)


def test_answers_are_those_of_this_process() -> None:
    for name, vector in FUNCTIONS.items():
        make = getattr(ad, name)
        here, there = make(PROGRAM, wrt="x", W=W), make(PROGRAM, wrt="x", W=W, isolate=True)
        for x in (X, X * 2):
            same(there(*vector, x=x), here(*vector, x=x))
        there.close()


def test_run() -> None:
    text = "import torch\nprint('a')\nn = 10**30\nx = torch.ones(2, requires_grad=True)\n" + (
        "(x * float('nan')).sum().backward()\n"
    )
    found, here = ad.run(text, isolate=True, timeout=20.0), ad.run(text)
    assert found["stdout"] == "a\n"
    assert found["scalars"] == here["scalars"]
    np.testing.assert_array_equal(found["tensors"]["x"]["grad"], [np.nan, np.nan])


def test_the_process_of_a_run_ends_with_it() -> None:
    def below() -> set[str]:
        tasks = Path("/proc/self/task").iterdir()
        return {number for task in tasks for number in (task / "children").read_text().split()}

    before = below()
    with pytest.raises(ad.AutodiffError) as caught:
        ad.run("x = 1\nloss = y", isolate=True)
    assert caught.value.code == "E201" and below() <= before
    assert caught.value.span is not None and caught.value.span.line == 2


@pytest.mark.parametrize(
    ("fatal", "words", "code"), [("lgamma", "stack", "E509"), ("erfc", "memory", "E505")]
)
def test_what_would_kill_the_caller(
    project: Path, monkeypatch: pytest.MonkeyPatch, fatal: str, words: str, code: str
) -> None:
    """A process is lost; the error says how, and the next call has another."""
    monkeypatch.setenv("PYTHONPATH", str(project / "tests" / "fatal"))
    text = f"import math\nif x.sum() > 0: math.{fatal}(1)\nloss = sum(x * x)"
    f: Any = ad.value_and_grad(text, wrt="x", isolate=True)
    with pytest.raises(ad.AutodiffError, match=words) as caught:
        f(x=X)
    assert caught.value.code == code
    value, gradient = f(x=-np.ones(2))
    assert value == 2.0
    np.testing.assert_array_equal(gradient, [-2.0, -2.0])
    f.close()


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("x = []\nfor i in range(999): x.append('a' * 9000000)", "E505"),
        ("while True: pass", "E508"),
        ("import torch\nu = torch.linalg.svd(torch.ones(2500, 2500))", "E508"),
    ],
)
def test_errors(text: str, code: str) -> None:
    with pytest.raises(ad.AutodiffError) as caught:
        timeout = 0.2 if code == "E508" else PATIENCE
        memory = (64 if code == "E505" else 1024) << 20
        ad.run(text, isolate=True, timeout=timeout, max_steps=10**12, max_memory=memory)
    assert caught.value.code == code
    if code == "E505":
        assert caught.value.span is not None
        assert caught.value.span.line == 2


def test_the_places_of_operands_come_along() -> None:
    function = ad.value("loss = sum(w * x)", isolate=True)
    for _ in range(2):
        with pytest.raises(ValueError, match=r"cannot broadcast \(2,\) with \(3,\)") as caught:
            function(w=np.ones(2), x=np.ones(3))
    labels = caught.value.diagnostic.labels  # type: ignore[attr-defined]  # an AutodiffError
    assert {label.span.text for label in labels} == {"w", "x"}
    assert function(w=1.0, x=2.0) == 2


def test_places_elsewhere_stay_behind() -> None:
    """What is marked in another text than the program's is no place of the program."""
    here, there = Source("x = y\n", "a.expr"), Source("import z\n", "z.py")
    spans = Span(here, 4, 5), Span(there, 0, 6)
    for span in (*spans, None):
        error = fail("E201", "no", span, labels=tuple(Label(s, s.text) for s in spans))
        data = isolated._data(error.diagnostic, here.text)
        assert data["labels"] == [([4, 5], "y")]
        assert data["span"] == ([4, 5] if span is spans[0] else None)


def test_files_that_may_be_read(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", X)
    text = f"x = load({str(tmp_path / 'x.npy')!r})\nw = [1, 2]\nloss = sum(w * x)"
    found = ad.run(text, isolate=True, allow_read=(tmp_path,))
    assert found["tensors"]["loss"]["value"] == 0.0


def test_a_system_that_cannot_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("select.poll")
    with pytest.raises(ad.AutodiffError, match="isolate=True"):
        ad.run(PROGRAM, isolate=True)


def test_what_is_no_data() -> None:
    function = ad.value("loss = sum(x)", isolate=True)
    with pytest.raises(ad.AutodiffError, match="takes and gives numbers and arrays"):
        function(x=[[1.0], [2.0, 3.0]])
    function.close()  # type: ignore[attr-defined]  # as it was made with `isolate`
    with pytest.raises(ad.AutodiffError, match="takes and gives numbers and arrays"):
        ad.run("x = 1", isolate=True, write=print)


def test_calls_at_the_same_time_have_a_process_each() -> None:
    function: Any = ad.value_and_grad("loss = sum(x * x)", wrt="x", isolate=True)

    def call(i: int) -> tuple[float, list[float]]:
        value, gradient = function(x=np.full(3, float(i)))
        return value, gradient.tolist()

    expected = [(3.0 * i * i, [2.0 * i] * 3) for i in range(40)]
    with ThreadPoolExecutor(3) as threads:
        assert list(threads.map(call, range(40))) == expected
    assert 1 <= len(function.idle) <= 3
    function.close()


def test_a_forked_process_has_its_own() -> None:
    """And leaves the parent's alone: answers of one pipe would reach whoever reads first."""
    function: Any = ad.value("loss = sum(x * x)", isolate=True)
    assert function(x=np.ones(2)) == 2.0
    (mine,) = function.idle
    with get_context("fork").Pool(2, INHERITED.append, (function,)) as pool:
        found = pool.map_async(_square, range(20)).get(PATIENCE)
    assert found == [2.0 * i * i for i in range(20)]
    assert function(x=np.full(2, 3.0)) == 18.0
    assert function.idle == [mine]
    function.close()


INHERITED: list[Any] = []


def _square(i: int) -> float:
    result: float = INHERITED[0](x=np.full(2, float(i)))
    return result


def test_nothing_is_unpickled() -> None:
    """What a process sends that a program has taken over."""
    file = io.BytesIO()
    np.save(file, np.array([Path("/")], object), allow_pickle=True)
    tree = b"null"
    with pytest.raises(ValueError, match="allow_pickle=False"):
        isolated.unpacked(len(tree).to_bytes(isolated.LENGTH, "little") + tree + file.getvalue())
