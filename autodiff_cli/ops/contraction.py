"""Contraction: products of matrices and vectors, summed over shared dims.

`matmul` is the one primitive; the others check their ranks and put it together with movement.
"""

from __future__ import annotations

import numpy as np

from ..errors import fail
from ..graph.declare import Any, Scalar, Tensor, TensorList, composite, contraction, function
from ..graph.dtypes import SCALAR_NAMES
from ..graph.op import number, shape_text, value_of
from ..graph.params import node_of, to_dims
from ..graph.registry import F
from ..graph.samples import Bad, S, t
from ..graph.shapes import broadcast_shapes, count


def same_dtype(name, *nodes):
    """E307 unless all operands have one dtype, which must not be bool."""
    first = nodes[0].dtype
    for node in nodes[1:]:
        if node.dtype != first:
            raise fail(
                "E307",
                f"`{name}` expected m1 and m2 to have the same dtype, but got: "
                f"{SCALAR_NAMES[first.name]} != {SCALAR_NAMES[node.dtype.name]}",
                help=f"convert one of them: `.to(torch.{first.name})`",
            )
    if first.kind == "b":
        raise fail("E307", f"`{name}` is not defined for bool tensors",
                   help="convert first: `x.to(torch.int64)`")
    return first


def needs_dims(name, node, ndim, what):
    """E308 unless `node` has `ndim` dims."""
    if node.ndim != ndim:
        raise fail("E308", f"`{name}` expects {what} to have {ndim} dim{'' if ndim == 1 else 's'}, "
                   f"got shape {shape_text(node.shape)}",
                   help="`matmul` takes tensors of any rank; `unsqueeze` and `reshape` add dims")


def inner_sizes(name, a, b, m, n):
    """E301 unless the contracted sizes `m` of `a` and `n` of `b` agree."""
    if m != n:
        helps = []
        if a.ndim > 1 and b.ndim > 1 and a.shape[-1] == b.shape[-1]:
            helps.append("transpose the second: `.mT`")
        elif a.ndim > 1 and b.ndim > 1 and a.shape[-2] == b.shape[-2]:
            helps.append("transpose the first: `.mT`")
        helps.append("the last size of the first must equal the second-to-last of the second")
        raise fail("E301", f"`{name}` cannot multiply {shape_text(a.shape)} with "
                   f"{shape_text(b.shape)}: inner sizes {m} and {n} differ", help=tuple(helps))


def _matmul_shape(input, other):
    a, b = input.shape, other.shape
    if not a or not b:
        raise fail("E308", f"`matmul` needs tensors with at least 1 dim, got {shape_text(a)} and "
                   f"{shape_text(b)}", help="write `a * b` to multiply by a number")
    dtype = same_dtype("matmul", input, other)
    inner_sizes("matmul", input, other, a[-1], b[-2] if len(b) > 1 else b[0])
    rows = a[-2:-1]
    columns = b[-1:] if len(b) > 1 else ()
    return (*broadcast_shapes(a[:-2], b[:-2]), *rows, *columns), dtype


def _matmul(a, b):
    if a.ndim > 2 and b.ndim == 2:
        return np.matmul(a.reshape(count(a.shape[:-1]), a.shape[-1]), b).reshape(*a.shape[:-1], b.shape[1])
    return np.matmul(a, b)


RANKS = {(1, 1): "DotBackward0", (2, 1): "MvBackward0", (1, 2): "SqueezeBackward4", (2, 2): "MmBackward0"}


def _matmul_name(input, other):
    """The last op of PyTorch's decomposition, which folds the batch into the rows if it can."""
    a, b = input.ndim, other.ndim
    name = RANKS.get((a, b))
    if name is not None:
        return name
    if a == 3 and b == 3:
        if input.shape[0] == 1 != other.shape[0] and input.requires_grad:
            a = 2
    if a == 2 and b > 2 and input.requires_grad:
        sizes = (input.shape[-2], other.shape[-1])
        contiguous = 1 in sizes or 0 in (*sizes, *other.shape[:-2])
        return "TransposeBackward0" if contiguous else "CloneBackward0"
    return "UnsafeViewBackward0"


def _fold(x):
    """All dims but the last as one."""
    return F.reshape(x, (count(x.shape[:-1]), x.shape[-1])) if x.ndim != 2 else x


