"""Who knows what a path stands for: tables that are loaded when a path of theirs is named.

Paths are dotted, without `torch.` in front: `relu`, `nn.Linear`, `np.sin`, `math.pi`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cache
from importlib import import_module
from typing import Any

# How paths begin, the table that has them, and what of them its keys leave out; the first that
# has a path gives it.
PROVIDERS: tuple[tuple[str | tuple[str, ...], str, str], ...] = (
    ("math.", "python.math_names.MATH", "math."),
    ("np.", "numpy.names.MEMBERS", "np."),
    ("", "torch.names.TORCH", ""),
    ("", "random.names.DRAWS", ""),
    ("", "nn.module_names.LIBRARY", ""),
    ("nn.register_module_", "nn.module_methods.SHARED_HOOKS", "nn.register_module_"),
    ("python.", "python.python_modules.MEMBERS", "python."),
    ("func.", "nn.functional_modules.NAMES", "func."),
    (
        ("func.", "vmap", "autograd.functional.", "autograd.gradcheck", "autograd.gradgradcheck"),
        "torch.transform_functions.TRANSFORMS",
        "",
    ),
    ("autograd.forward_ad.", "torch.duals.NAMES", "autograd.forward_ad."),
    ("autograd.graph.", "torch.gradient_edges.NAMES", "autograd.graph."),
)
STUBS = "torch.torch_stubs.SERVICES"
"""What stands around computing; asked after the ops, because its module is rarely needed."""


@cache
def from_above(place: str) -> Any:
    """A table or a function of a package further up, by its module and its name: who is below it
    loads it when it is needed."""
    module, _, name = place.rpartition(".")
    return getattr(import_module(f"...{module}", __name__), name)


def late(place: str) -> Callable[..., Any]:
    """A function, by its place as a table has one; its module is imported by the first call."""

    def run(*args: Any, **kwargs: Any) -> Any:
        function: Any = from_above(place)
        return function(*args, **kwargs)

    return run


def provided(path: str) -> Any:
    """What a path stands for that is no op; None when no table has it."""
    for begins, place, below in PROVIDERS:
        if path.startswith(begins):
            found = from_above(place).get(path.removeprefix(below))
            if found is not None:
                return found
    return None


def paths_below(prefix: str) -> Iterator[str]:
    """Paths of the tables that begin with a prefix; those of rarely used modules are left out."""
    for begins, place, below in PROVIDERS:
        if begins == "" or prefix.startswith(begins):
            paths = (below + key for key in from_above(place))
            yield from (path for path in paths if path.startswith(prefix))


class Names:
    """A table whose values are made, or their modules loaded, when they are asked for."""

    def __init__(self, keys: Any, give: Any):
        self.keys_of, self.give = keys, give

    def get(self, key: str) -> Any:
        """The value of a key, None when there is none."""
        return self.give(key)

    def __iter__(self) -> Iterator[str]:
        return iter(self.keys_of())
