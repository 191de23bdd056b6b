"""Whole processes on small examples: from the start of Python to the printed gradients."""

from __future__ import annotations

import ast
import json
import random
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .harness import NUMPY, OURS, Measured, clean_environment
from .workloads import Goals


class Start(NamedTuple):
    """A process and what it prints: the text of a program (or, `library`, of a script that uses the
    library) and of scripts in the peers' languages, and the gradients."""

    goals: Goals
    ours: str
    gradients: dict[str, Any]
    peers: dict[str, str]
    library: bool = False


TWO_BY_TWO = {"A": [[7, 10], [13, 16]], "B": [[1, 2], [3, 4]]}
_TORCH = """\
import torch
A = torch.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=torch.float64, requires_grad=True)
B = torch.tensor([[5.0, 6.0], [7.0, 8.0]], dtype=torch.float64, requires_grad=True)
((A + B) * A).sum().backward()
print({"A": A.grad.tolist(), "B": B.grad.tolist()})
"""
_JAX = """\
import jax
import jax.numpy as jnp
jax.config.update("jax_enable_x64", True)
A = jnp.array([[1.0, 2.0], [3.0, 4.0]])
B = jnp.array([[5.0, 6.0], [7.0, 8.0]])
a, b = jax.jit(jax.grad(lambda A, B: jnp.sum((A + B) * A), (0, 1)))(A, B)
print({"A": a.tolist(), "B": b.tolist()})
"""
_HIPS = """\
import autograd.numpy as np
from autograd import grad
A = np.array([[1.0, 2.0], [3.0, 4.0]])
B = np.array([[5.0, 6.0], [7.0, 8.0]])
f = lambda A, B: np.sum((A + B) * A)
print({"A": grad(f, 0)(A, B).tolist(), "B": grad(f, 1)(A, B).tolist()})
"""
_PEERS = {"torch": _TORCH, "jax": _JAX, "hips": _HIPS}

STARTS = {
    "start-up": Start(
        Goals({NUMPY: 1.5, "torch": 0.08, "jax": 0.15}),
        "A = [[1, 2], [3, 4]]\nB = [[5, 6], [7, 8]]\nloss = sum((A + B) * A)\n",
        TWO_BY_TWO,
        _PEERS,
    ),
    "start-library": Start(
        Goals({NUMPY: 1.5, "hips": 1.0}),
        """\
import autodiff_cli as ad
f = ad.value_and_grad("loss = sum((A + B) * A)", wrt=["A", "B"])
_, grads = f(A=[[1.0, 2.0], [3.0, 4.0]], B=[[5.0, 6.0], [7.0, 8.0]])
print({name: g.tolist() for name, g in grads.items()})
""",
        TWO_BY_TWO,
        _PEERS,
        library=True,
    ),
    "start-special": Start(
        Goals({NUMPY: 1.5}),
        "x = [0.5, 1.5]\nloss = sum(lgamma(x) + erf(x))\n",
        {"x": [-1.0847274470859788, 0.15542026320220557]},
        {
            "torch": """\
import torch
x = torch.tensor([0.5, 1.5], dtype=torch.float64, requires_grad=True)
(torch.lgamma(x) + torch.erf(x)).sum().backward()
print({"x": x.grad.tolist()})
""",
            "hips": """\
import autograd.numpy as np
from autograd import grad
from autograd.scipy.special import erf, gammaln
print({"x": grad(lambda x: np.sum(gammaln(x) + erf(x)))(np.array([0.5, 1.5])).tolist()})
""",
        },
    ),
}


def start_up(name: str, peers: dict[str, str], rounds: int) -> dict[str, Measured]:
    """Whole processes, taking turns: bare Python, `import numpy`, ours, and the same in those of
    `peers` (name -> its Python) that are here.

    The first run of each writes byte code, and shows that its gradients are right; the
    environment has no PYTHONDONTWRITEBYTECODE: with it, every start would compile the project
    anew.
    """
    start = STARTS[name]
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "three.expr"
        program.write_text(start.ours, encoding="utf-8")
        run = [peers[OURS], "-m", "autodiff_cli", "run", str(program)]
        commands = {
            "python": [peers[OURS], "-c", "pass"],
            NUMPY: [peers[OURS], "-c", "import numpy"],
            OURS: [peers[OURS], str(program)] if start.library else run,
        }
        for peer, text in start.peers.items():
            if peer in peers:
                commands[peer] = [peers[peer], "-c", text]
        found = {name: Measured() for name in commands}
        if not start.library:
            _, printed = _process([*run, "--format", "json"])
            found[OURS].problem = _problem(start, _ours(printed))
        for name, command in commands.items():
            found[name].first, printed = _process(command)
            if name in start.peers or (name == OURS and start.library):
                found[name].problem = _problem(start, ast.literal_eval(printed))
        order = random.Random(1)
        running = [name for name in commands if not found[name].problem]
        for _ in range(rounds):
            for name in order.sample(running, len(running)):
                found[name].rounds.append(_process(commands[name])[0])
        return found


def _ours(printed: str) -> dict[str, Any]:
    """The gradients in the document that `autodiff run --format json` prints."""
    tensors = json.loads(printed)["tensors"]
    return {name: t["grad"] for name, t in tensors.items() if t.get("grad") is not None}


def _problem(start: Start, gradients: dict[str, Any]) -> str:
    right = gradients.keys() == start.gradients.keys() and all(
        np.allclose(gradients[name], true, rtol=1e-12) for name, true in start.gradients.items()
    )
    return "" if right else f"other gradients: {gradients}"


def _process(command: list[str]) -> tuple[float, str]:
    """How long a process takes, and what it prints."""
    environment = clean_environment()
    start = time.perf_counter()
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    elapsed = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip()}")
    return elapsed, done.stdout
