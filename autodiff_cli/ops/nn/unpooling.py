"""Max unpooling: values back to the places that max pooling took them from."""

from __future__ import annotations

from ...errors import fault
from ...graph.declare import Any, Ints, Tensor, composite, function
from ...graph.dtypes import INT64
from ...graph.registry import F
from ...graph.samples import Bad, S, ints, t
from ...graph.shapes import count
from ...graph.sizes import shape_text
from ..kernels.windows import lead_shape, spread, whole_numbers

NN = "nn.functional."


@composite(
    public=False,
    grad_fn=lambda input, indices, sizes: f"MaxUnpool{len(sizes)}DBackward0",
    samples=[S(t(1, 2), ints(values=[[0, 3]]), (4,))],
    properties=frozenset({"selects"}),
    phrase="each element gets the gradient of the place it was put to",
)
def unpool_max(input: Tensor, indices: Tensor, sizes: Any):
    """Zeros of the given sizes with `input` written at flat positions."""
    lead = input.shape[: len(input.shape) - len(sizes)]
    flat = (*lead, count(input.shape[len(lead) :]))
    base = F.zeros((*lead, count(sizes)), dtype=input.dtype)
    written = F.scatter(base, len(lead), F.reshape(indices, flat), F.reshape(input, flat))
    return F.reshape(written, (*lead, *sizes))


def _unpooled_sizes(name, input, n, kernel, stride, padding, output_size):
    default = tuple(
        (size - 1) * s + k - 2 * p
        for size, k, s, p in zip(input.shape[-n:], kernel, stride, padding, strict=True)
    )
    if output_size is None:
        if min(default) < 0:
            raise fault("E309 unpool-negative-size", name, shape_text(input.shape), default)
        return default
    sizes = output_size[2:] if len(output_size) == n + 2 else output_size
    if len(sizes) != n or any(
        abs(size - d) >= s for size, d, s in zip(sizes, default, stride, strict=True)
    ):
        shape = shape_text(input.shape)
        raise fault("E309 unpool-size", name, output_size, shape, default)
    return sizes


def _declare_unpool(n):
    name = f"max_unpool{n}d"
    values, places = [((1, 2), (1, 3)), ((1, 1, 2), (0, 2)), ((1, 1, 1, 2), (0, 1))][n - 1]
    at = ints(*values, values=_nested(places, len(values)))

    @function(
        key=name,
        name=NN + name,
        samples=[S(t(*values), at, 2)],
        errors=[Bad("E308", t(*values), ints(1, 5), 2)],
    )
    def unpool_dims(
        input: Tensor,
        indices: Tensor,
        kernel_size: Ints,
        stride: Ints | None = None,
        padding: Ints = 0,
        output_size: Any = None,
    ):
        lead_shape(name, input, n)
        if indices.shape != input.shape or indices.dtype != INT64:
            raise fault("E308 needs-int64-index-each", name, input, indices)
        kernel = spread(kernel_size, n, name, "kernel_size")
        step = kernel if stride is None else spread(stride, n, name, "stride")
        pad = spread(padding, n, name, "padding")
        wanted = None
        if output_size is not None:
            wanted = whole_numbers(output_size, name, "output_size")
        sizes = _unpooled_sizes(name, input, n, kernel, step, pad, wanted)
        if n > 1:
            return F.unpool_max(input, indices, sizes)
        last = len(input.shape)
        flat = F.unpool_max(F.unsqueeze(input, last), F.unsqueeze(indices, last), (*sizes, 1))
        return F.squeeze(flat, last)

    unpool_dims.doc = f"Zeros with `input` written at the places that `max_pool{n}d` took it from."


def _nested(values, depth):
    nested = list(values)
    for _ in range(depth - 1):
        nested = [nested]
    return nested


for _n in (1, 2, 3):
    _declare_unpool(_n)
