"""Programs of people who adopt the library: each does what such a program does, and its numbers are
known from elsewhere (SciPy, NumPy, closed forms)."""

from __future__ import annotations

import ast
import asyncio
import copy
import multiprocessing
import pickle
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import asdict, dataclass
from multiprocessing import shared_memory
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import autodiff_cli as ad
from autodiff_cli.engine.plan.schedule import STEP_BYTES
from tests.later import Later
from tests.together import together

optimize = Later("scipy.optimize")

ROSENBROCK = """
    a, b = x[:-1], x[1:]
    loss = sum(100*(b - a**2)**2 + (1 - a)**2)
"""
LOSS = "loss = sum((w*x)**2)"
RANDOM = np.random.default_rng(16)


# -- numbers ---------------------------------------------------------------------------------------


def test_scipy_minimizes() -> None:
    f = ad.value_and_grad(ROSENBROCK, wrt="x")
    start = np.array([1.3, 0.7, 0.8, 1.9])
    found = optimize.minimize(lambda x: f(x=x), start, jac=True, method="BFGS")
    assert found.success
    np.testing.assert_allclose(found.x, np.ones(4), atol=1e-5)
    value, hessian = ad.value(ROSENBROCK), ad.hessian(ROSENBROCK, wrt="x")
    found = optimize.minimize(
        lambda x: value(x=x),
        start,
        jac=lambda x: f(x=x)[1],
        hess=lambda x: hessian(x=x),
        method="trust-ncg",
    )
    np.testing.assert_allclose(found.x, np.ones(4), atol=1e-6)
    np.testing.assert_allclose(f(x=start)[1], optimize.rosen_der(start), rtol=1e-12)
    np.testing.assert_allclose(hessian(x=start), optimize.rosen_hess(start), rtol=1e-12)


def test_a_curve_is_fitted() -> None:
    t = np.linspace(0, 4, 50)
    seen = 2.5 * np.exp(-1.3 * t) + 0.5 + 0.01 * RANDOM.standard_normal(50)
    model = "y = p[0]*exp(-p[1]*t) + p[2]"
    y, slopes = ad.value(model, of="y", t=t), ad.jacobian(model, wrt="p", of="y", t=t)
    found, _ = optimize.curve_fit(
        lambda t, *p: y(p=p), t, seen, p0=np.ones(3), jac=lambda t, *p: slopes(p=np.array(p))
    )
    wanted, _ = optimize.curve_fit(lambda t, a, b, c: a * np.exp(-b * t) + c, t, seen)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_newton_finds_a_root() -> None:
    system = "y = stack([x[0]**2 + x[1]**2 - 4, x[0]*x[1] - 1])"
    f = ad.jacobian(system, wrt="x", of="y", aux="y")
    x = np.array([2.0, 0.3])
    for _ in range(8):
        slopes, residual = f(x=x)
        x = x - np.linalg.solve(slopes, residual)
    np.testing.assert_allclose(x**2, [2 + 3**0.5, 2 - 3**0.5], rtol=1e-14)


def test_many_examples_at_once() -> None:
    """A `vmap` is the calls one by one, for each kind of function."""
    program = "y = tanh(W @ x)\nloss = sum(y**2)"
    xs, w = RANDOM.standard_normal((5, 3)), RANDOM.standard_normal((2, 3))
    wanted = [ad.value_and_grad(program, aux=["y"])(x=x, W=w) for x in xs]
    f = ad.value_and_grad(program, aux=["y"], vmap="x")
    for _ in range(3):
        (value, slopes), seen = f(x=xs, W=w)
        for at, ((v, s), y) in enumerate(wanted):
            np.testing.assert_allclose(value[at], v, rtol=1e-13)
            np.testing.assert_allclose(seen["y"][at], y["y"], rtol=1e-13)
            for name in ("x", "W"):
                np.testing.assert_allclose(slopes[name][at], s[name], rtol=1e-13)
    one, many = (ad.hessian(program, wrt="x", vmap=vmap) for vmap in ((), ["x"]))
    np.testing.assert_allclose(many(x=xs, W=w), [one(x=x, W=w) for x in xs], rtol=1e-12)
    with pytest.raises(ValueError, match="different numbers of examples"):
        ad.value(program, vmap=["x", "W"])(x=xs, W=w)
    with pytest.raises(TypeError, match="no array with a first axis"):
        ad.value("y = x * w", vmap="w")(x=xs, w=1.0)


