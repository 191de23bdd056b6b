"""`torch.func`: functions made of functions, nested in any order.

`call` runs the function to transform on values of the language. Variables are opened as levels, so
an inner transform never sees the variables of an outer one as its own; results are settled.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...errors import fault, refused
from ...graph.dtypes import is_float
from ...graph.node import Node
from ...graph.op import cast
from ...graph.op import leaf as new_leaf
from ...graph.registry import F
from ...graph.sizes import shape_text
from ...graph.state import STATE, grad_mode
from ..batching.examples import Trace, filled_like
from ..data_mutation import remade
from ..forward import Linearized, depends
from ..gradients import grad
from ..handles import wrap_nearest, wrap_view
from ..reverse import gradients
from ..rules import zeros_like
from ..tensor import AccumulateGrad, Tensor
from ..transform_levels import Opened, forward_jacobian_of, jacobian_of, repeated_zeros
from ..trees import flatten, rebuilt, spec, spread, tree_map, tree_spec
from ..views import single

Call = Callable[[list[Any], dict[str, Any]], Any]
Argnums = int | tuple[int, ...]


class _Run:
    """A function applied to opened arguments: its variables, its output and what it returned
    beside it. `words` is what PyTorch's messages about the function begin with."""

    __slots__ = ("aux", "name", "opened", "output", "words")
    aux: Any

    def __init__(
        self,
        name: str,
        call: Call,
        args: list[Any],
        kwargs: dict[str, Any],
        argnums: Argnums,
        has_aux: bool,
    ):
        self.name = name
        self.words = _WORDS[name]
        places = (argnums,) if isinstance(argnums, int) else argnums
        wrapped = [_place(name, place, len(args)) for place in places]
        if not wrapped and args:
            raise fault("E205 got-argnums", name)
        if len(set(wrapped)) < len(wrapped):
            raise fault("E205 got-argnums-twice", name, argnums)
        chosen: Any = (
            args[wrapped[0]] if isinstance(argnums, int) else tuple(args[i] for i in wrapped)
        )
        self.opened = Opened(chosen, name, name not in ("jvp", "jacfwd", "linearize"))
        args = list(args)
        parts = (self.opened.tree,) if isinstance(argnums, int) else self.opened.tree
        for place, value in zip(wrapped, parts, strict=True):
            args[place] = value
        with self.opened.entered():
            result = call(args, kwargs)
        self.output, self.aux = result, None
        if has_aux:
            self.output, self.aux = self._split(result)

    def _split(self, result: Any) -> tuple[Any, Any]:
        if not isinstance(result, tuple) or len(result) != 2:
            raise fault("E208 has_aux-true-needs-function", self.name, self.words)
        for leaf in flatten(result[1]):
            if not isinstance(leaf, Tensor):
                raise fault(
                    "E208 has_aux-true-takes-tensors", self.name, type(leaf).__name__, _class(leaf)
                )
        return result

    def outputs(self) -> list[Tensor]:
        """The tensors that the function returned: at least one, and nothing else."""
        leaves = flatten(self.output)
        if not leaves or leaves == [None]:
            raise fault(
                "E208 function-given-return-tensors-2", self.name, self.output, self.words, leaves
            )
        for leaf in leaves:
            if not isinstance(leaf, Tensor):
                raise fault(
                    "E208 function-given-return-tensors",
                    self.name,
                    type(leaf).__name__,
                    self.words,
                    _class(leaf),
                )
        if self.opened.reverse:
            for leaf in leaves:
                if not is_float(leaf.dtype):
                    raise fault("E306 differentiates-floating-point-results", self.name, leaf)
        return leaves

    def in_shape_of_inputs(self, leaves: list[Node]) -> Any:
        """A tree like that of the variables."""
        return rebuilt(self.opened.tree, [wrap_nearest(leaf) for leaf in leaves])


_WORDS = {
    "grad": "grad_and_value(f)(*args)",
    "grad_and_value": "grad_and_value(f)(*args)",
    "vjp": "vjp(f, *primals)",
    "jacrev": "vjp(f, *primals)",
    "jvp": "jvp(f, primals, tangents)",
    "jacfwd": "jvp(f, primals, tangents)",
    "linearize": "jvp(f, primals, tangents)",
}


def _class(value: Any) -> str:
    """A value's class as Python shows it."""
    return f"<class '{'torch.Tensor' if isinstance(value, Tensor) else type(value).__name__}'>"


