"""Sums of products over chosen dims: einsum, tensordot, inner and Kronecker products.

All are movement around a matrix product.
"""

from __future__ import annotations

import re
from string import ascii_letters

from ...errors import fail, fault
from ...graph.declare import Any, Tensor, TensorList, function
from ...graph.op import value_of
from ...graph.params import BindError, node_of, to_dims
from ...graph.registry import F
from ...graph.samples import Bad, S, t
from ...graph.shapes import count
from ..kernels.matrices import require_numbers, require_same_dtype

# -- sums over chosen dims -------------------------------------------------------------------------


@function(
    samples=[S(t(2, 3), t(4, 3)), S(t(3), t(3)), S(t(), t(3)), S(t(2, 2, 3), t(3))],
    errors=[Bad("E301", t(2, 3), t(2))],
)
def inner(input: Tensor, other: Tensor):
    """Sum of products over the last dims; an operand without dims scales the other."""
    if not input.ndim or not other.ndim:
        return input * other
    if input.shape[-1] != other.shape[-1]:
        raise fault("E301 inner-needs-last-dims", input, other)
    return F.tensordot(input, other, ((input.ndim - 1,), (other.ndim - 1,)))


@function(
    method=False,
    samples=[S(t(2, 3, 2), t(3, 2, 4)), S(t(2, 3), t(4, 2), dims=([0], [1])), S(t(2), t(3), 0)],
    errors=[
        Bad("E301", t(2, 3), t(2, 3), 1),
        Bad("E304", t(2, 3), t(2, 3), 3),
        Bad("E205", t(2), t(2), "x"),
    ],
)
def tensordot(a: Tensor, b: Tensor, dims: Any = 2):
    """Sum of products over `dims`: the last `n` of `a` with the first `n` of `b`, or two lists."""
    left, right = _tensordot_dims(a, b, dims)
    require_numbers("tensordot", a, b)
    for i, j in zip(left, right, strict=True):
        m, n = a.shape[i], b.shape[j]
        if m != n == 1:
            a = F.sum(a, i, True)
        elif n != m == 1:
            b = F.sum(b, j, True)
        elif m != n:
            raise fault("E301 tensordot", a, b, i, m, j, n)
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
            raise fault("E304 tensordot-cannot-contract-dims", dims, a, b, min(a.ndim, b.ndim))
        return tuple(range(a.ndim - dims, a.ndim)), tuple(range(dims))
    try:
        first, second = dims
        left, right = to_dims(first, a) or (), to_dims(second, b) or ()
    except (TypeError, ValueError, BindError):
        raise fail(
            "E205",
            f"`tensordot` needs dims as a number or two lists of dims, got {dims!r}"[:200],
            help="write `dims=2` or `dims=([0, 1], [1, 0])`",
        ) from None
    if len(left) != len(right):
        raise fault("E304 tensordot-needs-many-dims", list(left), list(right))
    return left, right


@function(samples=[S(t(2, 2), t(1, 3)), S(t(2), t(2, 3)), S(t(), t(2))])
def kron(input: Tensor, other: Tensor):
    """Kronecker product: blocks of `other`, scaled by the elements of `input`."""
    ndim = max(input.ndim, other.ndim)
    a = (1,) * (ndim - input.ndim) + input.shape
    b = (1,) * (ndim - other.ndim) + other.shape
    rows = _unshared(input, tuple(s for size in a for s in (size, 1)))
    columns = _unshared(other, tuple(s for size in b for s in (1, size)))
    return F.unsafe_view(rows * columns, tuple(m * n for m, n in zip(a, b, strict=True)))


def _unshared(x, size):
    owner = x.handle and x.handle()
    if owner is not None:
        owner.share().aliased = True
    return F.unshared_view(x, size)


# -- einsum ----------------------------------------------------------------------------------------


@function(
    method=False,
    samples=[
        S("ij,jk->ik", t(2, 3), t(3, 2)),
        S("bij,bjk->bik", t(2, 2, 3), t(2, 3, 2)),
        S("ii->i", t(3, 3)),
        S("i,j", t(2), t(3)),
        S("...ij,...j", t(2, 2, 3), t(3)),
        S("ij,jk,kl->il", t(2, 3), t(3, 2), t(2, 2)),
    ],
    errors=[
        Bad("E308", "ij->i", t(2)),
        Bad("E301", "ij,jk", t(2, 3), t(2, 3)),
        Bad("E205", "ij->k", t(2, 2)),
        Bad("E205", "i,i->", t(2)),
    ],
)
def einsum(equation: str, operands: TensorList):
    """Sum of products by an equation such as `"ij,jk->ik"`: dims without a place are summed."""
    inputs, result = _parsed(equation, operands)
    sizes = _sizes(equation, inputs, operands)
    if len({x.dtype for x in operands}) > 1 and set(sizes) - set(result):
        require_same_dtype("einsum", *operands)
    rest = sorted(set(sizes) - set(result), key=lambda c: (isinstance(c, str), c))
    letters = (*result, *rest)
    terms = [_aligned(x, names, letters) for x, names in zip(operands, inputs, strict=True)]
    summed = range(len(result), len(letters))
    found, *rest = terms
    if not rest:
        return F.sum(found, tuple(summed)) if summed else found
    left = [sum(x.shape[d] != 1 for x in terms) for d in range(len(letters))]
    for term in rest:
        found = _pair(found, term, summed, left)
    return F.view(found, found.shape[: len(result)]) if summed else found


