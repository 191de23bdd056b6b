"""The table of ops by key and by public name, and `F`, the late-bound namespace rules are written
in.

Families of ops register themselves when their module is imported; `LOADER` imports the family that
holds a name, so that a program loads only what it uses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .node import Node
from .op import Op, number
from .params import NUMBERS

OPS: dict[str, Op] = {}
NAMES: dict[str, list[Op]] = {}

_loader: Callable[[str], None] | None = None


def set_loader(loader: Callable[[str], None]) -> None:
    """`loader(name)` imports the families that declare a key or public name."""
    global _loader
    _loader = loader


def register(op: Op) -> None:
    """Add an op under its key and, when programs may call it, under its name and its aliases;
    overloads keep declaration order."""
    if op.key in OPS:
        raise ValueError(f"op {op.key} is declared twice")
    OPS[op.key] = op
    if op.public:
        for name in (op.name, *op.aliases):
            NAMES.setdefault(name, []).append(op)


def overloads(name: str) -> list[Op]:
    """The ops that answer to a public name (`relu`, `linalg.norm`, `nn.functional.pad`); or []."""
    if _loader is not None and name not in NAMES:
        _loader(name)
    return NAMES.get(name, [])


def op(key: str) -> Op:
    """The op of a key."""
    found = OPS.get(key)
    if found is None:
        if _loader is not None:
            _loader(key)
        found = OPS[key]
    return found


class Namespace:
    """`F.softmax(x, 1)` in rules and bodies: ops by key, looked up when first used."""

    def __getattr__(self, key: str) -> Op:
        try:
            found = op(key)
        except KeyError:
            raise AttributeError(f"no op {key!r}") from None
        setattr(self, key, found)
        return found


F: Any = Namespace()


def _binary(key: str) -> tuple[Callable[[Node, Any], Any], Callable[[Node, Any], Any]]:
    found: Op | None = None

    def apply(x: Any, y: Any) -> Any:
        nonlocal found
        if found is None:
            found = op(key)
        if found.arity == 2:
            if type(x) is type(y):
                return found.pair(x, y)
            if type(y) in NUMBERS:
                return found.pair(x, number(y))
            if type(x) in NUMBERS:
                return found.pair(number(x), y)
        return found(x, y)

    return apply, lambda self, other: apply(other, self)


def _unary(key: str) -> Callable[[Node], Any]:
    found: Op | None = None

    def apply(x: Node) -> Any:
        nonlocal found
        if found is None:
            found = op(key)
        return found.one(x) if found.arity else found(x)

    return apply


def _install_operators() -> None:
    """Give nodes the operators of rules: `g * other`, `1 - out`, `-g`, `x > 0`."""
    for name, key in (
        ("add", "add"),
        ("sub", "sub"),
        ("mul", "mul"),
        ("truediv", "div"),
        ("pow", "pow"),
        ("matmul", "matmul"),
        ("and", "bitwise_and"),
        ("or", "bitwise_or"),
    ):
        forward, backward = _binary(key)
        setattr(Node, f"__{name}__", forward)
        setattr(Node, f"__r{name}__", backward)
    for name in ("gt", "ge", "lt", "le"):
        setattr(Node, f"__{name}__", _binary(name)[0])
    for name, key in (("neg", "neg"), ("invert", "logical_not")):
        setattr(Node, f"__{name}__", _unary(key))


_install_operators()
