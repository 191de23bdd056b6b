"""`torch.autograd.Function`: a node whose value the program's `forward` made and whose rule is its
`backward`."""

from __future__ import annotations

from typing import Any

from ...autograd.data_mutation import shown
from ...autograd.forward import moves
from ...autograd.handles import wrap_view
from ...autograd.overwritten import changed_since, freed, overwritten_at
from ...autograd.rules import zeros_like
from ...autograd.tensor import Tensor
from ...autograd.transform_levels import Opened
from ...autograd.trees import flatten
from ...autograd.views import base_of
from ...errors import fault
from ...graph.dtypes import is_float
from ...graph.kinds import Kind
from ...graph.node import Node, tick
from ...graph.op import LEAF, OUTPUT, Op, output
from ...graph.params import REQUIRED, Param
from ...graph.registry import F
from ...graph.state import STATE, grad_mode, packs
from ...graph.strides import strides_of
from ...source import Span
from ..values.dialect import kind_of
from ..values.functions import call_value
from ..values.user_classes import UserClass, bind
from ..values.values import Builtin, UserFunction
from . import duals, function_maps
from .saved_values import beside, restored

# What methods of `ctx` are given, by where it is kept.
_KEEPING = {
    "save_for_backward": "saved",
    "save_for_forward": "for_forward",
    "mark_non_differentiable": "non_differentiable",
    "mark_dirty": "dirty",
}


class Context:
    """`ctx`: what forward leaves for backward; it is the backward function of the result too."""

    def __init__(self, needs_input_grad: tuple[bool, ...]):
        self.fields: dict[str, Any] = {}
        self.saved: tuple[Any, ...] = ()
        self.kept: list[Node | None] = []  # what the saved tensors showed when the call was over
        self.needs_input_grad = needs_input_grad
        self.non_differentiable: tuple[Any, ...] = ()
        self.dirty: tuple[Any, ...] = ()
        self.materialize = True
        self.for_forward: tuple[Any, ...] = ()
        self.moving = False  # whether `jvp` is running
        self.node: Node | None = None
        self.packed: tuple[Any, list[Any]] | None = None  # by hooks, and how to unpack it

    def delete_attribute(self, name: str) -> None:
        if name not in self.fields:
            raise fault("E207 no-attribute-can-deleted", "ctx", name=name)
        del self.fields[name]

    def check_saved(self) -> None:
        """Told of by the call of `apply`, as in PyTorch."""
        for at, tensor in enumerate(self.saved):
            if tensor is not None and not isinstance(tensor, Tensor):
                kind = type(tensor).__name__
                raise fault("E409 save_for_backward-takes-tensors", kind_of(tensor), at, kind)

    def finish(self, node: Node, replaced: dict[int, Tensor]) -> None:
        """The call is over: saved results are those that the program got."""
        self.node = node
        self.saved = tuple(replaced.get(id(t), t) for t in self.saved)
        self.kept = [None if t is None else t.node for t in self.saved]
        saves = STATE.inferred and not STATE.inference and node.requires_grad
        if saves and any(t is not None and t.inferred for t in self.saved):
            raise fault("E407 inference-tensor-cannot-saved", node.args[2])
        if packs():
            hooks = STATE.packing[-1].hooks
            before, STATE.packing = STATE.packing, []
            try:
                packed = [None if n is None else hooks.packed(n) for n in self.kept]
            finally:
                STATE.packing = before
            self.packed = hooks.unpacked, packed

    def _saved_tensors(self) -> tuple[Any, ...]:
        """What was saved, unless a backward used it up or it has changed since."""
        if self.moving:
            return self.for_forward
        marks = None if self.node is None else self.node.marks
        if self.node is not None and marks is not None and marks.freed:
            raise freed(self.node)
        if self.packed is not None:
            unpack, packed = self.packed
            return tuple(
                None if n is None else restored(n, unpack(held))
                for n, held in zip(self.kept, packed, strict=True)
            )
        for kept in self.kept:
            how = None if kept is None else overwritten_at(kept)
            if kept is not None and how is not None and how is not kept.mark().detached:
                raise changed_since(self.node or kept, kept, how)
        return tuple(
            tensor
            if kept is None or tensor.node is kept or kept.op is LEAF
            else beside(shown(kept, self.node or kept))
            for tensor, kept in zip(self.saved, self.kept, strict=False)  # none yet in forward
        )

    def get_attribute(self, name: str) -> Any:
        if name in ("saved_tensors", "saved_variables"):
            return self._saved_tensors()
        if name == "needs_input_grad":
            return self.needs_input_grad
        if name in _KEEPING:
            return Builtin(name, lambda *tensors: setattr(self, _KEEPING[name], tensors))
        if name == "set_materialize_grads":
            return Builtin(name, lambda value: setattr(self, "materialize", bool(value)))
        if name in self.fields:
            return self.fields[name]
        raise fault("E207 ctx-no-attribute", name=name)

    def set_attribute(self, name: str, value: Any) -> None:
        self.fields[name] = value


