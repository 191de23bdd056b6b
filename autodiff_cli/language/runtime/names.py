"""What names mean before a program assigns them: builtins, namespaces, ops, NumPy's names.

A native file reaches everything bare (`relu(x)`, `pi`, `torch.exp`); a Python snippet has Python's
builtins and what it imports.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...autograd import calls
from ...autograd.tensor import Tensor
from ...errors import AutodiffError, fail, fault
from ...graph.op import Op
from ...graph.registry import overloads
from ...graph.state import STATE
from ...ops import public_names
from ...suggest import did_you_mean, suggest, synonym
from ..values.dialect import kind_of, private
from ..values.plain_operands import refuse_plain
from ..values.providers import STUBS, from_above, paths_below, provided
from ..values.values import Builtin, Namespace, OpFunction
from .namespaces import MODULES, NAMESPACES, PREDEFINED, UNUSED

NATIVE, CONSTANTS = "torch.names.NATIVE", "numpy.names.CONSTANTS"  # of native files
TORCH = "torch.names.TORCH"
FILES_OF_CLASSES = "nn.class_modules.FILES"
NUMPY, NUMPY_ONLY_BARE = "numpy.names.NUMPY", "numpy.names.NUMPY_ONLY_BARE"
OP_PREFIXES = ("", "nn.functional.", "special.", "linalg.")


def builtin(name: str) -> Any:
    """What a name means that the program has not assigned; None when nothing."""
    found = from_above("python.builtins.BUILTINS").get(name)
    if found is not None:
        return found
    if name == "__name__":
        return "__main__"
    if name == "__file__":
        return from_above("python.loading.files")().location()
    if name.endswith(("Error", "Exception", "Warning")) or name in _OTHER_EXCEPTIONS:
        return from_above("values.exceptions.EXCEPTIONS").get(name)
    if name in ("exit", "quit"):
        return provided("python.sys.exit")
    if STATE.python:
        return from_above(NATIVE).get(name) if name in ("load", "approx") else None
    found = from_above(CONSTANTS).get(name)
    if found is not None:
        return found
    path = PREDEFINED.get(name)
    if path is not None:
        return Namespace(path)
    found = _BARE.get(name)
    if found is None:
        found = from_above(NATIVE).get(name) or provided(name) or op_function(name)
        if found is None:
            found = from_above(STUBS).get(name)
        if found is not None:
            _BARE[name] = found
    return found


_OTHER_EXCEPTIONS = ("StopIteration", "GeneratorExit", "SystemExit", "KeyboardInterrupt")
_BARE: dict[str, Any] = {}
"""Bare names of native files that were looked up before: they mean the same in every program."""


def op_function(name: str) -> OpFunction | None:
    """The op a bare name stands for, PyTorch's name first, then NumPy's."""
    for prefix in OP_PREFIXES:
        ops = overloads(prefix + name)
        if ops:
            return OpFunction(name, ops)
    if name in from_above(NUMPY_ONLY_BARE):
        return OpFunction(name, overloads(from_above(NUMPY)[name]))
    return None


def member(namespace: Namespace, name: str) -> Any:
    """`namespace.name`."""
    if STATE.assigned and (namespace.path, name) in STATE.assigned:
        return STATE.assigned[namespace.path, name]
    place = namespace.path, name, STATE.python
    found = _MEMBERS.get(place)
    if found is None:
        found = _member(namespace, name)
        if type(found) is OpFunction or type(found) is Builtin:
            _MEMBERS[place] = found
    return found


_MEMBERS: dict[tuple[str, str, bool], OpFunction | Builtin] = {}
"""Ops and functions that were looked up before: they mean the same in every program of a kind."""


def _member(namespace: Namespace, name: str) -> Any:
    prefix = namespace.path
    path = f"{prefix}.{name}" if prefix else name
    if name == "__name__":
        return next(module for module, at in MODULES.items() if at == prefix)
    if prefix == "nn.modules":  # each class is known by its file there, and without it
        if f"torch.{path}" in from_above(FILES_OF_CLASSES):
            return import_module(f"torch.{path}")
        return _member(Namespace("nn"), name)
    if name.startswith("_") and path not in UNDERSCORED:
        raise private(name)
    found = provided(path)
    if found is None and path in NAMESPACES:
        found = Namespace(path)
    if found is None:
        ops = overloads(path)
        if ops:
            found = OpFunction(name, ops)
        elif name.endswith("_") and prefix in ("", "nn.functional"):
            found = _in_place(path.removesuffix("_"), name)
    if found is None:
        found = from_above(STUBS).get(path)
    if found is None and f"torch.{path}" in from_above(FILES_OF_CLASSES):
        found = import_module(f"torch.{path}")
    if found is None and path not in NONES:
        raise _no_member(namespace, name)
    return found


# Names that begin with an underscore and do no harm.
_OF_MODULES = """
    BatchNorm InstanceNorm Loss WeightedLoss ConvNd DropoutNd single pair triple quadruple ntuple
