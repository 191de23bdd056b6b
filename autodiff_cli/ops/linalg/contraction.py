"""Contraction: products of matrices and vectors, summed over shared dims.

`matmul` is the one primitive; the others check their ranks and put it together with movement.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from ...errors import fault
from ...graph.declare import Scalar, Tensor, composite, contraction, function
from ...graph.dtypes import FLOAT64
from ...graph.op import cast, number
from ...graph.registry import F
from ...graph.samples import Bad, S, t
from ...graph.shapes import broadcast_shapes, count
from ...graph.state import STATE
from ...graph.strides import is_contiguous, strides_of
from ..kernels.indices import check_number
from ..kernels.matrices import require_numbers, transposed
from ..kernels.pytorch_product_order import batched_product, vector_product
from ..kernels.pytorch_product_order import product as single_product
from ..kernels.pytorch_sum_order import noted
from ..kernels.rules import meeting, whole_factor


def needs_dims(name, node, ndim, what):
    """E308 unless `node` has `ndim` dims."""
    if node.ndim != ndim:
        raise fault("E308 expects-dim", name, what, ndim, "" if ndim == 1 else "s", node)


def inner_sizes(name, a, b, m, n):
    """E301 unless the contracted sizes `m` of `a` and `n` of `b` agree."""
    if m != n:
        helps = []
        batches = zip(a.shape[-3::-1], b.shape[-3::-1], strict=False)
        if a.ndim > 1 and b.ndim > 1 and all(m == n or 1 in (m, n) for m, n in batches):
            if a.shape[-1] == b.shape[-1]:
                helps.append("transpose the second: `.mT`")
            elif a.shape[-2] == b.shape[-2]:
                helps.append("transpose the first: `.mT`")
        what = "the second-to-last" if b.ndim > 1 else "the only one"
        helps.append(f"the last size of the first must equal {what} of the second")
        failure = fault("E301 cannot-multiply", name, a, b, m, n)
        raise failure.amend(helps=tuple(helps))


def _matmul_shape(input, other):
    a, b = input.shape, other.shape
    if len(a) == 2 == len(b) and a[1] == b[0] and input.dtype is other.dtype is FLOAT64:
        return (a[0], b[1]), FLOAT64
    if not a or not b:
        raise fault("E308 matmul-needs-tensors-least", a, b)
    dtype = require_numbers("matmul", input, other)
    inner_sizes("matmul", input, other, a[-1], b[-2:][0])
    rows = a[-2:-1]
    columns = b[-1:] if len(b) > 1 else ()
    return (*broadcast_shapes(a[:-2], b[:-2]), *rows, *columns), dtype


def _matmul(a, b, note=None):
    product: Any = np.matmul
    if a.dtype.char == "f" and a.ndim > 2 < b.ndim:
        product = batched_product
    elif a.dtype.char == "d" == b.dtype.char and a.ndim < 3 > b.ndim and a.flags.forc:
        product = np.dot if b.flags.forc else product  # the same routine, called in less time
    elif a.dtype.char == "f" and b.ndim < 3:
        if a.ndim == 1:
            return vector_product(a, b) if b.ndim == 1 else single_product(a[None], b)[0]
        if b.ndim == 1:
            return _matmul(a, np.ascontiguousarray(b)[:, None])[..., 0]
        product = single_product
    if a.ndim > 2 and b.ndim == 2:
        rows = a.reshape(count(a.shape[:-1]), a.shape[-1])
        return product(rows, b).reshape(*a.shape[:-1], b.shape[1])
    return noted(note if product in (np.matmul, np.dot) else None, product, a, b)


RANKS = {
    (1, 1): "DotBackward0",
    (2, 1): "MvBackward0",
    (1, 2): "SqueezeBackward4 MmBackward0",
    (2, 2): "MmBackward0",
}


def _matmul_name(input, other):
    """The last ops of PyTorch's decomposition, which folds the batch into the rows if it can."""
    a, b = input.ndim, other.ndim
    name = RANKS.get((a, b))
    if name is not None:
        return name
    if a == b == 3 and input.shape[0] != other.shape[0]:
        if input.shape[0] == 1 and input.requires_grad:
            a = 2
        elif other.shape[0] == 1 and other.requires_grad:
            b = 2
    few, one = (other, b) if a >= b else (input, a)
    if one > 2 or not (few.requires_grad or (a != 2 and _folds(input, other))):
        return f"UnsafeViewBackward0 {'SqueezeBackward1 ' if b == 1 else ''}BmmBackward0"
    if a != 2:
        return f"UnsafeViewBackward0 {RANKS[2, one]}"
    sizes = (input.shape[-2], other.shape[-1])
    contiguous = 1 in sizes or 0 in (*sizes, *other.shape[:-2])
    copied = "" if contiguous else "CloneBackward0 "
    return f"{copied}TransposeBackward0 UnsafeViewBackward0 MmBackward0"


