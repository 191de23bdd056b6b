"""How entries of the table are written: one decorator per kind, above the op's signature.

The decorated function gives name, signature and documentation. For composites and functions its
body is the definition in graph ops; for the other kinds it is empty and the decorator's first
argument is the kernel, `kernel(*args)` with arrays in place of nodes. With `like=` the signature
is that of another op; `more=` has parameters that several ops take after their own.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from ..errors import fault
from .dtypes import DTYPES, SCALAR_TYPES
from .kinds import Kind, Promote
from .node import Node
from .op import LATE, Op
from .params import (
    REQUIRED,
    AllDims,
    Dim,
    DimList,
    Dims,
    Dtype,
    Endpoint,
    Flag,
    Floats,
    Function,
    Ints,
    Mask,
    NewDim,
    OptionalTensors,
    Order,
    Param,
    Scalar,
    Shape,
    Size,
    StaticDim,
    Tensor,
    TensorList,
    Tensors,
    Word,
)
from .registry import register
from .shapes import reduced_shape
from .state import STATE


def camel(key: str) -> str:
    """`log_softmax` -> `LogSoftmaxBackward0`, `log1p` -> `Log1PBackward0`."""
    letters = []
    for part in key.split("_"):
        raised = True
        for letter in part:
            letters.append(letter.upper() if raised else letter)
            raised = letter.isdigit()
    return "".join(letters) + "Backward0"


def _params(function: Callable[..., Any]) -> tuple[Param, ...]:
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    defaults = function.__defaults__ or ()
    keyword_defaults = function.__kwdefaults__ or {}
    annotations = function.__annotations__
    first_default = code.co_argcount - len(defaults)
    params = []
    for i, name in enumerate(names):
        keyword_only = i >= code.co_argcount
        if keyword_only:
            default = keyword_defaults.get(name, REQUIRED)
        else:
            default = defaults[i - first_default] if i >= first_default else REQUIRED
        params.append(Param(name, annotations[name], default, keyword_only))
    return tuple(params)


_INTS = ("int64", "int32", "int16", "int8", "uint8")


def _lacking(op: Op, text: str) -> Callable[..., None]:
    """A check that refuses a dtype that PyTorch does not have the op for, that of `dtype=` or the
    one in which operands meet, and then looks at what else the op checks."""
    names, _, own = text.partition(": ")
    kernel, *words = ("", *names.split()) if own else names.split()
    spelled = {name for word in words for name in (_INTS if word == "ints" else (word,))}
    refused = frozenset(DTYPES[name] for name in spelled)
    check = op.check
    option = op.index.get("dtype")

    def checked(*bound: Any) -> None:
        dtype = op.meeting_dtype(bound) if option is None else bound[option]
        if dtype in refused:
            kind = SCALAR_TYPES[dtype.name]
            said = own.format(kind) or f"\"{kernel}\" not implemented for '{kind}'"
            raises = "RuntimeError" if own else "NotImplementedError"
            raise fault("E307 not-for-dtype", op.name, dtype.name, raises, words=said)
        if check is not None:
            check(*bound)

    return checked


def _reverse_only(op: Op) -> Callable[..., None]:
    """A check that refuses operands that move in forward mode."""
    check = op.check

    def checked(*bound: Any) -> None:
        if check is not None:
            check(*bound)
        operands = [bound[at] for at in op.tensor_params if isinstance(bound[at], Node)]
        if STATE.dual and any(map(LATE.moves, operands)):  # type: ignore[arg-type]  # bound with autograd
            raise fault("E404 no-forward-formula", op.name, op.no_forward)

    return checked


def _declare(
    kind: Kind, kernel: Any, options: dict[str, Any]
) -> Callable[[Callable[..., Any]], Op]:
    def decorate(function: Callable[..., Any]) -> Op:
        key = function.__name__.rstrip("_") if function.__name__ != "_" else function.__name__
        op = Op(options.pop("key", key), kind)
        op.name = options.pop("name", op.key)
        op.doc = (function.__doc__ or "").strip()
        own = options.pop("like").params if "like" in options else _params(function)
        op.declare_params((*own, *options.pop("more", ())))
        op.kernel = kernel
        *_, op.package, op.family = ("", *function.__module__.split("."))
        op.aliases = tuple(options.pop("aliases", ()))
        op.grad_fn = options.pop("grad_fn", None) or camel(op.key)
        op.vjp_rule = options.pop("vjp", None)
        op.shape_rule = options.pop("shape", None)
        op.inplace = options.pop("inplace", kind is Kind.POINTWISE)
        op.method = options.pop("method", "." not in op.name)
        lacks = options.pop("lacks", "")
        for option, value in options.items():
            if option in ("samples", "errors", "fields"):
                value = tuple(value)
            setattr(op, option, value)
        if lacks:
            op.check = _lacking(op, lacks)
        if op.no_forward:
            op.check = _reverse_only(op)
        register(op)
        return op

    return decorate


def pointwise(kernel: Any, **options: Any) -> Callable[[Callable[..., Any]], Op]:
    """Element by element with broadcasting and PyTorch's promotion (`promote=`)."""
    return _declare(Kind.POINTWISE, kernel, options)