def _mT(x):
    return F.permute(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def _column(x):
    return F.reshape(x, (*x.shape, 1))


def _row(x):
    return F.reshape(x, (*x.shape[:-1], 1, x.shape[-1]))


@contraction(_matmul, shape=_matmul_shape, grad_fn=_matmul_name, aliases=["linalg.matmul"],
             samples=[S(t(2, 3), t(3, 2)), S(t(3), t(3)), S(t(2, 3), t(3)), S(t(3), t(3, 2)),
                      S(t(2, 2, 3), t(3, 2)), S(t(2, 1, 2, 3), t(3, 3, 2)), S(t(2), t(2, 2, 3))],
             errors=[Bad("E301", t(2, 3), t(2, 3), words="inner sizes 3 and 2"),
                     Bad("E308", t(), t(2)), Bad("E302", t(2, 2, 3), t(3, 3, 2)),
                     Bad("E307", t(2, 2), t(2, 2, dtype="float32"), words="double != float")])
def matmul(input: Tensor, other: Tensor):
    """Matrix product; one-dim operands are vectors, dims before the last two are a batch and broadcast."""


@matmul.vjp
def _(g, out, input, other):
    a, b = input.ndim, other.ndim
    if a == 1 and b == 1:
        return g * other, g * input
    if b == 1:
        return _column(g) * other, F.matmul(F.reshape(g, (g.numel,)), _fold(input))
    if a == 1:
        if b == 2:
            return F.matmul(other, g), _column(input) * g
        to_input = F.sum_to_size(F.matmul(other, _column(g)), (input.shape[0], 1))
        return F.reshape(to_input, input.shape), _column(input) * _row(g)
    to_input = F.matmul(g, _mT(other))
    if to_input.shape != input.shape:
        to_input = F.sum_to_size(to_input, input.shape)
    if b == 2:
        return to_input, F.matmul(_mT(_fold(input)), _fold(g))
    to_other = F.matmul(_mT(input), g)
    return to_input, to_other if to_other.shape == other.shape else F.sum_to_size(to_other, other.shape)


@contraction(np.matmul, shape=lambda input, mat2: _bmm_shape("bmm", input, mat2),
             vjp=lambda g, out, input, mat2: (F.bmm(g, _mT(mat2)), F.bmm(_mT(input), g)),
             samples=[S(t(2, 2, 3), t(2, 3, 2)), S(t(0, 2, 3), t(0, 3, 1))],
             errors=[Bad("E301", t(2, 2, 3), t(2, 2, 3)), Bad("E308", t(2, 3), t(2, 3, 2)),
                     Bad("E308", t(1, 2, 3), t(2, 3, 2))])
def bmm(input: Tensor, mat2: Tensor):
    """Matrix products of two batches of matrices of one length."""


def _bmm_shape(name, a, b):
    needs_dims(name, a, 3, "the first batch")
    needs_dims(name, b, 3, "the second batch")
    dtype = same_dtype(name, a, b)
    if a.shape[0] != b.shape[0]:
        raise fail("E308", f"`{name}` needs two batches of one length, got {shape_text(a.shape)} and "
                   f"{shape_text(b.shape)}", help="`matmul` broadcasts a batch of length 1")
    inner_sizes(name, a, b, a.shape[2], b.shape[1])
    return (a.shape[0], a.shape[1], b.shape[2]), dtype


@function(aliases=["spmm"], samples=[S(t(2, 3), t(3, 2)), S(t(2, 0), t(0, 2))],
          errors=[Bad("E308", t(2, 3), t(3)), Bad("E301", t(2, 3), t(2, 3), words="(2, 3)")])
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


@function(samples=[S(t(3), t(3)), S(t(0), t(0))],
          errors=[Bad("E308", t(2, 2), t(2)), Bad("E301", t(2), t(3), words="sizes 2 and 3")])
def dot(input: Tensor, tensor: Tensor):
    """Sum of the products of two vectors of one length."""
    needs_dims("dot", input, 1, "the first vector")
    needs_dims("dot", tensor, 1, "the second vector")
    return F.matmul(input, tensor)


@composite(samples=[S(t(3), t(3))], errors=[Bad("E301", t(2), t(3))])
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


def _sum_of(name, input, product, beta, alpha):
    """`beta * input + alpha * product`; a zero `beta` ignores even nan in `input`."""
    same_dtype(name, input, product)
    if input.dtype.kind in "iu" and not (float(alpha).is_integer() and float(beta).is_integer()):
        raise fail("E307", f"`{name}` of integer tensors needs integer alpha and beta, got "
                   f"{alpha!r} and {beta!r}", help="convert the tensors first: `x.to(torch.float64)`")
    if input.dtype.kind in "iu":
        alpha, beta = int(alpha), int(beta)
    if alpha != 1:
        product = product * alpha
    if broadcast_shapes(input.shape, product.shape) != product.shape:
        raise fail("E302", f"`{name}` cannot broadcast {shape_text(input.shape)} to the product's "
                   f"shape {shape_text(product.shape)}", help="the added tensor may not be larger")
    if beta == 0:
        return F.where(number(False), input, product)
    return (input if beta == 1 else input * beta) + product


@composite(inplace=True, samples=[S(t(2, 2), t(2, 3), t(3, 2)), S(t(2), t(2, 3), t(3, 2), beta=0.5, alpha=2),
                                  S(t(), t(2, 3), t(3, 2), beta=0)],
           errors=[Bad("E301", t(2, 2), t(2, 3), t(2, 2)), Bad("E302", t(3), t(2, 3), t(3, 2))])
def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1):
    """`beta * input + alpha * (mat1 @ mat2)`; `input` broadcasts."""
    return _sum_of("addmm", input, F.mm(mat1, mat2), beta, alpha)