def test_draws_follow_the_seed() -> None:
    f = ad.value_and_grad("loss = sum(dropout(w, 0.5))", wrt="w", seed=1)
    w = np.ones(64)
    assert np.array_equal(f(w=w)[1], f(w=w)[1])
    masks = [f(w=w, seed=seed)[1] for seed in (1, 2, 3)]
    assert np.array_equal(masks[0], f(w=w)[1])
    assert not np.array_equal(masks[0], masks[1]) and not np.array_equal(masks[1], masks[2])
    drawn = ad.run("import torch\ntorch.manual_seed(7)\ny = torch.rand(3)")["tensors"]["y"]
    found = ad.value("import torch\ny = torch.rand(3)*1", of="y", seed=7)()
    np.testing.assert_array_equal(found, drawn["value"])
    assert ad.value("x = x * 2\nx += x * y\ny = [5.0]\nx")(x=3.0, y=2.0) == 18
    same = ad.value("loss = seed * 2", seed=3)(seed=4.0)  # a name of the program
    assert same == 8
    lines = ad.value_and_grad("loss = sum(dropout(w, 0.5))", wrt="w", vmap="w")(w=np.ones((2, 64)))
    assert not np.array_equal(*lines[1])


# -- arrays ----------------------------------------------------------------------------------------


def test_columns_of_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"w": [1.0, 2.0, 3.0], "x": [2, 3, 4]})
    value, slope = ad.value_and_grad(LOSS, wrt="w")(w=table["w"], x=table.x)
    assert value == 4 + 36 + 144
    assert slope.tolist() == [8, 36, 96]
    with pytest.raises(TypeError, match="numeric array"):
        ad.value_and_grad(LOSS, wrt="w")(w=table.astype({"w": str})["w"], x=1.0)


@together(
    [
        lambda a: a[::-1],
        lambda a: np.repeat(a, 2, axis=1)[:, ::2],
        np.asfortranarray,
        lambda a: np.broadcast_to(a[:1], a.shape),
        lambda a: a.astype(">f8"),
        lambda a: np.lib.stride_tricks.as_strided(a, (2, 2), (8, 8)),
        lambda a: memoryview(a),
        lambda a: a.tolist(),
        lambda a: (10 * a).astype(np.uint16),
    ]
)
def test_arrays_of_any_layout(change: Any) -> None:
    given = change(RANDOM.random((3, 4)))
    if isinstance(given, np.ndarray):
        given.flags.writeable = False
    plain = np.array(given, np.float64)
    before = plain.copy()
    for _ in range(3):
        value, slope = ad.value_and_grad("loss = sum(x**3 * c)", wrt="x")(x=given, c=given)
        np.testing.assert_allclose(value, (plain**4).sum(), rtol=1e-13)
        np.testing.assert_allclose(slope, 3 * plain**3, rtol=1e-13)
        slope[...] = 0  # the caller's
    np.testing.assert_array_equal(np.asarray(given), before)


def test_changing_shapes() -> None:
    """A form of arrays that comes back runs its plan; the last ones used are kept."""
    f = ad.value_and_grad("loss = sum(x * x)", wrt="x")
    for _ in range(2):
        for size in range(1, 40):
            x = np.arange(float(size))
            value, slope = f(x=x)
            assert value == (x * x).sum() and slope.tolist() == (2 * x).tolist()
    assert all(known.plan for known in f.plans.values()) and len(f.plans) == 39
    few = ad.value("loss = sum(x * x)", max_plan_memory=7 * STEP_BYTES)
    for size in (1, 1, 2, 2, 1, 3, 3):  # of four nodes, two steps
        few(x=np.ones(size))
    assert [arrays[0][1] for arrays, _ in few.plans] == [(1,), (3,)]


