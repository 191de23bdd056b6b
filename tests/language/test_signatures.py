"""Defaults of the library's parameters are those of PyTorch, which `python -m
tests.oracles.signatures` writes down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from autodiff_cli.language.nn.module_names import PRELUDE
from autodiff_cli.language.nn.prelude import define
from autodiff_cli.language.values.user_classes import UserClass
from autodiff_cli.language.values.values import UserFunction

FIXTURE = Path(__file__).parents[1] / "fixtures" / "signatures.json"


def functions(name: str) -> Iterator[tuple[str, UserFunction]]:
    """A function of the library, or the methods of a class, by their titles."""
    found = define(name)
    if not isinstance(found, UserClass):
        yield name, found
        return
    for method, value in found.names.items():
        value = getattr(value, "__func__", value)
        if isinstance(value, UserFunction):
            yield f"{name}.{method}", value


def definitions() -> dict[str, dict[str, str]]:
    """The defaults of every function and method of the library."""
    found = {}
    for name in PRELUDE:
        for title, function in functions(name):
            params: Any = function.params
            last = params.positional[len(params.positional) - len(function.defaults) :]
            values = {
                **dict(zip(last, function.defaults, strict=True)),
                **function.keyword_defaults,
            }
            found[title] = {p: repr(value) for p, value in values.items()}
    return found


def test_defaults_are_those_of_pytorch() -> None:
    ours = definitions()
    for title, values in json.loads(FIXTURE.read_text("utf-8")).items():
        assert {p: ours[title].get(p) for p in values} == values, title
