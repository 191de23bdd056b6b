"""How expressions, elements and numbers are written in answers."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..source import Span, shortened

LONGEST = 60


def shown(span: Span | None) -> str:
    """The text of an expression in one line, shortened."""
    if span is None:
        return "the value"
    return f"`{shortened(' '.join(span.text.split()), LONGEST)}`"


def shown_place(span: Span | None) -> str:
    return "elsewhere" if span is None else f"in line {span.line}"


def element(index: tuple[int, ...]) -> str:
    """`[1, 2]`; nothing for a single number."""
    return f"[{', '.join(map(str, index))}]" if index else ""


def number(value: Any) -> str:
    """A number as people write it."""
    return f"{float(value):.6g}"


def aligned(index: tuple[int, ...], shape: tuple[int, ...], whole: tuple[int, ...]) -> Any:
    """The element of an operand of `shape` that broadcasting brings to `index` of `whole`; None
    where shapes do not say."""
    if len(shape) > len(whole) or len(index) != len(whole):
        return None
    offset = len(whole) - len(shape)
    found = []
    for size, full, at in zip(shape, whole[offset:], index[offset:], strict=True):
        if size not in (1, full):
            return None
        found.append(0 if size == 1 else at)
    return tuple(found)


def first_index(mask: Any) -> tuple[int, ...]:
    """The first element of a mask that is set."""
    return tuple(int(i) for i in np.argwhere(mask)[0])
