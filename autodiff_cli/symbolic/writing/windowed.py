"""How convolutions and pools are called: their names, and how a window moves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from ...graph.node import Node, Shape


class Window(NamedTuple):
    """How a window moves along each dim."""

    stride: tuple[int, ...]
    padding: tuple[int, ...]
    dilation: tuple[int, ...]
    groups: int = 1


RESULT, INPUT, KERNEL = range(3)  # what is made of the other two
MADE = {"convolve": RESULT, "convolve_input": INPUT}


def called(window: Window, sizes: Shape, made: int) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The function that makes one of result, input and kernel, and its keywords; `sizes` of all
    three along the dims."""
    dims = len(window.stride)
    stride, padding, dilation, groups = window
    found = {"stride": stride, "padding": padding, "dilation": dilation}
    if made == KERNEL:  # the places of the result are a kernel with gaps
        found = {"stride": dilation, "padding": padding, "dilation": stride}
    if made == INPUT:
        extra = []
        for d, (out, size, kernel) in enumerate(along(sizes, dims)):
            reach = (out - 1) * stride[d] - 2 * padding[d] + dilation[d] * (kernel - 1) + 1
            extra.append(size - reach)
        found["output_padding"] = tuple(extra)
    usual = {"stride": 1, "dilation": 1}
    keywords = tuple(
        (name, str(steps[0]) if len(set(steps)) == 1 else str(steps))
        for name, steps in found.items()
        if any(step != usual.get(name, 0) for step in steps)
    )
    keywords += (("groups", str(groups)),) if groups != 1 else ()
    return f"conv{'_transpose' if made == INPUT else ''}{dims}d", keywords


def called_as(node: Node) -> tuple[str, tuple[tuple[str, str], ...]]:
    """The call of a node that is a convolution."""
    source, kernel = node.inputs[:2]
    back = MADE.get(node.op.key, int(bool(node.args[-1])))
    steps = next(a for a in node.args if hasattr(a, "stride"))
    parts = (source, node, kernel) if back else (node, source, kernel)
    sizes = tuple(size for part in parts for size in part.shape[2:])
    return called(Window(steps.stride, steps.padding, steps.dilation, steps.groups), sizes, back)


def along(sizes: Shape, dims: int) -> Iterator[tuple[int, int, int]]:
    """How many places result, input and kernel have along each dim."""
    return zip(sizes[:dims], sizes[dims : 2 * dims], sizes[2 * dims : 3 * dims], strict=True)


MEANS = ("mean_windows", "adaptive_mean")
POOLED = ("max_windows", "max_window_indices", *MEANS, "resample")
WHOLE = (("max", 1, 1), ("mean", 1, 1), ("adaptive", 1))  # of an axis of one element
BOTH = ("adaptive_max_pool1d",)  # gives the places unasked
Pooling = tuple[str, tuple[Any, ...], tuple[tuple[str, str], ...]]


def pooled_by(
    key: str, rules: tuple[Any, ...], inside: Shape, divisor: float | None = None
) -> Pooling | None:
    """The function by which an op pools axes of these sizes, its arguments after the input and its
    keywords; None where the rules are of something else."""
    dims, kinds = len(rules), {rule[0] for rule in rules}
    outside = tuple(rule[1] for rule in rules)
    word = "max" if key.startswith("max") else "avg"
    if kinds == {"adaptive"}:
        return f"adaptive_{word}_pool{dims}d", (one(outside),), ()
    if kinds not in ({"max"}, {"mean"}) and divisor is None:
        return None
    kernel, stride, padding = (tuple(rule[i] for rule in rules) for i in (2, 3, 4))
    dilation = tuple(rule[5] for rule in rules) if kinds == {"max"} else (1,) * dims
    least = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, p, d, k, s in
             zip(inside, padding, dilation, kernel, stride, strict=True)]  # fmt: skip
    less = kinds == {"mean"} and any(rule[4] and not rule[5] for rule in rules)
    said = {
        "dilation": set(dilation) != {1} and str(one(dilation)),
        "ceil_mode": (*least,) != outside and "True",
        "count_include_pad": less and "False",
        "divisor_override": divisor and f"{divisor:.0f}",
    }
    keywords = tuple((name, value) for name, value in said.items() if value)
    return f"{word}_pool{dims}d", moving(stride, padding, kernel), keywords


def pooled_as(node: Node) -> Pooling | None:
    """The call of a node that is a pool; None where it is something else."""
    source, rules, *divisor = node.args
    found = pooled_by(node.op.key, rules, source.shape[-len(rules) :], *divisor)
    if found is None or node.op.key != "max_window_indices" or found[0] in BOTH:
        return found
    return (*found[:2], (*found[2], ("return_indices", "True")))


def pooled_along(node: Node) -> tuple[Node, Pooling] | None:
    """What is pooled along one axis, and the call, where the pool is of two axes of which the first
    was put in between and is gone again; None where a node is something else."""
    pool = node.inputs[0] if len(node.inputs) == 1 else node
    if pool.op.key not in ("max_windows", *MEANS) or node.ndim != pool.ndim - 1:
        return None
    source, rules = pool.args[:2]
    inner = source.inputs[0] if len(source.inputs) == 1 else source
    if inner.ndim != node.ndim or len(rules) != 2 or rules[0][:3] not in WHOLE:
        return None
    call = pooled_by(pool.op.key, rules[1:], inner.shape[-1:])
    return None if call is None else (inner, call)


def moving(stride: Shape, padding: Shape, kernel: Shape) -> tuple[Any, ...]:
    """The size of a window and how it moves, without what is so by default."""
    given = (kernel, stride, padding)[: None if any(padding) else 2 if stride != kernel else 1]
    return tuple(map(one, given))


def one(numbers: tuple[int, ...]) -> Any:
    """A number for several that are alike."""
    return numbers[0] if len(set(numbers)) == 1 else numbers