@composite(inplace=True, samples=[S(t(2), t(2, 3), t(3)), S(t(1), t(2, 3), t(3), beta=0.5, alpha=2)],
           errors=[Bad("E301", t(2), t(2, 3), t(2))])
def addmv(input: Tensor, mat: Tensor, vec: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1):
    """`beta * input + alpha * (mat @ vec)`; `input` broadcasts."""
    return _sum_of("addmv", input, F.mv(mat, vec), beta, alpha)


@composite(inplace=True, samples=[S(t(2, 3), t(2), t(3)), S(t(3), t(2), t(3), beta=0.5, alpha=2)],
           errors=[Bad("E308", t(2, 3), t(2, 1), t(3))])
def addr(input: Tensor, vec1: Tensor, vec2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1):
    """`beta * input + alpha * outer(vec1, vec2)`; `input` broadcasts."""
    return _sum_of("addr", input, F.outer(vec1, vec2), beta, alpha)


@composite(inplace=True, samples=[S(t(2, 2), t(3, 2, 3), t(3, 3, 2)),
                                  S(t(1), t(3, 2, 3), t(3, 3, 2), beta=0.5, alpha=2)],
           errors=[Bad("E301", t(2, 2), t(3, 2, 3), t(3, 2, 3))])
def addbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1):
    """`beta * input + alpha * (sum of the products of two batches of matrices)`."""
    return _sum_of("addbmm", input, F.sum(F.bmm(batch1, batch2), 0), beta, alpha)


@composite(inplace=True, samples=[S(t(3, 2, 2), t(3, 2, 3), t(3, 3, 2)),
                                  S(t(2), t(3, 2, 3), t(3, 3, 2), beta=0.5, alpha=2)],
           errors=[Bad("E301", t(3, 2, 2), t(3, 2, 3), t(3, 2, 3))])
def baddbmm(input: Tensor, batch1: Tensor, batch2: Tensor, *, beta: Scalar = 1, alpha: Scalar = 1):
    """`beta * input + alpha * bmm(batch1, batch2)`; `input` broadcasts."""
    return _sum_of("baddbmm", input, F.bmm(batch1, batch2), beta, alpha)


@function(name="nn.functional.linear",
          samples=[S(t(2, 3), t(4, 3)), S(t(2, 3), t(4, 3), t(4)), S(t(2, 2, 3), t(4, 3), t(4)),
                   S(t(3), t(4, 3), t(4)), S(t(2, 3), t(3))],
          errors=[Bad("E301", t(2, 3), t(4, 2), words="(2, 3)"), Bad("E302", t(2, 3), t(4, 3), t(5))])
def linear(input: Tensor, weight: Tensor, bias: Tensor | None = None):
    """`input @ weight.T + bias` over the last dim."""
    if weight.ndim not in (1, 2):
        raise fail("E308", f"`linear` expects a weight with 1 or 2 dims, got {shape_text(weight.shape)}",
                   help="the weight has shape (out_features, in_features)")
    if not input.ndim:
        raise fail("E308", "`linear` needs an input with at least 1 dim, got ()", help="reshape it to (1,)")
    if input.shape[-1] != weight.shape[-1]:
        raise fail("E301", f"`linear` cannot apply a weight of shape {shape_text(weight.shape)} to an input "
                   f"of shape {shape_text(input.shape)}: {weight.shape[-1]} features expected, "
                   f"got {input.shape[-1]}", help="the weight has shape (out_features, in_features)")
    matrix = weight if weight.ndim == 1 else F.t(weight)
    if bias is None:
        return F.matmul(input, matrix)
    if weight.ndim == 1:
        return F.matmul(input, matrix) + bias
    if input.ndim == 2:
        return F.addmm(bias, input, matrix)
    rows = F.reshape(input, (count(input.shape[:-1]), input.shape[-1]))
    return F.reshape(F.addmm(bias, rows, matrix), (*input.shape[:-1], weight.shape[0]))


