"""`torch.autograd.functional`: derivatives of a function at tensors, nested as PyTorch nests them.

`call` runs the function on tensors. Results have no history unless `create_graph`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...errors import fault, refused
from ...graph.node import Node
from ...graph.op import cast
from ...graph.registry import F
from ...graph.state import grad_mode
from ...graph.walk import walk
from ..forward import Linearized
from ..reverse import gradients
from ..rules import ones_like, parents
from ..storage import without_history
from ..tensor import Tensor
from ..transform_levels import Opened, deeper, forward_jacobian_of, jacobian_of, or_zeros
from ..views import single

Call = Callable[[list[Any], dict[str, Any]], Any]


class _Applied:
    """A function applied to fresh variables: `inputs` and `outputs` are nodes, `single_input` and
    `single_output` tell whether they were given as one tensor."""

    __slots__ = (
        "create_graph",
        "inputs",
        "name",
        "opened",
        "outputs",
        "single_input",
        "single_output",
        "strict",
    )

    def __init__(self, name: str, call: Call, inputs: Any, create_graph: bool, strict: bool):
        self.name = name
        self.create_graph = create_graph
        self.strict = strict
        self.single_input = isinstance(inputs, Tensor)
        self.opened = Opened(tuple(tensors_in(name, "inputs", inputs)), name, name != "hessian")
        self.opened.running = True  # these stay variables: results may keep their history
        self.inputs = self.opened.nodes
        with deeper():
            result = call(list(self.opened.tree), {})
        self.single_output = isinstance(result, Tensor)
        self.outputs = [t.node for t in tensors_in(name, "what the function returned", result)]
        if strict:
            self._check_outputs()

    def _check_outputs(self) -> None:
        for i, out in enumerate(self.outputs):
            if not out.requires_grad:
                raise fault("E402 output-function-given-does", i, self.name)

    def one_number(self) -> Node:
        """The output of a function that must return one number."""
        if not self.single_output:
            raise fault("E401 needs-function-returns-tensor", self.name, len(self.outputs))
        out = self.outputs[0]
        if out.numel != 1:
            raise fault("E401 needs-function-returns-number", self.name, out)
        return out

    def pulled(self, outputs: list[Node], cotangents: list[Node], graph: bool) -> list[Node]:
        """Cotangents of the inputs, zeros (in strict mode an error) where nothing depends."""
        seeds = [(out, g) for out, g in zip(outputs, cotangents, strict=True) if out.requires_grad]
        with grad_mode(graph):
            found = gradients(seeds, self.inputs, create_graph=graph, retain_graph=True)
        for at, g in enumerate(found):
            if g is None and self.strict:
                raise self.independent("the output", at)
        if graph:
            self.check_recorded(found)
        return [
            F.zeros(x.shape, dtype=x.dtype) if g is None else g
            for g, x in zip(found, self.inputs, strict=True)
        ]

    def check_recorded(self, slopes: Iterable[Node | None]) -> None:
        """In strict mode slopes that are to be differentiated depend on the inputs."""
        for at, g in enumerate(slopes):
            if g is not None and self.strict and self.create_graph and not g.requires_grad:
                raise self.independent("the jacobian", at)

    def independent(self, what: str, at: int) -> Exception:
        words = (
            "While computing the hessian, found that the jacobian of the user-provided function "
            f"with respect to input {at} is independent of the input. This is not allowed in "
            "strict mode. You should ensure that your function is twice differentiable and that "
            "the jacobian depends on the inputs (this would be violated by a linear function for "
            "example)."
            if self.name in ("hessian", "hvp", "vhp")
            else f"{what[0].upper()}{what[1:]} of the user-provided function is independent of "
            f"input {at}. This is not allowed in strict mode."
        )
        return fault("E410 function-independent-input-which", self.name, what, at, words)

    def finished(self, node: Node) -> Tensor:
        """A result as the program gets it."""
        return Tensor(node if self.create_graph else without_history(node))

    def like_inputs(self, nodes: list[Node]) -> Any:
        found = tuple(map(self.finished, nodes))
        return found[0] if self.single_input else found

    def like_outputs(self, nodes: list[Node]) -> Any:
        found = tuple(map(self.finished, nodes))
        return found[0] if self.single_output else found


_GIVEN = ("inputs", "v")
_OUTPUTS = "outputs of the user-provided function"


def tensors_in(name: str, what: str, value: Any) -> list[Tensor]:
    """The tensors of a value that is one or a tuple of them."""
    values = (value,) if isinstance(value, Tensor) else value
    shown = what if what in _GIVEN else _OUTPUTS
    words = f"The {shown} given to {name} must be either a Tensor or a tuple of Tensors but the "
    if not isinstance(values, tuple):
        words += f"given {shown} has type {type(value)}."
    else:
        at = next((i for i, v in enumerate(values) if not isinstance(v, Tensor)), -1)
        if at < 0:
            return list(values)
        words += f"value at index {at} has type {type(values[at])}."
    raise fault("E208 must-tensor-tuple-tensors", name, what, type(value).__name__, words)


def _vector(name: str, v: Any, like: list[Node], single: bool, what: str) -> list[Node]:
    """The given vector as nodes shaped like inputs or outputs; a 1 for a single number."""
    if v is None:
        if not single or like[0].numel != 1:
            needs = (
                "user-provided function returns a single Tensor with a single element."
                if what == "output"
                else "input to the user-provided function is a single Tensor with a single element."
            )
            raise fault("E401 needs-vector-v-unless", name, what, needs)
        return [ones_like(like[0])]
    given = tensors_in(name, "v", v)
    if len(given) != len(like):
        raise refused(
            "E205",
            f"`{name}` got {len(given)} tensors in v for {len(like)} {what}s",
            "The given v should contain a single Tensor."
            if len(like) == 1
            else f"v is a tuple of invalid length: should be {len(like)} but got {len(given)}.",
            "give one for each",
        )
    for at, (g, x) in enumerate(zip(given, like, strict=True)):
        if g.shape != x.shape:
            which = f"Entry {at} in v" if len(like) > 1 else "v"
            raise fault(
                "E308 v-shape-g-what", name, g, what, x, which, list(x.shape), list(g.shape)
            )
    return [cast(g.node, x.dtype) for g, x in zip(given, like, strict=True)]


def jacobian(
    call: Call,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """For each output a tuple with the derivative to each input; single ones without tuples."""
    run = _Applied("jacobian", call, inputs, create_graph, strict)
    rows: list[Any]
    if strategy == "forward-mode":
        rows = forward_jacobian_of(run.opened, run.outputs)
    else:
        rows = _rows(run, run.outputs, strategy)
    return _blocks(run, run.outputs, rows, run.single_output)


def _rows(run: _Applied, outputs: list[Node], strategy: str) -> list[Any]:
    """The rows of a Jacobian by reverse mode, stacked as PyTorch does it."""
    for out in outputs:
        if strategy == "reverse-mode" and not out.numel:
            raise fault("E308 no-rows", run.name, out)
    alone = strategy == "reverse-mode" and any(map(_tells_the_program, walk(outputs, parents)))
    find = _row_by_row if alone else jacobian_of
    rows = find(outputs, run.inputs, create_graph=run.create_graph)
    return [
        [g if g is None or (run.create_graph and single(g)) else F.contiguous(g) for g in row]
        for row in rows
    ]


def _tells_the_program(node: Node) -> bool:
    """Whether a pass that comes to a node calls functions of the program."""
    marks = node.marks
    hooked = marks is not None and bool(marks.hooks or marks.context)
    return hooked or "own saving" in node.op.properties


def _row_by_row(
    outputs: list[Node], inputs: list[Node], *, create_graph: bool
) -> list[list[Node | None]]:
    """The same as `jacobian_of` by a pass for each element of the outputs."""
    return [
        _rows_of(out, inputs, create_graph) if out.requires_grad else [None] * len(inputs)
        for out in outputs
    ]


def _rows_of(out: Node, inputs: list[Node], create_graph: bool) -> list[Node | None]:
    units = F.unbind(F.reshape(F.eye(out.numel, dtype=out.dtype), (-1, *out.shape)))
    passes = [
        gradients([(out, unit)], inputs, create_graph=create_graph, retain_graph=True)
        for unit in units
    ]
    return [
        None
        if all(g is None for g in parts)
        else F.reshape(
            F.stack([F.zeros(x.shape, dtype=x.dtype) if g is None else g for g in parts]),
            (*out.shape, *x.shape),
        )
        for x, parts in zip(inputs, zip(*passes, strict=True), strict=True)
    ]


def _blocks(run: _Applied, outputs: list[Node], rows: list[Any], single: bool) -> Any:
    result = []
    for i, (out, row) in enumerate(zip(outputs, rows, strict=True)):
        for at, g in enumerate(row):
            if g is None and run.strict:
                raise run.independent(f"output {i}", at)
        run.check_recorded(row)
        filled = [or_zeros(g, out, x) for g, x in zip(row, run.inputs, strict=True)]
        result.append(run.like_inputs(filled))
    return result[0] if single else tuple(result)


def hessian(
    call: Call,
    inputs: Any,
    create_graph: bool = False,
    strict: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Second derivatives of one number: a tensor for a single input, else a tuple of tuples."""
    run = _Applied("hessian", call, inputs, create_graph, strict)
    out = run.one_number()
    firsts = run.pulled([out], [ones_like(out)], True)
    if strategy == "forward-mode":
        run.create_graph = True  # PyTorch keeps the history here
        rows: list[Any] = forward_jacobian_of(run.opened, firsts)
    else:
        rows = _rows(run, firsts, strategy)
    return _blocks(run, firsts, rows, run.single_input)


