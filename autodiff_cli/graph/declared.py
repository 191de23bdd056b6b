"""What the table declares about an op: its signature, kernel, rules, names, samples.

A signature is declared once; what binding needs to know of it is derived there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .binding_cache import Known
from .kinds import Kind, Promote
from .params import Param


class Declared:
    """One entry of the table as it is declared; see `declare` for how entries are written.

    `key` is unique, `name` is the public name (several ops may share it as overloads). `known`
    are calls that were bound before, by the shapes and dtypes of their tensors and by their other
    arguments; None for ops that take anything. `steady`: the shape rule reads nothing else.
    """

    def __init__(self, key: str, kind: Kind):
        self.key = key
        self.name = key
        self.kind = kind
        self.aliases: tuple[str, ...] = ()
        self.params: tuple[Param, ...] = ()
        self.tensor_params: tuple[int, ...] = ()
        self.index: dict[str, int] = {}
        self.kernel: Callable[..., Any] | None = None
        self.shape_rule: Callable[..., Any] | None = None
        self.vjp_rule: Callable[..., Any] | None = None
        self.places_read: dict[Any, tuple[int, ...]] = {}  # by such a rule (autograd/rules.py)
        self.body: Callable[..., Any] | None = None
        self.promote = Promote.SAME
        self.view = False
        self.eager = False
        self.inplace = False
        self.method = True
        self.public = True
        self.fields: tuple[str, ...] = ()
        self.samples: tuple[Any, ...] = ()
        self.errors: tuple[Any, ...] = ()
        self.kink: Any = None
        self.check: Callable[..., Any] | None = None
        self.doc = ""
        self.phrase = ""  # what the vjp rule does, in words
        self.family = ""
        self.package = ""
        self.grad_fn: str | Callable[..., str] = ""
        self.strides_rule: Callable[..., Any] | None = None
        self.properties: frozenset[str] = frozenset()
        # Operands of which PyTorch saves views, a function of the arguments: `x.data = y` leaves
        # those where they are.
        self.saves_views: Callable[..., tuple[Any, ...]] | None = None
        # What PyTorch saves of it though the rule may not read it, separated by commas: parameters,
        # `operands` for all, `results` or `result 1`; `input for other`: when that one is wanted.
        # Or a function of the arguments for that.
        self.saves: str | Callable[..., str] = ""
        # How it changes in forward mode, where PyTorch's formula for that gives another number than
        # the reverse rule: `forward(moves, out, *args)`, a change for each tensor parameter, None
        # where one stands still.
        self.forward: Callable[..., Any] | None = None
        self.no_forward = ""  # PyTorch's name of it, where forward mode has no formula there
        # What stands for it in PyTorch where its public name does not: a path below `torch` and
        # the function that arranges the arguments, or a body in ops that do have a name there.
        self.counterpart: Any = None
        # What it is in NumPy, where its kernel does not say it best: an expression in the names of
        # its parameters and `shape`, that of the result; or a function of the arguments for one.
        self.numpy: Any = None
        # What it is in JAX, where that is not what it is in NumPy: alike, `np` for `jax.numpy`; ""
        # where JAX has something else.
        self.jax: Any = None
        self.only_tensors: int
        self.arity = 0
        self.known: dict[tuple[Any, ...], Known] | None = None
        self.steady = kind is Kind.REDUCTION or kind is Kind.CONTRACTION
        self.positional = 0
        self.variadic_at = -1
        self.defaults: tuple[Any, ...] = ()

    def declare_params(self, params: tuple[Param, ...]) -> None:
        """Set the signature and what binding derives from it."""
        self.params = params
        self.index = {p.name: i for i, p in enumerate(params)}
        self.defaults = tuple(p.default for p in params)
        self.positional = sum(not p.keyword_only for p in params)
        self.tensor_params = tuple(i for i, p in enumerate(params) if p.tensorial)
        self.variadic_at = next((i for i, p in enumerate(params) if p.variadic), -1)
        # The number of parameters of ops that take nothing but single tensors, else -1.
        single = all(p.annotation in ("Tensor", "Mask") and not p.keyword_only for p in params)
        self.only_tensors = len(params) if single else -1
        # 1 or 2 for pointwise ops of so many tensors that all promote: `one` and `pair` apply them.
        plain = single and self.kind is Kind.POINTWISE and all(p.promotes for p in params)
        self.arity = len(params) if plain and len(params) < 3 else 0
        self.known = None if any(p.annotation == "Any" for p in params) else {}

    # -- declaring ----------------------------------------------------------------------------

    def vjp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: the reverse rule `rule(g, out, *args)`; one cotangent per tensor parameter."""
        self.vjp_rule = rule
        return rule

    @property
    def differentiable(self) -> bool:
        """Whether gradients flow through (a composite without a rule uses its body)."""
        return self.vjp_rule is not None or self.kind is Kind.COMPOSITE

    # -- describing ---------------------------------------------------------------------------

    def signature(self) -> str:
        """The signature as a person writes it: `sum(input, dim=None, keepdim=False)`."""
        parts: list[str] = []
        star = False
        for param in self.params:
            if param.keyword_only and not star:
                parts.append("*")
                star = True
            parts.append(param.describe())
        return f"{self.name}({', '.join(parts)})"

    def __repr__(self) -> str:
        return f"<op {self.key}>"
