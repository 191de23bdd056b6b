"""Graphs as PyTorch source: one call of a listed function a line, constants as data.

What is written holds nothing of a program's text: names are numbered, functions come from the table
of ops, every other value is a number, a word or a tuple of those. Invariant: a line is a call of
`torch.PATH` or a method, both out of `listed()`, a part of a tuple, or another name.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import numpy as np

from ..errors import AutodiffError, fault
from ..graph import op as ops
from ..graph.kinds import Kind
from ..graph.node import Node
from ..graph.op import Op, value_of
from ..graph.params import node_of
from ..graph.registry import OPS
from ..graph.state import STATE, grad_mode
from ..graph.walk import bottom_up
from ..ops import load_all

METHOD = "Tensor."
PLAIN = ("autograd.grad", "detach", METHOD + "to", METHOD + "__getitem__")


@cache
def listed() -> frozenset[str]:
    """Every function of PyTorch that can be written, by its path below `torch`."""
    load_all()
    return frozenset(PLAIN) | {path for op in OPS.values() if (path := path_of(op))}


def path_of(op: Op) -> str | None:
    """PyTorch's function of an op by its path below `torch`; None or "" when there is none."""
    own = op.counterpart
    if own is not None:
        return own if type(own) is str else None if callable(own) else own[0]
    if not op.public or op.kind is Kind.SOURCE or OPS.get(op.key) is not op:
        return None
    return METHOD + op.name if op.method and "." not in op.name else op.name


class Made:
    """What was applied and left no node of its own: an op that is a function, or `grad()` with its
    seeds and targets. `result` is what it gave: a node or a tuple."""

    __slots__ = ("args", "op", "result")

    def __init__(self, op: Op | None, args: tuple[Any, ...], result: Any):
        self.op = op
        self.args = args
        self.result = result


class Recording:
    """Notes while a program runs by which calls its nodes were made; `made` has the last one of
    each node."""

    def __init__(self) -> None:
        self.made: dict[Node, Made] = {}
        self.drawn = 0

    def __enter__(self) -> Recording:
        STATE.callers.append(self._called)
        return self

    def __exit__(self, *exc: object) -> None:
        STATE.callers.remove(self._called)

    def _called(self, op: Op, args: list[Any], result: Any) -> None:
        nodes = map(node_of, args)  # of tensors that an op took as they are
        given = (arg if node is None else node for arg, node in zip(args, nodes, strict=True))
        self._keep(Made(op, tuple(given), result))

    def derived(self, seeds: list[tuple[Node, Node]], found: dict[Node, Node]) -> None:
        """Told of every backward pass: what it differentiated, and what it gave for which node."""
        self._keep(Made(None, (tuple(seeds), tuple(found)), tuple(found.values())))

    def _keep(self, made: Made) -> None:
        newest = max((node.seq for node in nodes_in(made.args)), default=0)
        for part in nodes_in(made.result):
            if part.seq > newest:  # else it was there before, and is not made by this
                self.made[part] = made


def nodes_in(values: Any) -> list[Any]:
    """The nodes in nested tuples and lists."""
    found: list[Any] = []
    pending = [values]
    while pending:
        value = pending.pop()
        if type(value) is tuple or type(value) is list:
            pending.extend(value)
        elif type(value) is Node or type(value) is Made:
            found.append(value)
    return found


class Call:
    """A function of PyTorch with its arguments: nodes, values, and tuples of those. Without a path
    it is its first argument, or the part of it that the second one counts; without arguments it is
    data."""

    __slots__ = ("args", "named", "path")

    def __init__(self, path: str, args: tuple[Any, ...], named: dict[str, Any]):
        self.path = path
        self.args = args
        self.named = named

    def needs(self) -> list[Any]:
        """The nodes among the arguments."""
        return nodes_in((self.args, tuple(self.named.values())))

    def text(self, names: dict[Any, str]) -> str:
        args = [literal(value, names) for value in self.args]
        if not self.path:
            return args[0] if len(args) == 1 else f"{args[0]}[{args[1]}]"
        if self.path == METHOD + "__getitem__":
            return f"{args[0]}[{args[1]}]"
        args += [f"{key}={literal(value, names)}" for key, value in self.named.items()]
        if self.path.startswith(METHOD):
            return f"{args[0]}.{self.path.removeprefix(METHOD)}({', '.join(args[1:])})"
        return f"torch.{self.path}({', '.join(args)})"