# -- mistakes --------------------------------------------------------------------------------------


@together(
    [
        (lambda: ad.value_and_grad(None), TypeError, "text or a `Path`"),
        (lambda: ad.run(b"x = 1"), TypeError, "not bytes"),
        (lambda: ad.value_and_grad(LOSS, wrt=0), TypeError, 'wrt="x"'),
        (lambda: ad.value_and_grad(LOSS, aux=[1]), TypeError, "`aux`"),
        (lambda: ad.value(LOSS, of=None), TypeError, "`of`"),
        (lambda: ad.value_and_grad(LOSS)(w=1.0, v=2.0), TypeError, "its arguments are: w, x"),
        (lambda: ad.value_and_grad(LOSS)(w=1.0), TypeError, "`f(x=...)`"),
        (lambda: ad.value_and_grad(LOSS)(1.0, 2.0), TypeError, "by name"),
        (lambda: ad.value_and_grad(LOSS)(w="abc", x=1.0), TypeError, "numeric array"),
        (lambda: ad.value(LOSS)(w=np.longdouble(1), x=1.0), TypeError, "64 bits"),
        (lambda: ad.value(LOSS)(w=np.ma.masked_array([1.0], [1]), x=1.0), TypeError, "mask"),
        (lambda: ad.value(LOSS)(w=np.ones(2), x=np.ones(3)), ValueError, "(2,) with (3,)"),
        (lambda: ad.value_and_grad(LOSS, wrt="z")(w=1.0, x=1.0), KeyError, "`z`"),
        (lambda: ad.value_and_grad(LOSS, loss="lost")(w=1.0, x=1.0), KeyError, "loss"),
        (lambda: ad.value_and_grad(LOSS, aux="y")(w=1.0, x=1.0), KeyError, "no `y`"),
        (lambda: ad.jacobian(LOSS, mode="both"), ValueError, "'both'"),
        (lambda: ad.run("x = 1.0", dtype="float31"), ValueError, "float32"),
        (lambda: ad.run("x = 1.0", lose="x"), TypeError, "did you mean `loss`"),
        (lambda: ad.check("x = 1.0", ordre=2), TypeError, "did you mean `order`"),
        (lambda: ad.run("x = (1.0"), ad.AutodiffError, "E101"),
        (lambda: ad.value_and_grad("y = argsort(x)")(x=np.ones(2)), ad.AutodiffError, "E402"),
        (lambda: ad.run(Path("nowhere")), ad.AutodiffError, "cannot read"),
        (lambda: ad.run("x = 1.0", loss=3), TypeError, "`loss` must be text or None, not 3"),
        (lambda: ad.run("x = 1.0", wrt=0), TypeError, "`wrt` must be text or a list of such"),
        (lambda: ad.run("x = 1.0", defines=3), TypeError, "a dict of values by name"),
        (lambda: ad.run("x = 1.0", defines={3: 3}), TypeError, "a dict of values by name"),
        (lambda: ad.run("x = 1.0", max_steps=-1), TypeError, "leave it out for 1,000,000"),
        (lambda: ad.run("x = 1.0", max_depth=True), TypeError, "whole number, not True"),
        (lambda: ad.run("x = 1.0", nan="no"), TypeError, "'warn' or 'error' or 'ignore'"),
        (lambda: ad.run("x = 1.0", backward=3), TypeError, "True or False"),
        (lambda: ad.run("x = 1.0", folder=3), TypeError, "a path or None"),
        (lambda: ad.run("x = 1.0", write="a"), TypeError, "a function or None"),
        (lambda: ad.check("x = 1.0", order=3), TypeError, "`order` must be 1 or 2, not 3"),
        (lambda: ad.check("x = 1.0", keyword="("), ValueError, "`keyword` cannot be read"),
        (lambda: ad.value(LOSS, vmpa="x"), TypeError, "did you mean `vmap`?"),
        (lambda: ad.value(LOSS, engine="gpu"), TypeError, "'numpy' or 'dask'"),
        (lambda: ad.value(LOSS, max_memory=-1), TypeError, "leave it out for 1,073,741,824"),
        (lambda: ad.value(LOSS, seed=1.5), TypeError, "`seed` must be a whole number or None"),
        (lambda: ad.value(LOSS, write=3), TypeError, "`write` must be a function or None"),
        (lambda: ad.value("y = [x, x]", of="y")(x=1.0), KeyError, "`y = stack(y)`"),
        (lambda: ad.value(LOSS)(w=np.array(None), x=1.0), TypeError, "not NoneType"),
        (lambda: ad.gradcheck(LOSS, [1.0], {}), TypeError, "by name, not a list"),
        (lambda: ad.gradcheck(LOSS, {"x": 1.0}, {}, rtol="a"), TypeError, "`rtol` must be"),
    ],
)  # fmt: skip
def test_mistakes_are_named(call: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(ad.AutodiffError) as caught:
        call()
    error = caught.value
    assert isinstance(error, kind)
    assert (kind is ad.AutodiffError) == (type(error) is ad.AutodiffError)
    assert words in str(error) and error.message in str(error) and error.code in str(error)
    assert all(help in str(error) for help in error.helps)
    for other in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert type(other) is type(error) and str(other) == str(error)
        assert (other.code, other.helps) == (error.code, error.helps)
        assert (other.span and other.span.text) == (error.span and error.span.text)


def test_what_a_program_raises_itself() -> None:
    with pytest.raises(ValueError, match="too small") as caught:
        ad.value("if x < 1:\n    raise ValueError('too small')\ny = x")(x=0.5)
    assert pickle.loads(pickle.dumps(caught.value)).code == "E212"


def test_options_and_text(tmp_path: Path) -> None:
    program = """
        x = [1.0, 2.0]
        loss = sum(x * k)
    """
    f = ad.value_and_grad(program, wrt="x")
    assert f(k=3.0)[0] == 9
    assert f(k=3.0, x=np.array([1.0, 5.0]))[0] == 18
    text = "x = [1.0, 2.0]\nk = 2.0\nloss = sum(x * k)"
    snippet = "import torch\nx = torch.tensor([1.0, 2.0])\ny = x * 2"
    found = ad.run(snippet, defines={"x": [np.inf, 1]})
    assert found["tensors"]["y"]["value"].tolist() == [np.inf, 2]
    for wrt in ("x", ["x"], np.array(["x"])):
        found = ad.run(text, wrt=wrt, max_steps=np.int64(9), backward=np.True_)
        assert [found["tensors"][n]["grad"] is None for n in ("x", "k")] == [False, True]
    found = ad.run(text, defines={"k": 3, "x": np.array([4.0, 5.0])})
    assert found["tensors"]["loss"]["value"] == 27
    assert ad.run(text, folder=None, max_steps=0)["tensors"]["loss"]["value"] == 6
    file = tmp_path / "a program"
    file.write_text(text)
    assert ad.run(file)["tensors"]["loss"]["value"] == 6
    (tmp_path / "k=2.expr").write_text(text)
    assert ad.value(str(tmp_path / "k=2.expr"))() == 6
    with pytest.raises(ad.AutodiffError, match="cannot read nowhere"):
        ad.value("nowhere.expr")


def test_blocks_that_change_an_argument() -> None:
    x = np.array([1.0, -0.5])
    step = "    x = x - 0.1*x**3\n"
    y, slope = x, np.ones(2)
    for _ in range(3):
        y, slope = y - 0.1 * y**3, slope * (1 - 0.3 * y**2)
    for head in ("for i in range(3):\n", "n = 0\nwhile n < 3:\n    n = n + 1\n"):
        f = ad.value_and_grad(head + step + "loss = sum(x**2)", wrt="x")
        assert repr(f).endswith(": f(x)>")
        for _ in range(3):
            value, found = f(x=x)
            assert abs(value - sum(y**2)) < 1e-14
            np.testing.assert_allclose(found, 2 * y * slope, rtol=1e-14)
    for head in ("if k > 0:\n", "try:\n", "with no_grad():\n    pass\nif True:\n"):
        tail = "finally:\n    pass\n" if head == "try:\n" else ""
        value = ad.value(f"{head}    x = x * k\n{tail}loss = sum(x)")
        assert repr(value).endswith(": f(k, x)>") and value(x=x, k=2.0) == 1.0
    pair = ad.jacobian("y = [x[0]*x[1], x[0]**2]\ny = stack(y)", wrt="x")
    assert pair(x=np.array([3.0, 5.0])).tolist() == [[5.0, 3.0], [6.0, 0.0]]
    inner = ad.value(
        "def g(a, b=2):\n    c = a * b\n    return c\ny = sum(stack([g(v) for v in x]))"
    )
    assert repr(inner).endswith(": f(x)>") and inner(x=x) == 1.0
    with pytest.raises(TypeError, match="`x` must be a numeric array, not dict"):
        inner(x={})
    with pytest.raises(TypeError, match="its arguments are: none"):
        ad.value("y = ones(2)")(x=x)


def test_a_result_that_is_an_argument() -> None:
    """Names that a program gives its arguments are results, and no leaves of its own."""
    for text in ("y = x", "x", "loss = x", "y = x\nz = y"):
        assert ad.value_and_grad(text)(x=2.0) == (2.0, {"x": 1.0})
    assert ad.value("y = x")(x=np.arange(3)).tolist() == [0, 1, 2]
    np.testing.assert_array_equal(ad.jacobian("y = x", wrt="x")(x=np.ones(2)), np.eye(2))
    assert ad.hessian("y = x")(x=2.0) == {"x": {"x": 0.0}}
    value, slopes = ad.value_and_grad("w = [1.0, 2.0]\nv = w\nloss = sum(v * x)")(x=2.0)
    assert value == 6 and list(slopes) == ["w", "x"]
    with pytest.raises(ad.AutodiffError, match="`y` does not depend on any argument"):
        ad.value_and_grad("y = x")(x=2)


def test_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    text = "print('x is', x)\ny = x * 2"
    pieces: list[str] = []
    for _ in range(3):
        assert ad.value(text)(x=2.0) == 4
        ad.value(text, write=pieces.append)(x=3.0)
    assert capsys.readouterr().out == "x is tensor(2., requires_grad=True)\n" * 3
    assert "".join(pieces) == "x is tensor(3., requires_grad=True)\n" * 3


def test_a_host_without_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(sys, name, None)
    text = "import warnings\nwarnings.warn('seen')\nprint(x)\ny = x * 2"
    assert ad.value(text)(x=2.0) == 4
    assert ad.run("x = 2.0\nprint(1)\ny = x*2")["stdout"] == "1\n"
    assert ad.value("print(x)\ny = x * 2", isolate=True)(x=2.0) == 4


def test_shared_memory_is_let_go() -> None:
    """Nothing of ours holds an array once the caller has let it go, so that it can be closed."""
    shared = shared_memory.SharedMemory(create=True, size=8 * 12)
    array: Any = np.ndarray((4, 3), np.float64, shared.buf)
    array[:] = np.arange(12.0).reshape(4, 3)
    array.flags.writeable = False
    f = ad.value_and_grad("loss = mean(tanh(X @ w)**2)", wrt="w")
    w = np.array([0.1, -0.2, 0.05])
    rows = array[::2]
    y = np.tanh(rows @ w)
    for _ in range(3):
        np.testing.assert_allclose(f(X=rows, w=w)[1], (y * (1 - y**2)) @ rows, rtol=1e-12)
        first = ad.value("y = X[0]")(X=rows)
        ad.jacobian("y = tanh(X)", aux="y")(X=rows)
        with pytest.raises(ValueError, match="inner sizes"):
            ad.value("y = X @ w")(X=rows, w=np.ones(2))
    del array, rows
    shared.close()
    shared.unlink()
    assert first.tolist() == [0, 1, 2]


# -- other processes and threads -------------------------------------------------------------------


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_process_pools(method: str) -> None:
    f = ad.value_and_grad(LOSS, wrt="w", x=2.0)
    f(w=1.0)
    with ProcessPoolExecutor(2, multiprocessing.get_context(method)) as pool:
        calls = [pool.submit(f, w=float(w)) for w in range(4)]
        assert [call.result(60) for call in calls] == [(4 * w * w, 8 * w) for w in range(4)]
        with pytest.raises(ValueError, match=r"(?s)cannot broadcast.*help: "):
            pool.submit(f, w=np.ones(2), x=np.ones(3)).result(60)
        with pytest.raises(TypeError, match="no name `v`"):
            pool.submit(f, v=1.0).result(60)
        with pytest.raises(ad.CheckFailed, match="E603"):
            pool.submit(ad.check, "x = 2\ny = x * x  #=> 5").result(60)
        assert pool.submit(f, w=1.0).result(60) == (4, 8)


def test_copies_and_pickles() -> None:
    functions = [
        ad.value_and_grad(LOSS, wrt="w", x=2.0),
        ad.jacobian("y = w * x", mode="forward", aux=["y"], x=2.0),
        ad.value("y = rand(3) * w", seed=4),
        ad.value("y = w + 1", isolate=True),
    ]
    for f in functions:
        wanted = repr(f(w=3.0))
        copied = [copy.copy(f), copy.deepcopy(f)] if f is not functions[-1] else []
        for other in (pickle.loads(pickle.dumps(f)), *copied):  # a process each of the last
            assert repr(other(w=3.0)) == wanted
            assert isinstance(other, type(f)) and repr(other) == repr(f)
    assert repr(functions[0]) == "<value_and_grad of `loss` in <program>: f(w, x)>"


def test_a_threaded_service() -> None:
    f = ad.value_and_grad("y = tanh(x * k)\nloss = sum(y * y)", wrt="x")

    def answer(k: int) -> tuple[Any, Any]:
        x = np.linspace(-1, 1, 3 + k % 5)
        if k % 7 == 3:
            with pytest.raises(ValueError, match="cannot broadcast"):
                f(x=x, k=np.ones(99))
        value, slope = f(x=x, k=float(k))
        y = np.tanh(x * k)
        np.testing.assert_allclose(value, (y * y).sum(), rtol=1e-12)
        np.testing.assert_allclose(slope, 2 * y * (1 - y * y) * k, rtol=1e-12)
        return value, slope

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(answer, range(200)))


