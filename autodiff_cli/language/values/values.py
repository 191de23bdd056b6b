"""What programs handle besides tensors and Python's own values.

The kinds of values are closed: Tensor, int, float, bool, str, None, tuple, list, dict, set, slice,
range, numpy.dtype and the classes here. Nothing else ever reaches a program.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache
from math import prod
from types import MethodType
from typing import Any

from ...errors import AutodiffError, fail
from ...graph.dtypes import BOOL, DTYPES, FLOAT64, INT64
from ...graph.node import Node
from ...graph.op import CAST, LEAF, OUTPUT, Op
from ...graph.params import check_device
from ...graph.state import STATE
from ...source import Span
from .providers import from_above


class Value:
    """What a program holds; messages never show how it is made here."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(from_above("values.formatting.represent")(self))


class Size(tuple):
    """`torch.Size`: a tuple of ints that prints as PyTorch's."""

    __slots__ = ()

    def numel(self) -> int:
        """Number of elements."""
        return prod(self)


# Ops whose numbers are tensors to PyTorch.
_NUMBERED = "add add_scaled div div_rounded fill_over index_written mul sub sub_scaled where"
_WITH_NUMBERS = frozenset(_NUMBERED.split())


def edges(nodes: Iterable[Node | None]) -> tuple[tuple[GradFn | None, int], ...]:
    """Functions of nodes, with which of their results is read; None for those without history."""
    found: list[tuple[GradFn | None, int]] = []
    for node in nodes:
        while node is not None and node.op is CAST and node.handle is None:
            node = node.inputs[0]
        if node is None or not node.requires_grad:
            found.append((None, 0))
        else:
            found.append((GradFn(node), node.args[1] if node.op is OUTPUT else 0))
    return tuple(found)


class GradFn(Value):
    """A node of the backward graph as PyTorch shows it: the op that made `node`, or what PyTorch
    applies `inside` before the last that it applies there."""

    __slots__ = ("inside", "node")

    def __init__(self, node: Node, inside: int = 0):
        self.inside = inside
        while node.op.key == "with_value":
            node = node.args[0]
        self.node = node.args[0] if node.op is OUTPUT else node

    @property
    def name(self) -> str:
        name = self.short_name
        inner = name in ("AccumulateGrad", "CopySlices", "CopyBackwards", "Error", "NotImplemented")
        return f"torch::autograd::{name}" if inner else name

    @property
    def short_name(self) -> str:
        return "AccumulateGrad" if self.is_leaf else self.node.grad_names.split()[self.inside]

    @property
    def described(self) -> str:
        """What Python shows between angle brackets; the address tells nodes apart, and is the same
        in every run."""
        of = "torch.autograd.function." if "own saving" in self.node.op.properties else ""
        number = STATE.addresses.setdefault((self.node.seq, self.inside), len(STATE.addresses))
        return f"{of}{self.short_name} object at {0x7F0000000000 + 48 * number:#x}"

    @property
    def is_leaf(self) -> bool:
        return self.node.op is LEAF

    @property
    def next_functions(self) -> tuple[tuple[GradFn | None, int], ...]:
        """The functions of the inputs, with which of their results is read."""
        if self.is_leaf:
            return ()
        node = self.node
        if self.inside + 1 < len(node.grad_names.split()):
            return ((GradFn(node, self.inside + 1), 0),)
        op, inputs = node.op, node.inputs
        if op.key == "copied":  # into new memory
            return (None, 0), *edges(inputs)
        if node.marks and node.marks.name == "AsStridedBackward0":  # one step, however many it was
            while inputs[0].op.view and inputs[0].op.key != "alias":
                inputs = inputs[0].inputs
        weak = any(x.weak for x in inputs)
        if op.key == "copy_slices":
            base, written, (view, rest, _) = node.args
            while written.op is op and written.args[0].inputs == (base,):
                base, written, (view, rest, _) = written.args  # of a view of a view, one step each
            first = written.inputs[0] if written.inputs else written
            if first.op is view and first.args[1:] == rest:  # changed in place, not copied
                return (*edges(inputs[:1]), *GradFn(written).next_functions[1:])
        if "own saving" in op.properties:
            return edges(node.args[0])
        if inputs[0].weak and op.key in ("add", "mul"):
            inputs = inputs[::-1]  # PyTorch puts the tensor first
        elif weak and (inputs[0].weak or op.key not in _WITH_NUMBERS):
            inputs = tuple(x for x in inputs if not x.weak)  # no tensors there
        elif self.short_name == "NotImplemented":
            inputs = tuple(x for x in inputs if x.requires_grad)
        else:
            for count, words in enumerate(("one edge", "two edges", "three edges"), 1):
                if words in op.properties:  # also of operands that are not given
                    return edges(node.args[at] for at in op.tensor_params[:count])
        return edges(x for x in inputs if x is None or x.weak or x.dtype.kind == "f")

    def get_attribute(self, name: str) -> Any:
        return from_above("torch.grad_functions.attribute")(self, name)

    def call(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        return from_above("torch.grad_functions.applied")(self, args)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GradFn) and (self.node, self.inside) == (other.node, other.inside)

    def __hash__(self) -> int:
        return hash(self.node)


