"""`torch.autograd.Function`: a node whose value the program's `forward` made and whose rule is its
`backward`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd.reverse import changed_since, freed, overwritten_at, zeros_like
from ..autograd.tensor import Tensor
from ..errors import fail
from ..graph.dtypes import is_float
from ..graph.kinds import Kind
from ..graph.node import Node
from ..graph.op import OUTPUT, Op, output
from ..graph.params import REQUIRED, Param
from ..graph.registry import F
from ..graph.sizes import shape_text
from ..graph.state import STATE, grad_mode
from ..source import Span
from .classes import UserClass, Wrapped
from .functions import call_value
from .kinds import kind_of
from .saved_values import beside
from .values import Builtin


class Context:
    """`ctx`: what forward leaves for backward; it is the backward function of the result too."""

    __slots__ = (
        "dirty",
        "fields",
        "kept",
        "materialize",
        "needs_input_grad",
        "node",
        "non_differentiable",
        "saved",
        "used_up",
    )

    def __init__(self, needs_input_grad: tuple[bool, ...]):
        self.fields: dict[str, Any] = {}
        self.saved: tuple[Any, ...] = ()
        self.kept: list[Node | None] = []  # what the saved tensors showed when the call was over
        self.used_up = False  # told by the pass that runs backward
        self.needs_input_grad = needs_input_grad
        self.non_differentiable: tuple[Any, ...] = ()
        self.dirty: tuple[Any, ...] = ()
        self.materialize = True
        self.node: Node | None = None

    def _save(self, *tensors: Any) -> None:
        self.saved = tensors

    def _save_for_forward(self, *tensors: Any) -> None:
        """What a `jvp` of the program would read; slopes here come from its backward."""

    def check_saved(self) -> None:
        """Told of by the call of `apply`, as in PyTorch."""
        for tensor in self.saved:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise fail(
                    "E409",
                    f"save_for_backward takes tensors, not {kind_of(tensor)}",
                    help="keep other values as `ctx.name = value`",
                )

    def finish(self, node: Node | None, replaced: dict[int, Tensor]) -> None:
        """The call is over: saved results are those that the program got."""
        self.node = node
        self.saved = tuple(replaced.get(id(t), t) for t in self.saved)
        self.kept = [None if t is None else t.node for t in self.saved]

    def _saved_tensors(self) -> tuple[Any, ...]:
        """What was saved, unless a backward used it up or it has changed since."""
        if self.used_up and self.node is not None:
            raise freed(self.node)
        if not self.kept:
            return self.saved  # forward asks for them itself
        for kept in self.kept:
            how = None if kept is None else overwritten_at(kept)
            if kept is not None and how is not None:
                raise changed_since(self.node or kept, kept, how)
        return tuple(
            tensor if kept is None or tensor.node is kept else beside(kept)
            for tensor, kept in zip(self.saved, self.kept, strict=True)
        )

    def _mark(self, *tensors: Any) -> None:
        self.non_differentiable = tensors

    def _mark_dirty(self, *tensors: Any) -> None:
        self.dirty = tensors

    def _set_materialize(self, value: Any) -> None:
        self.materialize = bool(value)

    def get_attribute(self, name: str) -> Any:
        if name in ("saved_tensors", "saved_variables"):
            return self._saved_tensors()
        if name == "needs_input_grad":
            return self.needs_input_grad
        methods: dict[str, Callable[..., Any]] = {
            "save_for_backward": self._save,
            "save_for_forward": self._save_for_forward,
            "mark_non_differentiable": self._mark,
            "mark_dirty": self._mark_dirty,
            "set_materialize_grads": self._set_materialize,
        }
        method = methods.get(name)
        if method is not None:
            return Builtin(name, method)
        if name in self.fields:
            return self.fields[name]
        raise fail(
            "E207", f"ctx has no attribute `{name}`", help="set it in forward: `ctx.name = value`"
        )

    def set_attribute(self, name: str, value: Any) -> None:
        self.fields[name] = value

    def describe(self) -> str:
        return "<ctx>"


class Call:
    """One application of a custom Function: its class, ctx, the places of the arguments that were
    tensors, and the nodes of its results (None for what is no tensor)."""

    __slots__ = ("cls", "context", "count", "places", "results", "span")

    def __init__(self, cls: UserClass, context: Context, count: int, places: list[int]):
        self.cls = cls
        self.context = context
        self.count = count
        self.places = places
        self.results: list[Node | None] = []
        self.span: Span | None = STATE.span

    def backward(self, grads: list[Tensor | None]) -> tuple[Node | None, ...]:
        """Run the program's backward; cotangents of the tensor arguments."""
        function = _static(self.cls, "backward")
        if function is None:
            raise fail(
                "E404",
                f"`{self.cls.name}` defines no backward",
                help="write `@staticmethod def backward(ctx, g):`",
            )
        with grad_mode(STATE.grad):
            found = call_value(function, [self.context, *grads], {})
        values = found if type(found) is tuple else (found,)
        if (len(values) != self.count and any(v is not None for v in values[self.count :])) or len(
            values
        ) < self.count:
            raise fail(
                "E409",
                f"function {self.cls.name}Backward returned an incorrect number of gradients "
                f"(expected {self.count}, got {len(values)})",
                help="return one gradient for each argument of forward, None where there is none",
            )
        return tuple(self._checked(values[place], place) for place in self.places)

    def _checked(self, value: Any, place: int) -> Node | None:
        if value is None:
            return None
        if not isinstance(value, Tensor):
            raise fail(
                "E409",
                f"{self.cls.name}.backward returned {kind_of(value)} as gradient {place}",
                help="return tensors or None",
            )
        return value.node


