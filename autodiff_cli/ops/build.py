"""Writes `index.txt`, which says where names are declared: `python -m autodiff_cli.ops.build`.

Run it after adding an op or a family.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from ..graph.registry import NAMES, OPS
from . import INDEX, index


def index_text() -> str:
    """The index of the table as it is now."""
    files = sorted(Path(INDEX).parent.glob("*/[!_]*.py"))
    new = [f"{path.parent.name}.{path.stem}" for path in files if path.parent.name != "kernels"]
    families = dict.fromkeys([*index()[2], *new])
    for family in families:
        import_module(f"{__package__}.{family}")
    lines = []
    for family in families:
        name = family.rpartition(".")[2]
        public = {key for key, ops in NAMES.items() if ops[0].family == name}
        private = {key for key, op in OPS.items() if op.family == name} - set(NAMES)
        rules = f" | {' '.join(sorted(private))}" if private else ""
        if public or private:
            lines.append(f"{family}: {' '.join(sorted(public))}{rules}\n")
    return "".join(lines)


if __name__ == "__main__":
    text = index_text()
    with open(INDEX, "w", encoding="utf-8") as file:
        file.write(text)
