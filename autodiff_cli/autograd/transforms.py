"""`torch.func`: functions made of functions, nested in any order.

`call` runs the function to transform on values of the language. Variables are opened as levels, so
an inner transform never sees the variables of an outer one as its own; results are settled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..errors import fail
from ..graph.node import Node
from ..graph.op import cast
from ..graph.registry import F
from ..graph.sizes import shape_text
from ..graph.state import STATE, grad_mode
from .batching import Trace
from .gradients import grad
from .levels import (
    DEPTH,
    Opened,
    forward_jacobian_of,
    jacobian_of,
    or_zeros,
    tensors_of,
)
from .reverse import gradients, ones_like, zeros_like
from .tensor import Tensor
from .trees import flatten, rebuilt, spread, tree_map

Call = Callable[[list[Any], dict[str, Any]], Any]
Argnums = int | tuple[int, ...]


class _Run:
    """A function applied to opened arguments: its variables, its output and what it returned
    beside it."""

    __slots__ = ("aux", "opened", "output")

    def __init__(
        self,
        name: str,
        call: Call,
        args: list[Any],
        kwargs: dict[str, Any],
        argnums: Argnums,
        has_aux: bool,
    ):
        places = (argnums,) if isinstance(argnums, int) else argnums
        wrapped = [_place(name, place, len(args)) for place in places]
        if len(set(wrapped)) < len(wrapped):
            raise fail(
                "E205", f"`{name}` got argnums={argnums} twice", help="name each argument once"
            )
        chosen: Any = (
            args[wrapped[0]] if isinstance(argnums, int) else tuple(args[i] for i in wrapped)
        )
        self.opened = Opened(chosen, name)
        args = list(args)
        parts = (self.opened.tree,) if isinstance(argnums, int) else self.opened.tree
        for place, value in zip(wrapped, parts, strict=True):
            args[place] = value
        with self.opened.entered(), DEPTH.deeper():
            result = call(args, kwargs)
        self.output, self.aux = _split(name, result, has_aux)

    def in_shape_of_inputs(self, leaves: list[Node]) -> Any:
        """A tree like that of the variables."""
        return rebuilt(self.opened.tree, [Tensor(leaf) for leaf in leaves])


def _place(name: str, place: Any, count: int) -> int:
    if type(place) is not int or not -count <= place < count:
        raise fail(
            "E205",
            f"`{name}` got argnum={place}, but {count} positional argument"
            f"{' was' if count == 1 else 's were'} given",
            help="argnums counts positional arguments from 0",
        )
    return place % count


def _split(name: str, result: Any, has_aux: bool) -> tuple[Any, Any]:
    if not has_aux:
        return result, None
    if not isinstance(result, tuple) or len(result) != 2:
        raise fail(
            "E208",
            f"`{name}` with has_aux=True needs a function that returns (output, aux)",
            help="return a tuple of two, or leave has_aux out",
        )
    for leaf in flatten(result[1]):
        if not isinstance(leaf, Tensor):
            raise fail(
                "E208",
                f"`{name}` with has_aux=True takes tensors beside the output, not "
                f"{type(leaf).__name__}",
                help="make it a tensor, or keep it in a variable outside",
            )
    return result


# -- grad ------------------------------------------------------------------------------------------


def grad_and_value(
    call: Call,
    args: list[Any],
    kwargs: dict[str, Any],
    argnums: Argnums,
    has_aux: bool,
    name: str = "grad_and_value",
) -> tuple[Any, Any, Any]:
    """Gradients in the structure of the chosen arguments, the value, and the aux."""
    run = _Run(name, call, args, kwargs, argnums, has_aux)
    output, opened = run.output, run.opened
    if not isinstance(output, Tensor):
        raise fail(
            "E208",
            f"`{name}` needs a function that returns a tensor, this one returned "
            f"{type(output).__name__}",
            help="return one scalar tensor; use has_aux=True for (loss, other)",
        )
    node = output.node
    if node.shape:
        raise fail(
            "E401",
            f"`{name}` needs a function that returns a scalar, this one returned shape "
            f"{shape_text(node.shape)}",
            help="reduce it: `.sum()` or `.mean()`; `jacrev` differentiates tensors",
        )
    found = _cotangents([(node, ones_like(node))], opened)
    grads = run.in_shape_of_inputs([opened.settled(g) for g in found])
    return grads, Tensor(opened.settled(node)), opened.settled_tree(run.aux)


def _cotangents(seeds: list[tuple[Node, Node]], opened: Opened) -> list[Node]:
    graph = opened.matters([n for pair in seeds for n in pair])
    seeds = [(node, g) for node, g in seeds if node.requires_grad]
    with grad_mode(graph):
        found = gradients(seeds, opened.nodes, create_graph=graph, retain_graph=True)
    return [zeros_like(x) if g is None else g for g, x in zip(found, opened.nodes, strict=True)]


# -- vjp and jvp -----------------------------------------------------------------------------------


def vjp(call: Call, primals: list[Any], has_aux: bool) -> tuple[Any, Callable[..., Any], Any]:
    """The output, the function of cotangents that pulls them back, and the aux."""
    run = _Run("vjp", call, primals, {}, tuple(range(len(primals))), has_aux)
    outputs = tensors_of(run.output, "a function given to `vjp`")
    opened = run.opened

    def pull(*cotangents: Any, **options: Any) -> Any:
        given = cotangents[0] if len(cotangents) == 1 else cotangents
        leaves = _matching("vjp_fn", given, run.output, "cotangents", "the output")
        seeds = [(out.node, leaf) for out, leaf in zip(outputs, leaves, strict=True)]
        found = _cotangents(seeds, opened)
        return run.in_shape_of_inputs([opened.settled(g) for g in found])

    return opened.settled_tree(run.output), pull, opened.settled_tree(run.aux)


def _matching(name: str, given: Any, like: Any, what: str, other: str) -> list[Node]:
    """The nodes of tensors that have structure and shapes of others."""
    wanted = flatten(like)
    leaves = flatten(given)
    if not isinstance(like, Tensor) and isinstance(given, Tensor) and len(wanted) == 1:
        given = like
    if len(leaves) != len(wanted) or isinstance(given, Tensor) != isinstance(like, Tensor):
        raise fail(
            "E205",
            f"`{name}`: the {what} do not have the structure of {other}: {len(leaves)} tensor"
            f"{'' if len(leaves) == 1 else 's'} for {len(wanted)}",
            help=f"give one tensor for each tensor of {other}, nested in the same way",
        )
    nodes = []
    for leaf, x in zip(leaves, wanted, strict=True):
        if not isinstance(leaf, Tensor):
            raise fail(
                "E208",
                f"`{name}`: the {what} must be tensors, not {type(leaf).__name__}",
                help="write `torch.tensor(1.0)`",
            )
        if leaf.shape != x.shape:
            raise fail(
                "E308",
                f"`{name}`: the {what} have shape {shape_text(leaf.shape)} where {other} has "
                f"{shape_text(x.shape)}",
                help="the shapes must be equal",
            )
        nodes.append(cast(leaf.node, x.dtype))
    return nodes


def jvp(call: Call, primals: Any, tangents: Any, has_aux: bool) -> tuple[Any, Any, Any]:
    """The output, its change along the tangents, and the aux."""
    for value, what in ((primals, "primals"), (tangents, "tangents")):
        if not isinstance(value, tuple):
            raise fail(
                "E205",
                f"`jvp` needs {what} as a tuple, not {type(value).__name__}",
                help="write `jvp(f, (x,), (v,))`",
            )
    if not flatten(primals):
        raise fail("E205", "`jvp` got no primals", help="write `jvp(f, (x,), (v,))`")
    for primal in flatten(primals):
        if not isinstance(primal, Tensor):
            raise fail(
                "E208",
                f"`jvp` takes tensors as primals, not {type(primal).__name__}",
                help="write `torch.tensor(...)` around it",
            )
    moves = _matching("jvp", tangents, primals, "tangents", "the primals")
    run = _Run("jvp", call, list(primals), {}, tuple(range(len(primals))), has_aux)
    outputs = tensors_of(run.output, "a function given to `jvp`")
    opened = run.opened
    changes = opened.linearized([out.node for out in outputs]).along(list(moves))
    change = rebuilt(run.output, [Tensor(opened.settled(c)) for c in changes])
    return opened.settled_tree(run.output), change, opened.settled_tree(run.aux)


def linearize(call: Call, primals: list[Any]) -> tuple[Any, Callable[..., Any]]:
    """The output, and the function of tangents that is its derivative here."""
    run = _Run("linearize", call, primals, {}, tuple(range(len(primals))), False)
    outputs = tensors_of(run.output, "a function given to `linearize`")
    opened = run.opened
    derivative = opened.linearized([out.node for out in outputs])

    def push(*tangents: Any) -> Any:
        moves = _matching("jvp_fn", tuple(tangents), tuple(primals), "tangents", "the primals")
        changes = derivative.along(list(moves))
        return rebuilt(run.output, [Tensor(opened.settled(c)) for c in changes])

    return opened.settled_tree(run.output), push


# -- Jacobians -------------------------------------------------------------------------------------


def jacobian(
    call: Call,
    args: list[Any],
    kwargs: dict[str, Any],
    argnums: Argnums,
    has_aux: bool,
    forward: bool,
) -> tuple[Any, Any]:
    """Jacobians in the structure of the output, in each place that of the chosen arguments."""
    name = "jacfwd" if forward else "jacrev"
    run = _Run(name, call, args, kwargs, argnums, has_aux)
    outputs = [out.node for out in tensors_of(run.output, f"a function given to `{name}`")]
    opened = run.opened
    found: Any = (
        forward_jacobian_of(opened, outputs)
        if forward
        else jacobian_of(outputs, opened.nodes, create_graph=opened.matters(outputs))
    )
    blocks = []
    for out, row in zip(outputs, found, strict=True):
        filled = [or_zeros(g, out, x) for g, x in zip(row, opened.nodes, strict=True)]
        blocks.append(run.in_shape_of_inputs([opened.settled(g) for g in filled]))
    rest = iter(blocks)
    return tree_map(lambda leaf: next(rest), run.output), opened.settled_tree(run.aux)


# -- vmap ------------------------------------------------------------------------------------------


def vmap(
    call: Call,
    args: list[Any],
    kwargs: dict[str, Any],
    in_dims: Any,
    out_dims: Any,
    randomness: str = "error",
) -> Any:
    """Run the function once, on placeholders for one example, and lift its results."""
    leaves = flatten(args)
    dims = _input_dims(in_dims, args, leaves)
    sources = [
        None if dim is None else _front(leaf.node, dim)
        for leaf, dim in zip(leaves, dims, strict=True)
    ]
    trace = Trace(_batch_size(leaves, dims))
    with trace.running(randomness != "error", randomness == "different"):
        examples = [
            leaf if source is None else Tensor(trace.placeholder(source))
            for leaf, source in zip(leaves, sources, strict=True)
        ]
        started = [
            e.node if s is not None else None for e, s in zip(examples, sources, strict=True)
        ]
        result = call(rebuilt(args, examples), kwargs)
    outputs = tensors_of(result, "a function given to `vmap`")
    nodes = [out.node for out in outputs]
    changed = [
        (leaf, example.node, dim)
        for leaf, example, dim, start in zip(leaves, examples, dims, started, strict=True)
        if start is not None and example.node is not start
    ]
    trace.lift([*nodes, *(node for _, node, _ in changed)])
    for leaf, node, dim in changed:
        leaf.write(_back(trace.full(node), dim))
    lifted = [
        Tensor(_placed(trace, node, dim))
        for node, dim in zip(nodes, _output_dims(out_dims, result), strict=True)
    ]
    return rebuilt(result, lifted)


def batched_grad(
    outputs: list[Tensor],
    inputs: list[Tensor],
    grad_outputs: list[Tensor | None],
    **options: Any,
) -> tuple[Tensor | None, ...]:
    """`torch.autograd.grad` with `is_grads_batched`: dim 0 of the cotangents counts examples."""
    given = [g for g in grad_outputs if g is not None]
    dims: list[int | None] = [0 if g.shape else None for g in given]
    trace = Trace(_batch_size(given, dims))
    with trace.running():
        seeds = [None if g is None else Tensor(trace.placeholder(g.node)) for g in grad_outputs]
        found = grad(outputs, inputs, seeds, **options)
    trace.lift([g.node for g in found if g is not None])
    return tuple(None if g is None else Tensor(trace.full(g.node)) for g in found)


def _is_dim(value: Any) -> bool:
    return value is None or type(value) is int


def _input_dims(in_dims: Any, args: list[Any], leaves: list[Any]) -> list[int | None]:
    if not isinstance(in_dims, list | tuple | int):
        raise fail(
            "E205",
            f"`vmap` got in_dims={in_dims!r}"[:120],
            help="in_dims is an int, or a tuple with an entry for each argument",
        )
    given = in_dims if isinstance(in_dims, int) else list(in_dims)
    found = spread(given, args, _is_dim)
    if found is None:
        raise fail(
            "E205",
            f"`vmap`: in_dims={in_dims!r} does not have the structure of the {len(args)} "
            f"argument{'' if len(args) == 1 else 's'}"[:200],
            help="give an entry for each argument; None for one that is the same for all examples",
        )
    dims: list[int | None] = []
    for leaf, dim in zip(leaves, found, strict=True):
        if dim is None:
            dims.append(None)
            continue
        if not isinstance(leaf, Tensor):
            raise fail(
                "E208",
                f"`vmap` got in_dim={dim} for an argument that is no tensor but "
                f"{type(leaf).__name__}",
                help="write None in its place: `in_dims=(0, None)`",
            )
        ndim = len(leaf.shape)
        if not -ndim <= dim < ndim:
            raise fail(
                "E304",
                f"`vmap` got in_dim={dim} for a tensor of {ndim} dim{'' if ndim == 1 else 's'}, "
                f"shape {shape_text(leaf.shape)}",
                help="in_dims names the dim that counts the examples",
            )
        dims.append(dim % ndim)
    return dims


def _batch_size(leaves: list[Any], dims: list[int | None]) -> int:
    sizes = [leaf.shape[dim] for leaf, dim in zip(leaves, dims, strict=True) if dim is not None]
    if not sizes:
        raise fail(
            "E205", "`vmap` has no tensor to map over", help="at least one in_dim must be an int"
        )
    if len(set(sizes)) > 1:
        raise fail(
            "E308",
            f"`vmap` expects all tensors to have the same size in the mapped dim, got {sizes}",
            help="use None in in_dims for tensors that are the same for all examples",
        )
    return sizes[0]


def _front(node: Node, dim: int) -> Node:
    return node if dim == 0 else F.movedim(node, dim, 0)


def _back(node: Node, dim: int | None) -> Node:
    return node if not dim else F.movedim(node, 0, dim)


def _output_dims(out_dims: Any, result: Any) -> list[Any]:
    if isinstance(result, Tensor) and isinstance(out_dims, list | tuple) and len(out_dims) == 1:
        out_dims = out_dims[0]
    found = spread(out_dims, result, _is_dim)
    if found is None:
        raise fail(
            "E205",
            f"`vmap`: out_dims={out_dims!r} does not have the structure of what the function "
            "returned"[:200],
            help="give an int, or an entry for each result",
        )
    return found


def _placed(trace: Trace, node: Node, dim: Any) -> Node:
    lifted = trace.memo.get(node)
    if dim is None:
        if lifted is not None:
            raise fail(
                "E205",
                "`vmap` got out_dims=None for a result that differs between examples",
                help="give the dim where the examples go: `out_dims=0`",
            )
        return node
    lifted = trace.full(node)
    ndim = len(lifted.shape)
    if not -ndim <= dim < ndim:
        raise fail(
            "E304",
            f"`vmap` got out_dim={dim} for a result of {ndim} dims with that of the examples",
            help=f"use {-ndim} to {ndim - 1}",
        )
    return _back(lifted, dim % ndim)


__all__ = [
    "grad_and_value",
    "jacobian",
    "jvp",
    "linearize",
    "vjp",
    "vmap",
]
