"""The table: one file per family, loaded when a program first uses a name of it."""

from __future__ import annotations

from importlib import import_module

from ..graph.registry import set_loader

FAMILIES = (
    "arithmetic",
    "division",
    "elementwise",
    "choice",
    "special",
    "activation",
    "softmax",
    "dropout",
    "comparison",
    "creation",
    "conversion",
    "memory",
    "shape",
    "transposition",
    "slicing",
    "rearranging",
    "joining",
    "indexing",
    "scatter",
    "placing",
    "padding",
    "reduction",
    "statistics",
    "quantiles",
    "histograms",
    "sorting",
    "cumulative",
    "contraction",
    "einsum",
    "linalg",
    "determinants",
    "pseudo_inverses",
    "matrices",
    "factorization",
    "decomposition",
    "normalization",
    "norms",
    "convolution",
    "unfolding",
    "pooling",
    "unpooling",
    "fractional_pooling",
    "resampling",
    "attention",
    "loss",
    "classification",
    "ranking",
    "ctc",
    "embedding",
    "masked",
    "noise",
    "implicit",
)


def load_family(family: str) -> None:
    """Import one family; its ops register themselves."""
    import_module(f"{__name__}.{family}")


def load_all() -> None:
    """Import every family."""
    for family in FAMILIES:
        load_family(family)


def _load(name: str) -> None:
    from .index import KEYS, WHERE

    for family in WHERE.get(name) or KEYS.get(name, ()):
        load_family(family)


set_loader(_load)
