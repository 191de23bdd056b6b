"""Writes tests/fixtures/signatures.json: the defaults of PyTorch's parameters (and NumPy's and
CPython's), for each function and method that programs can call and that is no op.

Run from the root with PyTorch installed: `python -m tests.oracles.signatures`.
"""

from __future__ import annotations

import importlib
import inspect
import json
import pkgutil
from collections.abc import Iterator
from typing import Any

import torch

from autodiff_cli.language.nn.module_names import PRELUDE

from ..language.test_signatures import FIXTURE, definitions

MODULES = ("torch.nn", "torch.optim", "torch.distributions", "torch.utils.data", "argparse")


def modules() -> Iterator[Any]:
    """The modules that define what the library has."""
    for name in MODULES:
        package = importlib.import_module(name)
        yield package
        for found in pkgutil.walk_packages(getattr(package, "__path__", ()), f"{name}."):
            if not any(word in found.name for word in ("quant", "datapipes", "_ops", "backends")):
                yield importlib.import_module(found.name)


def defaults(function: Any) -> dict[str, str] | None:
    """The values of parameters that may be left out; an empty text for those that may not."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    kinds = (bool, int, float, str, tuple, type(None))
    given = {p.name: p.default for p in found if isinstance(p.default, kinds)}
    values = {p: repr(tuple(v) if isinstance(v, tuple) else v) for p, v in given.items()}
    return values | {
        p.name: "" for p in found if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD
    }


def named(path: str) -> Any:
    """What a path stands for, as far as it leads anywhere."""
    package, _, rest = path.partition(".")
    place = {"np": "numpy", "math": "math", "python": rest.partition(".")[0]}.get(package, "torch")
    try:
        found: Any = importlib.import_module(place)
        for name in (path if place == "torch" else rest.removeprefix(f"{place}.")).split("."):
            found = getattr(found, name)
    except (ImportError, AttributeError):
        return None
    return found


def schema(path: str) -> dict[str, str]:
    """The defaults of a function of PyTorch that Python cannot be asked for."""
    found = {}
    for form in torch._C._jit_get_schemas_for_operator(f"aten::{path.rpartition('.')[2]}"):
        for argument in form.arguments:
            if argument.has_default_value():
                found.setdefault(argument.name, repr(argument.default_value))
    return found


def main() -> None:
    """Look for each definition; the module that comes first has it."""
    assert torch
    known: dict[str, Any] = {}
    for module in modules():
        for name in PRELUDE:
            if hasattr(module, name) and not inspect.ismodule(getattr(module, name)):
                known.setdefault(name, getattr(module, name))
    found = {}
    for title, ours in definitions().items():
        name, _, method = title.partition(".")
        theirs = known.get(name)
        theirs = getattr(theirs, method, None) if method else theirs
        theirs = theirs or named(title)
        values = defaults(theirs) if callable(theirs) else None
        if not values and not title.startswith("python."):
            values = schema(title)
        if values is None:
            continue
        alike = {p: v for p, v in ours.items() if values.get(p) == v}
        if alike:
            found[title] = alike
        for p, v in ours.items():
            if p not in alike:
                print(title, p, v, "PyTorch:", values.get(p))
    rows = (f"{json.dumps(title)}: {json.dumps(found[title])}" for title in sorted(found))
    FIXTURE.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")
    print(len(found), "signatures")


if __name__ == "__main__":
    main()