def test_asyncio_awaits_calls_in_threads() -> None:
    f = ad.value_and_grad("loss = sum(sin(x)**2)", wrt="x")

    async def serve(sizes: range) -> list[Any]:
        return await asyncio.gather(*(asyncio.to_thread(f, x=np.arange(n + 1.0)) for n in sizes))

    for n, (value, slope) in enumerate(asyncio.run(serve(range(40)))):
        x = np.arange(n + 1.0)
        np.testing.assert_allclose(value, (np.sin(x) ** 2).sum(), rtol=1e-12)
        np.testing.assert_allclose(slope, np.sin(2 * x), atol=1e-13)


@dataclass
class Model:
    loss: Any
    slopes: Any
    x: Any


def test_a_dataclass_that_holds_functions() -> None:
    draws = "loss = sum(dropout(w, 0.5) * x)"
    model = Model(ad.value(LOSS), ad.value_and_grad(draws, wrt="w", seed=3), np.arange(3.0))
    wanted = repr(model.slopes(w=np.ones(3), x=model.x))
    for other in (copy.deepcopy(model), Model(**asdict(model)), pickle.loads(pickle.dumps(model))):
        assert other.loss is not model.loss
        assert other.loss(w=np.ones(3), x=other.x) == 5
        assert repr(other.slopes(w=np.ones(3), x=other.x)) == wanted


