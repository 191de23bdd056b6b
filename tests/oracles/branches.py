"""Lists which branches on rank, sizes, dtype or a missing argument in `ops/` are taken by programs
and samples whose results PyTorch recorded.

    python -m tests.oracles.branches

A line of the list is a branch, those that none takes begin with `-`. A branch that is new or was
changed fails `tests/ops/test_branches.py` until the list is made again; what it then says with `-`
needs a program in `surface/` or a sample in its op's block.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import numpy as np

from .mutants import walked
from .mutate import files, reach, text_of

LIST = Path(__file__).parents[1] / "fixtures" / "ops_branches.txt"
FAMILY = [
    "tests/language/test_surface.py",
    "tests/language/test_programs.py",
    "tests/ops",
    "tests/explain/test_export.py",  # texts for JAX, whose results JAX gave
]
FORM = re.compile(r"\b(ndim|rank|dtype|shape|sizes?|dims?|numel|count|None|len|kind)\b")


def branches(name: str) -> dict[str, int]:
    """The branches of a file, and the block that each runs."""
    found: dict[str, int] = {}
    times: Counter[str] = Counter()
    for test, owner, held, otherwise in walked(text_of(name))[1].branches:
        text = ast.unparse(test)
        if not FORM.search(text):
            continue
        title = f"{Path(name).stem}.{owner}: {text}"
        times[title] += 1
        if times[title] > 1:
            title += f" #{times[title]}"
        found[title] = held
        found[f"{title} [not]"] = otherwise
    return found


def listed() -> set[str]:
    """Every branch there is."""
    return {title for name in files() if name.startswith("ops/") for title in branches(name)}


def main() -> None:
    """Write the list."""
    found = reach(FAMILY, None)
    taken = np.unpackbits(np.bitwise_or.reduce(found.bits, axis=0)) | found.imported
    first, lines = 0, []
    for name in files():
        if name.startswith("ops/"):
            for title, block in branches(name).items():
                lines.append(f"{'+' if taken[first + block] else '-'} {title}\n")
        first += walked(text_of(name))[1].blocks
    LIST.write_text("".join(sorted(set(lines), key=lambda line: line[2:])), "utf-8")
    missing = sum(line.startswith("-") for line in lines)
    print(f"{len(lines)} branches, {missing} not taken")


if __name__ == "__main__":
    main()
