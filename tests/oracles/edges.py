"""What PyTorch prints of the expressions in `tests/ops/edges.txt`, or which exception it raises.

python -m tests.oracles.edges
"""

from __future__ import annotations

import re
from pathlib import Path

EDGES = Path(__file__).parents[1] / "ops" / "edges.txt"
BEFORE = """\
import torch
import torch.nn.functional as F

def grad(f, x):
    x = x if x.requires_grad else x.clone().requires_grad_()
    return torch.autograd.grad(f(x).sum(), x, create_graph=True)[0]

torch.manual_seed(0)
"""


def edges() -> list[tuple[str, str]]:
    """The expressions, and what was recorded of each: the lines that are indented."""
    blocks = re.split(r"\n(?! )", EDGES.read_text("utf-8").strip())
    parts = [block.partition("\n") for block in blocks]
    return [(line, found.replace("\n    ", "\n").removeprefix("    ")) for line, _, found in parts]


def recorded(expression: str) -> str:
    from tests.oracles.programs import outcome

    found = outcome(f"{BEFORE}print({expression})\n")
    error = found["error"]
    return str(error["type"] if error else found["stdout"].rstrip("\n"))


def main() -> None:
    lines = [(line, recorded(line).replace("\n", "\n    ")) for line, _ in edges()]
    EDGES.write_text("".join(f"{line}\n    {found}\n" for line, found in lines), "utf-8")


if __name__ == "__main__":
    main()
