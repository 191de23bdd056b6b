"""Nothing of a program runs once a limit has ended it, however it would be entered."""

from __future__ import annotations

import importlib
import signal
import sys
from pathlib import Path

import pytest

from autodiff_cli.checks.deadline import deadline
from autodiff_cli.errors import AutodiffError, fault, faults
from autodiff_cli.graph.state import STATE
from autodiff_cli.language.nn import prelude
from autodiff_cli.language.values.iterators import Lazy
from autodiff_cli.session import Options, run
from autodiff_cli.source import Source

from ..together import together

STUBBORN = """\
import torch, contextlib, functools
def stubborn(*values):
    try:
        while True: pass
    except BaseException: print("RAN")
    finally:
        print("RAN")
        return values[0] if values else 1.0
"""
PLACES = {
    "function": "while True: stubborn()",
    "handler": "try: stubborn()\nexcept BaseException: print('RAN')\nelse: print('RAN')",
    "finally that raises": "def f():\n    try: stubborn()\n    finally: raise ValueError\n"
    "while True:\n    try: f()\n    except ValueError: print('RAN')",
    "with": "class C:\n    def __enter__(self): pass\n"
    "    def __exit__(self, *what): print('RAN'); return True\n"
    "while True:\n    with C(): stubborn()",
    "contextmanager": "@contextlib.contextmanager\ndef c():\n    try: yield\n"
    "    finally: print('RAN')\nwith c(): stubborn()",
    "generator let go": "def g():\n    try: yield 1\n    finally: print('RAN')\n"
    "x = g(); next(x)\nstubborn()",
    "generator's own loop": "def g():\n    try: yield 1\n    finally: stubborn()\n"
    "x = g(); next(x)\ndel x",
    "generator closed": "def g():\n    try: yield 1\n    finally: stubborn()\n"
    "while True:\n    x = g(); next(x); x.close()",
    "key": "while True: sorted([2, 1], key=stubborn)",
    "map": "while True: list(map(stubborn, [1, 2]))",
    "reduce": "while True: functools.reduce(stubborn, [1, 2, 3])",
    "property": "class A:\n    @property\n    def x(self): return stubborn()\nwhile True: A().x",
    "operator": "class A:\n    def __eq__(self, other): return stubborn(False)\n"
    "while True: [A()] == [1]",
    "repr": "class A:\n    def __repr__(self): return stubborn('a')\nwhile True: str([A()])",
    "tensor hook": "x = torch.ones(1, requires_grad=True)\ny = x * 2\ny.register_hook(stubborn)\n"
    "while True: y.backward(retain_graph=True)",
    "module hook": "m = torch.nn.Linear(1, 1)\nm.register_forward_hook(lambda *a: stubborn())\n"
    "while True: m(torch.ones(1, 1))",
    "Function": "class F(torch.autograd.Function):\n    @staticmethod\n"
    "    def forward(ctx, x): return x * 1\n    @staticmethod\n"
    "    def backward(ctx, g): return stubborn(g)\nx = torch.ones(1, requires_grad=True)\n"
    "while True: F.apply(x).backward()",
    "transform": "while True: torch.func.grad(stubborn)(torch.ones(()))",
    "scheduler": "o = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=1.0)\n"
    "s = torch.optim.lr_scheduler.LambdaLR(o, lambda e: 1.0 if e < 1 else stubborn(1.0))\n"
    "while True: o.step(); s.step()",
    "closure": "w = torch.ones(2, requires_grad=True)\no = torch.optim.LBFGS([w])\n"
    "def c():\n    l = (w ** 2).sum(); l.backward()\n    return stubborn(l)\n"
    "while True: o.step(c)",
    "dataset": "class D(torch.utils.data.Dataset):\n    def __len__(self): return 3\n"
    "    def __getitem__(self, i): return stubborn(torch.ones(1))\n"
    "while True:\n    for x in torch.utils.data.DataLoader(D()): pass",
}

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


@together(PLACES)
def test_the_limit_on_steps_ends_the_program(place: str) -> None:
    text = f"{STUBBORN}{PLACES[place]}\nprint('RAN')\n"
    report = run(Source(text, "program.py"), Options(backward=False, max_steps=300))
    assert report.error is not None
    assert report.error.code == "E506"
    assert "RAN" not in report.stdout


