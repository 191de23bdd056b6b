"""The table: one file per family, loaded when a program first uses a name of it.

`index.txt` has a line for each family: its module, its public names and, behind a bar, keys that
only rules use. `python -m autodiff_cli.ops.build` writes the names.
"""

from __future__ import annotations

import os.path
from functools import cache
from importlib import import_module

from ..graph.registry import set_loader

INDEX = os.path.join(os.path.dirname(__file__), "index.txt")


@cache
def index() -> tuple[dict[str, str], dict[str, str], list[str]]:
    """The family of each public name and of each other key, and all families."""
    public: dict[str, str] = {}
    private: dict[str, str] = {}
    families = []
    with open(INDEX, encoding="utf-8") as file:
        lines = file.read().splitlines()
    for line in lines:
        family, _, names = line.partition(":")
        families.append(family)
        shown, _, hidden = names.partition("|")
        public.update(dict.fromkeys(shown.split(), family))
        private.update(dict.fromkeys(hidden.split(), family))
    return public, private, families


def public_names() -> list[str]:
    """All public names in alphabetical order."""
    return sorted(index()[0])


def load_all() -> None:
    """Import every family."""
    for family in index()[2]:
        import_module(f"{__name__}.{family}")


def _load(name: str) -> None:
    public, private, _ = index()
    family = public.get(name) or private.get(name)
    if family:
        import_module(f"{__name__}.{family}")


set_loader(_load)
