"""A plan that runs again: the steps of one evaluation, with other arrays in its arguments.

A recording holds no nodes, only kernels, constants and places. It may stand for the program that
built the graph as long as building it looked at no value of an argument: `looked_at` tells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any

import numpy as np

from ..errors import AutodiffError
from ..graph import op as ops
from ..graph.node import Node
from ..graph.op import Kind, Op
from .evaluate import too_large


class Given:
    """An array from outside, and whether its values were asked for."""

    __slots__ = ("array", "looked_at")

    def __init__(self, array: np.ndarray):
        self.array = array
        self.looked_at = False

    def look(self) -> np.ndarray:
        """The array; whoever asks while a graph is built depends on its values."""
        self.looked_at = True
        return self.array


ARGUMENT = Op("argument", Kind.SOURCE)
ARGUMENT.method = False
ARGUMENT.kernel = Given.look


def argument(array: np.ndarray) -> Node:
    """A node of an array that may be another one when the plan runs again."""
    return Node(ARGUMENT, (Given(array),), (), array.shape, array.dtype)


def looked_at(arguments: Iterable[Node]) -> bool:
    """Whether the value of an argument was asked for."""
    return any(node.args[0].looked_at for node in arguments)


STATIC, VALUE, VALUES = range(3)


class Step:
    """One call of a kernel.

    `places` are the registers of its operands when it takes nothing else; otherwise `form` says
    of each argument what it is: a static one, a register, or a tuple of such. `done` are the
    registers that nobody reads afterwards.
    """

    __slots__ = ("done", "form", "kernel", "places", "result", "span")

    def __init__(self, kernel: Callable[..., Any], result: int, span: Any):
        self.kernel = kernel
        self.result = result
        self.span = span
        self.places: tuple[int, ...] = ()
        self.form: tuple[tuple[int, Any], ...] = ()
        self.done: tuple[int, ...] = ()


class Recording:
    """The steps that lead from `arguments` to `targets`; `order` is their plan, not yet run."""

    def __init__(self, order: list[Node], arguments: list[Node], targets: list[Node]):
        self.constants: list[Any] = []
        self.steps: list[Step] = []
        self._place: dict[Node, int] = {}
        self.arguments = [self._new(node) for node in arguments]
        for node in order:
            if node not in self._place:
                self._add(node)
        self.targets = [self._at(node) for node in targets]
        del self._place
        self._let_go()

    def _new(self, node: Node, value: Any = None) -> int:
        at = self._place[node] = len(self.constants)
        self.constants.append(value)
        return at

    def _at(self, node: Node) -> int:
        """The register of a node; one whose value was known before is a constant."""
        at = self._place.get(node)
        return self._new(node, node.value) if at is None else at

    def _add(self, node: Node) -> None:
        body = node.body
        if body is not None:
            if type(body) is not tuple:
                self._place[node] = self._at(body)
            return
        if node.op is ops.LEAF:
            self._place[node] = self._at(node.inputs[0])
            return
        if node.op is ops.OUTPUT:
            parent, index = node.args
            if parent.body is not None:
                self._place[node] = self._at(parent.body[index])
                return
            step = Step(itemgetter(index), 0, node.span)
            step.places = (self._at(parent),)
        else:
            step = Step(node.op.kernel, 0, node.span)  # type: ignore[arg-type]  # sources are done
            if node.inputs is node.args:
                step.places = tuple([self._at(x) for x in node.inputs])
            else:
                step.form = tuple([self._formed(arg) for arg in node.args])
        step.result = self._new(node)
        self.steps.append(step)

    def _formed(self, arg: Any) -> tuple[int, Any]:
        if type(arg) is Node:
            return VALUE, self._at(arg)
        if type(arg) is tuple and any(type(part) is Node for part in arg):
            return VALUES, tuple([self._formed(part) for part in arg])
        return STATIC, arg

    def _let_go(self) -> None:
        """Note for each step the registers that are read there for the last time."""
        kept = {*self.arguments, *self.targets}
        kept.update(at for at, value in enumerate(self.constants) if value is not None)
        for step in reversed(self.steps):
            read = {*step.places, *_places(step.form), step.result}
            step.done = tuple(read - kept)
            kept |= read

    def run(self, arrays: list[np.ndarray]) -> list[Any]:
        """The targets' values for these arrays, of the shapes and dtypes of the first ones."""
        registers = self.constants.copy()
        for at, array in zip(self.arguments, arrays, strict=True):
            registers[at] = array
        with np.errstate(all="ignore"):
            for step in self.steps:
                try:
                    registers[step.result] = _run(step, registers)
                except AutodiffError as error:
                    raise error if error.span is not None else error.amend(span=step.span) from None
                except MemoryError:
                    raise too_large(step.span) from None
                for at in step.done:
                    registers[at] = None
        constants = self.constants
        return [
            registers[at] if constants[at] is None else registers[at].copy() for at in self.targets
        ]


def _places(form: tuple[tuple[int, Any], ...]) -> list[int]:
    places: list[int] = []
    for kind, what in form:
        if kind == VALUE:
            places.append(what)
        elif kind == VALUES:
            places.extend(_places(what))
    return places


def _run(step: Step, registers: list[Any]) -> Any:
    places = step.places
    if len(places) == 2:
        value = step.kernel(registers[places[0]], registers[places[1]])
    elif places:
        value = step.kernel(*[registers[at] for at in places])
    else:
        value = step.kernel(*_arguments(step.form, registers))
    if type(value) is np.ndarray:
        return value
    if type(value) is not tuple and type(value) is not list:
        return np.asarray(value) if isinstance(value, np.generic) else value
    return tuple([np.asarray(v) if isinstance(v, np.generic) else v for v in value])


def _arguments(form: tuple[tuple[int, Any], ...], registers: list[Any]) -> list[Any]:
    found: list[Any] = []
    for kind, what in form:
        if kind == STATIC:
            found.append(what)
        elif kind == VALUE:
            found.append(registers[what])
        else:
            found.append(tuple(_arguments(what, registers)))
    return found


__all__ = ["Recording", "argument", "looked_at"]
