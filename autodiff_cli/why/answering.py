"""From a program and a name to the answer: run it, look at the gradient, find the cause, and try
repairs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..autograd.tensor import Tensor
from ..errors import AutodiffError
from ..graph.node import Node
from ..graph.op import LEAF, value_of
from ..language.program.report import Options
from ..source import Source
from .flow import Flow
from .model import Answer, Cause
from .nonfinite import Birth, first_bad
from .record import Place, Recorder, lookup
from .structure import Missing
from .words import shown
from .zeros import TINY, Zeros, faded


class Inquiry:
    """One program that has run, and the question about one of its names."""

    def __init__(self, source: Source, name: str, options: Options):
        self.source = source
        self.options = options
        self.program = Recorder(source, options)
        self.program.run()
        self.name, self.tensor = lookup(self.program, name)

    # -- the gradient ---------------------------------------------------------------------------

    def gradient(self) -> Any:
        """What `NAME.grad` holds; None when there is none."""
        tensor = self.tensor
        if not isinstance(tensor, Tensor) or tensor.grad is None:
            return None
        return np.asarray(value_of(tensor.grad.node))

    def loss(self) -> float | None:
        """The loss, when it is one number."""
        roots = self.program.roots
        if not roots or roots[0].numel != 1:
            return None
        return float(np.asarray(value_of(roots[0])).reshape(()))

    def found(self) -> tuple[str, Cause]:
        """The verdict and its cause."""
        g = self.gradient()
        if g is None:
            return "none", Missing(self.program, self.name, self.tensor, self.again).cause()
        with np.errstate(all="ignore"):
            if np.isnan(g).any():
                return "nan", self._not_finite(np.isnan(g))
            if np.isinf(g).any():
                return "inf", self._not_finite(np.isinf(g))
            return self._zeros(g)

    def _zeros(self, g: Any) -> tuple[str, Cause]:
        exact, tiny = g == 0, np.abs(g) < TINY
        zero = "zero" if exact.all() else "partly-zero"
        fine = Cause("ok", None, f"nothing is wrong with the gradient of `{self.name}`: {size(g)}")
        if not tiny.any():
            return "ok", fine
        flow, target = self._flow()
        if target is None:
            return zero, self._changed_afterwards("zero")
        if tiny.all() and not exact.all():
            cause = faded(flow, self.name, target, tiny & ~exact)
            if cause is not None:
                return "zero", cause
        if exact.any() and not self._agrees(flow, target, exact):
            return zero, self._changed_afterwards("zero")
        if exact.any():
            found = Zeros(flow, self.name).cause(target, exact)
            cause = found or self._changed_afterwards("zero")
            if cause.code == "saturated" and tiny.all():
                zero = "zero"
            return zero, cause
        cause = faded(flow, self.name, target, tiny)
        return ("ok", fine) if cause is None else ("partly-zero", cause)

    def _not_finite(self, mask: Any) -> Cause:
        flow, target = self._flow()
        index = tuple(int(i) for i in np.argwhere(mask)[0])
        if target is not None:
            birth = Birth(flow, self.program.roots, self.name)
            cause = birth.cause(target, index)
            if cause is not None:
                return cause
        return self._changed_afterwards("not finite")

    def _changed_afterwards(self, what: str) -> Cause:
        """The gradient that backward left was another one: the program changed it itself."""
        node = self.tensor.grad.node
        if what == "zero":
            text = shown(node.span)
            return Cause("times-zero", node.span, f"{text} made the gradient zero after backward")
        origin = first_bad([node])
        if origin is not None and origin is not node and origin.span is not None:
            found = Birth(Flow([]), [node], self.name).forward(origin)
            code = found.code.replace("forward", "backward")
            return Cause(code, found.span, found.message)
        return Cause("nan-backward", node.span, f"{shown(node.span)} is not finite")

    def _flow(self) -> tuple[Flow, Node | None]:
        """The backward pass that reached the tensor, and the node that the tensor was in it."""
        passes = self.program.seeds
        if not passes:
            return Flow([]), None
        names = {binding.node: binding.name for binding in self.program.bindings}
        zero = self.gradient() == 0
        for seeds in (passes[-1], [pair for found in passes for pair in found]):
            flow = Flow(seeds, names)
            target = self._target(flow)
            if target is not None and self._agrees(flow, target, zero):
                return flow, target
        return flow, target

    @staticmethod
    def _agrees(flow: Flow, target: Node, zero: Any) -> bool:
        """Whether what is zero now was zero when backward came."""
        return not np.asarray(value_of(flow.cotangents[target]))[zero].any()

    def _target(self, flow: Flow) -> Node | None:
        tensor = self.tensor
        if tensor.node in flow.cotangents:
            return tensor.node
        nodes = (
            node
            for node in flow.cotangents  # newest first
            if (node.op is LEAF and node.args[0] is tensor.accumulator)
            or (node.marks is not None and tensor.accumulator in node.marks.slots)
        )
        return next(nodes, None)

    # -- running it again -----------------------------------------------------------------------

    @property
    def limited(self) -> Options:
        """The options of a run that should take about as long: other numbers may end no loop."""
        steps = min(self.options.max_steps, 4 * self.program.steps + 2000)
        return replace(self.options, max_steps=steps)

    def again(self, changes: frozenset[Place]) -> Recorder | None:
        """The program with other numbers at some places; None when that makes it fail."""
        other = Recorder(self.source, self.limited, changes)
        try:
            other.run()
        except AutodiffError:
            return None
        return other


def size(g: Any) -> str:
    """How large a gradient is."""
    if g.size == 1:
        return f"it is {float(g.reshape(())):.6g}"
    if not g.size:
        return "it has no elements"
    norm = float(np.linalg.norm(g.astype(np.float64).ravel()))
    return f"its norm is {norm:.6g}, its largest element {float(np.abs(g).max()):.6g}"


def why(
    source: Source, name: str, options: Options | None = None, *, repair: bool = True
) -> Answer:
    """The answer about the gradient of `name` when the program has ended.

    Raises:
        AutodiffError: the program has no tensor of that name, or fails before anything in it is
            differentiated.
    """
    options = options or Options()
    inquiry = Inquiry(source, name, options)
    verdict, cause = inquiry.found()
    fix = None
    if repair and verdict != "ok":
        from .repair import repaired

        fix = repaired(inquiry, verdict, cause)
    span = cause.span
    notes = []
    failure = inquiry.program.failure
    if failure is not None:
        at = "" if failure.span is None else f" in line {failure.span.line}"
        notes.append(f"the program stops{at}: {failure.message}")
        if cause.code == "not-reached":
            notes += [f"what helps there: {help}" for help in failure.helps[:1]]
    return Answer(
        inquiry.name,
        verdict,
        cause.code,
        None if span is None else span.line,
        cause.message,
        fix,
        span,
        cause.label,
        cause.places,
        tuple(notes),
    )