class Call:
    """One application of a custom Function: its class, ctx, the places of the arguments that were
    tensors, and the nodes of its results (None for what is no tensor)."""

    __slots__ = ("cls", "context", "count", "inputs", "name", "places", "results", "span")

    def __init__(
        self, cls: Any, context: Context, count: int, places: list[int], inputs: list[Node]
    ):
        self.cls = cls
        self.name = f"{cls.name}Generated" if STATE.levels else cls.name
        self.inputs = inputs
        self.context = context
        self.count = count
        self.places = places
        self.results: list[Node | None] = []
        self.span: Span | None = STATE.span

    def materializes(self, node: Node) -> bool:
        """Whether a result without a gradient gives backward zeros."""
        context = self.context
        if not context.fields.get("_materialize_non_diff_grads", True):
            frozen = any(t.node is node for t in context.non_differentiable)
            return context.materialize and not frozen
        return context.materialize

    def backward(self, grads: list[Tensor | None]) -> tuple[Node | None, ...]:
        """Run the program's backward; cotangents of the tensor arguments."""
        own, vjp = _static(self.cls, "backward"), _static(self.cls, "vjp")
        if own is not None and vjp is not None:
            raise fault("E409 defines-backward-vjp", self.cls.name)
        function = own or vjp
        if function is None:
            raise fault("E404 defines-no-backward", self.cls.name)
        with grad_mode(STATE.grad):
            found = call_value(function, [self.context, *grads], {})
        values = found if type(found) is tuple else (found,)
        if (len(values) != self.count and any(v is not None for v in values[self.count :])) or len(
            values
        ) < self.count:
            raise fault(
                "E409 function-backward-returned-incorrect", self.cls.name, self.count, len(values)
            )
        return tuple(self._checked(values[place], place) for place in self.places)

    def changes(self, given: list[Tensor | None]) -> tuple[Any, ...]:
        """How the results move when the tensor arguments do, as the program's `jvp` says."""
        function = _static(self.cls, "jvp")
        if function is None:
            raise _no_jvp(self.cls)
        context = self.context
        tangents: list[Tensor | None] = [None] * self.count
        for place, node, change in zip(self.places, self.inputs, given, strict=True):
            if change is None and context.materialize and is_float(node.dtype):
                change = Tensor(zeros_like(node))
            tangents[place] = change
        context.moving = True
        try:
            found = call_value(function, [context, *tangents], {})
        finally:
            context.moving = False
        values = found if type(found) is tuple else (found,)
        if len(values) != len(self.results):
            raise fault(
                "E409 jvp-returned-changes-results", self.cls.name, len(values), len(self.results)
            )
        return values

    def moved(self, changes: list[Node | None]) -> Any:
        """The same of nodes."""
        changed = bool(self.context.dirty)
        values = self.changes(
            [n if n is None else Tensor(F.alias(n) if changed else n) for n in changes]
        )
        parts = []
        for at, (value, result) in enumerate(zip(values, self.results, strict=True)):
            if result is None:
                continue
            part = self._checked(value, at)
            if part is not None and part.shape != result.shape:
                raise fault(
                    "E409 jvp-returned-change-shape",
                    self.cls.name,
                    list(result.shape),
                    list(part.shape),
                    part=part,
                    result=result,
                )
            parts.append(part)
        return parts[0] if len(parts) == 1 else tuple(parts)

    def _checked(self, value: Any, place: int) -> Node | None:
        if value is None:
            return None
        if not isinstance(value, Tensor):
            raise fault(
                "E409 backward-returned-gradient", self.cls.name, kind_of(value), place=place
            )
        return value.node


