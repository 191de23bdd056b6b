"""Why there is no gradient at all: where the way from the loss back to a tensor is cut.

Walks all dependencies, not only those that backward sees; numbers that left the graph are followed
by running the program again with other numbers at that place and looking whether the loss changes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..autograd.rules import ones_like
from ..autograd.tensor import Tensor
from ..checks.watched import target_names
from ..errors import AutodiffError
from ..graph.dtypes import is_float
from ..graph.node import Node
from ..graph.op import CONSTANT, LEAF, OUTPUT, value_of
from ..graph.state import grad_mode
from ..language.syntax import tree as syntax
from ..language.syntax.tree import walk
from ..language.values.dialect import kind_of
from ..source import Span
from .dependency_cuts import DETACHING, Ways, from_array
from .flow import Flow, pullback, reached
from .model import Cause
from .record import Binding, Exit, Place, Recorder
from .words import shown, shown_place

MOST_TRIALS = 12


class Missing:
    """The search for one tensor; `again(places)` runs the program with changed exits."""

    def __init__(
        self,
        program: Recorder,
        name: str,
        tensor: Any,
        again: Callable[[frozenset[Place]], Recorder | None],
    ):
        self.program = program
        self.name = name
        self.tensor = tensor
        self.again = again
        self.bindings = program.of(name)
        self.ways = Ways(program)

    # -- the answer -----------------------------------------------------------------------------

    def cause(self) -> Cause:
        """The first cause on the way from the loss to the tensor."""
        program = self.program
        failure = program.failure
        roots = program.roots
        if not isinstance(self.tensor, Tensor):
            return self._no_tensor(roots)
        targets = self._versions(self.tensor)
        no_rule = failure is not None and failure.code == "E404"
        found = self._without_rule(roots, targets) if no_rule else None
        if found is None and not targets.isdisjoint(reached(roots)):
            return self._reached()
        found = found or self._walk(roots, targets) or self._earlier(roots)
        found = found or self._left_as_numbers(targets)
        if found is None and not self.tensor.requires_grad:
            found = self.ways.cut(self.tensor.node)
        return found or self._not_reached(roots)

    def _versions(self, tensor: Tensor) -> set[Node]:
        """The nodes that a tensor is and, as a leaf that was stepped or changed in place, was."""
        found = {tensor.node}
        found.update(b.node for b in self.bindings if b.tensor is tensor)
        accumulator = tensor.accumulator
        if accumulator is not None:
            for node in self.ways.everything(self.program.roots):
                if node.op is LEAF and node.args[0] is accumulator:
                    found.add(node)
        if tensor.node.op is LEAF and tensor.node.inputs:
            found.update(n for n in tensor.node.inputs if n.op is CONSTANT)
        return found

    def _without_rule(self, roots: list[Node], targets: set[Node]) -> Cause | None:
        """The first op that backward cannot pass, because PyTorch has no derivative for it."""
        for node in self.ways.leading(roots, targets):
            whole, index = node.args if node.op is OUTPUT else (node, 0)
            if whole.op.vjp_rule is None or node.outputs is not None or not node.requires_grad:
                continue
            try:
                with grad_mode(False):
                    pullback(whole, {index: ones_like(node)})
            except AutodiffError:
                message = f"{shown(node.span)} has no derivative, backward cannot pass it"
                return Cause("flat-op", node.span, message)
        return None

    def _walk(self, roots: list[Node], targets: set[Node]) -> Cause | None:
        """The first node from the loss on that lets no gradient through; None when nothing leads
        there."""
        for node in self.ways.leading(roots, targets):
            if node in targets:
                if node.requires_grad:
                    continue
                return self._own(node)
            found = self.ways.cut(node)
            if found is not None:
                return found
        return None

    # -- numbers --------------------------------------------------------------------------------

    def _left_as_numbers(self, targets: set[Node]) -> Cause | None:
        """A place where numbers left the graph and still decide the loss."""
        before = self._numbers(self.program)
        tried: set[Place] = set()
        for exit in reversed(self.program.exits):
            if exit.place in tried or isinstance(exit.value, np.ndarray):
                continue
            if len(tried) == MOST_TRIALS:
                break
            if not self.ways.leading([exit.node], targets):
                continue
            tried.add(exit.place)
            other = self.again(frozenset({exit.place}))
            if other is None or self._numbers(other) != before:
                return self._exit(exit, targets)
        return None

    @staticmethod
    def _numbers(program: Recorder) -> list[Any]:
        return [np.asarray(value_of(node)).tolist() for node in program.roots]

    def _exit(self, exit: Exit, targets: set[Node]) -> Cause:
        text = shown(exit.span)
        node = exit.node
        if not is_float(node.dtype) or from_array(node):
            found = self._walk([node], targets)
            if found is not None:
                return found
        return Cause(
            "detached", exit.span, f"{text} takes numbers out of the graph: backward sees constants"
        )

    # -- the tensor itself ----------------------------------------------------------------------

    @property
    def bound(self) -> Span | None:
        """The first statement that bound the name to its tensor."""
        return next((b.span for b in self.bindings if b.tensor is self.tensor), None)

    @property
    def made(self) -> Span | None:
        """Where the name was given its tensor."""
        node, accumulator = self.tensor.node, self.tensor.accumulator
        if self.bound is not None or accumulator is None:
            return self.bound or node.span
        nodes = self.ways.everything([*self.program.roots, node])
        leaves = [n for n in nodes if n.op is LEAF and n.args[0] is accumulator]
        return (leaves or [node])[-1].span

    def _own(self, node: Node) -> Cause:
        """Why a tensor that does not require grad has no gradient."""
        name = self.name
        switched = self._switched_off(node)
        if switched is not None:
            return switched
        span = self.made
        forgotten = f"`{name}` was made without requires_grad=True"
        if node.op.key in DETACHING and not node.inputs[0].requires_grad:
            return Cause("requires-grad-false", span, forgotten)
        first = next((b.node for b in self.bindings if b.tensor is self.tensor), node)
        found = self.ways.cut(first) or self.ways.cut(node) or self._cut_behind(node)
        if found is not None:
            return found
        if self._written_as_constant():
            return Cause("requires-grad-false", span, f"`{name}` was written as a constant")
        if node.dtype.kind == "b":
            return Cause("comparison", span, f"`{name}` is a tensor of true and false")
        if not is_float(node.dtype):
            return Cause(
                "integer", span, f"`{name}` holds whole numbers ({node.dtype.name}): no gradient"
            )
        return Cause("requires-grad-false", span, forgotten)

    def _switched_off(self, node: Node) -> Cause | None:
        """Where the tensor, a leaf, was told to require no grad, before `node` was made of it."""
        for part in self.ways.everything([node]):
            if part.op.key != "detach" or part.inputs[0].op is not LEAF:
                continue
            if part.inputs[0].args[0] is self.tensor.accumulator:
                told = f"{shown(part.span)} switches off the gradient of `{self.name}`"
                return Cause("requires-grad-false", part.span, told)
        return None

    def _cut_behind(self, node: Node) -> Cause | None:
        """Where what a result was made of lost the gradient of something that has one."""
        for part in self.ways.everything([node])[1:]:
            if any(n.requires_grad for n in self.ways.everything([part])):
                found = self.ways.cut(part)
                if found is not None:
                    return found
        return None

    def _written_as_constant(self) -> bool:
        """Whether the program says `const(...)`."""
        text = "" if self.bound is None else self.bound.text.partition("=")[2].strip()
        return text.startswith(("const(", "stop_gradient("))

    def _reached(self) -> Cause:
        """Backward came to the tensor, and still its `.grad` is None."""
        tensor, span = self.tensor, self.made
        if tensor.requires_grad and not tensor.is_leaf:
            return Cause(
                "not-a-leaf",
                span,
                f"`{self.name}` is a result, not a leaf: its gradient is computed but not kept",
            )
        switched = None if tensor.requires_grad else self._switched_off(tensor.node)
        if switched is not None:
            return switched
        silent = self._silent()
        if silent is not None:
            text = f"the backward of {shown(silent.span)} returns None"
            return Cause("flat-op", silent.span, f"{text} for what `{self.name}` leads to")
        if self.program.failure is not None:
            return Cause("not-reached", span, f"backward failed before it came to `{self.name}`")
        if "backward" not in self.program.source.text and self.program.loss is None:
            text = "`autograd.grad` returns gradients and leaves"
            return Cause("not-reached", span, f"{text} `{self.name}.grad` None")
        cleared = self._cleared()
        return Cause(
            "not-reached",
            span,
            f"the gradient of `{self.name}` was computed and then cleared",
            places=() if cleared is None else ((cleared, "cleared here"),),
        )

    def _cleared(self) -> Span | None:
        """The last place of the program that may clear gradients."""
        found = None
        for part in syntax.walk(self.program.tree) if self.program.tree is not None else ():
            word = part.attr if isinstance(part, syntax.Attribute) else ""
            if word == "zero_grad" or (
                isinstance(part, syntax.Assign)
                and any(isinstance(t, syntax.Attribute) and t.attr == "grad" for t in part.targets)
            ):
                found = part.span
        return found

    def _silent(self) -> Node | None:
        """A function of the program, on the way, whose backward gave its operand nothing."""
        targets = self._versions(self.tensor)
        flow = Flow([pair for seeds in self.program.seeds for pair in seeds])
        if any(target in flow.cotangents for target in targets):
            return None
        for node in flow.cotangents:
            if node.op.key == "custom_function" and self.ways.leading([node], targets):
                return node
        return None

    def _earlier(self, roots: list[Node]) -> Cause | None:
        """The loss used what the name meant before."""
        everything = set(self.ways.everything(roots))
        used: Binding | None = None
        found: tuple[Binding, Binding] | None = None
        for binding in self.bindings:
            if binding.tensor is not self.tensor and binding.node in everything:
                used, found = binding, None
            elif used is not None and found is None and binding.tensor is not used.tensor:
                found = used, binding
        if found is None:
            return None
        used, following = found
        return Cause(
            "rebound",
            following.span,
            f"`{self.name}` now means another tensor than the loss used, which was made "
            f"{shown_place(used.span)}",
            places=((used.span, "the loss used this one"),),
        )

    def _not_reached(self, roots: list[Node]) -> Cause:
        loss = f"the loss ({shown(roots[0].span)})" if roots else "any loss"
        return Cause("not-reached", self.made, f"`{self.name}` is not used on the way to {loss}")

    def _no_tensor(self, roots: list[Node]) -> Cause:
        """The name means a Python number: it may have been a tensor."""
        value = self.tensor
        for exit in reversed(self.program.exits):
            if exit.value is value and not isinstance(value, bool):
                text = shown(exit.span)
                return Cause(
                    "detached", exit.span, f"`{self.name}` is the number of {text}, not a tensor"
                )
        span = assigned_at(self.program, self.name)
        used = self._earlier_tensor(roots)
        if used is not None:
            return Cause(
                "rebound",
                span,
                f"`{self.name}` now means {kind_of(value)}, not the tensor that the loss used",
                places=((used.span, "the loss used this one"),),
            )
        return Cause(
            "requires-grad-false",
            span,
            f"`{self.name}` is {kind_of(value)}, not a tensor with grad",
        )

    def _earlier_tensor(self, roots: list[Node]) -> Binding | None:
        everything = set(self.ways.everything(roots))
        return next((b for b in reversed(self.bindings) if b.node in everything), None)


def assigned_at(program: Recorder, name: str) -> Span | None:
    """The last statement of the module that assigns a name."""
    found = None
    for statement in walk(program.tree) if program.tree is not None else ():
        if name in target_names(statement):
            found = statement.span
    return found
