"""What every test shares: where the project lies, and quiet, repeatable property tests."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Generator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.conjecture import providers

from autodiff_cli.graph.state import STATE

# A shared machine is slow at times; a deadline for each example would make tests flaky.
settings.register_profile(
    "project", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("project")

# Hypothesis would also draw the constants of all modules that were imported until then, which it
# reads anew: what is drawn in a test would depend on which tests ran before it.
providers._get_local_constants = lambda: providers._local_constants

# What is collected is no garbage: to look for it is a quarter of the time.
gc.disable()

# Where no bytecode is kept, each of the hundreds of processes that tests start compiles the package
# once more: two thirds of the time that a command takes.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Python asks the system for 16 KB whenever a call goes beyond what it has for calls, and gives them
# back as it ends: up to a fifth of the time of deep loops. What a call of 1 MB leaves of its memory
# is enough for those within it.
_run = pytest.Function.runtest
_run.__code__ = _run.__code__.replace(co_stacksize=1 << 17)


@pytest.hookimpl(optionalhook=True, wrapper=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """`-n auto`: half as many again as there are processors, as tests wait for the processes,
    terminals and browsers that they start."""
    found = yield
    named = os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS")
    return found if named else found + found // 2


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """The tests of a file run in one process: a cluster, or the library compiled once more, is
    needed once. Those that take long begin early."""
    from xdist.scheduler import LoadFileScheduling

    if config.getoption("dist") != "load":
        return None
    config.option.loadscopereorder = False
    return LoadFileScheduling(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """mypy takes longest of what would come last."""
    items.sort(key=lambda item: item.path.name != "test_style.py")


def pytest_configure(config: pytest.Config) -> None:
    """The package is installed as a plugin; its assertions are no test's, and stay as they are."""
    config.pluginmanager.rewrite_hook._must_rewrite.discard("autodiff_cli")  # type: ignore[attr-defined]  # for plugins alone


def pytest_sessionstart(session: pytest.Session) -> None:
    """Each worker of several imports a share of the files ahead of the others, which find its
    asserts rewritten: what all would do for all of them is a tenth of the time."""
    worker = getattr(session.config, "workerinput", None)
    if worker is None or session.config.args != session.config.getini("testpaths"):
        return
    root = session.config.rootpath
    files = sorted(root.glob("tests/**/test_*.py"))
    for path in files[int(worker["workerid"].removeprefix("gw")) :: worker["workercount"]]:
        with suppress(Exception, pytest.skip.Exception):  # said when it is collected
            import_module(".".join(path.relative_to(root).with_suffix("").parts))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop() -> None:
    """What was collected stays: looking through it again and again is an eighth of the time."""
    gc.freeze()
    gc.set_threshold(100_000, 20, 50)
    gc.enable()


def pytest_runtest_setup() -> None:
    """What a test before left set is gone. Ctrl-C reaches the processes that a test starts; they
    would ignore it where this one does: a job that a script started in the background, or an
    interrupted command that ran in here."""
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    STATE.__init__()  # type: ignore[misc]  # what each thread begins with


@pytest.fixture(scope="module", autouse=True)
def settled() -> None:
    """What the files before left stays, as what was collected: a test that collects garbage, or
    counts what is alive, would look through all of it, half a second each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def project() -> Path:
    """The root of the source tree."""
    return Path(__file__).resolve().parent.parent
