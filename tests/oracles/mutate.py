"""How many single changes of the code the tests notice.

    python -m tests.oracles.mutate [--n 40] [--seed S] [--prelude SHARE] [--only REGEX]

Draws mutants from `autodiff_cli/**/*.py` and `prelude/*.expr` (`mutants.py` says what is changed),
builds all of them in at once, runs the suite once to see which tests come by which, then runs for
each mutant those tests, the quick ones first, in a forked copy of the collected suite until one
fails. What is evaluated during imports is tried in a process of its own, against the whole suite.

A line a mutant says: killed (by which test), survived, or not reached by a test. The exit code is 1
when fewer than `--min` of them are killed.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .mutants import CONFIGURATION, PACKAGE, Finder, install, rewritten, sites_of

ROOT = PACKAGE.parent
MUTANTS = Path(__file__).with_name("mutants.py")
GENERATED = {"language/tables.py", "version.py", "__main__.py"}
BUILDERS = re.compile(r"(^|/)build\.py$")
# Tests that look at the files, at which nothing is changed, or only at how long something takes.
LEFT_OUT = (
    "tests/test_style.py",
    "tests/test_layers.py",
    "tests/packaging",
    "tests/test_benchmarks.py",
)
LONGEST = 600.0


def files() -> Iterator[str]:
    for path in sorted(PACKAGE.rglob("*")):
        name = path.relative_to(PACKAGE).as_posix()
        if path.suffix == ".py" and (name in GENERATED or BUILDERS.search(name)):
            continue
        if path.suffix == ".py" or (path.suffix == ".expr" and "/prelude/" in name):
            yield name


def drawn(n: int, seed: int, prelude: float, only: str) -> list[dict[str, Any]]:
    """The mutants of a seed: a share of them in the prelude, each place as likely as any other."""
    generator = random.Random(seed)
    pools: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    for name in files():
        if not re.search(only, name):
            continue
        for site in sites_of((PACKAGE / name).read_text("utf-8")):
            library = name.endswith(".expr")
            if library and site.early and "." not in site.owner:
                continue
            pools[library].append({"file": name, **vars(site)})
    share = {True: round(n * prelude), False: n - round(n * prelude)}
    found = []
    for library, pool in pools.items():
        found += generator.sample(pool, min(len(pool), share[library]))
    for number, mutant in enumerate(found, 1):
        mutant["number"] = number
    return found


def configured(mutants: list[dict[str, Any]], folder: Path, active: int, log: Path | None) -> Path:
    """Write a configuration, and the library rewritten."""
    chosen: dict[str, dict[int, int]] = defaultdict(dict)
    for mutant in mutants:
        chosen[mutant["file"]][mutant["ordinal"]] = mutant["number"]
    library = folder / "prelude"
    library.mkdir(exist_ok=True)
    for name in files():
        if name.endswith(".expr"):
            text = (PACKAGE / name).read_text("utf-8")
            if name in chosen:
                text = ast.unparse(rewritten(text, chosen[name])) + "\n"
            (library / Path(name).name).write_text(text, "utf-8")
    path = folder / f"configuration-{active}.json"
    path.write_text(
        json.dumps(
            {
                "active": active,
                "log": str(log) if log else None,
                "files": {name: ids for name, ids in chosen.items() if name.endswith(".py")},
                "folder": str(library),
            }
        )
    )
    site = folder / "site"
    site.mkdir(exist_ok=True)
    (site / "sitecustomize.py").write_text(
        f"""import os, sys
if os.environ.get({CONFIGURATION!r}):
    import importlib.util
    spec = importlib.util.spec_from_file_location("_mutants", {str(MUTANTS)!r})
    module = importlib.util.module_from_spec(spec)
    sys.modules["_mutants"] = module
    spec.loader.exec_module(module)
    module.install(os.environ[{CONFIGURATION!r}])
"""
    )
    return path


def foremost() -> None:
    """Come before pytest's own finder, which rewrites the asserts of plugins."""
    sys.meta_path.sort(key=lambda finder: type(finder).__name__ != Finder.__name__)


class Runner:
    """A pytest plugin that runs the collected suite once for every mutant, in forks."""

    def __init__(self, mutants: list[dict[str, Any]], switch: Any, log: Path, rewrite: Any):
        self.mutants = mutants
        self.switch = switch
        self.log = log
        self.rewrite = rewrite
        self.current: Any = None
        self.seconds: dict[str, float] = defaultdict(float)
        self.failed: list[str] = []

    def pytest_sessionstart(self) -> None:
        foremost()

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = [item for item in session.items if not item.nodeid.startswith(LEFT_OUT)]
        durations = self._touch(items)
        reached: dict[int, set[str]] = defaultdict(set)
        for line in self.log.read_text("utf-8").splitlines():
            number, test = line.split("\t")
            reached[int(number)].add(test)
        for mutant in self.mutants:
            mine = [item for item in items if item.nodeid in reached[mutant["number"]]]
            mine = [item for item in mine if item.nodeid in durations]
            mine.sort(key=lambda item: durations[item.nodeid])
            mutant["tests"] = len(mine)
            if mutant["early"]:
                continue
            mutant["verdict"] = "not reached"
            if mine:
                expected = sum(durations[item.nodeid] for item in mine)
                mutant["verdict"] = self._tried(mutant["number"], mine, 30 + 4 * expected)
            say(mutant)
        return True

    def _touch(self, items: list[Any]) -> dict[str, float]:
        """How long each test takes, of those that pass; who comes by which mutant is in the log."""

        def work() -> str:
            run(items, self._enter)
            bad = set(self.failed)
            return json.dumps({name: s for name, s in self.seconds.items() if name not in bad})

        found = json.loads(forked(work, 3600.0) or "{}")
        left = len(items) - len(found)
        print(
            f"\n{len(found)} tests in {sum(found.values()):.0f} s; {left} fail or are left out",
            flush=True,
        )
        return found

    def _enter(self, item: Any) -> bool:
        self.switch.test = item.nodeid
        return False

    def _tried(self, number: int, items: list[Any], seconds: float) -> str:
        def work() -> str:
            self.switch.active = number
            self.switch.log = None
            os.environ[CONFIGURATION] = str(self.rewrite(number))
            run(items, lambda item: bool(self.failed))
            return self.failed[0] if self.failed else ""

        killer = forked(work, min(seconds, LONGEST))
        if killer is None:
            return "killed by the time or a signal"
        return f"killed by {killer}" if killer else "survived"