def vjp(
    call: Call, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> Any:
    """The outputs, and v times the Jacobian."""
    run = _Applied("vjp", call, inputs, create_graph, strict)
    weights = _vector("vjp", v, run.outputs, run.single_output, "output")
    found = run.pulled(run.outputs, weights, create_graph)
    return run.like_outputs(run.outputs), run.like_inputs(found)


def jvp(
    call: Call, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False
) -> Any:
    """The outputs, and the Jacobian times v."""
    run = _Applied("jvp", call, inputs, create_graph, strict)
    moves = _vector("jvp", v, run.inputs, run.single_input, "input")
    derivative = Linearized(run.outputs, run.inputs)
    for node in derivative.order:
        if node.op.key == "once":  # PyTorch differentiates its derivative
            F.once_slope.vjp_rule(None, None, None, None, node.args[1])
    if strict:
        reached = set(walk(run.outputs, parents))
        for at, x in enumerate(run.inputs):
            if x not in reached:
                raise run.independent("the output", at)
    found = derivative.along(list(moves))
    run.check_recorded(found)
    return run.like_outputs(run.outputs), run.like_outputs(found)


def second(name: str, call: Call, inputs: Any, v: Any, create_graph: bool, strict: bool) -> Any:
    """`vhp` and `hvp`: the output, and v times the Hessian, which is symmetric."""
    run = _Applied(name, call, inputs, create_graph, strict)
    out = run.one_number()
    weights = _vector(name, v, run.inputs, run.single_input, "input")
    firsts = run.pulled([out], [ones_like(out)], True)
    found = run.pulled(firsts, weights, create_graph)
    return run.like_outputs([out]), run.like_inputs(found)
