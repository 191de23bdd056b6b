"""Gradients that somebody else computed, compared with ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..errors import fault
from ..language.runtime.assertions import close_mask
from ..language.values.exceptions import Handed
from .beside_torch.departures import differs
from .slopes import KINK, RIGHT, STEP, Line

MOST = 1000  # elements that are looked at: a claim on a kink may be any slope between both sides


@Handed()
def inputs_by_name(inputs: Any) -> dict[str, np.ndarray]:
    """The arrays of a check; E205 when they have no names."""
    if not isinstance(inputs, Mapping):
        raise fault("E205 gradcheck-inputs-by-name", type(inputs).__name__)
    return {name: np.asarray(value) for name, value in inputs.items()}


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

        def at(t: Any, move: np.ndarray) -> float:
            return value(**{**arrays, name: here + float(t) * move})

        def kind(move: np.ndarray) -> str:
            scale = float(np.abs(here[move != 0]).max())
            line = Line(lambda t: at(t, move), at(0.0, move), scale, near_kink=True)
            return line.examine(float(np.vdot(move, array))).kind

        places = range(off.size) if off.size <= MOST else np.flatnonzero(off).tolist()
        units = [
            (np.arange(off.size) == place).reshape(off.shape).astype(float) for place in places
        ]
        kinks = [unit for unit in units if kind(unit) == KINK]
        fine = np.array(sum(kinks, off * 0.0), dtype=bool)
        before = at(0.0, fine)
        alone = {t: np.array([at(t, unit) - before for unit in kinks]) for t in (STEP, -STEP)}

        def together(signs: np.ndarray) -> bool:
            """Whether elements that move together, in these directions, have the claimed slope: as
            each has alone, or all of them."""
            move = np.zeros(off.shape)
            move[fine] = signs
            for t in alone:
                parts = np.where(signs == 1, alone[t], alone[-t])
                rest = at(t, move) - before - parts.sum()
                if abs(rest) > 1e-3 * (STEP + np.abs(parts).sum()):
                    return kind(move) in (KINK, RIGHT)
            return True

        # Any two of them move to different sides in one of these.
        number = np.arange(len(kinks))
        ways = [1 - 2 * (number >> bit & 1) for bit in range(len(kinks).bit_length())]
        if (off & ~fine).any():
            array[fine] = true[fine]  # what is wrong are the others
        elif all(map(together, [np.ones(len(kinks)), *ways])):
            return None
    text, _, rows = differs(array, np.asarray(true, np.float64), rtol, atol)
    if text is None:
        return None
    lines = [f"the gradient of `{name}` is wrong: {text}"]
    for index, ours, theirs, error in rows:
        lines.append(f"  at {index}: {ours} is claimed, it is {theirs} (difference {error})")
    return "\n".join(lines)