ARGUMENTS = ["-p", "no:cacheprovider", "-p", "no:randomly", "--rootdir", str(ROOT)]


def run(items: list[Any], before: Any) -> None:
    """Run tests in order until `before` one of them says to stop."""
    for index, item in enumerate(items):
        if before(item):
            return
        following = items[index + 1] if index + 1 < len(items) else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


def forked(work: Any, seconds: float) -> str | None:
    """What `work` returns in a fork of this process; None when it ends badly or not in time."""
    with tempfile.NamedTemporaryFile("r+") as answer:
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(null, descriptor)
            status = 1
            try:
                Path(answer.name).write_text(work(), "utf-8")
                status = 0
            finally:
                os._exit(status)
        until = time.monotonic() + seconds
        while True:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                break
            if time.monotonic() > until:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return None
            time.sleep(0.02)
        return Path(answer.name).read_text("utf-8") if status == 0 else None


def say(mutant: dict[str, Any]) -> None:
    print(
        f"{mutant['number']:4} {mutant['file']}:{mutant['line']} {mutant['kind']}: "
        f"{mutant['before'][:60]!r} -> {mutant['after'][:60]!r} "
        f"[{mutant['tests']} tests] {mutant['verdict'][:120]}",
        flush=True,
    )


class Alone:
    """A pytest plugin that runs first what bears one of the names."""

    def __init__(self, names: list[str]):
        self.names = names

    def pytest_sessionstart(self) -> None:
        foremost()

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = [item for item in items if not item.nodeid.startswith(LEFT_OUT)]
        items.sort(key=lambda item: not any(name in item.nodeid for name in self.names))


def early(mutant: dict[str, Any], configuration: Path) -> str:
    """The verdict on a change that shows when its module is imported."""
    names = [part for part in mutant["owner"].split(".") if part] or [Path(mutant["file"]).stem]
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tests.oracles.mutate", "--alone", *names],
            cwd=ROOT,
            env={**os.environ, CONFIGURATION: str(configuration)},
            capture_output=True,
            text=True,
            timeout=2 * LONGEST,
        )
    except subprocess.TimeoutExpired:
        return "killed by the time or a signal"
    if done.returncode == 0:
        return "survived"
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    return f"killed by {failed[0] if failed else 'the import'}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--n", type=int, default=40)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument(
        "--prelude", type=float, default=0.25, help="share of mutants in the prelude"
    )
    parser.add_argument("--only", default="", help="files whose name matches")
    parser.add_argument("--tests", nargs="*", default=[], help="instead of the whole suite")
    parser.add_argument("--min", type=float, default=0.0)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--alone", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.alone:
        install(os.environ[CONFIGURATION])
        return int(pytest.main([*ARGUMENTS, "-x", "-q"], plugins=[Alone(options.alone)]))
    seed = options.seed if options.seed is not None else random.randrange(10**6)
    mutants = drawn(options.n, seed, options.prelude, options.only)
    print(f"seed {seed}: {len(mutants)} mutants", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = folder / "log"
        log.touch()

        def rewrite(active: int) -> Path:
            return configured(mutants, folder, active, None)

        start = configured(mutants, folder, 0, log)
        os.environ[CONFIGURATION] = str(start)
        os.environ["PYTHONPATH"] = os.pathsep.join(
            filter(None, [str(folder / "site"), os.environ.get("PYTHONPATH", "")])
        )
        switch = install(str(start))
        runner = Runner(mutants, switch, log, rewrite)
        quiet = ["-p", "no:terminal", "-o", "addopts=--import-mode=importlib"]
        status = pytest.main([*ARGUMENTS, *quiet, *options.tests], plugins=[runner])
        if status not in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
            return int(status)
        for mutant in mutants:
            if "verdict" not in mutant:
                mutant["verdict"] = early(mutant, rewrite(mutant["number"]))
                say(mutant)
    for title, chosen in (
        ("all", mutants),
        ("prelude", [m for m in mutants if m["file"].endswith(".expr")]),
    ):
        killed = sum(m["verdict"].startswith("killed") for m in chosen)
        print(f"{title}: {killed} of {len(chosen)} killed")
    if options.report:
        options.report.write_text(json.dumps(mutants, indent=1))
    killed = sum(m["verdict"].startswith("killed") for m in mutants)
    return int(killed < options.min * len(mutants))


if __name__ == "__main__":
    sys.exit(main())