class GraphSource:
    """Source that computes nodes: its `lines`, and the `data` that they read by name."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.data: dict[str, Any] = {}
        self.names: dict[Any, Any] = {}

    def name(self, node: Node) -> Any:
        """What stands for a node; what it is computed from is written first."""
        call = cache(self._call)
        for thing in bottom_up(node, lambda thing: call(thing).needs(), self.names):
            self._write(thing, call(thing))
        return self.names[node]

    def _call(self, thing: Any) -> Any:
        """What computes a node."""

    def _write(self, thing: Any, call: Any) -> None:
        """Add the lines of a node."""


class TorchSource(GraphSource):
    """The source in PyTorch, and the `leaves` among the data. W602 names an op that PyTorch has no
    function for. Nodes of `called` have names of their own."""

    def __init__(self, made: dict[Node, Made] | None = None, called: dict[Node, str] | None = None):
        super().__init__()
        self.leaves: list[str] = []
        self._made = made or {}
        self._called = called or {}

    def _write(self, thing: Any, call: Call) -> None:
        name = self._called.get(thing) or f"v{len(self.names)}"
        if not call.args and not call.path:
            self.data[name] = value_of(thing)
            if thing.requires_grad:
                self.leaves.append(name)
        else:
            text = call.text(self.names)
            text = f"torch.detach({text})" if type(thing) is Node and _cut(thing, call) else text
            self.lines.append(f"{name} = {text}")
        self.names[thing] = name

    # -- what a node is ---------------------------------------------------------------------------

    def _call(self, thing: Any) -> Call:
        if type(thing) is Made:
            if thing.op is not None:
                return _as_signed(thing.op, thing.args)
            seeds, targets = thing.args
            outputs, weights = tuple(n for n, _ in seeds), tuple(w for _, w in seeds)
            return Call(
                "autograd.grad",
                (outputs, targets, weights),
                {"create_graph": True, "materialize_grads": True},
            )
        if not thing.inputs or thing.op is ops.LEAF:
            return Call("", (), {})
        made = self._made.get(thing)
        if made is not None and _can_be_written(made):
            if made.result is thing and made.op is not None:
                return _as_signed(made.op, made.args)
            return Call("", (made, next(i for i, r in enumerate(made.result) if r is thing)), {})
        op: Op = thing.op
        own = op.counterpart
        if op is ops.OUTPUT:
            return Call("", thing.args, {})
        if op is ops.CAST:
            return Call(METHOD + "to", thing.args, {})
        if callable(own):
            with grad_mode(True):  # `_cut` looks at whether a step was recorded
                return Call("", (own(*thing.args),), {})
        if path_of(op):
            return _as_signed(op, thing.args)
        if thing.body is not None:
            return Call("", (thing.body,), {})
        name = op.name if OPS.get(op.key) is op else thing.grad_name
        raise fault("W602 no-counterpart-among-pytorch", name, span=thing.span)


def _can_be_written(made: Made) -> bool:
    """Whether a call can stand for its nodes: it has a name, arguments that can be written, and
    its result is a node or a tuple of nodes."""
    op, result = made.op, made.result
    if op is None:
        return True
    if not path_of(op) or len(nodes_in(result)) != (len(result) if type(result) is tuple else 1):
        return False
    names: Any = _Anything()
    try:
        _as_signed(op, made.args).text(names)
    except AutodiffError:
        return False
    return True


class _Anything:
    """A name for every node."""

    def __getitem__(self, node: Any) -> str:
        return "v"


def _cut(node: Node, call: Call) -> bool:
    """Whether PyTorch would record what was not recorded here."""
    if node.requires_grad or node.dtype.kind != "f" or node.outputs is not None:
        return False
    if call.path.endswith("detach"):
        return False
    return any(type(n) is Made or n.requires_grad or n.outputs is not None for n in call.needs())


def _as_signed(op: Op, args: tuple[Any, ...]) -> Call:
    """A call as the signature has it: tensors first, what is not the default by its name."""
    own = op.counterpart
    if type(own) is tuple:
        return Call(own[0], *own[1](*args))
    given: list[Any] = []
    named: dict[str, Any] = {}
    in_order = True  # whether nothing was left out so far
    for param, value in zip(op.params, args, strict=True):
        default = param.default
        if type(value) is tuple and value and value == (default,) * len(value):
            value = default  # of each dim
        elif param.annotation in ("Dims", "AllDims") and value and len(value) == 1:
            (value,) = value
        if type(value) is type(default) and value == default:
            in_order = False
        elif not in_order or param.keyword_only or not (param.tensorial or param.required):
            named[param.name] = value
            in_order = False
        elif param.annotation == "TensorList":
            given.extend(value)
        else:
            given.append(value)
    path = path_of(op)
    assert path is not None
    return Call(path, tuple(given), named)


def literal(value: Any, names: dict[Any, str]) -> str:
    """A value as PyTorch's source has it."""
    kind = type(value)
    if kind is Node or kind is Made:
        return names[value]
    if value is None or kind is bool or kind is str or (kind is int and abs(value) < 1 << 64):
        return repr(value)
    if kind is float:
        if math.isfinite(value):
            return repr(value)
        return f"torch.{value}".replace("torch.-", "-torch.")
    if isinstance(value, np.dtype):
        return f"torch.{value.name}"
    if kind is slice:
        parts = [literal(part, names) for part in (value.start, value.stop, value.step)]
        return f"slice({', '.join(parts)})"
    if kind is tuple or kind is list:
        inner = ", ".join(literal(part, names) for part in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    raise fault("W602 cannot-written-pytorch", kind.__name__)
