"""Every workload of the benchmarks computes what hand-written NumPy does; nothing looks at a
clock."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import growth, harness, tables, with_autodiff, with_limit, with_numpy
from benchmarks.__main__ import arguments
from benchmarks.harness import LIMIT, NUMPY, OURS, Measured
from benchmarks.tables import time_text
from benchmarks.workloads import BY_NAME, WORKLOADS, Goals, Workload

from .together import together

BOUNDED = [w for w in WORKLOADS if LIMIT in w.goals]


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_workload_agrees_with_numpy(workload: Workload, tmp_path: Path) -> None:
    for name, module in (("numpy", with_numpy), ("autodiff", with_autodiff)):
        results = getattr(module, workload.function)(**workload.arrays(small=True))()
        np.savez(tmp_path / f"{name}.npz", **results)
    ours, theirs = tmp_path / "autodiff.npz", tmp_path / "numpy.npz"
    assert harness.differs(ours, theirs, workload.tolerance) == ""


@together(BOUNDED)
def test_limits_are_calls_or_times(workload: Workload) -> None:
    function = getattr(with_limit, workload.function, None)
    assert (function is None) == (workload.allowed(small=True) > 0)
    if function is not None:
        assert function(**workload.arrays(small=True))() == {}


def test_a_limit_for_each_operation_grows_with_them() -> None:
    assert BY_NAME["scalars"].allowed(small=False) == pytest.approx(0.5)
    assert BY_NAME["rnn"].allowed(small=False) == pytest.approx(0.05)


def test_another_result_is_noticed(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.array([1.0, 2.0]))
    np.savez(tmp_path / "b.npz", x=np.array([1.0, 2.1]))
    assert "`x` differs" in harness.differs(tmp_path / "a.npz", tmp_path / "b.npz", 1e-3)


def _command(project: Path, *words: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", *words, "--small", "--seconds", "0"],
        cwd=project,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(project), **environment},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_command_measures_and_prints(project: Path, tmp_path: Path) -> None:
    absent = [word for peer in ("torch", "jax", "hips") for word in ("--peer", f"{peer}=false")]
    words = ["neuron", "start-up", "--rounds", "1", "--markdown", *absent]
    printed = _command(project, *words, "--json", str(tmp_path / "times.json"))
    for peer in ("torch", "torch-compile", "jax", "hips"):
        assert f"{peer} is not installed: skipped" in printed
    words_of_rows = [row.split()[:2] for row in printed.splitlines()]
    for name, peers in (
        ("neuron", [OURS, NUMPY, LIMIT]),
        ("start-up", ["python", NUMPY, OURS]),
    ):
        assert [words for words in words_of_rows if words[:1] == [name]] == [
            [name, peer] for peer in peers
        ]
    assert "| workload | ours | NumPy | limit | / NumPy | / limit |" in printed
    assert set(json.loads((tmp_path / "times.json").read_text())) == {"neuron", "start-up"}


def test_growth_tells_how_each_size_ran(project: Path) -> None:
    printed = _command(project, "growth")
    assert [row.split()[0] for row in printed.splitlines() if row.startswith("1e")] == [
        *("1e+03", "1e+04"),
        *("1e+00", "1e+01", "1e+02") * 2,
    ]
    assert "flat list" in printed and "node after node" in printed


def test_sizes_without_memory_are_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(growth, "available", lambda: 1000)
    ((size, reason, *_),) = growth.elements([1000], 0)
    assert size == "1e+03" and "needs 0.0 GB" in reason


def test_torch_compile_needs_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(harness, "importable", lambda python, module: module == "torch")
    monkeypatch.setattr(harness, "compiler", lambda: None)
    peers, skipped = harness.peers_here({})
    assert list(peers) == [OURS, NUMPY, LIMIT, "torch"]
    assert skipped == [
        "torch-compile needs a C++ compiler, and there is none: skipped",
        "jax is not installed: skipped",
        "hips is not installed: skipped",
    ]


def test_goals_stand_beside_what_was_reached() -> None:
    found = {
        OURS: Measured([0.004, 0.002], first=0.1, peak=4_000_000, results=2_000_000),
        "torch": Measured([0.001, 0.002], first=0.2),
        "torch-compile": Measured(problem="failed: no"),
        LIMIT: Measured([0.001, 0.001]),
    }
    goals = Goals({"torch": 1.0, LIMIT: 3.0}, {"torch": 0.6}, 1.15)
    assert tables.rows("w", found, goals) == [
        ["w", OURS, "2.00 ms", "100 ms", "4 MB", "", ""],
        ["w", "torch", "1.00 ms", "200 ms", "", "2.50", "1.00"],
        ["w", "torch-compile", "failed: no", "", "", "", ""],
        ["w", LIMIT, "1.00 ms", "", "", "3.00", "3.00"],
        ["w", "torch: first", "", "", "", "0.50", "0.60"],
        ["w", "results", "", "", "2 MB", "2.00", "1.15"],
    ]
    times, more = tables.document({"w": (found, goals)}).split("\n\n")
    assert times.splitlines()[-1] == (
        "| w | 2.00 ms | 1.00 ms | 1.00 ms | 2.00, 3.00 (3) | 2.00, 2.50 (1 ✗) |"
    )
    assert more.splitlines()[-1] == (
        "| w | 100 ms | 200 ms, 0.50 (0.6) | 4 MB |  | 2 MB, 2.00 (1.15 ✗) |"
    )


def test_unknown_workloads_are_refused() -> None:
    with pytest.raises(SystemExit):
        arguments(["newron"])


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2.5, "2.50 s"), (0.0123, "12.3 ms"), (4.56e-4, "456 us"), (3e-8, "30 ns")],
)
def test_times_have_three_digits(seconds: float, text: str) -> None:
    assert time_text(seconds) == text
