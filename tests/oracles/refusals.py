"""Records with which exception, and on which line, PyTorch refuses the lines of `refusals.txt`,
each run after the same few names.

Run it with `python -m tests.oracles.refusals`; PyTorch is needed only here.
"""

from __future__ import annotations

import contextlib
import io
import json
import traceback
import warnings
from pathlib import Path
from typing import Any

LINES = Path(__file__).with_name("refusals.txt")
FIXTURE = Path(__file__).parents[1] / "fixtures" / "refusals.json"
NAMES = """\
import torch
import torch.nn as nn
import torch.nn.functional as F
x = torch.tensor([1.0, 2.0, 3.0])
M = torch.arange(6.0).reshape(2, 3)
i = torch.arange(3)
b = torch.tensor([True, False, True])
w = torch.ones(3, requires_grad=True)
"""


def program(line: str) -> str:
    """The line with the names it uses; ` ;; ` stands for a line end."""
    return NAMES + line.replace(" ;; ", "\n") + "\n"


def lines() -> list[str]:
    """The lines, each a program."""
    return [line for line in LINES.read_text("utf-8").splitlines() if line]


def outcome(line: str) -> dict[str, Any] | None:
    """PyTorch's exception and the line it comes from; None when it takes the program."""
    import torch

    torch.set_default_dtype(torch.float32)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            exec(compile(program(line), "<program>", "exec"), {"__name__": "__main__"})
        except SyntaxError as problem:
            return {"type": "SyntaxError", "line": problem.lineno}
        except Exception as problem:
            frames = traceback.extract_tb(problem.__traceback__)
            at = [frame.lineno for frame in frames if frame.filename == "<program>"]
            return {"type": type(problem).__name__, "line": at[-1]}
    return None


def main() -> None:
    """Write the fixture."""
    cases = []
    for line in lines():
        found = outcome(line)
        if found is None:
            print("PyTorch takes:", line)
        else:
            cases.append({"source": line, **found})
    FIXTURE.write_text("[\n" + ",\n".join(map(json.dumps, cases)) + "\n]\n", encoding="utf-8")
    print(len(cases), "refusals")


if __name__ == "__main__":
    main()
