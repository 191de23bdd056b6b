"""Results that are written into tensors which a call names as `out`."""

from __future__ import annotations

from sys import getrefcount
from typing import Any

from ...autograd import calls
from ...autograd.forward import moves
from ...autograd.tensor import Tensor
from ...errors import fault
from ...graph.op import cast
from ...graph.state import STATE

# What PyTorch writes into tensors of the result's own dtype only; all others convert.
_EXACT_NAMES = """
    neg float_power ldexp heaviside floor ceil trunc round abs sign sgn frac nan_to_num where
    clamp clamp_min clamp_max nn.functional.softshrink hardshrink nn.functional.softplus
    nn.functional.logsigmoid nn.functional.gelu softmax log_softmax bitwise_not isposinf
    isneginf signbit isin narrow_copy diagonal_copy diag tril triu gather index_select take
    take_along_dim masked_select nonzero scatter_add scatter scatter_reduce index_add index_copy
    index_reduce slice_scatter amax amin argmax argmin quantile nanquantile histc msort
    searchsorted bucketize logcumsumexp matmul bmm mm mv dot vdot addmm addmv addbmm baddbmm
    nn.functional.linear inner tensordot linalg.inv linalg.solve linalg.matrix_power linalg.det
    linalg.cross cross linalg.multi_dot chain_matmul linalg.matrix_norm linalg.norm nuclear_norm
    linalg.solve_triangular linalg.cholesky linalg.lu_solve lu_solve ormqr linalg.svdvals
    linalg.eigvalsh linalg.vector_norm frobenius_norm norm linalg.vecdot renorm
    nn.functional.avg_pool2d nn.functional.avg_pool3d
"""
_EXACT = frozenset(_EXACT_NAMES.split())
_SEVERAL_CONVERTED = ("linalg.lstsq", "lu", "geqrf")


def written(name: str, found: Any, out: Any, exact: bool = False) -> Any:
    """`torch.add(x, y, out=z)`, `torch.max(x, 0, out=(values, places))`: results are written into
    tensors that are there."""
    if isinstance(found, tuple) and isinstance(out, tuple | list) and len(found) == len(out):
        exact = name not in _SEVERAL_CONVERTED
        parts = [written(name, *pair, exact) for pair in zip(found, out, strict=True)]
        kept = type(found)(parts)
        vars(kept).update(vars(found), name=f"{getattr(found, 'name', '')}_out")
        return kept
    if not (isinstance(found, Tensor) and isinstance(out, Tensor)):
        raise fault("E208 writes-results-into-tensors", name=name)
    if STATE.dual and (moves(found.node) or moves(out.node)):
        raise fault("E404 out-moves", name)
    if STATE.grad and (found.requires_grad or out.requires_grad):
        raise fault("E404 out-records-nothing", name)
    if found.dtype != out.dtype and (exact or name in _EXACT):
        raise fault("E307 out-dtype", name, found, out)
    calls.check_storable(f"{name}()", found.dtype, out)
    if tuple(out.shape) == tuple(found.shape):
        out.write(found.node, found.node)
    else:
        check_resizable(out)
        out.adopt(Tensor(cast(found.node, out.dtype)))
    return out


def check_resizable(tensor: Tensor, grows: bool = True) -> None:
    """E203 for more memory of a tensor whose memory others look at, E411 of a variable."""
    if tensor.requires_grad and not STATE.inference:
        raise fault("E411 another-shape")
    if not grows:
        return
    tensor.settle()
    if tensor.storage is not None and (tensor.steps or getrefcount(tensor.storage) > 2):
        raise fault("E203 resize-tensors-their-own")
