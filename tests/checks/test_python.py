"""The Python door and the pytest plugin."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import autodiff_cli as ad
from autodiff_cli.cli import pytest_plugin

from .conftest import Run

# Other plugins of the environment take longer to load than these tests do.
QUICK = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
Pytest = Callable[..., tuple[int, str]]


@pytest.fixture
def pytested(folder: Path) -> Pytest:
    """Run pytest with the plugin in this process, which is quicker: its status, and what it says.
    What it changes of this process is as it was then."""

    def call(*words: str, cache: bool = False, **variables: str) -> tuple[int, str]:
        quiet = ("-q", "-p", "no:faulthandler", *(() if cache else ("-p", "no:cacheprovider")))
        out = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out):
            for name in ("CI", "PYTEST_XDIST_WORKER", "PYTEST_ADDOPTS"):
                patch.delenv(name, raising=False)
            for name, value in (QUICK | variables).items():
                patch.setenv(name, value)
            for name in ("path", "meta_path"):
                patch.setattr(sys, name, [*getattr(sys, name)])
            code = pytest.main([*quiet, *words], plugins=[pytest_plugin])
            for name in [n for n in sys.modules if n in ("conftest", "test_it", "test_net")]:
                del sys.modules[name]
        return int(code), out.getvalue()

    return call


def test_check_returns_items_or_raises(folder: Path) -> None:
    result = ad.check("x = [1, 2]\nloss = sum(x * x)  #=> 5", order=2)
    assert [item.label for item in result.items] == ["run", "expect[2]", "grad[x]", "hess[x]"]
    assert len(ad.check(Path("demo.expr")).items) == 3
    with pytest.raises(ad.CheckFailed, match=r"<program>:2:6: E602|E603 expectation failed") as e:
        ad.check("x = [1, 2]\nloss = sum(x * x)  #=> 6")
    assert e.value.items[0].label == "expect[2]"
    with pytest.raises(ad.CheckFailed) as e:
        ad.check("x = [1, 2]  #=> [1, 3]")
    assert str(e.value).split("\n")[1].split()[:2] == ["written", "(2,)"]
    for seconds in (0, -1, 1.2e9, "1", np.nan):
        with pytest.raises(ad.AutodiffError, match="`timeout` must be a number"):
            ad.run("x = 1", timeout=seconds, isolate=True)  # type: ignore[arg-type]  # the last
    with pytest.raises(ad.AutodiffError, match="cannot read"):
        ad.check("nowhere.expr")


def test_gradcheck_of_somebody_elses_gradients() -> None:
    program = "loss = sum(w * x ** 2)"
    inputs = {"w": np.array([1.0, 2.0]), "x": np.array([3.0, 4.0])}
    assert ad.gradcheck(program, inputs, lambda w, x: (x**2, 2 * w * x))
    assert ad.gradcheck(program, inputs, {"x": [6.0, 16.0]})
    assert ad.gradcheck(program, inputs, (None, [6.0, 16.0]))
    with pytest.raises(ad.CheckFailed, match=r"`x` is wrong.*(?s:.)*at \[1\]: 17 is claimed"):
        ad.gradcheck(program, inputs, {"x": [6.0, 17.0]})
    with pytest.raises(ad.CheckFailed, match="the gradient of `x` is no array of numbers"):
        ad.gradcheck(program, inputs, {"x": "six"})
    with pytest.raises(ad.CheckFailed, match="shapes differ"):
        ad.gradcheck(program, inputs, {"x": 6.0})
    with pytest.raises(ad.AutodiffError, match="no input `y`"):
        ad.gradcheck(program, inputs, {"y": 6.0})
    with pytest.raises(ad.AutodiffError, match="1 gradients for 2 inputs"):
        ad.gradcheck(program, inputs, [6.0])
    on_kinks = "loss = sum(abs(x))", {"x": np.zeros(3)}  # every slope from -1 to 1 is right
    assert ad.gradcheck(*on_kinks, {"x": [0.5, -1.0, 0.0]})
    with pytest.raises(ad.CheckFailed, match=r"1 of 3 elements") as failed:
        ad.gradcheck(*on_kinks, {"x": [1.5, -1.0, 0.0]})
    tied = "loss = x.max()", {"x": np.array([1.0, 1.0, 0.0])}  # what has the sum 1
    for shares in ([1.0, 0.0, 0.0], [0.3, 0.7, 0.0]):
        assert ad.gradcheck(*tied, {"x": shares})
    for shares in ([0.5, 0.6, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 0.0]):
        with pytest.raises(ad.CheckFailed, match="is claimed"):
            ad.gradcheck(*tied, {"x": shares})
    places = "loss = (w * w)[i].sum()", {"w": np.array([1.0, 2.0]), "i": np.array([1, 1])}
    assert ad.gradcheck(*places, {"w": [0.0, 8.0]})  # what has no gradient stays whole numbers
    assert ad.gradcheck("loss = sum(x * x)", {"x": np.array([1, 2])}, {"x": [2.0, 4.0]})
    narrow = np.array([0.1, 0.7], np.float32)  # is computed as float64
    assert ad.gradcheck("loss = sum(x**3)", {"x": narrow}, {"x": 3 * narrow.astype(float) ** 2})
    swallowed = "import torch\nloss = ((x / 7 + 1000) - 1000).pow(2).sum()"  # in float32
    whole = np.array([1, 2])
    assert ad.gradcheck(swallowed, {"x": whole}, {"x": whole * 2 / 49})
    both = "loss = abs(x) - abs(y)", {"x": 0.0, "y": 0.0}  # each for itself, though not convex
    assert ad.gradcheck(*both, {"x": 1.0, "y": 1.0})
    parted = "loss = abs(x[0]) - abs(x[1])", {"x": np.zeros(2)}
    for slopes in ([1.0, 1.0], [1.0, 0.0]):
        assert ad.gradcheck(*parted, {"x": slopes})
    assert "at [0]: 1.5 is claimed" in str(failed.value) and "at [1]" not in str(failed.value)


def test_a_real_pytest_collects_items(run: Run, pytested: Pytest, folder: Path) -> None:
    (folder / "bad.expr").write_text("x = [1, 2]\nloss = sum(x * x)  #=> 6\n")
    (folder / "_helper.expr").write_text("x = [\n")
    (folder / "broken.expr").write_text("x = [\n")
    kept = ("-p", "autodiff_cli.cli.pytest_plugin", "-q")  # which failed
    done = run(*kept, "--junit-xml", "out.xml", "-rf", module="pytest", **QUICK)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 failed in" in pytested("--lf", cache=True)[1]
    assert "error[E603]: expectation failed: written 6, found 5" in done.stdout
    assert "FAILED bad.expr::expect[2]" in done.stdout
    assert "FAILED broken.expr::run" in done.stdout and "E101" in done.stdout
    assert "2 failed, 4 passed, 1 skipped" in done.stdout
    cases = ElementTree.parse(folder / "out.xml").getroot().iter("testcase")
    names = "run expect[2] grad run grad run grad"
    assert [case.get("name") for case in cases] == names.split()
    code, said = pytested("bad.expr::expect[2]", "demo.expr", "-k", "grad or expect")
    assert code == 1 and "1 failed, 1 passed" in said
    for variable in ("CI", "PYTEST_XDIST_WORKER"):
        code, said = pytested("--expr-update", "bad.expr", **{variable: "1"})
        assert code == 1 and "#=> 6" in (folder / "bad.expr").read_text()
    code, said = pytested("--expr-update", "bad.expr")
    assert code == 0 and "#=> 5" in (folder / "bad.expr").read_text()


def test_the_plugin_checks_snapshots_of_programs_elsewhere(
    call: Run, pytested: Pytest, folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    text = "x = [1, 2]\nloss = sum(x * x)  #=> 6\n"
    (elsewhere / "a.expr").write_text(text.replace("6", "5"))
    assert call("check", str(elsewhere / "a.expr"), "--snapshot").returncode == 0
    (elsewhere / "a.expr").write_text(text)
    _, said = pytested("-rA", str(elsewhere))
    shown = os.path.relpath(elsewhere / "a.expr", folder)
    assert f"PASSED {shown}::snapshot" in said, said
    assert f"--> {elsewhere / 'a.expr'}:2:20" in said


def test_the_plugin_can_be_switched_off(pytested: Pytest) -> None:
    assert pytested("--no-expr")[0] == 5


TREE = """\
def pytest_collection_finish(session):
    with open("tree.txt", "w") as file:
        for item in session.items:
            path, line, name = item.location
            kind = type(item.parent).__name__
            print(kind, item.parent.path.name, path, line, item.nodeid, file=file)
