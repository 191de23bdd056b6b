"""A plan of small steps in memory that stays: one flat list of calls with all operands in place.

Every value has its array before the first run, views are made once, what depends on no input is
computed once, kernels that are made of ufuncs are written out with the array of their result, and
an array is used again as soon as its last reader is done. Arrays are laid out as the kernels lay
them out: the order in which BLAS adds depends on it. A run copies the inputs in, makes the calls
and copies the results out (`turns`: or need not even do that).
"""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from operator import length_hint
from typing import Any

import numpy as np

from ...errors import AutodiffError
from ...graph.symbolic_numbers import layout
from ...ops.kernels.in_double import InDouble
from ..fused.tracing import Place, Unknown, trace

MOST_BYTES = 8 << 20  # of all arrays of one plan, and those from outside that it keeps
MOST_GAPS = 4  # times its own bytes that an array may be spread over
COPIED = 64 << 10  # bytes of an input up to which it is copied, not bound


Call = tuple[Callable[..., Any], tuple[Any, ...]]


class Unfit(Exception):
    """The plan cannot have fixed memory."""


class Root:
    """An array of the plan and the number of the last step that reads it or a view of it."""

    __slots__ = ("array", "last")

    def __init__(self, array: np.ndarray, last: int):
        self.array = array
        self.last = last


class Fixed:
    """The calls of a plan; `steps` are single kernels, `inputs` and `targets` registers.

    The first inputs may be in memory that the plan reads where it is, as many as there are arrays
    `into` which the first targets are written.
    """

    def __init__(
        self,
        steps: list[Any],
        constants: list[Any],
        inputs: list[int],
        arrays: list[Any],
        targets: list[int],
        into: Sequence[np.ndarray] = (),
    ):
        self.turn = allocate_lock()  # held by the thread that runs it
        self.calls: list[Call] = []
        self.steps: list[Any] = []  # of each call the step it is part of
        self.bytes = 0
        self.copied: list[tuple[int, np.ndarray]] = []
        self.bound: list[tuple[int, np.ndarray]] = []
        values: list[Any] = list(constants)
        for number, (at, array) in enumerate(zip(inputs, arrays, strict=True)):
            values[at] = array if number < len(into) else self._input(number - len(into), array)
        last = {at: n for n, step in enumerate(steps) for at in step.reads()}
        last.update(dict.fromkeys(targets, len(steps)))
        builder = _Builder(self, values, last, set(inputs))
        for at, array in zip(reversed(targets[: len(into)]), reversed(into), strict=True):
            builder.into[at] = array
        for n, step in enumerate(steps):
            builder.add(n, step)
        for at, array in zip(targets, into, strict=False):
            builder.moved(values[at], array)
        self.targets: list[Any] = [values[at] for at in targets[len(into) :]]

    def _input(self, number: int, array: Any) -> np.ndarray:
        if type(array) is not np.ndarray:
            raise Unfit
        if array.nbytes > COPIED:
            held = array.base if isinstance(array.base, np.ndarray) else array
            self.take(held.nbytes)
            self.bound.append((number, array))
            return array
        own = laid_out(array)
        own[...] = array
        self.copied.append((number, own))
        return own

    def take(self, size: int) -> None:
        """Count bytes that stay."""
        self.bytes += size
        if self.bytes > MOST_BYTES:
            raise Unfit

    # -- running ----------------------------------------------------------------------------------

    def fits(self, arrays: list[Any]) -> bool:
        """Whether the big inputs are the arrays that the calls are bound to."""
        return all(arrays[number] is array for number, array in self.bound)

    def run(self, arrays: list[Any]) -> list[Any]:
        """The targets' values, each in memory of its own."""
        for number, own in self.copied:
            own[...] = arrays[number]
        calls = iter(self.calls)
        try:
            for function, args in calls:
                function(*args)
        except AutodiffError as error:
            if error.span is None:
                at = len(self.calls) - length_hint(calls) - 1
                error.amend(span=self.steps[at].span)
            raise
        return [_copied(value) for value in self.targets]