def _folds(input, other):
    """Whether all dims but the last of a batch are one without a copy: rows of the first factor,
    columns of the second."""
    x = input if input.ndim > other.ndim else other
    dims = [*range(x.ndim)] if x is input else [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2]
    steps, sizes = strides_of(x), x.shape
    pairs = pairwise(dims[:-1])
    return x.numel == 0 or all(steps[d] == steps[e] * sizes[e] for d, e in pairs)


def _fold(x):
    """All dims but the last as one."""
    return F.reshape(x, (count(x.shape[:-1]), x.shape[-1])) if x.ndim != 2 else x


def _flat(x):
    return F.reshape(x, (x.numel,)) if x.ndim != 1 else x


def _column(x):
    return F.reshape(x, (*x.shape, 1))


def _row(x):
    return F.reshape(x, (*x.shape[:-1], 1, x.shape[-1]))


def _folded(input, other):
    """The operands that PyTorch folds, expands or turns before it multiplies."""
    kept = input.ndim < 3 and other.ndim < 3 and (input.ndim == 2 or other.ndim == 1)
    kept |= input.ndim == 1 and other.ndim > 2
    return (*(() if kept else (input,)), *(() if other.ndim < 3 else (other,)))


@contraction(
    _matmul,
    numpy="input @ other",
    properties=frozenset({"noted"}),
    shape=_matmul_shape,
    grad_fn=_matmul_name,
    aliases=["linalg.matmul"],
    samples=[
        S(t(2, 3), t(3, 2)),
        S(t(3), t(3)),
        S(t(2, 3), t(3)),
        S(t(3), t(3, 2)),
        S(t(2, 2, 3), t(3, 2)),
        S(t(2, 1, 2, 3), t(3, 3, 2)),
        S(t(2), t(2, 2, 3)),
    ],
    errors=[
        Bad("E301", t(2, 3), t(2, 3), words="inner sizes 3 and 2"),
        Bad("E308", t(), t(2)),
        Bad("E302", t(2, 2, 3), t(3, 3, 2)),
        Bad("E307", t(2, 2), t(2, 2, dtype="float32"), words="float64 and float32"),
    ],
    phrase="product rule of matrices",
    saves_views=_folded,
    vjp=lambda g, out, input, other: (
        _matmul_to_input(g, input, other) if input.requires_grad else None,
        _matmul_to_other(g, input, other) if other.requires_grad else None,
    ),
)
def matmul(input: Tensor, other: Tensor):
    """Matrix product; one-dim operands are vectors, dims before the last two broadcast."""


def _matmul_to_input(g, input, other):
    a, b = input.ndim, other.ndim
    if b == 1:
        return g * other if a == 1 else _column(g) * other
    if a == 1 and b == 2:
        return F.matmul(other, g)
    if a == 1:
        to_input = F.sum_to_size(F.matmul(other, _column(g)), (input.shape[0], 1))
        return F.reshape(to_input, input.shape)
    to_input = F.matmul(g, transposed(other))
    return to_input if to_input.shape == input.shape else F.sum_to_size(to_input, input.shape)


