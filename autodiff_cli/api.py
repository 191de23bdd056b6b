"""The library for Python users: `run` and `value_and_grad`.

`value_and_grad` compiles a program once; each call binds arrays to its free names and evaluates the
loss and all gradients in one plan.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    from .source import Source


def source_of(program: str | Path) -> Source:
    """The text of a program given as text or as a path (`Path`, or a string that names an existing
    file and is one line).

    Raises:
        AutodiffError: E701 when the file cannot be read, E109 when it is no UTF-8.
    """
    from .errors import fail
    from .language.decode import decode
    from .source import Source

    if isinstance(program, str) and (
        "\n" in program or "=" in program or not program.endswith((".expr", ".py"))
    ):
        return Source(program, "<program>")
    try:
        data = Path(program).read_bytes()
    except OSError as error:
        raise fail(
            "E701", f"cannot read {program}: {error.strerror}", help="check the path"
        ) from None
    return decode(data, str(program))


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
        NumPy arrays.

    Raises:
        AutodiffError: what the program or its data did wrong.
    """
    from .session import Options
    from .session import run as run_source

    report = run_source(source_of(program), Options(**options))
    if report.error is not None:
        raise report.error
    return {
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
    }


def value_and_grad(
    program: str | Path, wrt: Sequence[str] | None = None, loss: str = "loss"
) -> Callable[..., tuple[float, dict[str, np.ndarray]]]:
    """A function of the program's free names that returns the loss and its gradients.

    Args:
        program: text of a program, or the path of a file.
        wrt: names to differentiate with respect to; default all float arguments and the program's
        own leaves.
        loss: name of the scalar to differentiate; without it the last scalar the program computes.

    Returns:
        `f(**arrays) -> (value, {name: gradient})`; `float32` arrays stay `float32`.

    Raises:
        AutodiffError: on a syntax error now, on any other failure of the program when called.
    """
    from .language.compiled import Compiled

    return Compiled(source_of(program), None if wrt is None else tuple(wrt), loss)


__all__ = ["run", "source_of", "value_and_grad"]
