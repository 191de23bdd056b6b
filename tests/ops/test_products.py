"""A product of two matrices of float32 is that of a batch of one, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

from autodiff_cli.ops.kernels.pytorch_product_order import FEW, batched_product, product


@pytest.mark.parametrize("sizes", [(4, 9, 12), (5, 191, 13), (8, 193, 16), (20, 400, 35)])
@pytest.mark.parametrize("turned", [(False, False), (True, False), (False, True), (True, True)])
def test_a_product_is_a_batch_of_one(sizes, turned):
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
