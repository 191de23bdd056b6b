"""What the command line wants to know of assignments at module level."""

from __future__ import annotations

from typing import Any

from ...autograd.tensor import Tensor
from ...graph.op import LEAF
from ...graph.state import STATE


def note(name: str | None, value: Any) -> None:
    """A value was assigned at module level, or stood there on its own."""
    if type(value) is not Tensor:
        return
    if name in STATE.wrt:
        if not value.requires_grad:
            value.set_requires_grad(True)
        elif not value.is_leaf:
            value.retain_grad()
    node = value.looked_at
    if not node.shape and node.requires_grad and node.op is not LEAF:
        STATE.last = (name, value)