def _place(name: str, place: Any, count: int) -> int:
    if type(place) is not int or not -count <= place < count:
        raise fault(
            "E205 got-argnum-but-positional", name, place, count, " was" if count == 1 else "s were"
        )
    return place % count


# -- grad ------------------------------------------------------------------------------------------


def grad_and_value(
    call: Call,
    args: list[Any],
    kwargs: dict[str, Any],
    argnums: Argnums,
    has_aux: bool,
    name: str,
) -> tuple[Any, Any, Any]:
    """Gradients in the structure of the chosen arguments, the value, and the aux."""
    run = _Run(name, call, args, kwargs, argnums, has_aux)
    output, opened = run.output, run.opened
    if not isinstance(output, Tensor):
        raise fault(
            "E208 needs-function-returns-tensor", name, type(output).__name__, run, _class(output)
        )
    node = output.node
    if node.shape:
        raise fault("E401 needs-function-returns-scalar", name, node, run, len(node.shape))
    found = _cotangents([(node, filled_like(node, 1.0))], opened)
    grads = run.in_shape_of_inputs([opened.settled(g) for g in found])
    return grads, opened.settled_tree(output), opened.settled_tree(run.aux)


def _cotangents(
    seeds: list[tuple[Node, Node]],
    opened: Opened,
    retain_graph: bool = True,
    create_graph: bool | None = None,
) -> list[Node]:
    if create_graph is None:
        create_graph = opened.matters([n for pair in seeds for n in pair])
    seeds = [(node, g) for node, g in seeds if node.requires_grad]
    with grad_mode(create_graph):
        found = gradients(
            seeds,
            opened.nodes,
            create_graph=create_graph,
            retain_graph=retain_graph,
            since=opened.since,
        )
    return [
        filled_like(x, 0.0) if g is None else g for g, x in zip(found, opened.nodes, strict=True)
    ]


# -- vjp and jvp -----------------------------------------------------------------------------------


def vjp(call: Call, primals: list[Any], has_aux: bool) -> tuple[Any, Callable[..., Any], Any]:
    """The output, the function of cotangents that pulls them back, and the aux."""
    run = _Run("vjp", call, primals, {}, tuple(range(len(primals))), has_aux)
    outputs = run.outputs()
    opened = run.opened

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        if spec(cotangents) != spec(run.output):
            raise fault("E205 vjp_fn-cotangents-do-not", spec(cotangents), spec(run.output))
        given = _fitting("vjp_fn", cotangents, outputs)
        seeds = [(out.node, cast(g.node, out.dtype)) for g, out in zip(given, outputs, strict=True)]
        found = _cotangents(seeds, opened, retain_graph, create_graph)
        return run.in_shape_of_inputs([opened.settled(g) for g in found])

    return opened.settled_tree(run.output), pull, opened.settled_tree(run.aux)


def _fitting(name: str, given: Any, wanted: list[Tensor]) -> list[Tensor]:
    """The tensors of a tree, which have the shapes of others."""
    found = flatten(given)
    for at, (g, x) in enumerate(zip(found, wanted, strict=True)):
        if not isinstance(g, Tensor) or g.shape != x.shape:
            raise _misfit(name, at, g, x)
    return found


def _misfit(name: str, at: int, given: Any, wanted: Tensor) -> Exception:
    """The failure of a cotangent or a tangent that is no tensor, or of another shape."""
    if not isinstance(given, Tensor):
        return refused(
            "E208",
            f"`{name}` takes tensors, not {type(given).__name__}",
            f"{_WORDS['jvp']}: Expected tangents to only contain Tensors, got {_class(given)}"
            if name != "vjp_fn"
            else f"gradients can be either Tensors or None, but got {type(given).__name__}",
            "write `torch.tensor(1.0)`",
            "TypeError" if name == "vjp_fn" else "RuntimeError",
        )
    shapes = shape_text(given.shape), shape_text(wanted.shape)
    sizes = list(given.shape), list(wanted.shape)
    words = {
        "vjp_fn": f"Mismatch in shape: grad_output[{at}] has a shape of torch.Size({sizes[0]}) and "
        f"output[{at}] has a shape of torch.Size({sizes[1]}).",
        "jvp_fn": f"tangent:{at} with shape torch.Size({sizes[0]}) in flattened pytree doesn't "
        f"match the shape torch.Size({sizes[1]}) of the corresponding primal.",
        "jvp": "Trying to set a forward gradient that has a different size than that of the "
        f"original Tensor, this is not supported. Tensor is of size {sizes[1]} while the given "
        f"forward gradient is of size {sizes[0]}.",
    }
    return fault("E308 shape-given-where-differentiated", name, shapes[0], words[name], shapes[1])


