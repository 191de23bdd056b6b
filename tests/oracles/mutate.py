"""How many single changes of the code the tests notice.

    python -m tests.oracles.mutate [--n 40] [--seed S] [--prelude SHARE] [--only REGEX]
    python -m tests.oracles.mutate --unreached [--only REGEX]

Draws mutants from `autodiff_cli/**/*.py` and `prelude/*.expr`; `mutants.py` says what is changed.
Which tests come by which block of the code is recorded once per state of the tree, in a folder of
the system's for temporary files. All mutants of a sample are built in at once; for each, the tests
that come by it run in a forked copy of the collected suite until one fails: one of each test
function first, those that come by least, or by what few others of its function or file do. What is
evaluated during imports is tried in a fork of a process that has not imported the package. What
all of these let pass is written into the text, for mypy and ruff as the suite runs them.

A line a mutant says: killed (by which test), survived, or not reached by a test. The exit code is 1
when fewer than `--min` of them are killed. `--unreached` lists the blocks that no test comes by.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import json
import mmap
import os
import random
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from .mutants import CONFIGURATION, PACKAGE, Site, imported, install, marked, walked

ROOT = PACKAGE.parent
MUTANTS = Path(__file__).with_name("mutants.py")
GENERATED = {"language/syntax/tables.py", "version.py", "__main__.py"}
# A script that isolated interpreters run by its path: what is changed here does not reach it.
APART = {"checks/beside_torch/torch_side.py"}
BUILDERS = re.compile(r"(^|/)build\.py$")
# Tests that look at the files, at which nothing is changed, or only at how long something takes.
LEFT_OUT = (
    "tests/test_style.py",
    "tests/test_layers.py",
    "tests/packaging",
    "tests/test_benchmarks.py",
)
# Variables for the processes that tests start.
PASSED: dict[str, str] = {}
ARGUMENTS = ["-p", "no:cacheprovider", "-p", "no:randomly", "--rootdir", str(ROOT)]
QUIET = [*ARGUMENTS, "-p", "no:terminal", "-o", "addopts=--import-mode=importlib"]


def files() -> Iterator[str]:
    for path in sorted(PACKAGE.rglob("*")):
        name = path.relative_to(PACKAGE).as_posix()
        if path.suffix == ".py" and (name in GENERATED | APART or BUILDERS.search(name)):
            continue
        if path.suffix == ".py" or (path.suffix == ".expr" and "/prelude/" in name):
            yield name


WRITTEN_OUT = """
import json
from autodiff_cli.language.nn import prelude
print(json.dumps({
    file: "\\n".join(prelude._written_out(text) for text in prelude._texts(file).values())
    for file in dict.fromkeys(prelude.PRELUDE.values())
}))
"""


@cache
def library() -> dict[str, str]:
    """The files of the library without rows; this process does not import the package for it."""
    plain = {name: value for name, value in os.environ.items() if name != CONFIGURATION}
    command = [sys.executable, "-c", WRITTEN_OUT]
    made = subprocess.run(command, cwd=ROOT, env=plain, capture_output=True, check=True)
    return dict(json.loads(made.stdout))


def text_of(name: str) -> str:
    if name.endswith(".expr"):
        return library()[Path(name).stem]
    return (PACKAGE / name).read_text("utf-8")


def keys(name: str, sites: Iterable[Site]) -> Iterator[str]:
    """What says which place a site is as long as its function stays."""
    counts: dict[str, int] = defaultdict(int)
    for site in sites:
        place = f"{name} {site.owner} {site.kind}"
        counts[place] += 1
        yield f"{place} {counts[place]}"


def drawn(n: int, seed: int, prelude: float, only: str) -> list[dict[str, Any]]:
    """The mutants of a seed: a share of them in the prelude, each place as likely as any other."""
    generator = random.Random(seed)
    pools: dict[bool, list[dict[str, Any]]] = {True: [], False: []}
    first = 0
    for name in files():
        library = name.endswith(".expr")
        _, walk = walked(text_of(name))
        for site, key in zip(walk.sites, keys(name, walk.sites), strict=True):
            if (library and site.early and "." not in site.owner) or not re.search(
                only, f"{name}:{site.line}"
            ):
                continue
            assert site.blocks is not None and site.around is not None
            own = {
                "blocks": [first + block for block in site.blocks],
                "around": [first + block for block in site.around],
                "module": [first, first + walk.blocks],
                "key": key,
            }
            pools[library].append({"file": name, **vars(site), **own})
        first += walk.blocks
    share = {True: round(n * prelude), False: n - round(n * prelude)}
    found = []
    if OPTIONS.seen:
        pools = {False: list(filter(OPTIONS.values.few(OPTIONS.seen), pools[False])), True: []}
    for library, pool in pools.items():
        found += generator.sample(pool, min(len(pool), share[library]))
    for number, mutant in enumerate(found, 1):
        mutant["number"] = number
    for name, chosen in chosen_of(found).items():
        _, walk = walked(text_of(name), chosen)
        for mutant in found:
            if mutant["file"] == name:
                site = walk.sites[mutant["ordinal"]]
                mutant["before"], mutant["after"] = site.before, site.after
                mutant["span"], mutant["instead"] = site.span, site.instead
    return found


def chosen_of(mutants: list[dict[str, Any]]) -> dict[str, dict[int, int]]:
    chosen: dict[str, dict[int, int]] = defaultdict(dict)
    for mutant in mutants:
        chosen[mutant["file"]][mutant["ordinal"]] = mutant["number"]
    return chosen


class Built:
    """A folder with the library rewritten, and the configurations that make processes use it."""

    def __init__(self, folder: Path, mutants: list[dict[str, Any]], marks: bool = False):
        self.folder = folder
        self.files = chosen_of(mutants)
        self.firsts: dict[str, int] = {}
        self.blocks = 0
        (folder / "prelude").mkdir(parents=True)
        for name in files():
            library = name.endswith(".expr")
            text = text_of(name)
            if marks:
                tree, count = marked(text, self.blocks, call=library)
                self.firsts[name] = self.blocks
                self.blocks += count
                text = ast.unparse(tree) + "\n" if library else ""
            elif library and name in self.files:
                text = ast.unparse(walked(text, self.files[name])[0]) + "\n"
            if library:
                (folder / "prelude" / Path(name).name).write_text(text, "utf-8")
        (folder / "site").mkdir()
        (folder / "site" / "sitecustomize.py").write_text(
            f"""import os, sys
