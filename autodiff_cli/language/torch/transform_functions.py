"""`torch.func`, `torch.autograd.functional` and `gradcheck` as programs call them.

What a transform returns is a function value again, so that transforms nest in any order.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ...autograd.tensor import Tensor
from ...autograd.transforms import functional, functions, gradcheck
from ...errors import AutodiffError, fault, refused
from ...graph.op import constant, number
from ...graph.params import BindError, to_float, unknown_keyword
from ...graph.state import STATE
from ..random.generators import default_stream
from ..runtime.attributes import inside
from ..values.dialect import kind_of
from ..values.exceptions import EXCEPTIONS, caught
from ..values.functions import call_value
from ..values.housekeeping import count_step
from ..values.operations import as_operand, truth
from ..values.values import Builtin, builtins_of
from . import duals

_RANDOMNESS = ("error", "same", "different")


def _function(name: str, function: Any) -> functions.Call:
    """A value of the language as a function that transforms run."""
    if not callable(function):
        raise fault("E208 needs-function", kind_of(function), name=name)

    def run(args: list[Any], kwargs: dict[str, Any]) -> Any:
        count_step()
        span, grad = STATE.span, STATE.grad
        try:
            return call_value(function, args, kwargs)
        finally:
            STATE.span, STATE.grad = span, grad

    return run


def _operand(value: Any) -> Any:
    """In native files lists and floats are tensors too."""
    if STATE.python or isinstance(value, bool):
        return value
    if isinstance(value, float):
        return Tensor(constant(number(value).value))
    return as_operand(value)


def _made(name: str, function: Any, run: Callable[..., Any]) -> Builtin:
    """The function value that a transform of `function` is."""
    return Builtin(getattr(function, "name", name), run)


def _argnums(name: str, value: Any) -> Any:
    if type(value) is int:
        return value
    if isinstance(value, tuple) and all(type(v) is int for v in value):
        return value
    words = f"argnums must be int or Tuple[int, ...], got: {type(value)}"
    help = "argnums is an int or a tuple of ints"
    raise refused("E205", f"`{name}` got argnums={value!r}"[:120], words, help)


def _gradients(name: str) -> Callable[..., Builtin]:
    """`grad` or `grad_and_value`."""

    def transform(func: Any, argnums: Any = 0, has_aux: Any = False) -> Builtin:
        call, places, aux = _function(name, func), _argnums(name, argnums), truth(has_aux)

        def run(*args: Any, **kwargs: Any) -> Any:
            given = [_operand(a) for a in args]
            grads, value, extra = functions.grad_and_value(call, given, kwargs, places, aux, name)
            if name == "grad":
                return (grads, extra) if aux else grads
            return (grads, (value, extra)) if aux else (grads, value)

        return _made(name, func, run)

    return transform


def _jacobian(
    name: str, func: Any, argnums: Any, has_aux: Any, forward: bool, randomness: str = "error"
) -> Builtin:
    call, places, aux = _function(name, func), _argnums(name, argnums), truth(has_aux)

    def run(*args: Any, **kwargs: Any) -> Any:
        found, extra = functions.jacobian(
            call, [_operand(a) for a in args], kwargs, places, aux, forward, randomness
        )
        return (found, extra) if aux else found

    return _made(name, func, run)


def _jacrev(
    func: Any,
    argnums: Any = 0,
    *,
    has_aux: Any = False,
    chunk_size: Any = None,
    _preallocate_and_copy: Any = False,
) -> Builtin:
    _chunk(chunk_size, "jacrev: `chunk_size` should be greater than 0.")
    return _jacobian("jacrev", func, argnums, has_aux, False)


def _jacfwd(
    func: Any, argnums: Any = 0, has_aux: Any = False, *, randomness: Any = "error"
) -> Builtin:
    return _jacobian("jacfwd", func, argnums, has_aux, True, _random(randomness))


def _vjp(func: Any, *primals: Any, has_aux: Any = False) -> Any:
    aux = truth(has_aux)
    output, pull, extra = functions.vjp(_function("vjp", func), [_operand(p) for p in primals], aux)

    def pulled(cotangents: Any, retain_graph: Any = True, create_graph: Any = None) -> Any:
        graph = None if create_graph is None else truth(create_graph)
        return pull(_operand(cotangents), truth(retain_graph), graph)

    found = output, Builtin("vjp_fn", pulled)
    return (*found, extra) if aux else found


def _jvp(
    func: Any, primals: Any, tangents: Any, *, strict: Any = False, has_aux: Any = False
) -> Any:
    aux = truth(has_aux)
    output, change, extra = functions.jvp(
        _function("jvp", func), _operands(primals), _operands(tangents), truth(strict), aux
    )
    return (output, change, extra) if aux else (output, change)


def _operands(values: Any) -> Any:
    return tuple(_operand(v) for v in values) if isinstance(values, tuple) else values


def _linearize(func: Any, *primals: Any) -> Any:
    output, push = functions.linearize(_function("linearize", func), [_operand(p) for p in primals])
    return output, Builtin("jvp_fn", lambda *tangents: push(*[_operand(t) for t in tangents]))


def _random(randomness: Any) -> str:
    """Whether random draws are allowed, and whether each example has its own."""
    if randomness not in _RANDOMNESS:
        words = "Only allowed values for randomness are 'error', 'different', or 'same'."
        message = f"`vmap` got randomness={randomness!r}"[:120]
        help = "one of " + ", ".join(repr(r) for r in _RANDOMNESS)
        raise refused("E205", message, f"{words} Got {randomness}", help)
    return str(randomness)


def _chunk(size: Any, words: str) -> None:
    if size is not None and (type(size) is not int or size < 1):
        message = f"chunk_size must be a positive int or None, not {size!r}"[:120]
        raise refused("E205", message, words, "leave it out", "ValueError")


def _vmap(
    func: Any,
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: Any = "error",
    *,
    chunk_size: Any = None,
) -> Builtin:
    call = _function("vmap", func)
    draws = _random(randomness)
    _chunk(chunk_size, f"vmap: chunk_size should be None or greater than 0. (got {chunk_size})")
    name = getattr(func, "name", "f")

    def run(*args: Any, **kwargs: Any) -> Any:
        given = [_operand(a) for a in args]
        return functions.vmap(call, given, kwargs, in_dims, out_dims, draws, name, chunk_size)

    return _made("vmap", func, run)


# -- torch.autograd.functional ---------------------------------------------------------------------


def _inputs(value: Any) -> Any:
    if STATE.levels:
        raise inside("requires_grad_")
    return _operand(value)


def _strategy(value: Any, vectorize: Any, create_graph: Any, hint: str = "") -> str:
    """`forward-mode`; `reverse-mode`, row by row, or `vectorized`."""
    if value not in ("reverse-mode", "forward-mode"):
        raise refused(
            "E205",
            f"unknown strategy {value!r}"[:120],
            f'Expected strategy to be either "forward-mode" or "reverse-mode".{hint}',
            "`reverse-mode` or `forward-mode`",
            "AssertionError",
        )
    if value == "forward-mode" and truth(create_graph):
        raise fault("E205 forward-mode-strategy-does")
    if truth(vectorize):
        return "vectorized" if value == "reverse-mode" else str(value)
    if value == "forward-mode":
        raise fault("E205 forward-mode-strategy-needs")
    return str(value)


def _check_strict(name: str, strict: Any, vectorize: Any) -> None:
    if truth(strict) and truth(vectorize):
        raise fault("E205 cannot-strict-vectorized", name=name)


_HINT = (
    ' Hint: If your function has more outputs than inputs, "forward-mode" tends to be more '
    'performant. Otherwise, prefer to use "reverse-mode".'
)


def _functional_jacobian(
    func: Any,
    inputs: Any,
    create_graph: Any = False,
    strict: Any = False,
    vectorize: Any = False,
    strategy: Any = "reverse-mode",
) -> Any:
    kind = _strategy(strategy, vectorize, create_graph, _HINT)
    _check_strict("jacobian", strict, vectorize)
    call = _function("jacobian", func)
    return functional.jacobian(call, _inputs(inputs), truth(create_graph), truth(strict), kind)


def _functional_hessian(
    func: Any,
    inputs: Any,
    create_graph: Any = False,
    strict: Any = False,
    vectorize: Any = False,
    outer_jacobian_strategy: Any = "reverse-mode",
) -> Any:
    _check_strict("hessian", strict, vectorize)
    call, values = _function("hessian", func), _inputs(inputs)
    kind = _strategy(outer_jacobian_strategy, vectorize, create_graph)
    return functional.hessian(call, values, truth(create_graph), truth(strict), kind)


def _product(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def run(
        func: Any, inputs: Any, v: Any = None, create_graph: Any = False, strict: Any = False
    ) -> Any:
        call, values = _function(name, func), _inputs(inputs)
        vector = None if v is None else _inputs(v)
        return function(call, values, vector, truth(create_graph), truth(strict))

    return run


# -- gradcheck -------------------------------------------------------------------------------------


# Keywords that are flags, by the field that holds them, and those that change nothing here.
_FLAGS = {
    "check_undefined_grad": "undefined",
    "check_forward_ad": "forward",
    "check_backward_ad": "backward",
    "check_batched_grad": "batched",
    "check_batched_forward_grad": "batched_forward",
    "fast_mode": "fast",
}
_IGNORED = """
    check_fwd_over_rev check_grad_dtypes check_rev_over_rev check_sparse_nnz
    gen_non_contig_grad_outputs masked