def jvp(
    call: Call, primals: Any, tangents: Any, strict: bool, has_aux: bool
) -> tuple[Any, Any, Any]:
    """The output, its change along the tangents, and the aux."""
    words = _WORDS["jvp"]
    if not isinstance(primals, tuple):
        raise fault("E205 jvp-needs-primals-tuple", type(primals).__name__, words)
    if spec(primals) != spec(tangents):
        raise fault(
            "E205 jvp-tangents-do-not",
            spec(tangents),
            spec(primals),
            words,
            tree_spec(primals),
            tree_spec(tangents),
        )
    inputs = flatten(primals)
    if not inputs:
        raise fault("E205 jvp-got-no-primals", words)
    for primal in inputs:
        if not isinstance(primal, Tensor):
            raise fault(
                "E208 jvp-takes-tensors-primals", type(primal).__name__, words, _class(primal)
            )
    given = _fitting("jvp", tangents, inputs)
    moves: list[Node | None] = [cast(v.node, x.dtype) for v, x in zip(given, inputs, strict=True)]
    run = _Run("jvp", call, list(primals), {}, tuple(range(len(primals))), has_aux)
    nodes = [out.node for out in run.outputs()]
    opened = run.opened
    if strict and not all(depends(node, opened.nodes) for node in nodes):
        raise fault("E410 jvp-output-function-independent")
    changes = opened.linearized(nodes, transform=True).along(moves)
    change = rebuilt(run.output, [wrap_nearest(opened.settled(c)) for c in changes])
    # PyTorch takes the values out of its dual tensors as views.
    values = rebuilt(
        run.output, [wrap_nearest(F.whole_view(opened.settled(node))) for node in nodes]
    )
    return values, change, opened.settled_tree(run.aux)


def linearize(call: Call, primals: list[Any]) -> tuple[Any, Callable[..., Any]]:
    """The output, and the function of tangents that is its derivative here: a linear function
    whose constants have no history."""
    output = call(primals, {})
    run = _Run("linearize", call, primals, {}, tuple(range(len(primals))), False)
    opened = run.opened
    symbols = [new_leaf(zeros_like(x), None) for x in opened.nodes]
    changes = opened.linearized([out.node for out in run.outputs()]).along(list(symbols))
    fixed: dict[Node, Node] = {}
    seen: dict[Node, Node] = {}

    def constant(node: Node) -> Node:
        """Return a node that does not move, with the values of memory at the first call."""
        if node not in fixed:
            value = opened.settled(remade(node, opened.since, seen))
            if node.requires_grad:
                value = new_leaf(value, AccumulateGrad(), value.requires_grad)
            fixed[node] = value
        return fixed[node]

    derivative = Linearized(changes, symbols, True, constant)

    def push(*tangents: Any) -> Any:
        if spec(tangents) != spec(tuple(primals)):
            raise fault(
                "E205 jvp_fn-tangents-do-not",
                spec(tangents),
                spec(tuple(primals)),
                tree_spec(tangents),
                tree_spec(tuple(primals)),
            )
        given = _fitting("jvp_fn", tangents, opened.sources)
        for at, (v, x) in enumerate(zip(given, opened.sources, strict=True)):
            if v.dtype != x.dtype:
                raise fault("E307 jvp_fn-tangent-where-differentiated", v, x, at)
        moves: list[Node | None] = [v.node for v in given]
        changes = [opened.settled(c) for c in derivative.along(moves)]
        return rebuilt(run.output, [Tensor(c) for c in changes])

    return output, push


# -- Jacobians -------------------------------------------------------------------------------------


