"""A program run under observation and then explained; what goes wrong is in the result too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from ..autograd.rules import ones_like
from ..autograd.tensor import Tensor
from ..checks.watched import Watched
from ..errors import AutodiffError, fault
from ..graph.dtypes import is_float
from ..graph.node import Node
from ..graph.sizes import not_single
from ..graph.state import STATE
from ..language.errors.exhaustion import Exhaustion
from ..language.program.report import Options
from ..language.program.running import calls_backward
from ..language.program.variables import named_tensors, objective_of
from ..source import Source, Span
from .build import explain
from .model import Explanation, Request
from .record import Seeds


class Observed(Watched):
    """A program whose assignments before its last backward are kept, and for the places where a
    mask is true the mask and which of its dims they are of."""

    def __init__(self, source: Source, options: Options):
        super().__init__(source, options, trace=True)
        self.before: list[tuple[str, Span, Node]] = []
        self.whole: bool  # every element of a result that is no number
        self.masks: dict[int, tuple[Node, int, np.ndarray]] = {}

    def run(self) -> None:
        STATE.readers.append(self._chosen)
        try:
            super().run()
        finally:
            STATE.readers.remove(self._chosen)

    def _chosen(self, node: Node, value: Any) -> Any:
        if node.dtype.kind == "b" and isinstance(value, np.ndarray) and value.dtype.kind == "i":
            before, dim, _ = next(reversed(self.masks.values()), (None, 0, None))
            dim = (dim + 1) % node.ndim if before is node else 0
            self.masks[id(value)] = node, dim, value
        return value

    def _differentiated(self, seeds: Seeds) -> None:
        super()._differentiated(seeds)
        self.before, self.history = self.history, []

    def _upstream(self, loss: Tensor) -> Tensor | None:
        if self.whole and self.options.grad_output is None:
            return Tensor(ones_like(loss.node))
        return super()._upstream(loss)

    @property
    def assigned(self) -> list[tuple[str, Node]]:
        return [(name, node) for name, _, node in (*self.before, *self.history)]


R = TypeVar("R")  # plain data with `stdout`, `warnings`, `more_errors`


def explain_source(source: Source, options: Options, request: Request) -> Explanation:
    """Run a program and explain its last backward pass, or that of what `request.of` names."""

    def make(program: Observed, seeds: Seeds, objective: str) -> Explanation:
        return explain(
            program, request, seeds, objective=objective, assigned=program.assigned,
            backwards=program.backwards,
        )  # fmt: skip

    return under_observation(
        source, options, request, make, lambda error: Explanation(source.name, error=error)
    )


def under_observation(
    source: Source,
    options: Options,
    request: Request,
    make: Callable[[Observed, Seeds, str], R],
    failed: Callable[[AutodiffError], R],
    *,
    whole: bool = False,
) -> R:
    """Run a program, and make something of what it differentiated last; `whole`: the result may
    have any shape."""
    program = Observed(source, replace(options, loss=request.of, wrt=request.wrt))
    program.whole = whole
    found: Any
    try:
        with Exhaustion("the explanation", "choose fewer: --wrt"):
            program.run()
            seeds, objective = _differentiated(program, request)
            STATE.write = lambda piece: None  # hooks may print, and they are called again
            found = make(program, seeds, objective)
    except AutodiffError as error:
        found = failed(error)
        found.more_errors = program.more_errors
    STATE.grad_read.clear()
    found.stdout = "".join(program.printed)
    found.warnings = [*STATE.warnings, *found.warnings]
    result: R = found
    return result


def _differentiated(program: Observed, request: Request) -> tuple[Seeds, str]:
    """What is explained, and its name."""
    names = {tensor.node: name for name, tensor in reversed(named_tensors(program).items())}
    bound = {node: name for name, node in program.assigned}
    if request.of is not None and program.tree is not None and calls_backward(program.tree):
        objective = objective_of(program, request.of, "explanation")
        for seeds in reversed(program.passes):
            if [node for node, _ in seeds] == [objective.node]:
                return seeds, objective.text
        node = objective.node
        one = ones_like(node) if program.whole else _one(node, objective.text)
        return [(node, one)], objective.text
    if not program.passes:
        program.observed(program.differentiate)
    if not program.passes:
        raise _nothing(program)
    seeds = program.passes[-1]
    if len(seeds) > 1:
        return seeds, ""
    node = seeds[0][0]
    return seeds, names.get(node) or bound.get(node) or ""


def _one(node: Node, name: str) -> Node:
    if node.numel != 1:
        raise not_single(
            node,
            f"an explanation needs a single number, but `{name}`",
            help="choose another: --of NAME",
        )
    return ones_like(node)


def _nothing(program: Observed) -> AutodiffError:
    """Why there is nothing to explain: no tensor requires grad, or none of them is one number."""
    results = [
        (name, value) for name, value in named_tensors(program).items()
        if isinstance(value, Tensor) and is_float(value.dtype)
        and value.requires_grad and not value.is_leaf
    ]  # fmt: skip
    if not results:
        return fault("E402 program-computes-nothing-tensor")
    name, value = max(results, key=lambda pair: pair[1].node.seq)
    shape = tuple(value.shape)
    return fault(
        "E401 objective-must-single-number", name, shape, value.node.numel, span=value.node.span
    )