@function(name="nn.functional.bilinear",
          samples=[S(t(2, 3), t(2, 4), t(2, 3, 4)), S(t(3), t(4), t(2, 3, 4), t(2))],
          errors=[Bad("E301", t(2, 3), t(2, 3), t(2, 3, 4)), Bad("E308", t(2, 3), t(3, 4), t(2, 3, 4))])
def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None):
    """`input1 @ weight[k] @ input2 + bias[k]` for every output feature `k`, over the last dims."""
    same_dtype("bilinear", input1, input2, weight)
    needs_dims("bilinear", weight, 3, "the weight")
    batch = input1.shape[:-1]
    if input1.ndim != input2.ndim or not input1.ndim or input2.shape[:-1] != batch:
        raise fail("E308", f"`bilinear` needs inputs that agree in all dims but the last, got "
                   f"{shape_text(input1.shape)} and {shape_text(input2.shape)}", help="expand one of them")
    outputs, n1, n2 = weight.shape
    if input1.shape[-1] != n1 or input2.shape[-1] != n2:
        raise fail("E301", f"`bilinear` with a weight of shape {shape_text(weight.shape)} needs inputs with "
                   f"{n1} and {n2} features, got {input1.shape[-1]} and {input2.shape[-1]}",
                   help="the weight has shape (out_features, in1_features, in2_features)")
    rows = count(batch)
    left = F.matmul(F.reshape(input1, (rows, n1)), F.reshape(F.permute(weight, (1, 0, 2)), (n1, outputs * n2)))
    found = F.sum(F.reshape(left, (rows, outputs, n2)) * F.reshape(input2, (rows, 1, n2)), 2)
    result = F.reshape(found, (*batch, outputs))
    return result if bias is None else result + bias


# -- sums over chosen dims -------------------------------------------------------------------------


@function(samples=[S(t(2, 3), t(4, 3)), S(t(3), t(3)), S(t(), t(3)), S(t(2, 2, 3), t(3))],
          errors=[Bad("E301", t(2, 3), t(2))])
def inner(input: Tensor, other: Tensor):
    """Sum of products over the last dims; an operand without dims scales the other."""
    if not input.ndim or not other.ndim:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise fail("E301", f"`inner` needs last dims of one size, got {shape_text(input.shape)} and "
                   f"{shape_text(other.shape)}", help="`matmul` contracts the last with the second-to-last dim")
    return F.tensordot(input, other, ((input.ndim - 1,), (other.ndim - 1,)))


@function(method=False,
          samples=[S(t(2, 3, 2), t(3, 2, 4)), S(t(2, 3), t(4, 2), dims=([0], [1])), S(t(2), t(3), 0)],
          errors=[Bad("E301", t(2, 3), t(2, 3), 1), Bad("E304", t(2, 3), t(2, 3), 3)])
def tensordot(a: Tensor, b: Tensor, dims: Any = 2):
    """Sum of products over `dims`: the last `n` of `a` with the first `n` of `b`, or two lists of dims."""
    left, right = _tensordot_dims(a, b, dims)
    same_dtype("tensordot", a, b)
    for i, j in zip(left, right, strict=True):
        if a.shape[i] != b.shape[j] and 1 not in (a.shape[i], b.shape[j]):
            raise fail("E301", f"`tensordot` of {shape_text(a.shape)} and {shape_text(b.shape)}: dim {i} has "
                       f"size {a.shape[i]} but dim {j} has size {b.shape[j]}", help="contract dims of one size")
        if a.shape[i] != b.shape[j]:
            if a.shape[i] == 1:
                b = F.sum(b, j, True)
            else:
                a = F.sum(a, i, True)
    free_a = [i for i in range(a.ndim) if i not in left]
    free_b = [j for j in range(b.ndim) if j not in right]
    shape_a = tuple(a.shape[i] for i in free_a)
    shape_b = tuple(b.shape[j] for j in free_b)
    size = count(tuple(a.shape[i] for i in left))
    rows = F.reshape(_permuted(a, (*free_a, *left)), (count(shape_a), size))
    columns = F.reshape(_permuted(b, (*right, *free_b)), (size, count(shape_b)))
    return F.reshape(F.matmul(rows, columns), (*shape_a, *shape_b))


