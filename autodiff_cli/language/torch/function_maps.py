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
from ...errors import refused
from ...graph.registry import F
from ...graph.state import STATE
from ..values.functions import call_value
from ..values.user_classes import UserClass, bind

_MORE = "For more details, please see https://pytorch.org/docs/main/notes/extending.func.html"


def rule(cls: UserClass) -> Any:
    """The `vmap` of a Function, where a vmap is running; None when `forward` is mapped itself."""
    if all(isinstance(level, Opened) for level in STATE.levels):
        return None
    own, generated = cls.lookup("vmap"), cls.lookup("generate_vmap_rule")
    if own is not None and generated:
        raise refused(
            "E409",
            f"`{cls.name}` has a vmap and generate_vmap_rule=True",
            f"You tried to vmap over {cls.name}, but it has both generate_vmap_rule=True and an "
            "overridden vmap staticmethod. Please set generate_vmap_rule=False or delete the "
            f"overridden vmap staticmethod to avoid ambiguity. {_MORE}",
            "leave one of the two out",
        )
    if own is None and not generated:
        raise refused(
            "E409",
            f"`{cls.name}` says nothing of vmap",
            f"You tried to vmap over {cls.name}, but it does not have vmap support. Please "
            "override and implement the vmap staticmethod or set generate_vmap_rule=True. "
            f"{_MORE}",
            "write `generate_vmap_rule = True` in the class",
        )
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
    for arg in args:
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
        found = call_value(own, [info, tuple(dims), *whole], {})
    if not isinstance(found, tuple) or len(found) != 2:
        count = f"{len(found)} returns" if isinstance(found, tuple) else _class(found)
        raise refused(
            "E409",
            "a vmap must return its output and out_dims",
            "Expected the vmap staticmethod to have two returns, an output and out_dims with "
            f"pytree structure compatible with the output. Got {count} instead",
            "return `output, 0`",
        )
    output, out_dims = found
    spreads = spread(out_dims, output, lambda dim: dim is None or type(dim) is int)
    if spreads is None:
        raise refused(
            "E409",
            "the out_dims that a vmap returned do not have the structure of its output",
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) "
            f"tuple. Expected out_dims={out_dims} to be compatible with the structure of `output`. "
            f"out_dims has structure {tree_spec(out_dims)} but output has structure "
            f"{tree_spec(output)}. {_MORE}",
            "give an int, or an entry for each result",
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