def jacobian(
    call: Call,
    args: list[Any],
    kwargs: dict[str, Any],
    argnums: Argnums,
    has_aux: bool,
    forward: bool,
    randomness: str = "error",
) -> tuple[Any, Any]:
    """Jacobians in the structure of the output, in each place that of the chosen arguments.
    `randomness` is that of the directions of forward mode."""
    if forward:
        if randomness == "different":
            raise fault("E203 jacfwd-randomness-different-not")
        # PyTorch maps over directions outside of the function, which says nothing of its values.
        draws, STATE.draws = STATE.draws, randomness != "error"
        STATE.levels.append(None)
    try:
        run = _Run("jacfwd" if forward else "jacrev", call, args, kwargs, argnums, has_aux)
    finally:
        if forward:
            STATE.levels.pop()
            STATE.draws = draws
    outputs = [out.node for out in run.outputs()]
    opened = run.opened
    found: Any = (
        forward_jacobian_of(opened, outputs, transform=True)
        if forward
        else jacobian_of(outputs, opened.nodes, create_graph=opened.matters(outputs))
    )
    blocks = []
    for out, row in zip(outputs, found, strict=True):
        filled = [
            repeated_zeros(out, x) if g is None else g
            for g, x in zip(row, opened.nodes, strict=True)
        ]
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
    name: str = "f",
    chunk_size: int | None = None,
) -> Any:
    """Run the function once, on placeholders for one example, and lift its results. `name` is that
    of the function. With `chunk_size` it runs once for so many examples at a time."""
    leaves = flatten(args)
    if not all(map(_is_dim, flatten(out_dims))):
        raise fault("E205 vmap-got-out_dims", out_dims, name)
    dims = _input_dims(in_dims, args, leaves, name)
    size = _batch_size(leaves, dims)
    if chunk_size is not None:
        return _in_chunks(
            leaves,
            dims,
            size,
            chunk_size,
            out_dims,
            lambda chunk: vmap(
                call, rebuilt(args, chunk), kwargs, in_dims, out_dims, randomness, name
            ),
            randomness == "same",
        )
    sources = [
        None if dim is None else (leaf.node if dim == 0 else F.movedim(leaf.node, dim, 0))
        for leaf, dim in zip(leaves, dims, strict=True)
    ]
    trace = Trace(size)
    trace.randomness = randomness
    with trace.running(randomness != "error", randomness == "different"):
        examples = [
            leaf if source is None else Tensor(trace.placeholder(source))
            for leaf, source in zip(leaves, sources, strict=True)
        ]
        started = [
            e.node if s is not None else None for e, s in zip(examples, sources, strict=True)
        ]
        trace.dims = {e.node: dim for e, dim in zip(examples, dims, strict=True) if dim is not None}
        result = _at_level(trace, call, rebuilt(args, examples), kwargs)
    results = list(zip(flatten(result), _output_dims(out_dims, result, name), strict=True))
    nodes = [out.node for out, _ in results if isinstance(out, Tensor)]
    changed = [
        (leaf, example.node, dim)
        for leaf, example, dim, start in zip(leaves, examples, dims, started, strict=True)
        if start is not None and example.node is not start
    ]
    trace.lift([*nodes, *(node for _, node, _ in changed)])
    for leaf, node, dim in changed:
        leaf.write(_back(trace.full(node), dim))
    return rebuilt(result, [_placed(trace, out, dim, name) for out, dim in results])


def _in_chunks(
    leaves: list[Any],
    dims: list[int | None],
    size: int,
    chunk_size: int,
    out_dims: Any,
    mapped: Callable[[list[Any]], Any],
    same: bool,
) -> Any:
    """Join what a mapped function returns for a few examples at a time; `same` random numbers for
    all."""
    found = []
    drawing = STATE.default_generator
    state = drawing.get_state() if same else None
    for start in range(0, size, chunk_size):
        if state is not None:
            drawing.set_state(state)
        count = min(chunk_size, size - start)
        chunk = [
            leaf if dim is None else wrap_view(F.narrow(leaf.node, dim, start, count), leaf)
            for leaf, dim in zip(leaves, dims, strict=True)
        ]
        found.append(mapped(chunk))
    columns = zip(*map(flatten, found), strict=True)
    joined = [
        Tensor(F.cat(list(parts), dim))
        for parts, dim in zip(columns, _output_dims(out_dims, found[0], "f"), strict=True)
    ]
    return rebuilt(found[0], joined)


