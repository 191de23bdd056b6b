"""What names mean before a program assigns them: builtins, namespaces, ops, NumPy's names.

A native file reaches everything bare (`relu(x)`, `pi`, `torch.exp`); a Python snippet has Python's
builtins and what it imports.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..autograd.tensor import Tensor
from ..errors import AutodiffError, fail
from ..graph.dtypes import FLOAT64
from ..graph.registry import overloads
from ..suggest import suggest, synonym
from .builtins import BUILTINS, TYPES
from .module_names import PATHS, library_member
from .operations import MODE, kind_of
from .random_names import RANDOM_NAMES
from .values import Builtin, Namespace, OpFunction

CONSTANTS: dict[str, Any] = {
    "pi": math.pi,
    "e": math.e,
    "inf": math.inf,
    "nan": math.nan,
}

PREDEFINED: dict[str, str] = {
    "torch": "",
    "F": "nn.functional",
    "nn": "nn",
    "np": "np",
    "numpy": "np",
    "math": "math",
    "linalg": "linalg",
    "special": "special",
    "autograd": "autograd",
    "optim": "optim",
    "func": "func",
}

MODULES: dict[str, str] = {
    "torch": "",
    "numpy": "np",
    "math": "math",
    "torch.nn": "nn",
    "torch.nn.functional": "nn.functional",
    "torch.nn.init": "nn.init",
    "torch.nn.utils": "nn.utils",
    "torch.linalg": "linalg",
    "torch.special": "special",
    "torch.autograd": "autograd",
    "torch.autograd.functional": "autograd.functional",
    "torch.func": "func",
    "torch.optim": "optim",
    "torch.optim.lr_scheduler": "optim.lr_scheduler",
    "torch.distributions": "distributions",
    "torch.distributions.kl": "distributions.kl",
    "torch.distributions.transforms": "distributions.transforms",
    **{
        f"torch.distributions.{name}": "distributions"
        for name in (
            "bernoulli",
            "beta",
            "categorical",
            "dirichlet",
            "distribution",
            "gamma",
            "independent",
            "laplace",
            "multivariate_normal",
            "normal",
            "transformed_distribution",
            "uniform",
        )
    },
    "torch.masked": "masked",
    "torch.random": "random",
    "torch.autograd.function": "autograd",
    "torch.autograd.forward_ad": "autograd.forward_ad",
    "torch.autograd.graph": "autograd.graph",
    "torch.autograd.gradcheck": "autograd",
    "torch.autograd.variable": "autograd",
    "torch.nn.parameter": "nn",
    "torch.nn.modules": "nn",
    "torch.nn.utils.rnn": "nn.utils.rnn",
    "torch.nn.utils.parametrize": "nn.utils.parametrize",
    "torch.nn.utils.parametrizations": "nn.utils.parametrizations",
    "torch.utils": "utils",
    "torch.utils.data": "utils.data",
    "torch.utils.checkpoint": "utils.checkpoint",
    "torch.amp": "amp",
    "torch.cuda": "cuda",
    "torch.backends": "backends",
    "torch.optim.optimizer": "optim",
    "torch.optim.swa_utils": "optim.swa_utils",
    "numpy.linalg": "np.linalg",
    "functorch": "func",
    "copy": "python.copy",
    **{
        name: f"python.{name}"
        for name in (
            "functools",
            "itertools",
            "operator",
            "dataclasses",
            "enum",
            "contextlib",
            "collections",
            "collections.abc",
            "time",
            "random",
            "warnings",
            "abc",
            "typing",
        )
    },
}

NAMESPACES = frozenset(MODULES.values()) | {
    "np.random",
    "backends.cudnn",
    "backends.mps",
    "cuda.amp",
    "mps",
}

# NumPy's names of ops; keywords are translated when arguments are bound.
NUMPY: dict[str, str] = {
    "arcsin": "asin",
    "arccos": "acos",
    "arctan": "atan",
    "arctan2": "atan2",
    "arcsinh": "asinh",
    "arccosh": "acosh",
    "arctanh": "atanh",
    "absolute": "abs",
    "fabs": "abs",
    "power": "pow",
    "concatenate": "cat",
    "concat": "cat",
    "mod": "remainder",
    "amax": "amax",
    "amin": "amin",
    "expand_dims": "unsqueeze",
    "transpose": "permute",
    "around": "round",
    "rint": "round",
    "invert": "bitwise_not",
    "matmul": "matmul",
    "swapaxes": "transpose",
    "moveaxis": "movedim",
    "broadcast_to": "broadcast_to",
    "true_divide": "true_divide",
    "float_power": "float_power",
    "degrees": "rad2deg",
    "radians": "deg2rad",
    "cumulative_sum": "cumsum",
    "product": "prod",
    "fix": "trunc",
    "clip": "clamp",
    "array_split": "tensor_split",
    "vecdot": "linalg.vecdot",
    "inv": "linalg.inv",
    "norm": "linalg.norm",
    "det": "linalg.det",
    "solve": "linalg.solve",
    "ascontiguousarray": "contiguous",
    "row_stack": "vstack",
    "sum": "sum",
    "mean": "mean",
    "max": "amax",
    "min": "amin",
    "nan_to_num": "nan_to_num",
}
NUMPY_ONLY_BARE = frozenset(NUMPY) - {
    "transpose",
    "sum",
    "mean",
    "max",
    "min",
    "norm",
    "inv",
    "det",
    "solve",
    "mod",
    "vecdot",
}

# Where transforms of functions are found; their module is loaded when one is named.
TRANSFORM_PATHS = (
    "func.",
    "vmap",
    "autograd.functional.",
    "autograd.gradcheck",
    "autograd.gradgradcheck",
)

# Switches, context managers and other things around computing; see `services`.
SERVICE_PATHS = (
    "autograd.",
    "utils.",
    "amp.",
    "autocast",
    "cuda.",
    "backends.",
    "compile",
    "are_",
    "is_",
    "set_",
    "get_",
    "random.",
    "nn.utils.",
    "typename",
    "__version__",
    "profiler",
    "optim.swa_utils",
)

OP_PREFIXES = ("", "nn.functional.", "special.", "linalg.")


def _float(value: Any) -> float:
    from .builtins import TYPES

    make = TYPES["float"].make
    assert make is not None
    return make(value)


def _math(name: str) -> Callable[..., Any]:
    function = getattr(math, name)

    def run(*args: Any, **options: Any) -> Any:
        values = [a if isinstance(a, int | float) else _float(a) for a in args]
        try:
            return function(*values, **{k: _float(v) for k, v in options.items()})
        except ValueError:
            raise fail(
                "E504",
                f"math.{name} is not defined at {', '.join(map(str, values))}",
                help="check the argument",
            ) from None
        except OverflowError:
            raise fail(
                "E504",
                f"math.{name}({', '.join(str(v)[:20] for v in values)}) is too large for a float",
                help="use smaller numbers, or the tensor function",
            ) from None

    return run


def _small_integers(name: str, limit: int) -> Callable[..., Any]:
    run = _math(name)

    def bounded(*args: Any) -> Any:
        if any(isinstance(a, int) and abs(a) > limit for a in args):
            raise fail(
                "E505",
                f"math.{name} of a number above {limit}",
                help="use math.lgamma for large numbers",
            )
        return run(*args)

    return bounded


MATH: dict[str, Any] = {
    **{
        name: Builtin(name, _math(name))
        for name in (
            "sqrt",
            "exp",
            "log",
            "log2",
            "log10",
            "log1p",
            "expm1",
            "sin",
            "cos",
            "tan",
            "asin",
            "acos",
            "atan",
            "atan2",
            "sinh",
            "cosh",
            "tanh",
            "asinh",
            "acosh",
            "atanh",
            "floor",
            "ceil",
            "trunc",
            "fabs",
            "pow",
            "hypot",
            "erf",
            "erfc",
            "gamma",
            "lgamma",
            "degrees",
            "radians",
            "isnan",
            "isinf",
            "isfinite",
            "copysign",
            "fmod",
            "gcd",
            "isclose",
            "lcm",
        )
    },
    "factorial": Builtin("factorial", _small_integers("factorial", 5000)),
    "comb": Builtin("comb", _small_integers("comb", 5000)),
    "perm": Builtin("perm", _small_integers("perm", 5000)),
    "isqrt": Builtin("isqrt", _math("isqrt")),
    "prod": Builtin("prod", lambda values, start=1: _product(values, start)),
    "pi": math.pi,
    "e": math.e,
    "inf": math.inf,
    "nan": math.nan,
    "tau": math.tau,
}


def _product(values: Any, start: Any) -> Any:
    from .operations import binary, iterate

    for value in iterate(values):
        start = binary("*", start, value)
    return start


def builtin(name: str) -> Any:
    """What a name means that the program has not assigned; None when nothing."""
    found = BUILTINS.get(name)
    if found is not None:
        return found
    if name == "__name__":
        return "__main__"
    if name.endswith(("Error", "Exception", "Warning")) or name == "StopIteration":
        from .exceptions import EXCEPTIONS

        return EXCEPTIONS.get(name)
    if name in ("staticmethod", "classmethod", "property"):
        from .classes import DECORATORS

        return DECORATORS[name]
    from .torch_names import NATIVE

    if MODE.python:
        return NATIVE.get(name) if name in ("load", "approx") else None
    found = CONSTANTS.get(name)
    if found is not None:
        return found
    path = PREDEFINED.get(name)
    if path is not None:
        return Namespace(path)
    found = _BARE.get(name)
    if found is None:
        found = NATIVE.get(name) or torch_member(name) or op_function(name)
        if found is not None:
            _BARE[name] = found
    return found


_BARE: dict[str, Any] = {}
"""Bare names of native files that were looked up before: they mean the same in every program."""


def op_function(name: str) -> OpFunction | None:
    """The op a bare name stands for, PyTorch's name first, then NumPy's."""
    for prefix in OP_PREFIXES:
        ops = overloads(prefix + name)
        if ops:
            return OpFunction(name, ops)
    if name in NUMPY_ONLY_BARE:
        return OpFunction(name, overloads(NUMPY[name]))
    return None


def torch_member(path: str) -> Any:
    """A name below `torch.` that is no op."""
    from .torch_names import TORCH

    found = TORCH.get(path)
    if found is not None:
        return found
    if path == "linalg.LinAlgError":
        from .exceptions import EXCEPTIONS

        return EXCEPTIONS["_LinAlgError"]
    if path == "autograd.Function":
        from .classes import FUNCTION

        return FUNCTION
    if path in RANDOM_NAMES:
        from .random_functions import RANDOM

        return RANDOM.get(path)
    if path.startswith(TRANSFORM_PATHS):
        from .transform_functions import TRANSFORMS

        return TRANSFORMS.get(path)
    if path in PATHS:
        return library_member(path)
    if path.startswith("utils.data."):
        from .datasets import NAMES

        return NAMES.get(path.removeprefix("utils.data."))
    if path.startswith(SERVICE_PATHS):
        from .services import member as service

        return service(path)
    return None


def member(namespace: Namespace, name: str) -> Any:
    """`namespace.name`."""
    if name.startswith("_"):
        from .attributes import private

        raise private(name)
    prefix = namespace.path
    if prefix == "math":
        found = MATH.get(name)
    elif prefix.startswith("python.") and prefix != "python.copy":
        from . import python_modules

        found = python_modules.member(prefix.removeprefix("python."), name)
    elif prefix.startswith("np"):
        found = _numpy_member(prefix, name)
    else:
        path = f"{prefix}.{name}" if prefix else name
        found = torch_member(path)
        if found is None and path in NAMESPACES:
            found = Namespace(path)
        if found is None:
            ops = overloads(path)
            if ops:
                found = OpFunction(name, ops)
            elif name.endswith("_") and prefix in ("", "nn.functional"):
                found = _IN_PLACE.get(path) or _in_place(path.removesuffix("_"), name)
                _IN_PLACE[path] = found
    if found is None and not (name == "newaxis" and prefix == "np"):
        raise _no_member(namespace, name)
    return found


_IN_PLACE: dict[str, Builtin | None] = {}


def _in_place(path: str, name: str) -> Builtin | None:
    """`torch.relu_(x)`: the method of that name, as a function."""
    from ..autograd import calls
    from .attributes import METHODS

    method = METHODS.get(name)
    if method is not None:
        return Builtin(name, method)
    ops = overloads(path)
    if not ops or (path.startswith("nn.functional.") and "inplace" not in ops[0].index):
        return None

    def run(input: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(input, Tensor):
            raise fail("E208", f"`{name}` needs a tensor, not {kind_of(input)}", help="give one")
        return calls.in_place(input, ops, name, args, kwargs)

    return Builtin(name, run)


def _numpy_member(prefix: str, name: str) -> Any:
    if prefix == "np" and name == "linalg":
        return Namespace("np.linalg")
    if prefix == "np.random":
        from .arrays import RANDOM as NUMPY_RANDOM

        return NUMPY_RANDOM.get(name)
    if prefix == "np" and name == "random":
        return Namespace("np.random")
    if prefix == "np.linalg":
        ops = overloads(f"linalg.{name}")
        return Builtin(name, numpy_function(name, ops)) if ops else None
    found = CONSTANTS.get(name)
    if found is not None:
        return found
    from .torch_names import NUMPY_FUNCTIONS, TORCH

    found = NUMPY_FUNCTIONS.get(name)
    if found is not None:
        return found
    if name == "ndarray":
        return TYPES["ndarray"]
    if MODE.python:
        from .arrays import FUNCTIONS as ARRAY_FUNCTIONS

        if name in ARRAY_FUNCTIONS:
            return ARRAY_FUNCTIONS[name]
    dtype = TORCH.get(name.rstrip("_"))
    if (
        dtype is not None
        and not isinstance(dtype, Builtin)
        and name.rstrip("_")
        in ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")
    ):
        return dtype
    ops = overloads(NUMPY.get(name, name))
    if ops and name not in ("fromfile", "load", "save"):
        return Builtin(name, numpy_function(name, ops))
    return None


def _is_data(value: Any) -> bool:
    """Numbers that are to become an array; a list of arrays stays one."""
    if isinstance(value, list):
        return not any(isinstance(item, Tensor) for item in value)
    return isinstance(value, float)


def numpy_function(name: str, ops: list[Any]) -> Callable[..., Any]:
    """An op under NumPy's name. In a Python snippet it takes numbers and lists too, computes in
    float64, and what it makes of them and of NumPy arrays is an array or a number again."""
    from ..autograd import calls
    from .arrays import result as as_result
    from .torch_names import NUMPY_FUNCTIONS

    makes = ops[0].family == "creation" and "dtype" in ops[0].index
    array = NUMPY_FUNCTIONS["array"].function

    def run(*args: Any, **kwargs: Any) -> Any:
        if not MODE.python or any(isinstance(a, Tensor) and a.tag != "numpy" for a in args):
            if MODE.python and any(isinstance(a, Tensor) and a.requires_grad for a in args):
                raise fail(
                    "E402",
                    "numpy() cannot be called on a tensor that requires grad, and that is what "
                    f"`np.{name}` does",
                    help=f"write `torch.{name}`, or `np.{name}(x.detach().numpy())`",
                )
            return calls.call_ops(ops, name, args, kwargs)
        if makes:
            if name != "arange" or any(isinstance(a, float) for a in args):
                kwargs.setdefault("dtype", FLOAT64)
            result = calls.call_ops(ops, name, args, kwargs)
        else:
            given = [array(a) if _is_data(a) else a for a in args]
            if given and isinstance(given[0], int):
                given[0] = array(float(given[0]))
            try:
                result = calls.call_ops(ops, name, tuple(given), kwargs)
            except AutodiffError as error:
                if error.code != "E307":
                    raise
                given = [array(a, FLOAT64) if isinstance(a, Tensor) else a for a in given]
                result = calls.call_ops(ops, name, tuple(given), kwargs)
        return as_result(result)

    return run


def _no_member(namespace: Namespace, name: str) -> AutodiffError:
    from ..ops.index import WHERE
    from .torch_names import TORCH

    prefix = f"{namespace.path}." if namespace.path else ""
    known = [n.removeprefix(prefix) for n in [*WHERE, *TORCH, *PATHS] if n.startswith(prefix)]
    if namespace.path == "math":
        known = list(MATH)
    if namespace.path == "np":
        known = [*NUMPY, *WHERE]
    close = suggest(name, [n for n in known if "." not in n])
    shown = {"": "torch", "nn.functional": "F"}.get(namespace.path, namespace.path)
    shown = shown.removeprefix("python.")
    other = synonym(f"tf.{name}") if namespace.path in ("", "np") and not close else None
    if other is not None and other in known:
        close = [other]
    if name in _FILES:
        close = []
    return fail(
        "E203" if not close else "E207",
        f"`{shown}.{name}` does not exist here",
        label="not available",
        help=f"did you mean `{shown}.{close[0]}`?"
        if close
        else _FILES.get(name, "list what there is: autodiff ops"),
    )


_FILES = {
    "load": 'numbers are read with `load("name.npy")`, also of .npz, .csv and .json files',
    "save": "tensors are saved by the command: `autodiff run FILE -o name.npz`",
    "savez": "tensors are saved by the command: `autodiff run FILE -o name.npz`",
    "loadtxt": 'numbers are read with `load("name.csv")`',
    "genfromtxt": 'numbers are read with `load("name.csv")`',
}
_AS_TORCH = "write `import torch`: operations have PyTorch's names here (`autodiff help NAME`)"
_OTHERS = {
    "jax": _AS_TORCH,
    "tensorflow": _AS_TORCH,
    "keras": _AS_TORCH,
    "autograd": _AS_TORCH,
    "mxnet": _AS_TORCH,
    "scipy": "write `import torch`: `torch.special` and `torch.linalg` have such functions",
    "pandas": 'read tables with `load("table.csv", header=True)`',
    "matplotlib": "leave it out: `autodiff graph FILE` draws the graph of a program",
    "os": "leave it out: a program reaches no files but those it loads",
    "sys": "leave it out: a program takes its values from `-D NAME=VALUE`",
}


def import_module(dotted: str) -> Namespace:
    """The namespace of `import dotted`; E209 when it is not one of the known ones."""
    path = MODULES.get(dotted)
    if path is None:
        raise fail(
            "E209",
            f"module `{dotted}` cannot be imported here",
            label="not available",
            help=_OTHERS.get(dotted.partition(".")[0])
            or "known are torch and what is below it, "
            + ", ".join(sorted(m for m in MODULES if "." not in m and m != "torch")),
        )
    return Namespace(path)


def import_name(module: str, name: str) -> Any:
    """The value of `from module import name`."""
    if f"{module}.{name}" in MODULES and name != "gradcheck":
        return Namespace(MODULES[f"{module}.{name}"])
    namespace = import_module(module)
    try:
        return member(namespace, name)
    except AutodiffError as error:
        if error.code in ("E203", "E207"):
            raise fail(
                "E209",
                f"`{module}` has no `{name}` here",
                label="not available",
                help=error.diagnostic.helps,
            ) from None
        raise


def known_names() -> list[str]:
    """All bare names, for suggestions."""
    from ..ops.index import WHERE

    if MODE.python:
        return list(BUILTINS)
    names = {n.rpartition(".")[2] for n in WHERE}
    from .torch_names import NATIVE, TORCH

    names.update(
        n for n in (*BUILTINS, *CONSTANTS, *NATIVE, *NUMPY, *TORCH, *PREDEFINED) if "." not in n
    )
    return sorted(names)


__all__ = ["builtin", "import_module", "import_name", "kind_of", "known_names", "member"]