"""


def test_editors_see_items_below_files_at_lines_from_0(pytested: Pytest, folder: Path) -> None:
    """What VS Code's adapter reads of an item: its place, and a file node with a path above it."""
    (folder / "conftest.py").write_text(TREE)
    (folder / "sub").mkdir()
    (folder / "sub" / "a.expr").write_text("x = 2\nloss = x * x  #=> 4\nassert loss == 4\n")
    assert pytested("sub", "--collect-only")[0] == 0
    assert (folder / "tree.txt").read_text().splitlines() == [
        f"ExprFile a.expr {Path('sub/a.expr')} {line} sub/a.expr::{label}"
        for label, line in (("run", 0), ("expect[2]", 1), ("assert[3]", 2), ("grad", 0))
    ]


def test_items_are_checked_alone_and_in_any_order(pytested: Pytest, folder: Path) -> None:
    """No item needs another one, so any process may run any of them (pytest-xdist)."""
    (folder / "demo.expr").write_text("A = [1.0, 2.0]\nloss = sum(A)  #=> 4\nassert loss > 0\n")
    (folder / "conftest.py").write_text(
        "def pytest_collection_modifyitems(items):\n    items[:] = items[::-1][::2]\n"
    )
    _, said = pytested("-rA")
    assert "PASSED demo.expr::grad" in said and "FAILED demo.expr::expect[2]" in said
    assert "1 failed, 1 passed" in said
    (folder / "demo.expr").write_text("x = 2.0\nif x < 3: assert x > 5\n")  # has no item
    code, said = pytested("demo.expr::run")
    assert code == 1 and "FAILED demo.expr::run" in said