def _matmul_to_other(g, input, other):
    a, b = input.ndim, other.ndim
    if b == 1:
        return g * input if a == 1 else F.matmul(_flat(g), _fold(input))
    if a == 1:
        return _column(input) * (g if b == 2 else _row(g))
    if b == 2:
        return F.matmul(transposed(_fold(input)), _fold(g))
    to_other = F.matmul(transposed(input), g)
    return to_other if to_other.shape == other.shape else F.sum_to_size(to_other, other.shape)


@contraction(
    _matmul,
    numpy="input @ mat2",
    properties=frozenset({"noted"}),
    shape=lambda input, mat2: _bmm_shape("bmm", input, mat2),
    vjp=lambda g, out, input, mat2: (F.bmm(g, transposed(mat2)), F.bmm(transposed(input), g)),
    samples=[S(t(2, 2, 3), t(2, 3, 2)), S(t(0, 2, 3), t(0, 3, 1))],
    errors=[
        Bad("E301", t(2, 2, 3), t(2, 2, 3)),
        Bad("E308", t(2, 3), t(2, 3, 2)),
        Bad("E308", t(1, 2, 3), t(2, 3, 2)),
    ],
)
def bmm(input: Tensor, mat2: Tensor):
    """Matrix products of two batches of matrices of one length."""


def _bmm_shape(name, a, b):
    needs_dims(name, a, 3, "the first batch")
    needs_dims(name, b, 3, "the second batch")
    dtype = require_numbers(name, a, b)
    if a.shape[0] != b.shape[0]:
        raise fault("E308 needs-two-batches-length", name, a, b)
    inner_sizes(name, a, b, a.shape[2], b.shape[1])
    return (a.shape[0], a.shape[1], b.shape[2]), dtype


@function(
    aliases=["spmm"],
    samples=[S(t(2, 3), t(3, 2)), S(t(2, 0), t(0, 2))],
    errors=[Bad("E308", t(2, 3), t(3)), Bad("E301", t(2, 3), t(2, 3), words="(2, 3)")],
)
def mm(input: Tensor, mat2: Tensor):
    """Product of two matrices."""
    needs_dims("mm", input, 2, "the first matrix")
    needs_dims("mm", mat2, 2, "the second matrix")
    return F.matmul(input, mat2)


@function(samples=[S(t(2, 3), t(3))], errors=[Bad("E308", t(3), t(3)), Bad("E301", t(2, 3), t(2))])
def mv(input: Tensor, vec: Tensor):
    """Product of a matrix and a vector."""
    needs_dims("mv", input, 2, "the matrix")
    needs_dims("mv", vec, 1, "the vector")
    return F.matmul(input, vec)


@function(
    samples=[S(t(3), t(3)), S(t(0), t(0))],
    errors=[Bad("E308", t(2, 2), t(2)), Bad("E301", t(2), t(3), words="sizes 2 and 3")],
)
def dot(input: Tensor, tensor: Tensor):
    """Sum of the products of two vectors of one length."""
    needs_dims("dot", input, 1, "the first vector")
    needs_dims("dot", tensor, 1, "the second vector")
    return F.matmul(input, tensor)


@composite(
    samples=[S(t(3), t(3))],
    errors=[Bad("E301", t(2), t(3))],
    phrase="each vector gets upstream times the other",
)
def vdot(input: Tensor, other: Tensor):
    """Sum of the products of two vectors; for real numbers the same as `dot`."""
    return F.dot(input, other)


@function(aliases=["ger"], samples=[S(t(2), t(3))], errors=[Bad("E308", t(2, 2), t(2))])
def outer(input: Tensor, vec2: Tensor):
    """The matrix of all products of an element of `input` with one of `vec2`."""
    needs_dims("outer", input, 1, "the first vector")
    needs_dims("outer", vec2, 1, "the second vector")
    return _column(input) * vec2


