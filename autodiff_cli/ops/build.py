"""Writes `index.py`, which says where names are declared: `python -m autodiff_cli.ops.build`.

Run it after adding an op.
"""

from __future__ import annotations

from pathlib import Path

from ..graph.registry import NAMES, OPS
from . import load_all

HEADER = '''"""Where each op is declared; made by `autodiff_cli.ops.build`, kept fresh by a test."""

from __future__ import annotations

'''


def index_text() -> str:
    """The source of `index.py` for the table as it is now."""
    load_all()
    places = {name: {op.family: None for op in ops} for name, ops in NAMES.items()}
    others: dict[str, dict[str, None]] = {}
    for key, op in OPS.items():
        (places if key in places else others).setdefault(key, {}).setdefault(op.family)
    return (
        HEADER
        + "# Families by public name.\n"
        + _table("WHERE", places)
        + "\n# Families by keys that are no public names; only rules use them.\n"
        + _table("KEYS", others)
    )


def _table(name: str, places: dict[str, dict[str, None]]) -> str:
    lines = [
        f"    {key!r}: ({', '.join(map(repr, families))},),\n".replace("'", '"')
        for key, families in sorted(places.items())
    ]
    return f"{name}: dict[str, tuple[str, ...]] = {{\n{''.join(lines)}}}\n"


def main() -> None:
    """Write the index beside this file."""
    Path(__file__).with_name("index.py").write_text(index_text(), encoding="utf-8")


if __name__ == "__main__":
    main()
