"""The library's parameters, with their defaults or without, those of functions written in Python
and of optimizers are PyTorch's and CPython's: `python -m tests.oracles.signatures` writes them."""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from autodiff_cli.language.nn import prelude
from autodiff_cli.language.nn.module_names import PRELUDE
from autodiff_cli.language.nn.optimizer_options import SIGNATURES
from autodiff_cli.language.nn.prelude import define
from autodiff_cli.language.runtime.attributes import METHODS
from autodiff_cli.language.values.providers import PROVIDERS, STUBS, from_above
from autodiff_cli.language.values.user_classes import UserClass
from autodiff_cli.language.values.values import Builtin, Scope, UserFunction

FIXTURE = Path(__file__).parents[1] / "fixtures" / "signatures.json"


def functions(name: str) -> Iterator[tuple[str, UserFunction]]:
    """A function of the library, or how a class is made and its own methods, by their titles."""
    found = define(name)
    if not isinstance(found, UserClass):
        yield name, found
        return
    for method, value in {"__init__": found.flat.get("__init__"), **found.names}.items():
        value = getattr(value, "__func__", value)
        if isinstance(value, UserFunction):
            yield f"{name}.{method}", value


def written_in_python() -> Iterator[tuple[str, Any]]:
    """The functions that programs get by a path, and the methods of tensors that are no ops."""
    for name, method in METHODS.items():
        yield f"Tensor.{name}", method
    for _, place, below in (*PROVIDERS, ("", STUBS, "")):
        table = from_above(place)
        for key in table:
            value = table.get(key)
            if isinstance(value, Builtin):
                yield below + key, value.function


def definitions() -> dict[str, dict[str, str]]:
    """The parameters of every function and method of the library, those without a default as an
    empty text; the defaults of what is written in Python; the options of optimizers."""
    found = {}
    for name, (_, positional, keywords) in SIGNATURES.items():
        values = {**positional, **keywords}
        found[f"optim.{name}"] = {p: repr(value) for p, value in values.items()}
    for path, function in written_in_python():
        try:
            params = inspect.signature(function).parameters.values()
        except ValueError:  # CPython's own that have none
            continue
        left = {p.name: repr(p.default) for p in params if p.default is not p.empty}
        if left:
            found[path] = left
    for name in PRELUDE:
        for title, function in functions(name):
            given: Any = function.params
            last = given.positional[len(given.positional) - len(function.defaults) :]
            values = {
                **dict(zip(last, function.defaults, strict=True)),
                **function.keyword_defaults,
            }
            required = dict.fromkeys([*given.positional, *given.keyword], "")
            found[title] = required | {p: repr(value) for p, value in values.items()}
    return found


def test_defaults_are_those_of_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prelude, "_SCOPE", Scope())  # all is defined here, once more
    prelude._SCOPE.names = prelude._Names()
    ours = definitions()
    for title, values in json.loads(FIXTURE.read_text("utf-8")).items():
        assert {p: ours[title].get(p) for p in values} == values, title
