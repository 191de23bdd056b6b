"""Operators: what `+`, `<`, `not`, `in` and the truth of a value mean, and what can be looped over.

Tensors go to the op table; Python values do what Python does, within bounds.
"""

from __future__ import annotations

import operator
from collections import Counter, OrderedDict
from collections.abc import Callable, ItemsView, Iterator
from itertools import count
from types import MethodType
from typing import Any

import numpy as np

from ...autograd import calls
from ...autograd.literals import has_tensor
from ...autograd.tensor import Array, Tensor
from ...errors import AutodiffError, fail, fault
from ...graph.node import Node
from ...graph.op import known, number
from ...graph.params import type_name
from ...graph.registry import F
from ...graph.state import STATE, grad_mode
from ...graph.symbolic_numbers import RecordingAborted, Varying
from ...numerals import short
from .dialect import is_numeric_list, kind_of, misfit
from .housekeeping import count_step
from .numpy_numbers import NUMPY_NUMBERS, NumpyInteger, to_python
from .providers import from_above
from .python_operators import (
    BINARY,
    NUMBERS,
    bound_integers,
    bound_length,
    python_binary,
    refuse_caret,
)
from .values import GradFn, Instance, OpFunction, UserFunction, has, is_callable

COMPARISONS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "==": ("eq", operator.eq),
    "!=": ("ne", operator.ne),
    "<": ("lt", operator.lt),
    "<=": ("le", operator.le),
    ">": ("gt", operator.gt),
    ">=": ("ge", operator.ge),
}


_UNARY: dict[str, Callable[[Any], Any]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
}
_SIGNED = NUMBERS | NUMPY_NUMBERS | {Varying}


def as_operand(value: Any) -> Any:
    """A numeric list stands for a constant tensor (native files only)."""
    if isinstance(value, list) and value and not STATE.python and is_numeric_list(value):
        return Tensor(calls.node_of_list(value))
    return value


def binary(symbol: str, left: Any, right: Any) -> Any:
    """`left symbol right`."""
    if symbol == "%" and isinstance(left, str):
        return python_binary(symbol, str.__str__(left), right)
    if isinstance(left, Instance) or isinstance(right, Instance):
        return instance_binary(symbol, left, right)
    if isinstance(left, Tensor) or isinstance(right, Tensor):
        return tensor_binary(symbol, left, right)
    if isinstance(left, list) or isinstance(right, list):
        return _list_binary(symbol, left, right)
    return python_binary(symbol, left, right)


def instance_binary(symbol: str, left: Any, right: Any, in_place: bool = False) -> Any:
    """An operator with a value of a class on one side: Python asks both."""
    if symbol == "*":
        for sequence, times in ((left, right), (right, left)):
            if isinstance(sequence, str | list | tuple) and has(times, "__index__"):
                many = operator.index(times)
                bound_length(len(sequence) * many, list, many)
    if isinstance(left, int) and isinstance(right, int):
        bound_integers(symbol, left, right)
    function = BINARY[symbol][1]
    if in_place:
        function = getattr(operator, f"i{function.__name__.strip('_')}")
    try:
        return function(left, right)
    except OverflowError:
        raise fault("E504 symbol-too-large", short(left), short(right), symbol=symbol) from None
    except TypeError as error:
        if all(isinstance(value, Tensor | int | float) for value in (left, right)):
            return binary(symbol, number_of(left), number_of(right))
        kinds, name = (kind_of(left), kind_of(right)), function.__name__.strip("_")
        raise fault("E208 cannot-combine", symbol, name, error, kinds[0], kinds[1]) from None


def number_of(value: Any) -> Any:
    """The number of Python's own that a value of a class below one is."""
    of_class = isinstance(value, Instance) and isinstance(value, int | float)
    return from_above("values.builtin_bases.plain")(value) if of_class else value


