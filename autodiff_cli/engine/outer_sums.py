"""Long sums of outer products, as gradients of a matrix that was used in many places, some terms at
a time.

The terms are added one after the other, as they would be without this: results are equal bit for
bit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from copy import copy
from typing import Any, NamedTuple

import numpy as np

from ..ops.kernels.pytorch_sum_order import Note, noted

AT_ONCE = 24  # terms
FEWEST = 4
LONG = 64  # steps of a plan in which such sums are looked for
SMALLEST = 8  # elements of a term: sums of fewer could be added in another order
LARGEST = 2048

Kind = tuple[tuple[int, ...], np.dtype]  # of a register: its shape and dtype


class Link(NamedTuple):
    """`before + product`, the product being that of a `column` and a `row`."""

    place: int
    before: int
    product: int
    column: int
    row: int


def together(steps: list[Any], kinds: dict[int, Kind], kept: set[int]) -> list[Any]:
    """The steps with runs of `sum + column * row` in one step each. `kinds` are those of registers
    from outside, `kept` the registers that somebody else reads."""
    links = _links(steps, kinds, kept) if len(steps) >= LONG else {}
    if not links:
        return steps
    dropped: set[int] = set()
    merged: dict[int, Any] = {}
    made = {step.result: place for place, step in enumerate(steps)}
    for last in sorted(links, reverse=True):
        run: list[Link] = []
        at = last
        while at in links and links[at].place not in dropped and len(run) < AT_ONCE:
            run.append(links[at])
            at = links[at].before
        if len(run) >= FEWEST:
            dropped.update(link.place for link in run)
            dropped.update(made[link.product] for link in run)
            merged[run[0].place] = _merged(steps[run[0].place], run[::-1])
    return [
        merged.get(place, step)
        for place, step in enumerate(steps)
        if place in merged or place not in dropped
    ]


def _links(steps: list[Any], kinds: dict[int, Kind], kept: set[int]) -> dict[int, Link]:
    """By result, the sums that nobody else reads but the next one, and last ones."""
    kinds = kinds | {step.result: (step.shape, step.dtype) for step in steps}
    readers = Counter(at for step in steps for at in step.reads())
    outer: dict[int, tuple[int, int]] = {}
    links: dict[int, Link] = {}
    for place, step in enumerate(steps):
        if len(step.shape) != 2 or not SMALLEST <= step.shape[0] * step.shape[1] <= LARGEST:
            continue
        if len(step.places) != 2 or any(kinds[at][1] != step.dtype for at in step.places):
            continue
        a, b = step.places
        if step.kernel is np.multiply and readers[step.result] == 1 and step.result not in kept:
            height, width = step.shape
            for column, row in ((a, b), (b, a)):
                if kinds[column][0] == (height, 1) and kinds[row][0] in ((width,), (1, width)):
                    outer[step.result] = column, row
        elif step.kernel is np.add and a != b:
            for before, product in ((a, b), (b, a)):
                if product in outer and kinds[before][0] == step.shape:
                    if readers[before] > 1 or before in kept:
                        links.pop(before, None)  # its value is wanted: a run cannot pass it
                    links[step.result] = Link(place, before, product, *outer[product])
                    break
    return links


def _merged(step: Any, run: list[Link]) -> Any:
    """The last step of a run in place of all."""
    made = copy(step)
    made.kernel = _sum(len(run), step.shape)
    made.places = (run[0].before, *[x.column for x in run], *[x.row for x in run])
    made.pointwise, made.noted = False, True
    return made


def _sum(count: int, shape: tuple[int, ...]) -> Callable[..., np.ndarray]:
    height, width = shape
    columns, rows = (count, height, 1), (count, 1, width)

    def add(before: np.ndarray, *parts: np.ndarray, note: Note | None = None) -> np.ndarray:
        down = noted(note, np.concatenate, parts[:count], 0).reshape(columns)
        along = noted(note, np.concatenate, [part.reshape(width) for part in parts[count:]], 0)
        terms = noted(note, np.multiply, down, along.reshape(rows))
        noted(note, np.add, before, terms[0], out=terms[0])
        found: np.ndarray = noted(note, np.add.reduce, terms, 0, None)
        return found

    return add