def test_a_fast_call_does_not_wait_for_a_slow_one() -> None:
    """The slow one waits for the fast one, so neither would ever end if calls took turns."""
    here, done = threading.Event(), threading.Event()

    def write(piece: str) -> None:
        here.set()
        assert done.wait(60)

    slow = threading.Thread(target=ad.value("print(x)\ny = x * 2", write=write), kwargs={"x": 1.0})
    slow.start()
    assert here.wait(60)
    assert ad.value_and_grad(LOSS, wrt="w")(w=1.0, x=2.0) == (4, 8)
    ad.check("x = 2\ny = x * x  #=> 4", timeout=30)
    done.set()
    slow.join()


def test_a_hundred_thousand_calls() -> None:
    """A hundredth of them: what a call leaves behind would show in what Python holds."""
    f = ad.value_and_grad(LOSS, wrt="w")
    x = np.arange(8.0)
    for _ in range(50):
        f(w=x, x=x)
    before = sys.getallocatedblocks()
    for at in range(1000):
        _, slope = f(w=x + at, x=x)
        assert slope[1] == 2 * (1 + at)
    assert sys.getallocatedblocks() - before < 200


def endless() -> None:
    endless()


# -- a guest in a process --------------------------------------------------------------------------


DEEP = "def f(n):\n    return 1.0 if n == 0 else f(n - 1) + 1\nloss = f(1200) * x\n"
LONG = "x = 2.0\nfor i in range(2000): x = x + 1\nloss = x * x"


