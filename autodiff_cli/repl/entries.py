"""What a session is a list of: entries, each some statements that were entered at once; what
they gave, and why a command did nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import Diagnostic, Exit
from ..language.program.running import calls_backward
from ..language.syntax import tree as syntax
from ..language.syntax.scoping import assigned_names, target_names
from ..source import Source


class Problem(Exception):
    """A command that cannot do what it was asked: what is wrong, and what to type instead."""

    def __init__(self, message: str, *helps: str, code: int = Exit.USAGE):
        super().__init__(message)
        self.message = message
        self.helps = helps
        self.code = code


class Quit(Exception):
    """The command that ends the session."""


@dataclass(slots=True)
class Entry:
    """What was entered at once. `pure`: it only assigned names; `looks`: it only showed something;
    `explicit`: it, or one before it, calls backward(); `found`: what the names it assigns were
    before, and `world` the settings; `spent`: the `seconds` of all until here; `files`: what its
    `load` calls read; `functions`: what it defines. What stood before an entry never changes."""

    source: Source
    trees: list[syntax.Node]
    folder: Path | None
    pure: bool
    looks: bool
    explicit: bool
    found: dict[str, Any]
    world: dict[str, Any]
    spent: float
    files: dict[Any, Any] = field(default_factory=dict)
    seconds: float = 0.0
    functions: list[syntax.FunctionDef] = field(init=False)

    def __post_init__(self) -> None:
        self.functions = [
            t for t in self.trees if isinstance(t, syntax.FunctionDef) and not t.decorators
        ]

    @property
    def text(self) -> str:
        return self.source.text.strip("\n")

    @property
    def title(self) -> str:
        """The first line, marked when there are more."""
        first, _, rest = self.text.partition("\n")
        return f"{first} ..." if rest.strip() else first


@dataclass(slots=True)
class Outcome:
    """What an entry did: names it assigned, the value of a last bare expression, warnings."""

    assigned: list[str] = field(default_factory=list)
    value: Any = None
    has_value: bool = False
    warnings: list[Diagnostic] = field(default_factory=list)


def differentiates(trees: list[syntax.Node]) -> bool:
    return any(calls_backward(tree) for tree in trees)  # type: ignore[arg-type]  # any tree is walked


def imports(trees: list[syntax.Node]) -> bool:
    """Whether statements have an import line: then they are Python."""
    return bool(trees) and syntax.has_import(syntax.Module(trees, trees[0].span))


def bound_names(tree: syntax.Node) -> list[str]:
    """Names a statement assigns, in the order of its text."""
    if isinstance(tree, syntax.Assign):
        return [name for target in tree.targets for name in target_names(target)]
    return sorted(assigned_names([tree])[0])