class Namespace(Value):
    """A module as programs see it: `torch`, `torch.nn.functional`, `np`, `math`."""

    __slots__ = ("path",)

    def __init__(self, path: str):
        self.path = path


class Callee(Value):
    """What programs may call; Python's own functions that take functions may too."""

    __slots__ = ()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return from_above("values.functions.call_value")(self, list(args), kwargs)


class Instance:
    """A value of a class of the program or of the library; see `classes`."""

    __slots__ = ()

    def __repr__(self) -> str:  # of a message, which runs no code of the program
        return f"<{type(self).__name__} object>"


class TypeName(Callee):
    """A class that programs may name, call or give to isinstance: `torch.Tensor`, `int`."""

    __slots__ = ("dtype", "make", "matches", "members", "name")

    def __init__(
        self,
        name: str,
        matches: Callable[[Any], bool],
        make: Callable[..., Any] | None,
        **members: Any,
    ):
        self.name = name
        self.members = members  # what stands in the class itself: `dict.fromkeys`
        self.matches = matches
        self.make = make
        self.dtype = {"bool": BOOL, "int": INT64, "float": FLOAT64}.get(name)
        if name.startswith("numpy."):
            self.dtype = DTYPES.get(name.removeprefix("numpy."))


def instances(
    name: str, kinds: Any, make: Callable[..., Any] | None = None, **members: Any
) -> TypeName:
    """The type of the values that are instances of some types of Python's."""
    return TypeName(name, lambda value: isinstance(value, kinds), make, **members)


class Builtin(Callee):
    """A function of the language or a method of `owner`, written in Python; methods of one name
    and one owner are equal."""

    __slots__ = ("function", "name", "owner")

    def __init__(self, name: str, function: Callable[..., Any], owner: Any = None):
        self.name = name
        self.function = function
        self.owner = owner

    def __eq__(self, other: object) -> bool:
        if self.owner is None or not isinstance(other, Builtin):
            return self is other
        return self.owner is other.owner and self.name == other.name

    def __hash__(self) -> int:
        return id(self) if self.owner is None else hash((id(self.owner), self.name))


def builtins_of(table: Mapping[str, Callable[..., Any]]) -> dict[str, Builtin]:
    """Functions written in Python by their paths, as a program has them."""
    return {path: Builtin(path.rpartition(".")[2], f) for path, f in table.items()}


class Method(Builtin):
    """A function written in Python that is a method of a class of the library."""

    __slots__ = ()

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)


@cache
def _handle_type(cls: Any) -> TypeName:
    return TypeName(cls.path, lambda value: type(value) is cls, None)


class Handle:
    """What the registration of a hook returns; it is among `hooks` until removed."""

    __slots__ = ("hooks", "key")
    path = "torch.utils.hooks.RemovableHandle"

    def own_type(self) -> TypeName:
        cls: Any = type(self)
        return _handle_type(cls)

    def __init__(self, hooks: dict[int, Any], hook: Any):
        self.hooks = hooks
        self.key = STATE.hooked
        STATE.hooked += 1
        hooks[self.key] = hook

    def describe(self) -> str:
        return f"<{self.path} object at {id(self.hooks):#x}>"

    def enter(self) -> Handle:
        return self

    def leave(self, error: AutodiffError | None) -> bool:
        self.hooks.pop(self.key, None)
        return False

    def get_attribute(self, name: str) -> Any:
        if name == "remove":
            return Builtin("remove", lambda: self.leave(None) or None)
        if name == "hooks_dict_ref":
            return Builtin(name, lambda: self.hooks)
        if name == "id":
            return self.key
        raise fail("E207", f"a hook handle has no attribute `{name}`", help="it has `.remove()`")