# -- products added to a tensor --------------------------------------------------------------------


def _check_factors(input, one, other, beta, alpha):
    for factor in (beta, alpha):
        check_number(factor, input.dtype)


def _sum_of(name, input, product, beta, alpha):
    """`beta * input + alpha * product`; a zero `beta` ignores even nan in `input`."""
    require_numbers(name, input, product)
    _check_factors(input, product, None, beta, alpha)
    if input.dtype.kind in "iu":
        alpha, beta = int(alpha), int(beta)
    if alpha != 1:
        product = product * alpha
    if broadcast_shapes(input.shape, product.shape) != product.shape:
        raise fault("E302 cannot-broadcast-product-s", name, input, product)
    if beta == 0:
        return F.where(number(False), input, product)
    return (input if beta == 1 else input * beta) + product


@composite(
    inplace=True,
    samples=[
        S(t(2, 2), t(2, 3), t(3, 2)),
        S(t(2), t(2, 3), t(3, 2), beta=0.5, alpha=2),
        S(t(), t(2, 3), t(3, 2), beta=0),
    ],
    errors=[Bad("E301", t(2, 2), t(2, 3), t(2, 2)), Bad("E302", t(3), t(2, 3), t(3, 2))],
    phrase="the sum passes on times beta; product rule of matrices times alpha",
)
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1):
    """`beta * input + alpha * (mat1 @ mat2)`; `input` broadcasts."""
    return _sum_of("addmm", input, F.mm(mat1, mat2), beta, alpha)


@composite(
    inplace=True,
    samples=[S(t(2), t(2, 3), t(3)), S(t(1), t(2, 3), t(3), beta=0.5, alpha=2)],
    errors=[Bad("E301", t(2), t(2, 3), t(2))],
    check=_check_factors,
    phrase=addmm.phrase,
)
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1):
    """`beta * input + alpha * (mat @ vec)`; `input` broadcasts."""
    return _sum_of("addmv", input, F.mv(mat, vec), beta, alpha)


def _check_scaled_outer(input, vec1, vec2, beta, alpha):
    for name, factor in (("beta", beta), ("alpha", alpha)):
        whole_factor(name, factor, input, vec1, vec2)


@composite(
    inplace=True,
    check=_check_scaled_outer,
    samples=[S(t(2, 3), t(2), t(3)), S(t(3), t(2), t(3), beta=0.5, alpha=2)],
    errors=[Bad("E308", t(2, 3), t(2, 1), t(3))],
    phrase="the sum passes on times beta; product rule of the outer product times alpha",
)
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1):
    """`beta * input + alpha * outer(vec1, vec2)`; `input` broadcasts."""
    product = F.outer(vec1, vec2)
    dtype = meeting(input, product)
    return _sum_of("addr", cast(input, dtype), cast(product, dtype), beta, alpha)


@composite(
    inplace=True,
    samples=[
        S(t(2, 2), t(3, 2, 3), t(3, 3, 2)),
        S(t(1), t(3, 2, 3), t(3, 3, 2), beta=0.5, alpha=2),
    ],
    errors=[Bad("E301", t(2, 2), t(3, 2, 3), t(3, 2, 3))],
    phrase="the sum passes on times beta; product rule of matrices times alpha",
)
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1):
    """`beta * input + alpha * (sum of the products of two batches of matrices)`."""
    total = F.to(F.sum(F.bmm(batch1, batch2), 0), batch1.dtype)
    return _sum_of("addbmm", input, total, beta, alpha)


@composite(
    like=addbmm,
    inplace=True,
    samples=[
        S(t(3, 2, 2), t(3, 2, 3), t(3, 3, 2)),
        S(t(2), t(3, 2, 3), t(3, 3, 2), beta=0.5, alpha=2),
    ],
    errors=[Bad("E301", t(3, 2, 2), t(3, 2, 3), t(3, 2, 3))],
    phrase="the sum passes on times beta; product rule of matrices times alpha",
)
def baddbmm(input, batch1, batch2, beta, alpha):
    """`beta * input + alpha * bmm(batch1, batch2)`; `input` broadcasts."""
    return _sum_of("baddbmm", input, F.bmm(batch1, batch2), beta, alpha)