def _static(cls: UserClass, name: str) -> Any:
    found = cls.lookup(name)
    return found.function if isinstance(found, Wrapped) else found


def _rule(
    g: Any, out: Any, inputs: tuple[Node, ...], outputs: tuple[Node, ...], call: Call
) -> tuple[Any, Any]:
    given = iter(g if type(g) is tuple else (g,))
    grads: list[Tensor | None] = []
    for node in call.results:
        part = None if node is None else next(given)
        if part is None and node is not None and call.context.materialize:
            part = zeros_like(node) if is_float(node.dtype) else F.zeros_like(node)
        grads.append(None if part is None else Tensor(part))
    found = call.backward(grads)
    fitted = []
    for x, part in zip(inputs, found, strict=True):
        if part is not None and part.shape != x.shape:
            try:
                part = F.sum_to_size(part, x.shape)
            except Exception:
                raise fail(
                    "E409",
                    f"function {call.cls.name}Backward returned a gradient of shape "
                    f"{shape_text(part.shape)} for an "
                    f"argument of shape {shape_text(x.shape)}",
                    help="a gradient has the shape of its argument",
                ) from None
        fitted.append(part)
    return tuple(fitted), tuple(None for _ in outputs)


CUSTOM = Op("custom_function", Kind.OPAQUE)
CUSTOM.declare_params(
    (
        Param("inputs", "Tensors", REQUIRED, False),
        Param("outputs", "Tensors", REQUIRED, False),
        Param("call", "Any", REQUIRED, False),
    )
)
CUSTOM.kernel = lambda inputs, outputs, call: outputs[0] if len(outputs) == 1 else tuple(outputs)
CUSTOM.vjp_rule = _rule
CUSTOM.grad_fn = lambda inputs, outputs, call: f"{call.cls.name}Backward"
CUSTOM.method = False
CUSTOM.properties = frozenset({"own saving"})


def apply(cls: UserClass, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`Class.apply(...)`: run forward without recording, then make one node for the whole."""
    forward = _static(cls, "forward")
    if forward is None:
        raise fail(
            "E409",
            f"`{cls.name}` defines no forward",
            help="write `@staticmethod def forward(ctx, x):`",
        )
    places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
    context = Context(tuple(isinstance(a, Tensor) and a.requires_grad for a in args))
    setup = _static(cls, "setup_context")
    call = Call(cls, context, len(args), places)
    span = STATE.span
    inputs = [args[i].node for i in places]  # as they were before forward changes any
    recorded = STATE.grad and any(node.requires_grad for node in inputs)
    with grad_mode(False):
        if setup is None:
            result = call_value(forward, [context, *args], kwargs)
        else:
            result = call_value(forward, list(args), kwargs)
            call_value(setup, [context, tuple(args), result], {})
    STATE.span = span
    context.check_saved()
    results = list(result) if type(result) is tuple else [result]
    tensors = [r for r in results if isinstance(r, Tensor)]
    if not tensors:
        return result
    call.results = [r.node if isinstance(r, Tensor) else None for r in results]
    nodes = _recorded(call, inputs, tensors, recorded)
    replaced = {
        id(raw): _shown(raw, node, context) for raw, node in zip(tensors, nodes, strict=True)
    }
    outputs = [replaced.get(id(r), r) for r in results]
    node = nodes[0].args[0] if nodes[0].op is OUTPUT else nodes[0]
    given = {id(args[i]) for i in places}
    context.finish(node, {key: t for key, t in replaced.items() if key not in given})
    return tuple(outputs) if type(result) is tuple else outputs[0]


def _shown(raw: Tensor, node: Node, context: Context) -> Tensor:
    """The tensor that shows a result: the argument itself when forward changed it in place."""
    if not any(raw is t for t in context.dirty):
        return Tensor(node)
    raw.write(node)
    return raw


def _recorded(call: Call, inputs: list[Node], results: list[Tensor], recorded: bool) -> list[Node]:
    """Nodes of the results: of one application when gradients are wanted."""
    nodes = tuple(r.node for r in results)
    if not recorded:
        return [F.alias(n) for n in nodes]
    frozen = [any(r is t for t in call.context.non_differentiable) for r in results]
    args = (tuple(inputs), nodes, call)
    everything = (*inputs, *nodes)
    if len(nodes) == 1:
        needs = is_float(nodes[0].dtype) and not frozen[0]
        return [Node(CUSTOM, args, everything, nodes[0].shape, nodes[0].dtype, needs)]
    parent = Node(CUSTOM, args, everything, (), nodes[0].dtype, True)
    parent.outputs = tuple((n.shape, n.dtype) for n in nodes)
    made = []
    for i, skip in enumerate(frozen):
        part = output(parent, i)
        if skip:
            part.requires_grad = False
        made.append(part)
    return made
