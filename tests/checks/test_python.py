"""The Python door and the pytest plugin."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import autodiff_cli as ad

from .conftest import Run

PLUGIN = ("-p", "autodiff_cli.cli.pytest_plugin", "-p", "no:cacheprovider", "-q")

# Other plugins of the environment take longer to load than these tests do.
QUICK = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def test_check_returns_items_or_raises(folder: Path) -> None:
    result = ad.check("x = [1, 2]\nloss = sum(x * x)  #=> 5", order=2)
    assert [item.label for item in result.items] == ["run", "expect[2]", "grad[x]", "hess[x]"]
    assert len(ad.check(Path("demo.expr")).items) == 3
    with pytest.raises(ad.CheckFailed, match=r"<program>:2:6: E602|E603 expectation failed") as e:
        ad.check("x = [1, 2]\nloss = sum(x * x)  #=> 6")
    assert e.value.items[0].label == "expect[2]"
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
    with pytest.raises(ad.CheckFailed, match="shapes differ"):
        ad.gradcheck(program, inputs, {"x": 6.0})
    with pytest.raises(ad.AutodiffError, match="no input `y`"):
        ad.gradcheck(program, inputs, {"y": 6.0})
    with pytest.raises(ad.AutodiffError, match="1 gradients for 2 inputs"):
        ad.gradcheck(program, inputs, [6.0])


def test_a_real_pytest_collects_items(run: Run, folder: Path) -> None:
    (folder / "bad.expr").write_text("x = [1, 2]\nloss = sum(x * x)  #=> 6\n")
    (folder / "_helper.expr").write_text("x = [\n")
    (folder / "broken.expr").write_text("x = [\n")
    done = run(*PLUGIN, "--junit-xml", "out.xml", "-rf", module="pytest", **QUICK)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "error[E603]: expectation failed: written 6, found 5" in done.stdout
    assert "FAILED bad.expr::expect[2]" in done.stdout
    assert "FAILED broken.expr::run" in done.stdout and "E101" in done.stdout
    assert "2 failed, 5 passed" in done.stdout
    cases = ElementTree.parse(folder / "out.xml").getroot().iter("testcase")
    assert {case.get("name") for case in cases} >= {"grad[A]", "grad[B]", "expect[2]"}
    alone = run(*PLUGIN, "bad.expr::expect[2]", "demo.expr", "-k", "grad[B] or expect",
                module="pytest", **QUICK)  # fmt: skip
    assert alone.returncode == 1 and "1 failed, 1 passed" in alone.stdout
    for variable in ("CI", "PYTEST_XDIST_WORKER"):
        refused = run(*PLUGIN, "bad.expr", "--expr-update", module="pytest", **QUICK,
                      **{variable: "1"})  # fmt: skip
        assert refused.returncode == 1 and "#=> 6" in (folder / "bad.expr").read_text()
    updated = run(*PLUGIN, "bad.expr", "--expr-update", module="pytest", **QUICK)
    assert updated.returncode == 0 and "#=> 5" in (folder / "bad.expr").read_text()


def test_the_plugin_can_be_switched_off(run: Run, folder: Path) -> None:
    assert run(*PLUGIN, "--no-expr", module="pytest", **QUICK).returncode == 5


def test_the_plugin_imports_nothing_before_it_sees_a_program(run: Run, folder: Path) -> None:
    (folder / "demo.expr").unlink()
    (folder / "test_it.py").write_text(
        "import sys\n\ndef test_it():\n"
        "    ours = {n for n in sys.modules if n.startswith('autodiff_cli.')}\n"
        "    assert ours <= {'autodiff_cli.version', 'autodiff_cli.cli',"
        " 'autodiff_cli.cli.pytest_plugin'}\n"
        "    assert 'numpy' not in sys.modules\n"
    )
    done = run(*PLUGIN, module="pytest", **QUICK)
    assert done.returncode == 0, done.stdout


TREE = """\
def pytest_collection_finish(session):
    with open("tree.txt", "w") as file:
        for item in session.items:
            path, line, name = item.location
            kind = type(item.parent).__name__
            print(kind, item.parent.path.name, path, line, item.nodeid, file=file)
"""


def test_editors_see_items_below_files_at_lines_from_0(run: Run, folder: Path) -> None:
    """What VS Code's adapter reads of an item: its place, and a file node with a path above it."""
    (folder / "conftest.py").write_text(TREE)
    (folder / "sub").mkdir()
    (folder / "sub" / "a.expr").write_text("x = 2\nloss = x * x  #=> 4\nassert loss == 4\n")
    assert run(*PLUGIN, "sub", "--collect-only", module="pytest", **QUICK).returncode == 0
    assert (folder / "tree.txt").read_text().splitlines() == [
        f"ExprFile a.expr {Path('sub/a.expr')} {line} sub/a.expr::{label}"
        for label, line in (("run", 0), ("assert[3]", 2), ("expect[2]", 1), ("grad[x]", 0))
    ]


def test_items_are_checked_alone_and_in_any_order(run: Run, folder: Path) -> None:
    """Nothing is kept between items, so any process may run any of them (pytest-xdist)."""
    (folder / "conftest.py").write_text(
        "def pytest_collection_modifyitems(items):\n    items[:] = items[::-1][::2]\n"
    )
    done = run(*PLUGIN, "-rA", module="pytest", **QUICK)
    assert done.returncode == 0 and "2 passed" in done.stdout
    assert "demo.expr::grad[B]" in done.stdout and "demo.expr::run" in done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="supervised on Linux only")
def test_a_program_that_kills_its_process_fails_alone(
    run: Run, folder: Path, project: Path
) -> None:
    """pytest itself goes on, with another process for the next programs."""
    (folder / "fatal.expr").write_text("import math\nd = math.lgamma(1)\n")
    (folder / "later.expr").write_text("x = 3\nloss = x * x  #=> 9\n")
    path = f"{project / 'tests' / 'fatal'}{os.pathsep}{project}"
    done = run(
        *PLUGIN, "fatal.expr", "later.expr", module="pytest", **{**QUICK, "PYTHONPATH": path}
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert "error[E509]: the program overflowed the interpreter's stack" in done.stdout
    assert "FAILED fatal.expr::run" in done.stdout
    assert "1 failed, 3 passed" in done.stdout
