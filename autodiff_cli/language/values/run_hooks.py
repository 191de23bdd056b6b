"""What the command line wants to know of a running program, and changes in it: `-D`, `--wrt`."""

from __future__ import annotations

from typing import Any

from ...autograd.tensor import Tensor
from ...graph.op import LEAF


class Overrides:
    """`-D` values by name; each replaces what the first assignment of its name would give."""

    __slots__ = ("values",)

    def __init__(self) -> None:
        self.values: dict[str, Any] = {}


OVERRIDES = Overrides()


class Shown:
    """The last bare expression at module level, for programs that are one expression."""

    __slots__ = ("printed", "span", "value")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.value: Any = None
        self.span: Any = None


SHOWN = Shown()


class Watch:
    """What the command line wants to know of assignments at module level: the last scalar that was
    computed, and names to differentiate with respect to (`wrt`)."""

    __slots__ = ("last", "wrt")

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self.last: tuple[str | None, Tensor] | None = None
        self.wrt: dict[str, None] = {}

    def note(self, name: str | None, value: Any) -> None:
        """A value was assigned at module level, or stood there on its own."""
        if type(value) is not Tensor:
            return
        if name in self.wrt:
            if not value.requires_grad:
                value.set_requires_grad(True)
            elif not value.is_leaf:
                value.retain_grad()
        node = value.looked_at
        if not node.shape and node.requires_grad and node.op is not LEAF:
            self.last = (name, value)


WATCH = Watch()
