"""A product of two matrices of float32 is that of a batch of one, bit for bit, and PyTorch's on
AMD's processors."""

from __future__ import annotations

import numpy as np
import pytest

from autodiff_cli.ops.kernels import pytorch_product_order
from autodiff_cli.ops.kernels.pytorch_product_order import (
    FEW,
    batched_product,
    chain,
    in_order,
    product,
)
from autodiff_cli.session import Options, run
from autodiff_cli.source import Source
from tests.recorded import cases


@pytest.mark.parametrize("sizes", [(4, 9, 12), (5, 191, 13), (8, 193, 16), (20, 400, 35)])
@pytest.mark.parametrize("way", [np.matmul, pytorch_product_order._tiled])
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
def test_a_product_is_a_batch_of_one(sizes, turned, way, monkeypatch):
    monkeypatch.setattr(pytorch_product_order, "chain", lambda: way)
    m, k, n = sizes
    assert m * k * n >= FEW
    rng = np.random.default_rng(k)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((m, k), (k, n)))
    a, b = (
        np.asfortranarray(x) if swapped else x for x, swapped in zip((a, b), turned, strict=True)
    )
    found = product(a, b)
    assert found.tobytes() == batched_product(a[None], b[None])[0].tobytes()
    np.testing.assert_allclose(found, a.astype(float) @ b.astype(float), 1e-4, 1e-4)


@pytest.mark.parametrize("title", ["products of float32", "batches of products of float32"])
def test_bits_recorded_on_an_amd_processor(title):
    """Larger ones where NumPy's library can be asked for this order."""
    everything = in_order(chain())
    (case,) = [x for x in cases("programs") if x["id"].startswith(f"seeded: {title}")]
    found = run(Source(case["source"], "program.py"), Options()).stdout.splitlines()
    compared = 0
    for ours, recorded in zip(found, case["stdout"].splitlines(), strict=True):
        numbers = recorded.strip("[]").replace(",", "").split()
        sizes = [int(x) for x in numbers if x.isdigit() and int(x) < 1000]
        large = len(sizes) > 2 and sizes[-3] >= 4 and sizes[-1] >= 12
        if "." not in recorded and (everything or not large):
            assert ours == recorded
            compared += 1
    assert compared >= 5


@pytest.mark.parametrize(
    ("equation", "lists"),
    [
        ("i,i->", ([1, 2], [3, 4])),
        ("i->", ([1, 2],)),
        ("ij,jk->ik", ([[1, 2], [3, 4]], [[1], [2]])),
        ("ij,j", ([[1.5, 2], [3, 4]], [1, 2])),
    ],
)
def test_lists_are_operands_of_einsum(equation, lists):
    call = f"y = einsum({equation!r}, {', '.join(map(repr, lists))})"
    report = run(Source(call, "lists.expr"), Options())
    assert report.error is None, report.error
    np.testing.assert_array_equal(report.tensors["y"].value, np.einsum(equation, *lists))