@function(
    name="einsum",
    method=False,
    samples=[S(t(2, 3), [0, 1], t(3, 2), [1, 2], [0, 2]), S(t(2, 2), [0, 0])],
    errors=[Bad("E205", t(2, 2), t(2, 2)), Bad("E205", t(2, 2), [0, 60])],
)
def einsum_lists(operands: TensorList):
    """`einsum` with lists in place of letters: `einsum(A, [0, 1], B, [1, 2], [0, 2])`."""
    half = len(operands) // 2
    lists = [_letters(x) for x in (*operands[1::2], *operands[2 * half :])]
    equation = ",".join(lists[:half]) + "".join("->" + names for names in lists[half:])
    return F.einsum(equation, operands[: 2 * half : 2])


def _letters(node):
    numbers = value_of(node).reshape(-1)
    if (
        node.ndim != 1
        or (numbers.size and node.dtype.kind not in "iu")
        or ((numbers < 0) | (numbers > 51)).any()
    ):
        raise fault("E205 einsum-needs-equation")
    return "".join(ascii_letters[int(i)] for i in numbers)


_UNKNOWN = "does not appear in the equation for any input operand"


def _parsed(equation, operands):
    """Names of dims of every operand and of the result; dims under `...` are called -1, -2, ..."""
    if bad := re.search(r"[^a-zA-Z,. ]", equation.replace("->", "..", 1)):
        raise fault("E205 einsum-equation-contains", equation, bad[0], at=bad.start())
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    parts = left.split(",")
    if len(parts) != len(operands):
        words = "fewer" if len(parts) > len(operands) else "more"
        raise fault("E205 einsum-equation-operands", equation, len(parts), len(operands), words)
    inputs = []
    for at, (part, x) in enumerate(zip(parts, operands, strict=True)):
        before, dots, after = part.partition("...")
        number = len(before) + len(after)
        hidden = x.ndim - number
        if hidden < 0 or (hidden and not dots):
            words, end = "does not match", " and no ellipsis was given"
            if dots:
                words, end = "is more than", ""
            raise fault("E308 einsum-operand-shape", at, x, part, number, words=words, end=end)
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
        if c == ".":
            raise fault("E205 einsum-equation-contains", equation, c, at=equation.index(c))
        if c not in known or result.count(c) > 1:
            why, words = "is not in any operand", _UNKNOWN
            if c in known:
                why, words = "appears twice", "appears more than once in the output"
            raise fault("E205 einsum-equation-result", equation, c, why, words=words)
    return inputs, result


def _sizes(equation, inputs, operands):
    """The size of every name; E301 where two operands disagree."""
    sizes: dict[Any, int] = {}
    for at, (names, x) in enumerate(zip(inputs, operands, strict=True)):
        for c, size in zip(names, x.shape, strict=True):
            if sizes.setdefault(c, size) == 1:
                sizes[c] = size
            elif size not in (1, sizes[c]):
                what = "a dim under `...`" if isinstance(c, int) else f"{c!r}"
                raise fault("E301 einsum-size-operand-shape", equation, what, size, at, x, sizes[c])
    return sizes


def _aligned(x, names, letters):
    """`x` with one dim for every letter, in their order; a repeated letter takes the diagonal."""
    names = list(names)
    for c in dict.fromkeys(names):
        while names.count(c) > 1:
            i = names.index(c)
            j = names.index(c, i + 1)
            x = F.diagonal(x, 0, i, j)
            names = [n for k, n in enumerate(names) if k not in (i, j)] + [c]
    for c in letters:
        if c not in names:
            x = F.unsqueeze(x, x.ndim)
            names.append(c)
    return F.permute(x, tuple(names.index(c) for c in letters))


def _pair(a, b, summed, left):
    """The product of two terms of equal rank, summed over those dims that no other term needs,
    which stay as 1; `left` counts the terms that have a dim. The steps are PyTorch's."""
    both = {d for d in range(a.ndim) if a.shape[d] != 1 != b.shape[d]}
    for d in both:
        left[d] -= 1
    done = [d for d in summed if left[d] == 1 and (a.shape[d], b.shape[d]) != (1, 1)]
    a, b = (_sum_alone(x, [d for d in done if d not in both]) for x in (a, b))
    inner = [d for d in done if d in both]
    for d in done:
        left[d] = 0
    if not inner:
        return a * b
    batch = [d for d in range(a.ndim) if d in both and d not in inner]
    rows = [d for d in range(a.ndim) if d not in both and a.shape[d] != 1]
    columns = [d for d in range(a.ndim) if d not in both and a.shape[d] == 1]
    if rows and columns and rows[-1] > columns[-1]:  # the last dim comes from the second
        a, b, rows, columns = b, a, columns, rows
    ordered = (*batch, *rows, *inner, *columns)
    first = F.reshape(F.permute(a, ordered), _blocks(a.shape, batch, rows, inner))
    second = F.permute(b, (*batch, *inner, *columns, *rows))
    product = F.bmm(first, F.reshape(second, _blocks(b.shape, batch, inner, columns)))
    ordered = (*batch, *rows, *inner, *columns)
    sizes = [1 if d in inner else (b if d in columns else a).shape[d] for d in ordered]
    return F.permute(F.view(product, tuple(sizes)), tuple(map(ordered.index, range(a.ndim))))


def _sum_alone(x, dims):
    alone = tuple(d for d in dims if x.shape[d] != 1)
    return F.sum(x, alone, True) if alone else x


def _blocks(shape, *groups):
    return tuple(count(tuple(shape[d] for d in group)) for group in groups)
