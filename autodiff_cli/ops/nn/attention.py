"""Attention: scaled dot products and the multi-head form of them."""

from __future__ import annotations

import math

import numpy as np

from ...errors import fault
from ...graph.declare import Flag, Tensor, composite, function
from ...graph.dtypes import BOOL, FLOAT32
from ...graph.op import constant
from ...graph.registry import F
from ...graph.samples import Bad, S, bools, t
from ...graph.sizes import shape_text
from ..kernels.rules import ONCE

NN = "nn.functional."


def _minus_infinity(dtype):
    return constant(np.array(-np.inf, dtype))


def _attend(query, key, value, mask, dropout_p, is_causal, scale):
    factor = math.sqrt(abs(scale))
    scores = F.matmul(query * math.copysign(factor, scale), F.transpose(key * factor, -2, -1))
    if is_causal:
        allowed = np.tril(np.ones((query.shape[-2], key.shape[-2]), bool))
        scores = F.where(constant(allowed), scores, _minus_infinity(scores.dtype))
    if mask is not None:
        scores = scores + (
            F.where(mask, 0.0, _minus_infinity(scores.dtype)) if mask.dtype.kind == "b" else mask
        )
    shares = F.safe_softmax(scores, len(scores.shape) - 1)
    if dropout_p > 0:
        shares = F.dropout(shares, dropout_p, True)
    return F.matmul(shares, value)


def _one_node(query, key, value, mask, dropout_p):
    """Whether PyTorch on a CPU takes its fused kernel."""
    return (
        len(query.shape) == len(key.shape) == len(value.shape) == 4
        and dropout_p == 0
        and query.shape[-1] == key.shape[-1] == value.shape[-1]
        and query.shape[:2] == key.shape[:2] == value.shape[:2]
        and 0 not in query.shape
        and 0 not in key.shape
        and (mask is None or (not mask.requires_grad and len(mask.shape) in (2, 4)))
    )


Q = (t(1, 2, 2, 3), t(1, 2, 3, 3), t(1, 2, 3, 3))


@function(
    name=NN + "scaled_dot_product_attention",
    samples=[
        S(*Q, **ONCE),
        S(*Q, is_causal=True, **ONCE),
        S(*Q, attn_mask=bools(2, 3), **ONCE),
        S(*Q, attn_mask=t(2, 3), scale=0.3),
        S(t(2, 3), t(4, 3), t(4, 2)),
        S(t(1, 4, 2, 2), t(1, 2, 2, 2), t(1, 2, 2, 2), enable_gqa=True, **ONCE),
    ],
    errors=[
        Bad("E308", t(2, 3), t(4, 2), t(4, 3)),
        Bad("E307", t(2, 3), t(4, 3), t(4, 3), t(2, 4, dtype="float16")),
    ],
)
def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
):
    """`softmax(query @ key.T * scale + attn_mask) @ value`; a bool mask is True where to look, and
    rows that look nowhere give zeros."""
    shapes = [x.shape for x in (query, key, value)]
    if (
        min(map(len, shapes)) < 2
        or query.shape[-1] != key.shape[-1]
        or key.shape[-2] != value.shape[-2]
    ):
        raise fault(
            "E308 scaled_dot_product_attention-cannot-join-query",
            ", ".join(map(shape_text, shapes)),
        )
    if not query.dtype == key.dtype == value.dtype or query.dtype.kind != "f":
        raise fault("E307 scaled_dot_product_attention-needs-query", query, key, value)
    if attn_mask is not None and attn_mask.dtype not in (BOOL, FLOAT32, query.dtype):
        raise fault("E307 scaled_dot_product_attention-mask", query, attn_mask)
    if not 0 <= dropout_p <= 1:
        raise fault("E504 dropout_p-between", dropout_p)
    if enable_gqa:
        key, value = (_grouped(x, query) for x in (key, value))
    factor = 1 / math.sqrt(max(query.shape[-1], 1)) if scale is None else scale
    if _one_node(query, key, value, attn_mask, dropout_p):
        return F.attention_at_once(query, key, value, attn_mask, is_causal=is_causal, scale=factor)
    if is_causal and attn_mask is not None:
        raise fault("E205 attn_mask-and-is_causal")
    return _attend(query, key, value, attn_mask, dropout_p, is_causal, factor)


