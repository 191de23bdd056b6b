"""The library for Python users: `run`, `check`, `gradcheck`, derivatives as functions of arrays."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from os import PathLike
from os.path import exists
from textwrap import dedent, indent
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np

from .defaults import CHUNK
from .errors import fault
from .language.program.array_functions import (
    Hessian,
    Hvp,
    Jacobian,
    Jvp,
    Kind,
    Value,
    ValueAndGrad,
    Vjp,
)
from .language.program.compiled import Compiled, Wishes
from .language.program.options import checked, fitting
from .language.syntax.decode import decode
from .language.values.exceptions import Handed
from .session import Options
from .session import run as run_source
from .source import Source

if TYPE_CHECKING:
    from .checks.model import FileResult


_COMMON = """
        program: text of a program, or the path of a file: a `Path`, or a string of one line that
        ends in `.expr` or `.py` and has no `=` or is an existing file's. Text that is indented as a
        whole is moved to the left.
        wrt: names to differentiate with respect to; default all float arguments and the program's
        own leaves. Results go by these names; a single name, not in a list, gives the bare array.
        of (`loss` of `value_and_grad`): name of what is computed or differentiated; where the
        program has no `loss` the last scalar it computes, or the last tensor where any will do;
        if it computes nothing the last one it assigns.
        **given: arrays that are the same in every call, by name, which are not differentiated
        unless `wrt` names them, and these options:
            aux: a name or names; a call returns `(what it else returns, {name: value})`, for a
            single name, not in a list, `(what it else returns, value)`.
            vmap: a name or names of arrays whose first axis counts examples. The program runs on
            one example, and each result is that of all examples, counted by a new first axis.
            seed: what random draws start from; each call draws the same numbers. `f(seed=1, ...)`
            is another seed for one call.
            write: a function that gets what `print` prints; default the standard output.
            max_memory: bytes that the tensors of a call may take together (E505 beyond; 1 GiB).
            max_steps: steps of loops in a call (E506 beyond; 1,000,000).
            max_depth: how deep its functions may call each other (E507 beyond; 1,000).
            max_plan_memory: bytes that plans may take which are kept, one for each form of arrays
            (shapes and dtypes), the last ones used (64 MiB).
            engine: "dask": arrays may be those of Dask, of any number of rows, as results that have
            rows then are; `client` says on which cluster (threads of this process without),
            `chunk` how many bytes a block may have (64 MiB).
            isolate: the program runs in a process of its own, where memory is bounded from outside.
            timeout: seconds that a call may take, in a process of its own.
