"""Sums of few floats and ranges have PyTorch's last bit: `python -m tests.oracles.last_bits`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import numpy as np

import autodiff_cli.engine.evaluate
from autodiff_cli.graph.op import constant, value_of
from autodiff_cli.graph.registry import OPS, F
from autodiff_cli.ops import load_all
from autodiff_cli.ops.kernels.in_double import InDouble
from autodiff_cli.ops.kernels.pytorch_sum_order import small_sum

assert autodiff_cli.engine.evaluate  # computes
load_all()

FIXTURE = Path(__file__).parents[1] / "fixtures" / "last_bits.json"
LONG = (1, 2, 3, 4, 5, 7, 8, 9, 12, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 255, 256, 257, 300)


def places() -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Shapes, and what of them is summed."""
    for n in (*LONG, 1000, 4100, 5000, 32767, 32768, 40000):
        yield (n,), (0,)
    for rows in (1, 2, 3, 5, 17, 40, 300):
        for n in (*LONG[:15], 64, 70, 100):
            yield from (((rows, n), dims) for dims in ((0,), (1,), (0, 1)))
    for shape in ((2, 5, 7), (3, 17, 9), (16, 4, 33), (17, 3, 8), (1, 40, 70), (4, 1, 65)):
        for dims in ((0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2)):
            yield shape, dims


def numbers(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """The same everywhere: quotients are rounded once."""
    return ((np.arange(np.prod(shape)) * 7919 % 10007) / 997 - 5).astype(dtype).reshape(shape)


def digest(result: np.ndarray) -> int:
    return crc32(np.ascontiguousarray(result).tobytes())


def sums(dtype: str) -> Iterator[tuple[str, int]]:
    """Those that are not NumPy's."""
    for shape, dims in places():
        x = numbers(shape, dtype)
        if small_sum(x, dims) is not None:
            yield f"{shape} {dims}", digest(value_of(F.sum(constant(x), dims)))


RANGES = [
    (start, end, step)
    for start in (0.0, 1.0, -3.7, 0.1)
    for end in (0.0, 0.9, 5.0, -10.3, 40.05)
    for step in (1.0, 0.1, -0.3, 0.7, 2.5, 1 / 3)
    if (end - start) * step >= 0
]
SPACED = [(start, end, n) for start, end, _ in RANGES[::3] for n in (1, 2, 3, 8, 17, 50)]


def ranges(dtype: str) -> Iterator[tuple[str, int]]:
    kind = np.dtype(dtype)
    for given in RANGES:
        yield f"arange {given}", digest(value_of(F.arange(*given, dtype=kind)))
    for given in SPACED:
        yield f"linspace {given}", digest(value_of(F.linspace(*given, dtype=kind)))


def test_sums_are_those_of_pytorch() -> None:
    theirs = json.loads(FIXTURE.read_text("utf-8"))
    for dtype in ("float32", "float64"):
        assert dict(sums(dtype)) == theirs[dtype]


def test_ranges_are_those_of_pytorch() -> None:
    theirs = json.loads(FIXTURE.read_text("utf-8"))["ranges"]
    for dtype, known in theirs.items():
        assert dict(ranges(dtype)) == known


def test_small_results_in_single_precision_are_the_nearest_numbers() -> None:
    x = numbers((301,), "float32")
    x = np.abs(x[x != 0]) / 8  # all of them are defined here
    for op in OPS.values():
        if isinstance(op.kernel, InDouble):
            wide = value_of(op(constant(x.astype(np.float64))))
            assert np.array_equal(value_of(op(constant(x))), wide.astype(np.float32)), op.key
            assert not np.array_equal(wide, wide.astype(np.float32)), op.key
