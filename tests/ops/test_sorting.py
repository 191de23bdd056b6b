"""Sorting many elements: the quick way only where it gives the order of the stable one."""

from __future__ import annotations

import numpy as np
import pytest

from autodiff_cli.ops.indexing import sorting

SHAPES = [(3000,), (40, 50), (4, 30, 20)]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["distinct", "equal", "nan", "zeros"])
@pytest.mark.parametrize("descending", [False, True])
def test_equal_elements_keep_their_order(shape, kind, descending):
    assert np.prod(shape) >= sorting.MANY
    x = np.random.default_rng(0).standard_normal(shape)
    if kind == "equal":
        x = np.round(x, 1)
    elif kind == "nan":
        x.reshape(-1)[[3, 4, 900]] = np.nan
    elif kind == "zeros":
        x.reshape(-1)[[3, 5]] = 0.0, -0.0
    for dim in range(x.ndim):
        found = sorting._argsort(x, dim, descending, True)
        keys = -x if descending else x
        if kind == "nan" and descending:
            keys = np.where(np.isnan(x), -np.inf, keys)  # the largest
        np.testing.assert_array_equal(found, np.argsort(keys, axis=dim, kind="stable"))