@pytest.mark.parametrize(
    ("call", "given", "right"),
    [
        (lambda **more: ad.value_and_grad(DEEP, **more)(x=2.0)[0], {}, 2402.0),
        (lambda **more: ad.run("x = 2.0\n" + DEEP, **more)["tensors"]["x"]["grad"], {}, 1201.0),
        (lambda **more: ad.run(LONG, **more)["tensors"]["loss"]["value"], {"max_steps": 9},
         2002.0**2),
        (lambda **more: ad.run("ww = const([1., 2.]); loss = sum(ww * ww)", **more)["tensors"]["ww"]
         ["grad"].sum(), {}, 6.0),
        (lambda **more: ad.run("x = [1., 2.]; y = x * 3", loss="y", **more)["tensors"]["x"]["grad"]
         .sum(), {}, 6.0),
    ],
)  # fmt: skip
def test_helps_name_arguments_that_help(call: Any, given: dict[str, Any], right: float) -> None:
    with pytest.raises(ad.AutodiffError) as caught:
        call(**given)
    assert "--" not in str(caught.value)
    said = re.findall(r"`(\w+)=([^`]+)`", " ".join(caught.value.helps))
    name, value = next(found for found in said if found[1] != '"NAME"')
    more = 2000 if value == "..." else ast.literal_eval(value)
    assert call(**{**given, name: more}) == right


