"""Writes `index.py`: which families declare a name. Run it after adding an op: `python -m autodiff_cli.ops.build`."""

from __future__ import annotations

from pathlib import Path

from ..graph.registry import NAMES, OPS
from . import load_all

HEADER = '''"""Where each op name is declared. Made by `python -m autodiff_cli.ops.build`; a test keeps it fresh."""

from __future__ import annotations

WHERE: dict[str, tuple[str, ...]] = {
'''


def index_text() -> str:
    """The source of `index.py` for the table as it is now."""
    load_all()
    where: dict[str, dict[str, None]] = {}
    for key, op in OPS.items():
        for name in (key, op.name, *op.aliases):
            where.setdefault(name, {}).setdefault(op.family, None)
    assert set(NAMES) <= set(where)
    lines = [
        f"    {name!r}: ({', '.join(map(repr, families))},),"
        for name, families in sorted(where.items())
    ]
    return HEADER + "\n".join(lines).replace("'", '"') + "\n}\n"


def main() -> None:
    """Write the index beside this file."""
    Path(__file__).with_name("index.py").write_text(index_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