def tensor_binary(symbol: str, left: Any, right: Any) -> Any:
    if Array in (type(left), type(right)):
        if Tensor not in (type(left), type(right)):
            return _of_arrays(symbol, left, right)
        if mixed(left, right):
            return _with_array(symbol, left, right)
        if STATE.python:  # a number of NumPy's
            left, right = (x.item() if type(x) is Array else x for x in (left, right))
    key = BINARY[symbol][0]
    if symbol == "^":
        refuse_caret(left, right)
    if symbol == "**":
        return calls.call("pow", _operands(symbol, left, right), {})
    if symbol == "@" and not STATE.python:
        left, right = calls.float_operand(left), calls.float_operand(right)
    x, y = _nodes(symbol, left, right)
    op = getattr(F, key)
    if symbol == "/" and not isinstance(left, Tensor) and x.weak and right.tag is None:
        op = F.number_quotient
    result = op.apply([x, y])
    return calls.wrapped(op, result, (left, right), {})


def mixed(left: Any, right: Any) -> bool:
    """Whether one of them is a tensor and the other an array, in a snippet of Python."""
    array = left if type(right) is Tensor else right
    return (
        STATE.python
        and Tensor in (type(left), type(right))
        and (type(array) is Array and array.tag == "array")
    )


def _with_array(symbol: str, left: Any, right: Any) -> Any:
    """An operator between a tensor and an array: NumPy's, after a tensor; after an array tensors
    know how they are divided, and nothing else."""
    if type(left) is Tensor:
        return _of_arrays(symbol, left, right)
    if symbol == "/":
        return _of_arrays("*", Tensor(F.reciprocal(right.node)), left)
    raise fault("E208 array-before-tensor", symbol)


def _of_arrays(symbol: str, *operands: Any) -> Any:
    """An operator between NumPy arrays and numbers, which NumPy computes."""
    return from_above("values.arrays.operate")(symbol, *operands)


def _operands(symbol: str, *pair: Any) -> tuple[Any, ...]:
    """Those of a power."""
    if any(type(value) is Varying for value in pair):
        raise RecordingAborted  # what a power is made of depends on the exponent
    return tuple(
        value
        if isinstance(value, Tensor | bool | int | float)
        else Tensor(_node(value, symbol, pair))
        for value in pair
    )


def _nodes(symbol: str, *pair: Any) -> tuple[Node, Node]:
    if symbol == "@" and STATE.python:  # a number is no matrix
        for value in pair:
            if isinstance(value, int | float) and not isinstance(value, np.generic):
                raise _no_operand(value, symbol, pair)
    return _node(pair[0], symbol, pair), _node(pair[1], symbol, pair)


def _node(value: Any, symbol: str, pair: tuple[Any, ...]) -> Node:
    if isinstance(value, Tensor):
        return value.node
    kind = type(value)
    if kind is int or kind is float or kind is bool or kind is Varying:
        return number(value)
    if (
        isinstance(value, list | tuple)
        and not STATE.python
        and is_numeric_list(list(value))
        and value
    ):
        return calls.node_of_list(list(value))
    if isinstance(value, np.generic | NumpyInteger):
        return number(to_python(value))
    raise _no_operand(value, symbol, pair)


def _no_operand(value: Any, symbol: str, pair: tuple[Any, ...]) -> AutodiffError:
    """The failure of an operand beside a tensor."""
    left, right = map(type_name, pair)
    if symbol not in BINARY:
        words = f"'{symbol}' not supported between instances of '{left}' and '{right}'"
    elif symbol == "+" and isinstance(pair[0], str | list | tuple):
        words = f'can only concatenate {left} (not "{right}") to {left}'
    else:
        shown = "** or pow()" if symbol == "**" else symbol
        words = f"unsupported operand type(s) for {shown}: '{left}' and '{right}'"
    return misfit(
        f"`{symbol}` cannot take",
        value,
        "call it: add parentheses with its arguments"
        if is_callable(value)
        else "write a number, without quotes"
        if isinstance(value, str)
        else "write `a * b` to multiply by a number"
        if isinstance(value, int | float)
        else "operands are tensors and numbers",
        notes=(f"PyTorch: {words}",) if STATE.python else (),
    )


def _list_binary(symbol: str, left: Any, right: Any) -> Any:
    if not (symbol == "+" and _plain_lists(left, right)):
        a, b = as_operand(left), as_operand(right)
        if isinstance(a, Tensor) or isinstance(b, Tensor):
            return tensor_binary(symbol, a, b)
    return python_binary(symbol, left, right)