@composite(
    name=NN + "scaled_dot_product_attention",
    grad_fn="ScaledDotProductFlashAttentionForCpuBackward0",
    no_forward="_scaled_dot_product_flash_attention_for_cpu",
    public=False,
    samples=[S(t(1, 1, 2, 3), t(1, 1, 2, 3), t(1, 1, 2, 3), scale=0.5, **ONCE)],
    saves="query, key, value, results",
)
def attention_at_once(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    *,
    is_causal: bool = False,
    scale: float,
):
    """Attention of four dims, which PyTorch records as one node."""
    slope = "aten::_scaled_dot_product_flash_attention_for_cpu_backward"
    query, key, value = (F.once(x, slope) for x in (query, key, value))
    return _attend(query, key, value, attn_mask, 0.0, is_causal, scale)


def _grouped(x, query):
    """Heads of keys or values repeated for the queries that share them."""
    for part in (x, query):
        if part.ndim < 3:
            raise fault("E304 heads-need-three-dims", part, -part.ndim, part.ndim - 1)
    heads, wanted = x.shape[-3], query.shape[-3]
    if heads == wanted:
        return x
    if heads == 0 or wanted % heads:
        raise fault("E308 heads-queries-cannot-share", wanted, heads)
    repeated = F.repeat_interleave(x, wanted // heads, len(x.shape) - 3)
    repeated.mark().made_of = x
    return repeated


# -- several heads ---------------------------------------------------------------------------------


def _check_heads(query, key, value, embed_dim, num_heads, separate):
    shapes = [x.shape for x in (query, key, value)]
    if len(query.shape) not in (2, 3) or not len(key.shape) == len(value.shape) == len(query.shape):
        raise fault(
            "E308 multi_head_attention_forward-needs-query", ", ".join(map(shape_text, shapes))
        )
    if query.shape[-1] != embed_dim or num_heads < 1 or embed_dim % num_heads:
        raise fault(
            "E308 multi_head_attention_forward-features-needs-embed_dim_to_check",
            query.shape[-1],
            embed_dim,
            num_heads,
        )
    if key.shape[:-1] != value.shape[:-1] or (not separate and key.shape != value.shape):
        raise fault("E308 key-shape-does-not", key, value)


def _thirds(x, size):
    if x is None:
        return (None,) * 3
    return tuple(F.slice(x, 0, i * size, (i + 1) * size, 1) for i in range(3))


def _projected(query, key, value, weights, in_proj_weight, in_proj_bias, separate):
    size = query.shape[-1]
    if not separate:
        if in_proj_weight is None or in_proj_weight.shape != (3 * size, size):
            raise fault("E308 in_proj_weight-shape", 3 * size, size)
        weights = _thirds(in_proj_weight, size)
    elif any(w is None for w in weights):
        raise fault("E205 use_separate_proj_weight-needs-q_proj_weight")
    else:
        for x, w in zip((query, key, value), weights, strict=True):
            if w.shape != (size, x.shape[-1]):
                raise fault("E308 expecting-weights-shape", (size, x.shape[-1]), w)
    biases = _thirds(in_proj_bias, size)
    return tuple(
        F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases, strict=True)
    )


def _heads(x, batch, num_heads, head):
    return F.transpose(F.reshape(x, (x.shape[0], batch * num_heads, head)), 0, 1)


def _given(name, x, q):
    """Keys or values that are given for each head."""
    heads, _, size = q.shape
    if x.ndim != 3 or (x.shape[0], x.shape[2]) != (heads, size):
        raise fault("E308 static-keys-shape", name, x, heads, size, x.shape[0] if x.ndim else 0)
    return x


def _masks(attn_mask, key_padding_mask, q, k, batch, num_heads):
    """One additive mask of both, or None."""
    length, places, dtype = q.shape[1], k.shape[1], q.dtype
    if attn_mask is not None:
        if attn_mask.dtype.kind == "b":
            attn_mask = F.where(attn_mask, _minus_infinity(dtype), 0.0)
        if len(attn_mask.shape) == 2:
            attn_mask = F.unsqueeze(attn_mask, 0)
        if attn_mask.shape not in ((1, length, places), (batch * num_heads, length, places)):
            raise fault(
                "E308 attn_mask-shape-does-not", attn_mask, length, places, batch * num_heads
            )
    if key_padding_mask is None:
        return attn_mask
    if key_padding_mask.shape != (batch, places):
        raise fault("E308 key_padding_mask-shape", batch, places, key_padding_mask)
    if key_padding_mask.dtype.kind == "b":
        key_padding_mask = F.where(key_padding_mask, _minus_infinity(dtype), 0.0)
    wide = F.expand(
        F.reshape(key_padding_mask, (batch, 1, 1, places)), (batch, num_heads, 1, places)
    )
    hidden = F.reshape(wide, (batch * num_heads, 1, places))
    return hidden if attn_mask is None else attn_mask + hidden


