"""autodiff: an expression differentiator for the command line, with a small Python door.

>>> import autodiff_cli as ad
>>> f = ad.value_and_grad("loss = sum((1 - sigmoid(w*x + b))**2)", wrt=["w", "x", "b"])
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .version import __version__

if TYPE_CHECKING:
    from .api import CheckFailed, check, gradcheck, run, value_and_grad
    from .errors import AutodiffError


def __getattr__(name: str) -> Any:
    """Load the library's functions when first used: the command line needs none of them."""
    if name in ("CheckFailed", "check", "gradcheck", "run", "value_and_grad"):
        from . import api

        return getattr(api, name)
    if name == "AutodiffError":
        from .errors import AutodiffError

        return AutodiffError
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "AutodiffError",
    "CheckFailed",
    "__version__",
    "check",
    "gradcheck",
    "run",
    "value_and_grad",
]