if os.environ.get({CONFIGURATION!r}):
    import importlib.util
    spec = importlib.util.spec_from_file_location("_mutants", {str(MUTANTS)!r})
    module = importlib.util.module_from_spec(spec)
    sys.modules["_mutants"] = module
    spec.loader.exec_module(module)
for folder in sys.path[1:]:  # what a test puts on the path of its processes, which this one hides
    if os.path.isfile(path := os.path.join(folder, "sitecustomize.py")):
        exec(compile(open(path).read(), path, "exec"))
        break
"""
        )

    def configuration(self, active: int, hits: str = "") -> str:
        """The file for a mutant; what this process starts from now on uses it."""
        path = self.folder / f"configuration-{active}-{Path(hits).name}.json"
        path.write_text(
            json.dumps(
                {
                    "active": active,
                    "hits": hits,
                    "files": {n: ids for n, ids in self.files.items() if n.endswith(".py")},
                    "firsts": {n: k for n, k in self.firsts.items() if n.endswith(".py")},
                    "folder": str(self.folder / "prelude"),
                }
            )
        )
        PASSED[CONFIGURATION] = str(path)
        PASSED["PYTHONPATH"] = os.pathsep.join([str(self.folder / "site"), str(ROOT)])
        return str(path)


def hand_down() -> None:
    """Rewrite the library also in the processes that a test gives an environment of its own."""

    def handed(environment: Any) -> dict[str, str]:
        paths = [PASSED.get("PYTHONPATH", ""), (environment or {}).get("PYTHONPATH", "")]
        return {**environment, **PASSED, "PYTHONPATH": os.pathsep.join(filter(None, paths))}

    def started(self: Any, *args: Any, env: Any = None, **options: Any) -> None:
        popen(self, *args, env=handed(os.environ if env is None else env), **options)

    def executed(file: Any, args: Any, env: Any) -> None:
        execute(file, args, handed(env))

    popen, execute = subprocess.Popen.__init__, os.execvpe
    subprocess.Popen.__init__ = started  # type: ignore[method-assign]  # for all of its users
    os.execvpe = executed  # type: ignore[assignment]  # what `pexpect` calls


def run(items: list[Any], before: Callable[[Any], bool]) -> None:
    """Run tests in order until `before` one of them says to stop."""
    for index, item in enumerate(items):
        if before(item):
            return
        following = items[index + 1] if index + 1 < len(items) else None
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)


# -- who comes by what -----------------------------------------------------------------------------


def state() -> str:
    """A name for the files of the package and of the tests."""
    found = hashlib.sha256()
    for top in (PACKAGE, ROOT / "tests", ROOT / "samples"):
        for path in sorted(top.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                found.update(str(path).encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]


class Recorder:
    """A pytest plugin that runs a share of the tests and notes the blocks each comes by."""

    def __init__(self, hits: Any, blocks: int, share: tuple[int, int], rows: Any):
        self.hits = hits
        self.blocks = blocks
        self.share, self.of = share
        self.rows = rows
        self.seconds = 0.0
        self.failed = False

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds += report.duration
        self.failed |= report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        import numpy as np

        everything = [item for item in session.items if not item.nodeid.startswith(LEFT_OUT)]
        items = [item for i, item in enumerate(everything) if i // 100 % self.of == self.share]
        map_ = np.frombuffer(self.hits, np.uint8)[: self.blocks]
        self._row("", map_)
        for index, item in enumerate(items):
            map_[:] = 0
            self.seconds, self.failed = 0.0, False
            following = items[index + 1] if index + 1 < len(items) else None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            self._row(item.nodeid, map_)
        del map_
        return True

    def _row(self, test: str, marks: Any) -> None:
        import numpy as np

        row = {"test": test, "seconds": self.seconds, "failed": self.failed}
        self.rows.write(json.dumps(row).encode() + b"\n")
        self.rows.write(np.packbits(marks).tobytes())


def record(share: int, folder: Path, tests: list[str]) -> None:
    """Run a share of the suite with marks built in; a row a test."""
    built = Built(folder / str(share), [], marks=True)
    hits = folder / f"hits-{share}"
    hits.write_bytes(bytes(built.blocks + 8))
    mutants = imported(install(built.configuration(0, str(hits))))
    hand_down()
    with open(folder / f"rows-{share}", "wb") as rows:
        recorder = Recorder(mutants.hits, built.blocks, (share, OPTIONS.workers), rows)
        pytest.main([*QUIET, *tests], plugins=[recorder])


class Reach:
    """Which tests come by which blocks, and how long each takes; or in which a change has another
    value (`weak.py`)."""

    def __init__(self, folder: Path):
        import numpy as np

        self.tests: list[str] = []
        self.seconds: dict[str, float] = {}
        self.numbers: dict[str, int] = {}
        # Those that fail with marks, and may pass with mutants: there are fewer.
        self.doubtful: set[str] = set()
        rows = []
        blocks = next(folder.glob("hits-*")).stat().st_size - 8
        for rows_of_share in sorted(folder.glob("rows-*")):
            with open(rows_of_share, "rb") as file:
                while line := file.readline():
                    row = json.loads(line)
                    bits = np.frombuffer(file.read((blocks + 7) // 8), np.uint8)
                    if not row["test"]:
                        self.imported = np.unpackbits(bits)
                        continue
                    self.tests.append(row["test"])
                    if row["failed"]:
                        self.doubtful.add(row["test"])
                    self.seconds[row["test"]] = row["seconds"]
                    rows.append(bits)
        self.bits = np.stack(rows)
        self.order = np.bitwise_count(self.bits).sum(1, dtype=int)

    def sees(self, mutant: dict[str, Any]) -> list[str]:
        """The tests in which a change has another value, the quick ones first."""
        import numpy as np

        number = self.numbers.get(mutant["key"])
        if number is None:
            return []
        found = [self.tests[i] for i in np.flatnonzero(self._hit(number, number + 1))]
        return sorted(found, key=lambda name: self.seconds[name])

    def few(self, most: int) -> Callable[[dict[str, Any]], bool]:
        """Whether a change has another value in some tests, and in no more than so many."""
        counts = self.tests_by_block()
        return lambda mutant: 0 < counts[self.numbers[mutant["key"]]] <= most

    def early(self, mutant: dict[str, Any]) -> bool:
        """Whether a change shows while the package is imported."""
        first, _ = mutant["blocks"]
        library = mutant["file"].endswith(".expr")
        return not library and (mutant["early"] or bool(self.imported[first]))

    def tests_by_block(self) -> Any:
        """How many tests come by each block."""
        import numpy as np

        return sum(np.unpackbits(row).astype(int) for row in self.bits)

    def _hit(self, first: int, last: int) -> Any:
        """Which tests come by which of a range of blocks."""
        import numpy as np

        columns = self.bits[:, first // 8 : (last + 7) // 8]
        return np.unpackbits(columns, axis=1)[:, first % 8 : first % 8 + last - first]

    def by(self, mutant: dict[str, Any]) -> list[str]:
        """Who comes by a mutant, in turns: those that come by least, those that come by what few
        tests of its function do, and of its file, those whose names have words of the change; each
        time one of each test function first."""
        import numpy as np

        found = np.flatnonzero(self._hit(*mutant["blocks"]).any(1))
        orders = [self._turns(found, self.order)]
        for part in ("around", "module"):
            near = self._hit(*mutant[part])[found].astype(float)
            seldom = np.zeros(len(self.order))
            seldom[found] = near @ (1 / np.maximum(near.sum(0), 1))
            orders.append(self._turns(found, -seldom))
        orders.append(self._turns(found, -self._named(mutant)))
        together = zip(*orders, strict=True)
        return list(dict.fromkeys(self.tests[i] for turn in together for i in turn))

    def _named(self, mutant: dict[str, Any]) -> Any:
        """How much the name of each test says of a change: words that few names have count most."""
        import numpy as np

        said = f"{mutant['file']} {mutant['owner']} {mutant['before']}".lower()
        total = np.zeros(len(self.tests))
        for word in set(re.findall(r"[a-z]{4,}", said)):
            has = np.array([word in name.lower() for name in self.tests])
            total += has / max(has.sum(), 1)
        return total

    def _turns(self, found: Any, order: Any) -> list[Any]:
        """Tests in an order, one of each test function first, of those the quick ones."""
        turns: dict[str, int] = defaultdict(int)
        ranked = []
        for i in sorted(found, key=lambda i: (order[i], self.order[i])):
            name = self.tests[i].partition("[")[0]
            turns[name] += 1
            ranked.append((turns[name], self.seconds[self.tests[i]] // 0.2, len(ranked), i))
        return [i for *_, i in sorted(ranked)]

    def of_module(self, mutant: dict[str, Any]) -> list[str]:
        """Who comes by anything of the file of a mutant."""
        return self.by({**mutant, "blocks": mutant["module"]})


def unreached(found: Reach, only: str) -> Iterator[str]:
    """Places of the blocks that could be changed and that no test comes by."""
    import numpy as np

    taken = np.unpackbits(np.bitwise_or.reduce(found.bits, axis=0)) | found.imported
    first = 0
    for name in files():
        _, walk = walked(text_of(name))
        blocks = {site.blocks: f"{name}:{site.line} {site.owner}" for site in reversed(walk.sites)}
        for (start, end), place in sorted(blocks.items()) if re.search(only, name) else ():
            if start < end and not taken[first + start : first + end].any():
                yield place
        first += walk.blocks


def reach(tests: list[str], stale: Path | None, workers: int = 2) -> Reach:
    """What is recorded for this state of the tree, or recorded now."""
    if stale is not None:
        return Reach(stale)
    folder = Path(tempfile.gettempdir()) / f"autodiff-reach-{os.getuid()}" / state()
    if tests:
        folder = Path(f"{folder}-{hashlib.sha256(repr(tests).encode()).hexdigest()[:8]}")
    if not (folder / "whole").exists():
        subprocess.run(["rm", "-rf", str(folder)], check=True)
        folder.mkdir(parents=True)
        command = [sys.executable, "-m", "tests.oracles.mutate", "--tests", *tests]
        command += ["--workers", str(workers), "--record"]
        started = [
            subprocess.Popen([*command, f"{share}:{folder}"], cwd=ROOT, stdout=subprocess.DEVNULL)
            for share in range(workers)
        ]
        if sum(process.wait() for process in started):
            raise SystemExit("the tests could not be recorded")
        (folder / "whole").touch()
    found = Reach(folder)
    seconds = sum(found.seconds.values())
    print(f"{len(found.tests)} tests recorded in {seconds:.0f} s: {folder}", flush=True)
    return found


# -- trying ----------------------------------------------------------------------------------------


class Trial:
    """A fork of this process that tries a mutant; it is ended when one test takes too long."""

    def __init__(self, work: Callable[[Callable[[float], None]], str], allowed: float):
        self.answer = tempfile.NamedTemporaryFile("r+")  # noqa: SIM115  # closed with the result
        self.until = mmap.mmap(-1, 8)
        self._allow(allowed)
        self.child = os.fork()
        if self.child == 0:
            os.setpgid(0, 0)
            null = os.open(os.devnull, os.O_RDWR)
            for descriptor in (0, 1, 2):
                os.dup2(null, descriptor)
            status = 1
            try:
                Path(self.answer.name).write_text(work(self._allow), "utf-8")
                status = 0
            finally:
                os._exit(status)

    def _allow(self, seconds: float) -> None:
        self.until[:] = struct.pack("<d", time.monotonic() + seconds)

    def result(self) -> str | None:
        """None while it runs, else what `work` returned or that it ended badly."""
        done, status = os.waitpid(self.child, os.WNOHANG)
        if not done:
            if time.monotonic() < struct.unpack("<d", self.until[:])[0]:
                return None
            os.killpg(self.child, signal.SIGKILL)
            os.waitpid(self.child, 0)
            status = 1
        found = Path(self.answer.name).read_text("utf-8") if status == 0 else "the time or a signal"
        self.answer.close()
        self.until.close()
        return found


def spent() -> float:
    """Seconds of the processor that this process and those it waited for have used; unlike those
    of a clock they do not depend on what else the machine does."""
    return sum(os.times()[:4])


def allowed(seconds: float) -> float:
    """How long a test may take that took so long; the machine may be busy."""
    return 30 + 20 * seconds


class Runner:
    """A pytest plugin that tries each mutant on the collected suite."""

    def __init__(self, mutants: list[dict[str, Any]], switch: Any, built: Built, found: Reach):
        self.mutants = mutants
        self.switch = switch
        self.built = built
        self.reach = found
        self.failed: list[str] = []

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        items = {item.nodeid: item for item in session.items}
        for name in self.reach.doubtful - self._passing(items):
            items.pop(name, None)
        jobs = []
        for mutant in self.mutants:
            mine = [name for name in self.reach.by(mutant) if name in items]
            mutant["tests"] = len(mine)
            mutant["verdict"] = "not reached"
            if mine:
                # What a module makes when a test first needs it shows in those that come later.
                mine = list(dict.fromkeys(mine + self.reach.of_module(mutant)))
                if OPTIONS.values is not None:
                    mine = list(dict.fromkeys(OPTIONS.values.sees(mutant) + mine))
                given = [items[name] for name in mine if name in items]
                jobs.append((mutant, self._tried(mutant["number"], given)))
            else:
                say(mutant)
        several(self.built.folder, jobs)
        return True

    def _passing(self, items: dict[str, Any]) -> set[str]:
        """The doubtful tests that pass with no mutant on."""
        tried = [items[name] for name in self.reach.doubtful if name in items]

        def work(allow: Callable[[float], None]) -> str:
            def before(item: Any) -> bool:
                allow(allowed(self.reach.seconds[item.nodeid]))
                return False

            run(tried, before)
            return "\n".join(sorted({item.nodeid for item in tried} - set(self.failed)))

        trial = Trial(work, 300)
        while (result := trial.result()) is None:
            time.sleep(0.1)
        return set(result.split("\n"))

    def _tried(self, number: int, items: list[Any]) -> Callable[[Callable[[float], None]], str]:
        def work(allow: Callable[[float], None]) -> str:
            self.switch.active = number
            self.built.configuration(number)
            until = spent() + OPTIONS.seconds

            def before(item: Any) -> bool:
                allow(allowed(self.reach.seconds[item.nodeid]))
                return bool(self.failed) or spent() > until

            run(items, before)
            return self.failed[0] if self.failed else ""

        return work


def end_processes(folder: Path, number: int) -> None:
    """End what the tests of a mutant started and left behind."""
    given = rf"{CONFIGURATION}={re.escape(str(folder))}/[^\0]*configuration-{number}-\.json\0"
    for path in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if re.search(given.encode(), path.read_bytes()):
                os.kill(int(path.parent.name), signal.SIGKILL)


def several(folder: Path, jobs: list[tuple[dict[str, Any], Callable[..., str]]]) -> None:
    """Try mutants, a few at a time."""
    running: list[tuple[dict[str, Any], Trial]] = []
    while jobs or running:
        while jobs and len(running) < OPTIONS.workers:
            mutant, work = jobs.pop(0)
            running.append((mutant, Trial(work, 300)))
        time.sleep(0.02)
        for mutant, trial in list(running):
            result = trial.result()
            if result is not None:
                running.remove((mutant, trial))
                end_processes(folder, mutant["number"])
                mutant["verdict"] = f"killed by {result}" if result else "survived"
                say(mutant)


def say(mutant: dict[str, Any]) -> None:
    print(
        f"{mutant['number']:4} {mutant['file']}:{mutant['line']} {mutant['kind']}: "
        f"{mutant['before'][:70]!r} -> {mutant['after'][:70]!r} "
        f"[{mutant['tests']} tests] {mutant['verdict'][:120]}",
        flush=True,
    )


class Alone:
    """A pytest plugin that runs the tests with these names in their order, those ahead that are
    named after the owner of the change, then others."""

    def __init__(self, names: list[str], owner: str, allow: Callable[[float], None], found: Reach):
        self.names = {name: i for i, name in enumerate(names)}
        self.owner = re.compile(rf"\b{owner.rpartition('.')[2] or '^'}\b")
        self.allow = allow
        self.reach = found
        self.failed: list[str] = []
        self.done: set[str] = set()

    def pytest_collectreport(self, report: Any) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.failed.append(report.nodeid)

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        def rank(item: Any) -> tuple[bool, int]:
            named = self.owner.search(item.nodeid) is not None
            return not named, self.names.get(item.nodeid, len(self.names))

        known = self.reach.seconds.keys() - self.done - self.reach.doubtful
        items[:] = sorted((item for item in items if item.nodeid in known), key=rank)
        self.done.update(item.nodeid for item in items)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        until = spent() + OPTIONS.seconds  # importing and collecting are no trial

        def before(item: Any) -> bool:
            self.allow(allowed(self.reach.seconds[item.nodeid]))
            return bool(self.failed) or spent() > until

        run(session.items, before)
        return True


def early(mutant: dict[str, Any], built: Built, found: Reach) -> Callable[..., str]:
    """What tries a change that shows when its module is imported."""

    def work(allow: Callable[[float], None]) -> str:
        try:
            imported(install(built.configuration(mutant["number"])))
        except Exception:
            return "the import"
        allow(600)
        names = list(dict.fromkeys(found.by(mutant) + found.of_module(mutant)))
        alone = Alone(names, mutant["owner"], allow, found)
        paths = dict.fromkeys(name.partition("::")[0] for name in names[:200])
        for given in (list(paths), OPTIONS.tests):
            status = pytest.main([*QUIET, *given], plugins=[alone])
            if status or alone.failed:
                break
        return alone.failed[0] if alone.failed else "the import" if status else ""

    return work


def rewritten(text: str, mutant: dict[str, Any]) -> str:
    """A text with the change written into it; unchanged where a comment would get lost."""
    lines = text.encode().splitlines(keepends=True)
    (line, column), (last, end) = mutant["span"]
    ahead = b"".join([*lines[: line - 1], lines[line - 1][:column]])
    behind = b"".join([lines[last - 1][end:], *lines[last:]])
    if b"#" in text.encode()[len(ahead) : -len(behind)]:
        return text
    return (ahead + mutant["instead"].encode() + behind).decode()


def written_down(mutants: list[dict[str, Any]], folder: Path) -> Iterator[dict[str, Any]]:
    """The mutants that no test noticed, and that the checks of the text do."""
    left = [
        mutant
        for mutant in mutants
        if not mutant["verdict"].startswith("killed") and mutant["file"].endswith(".py")
    ]
    ignored = shutil.ignore_patterns("__pycache__")
    for part in (PACKAGE, ROOT / "tests" / "clients"):
        shutil.copytree(part, folder / part.relative_to(ROOT), ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", folder)
    checks = (["mypy", "--no-error-summary"], ["ruff", "check", "--no-cache", "-q", "--select=F"])
    for mutant in [None, *left]:  # the first time as it is: mypy keeps what it found
        path = folder / PACKAGE.name / (mutant["file"] if mutant else "__init__.py")
        text = path.read_text("utf-8")
        path.write_text(rewritten(text, mutant) if mutant else text, "utf-8")
        for command in checks:
            done = subprocess.run(
                [sys.executable, "-m", *command], cwd=folder, capture_output=True, text=True
            )
            if done.returncode and mutant is None:
                raise SystemExit(done.stdout + done.stderr)
            if done.returncode and mutant is not None:
                mutant["verdict"] = f"killed by {command[0]}: {done.stdout.splitlines()[0]}"
                yield mutant
                break
        path.write_text(text, "utf-8")


def prepared() -> None:
    """Import what the package and the tests need, but nothing of the package."""
    import hypothesis
    import lark
    import numpy
    import prompt_toolkit
    import pygments
    import rich
    import scipy.linalg
    import scipy.special

    assert hypothesis and lark and numpy and prompt_toolkit and pygments and rich and scipy
    assert "autodiff_cli.errors" not in sys.modules


def _kept(folder: str) -> Reach:
    found = Reach(Path(folder))
    found.numbers = json.loads(Path(folder, "numbers").read_text())
    return found


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--n", type=int, default=40)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument(
        "--prelude", type=float, default=0.25, help="share of mutants in the prelude"
    )
    parser.add_argument("--only", default="", help="files whose name matches")
    parser.add_argument("--unreached", action="store_true", help="what no test comes by")
    parser.add_argument("--tests", nargs="*", default=[], help="instead of the whole suite")
    parser.add_argument(
        "--seconds", type=float, default=1e9, help="of the processor for each mutant, at most"
    )
    parser.add_argument("--late", action="store_true", help="only what imports do not evaluate")
    parser.add_argument("--workers", type=int, default=2, help="processes at a time")
    parser.add_argument("--reach", type=Path, help="a recording of another state of the tests")
    parser.add_argument("--values", type=_kept, help="what `weak.py --keep` recorded, a folder")
    parser.add_argument("--seen", type=int, help="what another value was seen of by as few tests")
    parser.add_argument("--min", type=float, default=0.0)
    parser.add_argument("--report", type=Path)
    parser.add_argument("--record", help=argparse.SUPPRESS)
    return parser.parse_args()


def main() -> int:
    if OPTIONS.record:
        share, _, folder = OPTIONS.record.partition(":")
        record(int(share), Path(folder), OPTIONS.tests)
        return 0
    if OPTIONS.unreached:
        print(
            *unreached(reach(OPTIONS.tests, OPTIONS.reach, OPTIONS.workers), OPTIONS.only), sep="\n"
        )
        return 0
    seed = OPTIONS.seed if OPTIONS.seed is not None else random.randrange(10**6)
    mutants = drawn(OPTIONS.n, seed, OPTIONS.prelude, OPTIONS.only)
    print(f"seed {seed}: {len(mutants)} mutants", flush=True)
    found = reach(OPTIONS.tests, OPTIONS.reach, OPTIONS.workers)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        first = []
        prepared()
        hand_down()
        for mutant in mutants:
            mutant["early"] = found.early(mutant)
            if mutant["early"] and OPTIONS.late:
                mutant["tests"], mutant["verdict"] = 0, "not tried"
            elif mutant["early"]:
                (folder / str(mutant["number"])).mkdir()
                built = Built(folder / str(mutant["number"]), [mutant])
                mutant["tests"] = len(found.by(mutant))
                first.append((mutant, early(mutant, built, found)))
        several(folder, first)
        (folder / "all").mkdir()
        late = [mutant for mutant in mutants if not mutant["early"]]
        built = Built(folder / "all", late)
        runner = Runner(late, imported(install(built.configuration(0))), built, found)
        status = pytest.main([*QUIET, *OPTIONS.tests], plugins=[runner])
        if status not in (0, pytest.ExitCode.NO_TESTS_COLLECTED):
            return int(status)
        for mutant in written_down(mutants, folder / "text"):
            say(mutant)
    for title, chosen in (
        ("all", mutants),
        ("prelude", [m for m in mutants if m["file"].endswith(".expr")]),
    ):
        killed = sum(m["verdict"].startswith("killed") for m in chosen)
        print(f"{title}: {killed} of {len(chosen)} killed")
    if OPTIONS.report:
        OPTIONS.report.write_text(json.dumps(mutants, indent=1))
    killed = sum(m["verdict"].startswith("killed") for m in mutants)
    return int(killed < OPTIONS.min * len(mutants))


if __name__ == "__main__":
    OPTIONS = arguments()
    sys.exit(main())
