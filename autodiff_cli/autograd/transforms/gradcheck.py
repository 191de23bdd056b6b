"""`torch.autograd.gradcheck`: derivatives against central differences, element by element."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ...errors import AutodiffError, fail, fault
from ...graph.dtypes import FLOAT64
from ...graph.node import Node
from ...graph.op import OUTPUT, constant, value_of
from ...graph.state import STATE, grad_mode
from ..printing import format_tensor
from ..reverse import gradients
from ..rules import history, ruled, zeros_like
from ..tensor import Tensor
from ..transform_levels import Opened, jacobian_of
from .functional import tensors_in

Call = Callable[[list[Any], dict[str, Any]], Any]


class Tolerance(NamedTuple):
    """How far apart two derivatives may be, and two runs of one `backward` (`nondet`); `eps` is the
    step of the differences. `undefined`: whether gradients that are not there are tried."""

    eps: float
    atol: float
    rtol: float
    nondet: float
    undefined: bool


def gradcheck(
    call: Call,
    inputs: Any,
    tolerance: Tolerance,
    name: str = "gradcheck",
    columns: Callable[..., list[list[np.ndarray]]] | None = None,
    backward: bool = True,
) -> None:
    """E602 with the worst element when a derivative differs from the difference quotient: that of
    reverse mode where `backward`, and that which `columns` finds in forward mode."""
    given = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    places = [i for i, x in enumerate(given) if isinstance(x, Tensor) and x.requires_grad]
    if not places:
        raise fault("E402 needs-least-input-requires", name)
    opened = Opened([given[i] for i in places], name, True)
    outputs = [out for out in _outputs(name, call, given, places, opened.tree) if _differs(out)]
    numerics = [
        _differences(name, call, given, places, at, tolerance.eps) for at in range(len(places))
    ]
    if columns is not None:
        moved = columns(call, given, places)
        for at, x in enumerate(opened.nodes):
            for i, out in enumerate(outputs):
                found = moved[at][i].T
                _compare(name, found, numerics[at][i].T, i, places[at], out, x, tolerance, True)
    rows = jacobian_of(outputs, opened.nodes) if backward else []
    for at, x in enumerate(opened.nodes if backward else ()):
        numeric = numerics[at]
        for i, out in enumerate(outputs):
            g = rows[i][at]
            analytic = (
                np.zeros((*out.shape, *x.shape)) if g is None else np.asarray(value_of(g))
            ).reshape(out.numel, x.numel)
            _compare(name, analytic, numeric[i].T, i, places[at], out, x, tolerance)
    if backward:
        _check_own(name, outputs, opened.nodes, rows, tolerance)


def _check_own(
    name: str, outputs: list[Node], inputs: list[Node], rows: Any, tolerance: Tolerance
) -> None:
    """E602 when a `backward` of the program gives other gradients the second time, or some where
    the result has none."""
    found = dict.fromkeys(node for out in outputs for node in history(out))
    own = [node for node in found if "own saving" in node.op.properties]
    if not own:
        return
    for row, again in zip(rows, jacobian_of(outputs, inputs), strict=True):
        for g, h in zip(row, again, strict=True):
            apart = 0 if g is None or h is None else np.abs(value_of(g) - value_of(h))
            if np.max(apart, initial=0) > tolerance.nondet:
                raise fault("E602 other-gradients-again", name, tolerance.nondet)
    zeros = [(out, zeros_like(out)) for out in outputs if out.requires_grad]
    free = gradients(zeros, inputs, create_graph=False, retain_graph=True)
    last = dict.fromkeys(out.args[0] if out.op is OUTPUT else out for out in outputs)
    for node in last if tolerance.undefined else ():
        if node in own:
            none = None if node.outputs is None else (None,) * len(node.outputs)
            free.extend(ruled(node, none)[0])
    if any(g is not None and value_of(g).any() for g in free):
        raise fault("E602 gradients-of-nothing", name)


def _differs(out: Node) -> bool:
    return out.dtype.kind == "f"


def _outputs(
    name: str, call: Call, given: list[Any], places: list[int], values: list[Any]
) -> list[Node]:
    args = list(given)
    for place, value in zip(places, values, strict=True):
        args[place] = value
    with grad_mode(True):
        result = call(args, {})
    return [t.node for t in tensors_in(name, "what the function returned", result)]


def _differences(
    name: str, call: Call, given: list[Any], places: list[int], at: int, eps: float
) -> list[np.ndarray]:
    """For each output the difference quotients, a row for each element of one input."""
    base = np.array(given[places[at]].numpy())
    rows: list[list[np.ndarray]] = []
    for index in np.ndindex(base.shape):
        sides = []
        for step in (eps, -eps):
            moved = base.copy()
            moved[index] += step
            values = [
                Tensor(constant(moved if i == at else np.array(given[p].numpy())))
                for i, p in enumerate(places)
            ]
            for value in values:
                value.set_requires_grad(True)
            outs = _outputs(name, call, given, places, values)
            sides.append([np.array(value_of(out)).reshape(-1) for out in outs if _differs(out)])
        with np.errstate(all="ignore"):
            rows.append([(a - b) / (2 * eps) for a, b in zip(*sides, strict=True)])
    if not rows:
        outs = _outputs(name, call, given, places, [given[p] for p in places])
        return [np.zeros((0, out.numel)) for out in outs if _differs(out)]
    return [np.stack(column) for column in zip(*rows, strict=True)]


def _compare(
    name: str,
    analytic: np.ndarray,
    numeric: np.ndarray,
    output: int,
    input: int,
    out: Node,
    x: Node,
    tolerance: Tolerance,
    forward: bool = False,
) -> None:
    bound = tolerance.atol + tolerance.rtol * np.abs(numeric)
    with np.errstate(all="ignore"):
        off = np.abs(analytic - numeric)
        wrong = ~((off <= bound) | (analytic == numeric) | np.isnan(analytic) & np.isnan(numeric))
    if not wrong.any():
        return
    worst = np.where(np.isnan(off), np.inf, off - bound)
    order = np.argsort(-worst.reshape(-1), kind="stable")[: min(3, int(wrong.sum()))]
    notes = []
    for flat in order:
        i, j = divmod(int(flat), analytic.shape[1])
        notes.append(
            f"d output{output}{_place(i, out)} / d input{input}{_place(j, x)}: "
            f"{analytic[i, j]:.8g} by autodiff, {numeric[i, j]:.8g} by differences"
        )
    both = "".join(
        f"\n{kind}:{format_tensor(found.T.astype(x.dtype), default_dtype=STATE.default_dtype)}"
        for kind, found in (("numerical", numeric), ("analytical", analytic))
    )
    how = "computed with forward mode " if forward else ""
    words = f"Jacobian {how}mismatch for output {output} with respect to input {input},{both}\n"
    raise fail(
        "E602",
        f"`{name}`: the derivative of output {output} with respect to input {input} is wrong in "
        f"{int(wrong.sum())} of {wrong.size} places",
        notes=(*notes, f"PyTorch: {words}"),
        help=(
            "is a backward written by hand wrong, or is there a kink or a float32 input?",
            "change eps=, atol= or rtol= when the function is steep",
        ),
    )


def _place(flat: int, node: Node) -> str:
    if not node.shape:
        return ""
    return "[" + ", ".join(str(int(i)) for i in np.unravel_index(flat, node.shape)) + "]"


def gradgradcheck(
    call: Call,
    inputs: Any,
    grad_outputs: Any,
    tolerance: Tolerance,
    uniform: Callable[..., np.ndarray],
) -> None:
    """The same for first derivatives: second derivatives against differences of the first. Where no
    `grad_outputs` are given they are drawn by `uniform(shape, dtype, low, high)`, as in PyTorch."""
    given = [inputs] if isinstance(inputs, Tensor) else list(inputs)
    with grad_mode(True):
        result = call(given, {})
    outputs = tensors_in("gradgradcheck", "what the function returned", result)
    if grad_outputs is None:
        weights = [_drawn(out, uniform) for out in outputs]
    else:
        weights = tensors_in("gradgradcheck", "grad_outputs", grad_outputs)
    count = len(given)

    def first(args: list[Any], kwargs: dict[str, Any]) -> Any:
        values, seeds = args[:count], args[count:]
        outs = tensors_in("gradgradcheck", "what the function returned", call(values, {}))
        wanted = [x.node for x in values if isinstance(x, Tensor) and x.requires_grad]
        pairs = [(o.node, s.node) for o, s in zip(outs, seeds, strict=True) if o.node.requires_grad]
        found = gradients(pairs, wanted, create_graph=True, retain_graph=True)
        return tuple(Tensor(g) for g in found if g is not None)

    gradcheck(first, [*given, *weights], tolerance, "gradgradcheck")


def _drawn(out: Tensor, uniform: Callable[..., np.ndarray]) -> Tensor:
    """Uniform numbers from -1 to 1, as many as an output has."""
    dtype = out.dtype if out.dtype.kind == "f" else FLOAT64
    tensor = Tensor(constant(uniform(out.shape, dtype, -1.0, 1.0)))
    tensor.set_requires_grad(True)
    return tensor


def holds(check: Callable[[], None], raise_exception: bool) -> bool:
    """Run a check: True, or its error, or False when errors are not wanted."""
    try:
        check()
    except AutodiffError as error:
        if raise_exception or error.code not in ("E602", "E402"):
            raise
        return False
    return True
