"""Values as NumPy source: numbers, arrays, dtypes, and tuples and dicts of them."""

from __future__ import annotations

import ast
from collections.abc import Callable
from types import FunctionType
from typing import Any

import numpy as np

from ..graph.node import Node
from ..graph.op import Op


class NoText(Exception):
    """Something of a kernel that cannot be written, in words that follow a colon."""


def expression(text: str) -> Any:
    """The tree of an expression."""
    if text.isidentifier() and text not in ("None", "True", "False"):
        return ast.Name(text, ast.Load())
    return ast.parse(text, mode="eval").body


def number_text(value: Any) -> str:
    """A number of an array, as short as its dtype allows."""
    if isinstance(value, np.floating):
        return str(value) if np.isfinite(value) else f"np.{value}".replace("np.-", "-np.")
    return repr(value.item() if isinstance(value, np.generic) else value)


def weak_text(node: Node) -> str:
    """The number of a weak node: 2 and 2.0 are one node, whichever was there before."""
    value = node.args[0]
    if node.dtype.kind == "f":
        number = np.float64(value)
        whole = abs(number) < 1e15 and str(np.float64(int(number))) == str(number)
        value = int(number) if whole else number
    return number_text(value)


def uniform(array: np.ndarray) -> bool:
    """Whether several elements are one number."""
    return array.size > 1 and bool((array == array.flat[0]).all())


def array_text(array: np.ndarray, library: str = "np.") -> str:
    """An array as the call that makes it."""
    make, real = ("array", np.float64) if library == "np." else ("tensor", np.float32)
    plain = array.dtype in (real, np.int64, np.bool_)
    tail = "" if plain else f", dtype={library}{array.dtype}"
    if uniform(array):
        value = array.flat[0]
        if value in (0, 1) and array.dtype.kind == "f":
            return f"{library}{'ones' if value else 'zeros'}({array.shape}{tail})"
        return f"{library}full({array.shape}, {number_text(value)}{tail})"
    if not array.size:
        return f"{library}zeros({array.shape}, dtype={library}{array.dtype})"

    def rows(part: Any) -> str:
        if not part.ndim:
            return number_text(part[()]).replace("np.", library)
        return f"[{', '.join(map(rows, part))}]"

    return f"{library}{make}({rows(array)}{tail})"


def literal(value: Any, tree_of: Callable[[Any], Any]) -> Any:
    """A value as the source has it."""
    kind = type(value)
    if isinstance(value, Node | Op | np.ufunc | FunctionType):
        return tree_of(value)
    if kind is dict:
        keys, values = (
            [literal(part, tree_of) for part in half] for half in (value, value.values())
        )
        return ast.Dict(keys, values)
    if kind is np.ndarray:
        return expression(array_text(value))
    if kind is tuple or kind is list:
        return ast.Tuple([literal(part, tree_of) for part in value], ast.Load())
    if isinstance(value, np.dtype):
        return expression(f"np.{value.name}".replace("np.bool", "np.bool_"))
    if kind is float or isinstance(value, np.generic):
        return expression(number_text(np.float64(value) if kind is float else value))
    if value is None or kind in (bool, int, str) or value is Ellipsis:
        return expression(repr(value))
    slots = kind.__slots__  # what its constructor was given
    given = [ast.keyword(slot, literal(getattr(value, slot), tree_of)) for slot in slots]
    return ast.Call(tree_of(kind), [], given)