def _no_jvp(cls: UserClass) -> Exception:
    return fault("E404 defines-no-jvp", cls.name)


def _static(cls: UserClass, name: str) -> Any:
    return bind(cls.flat.get(name), None, cls)


def _rule(
    g: Any, out: Any, inputs: tuple[Node, ...], outputs: tuple[Node, ...], call: Call
) -> tuple[Any, Any]:
    given = iter(g if type(g) is tuple else (g,))
    grads: list[Tensor | None] = []
    for node in call.results:
        part = None if node is None else next(given)
        if part is None and node is not None and call.materializes(node):
            part = zeros_like(node) if is_float(node.dtype) else F.zeros_like(node)
        grads.append(None if part is None else Tensor(part))
    found = call.backward(grads)
    fitted = []
    for x, part in zip(inputs, found, strict=True):
        if part is not None and part.shape != x.shape:
            try:
                part = F.sum_to_size(part, x.shape)
            except Exception:
                raise fault(
                    "E409 function-backward-returned-gradient", call=call, part=part, x=x
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
CUSTOM.numpy = lambda inputs, outputs, call: "outputs" if len(outputs) > 1 else "outputs[0]"
CUSTOM.vjp_rule = _rule
CUSTOM.grad_fn = lambda inputs, outputs, call: f"{call.name}Backward"
CUSTOM.method = False
CUSTOM.properties = frozenset({"own saving"})


def apply(cls: UserClass, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`Class.apply(...)`: run forward without recording, then make one node for the whole."""
    forward = _static(cls, "forward")
    if forward is None:
        raise fault("E409 defines-no-forward", cls.name)
    setup = _static(cls, "setup_context")
    maps = None
    if STATE.levels:
        if setup is None:
            raise fault("E409 no-setup_context", cls.name)
        maps = function_maps.rule(cls)
        if maps is not None and any(isinstance(value, Tensor) for value in flatten(kwargs)):
            raise fault("E409 vmap-keyword-tensors", cls.name)
        if maps is not None and not isinstance(STATE.levels[-1], Opened):
            return function_maps.mapped(maps, lambda *given: apply(cls, given, kwargs), args)
    if setup is not None or kwargs:
        args, kwargs = _in_order(forward, args, kwargs, setup is None), {}
    places = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
    context = Context(tuple(isinstance(a, Tensor) and a.requires_grad for a in args))
    inputs = [args[i].node for i in places]  # as they were before forward changes any
    call = Call(cls, context, len(args), places, inputs)
    tangents = [duals.tangent_of(args[i]) for i in places] if STATE.dual else []
    span = STATE.span
    recorded = STATE.grad and any(node.requires_grad for node in inputs)
    with grad_mode(False), duals.untold():
        if setup is None:
            result = call_value(forward, [context, *args], kwargs)
        else:
            if maps is None:
                result = call_value(forward, list(args), kwargs)
            else:
                with function_maps.lowered():
                    result = apply(cls, args, kwargs)
            call_value(setup, [context, tuple(args), result], {})
    STATE.span = span
    if STATE.dual and _static(cls, "jvp") is None and any(map(moves, inputs)):
        raise _no_jvp(cls)
    if recorded:
        context.check_saved()
    if setup is not None:
        _check_returned(context, args, result)
    results = list(result) if type(result) is tuple else [result]
    tensors = [r for r in results if isinstance(r, Tensor)]
    _check_dirty(context, args, tensors)
    if not tensors:
        return result
    call.results = [r.node if isinstance(r, Tensor) else None for r in results]
    nodes = recorded_results(call, inputs, tensors, recorded)
    given = {id(args[i]): args[i] for i in places}
    with duals.untold():
        shown = shown_results(call, tensors, nodes, list(given.values()))
    pairs = [*zip(tensors, shown, strict=True)]
    replaced = {id(raw): own for raw, own in pairs}
    # A result that was given is another tensor each time, one that was made always the same.
    made = iter([own if id(raw) in given else replaced[id(raw)] for raw, own in pairs])
    outputs = [next(made) if isinstance(r, Tensor) else r for r in results]
    if any(tangent is not None for tangent in tangents):
        _move(call, tangents, [args[i] for i in places], tensors, nodes)
    node = nodes[0].args[0] if nodes[0].op is OUTPUT else nodes[0]
    if recorded:
        context.finish(node, {key: t for key, t in replaced.items() if key not in given})
    return tuple(outputs) if type(result) is tuple else outputs[0]


def _in_order(
    forward: Any, args: tuple[Any, ...], kwargs: dict[str, Any], context: bool
) -> tuple[Any, ...]:
    """The arguments of `forward` in the order of its parameters: after its `context`, if it takes
    one, those that are given, else all."""
    function = getattr(forward, "__func__", forward)
    if not isinstance(function, UserFunction):
        return args
    params = function.params
    bound: dict[str, Any] = {}
    before = context + (function is not forward)
    for name in kwargs:
        if name not in params.positional:
            raise fault("E205 forward-got-unexpected-keyword", name)
    params.bind(function, [None] * before + list(args), kwargs, bound)
    names = params.positional[before:]
    if context:
        names = names[: max(len(args), *(names.index(name) + 1 for name in kwargs))]
        for at, name in enumerate(names):
            if at >= len(args) and name not in kwargs:
                raise fault("E205 forward-misses", name, at)
    rest = () if params.rest is None else bound[params.rest]
    return (*[bound[name] for name in names], *rest)


def _check_returned(context: Context, args: tuple[Any, ...], result: Any) -> None:
    """E409 for an argument that is returned as it is and saved by `setup_context`."""
    kept = [t for t in (*context.saved, *context.for_forward) if t is not None]
    for part in result if type(result) is tuple else (result,):
        same = [any(part is t for t in tensors) for tensors in (kept, args, context.dirty)]
        if isinstance(part, Tensor) and same == [True, True, False]:
            raise fault("E409 argument-forward-returns-cannot")


_RETURNS_VIEW = "A custom Function's forward is returning a view (or an input as-is) but the jvp is"
_IN_PLACE = (
    "forward mode gradients {}. If the forward is modifying an input inplace, then the jvp "
    "function must modify the {}."
)


def _move(
    call: Call,
    tangents: list[Tensor | None],
    given: list[Tensor],
    results: list[Tensor],
    nodes: list[Node],
) -> None:
    """Run `jvp` on the tangents of a dual level; what it gives moves the results."""
    versions = [tangent and tangent.version for tangent in tangents]
    start = tick()
    found = call.changes(tangents)
    STATE.unmoved.append((start, tick()))  # a tangent has none itself
    made = iter(zip(results, nodes, strict=True))
    for at, (out, change) in enumerate(zip(call.results, found, strict=True)):
        if out is None:
            continue
        raw, node = next(made)
        context = call.context
        words = ""
        if not is_float(raw.dtype) or any(raw is t for t in context.non_differentiable):
            if change is not None:
                words = (
                    f"Function's jvp returned a gradient at position {at}, but  the corresponding "
                    "forward output is not a differentiable Tensor.You should return None at that "
                    "position instead."
                )
        else:
            for x, tangent, version in zip(given, tangents, versions, strict=True):
                if tangent is None or change is None:
                    continue
                if raw is x and any(raw is t for t in context.dirty):
                    if change.version == version:
                        words = "modifying the " + _IN_PLACE.format(
                            "inplace", "corresponding gradient inplace"
                        )
                    elif change is not tangent:
                        words = "returning the " + _IN_PLACE.format(
                            "as-is", "gradient inplace and return it as-is"
                        )
                    words = words and f"An inplace custom Function is not {words}"
                elif raw is x or (raw.storage is not None and raw.storage is x.storage):
                    base = base_of(change)
                    if base is None:
                        words = f"{_RETURNS_VIEW} not returning a view."
                    elif base is not (base_of(tangent) or tangent):
                        whose = "the given" if base_of(tangent) is None else "the same base as the"
                        words = (
                            "A custom Function is returning a view but the jvp is not returning a "
                            f"view of {whose} grad input."
                        )
        if words:
            raise fault("E409 jvp-does-not-do", call.cls.name, words)  # fmt: skip
        duals.give(node, change)


def _check_dirty(context: Context, args: tuple[Any, ...], results: list[Tensor]) -> None:
    """E405 for a leaf that forward changed in place, E409 for what it changed and kept back."""
    for tensor in context.dirty:
        if not any(tensor is r for r in results):
            raise fault("E409 what-marked-dirty-not")
        if STATE.grad and tensor.requires_grad and tensor.is_leaf:
            raise fault("E405 leaf-requires-grad-was")


_VIEW = "Output {} of {} is a view and is being modified inplace. {}"
_MADE_HERE = (
    "This view was created inside a custom Function (or because an input was returned as-is) and "
    "the autograd logic to handle view+inplace would override the custom backward associated with "
    "the custom Function, leading to incorrect gradients. This behavior is forbidden. You can fix "
    "this by cloning the output of the custom Function."
)
_SEVERAL = (
    "This view is the output of a function that returns multiple views. Such functions do not "
    "allow the output views to be modified inplace. You should replace the inplace operation by an "
    "out-of-place one."
)


def shown_results(
    call: Call, tensors: list[Tensor], nodes: list[Node], given: list[Tensor]
) -> list[Tensor]:
    """What shows the nodes of an application."""
    return [
        _shown(raw, node, call, given, at if len(tensors) > 1 else -1)
        for at, (raw, node) in enumerate(zip(tensors, nodes, strict=True))
    ]


def _shown(raw: Tensor, node: Node, call: Call, given: list[Tensor], at: int) -> Tensor:
    """The tensor that shows a result: the argument itself when forward changed it in place, a
    view when forward returned an argument or a view of it."""
    if any(raw is t for t in call.context.dirty):
        raw.write(node)
        return raw
    is_argument = any(raw is t for t in given)
    if not STATE.grad and (is_argument or raw.steps):
        return wrap_view(F.alias(raw.node), raw) if is_argument else raw
    shown = Tensor(node)
    if is_argument or any((raw.storage is not None and raw.storage is t.storage) for t in given):
        shown.storage = raw.share()
        step = (F.detach, (), -1)
        shown.steps = raw.steps.then(step)
        shown.seen = shown.storage.version
        shown.counter = raw.counted()
        shown.known_changes = shown.counter.count
        if node.requires_grad:
            shown.storage.set_apart(step, node)
        why = _MADE_HERE if at < 0 else _SEVERAL
        shown.forbids = _VIEW.format(max(at, 0), call.cls.name, why)
    return shown


def recorded_results(
    call: Call, inputs: list[Node], results: list[Tensor], recorded: bool
) -> list[Node]:
    """Nodes of the results: of one application when gradients are wanted."""
    nodes = tuple(r.node for r in results)
    if not recorded and not STATE.dual:
        return [F.alias(n) for n in nodes]
    frozen = [not recorded or any(r is t for t in call.context.non_differentiable) for r in results]
    args = (tuple(inputs), nodes, call)
    everything = (*inputs, *nodes)
    if len(nodes) == 1:
        needs = is_float(nodes[0].dtype) and not frozen[0]
        made = [Node(CUSTOM, args, everything, nodes[0].shape, nodes[0].dtype, needs)]
        made[0].strides = strides_of(nodes[0])
        return made
    parent = Node(CUSTOM, args, everything, (), nodes[0].dtype, recorded)
    parent.outputs = tuple((n.shape, n.dtype) for n in nodes)
    made = []
    for i, skip in enumerate(frozen):
        part = output(parent, i)
        part.strides = strides_of(nodes[i])
        if skip:
            part.requires_grad = False
        made.append(part)
    return made
