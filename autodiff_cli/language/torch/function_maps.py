"""Functions of a program inside of vmap: their own `vmap`, or the rule made of `forward`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ...autograd.batching.examples import Trace
from ...autograd.calls import Results
from ...autograd.tensor import Tensor
from ...autograd.transform_levels import Opened
from ...autograd.trees import flatten, rebuilt, spread, tree_spec
from ...errors import fault
from ...graph.registry import F
from ...graph.state import STATE
from ..values.functions import call_value
from ..values.user_classes import UNMAPPED, UserClass, bind


def rule(cls: UserClass) -> Any:
    """The `vmap` of a Function, where a vmap is running; None when `forward` is mapped itself."""
    if all(isinstance(level, Opened) for level in STATE.levels):
        return None
    own, generated = cls.flat.get("vmap"), cls.flat.get("generate_vmap_rule")
    own = None if own is UNMAPPED else own
    if own is not None and generated:
        raise fault("E409 vmap-generate_vmap_rule-true", cls.name)
    if own is None and not generated:
        raise fault("E409 says-nothing-vmap", cls.name)
    return bind(own, None, cls)


@contextmanager
def lowered() -> Iterator[None]:
    """Outside of the innermost transform that is running, inside of the others."""
    before = STATE.levels, STATE.batching, STATE.opened
    STATE.levels = STATE.levels[:-1]
    traces = [level for level in STATE.levels if isinstance(level, Trace)]
    opened = [level for level in STATE.levels if isinstance(level, Opened)]
    STATE.batching = traces[0].since if traces else 0
    STATE.opened = opened[-1].since if opened else 0
    try:
        yield
    finally:
        STATE.levels, STATE.batching, STATE.opened = before


def mapped(own: Any, apply: Callable[..., Any], args: tuple[Any, ...]) -> Any:
    """What a Function's own `vmap` returns for all examples, as it is for one."""
    trace = STATE.levels[-1]
    whole: list[Any] = []
    dims: list[int | None] = []
    for arg in flatten(args):
        node = arg.node if isinstance(arg, Tensor) else None
        lifted = None if node is None or trace is None else trace.lift([node])[0]
        if lifted is None:
            whole.append(arg)
            dims.append(None)
        else:
            dims.append(trace.dims.get(node, 0))
            whole.append(Tensor(F.movedim(lifted, 0, dims[-1])))
    with lowered():
        if all(dim is None for dim in dims):
            return apply(*args)
        info = Results((trace.size, trace.randomness))
        info.fields, info.name = ("batch_size", "randomness"), "VmapInfo"
        found = call_value(own, [info, rebuilt(args, dims), *rebuilt(args, whole)], {})
    if not isinstance(found, tuple) or len(found) != 2:
        count = f"{len(found)} returns" if isinstance(found, tuple) else _class(found)
        raise fault("E409 vmap-return-output-out_dims", count=count)
    output, out_dims = found
    spreads = spread(out_dims, output, lambda dim: dim is None or type(dim) is int)
    if spreads is None:
        raise fault(
            "E409 out_dims-vmap-returned-do",
            tree_spec(out_dims),
            tree_spec(output),
            out_dims=out_dims,
        )
    return rebuilt(
        output,
        [
            Tensor(trace.placeholder(F.movedim(part.node, dim, 0)))
            if isinstance(part, Tensor) and dim is not None
            else part
            for part, dim in zip(flatten(output), spreads, strict=True)
        ],
    )


def _class(value: Any) -> str:
    return f"a <class '{'torch.Tensor' if isinstance(value, Tensor) else type(value).__name__}'>"