class OpFunction(Callee):
    """An op as a value: `f = torch.relu`."""

    __slots__ = ("name", "ops")

    def __init__(self, name: str, ops: list[Op]):
        self.name = name
        self.ops = ops


class Scope:
    """Names of a running module, function or comprehension; lookups go outwards. What is outermost
    is a `function`: comprehensions assign to the names around them."""

    __slots__ = ("function", "names", "outer")

    def __init__(self, outer: Scope | None = None, function: bool = False):
        self.names: dict[str, Any] = {}
        self.outer = outer
        self.function = function or outer is None

    def outermost(self) -> Scope:
        """The scope of the module."""
        at = self
        while at.outer is not None:
            at = at.outer
        return at


class UserFunction(Callee):
    """A `def` or `lambda` with the scope it was made in."""

    __isabstractmethod__: bool
    __slots__ = (
        "__isabstractmethod__",
        "body",
        "defaults",
        "fields",
        "keyword_defaults",
        "name",
        "params",
        "scope",
        "span",
        "wrappers",
    )

    def __init__(
        self,
        name: str,
        params: Any,
        body: Callable[[Scope], Any],
        scope: Any,
        span: Span,
        defaults: list[Any],
        keyword_defaults: dict[str, Any],
    ):
        self.name = name
        self.params = params
        self.body = body
        self.scope = scope
        self.span = span
        self.defaults = defaults
        self.keyword_defaults = keyword_defaults
        self.wrappers: list[Any] = []
        self.fields: dict[str, Any] | None = None  # what the program keeps in it

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)


class GradMode(Callee):
    """`torch.no_grad()` and its kin: a context manager and a decorator. One that is about
    `inference` says so where it does not record, and ends it where it does."""

    __slots__ = ("before", "enabled", "inference", "name")

    def __init__(self, name: str, enabled: bool, inference: bool = False):
        self.name = name
        self.enabled = enabled
        self.inference = inference
        self.before: list[bool] = []

    def enter(self) -> tuple[bool, bool]:
        """Switch the modes; what they were."""
        before = STATE.grad or STATE.silenced, STATE.inference
        switch(self.enabled, not self.enabled if self.inference else STATE.inference)
        return before


def switch(recorded: bool, inference: bool) -> None:
    """Whether operations are recorded, and whether tensors are made in inference mode, in which
    none is."""
    if inference is not STATE.inference:
        if not STATE.inferred:
            from ...autograd.inference import check_inferred

            STATE.packing.insert(0, check_inferred)
        STATE.inferred.append(Node.counter())
    STATE.grad, STATE.silenced = recorded and not inference, recorded and inference
    STATE.inference = inference


class Device(Value):
    """`torch.device`: where tensors might live; only the CPU exists."""

    __slots__ = ("index", "type", "where")

    def __init__(self, type: str, index: int | None = None):
        self.type = type
        self.index = index
        self.where = type if index is None else f"{type}:{index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and self.where == other.where

    def __hash__(self) -> int:
        return hash(self.where)

    def describe(self) -> str:
        at = "" if self.index is None else f", index={self.index}"
        return f"device(type={self.type!r}{at})"

    def describe_text(self) -> str:
        return self.where

    def enter(self) -> Device:
        """Where tensors are made in a `with` block."""
        check_device(self)
        return self

    def leave(self, error: AutodiffError | None) -> bool:
        return False


CPU = Device("cpu")
STRIDED = "torch.strided"  # the layout of all tensors

# What `type(value).__name__` is in the program.
for kind, name in (
    (Builtin, "builtin_function_or_method"),
    (OpFunction, "builtin_function_or_method"),
    (Method, "method"),
    (UserFunction, "function"),
    (Namespace, "module"),
    (TypeName, "type"),
    (Device, "device"),
):
    kind.__name__ = name


def has(value: Any, name: str) -> bool:
    """Whether Python finds a special method in the type of a value (not in the type's type)."""
    return any(name in kind.__dict__ for kind in type(value).__mro__)


def is_callable(value: Any) -> bool:
    """Whether the value is a function or a type, which messages call by its name."""
    return isinstance(value, Builtin | OpFunction | UserFunction | TypeName)