@pytest.mark.skipif(sys.platform != "linux", reason="supervised on Linux only")
def test_a_program_that_kills_its_process_fails_alone(
    run: Run, folder: Path, project: Path
) -> None:
    """pytest itself goes on, with another process for the next programs."""
    (folder / "fatal.expr").write_text("import math\nd = math.lgamma(1)\n")
    (folder / "later.expr").write_text("x = 3\nloss = x * x  #=> 9\n")
    path = f"{project / 'tests' / 'fatal'}{os.pathsep}{project}"
    words = ("-p", "autodiff_cli.cli.pytest_plugin", "-q", "fatal.expr", "later.expr")
    done = run(*words, module="pytest", **{**QUICK, "PYTHONPATH": path})
    assert done.returncode == 1, done.stdout + done.stderr
    assert "error[E509]: the program overflowed the interpreter's stack" in done.stdout
    assert "FAILED fatal.expr::run" in done.stdout
    assert "1 failed, 3 passed" in done.stdout


COUNTED = """\
from autodiff_cli.checks.runner import check_file

def check(path, settings):
    with open("runs.txt", "a") as file:
        print(path, file=file)
    return check_file(path, settings)
"""


@pytest.fixture
def counted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs that are checked are written down."""
    (folder / "counted.py").write_text(COUNTED)
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(pytest_plugin, "CHECK", "counted:check")


@pytest.mark.usefixtures("counted")
def test_a_program_runs_once_and_not_to_be_collected(pytested: Pytest, folder: Path) -> None:
    (folder / "b.expr").write_text("x = 2.0\nx * x  #=> 4\nassert x > 1\nloss = x * 3\n")
    assert pytested("--collect-only")[0] == 0
    assert not (folder / "runs.txt").exists()
    code, said = pytested()
    assert code == 0 and "6 passed" in said, said
    assert (folder / "runs.txt").read_text().split() == ["b.expr", "demo.expr"]


SCATTERED = """
import pytest