def _permuted(x, dims):
    return x if dims == tuple(range(x.ndim)) else F.permute(x, dims)


def _tensordot_dims(a, b, dims):
    """Pairs of dims to contract, as two tuples."""
    node = node_of(dims)
    if node is not None:
        dims = value_of(node).tolist()
    if isinstance(dims, int):
        if not 0 <= dims <= min(a.ndim, b.ndim):
            raise fail("E304", f"`tensordot` cannot contract {dims} dims of {shape_text(a.shape)} and "
                       f"{shape_text(b.shape)}", help=f"give a number from 0 to {min(a.ndim, b.ndim)}")
        return tuple(range(a.ndim - dims, a.ndim)), tuple(range(dims))
    try:
        left, right = (to_dims(d, node) if len(d) else () for d, node in zip(dims, (a, b), strict=True))
    except (TypeError, ValueError):
        raise fail("E205", f"`tensordot` needs dims as a number or two lists of dims, got {dims!r}"[:200],
                   help="write `dims=2` or `dims=([0, 1], [1, 0])`") from None
    if len(left) != len(right):
        raise fail("E304", f"`tensordot` needs as many dims of the first as of the second tensor, got "
                   f"{list(left)} and {list(right)}", help="dims are contracted in pairs")
    return left, right


@composite(grad_fn="UnsafeViewBackward0",
           samples=[S(t(2, 2), t(1, 3)), S(t(2), t(2, 3)), S(t(), t(2))])
def kron(input: Tensor, other: Tensor):
    """Kronecker product: blocks of `other`, scaled by the elements of `input`."""
    ndim = max(input.ndim, other.ndim)
    a = (1,) * (ndim - input.ndim) + input.shape
    b = (1,) * (ndim - other.ndim) + other.shape
    product = F.reshape(input, tuple(s for size in a for s in (size, 1))) * F.reshape(
        other, tuple(s for size in b for s in (1, size)))
    return F.reshape(product, tuple(m * n for m, n in zip(a, b, strict=True)))


# -- einsum ----------------------------------------------------------------------------------------


@function(method=False,
          samples=[S("ij,jk->ik", t(2, 3), t(3, 2)), S("bij,bjk->bik", t(2, 2, 3), t(2, 3, 2)),
                   S("ii->i", t(3, 3)), S("i,j", t(2), t(3)), S("...ij,...j", t(2, 2, 3), t(3)),
                   S("ij,jk,kl->il", t(2, 3), t(3, 2), t(2, 2))],
          errors=[Bad("E308", "ij->i", t(2)), Bad("E301", "ij,jk", t(2, 3), t(2, 3)),
                  Bad("E205", "ij->k", t(2, 2)), Bad("E205", "i,i->", t(2))])
def einsum(equation: str, operands: TensorList):
    """Sum of products by an equation such as `"ij,jk->ik"`: letters name dims, missing ones are summed."""
    inputs, result = _parsed(equation, operands)
    sizes = _sizes(equation, inputs, operands)
    same_dtype("einsum", *operands)
    letters = (*result, *(c for c in sizes if c not in result))
    terms = [_aligned(x, names, letters) for x, names in zip(operands, inputs, strict=True)]
    summed = range(len(result), len(letters))
    if len(terms) == 1:
        return F.sum(terms[0], tuple(summed)) if summed else terms[0]
    found = terms.pop(0)
    while terms:
        term = terms.pop(max(range(len(terms)), key=lambda i: _shared(found, terms[i], summed)))
        done = [d for d in summed if all(other.shape[d] == 1 for other in terms)]
        found = _pair(found, term, done)
    return F.reshape(found, found.shape[: len(result)]) if summed else found


def _shared(a, b, summed):
    """How many dims to sum two terms have in common; the first pair with most is multiplied next."""
    return sum(a.shape[d] != 1 != b.shape[d] for d in summed)