def row_words(text: str) -> dict[str, tuple[list[str], str]]:
    """Other names and documentation of the rows of a table, by key, from lines such as
    `acos arccos: Inverse cosine.`"""
    words = {}
    for line in text.strip().splitlines():
        names, _, doc = line.strip().partition(": ")
        key, *aliases = names.split()
        words[key] = aliases, doc
    return words


def rows(module: str, names: str, text: str, **common: Any) -> Callable[..., Op]:
    """A function that declares a pointwise op of tensors with these names in the table of `module`,
    from its key, kernel, slope, samples and options beside the `common` ones; `text` has its
    words."""
    words = row_words(text)
    params = [Param(name, "Tensor", REQUIRED, False) for name in names.split()]

    def declare(key: str, kernel: Any, vjp: Any, samples: Any, **options: Any) -> Op:
        def row() -> None:
            pass

        aliases, row.__doc__ = words[key]
        row.__module__ = module
        options = {**common, **options, "key": key, "vjp": vjp, "aliases": aliases}
        return pointwise(kernel, more=params, samples=samples, **options)(row)

    return declare


def reduction(
    kernel: Any, *, dtype: Any = None, **options: Any
) -> Callable[[Callable[..., Any]], Op]:
    """Over `dim` with `keepdim`; `kernel(x, dim, keepdim)` with dims as a tuple or None.

    `dtype(input) -> dtype` of the result, default that of the input.
    """

    def shape(input: Any, dim: Any = None, keepdim: bool = False, *rest: Any) -> Any:
        result = dtype(input, *rest) if dtype else input.dtype
        return reduced_shape(input.shape, dim, keepdim), result

    options.setdefault("shape", shape)
    return _declare(Kind.REDUCTION, kernel, options)


def _like_first(first: Any, *rest: Any) -> Any:
    """The shape rule of what changes neither shape nor dtype of its first operand."""
    return first.shape, first.dtype


def movement(kernel: Any, **options: Any) -> Callable[[Callable[..., Any]], Op]:
    """A view or an index map; `shape` where the result is unlike the first operand. `view=True`
    when it shares memory in PyTorch."""
    options.setdefault("shape", _like_first)
    return _declare(Kind.MOVEMENT, kernel, options)


def contraction(kernel: Any, **options: Any) -> Callable[[Callable[..., Any]], Op]:
    """A product of BLAS; needs a shape rule."""
    return _declare(Kind.CONTRACTION, kernel, options)


def opaque(kernel: Any, **options: Any) -> Callable[[Callable[..., Any]], Op]:
    """A function of whole arrays; `shape` where the result is unlike the first operand.
    `eager=True` evaluates when applied."""
    options.setdefault("shape", _like_first)
    return _declare(Kind.OPAQUE, kernel, options)


def _positional(body: Callable[..., Any]) -> Callable[..., Any]:
    """The same function with its keyword-only parameters as positional ones: rules get all
    arguments in signature order."""
    code = body.__code__
    if not code.co_kwonlyargcount:
        return body
    count = code.co_argcount + code.co_kwonlyargcount
    code = code.replace(co_argcount=count, co_kwonlyargcount=0)
    return FunctionType(code, body.__globals__, body.__name__, None, body.__closure__)


def composite(**options: Any) -> Callable[[Callable[..., Any]], Op]:
    """A named node whose body is the decorated function; shape and dtype are the body's."""

    def decorate(function: Callable[..., Any]) -> Op:
        op = _declare(Kind.COMPOSITE, None, options)(function)
        op.body = _positional(function)
        return op

    return decorate


def function(**options: Any) -> Callable[[Callable[..., Any]], Op]:
    """A composite without a node of its own: what PyTorch records are the ops of the body."""

    def decorate(body: Callable[..., Any]) -> Op:
        op = _declare(Kind.FUNCTION, None, options)(body)
        op.body = _positional(body)
        return op

    return decorate