"""
UNDERSCORED = frozenset(
    {
        *(f"nn._{name}" for name in _OF_MODULES.split()),
        "__version__",
        "version.__version__",
        "np.__version__",
        "optim.lr_scheduler._LRScheduler",
        "autograd.forward_ad._set_fwd_grad_enabled",
    }
)
NONES = frozenset({"np.newaxis", "version.cuda", "version.hip"})  # names of None


def _in_place(path: str, name: str) -> Builtin | None:
    """`torch.relu_(x)`: the method of that name, as a function."""
    method = from_above("runtime.attributes.METHODS").get(name)
    if method is not None:
        return of_a_tensor(name, method)
    ops = overloads(path)
    if not ops or (path.startswith("nn.functional.") and "inplace" not in ops[0].index):
        return None
    return of_a_tensor(name, lambda x, *args, **kwargs: changed(x, ops, name, args, kwargs))


def changed(
    tensor: Tensor, ops: list[Op], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Tensor:
    """A tensor that the first fitting of `ops` has written its result into."""
    if STATE.python:
        refuse_plain(ops, name, (tensor, *args), kwargs, 1)
    return calls.in_place(tensor, ops, name, args, kwargs)


def of_a_tensor(name: str, method: Callable[..., Any]) -> Builtin:
    """A method as a function."""

    def run(input: Any, *args: Any, **kwargs: Any) -> Any:
        if not isinstance(input, Tensor):
            raise fault("E205 argument-tensor", kind_of(input), name=name, argument="input")
        return method(input, *args, **kwargs)

    return Builtin(name, run)


def _no_member(namespace: Namespace, name: str) -> AutodiffError:
    there = names_of(namespace)
    close = suggest(name, there)
    shown = {"": "torch", "nn.functional": "F"}.get(namespace.path, namespace.path)
    shown = shown.removeprefix("python.")
    other = (synonym(f"tf.{name}") or "").lower() if not close else ""
    close = close or [known for known in there if known.lower() == other]
    help = _FILES.get(name) or NO_DTYPES.get(name)
    if help is not None:
        close = []
    if close:
        return fault("E207 member-not-here", shown, name, close[0])
    return fault("E203 member-not-here", shown, name, help or "list what there is: autodiff ops")


_FILES = {
    "savez": "tensors are saved by the command: `autodiff run FILE -o name.npz`",
    "loadtxt": 'numbers are read with `load("name.csv")`',
    "genfromtxt": 'numbers are read with `load("name.csv")`',
}
# Dtypes of PyTorch that NumPy does not compute with, or that no gradient here has.
NO_DTYPES = {
    "bfloat16": "use torch.float32, or torch.float16",
    **dict.fromkeys(
        ["chalf", "cfloat", "cdouble", "complex", "complex32", "complex64", "complex128"],
        "write real and imaginary parts as two tensors",
    ),
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
    "torchvision": "make the images: `torch.rand(8, 3, 32, 32)`",
    "torchaudio": "make the signals: `torch.randn(8, 1, 16000)`",
}
DRAWING = frozenset({"matplotlib", "mpl_toolkits", "pylab", "seaborn"})
PYPLOT = """
    annotate arrow axes axhline axhspan axis axvline axvspan bar barh boxplot cla clf close cm
    colorbar contour contourf draw errorbar figure fill fill_between gca gcf grid hist hlines
    imshow ioff ion legend loglog pause pcolormesh pie plot quiver rc rcParams savefig sca
    scatter semilogx semilogy show stem step style subplot subplot2grid subplot_mosaic subplots
    subplots_adjust suptitle text tick_params tight_layout title twinx violinplot vlines xlabel
    xlim xscale xticks ylabel ylim yscale yticks
