"""SciPy's packages in the command's own process: their extensions without what is imported around
them, which takes five times as long."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import Any

EXTENSIONS: dict[str, list[str]] = {
    "scipy": [],
    "scipy.special": ["_ufuncs"],
    "scipy.linalg": ["_flapack", "_fblas"],
}


class Light(ModuleType):
    """Stands for a package until something is asked for that its extensions do not have."""

    def __getattr__(self, name: str) -> Any:
        package = self.__name__
        if name == "__path__":
            from importlib.machinery import PathFinder

            spec = PathFinder.find_spec("scipy")
            below = package.removeprefix("scipy").replace(".", "/")
            return [root + below for root in (spec and spec.submodule_search_locations) or ()]
        if name.startswith("__"):
            raise AttributeError(name)
        if name in EXTENSIONS[package]:
            return import_module(f"{package}.{name}")
        for extension in EXTENSIONS[package]:
            found = getattr(import_module(f"{package}.{extension}"), name, None)
            if found is not None:
                return found
        if sys.modules.get(package) is self:
            del sys.modules[package]
        return getattr(import_module(package), name)


def prepare() -> None:
    """Let the first imports find the light ones."""
    for name in EXTENSIONS:
        sys.modules.setdefault(name, Light(name))
