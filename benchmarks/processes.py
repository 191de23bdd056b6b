"""Whole processes on an example of 2 by 2: from the start of Python to the printed gradients."""

from __future__ import annotations

import ast
import json
import random
import subprocess
import tempfile
import time
from pathlib import Path

from .harness import NUMPY, OURS, Measured, clean_environment
from .workloads import Goals

GOALS = Goals({NUMPY: 1.5, "torch": 0.08, "jax": 0.15})

THREE_LINES = "A = [[1, 2], [3, 4]]\nB = [[5, 6], [7, 8]]\nloss = sum((A + B) * A)\n"
GRADIENTS = {"A": [[7, 10], [13, 16]], "B": [[1, 2], [3, 4]]}

TORCH = """\
import torch
A = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64, requires_grad=True)
B = torch.tensor([[5.0, 6.0], [7.0, 8.0]], dtype=torch.float64, requires_grad=True)
((A + B) * A).sum().backward()
print({"A": A.grad.tolist(), "B": B.grad.tolist()})
"""

JAX = """\
import jax
import jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
A = jnp.array([[1.0, 2.0], [3.0, 4.0]])
B = jnp.array([[5.0, 6.0], [7.0, 8.0]])
a, b = jax.jit(jax.grad(lambda A, B: jnp.sum((A + B) * A), (0, 1)))(A, B)
print({"A": a.tolist(), "B": b.tolist()})
"""


def start_up(peers: dict[str, str], rounds: int) -> dict[str, Measured]:
    """Whole processes, taking turns: bare Python, `import numpy`, a file of three lines, and the
    same in those of `peers` (name -> its Python) that are here.

    The first run of each writes byte code, and shows that its gradients are right; the
    environment has no PYTHONDONTWRITEBYTECODE: with it, every start would compile the project
    anew.
    """
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "three.expr"
        program.write_text(THREE_LINES, encoding="utf-8")
        run = [peers[OURS], "-m", "autodiff_cli", "run", str(program)]
        commands = {
            "python": [peers[OURS], "-c", "pass"],
            NUMPY: [peers[OURS], "-c", "import numpy"],
            OURS: run,
        }
        for name, text in (("torch", TORCH), ("jax", JAX)):
            if name in peers:
                commands[name] = [peers[name], "-c", text]
        found = {name: Measured() for name in commands}
        _, printed = _process([*run, "--format", "json"])
        found[OURS].problem = _problem(_ours(printed))
        for name, command in commands.items():
            found[name].first, printed = _process(command)
            if name in ("torch", "jax"):
                found[name].problem = _problem(ast.literal_eval(printed))
        order = random.Random(1)
        running = [name for name in commands if not found[name].problem]
        for _ in range(rounds):
            for name in order.sample(running, len(running)):
                found[name].rounds.append(_process(commands[name])[0])
        return found


def _ours(printed: str) -> dict[str, object]:
    """The gradients in the document that `autodiff run --format json` prints."""
    tensors = json.loads(printed)["tensors"]
    return {name: tensors[name]["grad"] for name in GRADIENTS}


def _problem(gradients: dict[str, object]) -> str:
    return "" if gradients == GRADIENTS else f"other gradients: {gradients}"


def _process(command: list[str]) -> tuple[float, str]:
    """How long a process takes, and what it prints."""
    environment = clean_environment()
    start = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    elapsed = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return elapsed, done.stdout
