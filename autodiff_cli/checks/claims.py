"""Gradients that somebody else computed, compared with ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import fault
from ..language.runtime.assertions import close_mask
from ..language.values.exceptions import Handed
from .beside_torch.departures import differs
from .slopes import KINK, RIGHT, Line

MOST = 1000  # elements that are looked at: a claim on a kink may be any slope between both sides


@Handed()
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


def mismatch(
    name: str,
    claimed: Any,
    true: np.ndarray,
    rtol: float,
    atol: float,
    value: Callable[..., float],
    arrays: dict[str, np.ndarray],
) -> str | None:
    """Where a claimed gradient differs, in words; None when it does not. `value` is the function
    of the arrays."""
    try:
        array = np.array(claimed, dtype=np.float64)
    except (TypeError, ValueError):
        return f"the gradient of `{name}` is no array of numbers"
    off = ~close_mask(array, true, rtol, atol, True) if array.shape == true.shape else np.zeros(1)
    if 0 < off.sum() <= MOST:
        here = arrays[name]

        def kind(move: np.ndarray) -> str:
            def at(t: Any) -> float:
                return value(**{**arrays, name: here + float(t) * move})

            line = Line(at, at(0.0), float(np.abs(here[move != 0]).max()), near_kink=True)
            return line.examine(float(np.vdot(move, array))).kind

        places = np.flatnonzero(off).tolist()
        units = [(np.arange(off.size) == place).reshape(off.shape) * 1.0 for place in places]
        fine = [place for place, unit in zip(places, units, strict=True) if kind(unit) == KINK]
        if len(fine) < len(places):
            array.flat[fine] = true.flat[fine]  # what is wrong are the others
        elif kind(off * 1.0) in (KINK, RIGHT):
            return None
    text, _, rows = differs(array, np.asarray(true, np.float64), rtol, atol)
    if text is None:
        return None
    lines = [f"the gradient of `{name}` is wrong: {text}"]
    for index, ours, theirs, error in rows:
        lines.append(f"  at {index}: {ours} is claimed, it is {theirs} (difference {error})")
    return "\n".join(lines)
