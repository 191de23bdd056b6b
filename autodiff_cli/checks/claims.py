"""Gradients that somebody else computed, compared with ours."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..errors import fault
from .beside_torch.departures import differs


def named(grads: Any, names: list[str]) -> dict[str, Any]:
    """Gradients by the names of their inputs; E205 when they cannot belong to them."""
    if isinstance(grads, Mapping):
        unknown = [name for name in grads if name not in names]
        if unknown:
            raise fault("E205 gradcheck-there-no-input", unknown, ", ".join(names))
        return dict(grads)
    if not isinstance(grads, tuple | list):
        grads = (grads,)
    if len(grads) != len(names):
        raise fault("E205 gradcheck-gradients-inputs", len(grads), len(names))
    return dict(zip(names, grads, strict=True))


def mismatch(name: str, claimed: Any, true: np.ndarray, rtol: float, atol: float) -> str | None:
    """Where a claimed gradient differs, in words; None when it does not."""
    try:
        array = np.asarray(claimed, dtype=np.float64)
    except (TypeError, ValueError):
        return f"the gradient of `{name}` is no array of numbers"
    text, _, rows = differs(array, np.asarray(true, np.float64), rtol, atol)
    if text is None:
        return None
    lines = [f"the gradient of `{name}` is wrong: {text}"]
    for index, ours, theirs, error in rows:
        lines.append(f"  at {index}: {ours} is claimed, it is {theirs} (difference {error})")
    return "\n".join(lines)