def test_signals_and_limits_are_the_hosts() -> None:
    def handler(number: int, frame: Any) -> None:
        raise AssertionError("the timer is a minute away")

    before = signal.signal(signal.SIGALRM, handler), signal.getsignal(signal.SIGINT)
    state = sys.getrecursionlimit(), threading.active_count(), sys.getswitchinterval()
    signal.setitimer(signal.ITIMER_REAL, 60, 7)
    try:
        f = ad.value_and_grad(LOSS, wrt="w")
        for _ in range(3):
            f(w=1.0, x=2.0)
        ad.run("def f(n):\n    return n if n < 1 else f(n - 1)\nf(500)")
        ad.check("x = [1, 2]\nloss = sum(x * x)", timeout=30)
        ad.gradcheck("loss = sum(abs(x))", {"x": [0.0]}, {"x": [1.0]})
        assert 50 < signal.getitimer(signal.ITIMER_REAL)[0] <= 60
        assert signal.getsignal(signal.SIGALRM) is handler
        assert signal.getsignal(signal.SIGINT) is before[1]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before[0])
    assert state == (sys.getrecursionlimit(), threading.active_count(), sys.getswitchinterval())
    with pytest.raises(RecursionError):
        endless()


ENDLESS = "i = 0\nwhile True:\n    i = i + 1"