"""  # what `from matplotlib.pyplot import *` brings, but for the rare
_PICTURES = "`autodiff run FILE --plot` shows gradients and losses, `autodiff graph FILE` the graph"


def import_module(dotted: str) -> Any:
    """The namespace of `import dotted`; E209 when it is not one of the known ones. Programs that
    draw run without their pictures."""
    path = MODULES.get(dotted)
    if path is None and dotted in from_above(FILES_OF_CLASSES):
        path = MODULES[dotted.rpartition(".")[0]]
    if path is None and dotted.partition(".")[0] in DRAWING:
        if all(warning.code != "W209" for warning in STATE.warnings):
            STATE.warn("W209", "pictures are left out: nothing is drawn here", _PICTURES)
        return provided("python.drawing.Drawing")()
    if path is None:
        raise fail(
            "E209",
            f"module `{dotted}` cannot be imported here",
            label="not available",
            help=_OTHERS.get(dotted.partition(".")[0])
            or " ".join(did_you_mean(suggest(dotted, MODULES, 1)))
            or "known are torch and what is below it, "
            + ", ".join(sorted(m for m in MODULES if "." not in m and m != "torch")),
        )
    return Namespace(path)


def import_name(module: str, name: str) -> Any:
    """The value of `from module import name`."""
    dotted = f"{module}.{name}"
    if dotted in MODULES and name != "gradcheck":
        return Namespace(MODULES[dotted])
    namespace = import_module(module)
    if not isinstance(namespace, Namespace):
        return namespace
    try:
        return member(namespace, name)
    except AutodiffError as error:
        if module in UNUSED.split():
            return Namespace(f"python.{dotted}")  # imported out of habit too
        raise fail(
            "E209",
            f"`{module}` has no `{name}` here",
            label="not available",
            help=error.diagnostic.helps,
            raises="ImportError",
            said=f"cannot import name '{name}' from '{module}'",
        ) from None


def names_of(namespace: Namespace) -> dict[str, bool]:
    """What stands right below a namespace, private names too; whether it has names below itself."""
    prefix = f"{namespace.path}." if namespace.path else ""
    ops = "" if prefix == "np." else prefix  # NumPy's names of ops are mostly theirs
    paths = [path.removeprefix(prefix) for path in paths_below(prefix)]
    paths += [path.removeprefix(ops) for path in public_names() if path.startswith(ops)]
    if prefix == "np." and STATE.python:
        paths = [path for path in paths if provided(prefix + path) is not None]
    return {path.partition(".")[0]: "." in path for path in paths}


def names_below(module: str) -> list[str]:
    """What `from module import *` brings: the public names of a small module."""
    namespace = import_module(module)
    if not isinstance(namespace, Namespace):
        return PYPLOT.split()
    names = names_of(namespace)
    found = [name for name, inner in names.items() if not inner and not name.startswith("_")]
    if not found or len(found) > MOST_AT_ONCE:
        raise fault("E209 import-not-supported", module=module)
    return found


MOST_AT_ONCE = 200


def known_names() -> list[str]:
    """All bare names, for suggestions."""
    builtins = from_above("python.builtins.BUILTINS")
    if STATE.python:
        return list(builtins)
    names = {n.rpartition(".")[2] for n in public_names()}
    for known in (builtins, PREDEFINED, *map(from_above, (CONSTANTS, NATIVE, NUMPY, TORCH))):
        names.update(n for n in known if "." not in n)
    return sorted(names)
