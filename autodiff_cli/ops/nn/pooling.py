"""Pooling over windows of the last one to three dims: maxima, means and norms.

Windows are rules of `graph.windows`. Maxima work dim by dim; among equal elements the first in
row-major order is the maximum, and it alone gets the gradient, as in PyTorch.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from ...errors import fail, fault
from ...graph.declare import Any, Flag, Ints, Tensor, composite, function, opaque
from ...graph.dtypes import INT64
from ...graph.params import Param
from ...graph.registry import F
from ...graph.samples import Bad, S, ints, t
from ...graph.shapes import count
from ...graph.strides import CHANNELS
from ..kernels.rules import NAMED_SLOPE, require_float
from ..kernels.windows import lead_shape, pooled_size, spread, tap, taps

NN = "nn.functional."


def _window_rules(name, kind, input, n, kernel_size, stride, padding, dilation, ceil_mode):
    lead_shape(name, input, n, kind != "max")
    kernel = spread(kernel_size, n, name, "kernel_size")
    step = kernel if stride is None or stride == () else spread(stride, n, name, "stride")
    pad = spread(padding, n, name, "padding")
    gaps = spread(dilation, n, name, "dilation")
    rules = []
    for size, k, s, p, d in zip(input.shape[-n:], kernel, step, pad, gaps, strict=True):
        out = pooled_size(name, size, k, s, p, d, ceil_mode)
        rules.append((kind, out, k, s, p) if kind != "max" else (kind, out, k, s, p, d))
    return tuple(rules)


# -- maxima ----------------------------------------------------------------------------------------


def _pooled_shape(input, rules):
    return (*input.shape[: len(input.shape) - len(rules)], *(rule[1] for rule in rules))


def _maximum(x, rules):
    n = len(rules)
    for i in range(n):  # the last dim last: it is slow to step through, and then there is less
        axis = x.ndim - n + i
        x = _largest([tap(x, axis, at) for at in taps(rules[i], x.shape[axis], x.dtype).columns])
    return x


def _largest(parts):
    if len(parts) == 1:
        return np.array(parts[0])
    best = np.maximum(parts[0], parts[1])
    for part in parts[2:]:
        np.maximum(best, part, out=best)
    return best


def _maximum_index(x, rules):
    """Flat positions, over the pooled dims, of the maximum of each window."""
    n = len(rules)
    sizes = x.shape[x.ndim - n :]
    tables = [taps(rule, size, x.dtype) for rule, size in zip(rules, sizes, strict=True)]
    window = math.prod(table.at.shape[1] for table in tables)
    places = math.prod(table.at.size for table in tables)
    if window >= MANY_CODES or places > max(x.size, MANY_PLACES):
        return _searched(x, tables)
    found = _codes(x, tables)
    if found is None:
        return _searched(x, tables)
    at = _positions(rules, sizes, x.dtype)
    first = np.arange(0, at.size, window).reshape([len(table.at) for table in tables])
    return at.take(found + first)


MANY_CODES = 1 << 15  # positions in a window that count as many: codes are small integers
MANY_PLACES = 1 << 16


def _codes(x, tables):
    """Where in its window the maximum is, as a number below the window's size; None where a
    maximum is nan."""
    window = math.prod(table.at.shape[1] for table in tables)
    kind = np.dtype(np.int8 if window < 1 << 7 else np.int16).type
    code, unit = kind(0), 1
    for i, table in reversed(list(enumerate(tables))):
        axis = x.ndim - len(tables) + i
        parts = [tap(x, axis, at) for at in table.columns]
        x = _largest(parts)
        found = _code(code, unit, axis, table, len(parts) - 1)
        for k in reversed(range(len(parts) - 1)):  # the first that equals the maximum is the one
            better = _code(code, unit, axis, table, k) - found
            found = found + better * (parts[k] == x).view(np.int8)
        code = found
        unit *= len(parts)
    return None if np.isnan(x.max(initial=0)) else np.broadcast_to(code, x.shape)


def _code(code, unit, axis, table, k):
    """The codes of those that tap `k` reads."""
    return (tap(code, axis, table.columns[k]) if code.ndim else code) + code.dtype.type(k * unit)


@lru_cache(maxsize=64)
def _positions(rules, sizes, dtype):
    """The flat position of each place of each window, in one row."""
    flat: Any = 0
    n = len(rules)
    for i, (rule, size) in enumerate(zip(rules, sizes, strict=True)):
        at = taps(rule, size, dtype).at
        shape = [1] * (2 * n)
        shape[i], shape[n + i] = at.shape
        flat = flat * size + at.reshape(shape)
    return flat.reshape(-1)


def _searched(x, tables):
    """The same for windows of any size and any values; the last nan of a window wins."""
    n = len(tables)
    sizes = x.shape[x.ndim - n :]
    index = np.broadcast_to(np.arange(count(sizes)).reshape(sizes), x.shape)
    for i in reversed(range(n)):
        axis = x.ndim - n + i
        columns = tables[i].columns
        best = np.array(tap(x, axis, columns[0]))
        chosen = np.array(tap(index, axis, columns[0]))
        for at in columns[1:]:
            value = tap(x, axis, at)
            better = (value > best) | (value != value)
            np.copyto(best, value, where=better)
            np.copyto(chosen, tap(index, axis, at), where=better)
        x, index = best, chosen
    return index


def _places_as_text(at):
    """Positions (windows, places in a window), by how far the windows and the places are apart."""
    first, *steps = (int(at[place]) for place in ((0, 0), (-1, 0), (0, -1)))
    steps = [(last - first) // max(n - 1, 1) for last, n in zip(steps, at.shape, strict=True)]
    rows, columns = (np.arange(n) * step for n, step in zip(at.shape, steps, strict=True))
    if not (at == first + rows[:, None] + columns).all():
        return f"np.array({at.tolist()})"
    apart, within = (f"np.arange({n})" for n in at.shape)
    ends = [f"{apart}[:, None] * {steps[0]}", within + f" * {steps[1]}" * (steps[1] != 1)]
    return f"({' + '.join(ends + [str(first)] * (first != 0))})"


def _windows_as_text(input, rules):
    """The elements of each window, and their flat positions, a row for each window."""
    n = len(rules)
    sizes = input.shape[input.ndim - n :]
    places: list[str] = []
    flat = 1
    for i, (rule, size) in reversed(list(enumerate(zip(rules, sizes, strict=True)))):
        at = taps(rule, size, input.dtype).at
        shape = [1] * (2 * n)
        shape[i], shape[n + i] = at.shape
        places.insert(
            0, f"{_places_as_text(at)}.reshape({tuple(shape)})" + f" * {flat}" * (i < n - 1)
        )
        flat *= size
    out = math.prod(rule[1] for rule in rules)
    positions = f"({' + '.join(places)}).reshape({out}, -1)"
    lead = (*input.shape[: input.ndim - n], -1)
    return f"np.take(input.reshape({lead}), {positions}, -1)", positions, out


def _maximum_as_text(input, rules):
    return f"np.max({_windows_as_text(input, rules)[0]}, -1).reshape(shape)"


def _maximum_index_as_text(input, rules):
    windows, positions, out = _windows_as_text(input, rules)
    return f"{positions}[np.arange({out}), np.argmax({windows}, -1)].reshape(shape)"


def _max_name(input, rules):
    if rules[0][0] == "adaptive":
        return f"AdaptiveMaxPool{len(rules)}DBackward0"
    return f"MaxPool{len(rules)}DWithIndicesBackward0"


@opaque(
    _maximum,
    numpy=_maximum_as_text,
    public=False,
    grad_fn=_max_name,
    shape=lambda input, rules: (_pooled_shape(input, rules), input.dtype),
    samples=[S(t(2, 5), (("max", 2, 2, 2, 0, 1),))],
    properties=NAMED_SLOPE | {"selects", "samplewise", CHANNELS},
    saves="result 1",
    kink=lambda input, rules: F.gaps_of_last(input, len(rules)),
    phrase="the largest element of each window gets the upstream gradient",
    vjp=lambda g, out, input, rules: (
        F.unpool(g, F.max_window_indices(input, rules), input.shape[-len(rules) :]),
    ),
)
def max_windows(input: Tensor, rules: Any):
    """The maximum of each window of the last dims; the first of equal ones gets the gradient."""


@opaque(
    _maximum_index,
    numpy=_maximum_index_as_text,
    public=False,
    properties=frozenset({"samplewise"}),
    shape=lambda input, rules: (_pooled_shape(input, rules), INT64),
)
def max_window_indices(input: Tensor, rules: Any):
    """The flat position of the maximum of each window."""


@function(public=False, samples=[S(t(1, 2), ints(values=[[0, 3]]), (4,))])
def unpool(input: Tensor, indices: Tensor, sizes: Any):
    """A tensor of zeros with `input` added at flat positions over the last dims."""
    lead = input.shape[: len(input.shape) - len(sizes)]
    flat = (*lead, count(input.shape[len(lead) :]))
    base = F.zeros((*lead, count(sizes)), dtype=input.dtype)
    spread_out = F.scatter_add(base, len(lead), F.reshape(indices, flat), F.reshape(input, flat))
    return F.reshape(spread_out, (*lead, *sizes))


def _maxima(input, rules, return_indices):
    def pool(x, rules):
        values = F.max_windows(x, rules)
        if not return_indices:
            return values
        places = F.max_window_indices(x, rules)
        values.mark().results = {1: places}  # of the one op that PyTorch has
        return values, places

    return _pooled(input, rules, pool)


def _pooled(input, rules, pool):
    """Pool the last dims; a single one as the second of two, as PyTorch records it."""
    if len(rules) > 1:
        return pool(input, rules)
    result = pool(F.unsqueeze(input, len(input.shape) - 1), (_WHOLE[rules[0][0]], *rules))
    if type(result) is tuple:
        return tuple(F.squeeze(part, len(part.shape) - 2) for part in result)
    return F.squeeze(result, len(result.shape) - 2)


_WHOLE = {
    "max": ("max", 1, 1, 1, 0, 1),
    "adaptive": ("adaptive", 1),
    "mean": ("mean", 1, 1, 1, 0, True),
}


def _declare_max_pool(n):
    """`max_pool2d`, and `max_pool2d_with_indices`, which gives these whatever is asked."""
    plain = f"max_pool{n}d"
    shape = (1, 2, 5, 4, 3)[: n + 2]

    def declare(suffix, doc, **options):
        name = plain + suffix

        @function(key=name, name=NN + name, aliases=[name], **options)
        def pool(
            input: Tensor,
            kernel_size: Ints,
            stride: Ints | None = None,
            padding: Ints = 0,
            dilation: Ints = 1,
            ceil_mode: bool = False,
            return_indices: Flag = bool(suffix),
        ):
            if n == 1 and not (return_indices or suffix):
                require_float(plain, input)
            rules = _window_rules(
                plain, "max", input, n, kernel_size, stride, padding, dilation, ceil_mode
            )
            return _maxima(input, rules, return_indices or suffix)

        pool.doc = doc

    declare(
        "",
        f"Maxima of windows over the last {n} dim{'s' * (n > 1)}; the first of equal ones counts.",
        samples=[
            S(t(*shape), 2),
            S(t(*shape), 3, 1, 1),
            S(t(*shape[1:]), 2, ceil_mode=True, return_indices=True),
        ],
        errors=[
            Bad("E308", t(2), 2),
            Bad("E309", t(*shape), 2, padding=2),
            Bad("E308", t(*shape), 9),
        ],
    )
    doc = f"`{plain}` and the flat positions of the maxima."
    declare("_with_indices", doc, samples=[S(t(*shape), 2)])


def _adaptive_rules(name, input, n, output_size):
    maxima = "max" in name
    if maxima:
        require_float(name, input)
    lead_shape(name, input, n, not maxima, input.ndim - 1 if maxima else n)
    sizes = output_size if isinstance(output_size, list | tuple) else (output_size,) * n
    if len(sizes) == 1:
        sizes = tuple(sizes) * n
    ints = all(type(v) is int or (v is None and n > 1) for v in sizes)
    if len(sizes) != n or not ints or any(v is not None and v < 0 for v in sizes):
        raise fail(
            "E309",
            f"`{name}` needs {n} output size{'s' * (n > 1)}, got {output_size}",
            help="give ints; None keeps the size of a dim",
            raises="TypeError"
            if not ints
            else "ValueError"
            if sizes is output_size and n > 1 and input.ndim <= len(sizes)
            else "",
        )
    return tuple(
        ("adaptive", size if want is None else want)
        for size, want in zip(input.shape[-n:], sizes, strict=True)
    )


def _declare_adaptive(n):
    max_name, mean_name = f"adaptive_max_pool{n}d", f"adaptive_avg_pool{n}d"
    shape = (1, 2, 5, 4, 3)[: n + 2]

    def maxima(suffix, doc, **options):
        name = max_name + suffix

        @function(key=name, name=NN + name, **options)
        def pool(input: Tensor, output_size: Any, return_indices: Flag = bool(suffix)):
            rules = _adaptive_rules(max_name, input, n, output_size)
            return _maxima(input, rules, return_indices or suffix)

        pool.doc = doc

    maxima(
        "",
        f"Maxima of windows that cover the last {n} dims with `output_size` results.",
        samples=[S(t(*shape), 2), S(t(*shape[1:]), 3, return_indices=True)],
        errors=[Bad("E308", t(2), 2)],
    )
    maxima(
        "_with_indices",
        f"`{max_name}` and the flat positions of the maxima.",
        aliases=[max_name] if n == 1 else [],
        samples=[S(t(*shape), 2)],
    )

    @function(
        key=mean_name,
        name=NN + mean_name,
        aliases=[mean_name] if n == 1 else [],
        samples=[S(t(*shape), 2), S(t(*shape[1:]), 3)],
        errors=[Bad("E308", t(2), 2)],
    )
    def mean_pool(input: Tensor, output_size: Any):
        rules = _adaptive_rules(mean_name, input, n, output_size)
        if n > 1 and all(rule[1] == 1 for rule in rules):
            dims = tuple(range(len(input.shape) - n, len(input.shape)))
            return F.mean(input, dims, True)
        return _pooled(input, rules, F.adaptive_mean)

    mean_pool.doc = f"Means of windows that cover the last {n} dims with `output_size` results."


@composite(
    public=False,
    grad_fn=lambda input, rules: f"AdaptiveAvgPool{len(rules)}DBackward0",
    properties=NAMED_SLOPE | {CHANNELS},
    saves="input",
    phrase="every element of a window gets an equal share of the upstream gradient",
)
def adaptive_mean(input: Tensor, rules: Any):
    """The mean of each window of the last dims."""
    return F.resample(input, rules)


# -- means -----------------------------------------------------------------------------------------


@composite(
    public=False,
    grad_fn=lambda input, rules, divisor=None: f"AvgPool{len(rules)}DBackward0",
    properties=NAMED_SLOPE | {CHANNELS},
    saves="input",
    phrase="every element of a window gets an equal share of the upstream gradient",
)
def mean_windows(input: Tensor, rules: Any, divisor: float | None = None):
    """The mean of each window, or its sum over `divisor`."""
    total = F.resample(input, rules)
    return total if divisor is None else total / divisor


def _declare_avg_pool(n):
    name = f"avg_pool{n}d"
    shape = (1, 2, 5, 4, 3)[: n + 2]
    divided: Any = {"divisor_override": 3} if n > 1 else {}

    @function(
        key=name,
        name=NN + name,
        aliases=[name] if n == 1 else [],
        samples=[
            S(t(*shape), 2),
            S(t(*shape[1:]), 3, 2, 1, count_include_pad=False),
            S(t(*(shape if n > 1 else (1, 5))), 2, ceil_mode=True, **divided),
        ],
        errors=[Bad("E308", t(2), 2), *[Bad("E309", t(1, 5), 2, padding=2)][: n == 1]],
        more=(Param("divisor_override", "int | None", None, False),) if n > 1 else (),
        lacks="avg_pool3d_out_frame float16" if n == 3 else "",
    )
    def pool(
        input: Tensor,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        *divisor,
    ):
        found = divisor[0] if divisor else None
        if found == 0:
            raise fail("E309", f"`{name}` cannot divide by divisor_override=0", help="leave it out")
        kind = "mean" if found is None else "sum"
        rules = _window_rules(name, kind, input, n, kernel_size, stride, padding, 1, ceil_mode)
        if n == 3:  # PyTorch looks at the input without its padding there
            for size, (_, _, k, *_) in zip(input.shape[-3:], rules, strict=True):
                if k > size:
                    raise fault("E308 window-larger-than-input", name, k, size)
        if found is None:
            rules = tuple((*rule, count_include_pad) for rule in rules)
        return _pooled(input, rules, lambda x, rules: F.mean_windows(x, rules, found))

    pool.doc = (
        f"Means of windows over the last {n} dims; the divisor may be given."
        if n > 1
        else "Means of windows over the last dim."
    )


def _declare_lp_pool(n):
    name = f"lp_pool{n}d"
    shape = (1, 1, 4, 3, 2)[: n + 2]

    @function(
        key=name,
        name=NN + name,
        samples=[S(t(*shape, low=0.2), 2, 2), S(t(*shape, low=0.2), 3.0, 2, 1)],
    )
    def pool(
        input: Tensor,
        norm_type: float,
        kernel_size: Ints,
        stride: Ints | None = None,
        ceil_mode: bool = False,
    ):
        if math.isinf(norm_type):
            largest = norm_type == math.inf
            size = F.abs(input) if largest else -F.abs(input)
            found = getattr(F, f"max_pool{n}d")(size, kernel_size, stride, 0, 1, ceil_mode)
            return found if largest else -found
        if norm_type == 0 or math.isnan(norm_type):
            raise fault("E504 no-norm-order", name, norm_type)
        power = int(norm_type) if norm_type == int(norm_type) else norm_type
        out = getattr(F, f"avg_pool{n}d")(F.pow(input, power), kernel_size, stride, 0, ceil_mode)
        size = count(spread(kernel_size, n, name, "kernel_size"))
        return F.pow(F.sign(out) * F.relu(F.abs(out)) * size, 1.0 / norm_type)

    pool.doc = f"The norm of order `norm_type` of each window over the last {n} dims."


for _n in (1, 2, 3):
    _declare_max_pool(_n)
    _declare_adaptive(_n)
    _declare_avg_pool(_n)
    _declare_lp_pool(_n)
