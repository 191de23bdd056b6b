"""What stands in PyTorch for the ops that it does not have: functions of its tensors, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

OWN: dict[str, Callable[..., Any]] = {}