@function(
    name="nn.functional.linear",
    samples=[
        S(t(2, 3), t(4, 3)),
        S(t(2, 3), t(4, 3), t(4)),
        S(t(2, 2, 3), t(4, 3), t(4)),
        S(t(3), t(4, 3), t(4)),
        S(t(2, 3), t(3)),
    ],
    errors=[Bad("E301", t(2, 3), t(4, 2), words="(2, 3)"), Bad("E302", t(2, 3), t(4, 3), t(5))],
)
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None):
    """`input @ weight.T + bias` over the last dim."""
    if not (input.ndim and weight.ndim):
        raise fault("E308 linear-needs-input-least", input, weight)
    if weight.ndim > 2:
        raise fault("E308 linear-expects-weight-dims", weight)
    if input.shape[-1] != weight.shape[-1]:
        raise fault(
            "E301 linear-cannot-apply-weight", weight, input, weight.shape[-1], input.shape[-1]
        )
    matrix = F.t(weight)
    if bias is None:
        return F.matmul(input, matrix)
    if weight.ndim == 1:
        if input.ndim == 2 or bias.ndim:
            raise fault("E308 linear-bias-needs-matrix", weight)
        return F.matmul(input, matrix) + bias
    if input.dtype != weight.dtype:
        raise fault("E307 linear-needs-input-weight", input, weight)
    if input.ndim == 2:
        return F.addmm(bias, input, matrix)
    mapped = input.ndim != 3 and any(getattr(level, "nests", True) for level in STATE.levels)
    if mapped or not is_contiguous(input):
        return F.matmul(input, matrix) + bias
    rows = F.reshape(input, (count(input.shape[:-1]), input.shape[-1]))
    return F.reshape(F.addmm(bias, rows, matrix), (*input.shape[:-1], weight.shape[0]))


@function(
    name="nn.functional.bilinear",
    samples=[S(t(2, 3), t(2, 4), t(2, 3, 4)), S(t(3), t(4), t(2, 3, 4), t(2))],
    errors=[Bad("E301", t(2, 3), t(2, 3), t(2, 3, 4)), Bad("E308", t(2, 3), t(3, 4), t(2, 3, 4))],
)
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None):
    """`input1 @ weight[k] @ input2 + bias[k]` for every output feature `k`, over the last dims."""
    require_numbers("bilinear", input1, input2, weight, *(() if bias is None else (bias,)))
    needs_dims("bilinear", weight, 3, "the weight")
    batch = input1.shape[:-1]
    if input1.ndim != input2.ndim or not input1.ndim or input2.shape[:-1] != batch:
        raise fault("E308 bilinear-needs-inputs-agree", input1, input2)
    outputs, n1, n2 = weight.shape
    if input1.shape[-1] != n1 or input2.shape[-1] != n2:
        raise fault(
            "E301 bilinear-weight-shape-needs", weight, n1, n2, input1.shape[-1], input2.shape[-1]
        )
    if bias is not None and bias.shape[:1] != (outputs,):
        raise fault("E308 bilinear-bias", weight, bias, outputs)
    rows = count(batch)
    side_by_side = F.reshape(F.permute(weight, (1, 0, 2)), (n1, outputs * n2))
    side_by_side.mark().made_of = weight
    left = F.matmul(F.reshape(input1, (rows, n1)), side_by_side)
    found = F.sum(F.reshape(left, (rows, outputs, n2)) * F.reshape(input2, (rows, 1, n2)), 2)
    result = F.to(F.reshape(found, (*batch, outputs)), input1.dtype)
    return result if bias is None else result + bias
