"""autodiff: an expression differentiator for the command line, with a small Python door.

>>> import autodiff_cli as ad
>>> f = ad.value_and_grad("loss = sum((1 - sigmoid(w*x + b))**2)", wrt=["w", "x", "b"])
>>> H = ad.hessian("loss = sum(tanh(W @ x)**2)", wrt="x", W=W)
"""

from __future__ import annotations

from .version import __version__

TYPE_CHECKING = False  # `typing` is not imported before the command has made its second process
if TYPE_CHECKING:
    from typing import Any

    from .api import (
        CheckFailed,
        check,
        gradcheck,
        hessian,
        hvp,
        jacobian,
        jvp,
        run,
        value,
        value_and_grad,
        vjp,
    )
    from .errors import AutodiffError


__all__ = [
    "AutodiffError",
    "CheckFailed",
    "__version__",
    "check",
    "gradcheck",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "run",
    "value",
    "value_and_grad",
    "vjp",
]


def __getattr__(name: str) -> Any:
    """Load the library's functions when first used: the command line needs none of them."""
    if name == "AutodiffError":
        from .errors import AutodiffError

        return AutodiffError
    if name == "load_ipython_extension":
        from .cli.notebook import load_ipython_extension

        return load_ipython_extension
    if name in __all__:
        from . import api

        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