def _plain_lists(left: Any, right: Any) -> bool:
    """Two lists that `+` joins: one of them is empty or holds something else than numbers."""
    return (
        isinstance(left, list)
        and isinstance(right, list)
        and not (left and right and _only_numbers(left) and _only_numbers(right))
    )


def _only_numbers(value: list[Any]) -> bool:
    return is_numeric_list(value) and not has_tensor(value)


def unary(symbol: str, value: Any) -> Any:
    """`-x`, `+x`, `~x`."""
    if isinstance(value, list):
        value = as_operand(value)
    if isinstance(value, Tensor):
        if type(value) is Array:
            return _of_arrays({"-": "neg", "+": "pos", "~": "~"}[symbol], value)
        if symbol == "+":
            calls.call("positive", (value,), {})  # it refuses bools
            return value
        if symbol == "-":
            return Tensor(F.neg(value.node))
        return calls.call("bitwise_not", (value,), {})
    if type(value) in _SIGNED or isinstance(value, Instance | Counter):
        try:
            return _UNARY[symbol](value)
        except TypeError:
            pass
    raise fault("E208 cannot-take-unary", symbol, kind_of(value))


# What tensors are compared with; `torch.max(x, 1)` is not, but most likely `.indices` was meant.
_COMPARED = (Tensor, int, float, np.generic, calls.Results)


def compare(symbol: str, left: Any, right: Any) -> Any:
    """`left symbol right`, elementwise on tensors."""
    if symbol == "is":
        if STATE.recorder is not None:
            STATE.recorder.identity(left, right)
        return left is right or _are_one(left, right)
    if symbol == "is not":
        return not compare("is", left, right)
    if symbol in ("in", "not in"):
        found = contains(right, left)
        return found if symbol == "in" else not found
    tensors = isinstance(left, Tensor) or isinstance(right, Tensor)
    if tensors:
        left, right = number_of(left), number_of(right)
    if isinstance(left, Instance) or isinstance(right, Instance):
        return _python_comparison(symbol, left, right)
    if tensors:
        if (
            left is None or right is None or isinstance(left, str) or isinstance(right, str)
        ) and symbol in ("==", "!="):
            return symbol == "!="
        if Array in (type(left), type(right)) and Tensor not in (type(left), type(right)):
            return _of_arrays(symbol, left, right)
        if (
            STATE.python
            and symbol in ("==", "!=")
            and not all(isinstance(v, _COMPARED) for v in (left, right))
        ):
            return symbol == "!="  # of other kinds, lists too, nothing is equal
        if mixed(left, right) and symbol != "==":
            if symbol == "!=":
                return True  # PyTorch compares them for equality alone
            raise fault(
                "E208 array-compared-tensor", type_name(left), type_name(right), symbol=symbol
            )
        op = getattr(F, COMPARISONS[symbol][0])
        with grad_mode(False):  # any view may be compared
            return Tensor(op(*_nodes(symbol, left, right)))
    kinds = type(left), type(right)
    if not NUMPY_NUMBERS.isdisjoint(kinds) and all(issubclass(k, int | float) for k in kinds):
        return _of_arrays(symbol, left, right)
    if symbol in ("==", "!="):
        same = equal(left, right)
        return same if symbol == "==" else not same
    return _python_comparison(symbol, left, right)


def _are_one(left: Any, right: Any) -> bool:
    """Whether two values stand for one object of PyTorch: a function, a node of its graph."""
    if isinstance(left, OpFunction) and isinstance(right, OpFunction):
        return left.ops == right.ops
    return isinstance(left, GradFn) and isinstance(right, GradFn) and left == right


def _python_comparison(symbol: str, left: Any, right: Any) -> Any:
    """The order of Python values: lists and tuples part at their first items that are not equal."""
    while type(left) is type(right) and type(left) in (list, tuple):
        pairs = zip(left, right, strict=False)
        parts = next(((a, b) for a, b in pairs if a is not b and not equal(a, b)), None)
        if parts is None:
            left, right = len(left), len(right)
            break
        left, right = parts
        if isinstance(left, Tensor | Instance) or isinstance(right, Tensor | Instance):
            return compare(symbol, left, right)
    try:
        found = COMPARISONS[symbol][1](left, right)
        return bool(found) if type(found) is np.bool_ else found
    except TypeError as error:
        raise fault(
            "E208 symbol-cannot-compare", kind_of(left), kind_of(right), symbol=symbol, error=error
        ) from None