def _parsed(equation, operands):
    """Names of dims of every operand and of the result; dims under `...` are called -1, -2, ..."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(operands):
        raise fail("E205", f"`einsum` equation {equation!r} has {len(parts)} operands, but {len(operands)} "
                   "were given", help="separate the letters of the operands by commas")
    inputs = []
    for at, (part, x) in enumerate(zip(parts, operands, strict=True)):
        before, dots, after = part.partition("...")
        hidden = x.ndim - len(before) - len(after)
        if hidden < 0 or (hidden and not dots):
            raise fail("E308", f"`einsum` operand {at} has shape {shape_text(x.shape)}, but {part!r} names "
                       f"{len(before) + len(after)} dims", help="one letter a dim; `...` stands for the rest")
        inputs.append((*before, *range(-hidden, 0), *after))
    most = max(-min((c for c in names if isinstance(c, int)), default=0) for names in inputs)
    if arrow:
        before, dots, after = right.partition("...")
        result = (*before, *(range(-most, 0) if dots else ()), *after)
    else:
        every = [c for names in inputs for c in names if isinstance(c, str)]
        result = (*range(-most, 0), *sorted(c for c in set(every) if every.count(c) == 1))
    known = {c for names in inputs for c in names}
    for c in (*known, *result):
        if isinstance(c, str) and not (c.isascii() and c.isalpha()):
            raise fail("E205", f"`einsum` equation {equation!r} contains {c!r}",
                       help="dims are named by letters, for example `ij,jk->ik`")
        if c not in known or result.count(c) > 1:
            why = "appears twice" if c in known else "is not in any operand"
            raise fail("E205", f"`einsum` equation {equation!r}: {c!r} of the result {why}",
                       help="the result may name each letter of the operands once")
    return inputs, result


def _sizes(equation, inputs, operands):
    """The size of every name, sorted so that dims under `...` come first; E301 where two disagree."""
    sizes = {}
    for at, (names, x) in enumerate(zip(inputs, operands, strict=True)):
        for c, size in zip(names, x.shape, strict=True):
            if sizes.setdefault(c, size) == 1:
                sizes[c] = size
            elif size not in (1, sizes[c]):
                what = "a dim under `...`" if isinstance(c, int) else f"{c!r}"
                raise fail("E301", f"`einsum` {equation!r}: {what} has size {size} in operand {at} of shape "
                           f"{shape_text(x.shape)} but {sizes[c]} before", help="one letter stands for one size")
    return sizes


def _aligned(x, names, letters):
    """`x` with one dim for every letter, in their order; a repeated letter takes the diagonal."""
    names = list(names)
    for c in dict.fromkeys(names):
        while names.count(c) > 1:
            i = names.index(c)
            j = names.index(c, i + 1)
            if x.shape[i] != x.shape[j]:
                raise fail("E301", f"`einsum`: {c!r} names two dims of shape {shape_text(x.shape)} with sizes "
                           f"{x.shape[i]} and {x.shape[j]}", help="a diagonal needs dims of one size")
            x = F.diagonal(x, 0, i, j)
            names = [n for k, n in enumerate(names) if k not in (i, j)] + [c]
    for c in letters:
        if c not in names:
            x = F.unsqueeze(x, x.ndim)
            names.append(c)
    return F.permute(x, tuple(names.index(c) for c in letters))


def _pair(a, b, done):
    """The product of two terms of equal rank, summed over the dims `done` (which stay, with size 1)."""
    a = _sum_alone(a, b, done)
    b = _sum_alone(b, a, done)
    if not done:
        return a * b
    both = {d for d in range(a.ndim) if a.shape[d] != 1 != b.shape[d]}
    inner = [d for d in done if d in both]
    batch = [d for d in range(a.ndim) if d in both and d not in done]
    rows = [d for d in range(a.ndim) if d not in both and a.shape[d] != 1]
    columns = [d for d in range(a.ndim) if d not in both and a.shape[d] == 1]
    ordered = (*batch, *rows, *inner, *columns)
    left = F.reshape(_permuted(a, ordered), _blocks(a.shape, batch, rows, inner))
    ordered = (*batch, *inner, *columns, *rows)
    right = F.reshape(_permuted(b, ordered), _blocks(b.shape, batch, inner, columns))
    product = F.bmm(left, right) if batch else F.matmul(left, right)
    ordered = (*batch, *rows, *columns, *inner)
    sizes = (*(a.shape[d] for d in (*batch, *rows)), *(b.shape[d] for d in columns), *(1 for _ in inner))
    return _permuted(F.reshape(product, sizes), tuple(ordered.index(d) for d in range(a.ndim)))


def _sum_alone(x, other, done):
    alone = tuple(d for d in done if other.shape[d] == 1 != x.shape[d])
    return F.sum(x, alone, True) if alone else x


def _blocks(shape, *groups):
    sizes = tuple(count(tuple(shape[d] for d in group)) for group in groups)
    return sizes if groups[0] else sizes[1:]
