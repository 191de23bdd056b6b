"""Where operations of one operand are finite: in words, and as the arguments of a `clamp` that
keeps an operand there."""

from __future__ import annotations

from typing import NamedTuple


class Domain(NamedTuple):
    """`low` and `high` are the bounds of the finite values, None without one; with `open` they do
    not belong to it. `clamp` keeps values and slopes finite."""

    low: float | None
    high: float | None
    open: bool
    clamp: str

    def contains(self, value: float) -> bool:
        """Whether the operation is finite there."""
        if self.open:
            low = self.low is None or value > self.low
            return low and (self.high is None or value < self.high)
        return (self.low is None or value >= self.low) and (self.high is None or value <= self.high)

    def words(self, name: str) -> str:
        """The domain as an inequality for `name`."""
        less, greater = ("<", ">") if self.open else ("<=", ">=")
        if self.low is None:
            return f"{name} {less} {self.high:g}"
        if self.high is None:
            return f"{name} {greater} {self.low:g}"
        return f"{self.low:g} {less} {name} {less} {self.high:g}"


_POSITIVE = Domain(0, None, True, "min=1e-12")
_UNIT = Domain(-1, 1, False, "min=-1 + 1e-6, max=1 - 1e-6")
_INSIDE = Domain(-1, 1, True, "min=-1 + 1e-6, max=1 - 1e-6")

DOMAINS: dict[str, Domain] = {
    "sqrt": Domain(0, None, False, "min=1e-12"),
    "rsqrt": _POSITIVE,
    "log": _POSITIVE,
    "log2": _POSITIVE,
    "log10": _POSITIVE,
    "log1p": Domain(-1, None, True, "min=-1 + 1e-6"),
    "asin": _UNIT,
    "acos": _UNIT,
    "atanh": _INSIDE,
    "erfinv": _INSIDE,
    "acosh": Domain(1, None, False, "min=1 + 1e-6"),
    "logit": Domain(0, 1, True, "min=1e-6, max=1 - 1e-6"),
    "lgamma": _POSITIVE,
    "digamma": _POSITIVE,
}

# Overflow: the largest operand in float32 and in float64.
OVERFLOW: dict[str, tuple[float, float]] = {
    "exp": (88.7, 709.7),
    "expm1": (88.7, 709.7),
    "exp2": (128, 1024),
    "sinh": (89.4, 710.4),
    "cosh": (89.4, 710.4),
}


def domain_of(name: str, dtype: str) -> Domain | None:
    """The domain of an operation; None when it is finite everywhere, or has two operands."""
    largest = OVERFLOW.get(name)
    if largest is None:
        return DOMAINS.get(name)
    clamp = "min=-80, max=80" if name in ("sinh", "cosh") else "max=80"
    return Domain(None, largest[dtype == "float64"], False, clamp)
