"""`class` bodies: parsed, not run yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import fail
from . import syntax
from .expressions import Context
from .values import Scope


def compile_class(tree: syntax.ClassDef, context: Context) -> Callable[[Scope], Any]:
    """The closure of a class statement."""

    def run(scope: Scope) -> Any:
        raise fail("E203", f"`class {tree.name}` is not supported", tree.name_span, label="a class",
                   help="write a function: `def name(...):`")

    return run
