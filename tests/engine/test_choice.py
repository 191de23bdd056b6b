"""Choosing by bits gives what `np.where` gives, bit for bit, into any memory."""

from __future__ import annotations

import numpy as np
import pytest

from autodiff_cli.engine import bitwise_where

ODD = [0.0, -0.0, 1.5, -np.inf, np.inf, np.nan, -np.nan, 5e-324]


def sides(dtype):
    random = np.random.default_rng(0)
    x, y = (random.choice(ODD, (5, 40)).astype(dtype) for _ in range(2))
    return random.random((5, 40)) < 0.5, x, y


def bits(x):
    return x.view(f"i{x.itemsize}")


def masked(condition, dtype, spread=bitwise_where.spread):
    return spread(condition, np.empty(condition.shape, f"i{np.dtype(dtype).itemsize}"))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int64"])
@pytest.mark.parametrize("into", ["new", "first", "second"])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_chosen(dtype, into):
    condition, x, y = sides(dtype)
    wanted = np.where(condition, x, y)
    out = {"new": np.empty_like(x), "first": x, "second": y}[into]
    assert bitwise_where.chosen(masked(condition, dtype), x, y, out) is out
    assert np.array_equal(bits(out), bits(wanted))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_kept(dtype):
    condition, x, _ = sides(dtype)
    zero = np.zeros((), dtype)
    out = bitwise_where.kept(masked(condition, dtype), x, np.empty_like(x))
    assert np.array_equal(bits(out), bits(np.where(condition, x, zero)))
    out = bitwise_where.kept(masked(condition, dtype, bitwise_where.spread_not), x, x)
    assert np.array_equal(bits(out), bits(np.where(condition, zero, sides(dtype)[1])))


def test_operands_are_as_narrow_as_they_come():
    condition, x, _ = sides("float64")
    narrow = condition[:, :1]
    number = np.array(2.5)
    out = bitwise_where.chosen(masked(narrow, "float64"), x, number, np.empty_like(x))
    assert np.array_equal(bits(out), bits(np.where(narrow, x, number)))


def test_zero_is_known_by_its_bits():
    assert bitwise_where.is_zero(np.array(0.0))
    assert not bitwise_where.is_zero(np.array(-0.0))