class Late(Exception):
    """What the host's handler raises."""


def test_the_hosts_alarm_goes_off_in_time() -> None:
    """pytest-timeout ends a test in the middle of a check; a timer that only ticks goes on."""
    calls: list[float] = []

    def tick(number: int, frame: Any) -> None:
        calls.append(time.monotonic())

    def late(number: int, frame: Any) -> None:
        raise Late

    before = signal.signal(signal.SIGALRM, late)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        began = time.monotonic()
        with pytest.raises(Late):
            ad.check(ENDLESS, timeout=60, max_steps=10**12)
        assert time.monotonic() - began < 30
        signal.signal(signal.SIGALRM, tick)
        signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
        with pytest.raises(ad.CheckFailed, match="E508"):
            ad.check(ENDLESS, timeout=0.3, max_steps=10**12)
        assert len(calls) > 2
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 0.05
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


INTERRUPTED = """
import signal
import autodiff_cli as ad
f = ad.value("print(1)\\ni = 0\\nwhile True:\\n    i = i + 1", write=lambda piece: None,
             max_steps=10**9)
signal.signal(signal.SIGALRM, signal.default_int_handler)
signal.setitimer(signal.ITIMER_REAL, 0.2)
try:
    f()
except KeyboardInterrupt:
    print("interrupted", ad.value("y = x * 2")(x=2.0))
"""


def test_an_interrupt_reaches_the_caller() -> None:
    """In a process of its own: whoever runs this one may be interrupted a moment too late."""
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted 4.0\n", "")


@pytest.mark.parametrize("call", [ad.run, ad.value, ad.check])
@pytest.mark.parametrize("limit", [-1, 0, "1", float("nan")])
def test_time_limits_that_are_none(call: Any, limit: Any) -> None:
    with pytest.raises(TypeError, match="`timeout` must be a number of seconds above 0"):
        call("x = 1.0\nloss = x*x", timeout=limit)


def test_timeouts() -> None:
    with pytest.raises(ad.AutodiffError, match="timeout=") as caught:
        ad.run(ENDLESS, isolate=True, timeout=0.1, max_steps=10**12)
    assert caught.value.code == "E508"
    f = ad.value("while x > 0:\n    x = x + 1\ny = x * 2", timeout=0.2,
                 max_steps=10**12)  # fmt: skip
    assert f(x=-1.0) == -2
    with pytest.raises(ad.AutodiffError, match="timeout="):
        f(x=1.0)
    assert f(x=-2.0) == -4
    with pytest.raises(ad.CheckFailed, match="E508"):
        ad.check(ENDLESS, timeout=0.1, max_steps=10**12)


# -- notebooks and types ---------------------------------------------------------------------------


def test_notebooks_show_pages() -> None:
    page = ad.run("x = [1.0, 2.0]\nloss = sum(x * x)")._repr_html_()
    assert page.startswith("<iframe sandbox") and "&lt;!doctype html&gt;" in page
    assert dir(ad) == sorted(ad.__all__)
    assert "another seed for one call" in (ad.hvp.__doc__ or "")


def test_checkers_of_types_look_into_the_package() -> None:
    assert (Path(ad.__file__).parent / "py.typed").exists()


ALONE = """\
import sys
sys.modules["scipy"] = sys.modules["prompt_toolkit"] = None
from autodiff_cli.cli.main import main
code = main(["run", "--expr", "x = [1.0, 2.0]; loss = sum(gelu(x)) + sum(log(softmax(x, 0)))"])
assert code == 0
sys.exit(main(["run", "--expr", "x = [1.0, 2.0]; loss = sum(lgamma(x))"]))
"""


def test_a_package_that_is_missing(tmp_path: Path) -> None:
    """What needs none of it runs, what needs it says so."""
    done = subprocess.run(
        [sys.executable, "-c", ALONE], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 3, done.stderr
    assert "this needs the package `scipy`, which is not installed" in done.stderr
    assert "pip install scipy" in done.stderr
