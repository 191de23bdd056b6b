"""Libraries that few tests need: all processes collect all tests; they import when one runs."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest


class Later:
    """A module that is imported when something of it is first asked for; without it the tests of a
    file are skipped."""

    def __init__(self, name: str):
        self._name = name
        if find_spec(name.partition(".")[0]) is None:
            pytest.skip(f"{name} is not installed", allow_module_level=True)

    def __getattr__(self, attribute: str) -> Any:
        if attribute.startswith("_"):  # what pytest asks of all that it finds in a file
            raise AttributeError(attribute)
        return getattr(import_module(self._name), attribute)