def equal(left: Any, right: Any) -> bool:
    """Equality of Python values; lists of tensors compare element by element."""
    pending = [(left, right)]
    while pending:
        a, b = pending.pop()
        count_step()
        if isinstance(a, Instance) or isinstance(b, Instance):
            if not truth(compare("==", a, b)):
                return False
        elif isinstance(a, list | tuple) and isinstance(b, list | tuple):
            if len(a) != len(b) or isinstance(a, list) != isinstance(b, list):
                return False
            pairs = zip(reversed(a), reversed(b), strict=True)  # the first is asked first
            pending.extend((x, y) for x, y in pairs if x is not y)
        elif isinstance(a, Tensor) or isinstance(b, Tensor):
            if a is not b and not truth(compare("==", a, b)):
                return False
        elif isinstance(a, dict) and isinstance(b, dict):
            if a.keys() != b.keys():
                return False
            if type(a) is OrderedDict is type(b) and list(a) != list(b):
                return False
            pending.extend((a[k], b[k]) for k in a if a[k] is not b[k])
        elif not (_python_comparison("==", a, b) or _are_one(a, b)):
            return False
    return True


def contains(container: Any, item: Any) -> bool:
    """`item in container`."""
    if isinstance(container, str):
        if not isinstance(item, str):
            words = f"'in <string>' requires string as left operand, not {type_name(item)}"
            notes = (f"PyTorch: {words}",)
            raise misfit("`in` a string needs a string, not", item, "compare texts", notes=notes)
        return item in container
    if isinstance(container, dict | set | frozenset):
        if isinstance(item, tuple):
            count_nested(item)
        _told((item,))
        try:
            return item in container
        except TypeError:
            from .subscripts import dict_key

            dict_key(item)
            return False
    if isinstance(container, Tensor):
        hits = compare("==", container, item)
        if isinstance(hits, Tensor):
            return truth(Tensor(F.any(hits.node)))
        raise fault("E208 tensor-cannot-contain", kind_of(item))
    if isinstance(container, range):
        if type(item) is Varying:
            raise RecordingAborted
        return item in container if isinstance(item, int | float) else False
    if isinstance(container, list | tuple):  # its own items, whatever its class goes through
        kind: Any = list if isinstance(container, list) else tuple
        return any(value is item or equal(value, item) for value in kind.__iter__(container))
    if has(container, "__contains__"):
        return item in container
    if isinstance(container, Instance | Iterator | ItemsView):
        return any(value is item or equal(value, item) for value in iterate(container))
    raise fault("E208 cannot-search", kind_of(container))


def truth(value: Any) -> bool:
    """Whether a value counts as true; tensors need exactly one element."""
    if isinstance(value, Tensor):
        node = value.looked_at
        if node.numel != 1:
            what = "an array" if value.tag else "a tensor"
            raise fault("E408 truth-tensor-elements", what, tuple(value.shape), value=value)
        if STATE.batching and not known(node):
            raise fault("E203 vmap-condition")
        return bool(value.item())
    try:
        return bool(value)
    except (TypeError, ValueError) as error:
        raise fail("E208", str(error), help="return True or False") from None


def flag(name: str, value: Any) -> bool:
    """The value of an option that is True or False, and nothing else."""
    if isinstance(value, bool):
        return value
    help = f"write `{name}=True`"
    raise misfit(f"{name} must be True or False, not", value, help, raises="")


def count_nested(key: tuple[Any, ...]) -> None:
    """Count what Python walks through to hash a tuple: a tuple inside is walked through as often as
    it is there. E507 when they are nested too deeply."""
    if not any(isinstance(part, tuple) for part in key):
        return
    found: dict[int, tuple[int, int]] = {}  # steps and depth of the tuples that were looked at
    pending = [key]
    while pending:
        at = pending[-1]
        inner = [part for part in at if isinstance(part, tuple)]
        new = [part for part in inner if id(part) not in found]
        if new:
            pending.extend(new)
            continue
        pending.pop()
        known = [found[id(part)] for part in inner]
        steps = len(at) + sum(steps for steps, _ in known)
        depth = 1 + max((depth for _, depth in known), default=0)
        found[id(at)] = steps, depth
        if depth > STATE.max_depth:
            raise fail("E507", "the tuple is nested too deeply", help="use a flat tuple")
    count_step(found[id(key)][0])


