"""Checks and pieces that the families of linear algebra share; matrices are the last two dims."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...errors import AutodiffError, fault
from ...graph.dtypes import INT32, SCALAR_NAMES, SCALAR_TYPES, is_float
from ...graph.node import Node
from ...graph.op import CONSTANT, known, value_of
from ...graph.registry import F
from ...graph.samples import Bad, t
from ...graph.shapes import count
from .rules import require_float


def lapack(a: Any, *names: str) -> list[Any]:
    """Functions of LAPACK and BLAS for the dtype of an array."""
    from scipy.linalg import _fblas, _flapack

    letter = "s" if a.dtype.char == "f" else "d"
    return [
        getattr(_flapack, letter + name, None) or getattr(_fblas, letter + name) for name in names
    ]


def require_matrices(name: str, input: Node, *, square: bool = False) -> None:
    """E308 unless `input` is a matrix or a batch of them, E307 unless of float32 or float64."""
    if input.ndim < 2:
        raise fault("E308 needs-matrix-2", name, input)
    if square and input.shape[-1] != input.shape[-2]:
        raise fault("E308 needs-square-matrices", name, input)
    require_float(name, input, "RuntimeError")
    if input.dtype.itemsize < 4:
        raise fault("E307 does-not-take", name, input)


SINGULAR = t(values=[[1.0, 2.0], [2.0, 4.0]])
REGULAR = t(values=[[2.0, 0.5], [-0.3, 1.5]])
SQUARE_ONLY = (Bad("E308", t(2, 3), words="square"), Bad("E308", t(2)))


def with_info(name: str, A: Node) -> Any:
    """The shapes of what is made of square matrices, one of each, and of an info about it."""
    require_matrices(name, A, square=True)
    return (A.shape, A.dtype), (A.shape[:-2], INT32)


def is_vector(a: Any, b: Any) -> bool:
    """Whether the right side `b` is a vector (or one for each matrix of a batch), as in PyTorch."""
    return b.ndim == 1 or (a.ndim - 1 == b.ndim and b.shape == a.shape[:-1])


# Of ops whose matrices lie in column-major order, as LAPACK leaves them.
COLUMNS = frozenset({"columns"})


def _words(name: str, nodes: tuple[Node, ...]) -> str:
    """How PyTorch says that dtypes differ, by the kernel that it would call."""
    first, other = (SCALAR_TYPES[node.dtype.name] for node in (nodes[0], nodes[-1]))
    dims = [node.ndim for node in nodes]
    if name == "linalg.solve":
        return (
            f"linalg.solve: Expected A and B to have the same dtype, but found A of type {first} "
            f"and B of type {other} instead"
        )
    if name in ("addmm", "linear"):
        return f"self and mat2 must have the same dtype, but got {first} and {other}"
    if dims == [1, 1]:
        return f"dot : expected both vectors to have same dtype, but found {first} and {other}"
    if dims[-1] == 1:
        return (
            f"addmv input tensors must have the same dtype, but got {other}, {first}, and {other}"
        )
    if name in ("cdist", "einsum", "weight_norm") or min(dims) > 2:
        found = next(node for node in nodes[1:] if node.dtype != nodes[0].dtype)
        return f"expected scalar type {first} but found {SCALAR_TYPES[found.dtype.name]}"
    names = [SCALAR_NAMES[node.dtype.name] for node in (nodes[0], nodes[-1])]
    return f"expected m1 and m2 to have the same dtype, but got: {names[0]} != {names[1]}"


def require_same_dtype(name: str, *nodes: Node) -> np.dtype:
    """The one dtype of all operands; E307 when they differ."""
    first = nodes[0]
    for node in nodes[1:]:
        if node.dtype != first.dtype:
            kept, other = (first, node) if is_float(first.dtype) else (node, first)
            error = fault(
                "E307 needs-operands-dtype", name, first, node, wanted=kept.dtype, converted=other
            )
            raise error.amend(notes=(f"PyTorch: {_words(name, nodes)}",))
    return first.dtype


def require_numbers(name: str, *nodes: Node) -> np.dtype:
    """The one dtype of all operands, E307 when they differ or are bool."""
    dtype = require_same_dtype(name, *nodes)
    if dtype.kind == "b":
        raise fault("E307 not-defined-bool-tensors", name)
    return dtype


def singular(name: str, why: str, at: tuple[int, ...] = (), info: int = 0) -> AutodiffError:
    """E503; `at` is the place of the matrix in its batch, `info` what LAPACK says of it."""
    where = f" (batch element {at[0] if len(at) == 1 else at})" if at else ""
    return fault("E503 where-why", name, where, why.format(info), info)


def check_info(name: str, info: Node, why: str) -> None:
    """E503 when an info is not 0; `why` tells the reason, with `{}` for the info."""
    if not known(info):
        return
    values = value_of(info)
    if values.any():
        at = tuple(int(i) for i in np.argwhere(values)[0])
        raise singular(name, why, at, int(values[at]))


def checked(name: str, why: str, results: Any, check: bool = True) -> Any:
    """Results, the last of which is an info that is looked at."""
    if check:
        check_info(name, results[-1], why)
    return results


def each(
    kernel: Callable[..., tuple[Any, ...]], outputs: list[tuple[tuple[int, ...], Any]], *arrays: Any
) -> tuple[Any, ...]:
    """Apply a LAPACK routine to every matrix of a batch. `outputs` are the shapes and dtypes of
    one matrix's results; the arrays' last two dims are matrices."""
    batch = np.broadcast_shapes(*(a.shape[:-2] for a in arrays))
    stacks = [
        np.broadcast_to(a, batch + a.shape[-2:]).reshape(count(batch), *a.shape[-2:])
        for a in arrays
    ]
    results = [np.zeros((count(batch), *shape), dtype) for shape, dtype in outputs]
    for i in range(count(batch)):
        for result, value in zip(results, kernel(*(stack[i] for stack in stacks)), strict=True):
            result[i] = value
    return tuple(r.reshape(batch + r.shape[1:]) for r in results)


def missing(g: Node) -> bool:
    """Whether a cotangent is the literal zero of a result that was not used."""
    while g.op.view:
        g = g.inputs[0]
    return g.op is CONSTANT and g.weak and not g.value


def transposed(x: Node) -> Node:
    """The transpose of every matrix."""
    return F.permute(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def identity(n: int, dtype: np.dtype) -> Node:
    """The identity matrix."""
    return F.eye(n, dtype=dtype)


def columns(x: Node, n: int) -> Node:
    """The first `n` columns."""
    return x if x.shape[-1] == n else F.narrow(x, x.ndim - 1, 0, n)


def rows(x: Node, n: int) -> Node:
    """The first `n` rows."""
    return x if x.shape[-2] == n else F.narrow(x, x.ndim - 2, 0, n)


def rest_rows(x: Node, n: int) -> Node:
    """The rows from `n` on."""
    return F.narrow(x, x.ndim - 2, n, x.shape[-2] - n)


def rest_columns(x: Node, n: int) -> Node:
    """The columns from `n` on."""
    return F.narrow(x, x.ndim - 1, n, x.shape[-1] - n)


def times_diagonal(x: Node, d: Node) -> Node:
    """`x @ diag(d)`."""
    return x * F.unsqueeze(d, d.ndim - 1)


def diagonal_times(d: Node, x: Node) -> Node:
    """`diag(d) @ x`."""
    return F.unsqueeze(d, d.ndim) * x