def _one_more(mask, more):
    """A mask with places for keys that were added."""
    return mask if mask is None or not more else F.pad(mask, (0, more))


MULTI = (
    t(2, 1, 2),
    t(3, 1, 2),
    t(3, 1, 2),
    2,
    1,
    t(6, 2),
    t(6),
    None,
    None,
    False,
    0.0,
    t(2, 2),
    t(2),
)


@function(
    name=NN + "multi_head_attention_forward",
    samples=[
        S(*MULTI),
        S(*MULTI[:7], t(1, 1, 2), t(1, 1, 2), True, *MULTI[10:], need_weights=False, **ONCE),
    ],
    errors=[Bad("E308", *MULTI[:3], 3, *MULTI[4:]), Bad("E308", *MULTI, static_k=t(2, 3))],
)
def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: Flag,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: Flag = True,
    key_padding_mask: Tensor | None = None,
    need_weights: Flag = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: Flag = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: Flag = True,
    is_causal: Flag = False,
):
    """Attention of several heads with its projections: the result and the shares (or None)."""
    _check_heads(query, key, value, embed_dim_to_check, num_heads, use_separate_proj_weight)
    batched = len(query.shape) == 3
    if not batched:
        query, key, value = (F.unsqueeze(x, 1) for x in (query, key, value))
        if key_padding_mask is not None:
            key_padding_mask = F.unsqueeze(key_padding_mask, 0)
    if is_causal and attn_mask is None:
        raise fault("E205 is_causal-needs-attn_mask")
    causal = is_causal and key_padding_mask is None and not need_weights
    if causal:
        attn_mask = None
    length, batch, size = query.shape
    head = size // num_heads
    weights = (q_proj_weight, k_proj_weight, v_proj_weight)
    q, k, v = _projected(
        query, key, value, weights, in_proj_weight, in_proj_bias, use_separate_proj_weight
    )
    more = 0
    if (bias_k is None) != (bias_v is None):
        raise fault("E205 bias_k-and-bias_v")
    if bias_k is not None:
        k = F.cat((k, F.expand(bias_k, (1, batch, size))), 0)
        v = F.cat((v, F.expand(bias_v, (1, batch, size))), 0)
        more += 1
    q = _heads(q, batch, num_heads, head)
    k = _heads(k, batch, num_heads, head) if static_k is None else _given("static_k", static_k, q)
    v = _heads(v, batch, num_heads, head) if static_v is None else _given("static_v", static_v, q)
    if add_zero_attn:
        zero = F.zeros((batch * num_heads, 1, head), dtype=k.dtype)
        k, v = F.cat((k, zero), 1), F.cat((v, zero), 1)
        more += 1
    masks = (_one_more(attn_mask, more), _one_more(key_padding_mask, more))
    mask = _masks(*masks, q, k, batch, num_heads)
    dropout_p = dropout_p if training else 0.0
    found, shares = _multi(q, k, v, mask, dropout_p, batch, num_heads, need_weights, causal)
    out = F.linear(F.reshape(found, (length * batch, size)), out_proj_weight, out_proj_bias)
    out = F.reshape(out, (length, batch, out.shape[1]))
    if shares is not None and average_attn_weights:
        shares = F.mean(shares, (1,))
    if batched:
        return out, shares
    return F.squeeze(out, 1), None if shares is None else F.squeeze(shares, 0)


def _multi(q, k, v, mask, dropout_p, batch, num_heads, need_weights, causal):
    """(length, batch, features) of all heads together, and the shares when they are wanted."""
    length, places, head = q.shape[1], k.shape[1], q.shape[2]
    if need_weights:
        scores = F.bmm(q * math.sqrt(1 / head), F.transpose(k, 1, 2))
        if mask is not None:
            scores = scores + mask
        shares = F.softmax(scores, 2)
        if dropout_p > 0:
            shares = F.dropout(shares, dropout_p, True)
        found = F.transpose(F.bmm(shares, v), 0, 1)
        return found, F.reshape(shares, (batch, num_heads, length, places))
    q = F.reshape(q, (batch, num_heads, length, head))
    k, v = (F.reshape(x, (batch, num_heads, places, head)) for x in (k, v))
    if mask is not None:
        mask = F.reshape(
            mask,
            (1, *mask.shape) if mask.shape[0] == 1 else (batch, num_heads, mask.shape[1], places),
        )
    found = F.scaled_dot_product_attention(q, k, v, mask, dropout_p, causal)
    return F.permute(found, (2, 0, 1, 3)), None
