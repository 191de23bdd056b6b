"""The names that `random_functions` answers to, apart from it: looking up a name stays cheap."""

from __future__ import annotations

from typing import Any

from ..values.providers import Names

_DROPOUTS = """
    dropout dropout1d dropout2d dropout3d alpha_dropout feature_alpha_dropout feature_dropout
    rrelu rrelu_ gumbel_softmax fractional_max_pool2d fractional_max_pool3d
"""
_SEEDS = ("manual_seed", "seed", "initial_seed", "get_rng_state", "set_rng_state")
_INITIALIZERS = """
    uniform_ normal_ trunc_normal_ constant_ ones_ zeros_ eye_ dirac_ xavier_uniform_
    xavier_normal_ kaiming_uniform_ kaiming_normal_ orthogonal_ sparse_ calculate_gain uniform
    normal constant eye dirac xavier_uniform xavier_normal kaiming_uniform kaiming_normal
    orthogonal sparse
"""
INITIALIZERS = tuple(_INITIALIZERS.split())

_FUNCTIONS = """
    rand randn randint randperm normal bernoulli multinomial poisson binomial rand_like
    randn_like randint_like empty empty_like Generator default_generator
"""
RANDOM_NAMES = frozenset(
    {
        *_FUNCTIONS.split(),
        *_DROPOUTS.split(),
        *(f"nn.functional.{name}" for name in _DROPOUTS.split()),
        *_SEEDS,
        *(f"random.{name}" for name in _SEEDS),
        *(f"nn.init.{name}" for name in INITIALIZERS),
    }
)


def _draw(path: str) -> Any:
    if path not in RANDOM_NAMES:
        return None
    from .functions import RANDOM

    return RANDOM[path]


DRAWS = Names(lambda: RANDOM_NAMES, _draw)