def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: (item.path.name == "z.expr", item.path.suffix == ".py", item.name))

def pytest_runtest_setup(item):
    if item.path.name == "a.expr":
        pytest.skip("not today")
"""


@pytest.mark.usefixtures("counted")
def test_programs_that_follow_one_another(pytested: Pytest, folder: Path) -> None:
    """While pytest tells of one the next is checked: not again, and not past another test."""
    (folder / "conftest.py").write_text(SCATTERED)
    for name in ("a", "b", "z"):
        (folder / f"{name}.expr").write_text("x = 2.0\nloss = x * x  #=> 5\n")
    write = "Path('z.expr').write_text('x = 3.0\\nloss = x * x  #=> 9\\n')"
    (folder / "test_it.py").write_text(
        f"import time\nfrom pathlib import Path\ndef test_it():\n    time.sleep(0.3)\n    {write}\n"
    )
    _, said = pytested("-rA")
    assert "PASSED z.expr::expect[2]" in said, said
    assert "FAILED b.expr::expect[2]" in said
    assert "1 failed, 8 passed, 3 skipped" in said
    assert (folder / "runs.txt").read_text().split() == ["a.expr", "b.expr", "demo.expr", "z.expr"]


def test_what_is_no_program_is_left_alone(pytested: Pytest, folder: Path) -> None:
    """Tables have the same suffix in biology; `expr_files` takes what it names, and nobody else."""
    (folder / "demo.expr").unlink()
    (folder / "genes.expr").write_text("gene\ts1 (a)\ts2=b\nTP53\t1.0\t2.5\n" * 1000)
    (folder / "numbers.expr").write_text("1.0 2.0\n3.0 4.0\n")
    (folder / "bytes.expr").write_bytes(b"\xff\x00" * 9000)
    assert pytested()[0] == 5
    (folder / "test_net.py").write_text(
        "import torch\ndef test_it():\n    assert torch.ones(2).sum() == 3\n"
    )
    (folder / "pytest.ini").write_text("[pytest]\nexpr_files = test_*.py\n")
    code, said = pytested()
    assert code == 0 and "1 passed, 2 skipped" in said, said


def test_warnings_and_excuses_are_visible(call: Run, pytested: Pytest, folder: Path) -> None:
    (folder / "demo.expr").write_text("x = 2.0\nloss = x.detach() * x\n")
    (folder / "a.expr").write_text("# check: skip needs data\nx = load('nowhere.npy')\n")
    (folder / "b.expr").write_text("# check: xfail not yet\nx = 2.0  #=> 3\nloss = x * x\n")
    (folder / "c.expr").write_text("# check: xfail long ago\nx = 2.0  #=> 2\nloss = x * x\n")
    _, said = pytested("-rsx")
    assert "W602" in said and "warnings summary" in said
    assert "SKIPPED" in said and "needs data" in said
    assert "XFAIL b.expr::expect[2] - not yet" in said
    assert "2 skipped, 1 xfailed" in said
    assert "xfail long ago`, but nothing of it fails" in said
    (folder / "kink.expr").write_text("x = [0.0, 2.0]\nloss = sum(relu(x))\n")
    _, said = pytested("-Werror", "demo.expr", "kink.expr")
    assert "1 failed, 3 passed" in said and "FAILED demo.expr::grad" in said
    assert "warn_explicit" not in said
    command = call("check", "a.expr", "b.expr", "c.expr", "demo.expr", "--junit", "out.xml")
    assert "1 skipped, 1 xfailed, 1 failed" in command.stdout and command.returncode == 1
    suite = ElementTree.parse(folder / "out.xml").getroot()[0]
    assert suite.get("skipped") == "2"
    reasons = [skipped.get("message") for skipped in suite.iter("skipped")]
    assert reasons == ["needs data", "not yet"]