def iterate(value: Any) -> Iterator[Any]:
    """The items a `for` goes through, each counted as a step."""
    return _counted(_items(value))


def _items(value: Any) -> Any:
    if isinstance(value, Tensor):
        if not value.shape:
            raise fault("E208 d-tensor-cannot-iterated")
        if type(value) is Array:
            read_index = from_above("values.subscripts.read_index")
            return (read_index(value, at) for at in range(value.shape[0]))
        return calls.call("unbind", (value, 0), {})
    kind: Any = type(value)
    if isinstance(value, Instance) and has(value, "__getitem__") and not has(value, "__iter__"):
        return _numbered(value)
    try:
        return iter(value)
    except TypeError as error:
        words = str(error)
    help = "loop over range(n), a list, a tuple or the rows of a tensor"
    if kind is MethodType or kind is UserFunction:
        help = "call it: `()` after its name"
    elif kind is int:
        help = f"write `range({value})`"
    raise fault("E208 cannot-iterate", kind_of(value), help, words)


def _numbered(value: Any) -> Iterator[Any]:
    """The items of what has only `__getitem__`: for 0, 1, 2 ... until an IndexError."""
    caught = from_above("values.exceptions.caught")
    classes = from_above("values.exceptions.EXCEPTIONS")
    stops = [classes["IndexError"], classes["StopIteration"]]
    for i in count():
        try:
            item = value.get_item(i)
        except AutodiffError as error:
            if caught(error, stops) is None:
                raise
            return
        yield item


def _counted(items: Any) -> Iterator[Any]:
    state = STATE
    try:
        for item in items:
            steps = state.steps = state.steps + 1
            if steps > state.max_steps:
                count_step(0)
            yield item
    except RuntimeError:
        raise fault("E208 container-changed-size-while") from None


def items_of(value: Any) -> list[Any]:
    """All items as a list, bounded."""
    if isinstance(value, range):
        bound_length(len(value), list)
    return value if type(value) is list else list(iterate(value))


def mapping(value: Any) -> dict[Any, Any] | None:
    """The items of a dict, or of what has keys as one has; None of what is no mapping."""
    if isinstance(value, dict):
        return value
    if not hasattr(value, "get_item"):
        return None
    try:
        keys = from_above("runtime.attributes.get_attribute")(value, "keys")
    except AutodiffError:
        return None
    call_value = from_above("values.functions.call_value")
    dict_key = from_above("values.subscripts.dict_key")
    return {dict_key(key): value.get_item(key) for key in iterate(call_value(keys, [], {}))}


def pairs_of(values: Any) -> dict[Any, Any]:
    """The items of a mapping, or of a list of pairs."""
    known = mapping(values)
    if known is not None:
        return known
    found: dict[Any, Any] = {}
    for place, pair in enumerate(iterate(values)):
        told = f"dictionary update sequence element #{place}"
        try:
            parts = items_of(pair)
        except AutodiffError:
            raise TypeError(f"cannot convert {told} to a sequence") from None
        if len(parts) != 2:
            raise ValueError(f"{told} has length {len(parts)}; 2 is required")
        _told(parts[:1])
        found[parts[0]] = parts[1]
    return found


def keys_of(values: Any) -> Any:
    """The values that a set or dict is made of."""
    found = items_of(values)
    _told(found)
    return found


def _told(keys: Any) -> None:
    """Let a recorder know of keys, as `dict_key` does."""
    if STATE.recorder is not None:
        for key in keys:
            STATE.recorder.identity(key)


def is_edge(value: Any) -> bool:
    """Whether a value is a place in the graph."""
    return getattr(value, "name", "") == "GradientEdge"


def tensors_of(value: Any, what: str) -> list[Tensor]:
    """The tensors that a function of `torch.autograd` is given as `what`."""
    values = [value] if isinstance(value, Tensor) or is_edge(value) else items_of(value)
    values = [getattr(item, "tensor", item) for item in values]  # of a place in the graph
    for item in values:
        if not isinstance(item, Tensor):
            raise fault("E208 what-tensors", kind_of(item), what=what)
    return values
