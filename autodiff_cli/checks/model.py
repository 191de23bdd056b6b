"""What a check is asked to do and what it found: plain data that goes between processes.

Invariant: nothing here holds a graph node, so every value can be pickled.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from ..defaults import MAX_MEMORY, MAX_STEPS, TIMEOUT
from ..errors import Diagnostic, Exit

PASSED, FAILED, KINK, CUT, NOISY, ERROR = "passed", "failed", "kink", "cut", "noisy", "error"
SKIPPED, XFAILED = "skipped", "xfailed"

# One letter of progress for each status.
LETTERS = {
    PASSED: ".", FAILED: "F", KINK: "k", CUT: "c", NOISY: "n", ERROR: "E", SKIPPED: "s",
    XFAILED: "x",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Settings:
    """What is checked, and how; the same for every file of one call.

    `plain` writes a report in the plain form: the renderer lies above this layer, and is needed
    only to write snapshots. `accept` decides on one change of a review. `opened`: what is taken of
    files with more rows than fit into memory.
    """

    gradients: bool = True
    order: Literal[1, 2] = 1
    seed: int = 0
    keyword: str = ""
    only: tuple[str, ...] = ()  # ids of items, or those of all items of a kind: `file::grad`
    snapshot: bool = False
    update: bool = False
    prune: bool = False
    full: bool = False
    collect: bool = False
    ci: bool = False
    against: Literal["", "torch"] = ""
    nan: Literal["error", "warn", "ignore"] = "error"
    defines: tuple[tuple[str, str, bool], ...] = ()
    timeout: float | None = TIMEOUT
    max_memory: int = MAX_MEMORY
    max_steps: int = MAX_STEPS
    plain: Callable[..., str] | None = None
    opened: Callable[[str, str | None], Any] | None = None


@dataclass(slots=True)
class Item:
    """One thing that was checked: `file::kind[name]`."""

    file: str
    kind: str
    name: str = ""
    line: int = 1
    status: str = PASSED
    diagnostic: Diagnostic | None = None
    seconds: float = 0.0
    note: str = ""

    @property
    def label(self) -> str:
        """`grad[x]`, `run`: what `-k` matches besides the file."""
        return f"{self.kind}[{self.name}]" if self.name else self.kind

    @property
    def id(self) -> str:
        return f"{self.file}::{self.label}"

    @property
    def bad(self) -> bool:
        return self.status in (FAILED, ERROR)


@dataclass(slots=True)
class FileResult:
    """Everything that one file gave. `changes` are texts to be written, as (path, old, new); old
    None for a new file, new None for one to be removed."""

    file: str
    items: list[Item] = field(default_factory=list)
    seconds: float = 0.0
    changes: list[tuple[str, str | None, str | None]] = field(default_factory=list)
    arrays: tuple[str, dict[str, Any]] | None = None
    warnings: list[Diagnostic] = field(default_factory=list)
    unreadable: bool = False

    @property
    def exit_code(self) -> Exit:
        codes = [
            Exit.NO if item.diagnostic is None else item.diagnostic.exit_code
            for item in self.items
            if item.bad
        ]
        return Exit.worst([Exit.USAGE] if self.unreadable else codes)
