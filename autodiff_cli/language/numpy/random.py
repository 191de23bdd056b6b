"""`np.random`: NumPy's legacy generator, `RandomState` and `default_rng`.

What is drawn is an array, or a number where no size was asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...autograd.random.arguments import checked_size
from ...autograd.tensor import Array
from ...errors import fault
from ...graph.dtypes import DTYPES
from ...graph.op import constant, value_of
from ...graph.params import to_dtype, to_size
from ..random.generators import Stream, stream
from ..values.arrays import ArrayType, given_back, plain
from ..values.dialect import misfit
from ..values.values import Builtin


def _legacy_stream() -> Stream:
    own = np.random.RandomState()
    return Stream(own, own.get_state, own.set_state)


def _made() -> Stream:
    """The generators that a program makes; no step that reaches one is done again, so none is ever
    put back."""
    return Stream(None, lambda: None, lambda state: None)


# Functions whose last argument is a size.
_COMMON = """
    random uniform normal standard_normal permutation choice binomial exponential
    standard_exponential poisson beta gamma standard_gamma laplace logistic lognormal gumbel
    geometric chisquare standard_t standard_cauchy pareto weibull triangular rayleigh vonmises
    dirichlet multinomial multivariate_normal negative_binomial hypergeometric
"""
_LEGACY = ("random_sample", "ranf", "sample", "randint")
_SHAPED = ("rand", "randn")  # sizes one by one


def _size(size: Any) -> tuple[int, ...] | None:
    return None if size is None else checked_size(to_size(size), DTYPES["float64"])


def _keyword(name: str, value: Any) -> Any:
    if name == "size":
        return _size(value)
    if name == "dtype":
        return value.dtype if isinstance(value, ArrayType) else to_dtype(value)
    return plain(value)


def _sized(own: Callable[[], Any], name: str) -> Builtin:
    def run(*args: Any, **kwargs: Any) -> Any:
        given = {k: _keyword(k, v) for k, v in kwargs.items()}
        return given_back(getattr(own(), name)(*[plain(a) for a in args], **given))

    return Builtin(name, run)


def _shaped(own: Callable[[], Any], name: str) -> Builtin:
    return Builtin(name, lambda *size: given_back(getattr(own(), name)(*(_size(size) or ()))))


def _shuffle(own: Callable[[], Any]) -> Builtin:
    def run(values: Any) -> None:
        if isinstance(values, Array):
            mixed = np.array(value_of(values.node))
            own().shuffle(mixed)
            values.overwrite(constant(mixed))
        elif isinstance(values, list):
            own().shuffle(values)
        else:
            raise misfit("shuffle() takes an array, not", values, "np.array(x)")

    return Builtin("shuffle", run)


def _legacy(own: Callable[[], Any]) -> dict[str, Builtin]:
    """What `np.random` and a `RandomState` have alike."""
    return {
        **{name: _sized(own, name) for name in (*_COMMON.split(), *_LEGACY)},
        **{name: _shaped(own, name) for name in _SHAPED},
        "shuffle": _shuffle(own),
        "seed": Builtin("seed", lambda seed=None: own().seed(plain(seed))),
    }


# -- generators that programs make ----------------------------------------------------------------


class NumpyGenerator:
    """A `RandomState`, or what `default_rng` gives."""

    __slots__ = ("kind", "methods", "own")

    def __init__(self, kind: str, own: Any):
        self.kind = kind
        self.own = own
        self.methods = _legacy(self._for_draw) if kind == "RandomState" else self._modern()

    def _for_draw(self) -> Any:
        stream("made", _made).draws += 1
        return self.own

    def _modern(self) -> dict[str, Builtin]:
        return {
            **{
                name: _sized(self._for_draw, name)
                for name in (*_COMMON.split(), "integers", "permuted")
            },
            "shuffle": _shuffle(self._for_draw),
        }

    def get_attribute(self, name: str) -> Any:
        found = self.methods.get(name)
        if found is None:
            raise fault(
                "E207 no-attribute-here", self.kind, ", ".join(sorted(self.methods)), name=name
            )
        return found

    def describe(self) -> str:
        return f"{self.kind}({'MT19937' if self.kind == 'RandomState' else 'PCG64'})"


def _seed(seed: Any) -> Any:
    if seed is not None and not isinstance(seed, int | list | tuple):
        raise misfit("a seed is an int, not", seed, "default_rng(0)")
    return seed


def _default_rng(seed: Any = None) -> NumpyGenerator:
    if isinstance(seed, NumpyGenerator):
        return seed
    return NumpyGenerator("Generator", np.random.default_rng(_seed(seed)))


RANDOM: dict[str, Builtin] = {
    **_legacy(lambda: stream("numpy", _legacy_stream).own),
    "default_rng": Builtin("default_rng", _default_rng),
    "RandomState": Builtin(
        "RandomState",
        lambda seed=None: NumpyGenerator("RandomState", np.random.RandomState(_seed(seed))),
    ),
}
