"""Several processes: one that dies or hangs fails alone and the run goes on."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from autodiff_cli.checks import many, runner
from autodiff_cli.checks.model import FileResult, Item, Settings
from tests.pace import PATIENCE

FILES = [f"f{i:02d}.expr" for i in range(12)]


def accident(file: str, settings: Settings) -> FileResult:
    """Files that do what their names say."""
    if file == "f03.expr":
        os.kill(os.getpid(), signal.SIGKILL)
    if file == "f05.expr":
        os.kill(os.getpid(), signal.SIGTERM)
    if file == "f07.expr":
        os._exit(3)
    if file == "f09.expr":
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
        time.sleep(1000)
    if file == "f11.expr":
        raise KeyError(file)
    return FileResult(file, [Item(file, "run")])


def test_a_process_that_dies_or_hangs_fails_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "check_file", accident)
    monkeypatch.setattr(many, "_context", lambda: multiprocessing.get_context("fork"))
    overdue = many.Crew._overdue

    def sooner(crew: many.Crew, worker: many.Worker) -> float:
        """Only the file that hangs is waited for half a second, on any machine."""
        return overdue(crew, worker) + (PATIENCE + many.GRACE - 0.5) * (worker.at == 9)

    monkeypatch.setattr(many.Crew, "_overdue", sooner)
    results = list(runner.check_many(FILES, Settings(timeout=PATIENCE), 2))
    assert [result.file for result in results] == FILES
    bad = {r.file: i.diagnostic for r in results for i in r.items if i.diagnostic is not None}
    assert {file: d.code for file, d in bad.items()} == {
        "f03.expr": "E505", "f05.expr": "E900", "f07.expr": "E900", "f09.expr": "E508",
        "f11.expr": "E900",
    }  # fmt: skip
    assert "signal 15" in bad["f05.expr"].message and "code 3" in bad["f07.expr"].message
    assert "code 70" in bad["f11.expr"].message
    assert "was ended" in bad["f09.expr"].message and "--timeout 600" in bad["f09.expr"].helps[0]


def test_processes_are_not_copied_beside_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    for threads, method in ((1, "fork"), (2, "forkserver")):  # tests before this one have some
        monkeypatch.setattr(threading, "active_count", lambda count=threads: count)
        assert many._context().get_start_method() == method
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn"])
    assert many._context().get_start_method() == "spawn"


def test_processes_are_gone_when_nobody_wants_more_results(folder: Path) -> None:
    for file in FILES:
        (folder / file).write_text("x = 2\nloss = x * x\n")
    results = runner.check_many(FILES, Settings(), 2)
    assert next(results).exit_code == 0
    results.close()  # type: ignore[attr-defined]  # a generator
    assert not multiprocessing.active_children()


def test_an_assertion_in_a_worker_says_what_one_here_says(folder: Path) -> None:
    for file in FILES:
        (folder / file).write_text("x = 2\nassert x == 3\nloss = x * x\n")
    alone = list(runner.check_many(FILES, Settings(), 1))
    together = list(runner.check_many(FILES, Settings(), 2))
    assert [[(i.id, i.status, i.diagnostic.message if i.diagnostic else "") for i in r.items]
            for r in alone] == [
           [(i.id, i.status, i.diagnostic.message if i.diagnostic else "") for i in r.items]
            for r in together]  # fmt: skip
