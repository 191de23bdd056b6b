"""Ops: how arguments are bound to a signature, and how nodes are made of them.

Binding gives every rule canonical arguments: dims are non-negative, sizes are tuples, tensors are
nodes, defaults are filled in. Kinds tell the engine what it may do with an op.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from ..errors import AutodiffError, fault
from ..numerals import short
from . import params
from .binding_cache import MOST_KNOWN, Known, key_of_call
from .declared import Declared
from .dtypes import BOOL, FLOAT16, FLOAT32, INT64, result_dtype
from .kinds import Kind, Promote
from .node import Node, Shape
from .params import REQUIRED, BindError
from .shapes import broadcast_shapes
from .sizes import ENDLESS, FITTING, MAX_DIMS, check_size, too_many_dims
from .state import STATE
from .symbolic_numbers import Given, Varying
from .walk import walk

# NumPy's names of keywords.
NUMPY_KEYWORDS = {"axis": "dim", "keepdims": "keepdim", "axes": "dims", "ddof": "correction"}


# Every application compares with these; a global is found faster than a member of an Enum.
FUNCTION, POINTWISE, COMPOSITE = Kind.FUNCTION, Kind.POINTWISE, Kind.COMPOSITE
SAME, FLOAT, LOGICAL = Promote.SAME, Promote.FLOAT, Promote.LOGICAL


class Op(Declared):
    """One entry of the table: binds arguments to its signature and makes nodes."""

    def bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Arguments in signature order, converted; raises `BindError` when they do not fit."""
        given = args
        n = len(args)
        if n == self.only_tensors and not kwargs:
            tensors = list(args)
            for i, value in enumerate(args):
                if type(value) is not Node:
                    simple = type(value) in params.NUMBERS
                    node = number(value) if simple else params.node_of(value)
                    if node is None:
                        break
                    tensors[i] = node
            else:
                if self.kind is not POINTWISE:
                    self._note(args, kwargs, tensors)
                return tensors
        variadic = self.variadic_at
        if 0 <= variadic < n - 1 and not isinstance(args[variadic], list | tuple):
            args = (*args[:variadic], tuple(args[variadic:]))
            n = len(args)
        if n > self.positional:
            raise params.too_many(self.positional, self.positional, n, "positional ")
        bound: list[Any] = [*args, *self.defaults[n:]]
        if kwargs:
            index = self.index
            for name, value in kwargs.items():
                at = index.get(name)
                if at is None:
                    alias = NUMPY_KEYWORDS.get(name, "")
                    at = index.get(alias)
                    if at is None or alias in kwargs:
                        raise params.unknown_keyword(name)
                if at < n:
                    raise params.given_twice(name)
                bound[at] = value
        first: Node | None = None
        refused: AutodiffError | None = None
        for i, param in enumerate(self.params):
            value = bound[i]
            if type(value) is Node and param.tensorial:
                if first is None:
                    first = value
                if param.annotation == "Tensor" or param.annotation == "Mask":
                    continue
            if value is None and param.annotation == "AllDims":
                value = () if i < n or not kwargs.keys().isdisjoint(("dim", "axis")) else None
            if value is REQUIRED:
                raise params.missing([param.name])
            try:
                bound[i] = value = param.convert(value, first)
            except AutodiffError as error:  # of the right kind; another kind goes before
                refused = refused or error
                continue
            if first is None and param.tensorial and value is not None:
                first = (value[0] if value else None) if type(value) is tuple else value
        if refused is not None:
            raise refused
        self._note(given, kwargs, bound)
        return bound

    def apply_cached(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Apply a call whose binding is cached, or return None."""
        if not self.known:
            return None
        key = key_of_call(args, kwargs)
        known = None if key is None else self.known.get(key)
        if known is None:
            return None
        inputs, rest = args[: known.count], known.rest
        shape, dtype = known.shape, known.dtype
        if dtype is None:
            result = self.apply([*inputs, *rest])
            if self.steady and type(result) is Node and result.inputs == inputs and not self.eager:
                known.shape, known.dtype = result.shape, result.dtype
            return result
        if shape and not self.view and FITTING.get(shape, ENDLESS) > STATE.max_bytes:
            check_size(shape, dtype)
        needs = dtype.kind == "f" and self._recorded(inputs)
        return Node(self, inputs + rest, inputs, shape, dtype, needs)

    def _note(self, args: tuple[Any, ...], kwargs: dict[str, Any], bound: list[Any]) -> None:
        """Keep how arguments were bound, when nodes come first and are as they were given."""
        known = self.known
        if known is None or len(known) >= MOST_KNOWN:
            return
        key = key_of_call(args, kwargs)
        if key is None:
            return
        count = 0
        while count < len(args) and bound[count] is args[count] and type(args[count]) is Node:
            count += 1
        rest = tuple(bound[count:])
        if count and not any(type(value) is Node for value in (*args[count:], *rest)):
            known[key] = Known(count, rest)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Apply to nodes (and numbers) as rules do; `BindError` becomes a diagnostic."""
        if not kwargs and len(args) == self.arity:
            if len(args) == 1:
                if type(args[0]) is Node:
                    return self.one(args[0])
            else:
                x, y = args
                if type(x) is Node:
                    if type(y) is Node:
                        return self.pair(x, y)
                    if type(y) in params.NUMBERS:
                        return self.pair(x, number(y))
        else:
            result = self.apply_cached(args, kwargs)
            if result is not None:
                return result
        try:
            bound = self.bind(args, kwargs)
        except BindError as error:
            raise fault("E205 error-2", self.name, error, self.signature()) from None
        return self.apply(bound)

    def apply(self, bound: list[Any]) -> Any:
        """Make the node (or nodes) of bound arguments."""
        kind = self.kind
        if kind is POINTWISE:
            arity = self.arity
            if arity == 2:
                return self.pair(bound[0], bound[1])
            return self.one(bound[0]) if arity else self._apply_pointwise(bound)
        try:
            return self._made(kind, bound)
        except AutodiffError as error:
            promoted = None if STATE.python or error.code != "E307" else self._in_floats(bound)
            if promoted is None:
                raise
            return self._made(kind, promoted)

    def _in_floats(self, bound: list[Any]) -> list[Any] | None:
        """The arguments with integer tensors in the dtype of the floats that they meet in a native
        program; None where there are not both."""
        floats = {x.dtype for x in self._inputs(tuple(bound)) if x.dtype.kind == "f"}
        found = list(bound)
        for i in self.tensor_params:
            parts = bound[i] if type(bound[i]) is tuple else (bound[i],)
            cast_parts = tuple([
                cast(x, next(iter(floats))) if x is not None and floats and x.dtype.kind == "i"
                else x for x in parts
            ])  # fmt: skip
            found[i] = cast_parts if type(bound[i]) is tuple else cast_parts[0]
        return found if len(floats) == 1 and found != bound else None

    def _made(self, kind: Kind, bound: list[Any]) -> Any:
        if self.check is not None:
            self.check(*bound)
        if kind is FUNCTION:
            result = self.body(*bound)  # type: ignore[misc]  # declared with the kind
            for note in STATE.callers:
                note(self, bound, result)
            return result
        args = tuple(bound)
        inputs = self._inputs(args)
        if kind is COMPOSITE:
            return self._apply_composite(args, inputs)
        result = self.shape_rule(*args)  # type: ignore[misc]  # declared with the kind
        if len(result) == 2 and isinstance(result[1], np.dtype):
            return self._make(args, inputs, result[0], result[1])
        return self._make_several(args, inputs, tuple(result))

    def _inputs(self, args: tuple[Any, ...]) -> tuple[Node, ...]:
        inputs: list[Node] = []
        for i in self.tensor_params:
            value = args[i]
            if type(value) is tuple:
                inputs.extend(v for v in value if v is not None)
            elif value is not None:
                inputs.append(value)
        return tuple(inputs)

    def _recorded(self, inputs: tuple[Node, ...]) -> bool:
        if STATE.grad and (self.vjp_rule is not None or self.kind is COMPOSITE):
            for node in inputs:
                if node.requires_grad:
                    return True
        return False

    def _make(
        self, args: tuple[Any, ...], inputs: tuple[Node, ...], shape: Shape, dtype: np.dtype
    ) -> Node:
        if not self.view:
            check_size(shape, dtype)
        elif len(shape) > MAX_DIMS:
            raise too_many_dims(shape)
        needs = dtype.kind == "f" and self._recorded(inputs)
        node = Node(self, args, inputs, shape, dtype, needs)
        if self.eager and known(node):
            value_of(node)
        return node

    def _make_several(
        self, args: tuple[Any, ...], inputs: tuple[Node, ...], outputs: Any
    ) -> tuple[Node, ...]:
        for shape, dtype in outputs:
            check_size(shape, dtype)
        node = Node(self, args, inputs, (), BOOL, self._recorded(inputs))
        node.outputs = outputs
        if self.eager and known(node):
            value_of(node)
        return results_of(node)

    def pair(self, x: Node, y: Node) -> Node:
        """The node of an op whose arity is 2."""
        if self.check is not None:
            self.check(x, y)
        shape = x.shape
        dtype = x.dtype
        promote = self.promote
        if (
            y.dtype is not dtype
            or y.shape != shape
            or (promote is not SAME and (promote is not FLOAT or dtype.kind != "f"))
        ):
            if y.shape != shape and y.shape:
                shape = broadcast_shapes(shape, y.shape) if shape else y.shape
            if FLOAT16 in (dtype, y.dtype) and self._rounds_late(x, y):
                return self._in_single(x, y)
            x, y, dtype = self._promoted(x, y)
        if shape and FITTING.get(shape, ENDLESS) > STATE.max_bytes:
            check_size(shape, dtype)
        needs = (
            (x.requires_grad or y.requires_grad)
            and STATE.grad
            and self.vjp_rule is not None
            and dtype.kind == "f"
        )
        args = (x, y)
        node = Node(self, args, args, shape, dtype, needs)
        if self.eager and known(node):
            value_of(node)
        return node

    def _rounds_late(self, x: Node, y: Node) -> bool:
        """Whether operands that were not float16 are as they are until the result is."""
        other = x.dtype is not y.dtype or x.weak is not y.weak
        late = other and "number in single" in self.properties
        return late and self._common_dtype([x, y]) is FLOAT16

    def _in_single(self, x: Node, y: Node) -> Node:
        """With float16 a number, and a second operand without dims, is not rounded before the
        result is, as in PyTorch's kernels; its derivative reads it as it is."""
        dtype = FLOAT32 if x.weak or not y.shape else FLOAT16
        body = cast(self.pair(cast(x, dtype), cast(y, dtype)), FLOAT16)
        node = Node(self, (x, y), (x, y), body.shape, FLOAT16, self._recorded((x, y)))
        node.body = body
        return node

    def _promoted(self, x: Node, y: Node) -> tuple[Node, Node, np.dtype]:
        """Two operands in the dtype that they meet in, and the dtype of the result."""
        common = x.dtype
        if y.dtype is not common:
            common = self._common_dtype([x, y])
        promote = self.promote
        if promote is FLOAT and common.kind != "f":
            common = STATE.default_dtype
        if promote is LOGICAL:
            return x, y, BOOL
        if x.dtype is not common:
            x = cast(x, common)
        if y.dtype is not common:
            y = cast(y, common)
        return x, y, common if promote is SAME or promote is FLOAT else BOOL

    def one(self, x: Node) -> Node:
        """The node of an op whose arity is 1."""
        if self.check is not None:
            self.check(x)
        shape = x.shape
        dtype = x.dtype
        promote = self.promote
        if promote is FLOAT:
            if dtype.kind != "f":
                dtype = STATE.default_dtype
                x = cast(x, dtype)
        elif promote is not SAME:
            dtype = BOOL
        if shape and FITTING.get(shape, ENDLESS) > STATE.max_bytes:
            check_size(shape, dtype)
        needs = x.requires_grad and STATE.grad and self.vjp_rule is not None and dtype.kind == "f"
        args = (x,)
        return Node(self, args, args, shape, dtype, needs)

    def _apply_pointwise(self, bound: list[Any]) -> Node:
        positions = self.tensor_params
        if self.check is not None:
            self.check(*bound)
        if len(positions) == 1:
            x = bound[positions[0]]
            shape = x.shape
            common = x.dtype
        else:
            nodes = [bound[i] for i in positions if bound[i] is not None]
            shape = nodes[0].shape
            for node in nodes:
                if node.shape != shape:
                    shape = broadcast_shapes(*[n.shape for n in nodes])
                    break
            common = self._common_dtype(bound)
        promote = self.promote
        if promote is SAME:
            dtype = common
        elif promote is FLOAT:
            dtype = common = common if common.kind == "f" else STATE.default_dtype
        else:
            dtype = BOOL
        if promote is not LOGICAL:
            for i in positions:
                value = bound[i]
                if value is not None and value.dtype is not common and self.params[i].promotes:
                    bound[i] = cast(value, common)
        args = tuple(bound)
        inputs = args if all(type(arg) is Node for arg in args) else self._inputs(args)
        if shape:
            check_size(shape, dtype)
        needs = dtype.kind == "f" and self._recorded(inputs)
        return Node(self, args, inputs, shape, dtype, needs)

    def _common_dtype(self, bound: list[Any]) -> np.dtype:
        """The dtype that promoting operands meet in; the common cases without the general rule."""
        if self.only_tensors == 2:
            x, y = bound
            if x.weak is not y.weak:
                strong, weak = (y, x) if x.weak else (x, y)
                if strong.dtype.kind == "f" or (
                    strong.dtype.kind == "i" and weak.dtype.kind != "f"
                ):
                    return strong.dtype
        return self.meeting_dtype(bound)

    def meeting_dtype(self, bound: Sequence[Any]) -> np.dtype:
        """The dtype in which PyTorch's rules of promotion bring the operands together."""
        given = [bound[i] for i in self.tensor_params if self.params[i].promotes]
        parts = [p for v in given if v is not None for p in (v if type(v) is tuple else (v,))]
        return result_dtype([(v.dtype, not v.shape, v.weak) for v in parts])

    def _apply_composite(self, args: tuple[Any, ...], inputs: tuple[Node, ...]) -> Any:
        floats = {x.dtype for x in inputs if x.dtype.kind == "f" and (x.shape or not x.weak)}
        mixed = "as its input" in self.properties and inputs[0].dtype is FLOAT16
        if mixed or (floats == {FLOAT16} and "rounds each step" not in self.properties):
            body = as_half(self.body(*[as_single(arg) for arg in args]))  # type: ignore[misc]  # declared with the kind
        else:
            body = self.body(*args)  # type: ignore[misc]  # declared with the kind
        needs = self._recorded(inputs)
        if type(body) is tuple:
            node = Node(self, args, inputs, (), BOOL, needs)
            node.body = body
            node.outputs = tuple((b.shape, b.dtype) for b in body)
            return results_of(node)
        node = Node(self, args, inputs, body.shape, body.dtype, needs and body.dtype.kind == "f")
        node.body = body
        return node


def as_single(argument: Any) -> Any:
    """An operand of a body in the dtype that PyTorch's kernels compute in: float32 for float16."""
    if type(argument) is tuple:
        return tuple([as_single(part) for part in argument])
    half = type(argument) is Node and argument.dtype is FLOAT16
    return cast(argument, FLOAT32) if half else argument


def as_half(body: Any) -> Any:
    """The results of such a body, rounded once."""
    if type(body) is tuple:
        return tuple([as_half(part) for part in body])
    return cast(body, FLOAT16) if body.dtype is FLOAT32 else body


def rounded_once(slope: Callable[..., Node]) -> Callable[..., Node]:
    """A slope as a kernel of PyTorch's, which computes those of half precision in single."""

    def computed(g: Node, *read: Any) -> Node:
        if g.dtype is not FLOAT16:
            return slope(g, *read)
        found: Node = as_half(slope(*[as_single(x) for x in (g, *read)]))
        return found

    return computed


class _Late:
    """Functions that upper layers provide; bound once when those layers are imported."""

    __slots__ = ("evaluate", "moves", "places_read")

    def __init__(self) -> None:
        self.evaluate: Callable[[list[Node]], None] | None = None
        self.places_read: Callable[[Node], Sequence[int]] | None = None
        self.moves: Callable[[Node], bool] | None = None


LATE = _Late()


def value_of(node: Node) -> Any:
    """The array of a node, computed if it is not known yet."""
    if node.value is None:
        assert LATE.evaluate is not None
        LATE.evaluate([node])
    return node.value


def known(node: Node) -> bool:
    """Whether the value of a node can be asked for: it stands for no single example of many, and is
    not in blocks somewhere else."""
    if STATE.observer is not None and STATE.observer.is_blocked(node):
        return False
    since = STATE.batching
    if not since or node.value is not None:
        return True
    return all(n.op is not PLACEHOLDER for n in _behind(node))


def batched(node: Node) -> bool:
    """Whether a node has values of its own for each example that `vmap` maps over, be they equal:
    `zeros_like(example)` has."""
    return any(
        n.op is PLACEHOLDER or (n.marks is not None and n.marks.batched) for n in _behind(node)
    )


def _behind(node: Node) -> Iterator[Node]:
    since = STATE.batching
    return walk([node], lambda n: n.inputs if n.seq > since and n.value is None else ())


def decisive(name: str, node: Node) -> Any:
    """The array of a node by whose values an op has its shape; E203 inside vmap."""
    if STATE.batching and not known(node):
        raise fault("E203 vmap-shape-of-values", name=name)
    return value_of(node)


# -- source nodes: constants, leaves, casts, results of several-result nodes -----------------------


def _source(key: str) -> Op:
    op = Op(key, Kind.SOURCE)
    op.method = False
    return op


CONSTANT = _source("constant")
LEAF = _source("leaf")
OUTPUT = _source("output")
PLACEHOLDER = _source("placeholder")
OUTPUT.vjp_rule = lambda g, out, parent, index: (g,)
CAST = Op("cast", Kind.MOVEMENT)
CAST.method = False
CAST.kernel = lambda x, dtype: x.astype(dtype)
CAST.vjp_rule = lambda g, out, x, dtype: (cast(g, x.dtype),)
CAST.grad_fn = "ToCopyBackward0"
CAST.tensor_params = (0,)
CAST.properties = frozenset({"elementwise"})

_SMALL: dict[tuple[Any, type, np.dtype], Node] = {}


def constant(value: Any) -> Node:
    """A node of a known array; keeps its dtype."""
    STATE.made += value.nbytes
    return Node(CONSTANT, (), (), value.shape, value.dtype, False, value)


def number(value: bool | int | float | Varying, dtype: np.dtype | None = None) -> Node:
    """A Python number as a weak 0-d node; with `dtype` it is of that dtype already."""
    if type(value) is Varying:
        return varying(value, dtype)
    if dtype is None:
        kind = type(value)
        dtype = BOOL if kind is bool else INT64 if kind is int else STATE.default_dtype
    key = (value or str(value), type(value), dtype)  # 0.0 and -0.0 are equal
    node = _SMALL.get(key)
    if node is None:
        try:
            with np.errstate(over="ignore"):  # 1e308 is infinite in float32
                array = np.array(value, dtype)
        except (OverflowError, ValueError):  # of a NaN
            if dtype.kind not in "iu" or not -(1 << 63) <= value < 1 << 64:
                raise fault("E504 number-does-not-fit", short(value, 40), dtype) from None
            array = np.array(int(value) % (1 << 64), np.uint64).astype(dtype)  # as in C
        span, STATE.span = STATE.span, None
        node = Node(CONSTANT, (value,), (), (), dtype, False, array)
        STATE.span = span
        node.weak = True
        if len(_SMALL) == 4096:
            _SMALL.clear()
        _SMALL[key] = node
    return node


ARGUMENT = _source("argument")
ARGUMENT.kernel = Given.look


def argument(array: np.ndarray, of: Varying | None = None) -> Node:
    """A node of an array that may be another one when the plan runs again."""
    return Node(ARGUMENT, (Given(array, of),), (), array.shape, array.dtype)


def looked_at(arguments: Iterable[Node]) -> bool:
    """Whether the value of an argument was asked for: then a plan stands for this one alone."""
    return any(node.args[0].looked_at for node in arguments)


def varying(value: Varying, dtype: np.dtype | None) -> Node:
    """The node of a number that may be another one when the plan runs again."""
    if dtype is None:
        dtype = INT64 if type(value.value) is int else STATE.default_dtype
    return value.node(dtype, True)


def leaf(value: Any, accumulator: Any, requires_grad: bool = True) -> Node:
    """A leaf of the autograd graph. `value` is an array or a node whose value it takes on."""
    if isinstance(value, Node):
        return Node(LEAF, (accumulator, value), (value,), value.shape, value.dtype, requires_grad)
    return Node(LEAF, (accumulator, None), (), value.shape, value.dtype, requires_grad, value)


def cast(x: Node, dtype: np.dtype) -> Node:
    """`x` in another dtype; gradients come back in the first."""
    if x.dtype == dtype:
        return x
    if x.weak:
        known: Any = x.args[0] if x.args else x.value.item()
        if type(known) is Given:
            known = known.number
        return number(known, dtype)
    needs = STATE.grad and x.requires_grad and dtype.kind == "f"
    node = Node(CAST, (x, dtype), (x,), x.shape, dtype, needs)
    if x.op is CONSTANT and x.value is not None and not x.shape:
        node.value = x.value.astype(dtype)
    return node


def output(parent: Node, index: int) -> Node:
    """The `index`-th result of a node that has several."""
    shape, dtype = parent.outputs[index]  # type: ignore[index]  # only such nodes come here
    needs = parent.requires_grad and dtype.kind == "f"
    if type(parent.body) is tuple:
        needs = needs and parent.body[index].requires_grad
    return Node(OUTPUT, (parent, index), (parent,), shape, dtype, needs)


def results_of(parent: Node) -> tuple[Node, ...]:
    """Nodes for all results of a several-result node: fresh ones, but for those overwritten."""
    known = {} if parent.marks is None else parent.marks.results
    return tuple(known.get(i) or output(parent, i) for i in range(len(parent.outputs or ())))


params.LATE.number = number
params.LATE.value = value_of