"""


def _options(name: str, eps: Any, atol: Any, rtol: Any, options: Any) -> gradcheck.Options:
    flags = {
        _FLAGS[option]: truth(options.pop(option)) for option in list(options) if option in _FLAGS
    }
    nondet = options.pop("nondet_tol", 0.0)
    for option in options:
        if option not in _IGNORED.split():
            takes = ("eps", "atol", "rtol", "raise_exception")
            raise fault("E205 unknown-keyword", name, unknown_keyword(option, takes))
    try:
        eps, atol, rtol, nondet = map(to_float, (eps, atol, rtol, nondet))
    except BindError as error:
        raise fault("E205 eps-atol-rtol", name=name, error=error) from None
    found = gradcheck.Options(eps, atol, rtol, nondet, **flags)
    if not found.forward and not found.backward:
        raise fault("E205 expected-at-least-one")
    for mode in ("", "forward_"):
        needs = "forward" if mode else "backward"
        if getattr(found, f"batched{'_forward' if mode else ''}") and not getattr(found, needs):
            raise fault("E205 batch-needs-mode", name, f"check_batched_{mode}grad", needs)
    return found


def _words(error: AutodiffError) -> str | None:
    """What PyTorch says where a RuntimeError is caught."""
    value = caught(error, [EXCEPTIONS["RuntimeError"]])
    return None if value is None else str(value.fields["args"][0])


def _means() -> gradcheck.Means:
    return gradcheck.Means(duals.along, default_stream(), _words)


def _gradcheck(
    func: Any,
    inputs: Any,
    *,
    eps: Any = 1e-6,
    atol: Any = 1e-5,
    rtol: Any = 1e-3,
    raise_exception: Any = True,
    **options: Any,
) -> bool:
    found = _options("gradcheck", eps, atol, rtol, options)
    call, values = _function("gradcheck", func), _inputs(inputs)
    return gradcheck.holds(
        lambda: gradcheck.gradcheck(call, values, found, _means()), truth(raise_exception)
    )


def _gradgradcheck(
    func: Any,
    inputs: Any,
    grad_outputs: Any = None,
    *,
    eps: Any = 1e-6,
    atol: Any = 1e-5,
    rtol: Any = 1e-3,
    raise_exception: Any = True,
    **options: Any,
) -> bool:
    found = _options("gradgradcheck", eps, atol, rtol, options)
    call, values = _function("gradgradcheck", func), _inputs(inputs)
    return gradcheck.holds(
        lambda: gradcheck.gradgradcheck(call, values, grad_outputs, found, _means()),
        truth(raise_exception),
    )


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "func.grad": _gradients("grad"),
    "func.grad_and_value": _gradients("grad_and_value"),
    "func.vjp": _vjp,
    "func.jvp": _jvp,
    "func.linearize": _linearize,
    "func.functionalize": lambda func, *, remove="mutations": func,
    "func.jacrev": _jacrev,
    "func.jacfwd": _jacfwd,
    "func.hessian": lambda func, argnums=0: _jacfwd(_jacrev(func, argnums), argnums),
    "func.vmap": _vmap,
    "vmap": _vmap,
    "autograd.functional.jacobian": _functional_jacobian,
    "autograd.functional.hessian": _functional_hessian,
    "autograd.functional.vjp": _product("vjp", functional.vjp),
    "autograd.functional.jvp": _product("jvp", functional.jvp),
    "autograd.functional.vhp": _product("vhp", partial(functional.second, "vhp")),
    "autograd.functional.hvp": _product("hvp", partial(functional.second, "hvp")),
    "autograd.gradcheck": _gradcheck,
    "autograd.gradgradcheck": _gradgradcheck,
}

TRANSFORMS = builtins_of(_FUNCTIONS)