@dataclass(eq=False)
class _Builder:
    """Gives every value its array and writes the calls, making each of them once; `last` says which
    step reads a register for the last time, `moving` are registers that differ from run to run."""

    fixed: Fixed
    values: list[Any]
    last: dict[int, int]
    moving: set[int]
    into: dict[int, np.ndarray] = field(default_factory=dict)
    roots: dict[int, Root] = field(default_factory=dict)
    ends: dict[int, list[Root]] = field(default_factory=dict)
    free: dict[tuple[Any, ...], list[np.ndarray]] = field(default_factory=dict)

    def add(self, n: int, step: Any) -> None:
        """Append the calls of a step."""
        values = self.values
        args = _filled(step.form, values) if step.form else [values[at] for at in step.places]
        moving = not self.moving.isdisjoint(step.reads())
        if step.moves and self._viewed(n, step, args):
            if moving:
                self.moving.add(step.result)
            return
        if not moving:
            self._once(step, args)
            return
        self.moving.add(step.result)
        if (step.pointwise and self._written_out(n, step, args)) or (
            step.noted and self._noted(n, step, args)
        ):
            return
        if step.several:
            raise Unfit
        made = self._new(step.kernel(*args), step.result)
        self._call(step, _assign, (made, step.kernel, tuple(args)))
        self._release(n)
        self._own(step.result, made)

    def moved(self, value: np.ndarray, array: np.ndarray) -> None:
        """A target goes into this array, unless it was made there."""
        if layout(value) != layout(array):
            raise Unfit  # the next run would not start from what this one gave
        if value is not array:
            array[...] = value
            self._call(None, np.copyto, (array, value))

    def _call(self, step: Any, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        if type(function) is InDouble:
            function = function.of(args[0].dtype)
        self.fixed.calls.append((_KEYWORDS.get(function, function), args))
        self.fixed.steps.append(step)

    # -- memory -----------------------------------------------------------------------------------

    def _new(self, like: Any, at: int | None = None) -> np.ndarray:
        """An array with the values and the layout of `like`, for that register."""
        like = np.asarray(like)
        made = self.into.get(at) if at is not None else None
        if made is None:
            ready = self.free.get(layout(like))
            if ready:
                made = ready.pop()
            else:
                made = np.empty_like(like)
                self.fixed.take(made.nbytes)
        elif layout(made) != layout(like):
            raise Unfit
        made[...] = like
        return made

    def _give_back(self, array: np.ndarray) -> None:
        self.free.setdefault(layout(array), []).append(array)

    def _own(self, at: int, array: np.ndarray) -> None:
        self.values[at] = array
        if at not in self.into:
            root = self.roots[at] = Root(array, self.last[at])
            self.ends.setdefault(root.last, []).append(root)

    def _release(self, n: int) -> None:
        """Give back the arrays that this step reads for the last time."""
        for root in self.ends.pop(n, ()):
            if root.last == n:
                self._give_back(root.array)

    # -- kinds of steps ---------------------------------------------------------------------------

    def _once(self, step: Any, args: list[Any]) -> None:
        """A value that is the same in every run."""
        made = step.kernel(*args)
        parts = made if isinstance(made, tuple | list) else (made,)
        for part in parts:
            self.fixed.take(part.nbytes)
        self.values[step.result] = (
            tuple([np.asarray(part) for part in parts]) if step.several else np.asarray(made)
        )

    def _viewed(self, n: int, step: Any, args: list[Any]) -> bool:
        """Whether the result is a view, or several, that can be made now."""
        made = step.kernel(*args)
        views = made if isinstance(made, tuple | list) else (made,)
        if not all(type(view) is np.ndarray for view in views):
            return False
        if not step.several and (made.shape, made.dtype) != (step.shape, step.dtype):
            return False
        sources = {at for at in step.reads() if _shared(self.values[at], views)}
        if len(sources) != 1:
            return False
        self.values[step.result] = tuple(made) if step.several else made
        root = self.roots.get(sources.pop())
        if root is not None:
            self.roots[step.result] = root
            if self.last[step.result] > root.last:
                root.last = self.last[step.result]
                self.ends.setdefault(root.last, []).append(root)
        self._release(n)
        return True

    def _noted(self, n: int, step: Any, args: list[Any]) -> bool:
        """Whether the kernel tells what it calls."""
        made: list[np.ndarray] = []

        def note(function: Any, operands: Any, like: np.ndarray, out: Any) -> Any:
            if out is None:
                out = self._new(like)
                made.append(out)
            else:
                self.fixed.take(out.nbytes)  # memory of the kernel's own
            self._call(step, function, (*operands, out))
            return out

        value = step.kernel(*args, note=note)
        if not made:
            return False
        last = made.pop()
        if not np.may_share_memory(value, last):
            raise Unfit
        if step.result in self.into:
            made.append(last)
            value = self._new(value, step.result)
            function, (*operands, out) = self.fixed.calls.pop()
            shown = value.reshape(last.shape)
            if out is not last or not np.may_share_memory(shown, value):
                raise Unfit
            self.fixed.calls.append((function, (*operands, shown)))
        self._release(n)
        for array in made:
            self._give_back(array)
        self._own(step.result, value)
        return True

    def _written_out(self, n: int, step: Any, args: list[Any]) -> bool:
        """Whether the step is made of ufuncs."""
        if hasattr(step.kernel, "nout"):
            like = step.kernel(*args)
            if like.size > 1:  # a number written over an operand costs NumPy a copy
                self._release(n)
            made = self._new(like, step.result)
            self._release(n)
            self._call(step, step.kernel, (*args, made))
            self._own(step.result, made)
            return True
        unknown = [Unknown(a.dtype) if isinstance(a, np.ndarray) else a for a in args]
        traced = trace(step.kernel, unknown, step.dtype)
        if traced is None:
            return False
        instructions, result = traced
        values: list[Any] = [arg for arg in args if isinstance(arg, np.ndarray)]
        if result < len(values) or any(not hasattr(i.function, "nout") for i in instructions):
            return False
        scratch: list[np.ndarray] = []
        for instruction in instructions:
            operands = [values[x.at] if type(x) is Place else x for x in instruction.operands]
            like = instruction.function(*operands)
            array = self._new(like, step.result if len(values) == result else None)
            scratch.append(array)
            values.append(array)
            self._call(step, instruction.function, (*operands, array))
        out = values[result]
        if out.shape != step.shape:
            raise Unfit
        for array in scratch:
            if array is not out:
                self._give_back(array)
        self._release(n)
        self._own(step.result, out)
        return True


def laid_out(like: np.ndarray) -> np.ndarray:
    """Memory for an array that lies as another one does, gaps included."""
    reach = [(n - 1) * step for n, step in zip(like.shape, like.strides, strict=True)]
    if not like.size or like.flags.c_contiguous:
        return np.empty(like.shape, like.dtype)
    before = -sum(min(step, 0) for step in reach)
    size = before + sum(max(step, 0) for step in reach) + like.itemsize
    if size < like.nbytes or size > MOST_GAPS * like.nbytes:
        raise Unfit  # elements that are one place in memory, or far apart
    return np.ndarray(like.shape, like.dtype, np.empty(size, np.uint8), before, like.strides)


def _copied(value: Any) -> Any:
    if type(value) is np.ndarray:
        return value.copy("K")
    return tuple([part.copy("K") for part in value])


def _shared(value: Any, views: Sequence[np.ndarray]) -> bool:
    """Whether a value, or one of several, may have memory in common with one of the views."""
    parts = value if isinstance(value, tuple) else (value,)
    return any(np.may_share_memory(part, view) for part in parts for view in views)


def _assign(out: np.ndarray, kernel: Callable[..., Any], args: tuple[Any, ...]) -> None:
    out[...] = kernel(*args)


# Passing `out` as the third positional argument is deprecated for these two.
_KEYWORDS: dict[Any, Callable[..., Any]] = {
    np.maximum: lambda a, b, out: np.maximum(a, b, out=out),
    np.minimum: lambda a, b, out: np.minimum(a, b, out=out),
}


def _filled(form: tuple[tuple[int, Any], ...], values: list[Any]) -> list[Any]:
    found: list[Any] = []
    for kind, what in form:
        if kind == 0:
            found.append(what)
        elif kind == 1:
            found.append(values[what])
        else:
            found.append(tuple(_filled(what, values)))
    return found
