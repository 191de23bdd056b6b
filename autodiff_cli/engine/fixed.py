"""A plan of small steps in memory that stays: one flat list of calls with all operands in place.

Every value has its array before the first run, views are made once, kernels that are made of
ufuncs are written out with the array of their result, and an array is used again as soon as its
last reader is done. A run copies the inputs in, makes the calls and copies the results out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import length_hint
from typing import Any

import numpy as np

from ..errors import AutodiffError
from .tracing import Place, Unknown, trace

MOST_BYTES = 8 << 20  # of all arrays of one plan, and those from outside that it keeps
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
    """The calls of a plan; `steps` are single kernels, `inputs` and `targets` registers."""

    def __init__(
        self,
        steps: list[Any],
        constants: list[Any],
        inputs: list[int],
        arrays: list[Any],
        targets: list[int],
    ):
        self.calls: list[Call] = []
        self.steps: list[Any] = []  # of each call the step it is part of
        self.bytes = 0
        self.copied: list[tuple[int, np.ndarray]] = []
        self.bound: list[tuple[int, np.ndarray]] = []
        values: list[Any] = list(constants)
        for number, (at, array) in enumerate(zip(inputs, arrays, strict=True)):
            values[at] = self._input(number, array)
        last = {at: n for n, step in enumerate(steps) for at in step.reads()}
        last.update(dict.fromkeys(targets, len(steps)))
        builder = _Builder(self, values, last)
        for n, step in enumerate(steps):
            builder.add(n, step)
        self.targets: list[Any] = [values[at] for at in targets]

    def _input(self, number: int, array: Any) -> np.ndarray:
        if type(array) is not np.ndarray:
            raise Unfit
        if array.nbytes > COPIED:
            held = array.base if isinstance(array.base, np.ndarray) else array
            self.take(held.nbytes)
            self.bound.append((number, array))
            return array
        own = np.array(array, order="K")
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


class _Builder:
    """Gives every value its array and writes the calls; `last` says which step reads a register
    for the last time."""

    def __init__(self, fixed: Fixed, values: list[Any], last: dict[int, int]):
        self.fixed = fixed
        self.values = values
        self.last = last
        self.roots: dict[int, Root] = {}
        self.ends: dict[int, list[Root]] = {}
        self.free: dict[tuple[Any, ...], list[np.ndarray]] = {}

    def add(self, n: int, step: Any) -> None:
        """Append the calls of a step."""
        values = self.values
        args = _filled(step.form, values) if step.form else [values[at] for at in step.places]
        if (step.moves and self._viewed(n, step, args)) or (
            step.pointwise and self._written_out(n, step, args)
        ):
            return
        if step.several:
            raise Unfit
        made = self._new(step.shape, step.dtype)
        if isinstance(step.kernel, np.ufunc):
            self._call(step, step.kernel, (*args, made))
        else:
            self._call(step, _assign, (made, step.kernel, tuple(args)))
        self._release(n)
        self._own(step.result, made)

    def _call(self, step: Any, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.fixed.calls.append((_KEYWORDS.get(function, function), args))
        self.fixed.steps.append(step)

    # -- memory -----------------------------------------------------------------------------------

    def _new(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        ready = self.free.get((shape, dtype))
        if ready:
            return ready.pop()
        made = np.empty(shape, dtype)
        self.fixed.take(made.nbytes)
        return made

    def _give_back(self, array: np.ndarray) -> None:
        self.free.setdefault((array.shape, array.dtype), []).append(array)

    def _own(self, at: int, array: np.ndarray) -> None:
        self.values[at] = array
        root = self.roots[at] = Root(array, self.last[at])
        self.ends.setdefault(root.last, []).append(root)

    def _release(self, n: int) -> None:
        """Give back the arrays that this step reads for the last time."""
        for root in self.ends.pop(n, ()):
            if root.last == n:
                self._give_back(root.array)

    # -- kinds of steps ---------------------------------------------------------------------------

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

    def _written_out(self, n: int, step: Any, args: list[Any]) -> bool:
        """Whether the step is made of ufuncs."""
        if isinstance(step.kernel, np.ufunc):
            self._release(n)
            made = self._new(step.shape, step.dtype)
            self._call(step, step.kernel, (*args, made))
            self._own(step.result, made)
            return True
        unknown = [Unknown(a.dtype) if isinstance(a, np.ndarray) else a for a in args]
        traced = trace(step.kernel, unknown, step.dtype)
        if traced is None or not traced[0]:
            return False
        instructions, result = traced
        values: list[Any] = [arg for arg in args if isinstance(arg, np.ndarray)]
        if result < len(values) or any(not isinstance(i.function, np.ufunc) for i in instructions):
            return False
        scratch: list[np.ndarray] = []
        for instruction in instructions:
            operands = [values[x.at] if type(x) is Place else x for x in instruction.operands]
            shape = np.broadcast_shapes(*[x.shape for x in operands])
            array = self._new(shape, instruction.dtype)
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


def _copied(value: Any) -> Any:
    return value.copy() if type(value) is np.ndarray else tuple([part.copy() for part in value])


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
