"""A product of two matrices of float32 is that of a batch of one, bit for bit, and PyTorch's on
AMD's processors."""

from __future__ import annotations

from itertools import pairwise

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
    for one, other in ((a[None], b[None]), (a[None], b), (a, b[None])):
        assert found.tobytes() == batched_product(one, other)[0].tobytes()
    apart = np.repeat(b, 2, axis=1)[:, ::2]
    assert product(a, apart).tobytes() == product(a, np.ascontiguousarray(b)).tobytes()
    np.testing.assert_allclose(found, a.astype(float) @ b.astype(float), 1e-4, 1e-4)


@pytest.mark.parametrize("way", [np.matmul, pytorch_product_order._tiled])
def test_blocks_are_added(way, monkeypatch):
    """What is no longer than a block is one sum; up to twice as much is cut in the middle."""
    monkeypatch.setattr(pytorch_product_order, "chain", lambda: way)
    monkeypatch.setattr(pytorch_product_order, "BLOCK", 48)
    rng = np.random.default_rng(0)
    for k, cuts in ((48, [0, 48]), (49, [0, 24, 48, 49]), (96, [0, 48, 96]), (97, [0, 48, 96, 97])):
        a, b = rng.standard_normal((k, 5)).astype("f4").T, rng.standard_normal((k, 13)).astype("f4")
        parts = [way(a[:, i:j], b[i:j]) for i, j in pairwise(cuts)]
        assert product(a, b).tobytes() == sum(parts[1:], parts[0]).tobytes()


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


@pytest.mark.parametrize(("sizes", "way"), [
    ((4, 20, 12), "fused"), ((4, 21, 12), "library"), ((4, 12, 20), "fused"),
    ((4, 12, 21), "library"), ((5, 16, 12), "fused"), ((5, 17, 12), "library"),
    ((4, 0, 12), "library"), ((3, 2, 12), "library"), ((3, 5, 4), "rounded"),
    ((3, 4, 5), "rounded"), ((3, 6, 4), "library"), ((3, 4, 6), "library"),
    ((5, 4, 3), "rounded"), ((5, 4, 4), "library"), ((3, 0, 4), "library"),
])  # fmt: skip
@pytest.mark.parametrize("batch", [(), (1,), (2,), (2, 2)])
def test_what_is_long_is_left_to_the_library(batch, sizes, way, monkeypatch):
    """Bounds are on all terms: of a batch, of which nothing is flat, on those of all examples."""
    taken = []
    monkeypatch.setattr(pytorch_product_order, "MOST_FUSED", 960)
    monkeypatch.setattr(pytorch_product_order, "MOST_ROUNDED", 60)
    monkeypatch.setattr(pytorch_product_order, "FEW", 0)
    monkeypatch.setattr(pytorch_product_order, "_fused", lambda a, b: taken.append("fused"))
    monkeypatch.setattr(np, "matmul", lambda a, b: taken.append("library"))
    (m, k, n), of = sizes, batched_product if batch else product
    of(np.ones((*batch, m, k), "f4"), np.ones((*batch, k, n), "f4"))
    if batch:
        way = "fused" if way == "fused" and batch == (1,) else "library"
    assert (taken or ["rounded"]) == [way]