@pytest.mark.parametrize("place", ["finally that raises", "generator closed", "tensor hook"])
def test_the_time_limit_ends_the_program(place: str) -> None:
    text = f"{STUBBORN}{PLACES[place]}\nprint('RAN')\n"
    with deadline(0.1):
        report = run(Source(text, "program.py"), Options(backward=False, max_steps=10**12))
    assert report.error is not None
    assert report.error.code == "E508"
    assert "RAN" not in report.stdout


@pytest.mark.parametrize("place", ["handler", "with", "contextmanager", "generator let go"])
def test_a_size_ends_the_program(place: str) -> None:
    text = PLACES[place].replace("stubborn()", "torch.ones(10**12)")
    report = run(Source(f"{STUBBORN}{text}\nprint('RAN')\n", "program.py"), Options())
    assert report.error is not None
    assert report.error.code == "E505"
    assert report.stdout == ""


def test_what_a_generator_does_when_it_is_let_go_counts() -> None:
    text = "def g():\n    try: yield 1\n    finally:\n        while True: pass\nx = g()\nnext(x)\n"
    report = run(Source(text, "program.py"), Options(backward=False, max_steps=50))
    assert report.error is not None
    assert (report.error.code, report.error.span and report.error.span.line) == ("E506", 4)


def test_iterators_do_not_go_on_after_a_limit() -> None:
    class Deep:
        def __next__(self) -> int:
            raise RecursionError

    lazy = Lazy("map", iter([1, 2]))
    assert next(lazy) == 1
    STATE.over = fault("E506 program-took-more-loop", 3)
    try:
        with pytest.raises(AutodiffError, match="3 loop steps"):
            next(lazy)
    finally:
        STATE.over = None
    assert next(lazy) == 2
    with pytest.raises(AutodiffError) as caught:
        next(Lazy("zip", Deep()))
    assert (caught.value.code, caught.value.message) == ("E507", "a zip recurses too deeply")


def test_a_manager_in_a_generator_is_left_when_the_program_is_interrupted() -> None:
    """Python leaves it too, with the exception that nobody catches."""
    text = """\
import contextlib
class C:
    def __enter__(self): print('in')
    def __exit__(self, *what): print('out')
def g():
    with C():
        yield 1
        print('now')
for x in g(): pass
"""
    written = []

    def write(piece: str) -> None:
        written.append(piece)
        if piece.startswith("now"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(Source(text, "program.py"), Options(backward=False, write=write))
    assert "".join(written).split() == ["in", "now", "out"]


def test_the_next_program_runs() -> None:
    ended = run(Source("while True: pass", "a.expr"), Options(max_steps=10))
    assert ended.error is not None
    assert run(Source("for i in range(3): print(i)", "b.expr")).stdout == "0\n1\n2\n"


def test_words_of_a_limit_need_no_module_that_is_half_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An alarm in the middle of an import that the words of the error need as well."""
    (tmp_path / "string.py").write_text("import time\ntime.sleep(0.2)\nclass Formatter: pass\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "string", raising=False)
    importlib.invalidate_caches()
    faults.cache_clear()
    with pytest.raises(Exception, match="time limit"), deadline(0.05):
        importlib.import_module("string")
        monkeypatch.undo()
        while True:
            pass


def test_an_import_is_whole_when_the_time_is_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The alarm waits until the module is there."""
    module = tmp_path / "slowly_imported.py"
    module.write_text("import time\nbegun = True\ntime.sleep(0.2)\ndone = True\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    before = signal.getsignal(signal.SIGALRM)
    with pytest.raises(Exception, match="time limit"), deadline(0.05):
        importlib.import_module("slowly_imported")
        while True:
            pass
    assert sys.modules.pop("slowly_imported").done
    assert signal.getsignal(signal.SIGALRM) == before


class Alarm(BaseException):
    pass


def test_a_limit_leaves_no_half_of_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wherever an alarm strikes while a module is read and compiled, the next program has all of
    it."""
    for moment in range(1, 20_000, 193):
        prelude._texts.cache_clear()
        monkeypatch.setattr(prelude._SCOPE, "names", prelude._Names())
        left = moment

        def alarm(*event: object) -> None:
            nonlocal left
            if event[2] is sys.setprofile:  # the end of this, which is not the library's
                return
            left -= 1
            if not left:
                sys.setprofile(None)
                raise Alarm

        sys.setprofile(alarm)
        try:
            prelude.define("CosineEmbeddingLoss")
        except Alarm:
            assert prelude.define("CosineEmbeddingLoss").fixed
            assert prelude.define("Linear").fixed
        finally:
            sys.setprofile(None)
        if left > 0:
            assert moment > 1000
            return
