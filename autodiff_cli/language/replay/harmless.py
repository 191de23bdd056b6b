"""Functions written in Python that a program may call in what is run again by a plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...autograd import calls

# Functions and methods written in Python, by name, that only compute, or change what is compared
# between steps: containers, fields, tensors. None keeps a state of its own, draws, or shows
# anything; what they make that could keep one (an iterator) is refused where a step can reach it.
_OF_PYTHON = """
    float int bool str list tuple dict set slice range type super
    len sum min max abs round pow sorted reversed zip enumerate map filter any all
    isinstance callable getattr hasattr setattr
"""
_OF_CONTAINERS = """
    append extend insert pop items keys values get update setdefault copy index count clear reverse
"""
_OF_TEXTS = "format join split startswith endswith lower upper"
_OF_TENSORS = """
    item tolist numpy size dim ndimension numel nelement element_size is_floating_point
    backward detach detach_ requires_grad_ retain_grad to type_as cpu new_tensor
    copy_ zero_ fill_diagonal_
"""
_OF_TORCH = """
    tensor as_tensor from_numpy is_tensor zeros ones full eye arange linspace empty
    zeros_like ones_like full_like empty_like
    grad no_grad enable_grad set_grad_enabled is_grad_enabled
"""
_OF_MODULES = """
    step zero_grad parameters named_parameters children named_children modules named_modules
    buffers named_buffers forward train eval __init__ __call__ __iter__ __len__ __getitem__
"""
_OF_LIBRARY = "is_optimizer require require_dims expect_dims whole sizes size_of ones_of spread"
_OF_MATH = "sqrt exp log sin cos tan tanh floor ceil fabs hypot atan2 isnan isinf prod"
# The recorder is told of what these do.
TOLD = frozenset(["rand", "randn", "randint", "randperm", "print"])
PURE = frozenset(
    f"{_OF_PYTHON} {_OF_CONTAINERS} {_OF_TEXTS} {_OF_TENSORS} {_OF_TORCH}"
    f" {_OF_MODULES} {_OF_LIBRARY} {_OF_MATH}".split()
)


def harmless(name: str, function: Callable[..., Any]) -> bool:
    """Whether a function written in Python only computes, or changes what can be compared."""
    if function is calls.call_ops or name in PURE:
        return True
    return bool(calls.method(name) or calls.method(name.removesuffix("_")))
