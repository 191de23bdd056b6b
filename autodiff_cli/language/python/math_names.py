"""Python's `math`: its functions take tensors of one element too, within bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import index
from typing import Any

from ...autograd.tensor import Tensor
from ...errors import fault
from ...graph.symbolic_numbers import Varying
from ..values.dialect import misfit
from ..values.operations import binary, iterate
from ..values.values import Builtin


def _float(value: Any) -> float:
    from .builtins import TYPES

    if isinstance(value, str):
        raise misfit("a number is needed, not", value, "`float(text)` reads one")
    if isinstance(value, Tensor) and value.dtype.kind != "f":
        return index(value)
    make = TYPES["float"].make
    assert make is not None
    return make(value)


def _math(name: str) -> Callable[..., Any]:
    function = getattr(math, name)

    def run(*args: Any, **options: Any) -> Any:
        values: list[Any] = [a if isinstance(a, int | float) else _float(a) for a in args]
        tape = next((v.tape for v in values if type(v) is Varying), None)
        try:
            if tape is not None and not options:
                return tape.apply(function, *values)
            return function(*values, **{k: _float(v) for k, v in options.items()})
        except ValueError:
            raise fault("E504 math-not-defined", ", ".join(map(str, values)), name=name) from None
        except OverflowError:
            raise fault(
                "E504 math-too-large-float", ", ".join(str(v)[:20] for v in values), name=name
            ) from None

    return run


def _small_integers(name: str, limit: int) -> Callable[..., Any]:
    run = _math(name)

    def bounded(*args: Any) -> Any:
        if any(isinstance(a, int) and abs(a) > limit for a in args):
            raise fault("E505 math-number-above", name=name, limit=limit)
        return run(*args)

    return bounded


_FUNCTIONS = """
    sqrt exp log log2 log10 log1p expm1 sin cos tan asin acos atan atan2 sinh cosh tanh asinh
    acosh atanh floor ceil trunc fabs pow hypot erf erfc gamma lgamma degrees radians isnan isinf
    isfinite copysign fmod gcd isclose lcm isqrt
"""
MATH: dict[str, Any] = {
    **{name: Builtin(name, _math(name)) for name in _FUNCTIONS.split()},
    **{name: Builtin(name, _small_integers(name, 5000)) for name in ("factorial", "comb", "perm")},
    "prod": Builtin("prod", lambda values, start=1: _product(values, start)),
    "fsum": Builtin("fsum", lambda values: math.fsum(_numbers(values))),
    "dist": Builtin("dist", lambda p, q: math.dist(_numbers(p), _numbers(q))),
    **{name: getattr(math, name) for name in ("pi", "e", "inf", "nan", "tau")},
}


def _numbers(values: Any) -> list[float]:
    return [_float(value) for value in iterate(values)]


def _product(values: Any, start: Any) -> Any:
    for value in iterate(values):
        start = binary("*", start, value)
    return start