"""

Program = str | PathLike[str] | Source
_RAISES = """\
Raises:
    AutodiffError: at once on a syntax error or a wrong argument, by a call on whatever else goes
    wrong; also a ValueError, TypeError or KeyError where Python or NumPy raise those."""

F = TypeVar("F", bound=Callable[..., Any])


def _complete(function: F) -> F:
    """Write out what the docstrings of functions of arrays have in common, and hand over what
    goes wrong."""
    common = indent(dedent(_COMMON[1:]), "    ")
    first, _, rest = (function.__doc__ or "").partition("\n")
    doc = f"{first}\n{dedent(rest)}".replace("    COMMON\n", common).strip()
    function.__doc__ = f"{doc}\n\n{_RAISES}"
    return Handed()(function)


@Handed()
def source_of(program: Program) -> Source:
    """The text of a program given as text or as a path (a `Path`, or a string of one line that ends
    as a program's name does).

    Raises:
        AutodiffError: E701 when the file cannot be read, E109 when it is no UTF-8, E205 for what is
        neither.
    """
    if isinstance(program, Source):
        return program
    if isinstance(program, str):
        one = "\n" not in program and program.endswith((".expr", ".py"))
        if not one or ("=" in program and not exists(program)):
            return Source(dedent(program) if program[:1].isspace() else program, "<program>")
    elif not isinstance(program, PathLike):
        raise fault("E205 program-text-or-path", type(program).__name__)
    try:
        with open(program, "rb") as file:
            data = file.read()
    except OSError as error:
        raise fault("E701 cannot-read-program", program, error) from None
    return decode(data, str(program))


@Handed()
def _options(function: str, kind: type, given: dict[str, Any]) -> Any:
    """The options of a call; those of `defines` may be values by name, as arrays are given."""
    defines = given.get("defines", ())
    if isinstance(defines, Mapping):
        given["defines"] = tuple(
            (name, one if isinstance(one, str) else _text(np.asarray(one).tolist()), False)
            for name, one in defines.items()
        )
    return kind(**checked(function, kind, given))


@Handed()
def _seconds(limit: Any) -> float | None:
    """A time limit, if there is one."""
    if limit is None or (isinstance(limit, int | float) and 0 < limit < 1e9):
        return limit
    raise fault("E205 timeout-no-seconds", limit)


def _text(value: Any) -> str:
    """Numbers in lists as any program reads them."""
    return re.sub("nan|inf", r"float('\g<0>')", repr(value))


class Results(dict[str, Any]):
    """What a program did; notebooks show it as a page of values and gradients."""

    def __init__(self, found: dict[str, Any], source: Source):
        super().__init__(found)
        self.source = source

    def _repr_html_(self) -> str:
        notebook = import_module("autodiff_cli.render.report.notebook")  # a layer further up
        shown: str = notebook.shown(self.source, self)
        return shown


@Handed()
def run(program: Program, **options: Any) -> Results:
    """Run a program (text, or a path) and return what it did.

    Args:
        program: text of a program, or the path of a file.
        **options: `loss=`, `wrt=("A",)`, `grad_output=`, `dtype="float32"`, `defines={"x": 3.0}`
        (values that replace what the program assigns), `folder=` and `allow_read=` of files,
        `max_memory=`, `max_steps=`, `max_depth=`, `nan=`, `backward=False`, `write=` (a function
        that gets what is printed), `profile=`, `plan=`; `isolate=True` or `timeout=` seconds, in a
        process of its own.

    Returns:
        The document of `autodiff run --format json` as data: `file`, `status`, `loss`, `tensors`
        (name -> `shape`, `dtype`,
        `requires_grad`, `is_leaf`, `grad_fn`, `value`, `grad`), `scalars`, `stdout`; arrays stay
        NumPy arrays. With `profile=True` or `plan=True` also a `profile` (`engine.profile.Profile`)
        or a `plan` (`engine.describe.PlanData`).

    Raises:
        AutodiffError: what the program or its data did wrong.
    """
    source = source_of(program)
    if options.pop("isolate", "timeout" in options):
        from .isolated import Isolated

        timeout = _seconds(options.pop("timeout", None))
        function = Isolated(source, "run", options, timeout)
        try:
            return Results(function(), source)
        finally:
            function.close()
    report = run_source(source, _options("run", Options, options))
    if report.error is not None:
        raise report.error
    found = {
        "file": report.file,
        "status": report.status,
        "loss": report.loss,
        "tensors": {
            name: {
                "shape": list(t.shape),
                "dtype": t.dtype,
                "requires_grad": t.requires_grad,
                "is_leaf": t.is_leaf,
                "grad_fn": t.grad_fn,
                "value": t.value,
                "grad": t.grad,
            }
            for name, t in report.tensors.items()
        },
        "scalars": dict(report.scalars),
        "stdout": report.stdout,
        **({"profile": report.profile} if report.profile is not None else {}),
        **({"plan": report.plan} if report.plan is not None else {}),
    }
    return Results(found, source)


Names = str | Iterable[str] | None


def _function(
    program: Program, wrt: Names, of: str, kind: Kind, given: dict[str, Any]
) -> Callable[..., Any]:
    if given.pop("isolate", "timeout" in given):
        from .isolated import Isolated

        timeout = _seconds(given.pop("timeout", None))
        options = {("loss" if kind.name == "value_and_grad" else "of"): of, **given}
        if wrt is not None:
            options["wrt"] = wrt
        if kind.name == "jacobian":
            options["mode"] = kind.mode  # type: ignore[attr-defined]  # a Jacobian's
        return Isolated(source_of(program), kind.name, options, timeout)
    wished = {name: given.pop(name) for name in Wishes._fields if name in given}
    wishes = Wishes(**checked(kind.name, Wishes, wished))
    engine = fitting("engine", Literal["numpy", "dask"], given.pop("engine", "numpy"), "numpy")
    client = given.pop("client", None)
    if engine == "dask" or client is not None:
        chunk = given.pop("chunk", CHUNK)
        from .engine.rows.cluster import Cluster
        from .language.program.clustered import Clustered

        function = Clustered(source_of(program), wrt, of, kind, wishes, given)
        function.cluster = Cluster(client, chunk)
        return function
    return Compiled(source_of(program), wrt, of, kind, wishes, given)


@_complete
def value(program: Program, of: str = "loss", **given: Any) -> Callable[..., Any]:
    """A function of the program's free names that returns one value of it.

    Args:
        COMMON

    Returns:
        `f(**arrays) -> value`: a number for a single one, else an array.
    """
    return _function(program, None, of, Value(), given)


@_complete
def value_and_grad(
    program: Program, wrt: Names = None, loss: str = "loss", **given: Any
) -> Callable[..., tuple[float, Any]]:
    """A function of the program's free names that returns the loss and its gradients.

    Args:
        COMMON

    Returns:
        `f(**arrays) -> (value, {name: gradient})`; `float32` arrays stay `float32`.
    """
    return _function(program, wrt, loss, ValueAndGrad(), given)


@_complete
def jacobian(
    program: Program, wrt: Names = None, of: str = "loss", *, mode: str = "auto", **given: Any
) -> Callable[..., Any]:
    """A function of the program's free names that returns all derivatives of a tensor.

    Args:
        COMMON
        mode: `reverse` (row by row), `forward` (column by column), or `auto`: whichever has fewer.

    Returns:
        `f(**arrays) -> {name: block}`, a block of the shape of the tensor followed by that of the
        array.

    >>> J = jacobian("y = tanh(W @ x)", wrt="x", of="y")
    >>> J(x=np.ones(4), W=np.ones((3, 4))).shape
    (3, 4)
    """
    return _function(program, wrt, of, Jacobian(mode), given)


@_complete
def hessian(
    program: Program, wrt: Names = None, of: str = "loss", **given: Any
) -> Callable[..., Any]:
    """A function of the program's free names that returns all second derivatives of a scalar.

    Args:
        COMMON

    Returns:
        `f(**arrays) -> {name: {name: block}}`, a block of the shape of the first array followed by
        that of the second.

    >>> H = hessian("loss = sum(tanh(W @ x)**2)", wrt="x", W=np.ones((3, 4)))
    >>> H(x=np.ones(4)).shape
    (4, 4)
    """
    return _function(program, wrt, of, Hessian(), given)


@_complete
def hvp(program: Program, wrt: Names = None, of: str = "loss", **given: Any) -> Callable[..., Any]:
    """A function that returns the Hessian of a scalar times a vector, without the Hessian.

    Args:
        COMMON

    Returns:
        `f(vector, **arrays) -> {name: product}`. The vector is a dict of arrays by name, in the
        shapes of the variables (one that is left out is zero), or one array for a single name.
    """
    return _function(program, wrt, of, Hvp(), given)


@_complete
def jvp(
    program: Program, wrt: Names = None, of: str = "loss", **given: Any
) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """A function that returns a tensor, and how it changes along a direction (forward mode).

    Args:
        COMMON

    Returns:
        `f(direction, **arrays) -> (value, change)`, both of the shape of the tensor. The direction
        is a dict of arrays by name (one that is left out is zero), or one array for a single name.
    """
    return _function(program, wrt, of, Jvp(), given)


@_complete
def vjp(
    program: Program, wrt: Names = None, of: str = "loss", **given: Any
) -> Callable[..., tuple[np.ndarray, Any]]:
    """A function that returns a tensor, and a vector of its shape times the Jacobian.

    Args:
        COMMON

    Returns:
        `f(vector, **arrays) -> (value, {name: product})`; the vector is one array.
    """
    return _function(program, wrt, of, Vjp(), given)


class CheckFailed(AssertionError):
    """A check of `check` or `gradcheck` failed; `items` are the failed items with diagnostics."""

    def __init__(self, message: str, items: Sequence[Any] = ()):
        super().__init__(message)
        self.items: list[Any] = list(items)


def check(program: Program, **settings: Any) -> FileResult:
    """Check a program as `autodiff check` does: gradients against finite differences, assertions,
    `#=>` expectations, the snapshot beside a file.

    Args:
        program: text of a program, or the path of a file.
        **settings: fields of `checks.model.Settings` (`order=2`, `gradients=False`, `keyword=...`,
        `nan="warn"`, `seed=...`, `timeout=...`).

    Returns:
        The result: `items`, each with `kind`, `name`, `line`, `status` and `diagnostic`.

    Raises:
        CheckFailed: when an item failed; its message names each with what differs.
        AutodiffError: when a file cannot be read.
    """
    from .checks.model import Settings
    from .checks.runner import check_source, readable

    __tracebackhide__ = True
    source = source_of(program)
    _seconds(settings.get("timeout"))
    path = None if source.name == "<program>" else source.name
    wanted = _options("check", Settings, settings)
    readable(wanted.keyword)
    result = check_source(source, wanted, path)
    failed = [item for item in result.items if item.bad]
    if failed:
        raise CheckFailed("\n".join(map(_told, failed)), failed)
    return result


def _told(item: Any) -> str:
    diagnostic = item.diagnostic
    span = diagnostic.span
    where = f"{span.source.name}:{span.line}:{span.column}" if span else item.id
    text = f"{where}: {diagnostic.code} {diagnostic.message}"
    return "\n".join([text, *(note.removeprefix("\n") for note in diagnostic.notes)])


def gradcheck(
    f: Program,
    inputs: Mapping[str, Any],
    grads: Callable[..., Any] | Mapping[str, Any] | Sequence[Any],
    *,
    rtol: float = 1e-6,
    atol: float = 1e-8,
    loss: str = "loss",
) -> bool:
    """Check somebody else's gradients against the derivative of an expression.

    Args:
        f: a program whose free names are the inputs; its `loss` is differentiated.
        inputs: arrays by name. Floats are taken as float64; integers and bools stay what they are
        unless a gradient of theirs is claimed.
        grads: the gradients, by name or in the order of `inputs`, or a function that returns them
        when it is called with the inputs as keywords. None or a missing name is not checked. On a
        kink (`abs` at 0, a maximum of equal numbers) every slope between those of both sides is
        right.
        rtol: relative tolerance.
        atol: absolute tolerance.
        loss: the scalar that is differentiated.

    Returns:
        True; a difference raises.

    Raises:
        CheckFailed: naming the input, the element and both values.
        AutodiffError: what the program or the inputs did wrong.
    """
    from .checks.claims import inputs_by_name, mismatch, named

    __tracebackhide__ = True
    arrays = inputs_by_name(inputs)
    rtol = fitting("rtol", float, rtol, 1e-6)
    atol = fitting("atol", float, atol, 1e-8)
    claimed = named(grads(**inputs) if callable(grads) else grads, list(inputs))
    wanted = [name for name in claimed if claimed[name] is not None]
    for name, array in arrays.items():
        if array.dtype.kind == "f" or name in wanted:
            arrays[name] = array.astype(np.float64)
    source = source_of(f)
    _, true = value_and_grad(source, wanted, loss)(**arrays)
    at = value(source, loss)
    found = [mismatch(n, claimed[n], true[n], rtol, atol, at, arrays) for n in wanted]
    problems = [text for text in found if text is not None]
    if problems:
        raise CheckFailed("\n".join(problems))
    return True