def _at_level(level: Trace | None, call: Call, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Call a function inside of a transform."""
    STATE.levels.append(level)
    try:
        return call(args, kwargs)
    finally:
        STATE.levels.pop()


def batched_grad(
    outputs: list[Tensor], inputs: list[Tensor], grad_outputs: list[Tensor | None], **options: Any
) -> tuple[Tensor | None, ...]:
    """`torch.autograd.grad` with `is_grads_batched`: dim 0 of the cotangents counts examples."""
    given = [g for g in grad_outputs if g is not None]
    for at, (out, g) in enumerate(zip(outputs, grad_outputs, strict=True)):
        if g is not None and g.shape and g.shape[1:] != out.shape:
            raise fault(
                "E308 batched-gradient-shape",
                tuple(g.shape[1:]),
                at,
                list(g.shape[2:]),
                list(out.shape),
                out=out,
            )
    dims: list[int | None] = [0 if g.shape else None for g in given]
    trace = Trace(_batch_size(given, dims))
    with trace.running():
        seeds = [None if g is None else Tensor(trace.placeholder(g.node)) for g in grad_outputs]
        found = grad(outputs, inputs, seeds, **options)
    trace.lift([g.node for g in found if g is not None])
    return tuple(None if g is None else Tensor(trace.full(g.node)) for g in found)


def _is_dim(value: Any) -> bool:
    return value is None or type(value) is int


def _input_dims(in_dims: Any, args: list[Any], leaves: list[Any], name: str) -> list[int | None]:
    words = f"vmap({name}, in_dims={in_dims}, ...)(<inputs>): "
    if type(in_dims) is not int and not isinstance(in_dims, tuple):
        raise fault("E205 vmap-got-in_dims", in_dims, words, _class(in_dims))
    if not args:
        raise fault("E205 vmap-no-arguments-map", name)
    found = spread(in_dims, tuple(args), lambda value: not isinstance(value, tuple | list | dict))
    if found is None:
        many = f"{len(args)} argument{'' if len(args) == 1 else 's'}"
        trees = tree_spec(in_dims), tree_spec(tuple(args))
        raise fault("E205 vmap-in_dims-structure", in_dims, many, words, trees[0], trees[1])
    dims: list[int | None] = []
    for leaf, dim in zip(leaves, found, strict=True):
        if dim is None:
            dims.append(None)
            continue
        if type(dim) is not int:
            raise fault("E205 vmap-got-in_dim", dim, words)
        if not isinstance(leaf, Tensor):
            raise fault(
                "E208 vmap-got-in_dim-argument", dim, type(leaf).__name__, words, _class(leaf)
            )
        ndim = len(leaf.shape)
        if not -ndim <= dim < ndim:
            raise fault(
                "E304 vmap-got-in_dim-tensor", dim, ndim, "" if ndim == 1 else "s", leaf, words
            )
        dims.append(dim % ndim)
    return dims


def _batch_size(leaves: list[Any], dims: list[int | None]) -> int:
    sizes = [leaf.shape[dim] for leaf, dim in zip(leaves, dims, strict=True) if dim is not None]
    if not sizes:
        raise fault("E205 vmap-no-tensor-map")
    if len(set(sizes)) > 1:
        raise fault("E308 vmap-expects-all-tensors", sizes)
    return sizes[0]


def _back(node: Node, dim: int | None) -> Node:
    return node if not dim else F.movedim(node, 0, dim)


def _output_dims(out_dims: Any, result: Any, name: str) -> list[Any]:
    if isinstance(result, Tensor) and isinstance(out_dims, tuple) and len(out_dims) == 1:
        out_dims = out_dims[0]
    found = spread(out_dims, result, _is_dim)
    if found is None:
        trees = tree_spec(out_dims), tree_spec(result)
        raise fault("E205 vmap-out_dims-structure", out_dims, name, trees[0], trees[1])
    return found


def _placed(trace: Trace, out: Any, dim: Any, name: str) -> Any:
    """A result with the dim of the examples where it is wanted."""
    if dim is None:
        if isinstance(out, Tensor) and trace.memo.get(out.node) is not None:
            raise fault("E205 vmap-got-out_dims-none", name)
        return out
    if not isinstance(out, Tensor):
        raise fault("E208 function-given-vmap-return", type(out).__name__, name, _class(out))
    node = out.node
    ndim = len(node.shape) + 1
    if not -ndim <= dim < ndim:
        raise fault("E304 vmap-got-out_dim-result", dim, ndim, -ndim, ndim - 1)
    dim %= ndim
    lifted = trace.memo.get(node)
    if lifted is None:  # the same for all: PyTorch does not move the dim that it adds in front
        sizes = [*node.shape[:dim], trace.size, *node.shape[dim:]]
        return wrap_nearest(F.expand(node, sizes))
    start = trace.dims.get(node)
    if start:  # an argument itself
        source = lifted.args[0]
        return wrap_nearest(source if start == dim else F.movedim(source, start, dim))
    moved = _back(lifted, dim)
    return wrap_nearest(moved if single(moved) or not single(node) else F.contiguous(moved))
