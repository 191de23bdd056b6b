"""Functions written in Python that a program may call in what is run again by a plan."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...autograd import calls

# Functions and methods written in Python, by name, that only look at values and make new ones. None
# keeps a state of its own, draws, or shows anything; what they make that could keep one (an
# iterator) is refused where it can be reached again.
_LOOKING = """
    float int bool str list tuple dict set slice range type
    len sum min max abs round pow sorted reversed zip enumerate any all
    isinstance callable getattr hasattr items keys values get index count
    format join split startswith endswith lower upper
    item tolist numpy size dim ndimension numel nelement element_size is_floating_point
    detach to type_as cpu new_tensor tensor as_tensor from_numpy is_tensor
    zeros ones full eye arange linspace empty zeros_like ones_like full_like empty_like
    sqrt exp log sin cos tan tanh floor ceil fabs hypot atan2 isnan isinf prod
"""
# Those that call functions of the program, or change what is compared between steps: containers,
# fields, tensors, modes, gradients.
_CHANGING = """
    map filter super setattr append extend insert pop update setdefault copy clear reverse
    backward grad detach_ requires_grad_ retain_grad copy_ zero_ fill_diagonal_
    no_grad enable_grad set_grad_enabled is_grad_enabled
    step zero_grad parameters named_parameters children named_children modules named_modules
    buffers named_buffers forward train eval __init__ __call__ __iter__ __len__ __getitem__
    is_optimizer require require_dims expect_dims whole sizes size_of ones_of spread
"""
# The recorder is told of what these do.
TOLD = frozenset(["rand", "randn", "randint", "randperm", "print"])
LOOKING = frozenset(_LOOKING.split())
PURE = LOOKING.union(_CHANGING.split())


def harmless(name: str, function: Callable[..., Any]) -> bool:
    """Whether a function written in Python only computes, or changes what can be compared."""
    if function is calls.call_ops or name in PURE:
        return True
    return bool(calls.method(name) or calls.method(name.removesuffix("_")))
