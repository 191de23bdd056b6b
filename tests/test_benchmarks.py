"""Every workload of the benchmarks computes what hand-written NumPy does; nothing looks at a
clock."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import harness, with_autodiff, with_numpy
from benchmarks.__main__ import arguments, time_text
from benchmarks.workloads import WORKLOADS, Workload


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_workload_agrees_with_numpy(workload: Workload, tmp_path: Path) -> None:
    for name, module in (("numpy", with_numpy), ("autodiff", with_autodiff)):
        results = getattr(module, workload.function)(**workload.arrays(small=True))()
        np.savez(tmp_path / f"{name}.npz", **results)
    ours, theirs = tmp_path / "autodiff.npz", tmp_path / "numpy.npz"
    assert harness.differs(ours, theirs, workload.tolerance) == ""


def test_another_result_is_noticed(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", x=np.array([1.0, 2.0]))
    np.savez(tmp_path / "b.npz", x=np.array([1.0, 2.1]))
    assert "`x` differs" in harness.differs(tmp_path / "a.npz", tmp_path / "b.npz", 1e-3)


def test_the_command_measures_and_prints(project: Path) -> None:
    words = ["neuron-tiny", "start-up", "--small", "--rounds", "1", "--seconds", "0"]
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks", *words, "--peer", "torch=false"],
        cwd=project,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(project)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "torch is not installed: skipped" in done.stdout
    assert [row.split()[:2] for row in done.stdout.splitlines() if row.startswith("neuron")] == [
        ["neuron-tiny", "autodiff"],
        ["neuron-tiny", "numpy"],
    ]


def test_unknown_workloads_are_refused() -> None:
    with pytest.raises(SystemExit):
        arguments(["newron"])


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2.5, "2.50 s"), (0.0123, "12.3 ms"), (4.56e-4, "456 us"), (3e-8, "30 ns")],
)
def test_times_have_three_digits(seconds: float, text: str) -> None:
    assert time_text(seconds) == text
