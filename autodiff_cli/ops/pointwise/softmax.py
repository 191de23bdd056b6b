"""Softmax and its relatives."""

from __future__ import annotations

from ...graph.declare import Dim, Dtype, Tensor, composite, function
from ...graph.op import cast
from ...graph.registry import F
from ...graph.samples import Bad, S, ints, t
from ..kernels.rules import require_float


def _shifted(input, dim):
    """`input` less its largest element along `dim`, so that exponentials do not overflow."""
    return input - F.detach(F.amax(input, dim, keepdim=True))


def _checked(name, input, dtype):
    if dtype is not None:
        input = cast(input, dtype)
    require_float(name, input)
    return input


SOFTMAX_SAMPLES = (S(t(2, 3), dim=-1), S(t(2, 3, 2), 1), S(t(), 0))
SOFTMAX_ERRORS = (Bad("E304", t(2, 3), 2), Bad("E307", ints(2), 0))


def _implicit_dim(input, dim):
    """The dim that `nn.functional` takes for None."""
    if dim is None:
        return 0 if len(input.shape) in (0, 1, 3) else 1
    return dim


def _softmax_pair(key, node):
    def plain(input: Tensor, dim: Dim, dtype: Dtype | None = None):
        return getattr(F, node)(_checked(key, input, dtype), dim)

    def functional(
        input: Tensor, dim: Dim | None = None, _stacklevel: int = 3, dtype: Dtype | None = None
    ):
        return getattr(F, node)(_checked(key, input, dtype), _implicit_dim(input, dim))

    doc = (
        "Logarithms of softmax along `dim`."
        if "log" in key
        else "Exponentials along `dim`, scaled to sum to one."
    )
    plain.__doc__ = functional.__doc__ = doc
    function(key=key, aliases=[f"special.{key}"], samples=SOFTMAX_SAMPLES, errors=SOFTMAX_ERRORS)(
        plain
    )
    function(
        key=f"functional_{key}",
        name=f"nn.functional.{key}",
        samples=[*SOFTMAX_SAMPLES, S(t(2, 3))],
    )(functional)


_softmax_pair("softmax", "softmax_node")
_softmax_pair("log_softmax", "log_softmax_node")


@composite(
    public=False,
    name="softmax",
    grad_fn="SoftmaxBackward0",
    samples=[S(t(2, 3), 1)],
    properties=frozenset({"saturates", "row-major"}),
    phrase="s * (g - sum(g * s)), where s is the result",
    counterpart="softmax",
)
def softmax_node(input: Tensor, dim: Dim):
    """Exponentials along `dim`, scaled to sum to one."""
    if not input.numel:
        return F.exp(input)
    powers = F.exp(_shifted(input, dim))
    return powers / F.sum(powers, dim, keepdim=True)


@softmax_node.vjp
def _(g, out, input, dim):
    weighted = g * out
    return weighted - out * F.sum(weighted, dim, keepdim=True)


@composite(
    public=False,
    like=softmax_node,
    samples=[S(t(2, 3), 1)],
    counterpart="_safe_softmax",
)
def safe_softmax(input, dim):
    """Softmax in which rows of minus infinity give zeros."""
    if not input.numel:
        return F.exp(input)
    largest = F.detach(F.amax(input, dim, keepdim=True))
    powers = F.exp(input - F.where(F.eq(largest, float("-inf")), 0.0, largest))
    total = F.sum(powers, dim, keepdim=True)
    return powers / F.where(F.eq(total, 0.0), 1.0, total)


@composite(
    public=False,
    name="log_softmax",
    grad_fn="LogSoftmaxBackward0",
    samples=[S(t(2, 3), 1)],
    properties=frozenset({"saturates", "row-major"}),
    counterpart="log_softmax",
    vjp=lambda g, out, input, dim: g - F.exp(out) * F.sum(g, dim, keepdim=True),
    phrase="g - softmax(x) * sum(g)",
)
def log_softmax_node(input: Tensor, dim: Dim):
    """Logarithms of softmax along `dim`."""
    if not input.numel:
        return F.exp(input)
    shifted = _shifted(input, dim)
    return shifted - F.log(F.sum(F.exp(shifted), dim, keepdim=True))


@function(name="nn.functional.softmin", samples=[*SOFTMAX_SAMPLES, S(t(2, 3))])
def softmin(
    input: Tensor, dim: Dim | None = None, _stacklevel: int = 3, dtype: Dtype | None = None
):
    """Softmax of the negated elements."""
    return F.softmax_node(_checked("softmin", -input, dtype), _implicit_dim(input, dim))
