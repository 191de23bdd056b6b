"""Writes `index.txt`, which says where names are declared: `python -m autodiff_cli.ops.build`.

Run it after adding an op; a new family gets a line with its name first.
"""

from __future__ import annotations

from ..graph.registry import NAMES, OPS
from . import INDEX, index, load_all


def index_text() -> str:
    """The index of the table as it is now."""
    load_all()
    lines = []
    for family in index()[2]:
        name = family.rpartition(".")[2]
        public = {key for key, ops in NAMES.items() if ops[0].family == name}
        private = {key for key, op in OPS.items() if op.family == name} - set(NAMES)
        rules = f" | {' '.join(sorted(private))}" if private else ""
        lines.append(f"{family}: {' '.join(sorted(public))}{rules}\n")
    return "".join(lines)


if __name__ == "__main__":
    text = index_text()
    with open(INDEX, "w", encoding="utf-8") as file:
        file.write(text)
