"""The library for Python users: `run`, `check`, `gradcheck`, derivatives as functions of arrays.

`value_and_grad`, `jacobian`, `hessian`, `jvp`, `vjp` and `hvp` compile a program once; each call
binds arrays to its free names and evaluates what it returns in one plan, which later calls with
arrays of the same shapes and dtypes run again. All take the same arguments:

    program: text of a program, or the path of a file.
    wrt: names to differentiate with respect to; default all float arguments and the program's own
    leaves. Results go by these names; a single name, not in a list, gives the bare array.
    of (`loss` of `value_and_grad`): name of what is differentiated; where the program has no `loss`
    the last scalar it computes, or the last tensor where any will do.
    **given: `max_memory`, bytes that the tensors of a call may take together (E505 beyond), default
    1 GiB; `max_steps` of loops in a call (E506 beyond), default 1,000,000; and arrays that are the
    same in every call, by name. Those are not differentiated unless `wrt` names them.

With `isolate=True` the program runs in a process of its own, with its memory and the time of a call
(`timeout=` seconds) bounded from outside; arrays go there and come back as data.

A syntax error is raised at once, any other failure of the program by the call, as `AutodiffError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import fault
from .language.program.array_functions import Hessian, Hvp, Jacobian, Jvp, Kind, ValueAndGrad, Vjp
from .language.program.compiled import Compiled, Limits
from .language.syntax.decode import decode
from .session import Options
from .session import run as run_source
from .source import Source

if TYPE_CHECKING:
    from .checks.model import FileResult


def source_of(program: str | Path | Source) -> Source:
    """The text of a program given as text or as a path (`Path`, or a string that names an existing
    file and is one line).

    Raises:
        AutodiffError: E701 when the file cannot be read, E109 when it is no UTF-8.
    """
    if isinstance(program, Source):
        return program
    if isinstance(program, str) and (
        "\n" in program or "=" in program or not program.endswith((".expr", ".py"))
    ):
        return Source(program, "<program>")
    try:
        data = Path(program).read_bytes()
    except OSError as error:
        raise fault("E701 cannot-read-program", program, error) from None
    return decode(data, str(program))


class Results(dict[str, Any]):
    """What a program did; notebooks show it as a page of values and gradients."""

    def __init__(self, found: dict[str, Any], source: Source):
        super().__init__(found)
        self.source = source

    def _repr_html_(self) -> str:
        notebook = import_module("autodiff_cli.render.report.notebook")  # a layer further up
        shown: str = notebook.shown(self.source, self)
        return shown


def run(program: str | Path, **options: Any) -> dict[str, Any]:
    """Run a program (text, or a path) and return what it did.

    Args:
        program: text of a program, or the path of a file.
        **options: fields of `session.Options` (`loss=`, `wrt=("A",)`, `dtype="float32"`,
        `defines=...`).

    Returns:
        The document of `autodiff run --format json` as data: `file`, `status`, `loss`, `tensors`
        (name -> `shape`, `dtype`,
        `requires_grad`, `is_leaf`, `grad_fn`, `value`, `grad`), `scalars`, `stdout`; arrays stay
        NumPy arrays. With `profile=True` or `plan=True` also a `profile` (`engine.profile.Profile`)
        or a `plan` (`engine.describe.PlanData`).

    Raises:
        AutodiffError: what the program or its data did wrong.
    """
    if options.pop("isolate", False):
        from .isolated import Isolated

        timeout = options.pop("timeout", None)
        function = Isolated(source_of(program), "run", options, timeout)
        try:
            found: dict[str, Any] = function()
        finally:
            function.close()
        return found
    source = source_of(program)
    report = run_source(source, Options(**options))
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


Names = str | Sequence[str] | None


def _function(
    program: str | Path, wrt: Names, of: str, kind: Kind, given: dict[str, Any]
) -> Callable[..., Any]:
    names = wrt if wrt is None or isinstance(wrt, str) else tuple(wrt)
    if given.pop("isolate", False):
        from .isolated import Isolated

        timeout = given.pop("timeout", None)
        options = {"wrt": names, ("loss" if kind.name == "value_and_grad" else "of"): of, **given}
        if kind.name == "jacobian":
            options["mode"] = kind.mode  # type: ignore[attr-defined]  # a Jacobian's
        return Isolated(source_of(program), kind.name, options, timeout)
    limits = Limits(**{name: given.pop(name) for name in Limits._fields if name in given})
    return Compiled(source_of(program), names, of, kind, limits, given)


def value_and_grad(
    program: str | Path, wrt: Names = None, loss: str = "loss", **given: Any
) -> Callable[..., tuple[float, Any]]:
    """A function of the program's free names that returns the loss and its gradients.

    Args:
        program, wrt, loss, **given: as for all functions of arrays, above.

    Returns:
        `f(**arrays) -> (value, {name: gradient})`; `float32` arrays stay `float32`.

    Raises:
        AutodiffError: on a syntax error.
    """
    return _function(program, wrt, loss, ValueAndGrad(), given)


def jacobian(
    program: str | Path, wrt: Names = None, of: str = "loss", *, mode: str = "auto", **given: Any
) -> Callable[..., Any]:
    """A function of the program's free names that returns all derivatives of a tensor.

    Args:
        program, wrt, of, **given: as for all functions of arrays, above.
        mode: `reverse` (row by row), `forward` (column by column), or `auto`: whichever has fewer.

    Returns:
        `f(**arrays) -> {name: block}`, a block of the shape of the tensor followed by that of the
        array.

    Raises:
        AutodiffError: on a syntax error, E205 for another mode.

    >>> J = jacobian("y = tanh(W @ x)", wrt="x", of="y")
    >>> J(x=np.ones(4), W=np.ones((3, 4))).shape
    (3, 4)
    """
    return _function(program, wrt, of, Jacobian(mode), given)


def hessian(
    program: str | Path, wrt: Names = None, of: str = "loss", **given: Any
) -> Callable[..., Any]:
    """A function of the program's free names that returns all second derivatives of a scalar.

    Args:
        program, wrt, of, **given: as for all functions of arrays, above.

    Returns:
        `f(**arrays) -> {name: {name: block}}`, a block of the shape of the first array followed by
        that of the second.

    Raises:
        AutodiffError: on a syntax error.

    >>> H = hessian("loss = sum(tanh(W @ x)**2)", wrt="x", W=np.ones((3, 4)))
    >>> H(x=np.ones(4)).shape
    (4, 4)
    """
    return _function(program, wrt, of, Hessian(), given)


def hvp(
    program: str | Path, wrt: Names = None, of: str = "loss", **given: Any
) -> Callable[..., Any]:
    """A function that returns the Hessian of a scalar times a vector, without the Hessian.

    Args:
        program, wrt, of, **given: as for all functions of arrays, above.

    Returns:
        `f(vector, **arrays) -> {name: product}`. The vector is a dict of arrays by name, in the
        shapes of the variables (one that is left out is zero), or one array for a single name.

    Raises:
        AutodiffError: on a syntax error.
    """
    return _function(program, wrt, of, Hvp(), given)


def jvp(
    program: str | Path, wrt: Names = None, of: str = "loss", **given: Any
) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
    """A function that returns a tensor, and how it changes along a direction (forward mode).

    Args:
        program, wrt, of, **given: as for all functions of arrays, above.

    Returns:
        `f(direction, **arrays) -> (value, change)`, both of the shape of the tensor. The direction
        is a dict of arrays by name (one that is left out is zero), or one array for a single name.

    Raises:
        AutodiffError: on a syntax error.
    """
    return _function(program, wrt, of, Jvp(), given)


def vjp(
    program: str | Path, wrt: Names = None, of: str = "loss", **given: Any
) -> Callable[..., tuple[np.ndarray, Any]]:
    """A function that returns a tensor, and a vector of its shape times the Jacobian.

    Args:
        program, wrt, of, **given: as for all functions of arrays, above.

    Returns:
        `f(vector, **arrays) -> (value, {name: product})`; the vector is one array.

    Raises:
        AutodiffError: on a syntax error.
    """
    return _function(program, wrt, of, Vjp(), given)


class CheckFailed(AssertionError):
    """A check of `check` or `gradcheck` failed; `items` are the failed items with diagnostics."""

    def __init__(self, message: str, items: Sequence[Any] = ()):
        super().__init__(message)
        self.items = list(items)


def check(program: str | Path, **settings: Any) -> FileResult:
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
    from .checks.runner import check_source

    source = source_of(program)
    path = None if source.name == "<program>" else source.name
    result = check_source(source, Settings(**settings), path)
    failed = [item for item in result.items if item.bad]
    if failed:
        raise CheckFailed("\n".join(map(_told, failed)), failed)
    return result


def _told(item: Any) -> str:
    diagnostic = item.diagnostic
    if diagnostic is None:
        return f"{item.id}: {item.status}"
    span = diagnostic.span
    where = f"{span.source.name}:{span.line}:{span.column}" if span else item.id
    text = f"{where}: {diagnostic.code} {diagnostic.message}"
    return "".join(
        [text, *(note if note[:1] == "\n" else f"\n{note}" for note in diagnostic.notes)]
    )


def gradcheck(
    f: str | Path,
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
        inputs: arrays by name.
        grads: the gradients, by name or in the order of `inputs`, or a function that returns them
        when it is called with the inputs as keywords. None or a missing name is not checked.
        rtol: relative tolerance.
        atol: absolute tolerance.
        loss: the scalar that is differentiated.

    Returns:
        True; a difference raises.

    Raises:
        CheckFailed: naming the input, the element and both values.
        AutodiffError: what the program or the inputs did wrong.
    """
    from .checks.claims import mismatch, named

    arrays = {name: np.asarray(value) for name, value in inputs.items()}
    claimed = named(grads(**inputs) if callable(grads) else grads, list(inputs))
    wanted = [name for name in claimed if claimed[name] is not None]
    _, true = Compiled(source_of(f), tuple(wanted), loss)(
        **{n: a if a.dtype.kind == "f" else a.astype(np.float64) for n, a in arrays.items()}
    )
    found = [mismatch(name, claimed[name], true[name], rtol, atol) for name in wanted]
    problems = [text for text in found if text is not None]
    if problems:
        raise CheckFailed("\n".join(problems))
    return True
