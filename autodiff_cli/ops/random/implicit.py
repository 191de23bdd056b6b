"""How draws of gamma and Dirichlet distributions move with their parameters: implicit
reparametrization, `-(d cdf / d parameter) / density`, by PyTorch's approximations.

They are those of Jankowiak and Obermeyer, "Pathwise Derivatives Beyond the Reparameterization
Trick" (2018): a Taylor series near an end of the support, a saddle point expansion where the
parameters are large, and a fitted rational function in between. They are good to three or four
digits, so other approximations would give other numbers than PyTorch's.
"""

from __future__ import annotations

import numpy as np

from ...graph.declare import Tensor, opaque
from ...graph.registry import F
from ...graph.samples import S, t
from ..kernels.rules import no_derivative

# Numerator and denominator of log(slope) of a gamma draw: coefficients of u^i v^j.
_GAMMA = np.array(
    [
        [
            [0.16009398, -0.094634809, 0.025146376, -0.0030648343],
            [0.53487893, 0.1298071, 0.065735949, -0.0015649758],
            [0.040121004, -0.0065914022, -0.0026286047, -0.0013441777],
        ],
        [
            [1, 0.32668115, 0.10406089, 0.0014179084],
            [0.16639465, 0.020070113, -0.0035938915, -0.00058392623],
            [0.017050642, -0.0021309326, 0.00085092367, -1.5247877e-07],
        ],
    ]
)

# Numerator and denominator of the correction of a beta draw: coefficients of u^i a^j b^k.
_BETA = np.array(
    [
        [
            [
                [1.003668233, -0.01061107488, -0.0657888334, 0.01201642863],
                [0.6336835991, -0.3557432599, 0.05486251648, -0.001465281033],
                [-0.03276231906, 0.004474107445, 0.002429354597, -0.0001557569013],
            ],
            [
                [0.221950385, -0.3187676331, 0.01799915743, 0.01074823814],
                [-0.2951249643, 0.06219954479, 0.01535556598, 0.001550077057],
                [0.02155310298, 0.004170831599, 0.001292462449, 6.976601077e-05],
            ],
            [
                [-0.05980841433, 0.008441916499, 0.01085618172, 0.002319392565],
                [0.02911413504, 0.01400243777, -0.002721828457, 0.000751041181],
                [0.005900514878, -0.001936558688, -9.495446725e-06, 5.385558597e-05],
            ],
        ],
        [
            [
                [1, -0.02924021934, -0.04438342661, 0.007285809825],
                [0.6357567472, -0.3473456711, 0.05454656494, -0.002407477521],
                [-0.03301322327, 0.004845219414, 0.00231480583, -0.0002307248149],
            ],
            [
                [0.5925320577, -0.1757678135, 0.01505928619, 0.000564515273],
                [0.1014815858, -0.06589186703, 0.01272886114, -0.0007316646956],
                [-0.007258481865, 0.001096195486, 0.0003934994223, -4.12701925e-05],
            ],
            [
                [0.06469649321, -0.0236701437, 0.002902096474, -5.896963079e-05],
                [0.001925008108, -0.002869809258, 0.0008000589141, -6.063713228e-05],
                [-0.0003477407336, 6.959756487e-05, 1.097287507e-05, -1.650964693e-06],
            ],
        ],
    ]
)


def _chosen(conditions, branches, *operands):
    """Each element by the first branch whose condition holds; an element goes into one branch."""
    arrays = [a.astype(np.float64) for a in np.broadcast_arrays(*operands)]
    out = np.empty(arrays[0].shape)
    left = np.ones(out.shape, bool)
    with np.errstate(all="ignore"):
        for condition, branch in zip([*conditions, lambda *a: True], branches, strict=True):
            here = left & condition(*arrays)
            if here.any():
                out[here] = branch(*[a[here] for a in arrays])
            left &= ~here
    return out


def _stirling(a):
    return 1 + 1 / (12 * a) + 1 / (288 * a * a)


# -- gamma ----------------------------------------------------------------------------------------


def _gamma_small(alpha, x):
    """Taylor series of the incomplete gamma function in x."""
    from scipy.special import digamma

    factor, below = np.ones_like(x), alpha.copy()
    first, second = 1 / below, 1 / (below * below)
    for i in range(1, 6):
        factor *= -x / i
        below += 1
        first += factor / below
        second += factor / (below * below)
    power = x**alpha
    slope = (np.log(x) - digamma(alpha)) * (power * first) - power * second
    out = -slope / (x ** (alpha - 1) * np.exp(-x))
    return np.where(np.isnan(out), 0.0, out)


def _gamma_middle(alpha, x):
    """Large alpha and x close to it, where the saddle point expansion is singular."""
    square = alpha * alpha
    correction = 1440 * square + 6 * x * (53 - 120 * x)
    correction += -65 * x * x / alpha + alpha * (107 + 3600 * x)
    return (1 + 24 * alpha * (1 + 12 * alpha)) * correction / (1244160 * square * square)


def _gamma_large(alpha, x):
    """The saddle point expansion for large alpha."""
    root = np.sqrt(8 * alpha)
    ratio = np.log(x / alpha)
    bend = (x - alpha - alpha * ratio) ** -1.5
    both = root / (alpha - x) + np.where(x < alpha, -bend, bend)
    inner = ratio * both - np.sqrt(2 / alpha) * (alpha + x) / ((alpha - x) * (alpha - x))
    return -_stirling(alpha) * (x * inner) / root


def _gamma_rational(alpha, x):
    powers = np.log(x / alpha) ** np.arange(3)[:, None], np.log(alpha) ** np.arange(4)[:, None]
    above, below = np.einsum("nij,ie,je->ne", _GAMMA, *powers)
    return np.exp(above / below)


_SMALL, _LEAST, _MOST = np.array([0.8, 0.9, 1.1], np.float32).tolist()  # as PyTorch rounds them


def _gamma_slopes(concentration, values):
    """`torch._standard_gamma_grad`."""
    out = _chosen(
        [
            lambda alpha, x: x < _SMALL,
            lambda alpha, x: (alpha > 8) & (_LEAST * alpha <= x) & (x <= _MOST * alpha),
            lambda alpha, x: alpha > 8,
        ],
        [_gamma_small, _gamma_middle, _gamma_large, _gamma_rational],
        concentration,
        values,
    )
    return out.astype(concentration.dtype)


# -- beta -----------------------------------------------------------------------------------------


def _beta_near_zero(x, alpha, total):
    """Taylor series in x of the slope with respect to alpha."""
    from scipy.special import digamma

    beta = total - alpha
    factor = digamma(alpha) - digamma(total) - np.log(x)
    term = np.ones_like(x)
    series = (factor + 1 / alpha) / alpha
    for i in range(1, 11):
        term *= (i - beta) * x / i
        series += term / (alpha + i) * (factor + 1 / (alpha + i))
    out = x * (1 - x) ** -beta * series
    return np.where(np.isnan(out), 0.0, out)


def _beta_near_one(x, alpha, total):
    """Taylor series in 1 - x: the slope of the mirrored draw with respect to its beta."""
    from scipy.special import digamma

    y, first, second = 1 - x, total - alpha, alpha
    factor = digamma(total) - digamma(second)
    term, product, slope = np.ones_like(x), np.ones_like(x), np.zeros_like(x)
    series = factor / first
    for i in range(1, 9):
        term *= -y / i
        slope = slope * (second - i) + product
        product = product * (second - i)
        series += term / (first + i) * (slope + factor * product)
    out = (1 - y) ** (1 - second) * series
    return np.where(np.isnan(out), 0.0, out)


def _beta_at_mean(x, alpha, beta):
    """Large parameters and x close to the mean, where the saddle point expansion is singular."""
    total = alpha + beta
    series = 8 * (1 - x) * (135 * beta - 11)
    series = (453 + 1620 * beta * (1 - x) - 455 * x) * beta + alpha * series
    series = 3 * (59 + 180 * beta - 90 * x) * beta**2 + alpha * series
    series = (43 + 20 * (16 + 27 * beta) * x) * beta**3 + alpha * series
    series = 47 * x * beta**4 + alpha * series
    factor = (1 + 12 * alpha) * (1 + 12 * beta) / (total * total)
    return factor / (1 - x) * series / (12960 * alpha**3 * beta**2 * (1 + 12 * total))


def _beta_large(x, alpha, total):
    """The saddle point expansion for large parameters."""
    beta = total - alpha
    mean = alpha / total
    deviation = np.sqrt(alpha * beta / (total + 1)) / total
    distance = alpha * (x - 1) + beta * x
    first = 2 * alpha * alpha * (x - 1) + alpha * beta * (x - 1) - x * beta * beta
    first /= np.sqrt(2 * alpha / beta) * total**1.5 * distance * distance
    log_x = np.log(alpha / (total * x))
    bend = (beta * np.log(beta / (total * (1 - x))) + alpha * log_x) ** -1.5
    both = np.sqrt(8 * alpha * beta / total) / distance + np.where(x < mean, bend, -bend)
    scale = -x / np.sqrt(2 * alpha * beta / total)
    scale *= _stirling(alpha) * _stirling(beta) / _stirling(total)
    near = (mean - 0.1 * deviation <= x) & (x <= mean + 0.1 * deviation)
    return np.where(near, _beta_at_mean(x, alpha, beta), scale * (first + 0.5 * log_x * both))


def _beta_rational(x, alpha, total):
    from scipy.special import digamma

    u = np.log(x)
    a = np.log(alpha) - u
    b = np.log(total) - a
    powers = u ** np.arange(3)[:, None], a ** np.arange(3)[:, None], b ** np.arange(4)[:, None]
    above, below = np.einsum("nijk,ie,je,ke->ne", _BETA, *powers)
    return above / below * (x * (digamma(total) - digamma(alpha)) / (total - alpha))


def _dirichlet_slopes(values, concentration, total):
    """`torch._dirichlet_grad`."""
    out = _chosen(
        [
            lambda x, alpha, total: (x <= 0.5) & (total * x * (1 - x) < 2.5),
            lambda x, alpha, total: (x >= 0.5) & (total * x * (1 - x) < 0.75),
            lambda x, alpha, total: (alpha > 6) & (total - alpha > 6),
        ],
        [_beta_near_zero, _beta_near_one, _beta_large, _beta_rational],
        values,
        concentration,
        total,
    )
    return out.astype(values.dtype)


# -- the draws ------------------------------------------------------------------------------------


@opaque(
    _gamma_slopes,
    public=False,
    counterpart="_standard_gamma_grad",
    vjp=no_derivative("standard_gamma", "_standard_gamma_grad"),
    shape=lambda concentration, values: (values.shape, values.dtype),
    samples=[S(t(2, 3, low=0.5, high=20.0, grad=False), t(2, 3, low=0.1, high=20.0, grad=False))],
)
def standard_gamma_slopes(concentration: Tensor, values: Tensor):
    """How draws of a standard gamma move with its concentration."""


@opaque(
    _dirichlet_slopes,
    public=False,
    counterpart="_dirichlet_grad",
    samples=[
        S(
            t(2, 3, low=0.1, high=0.9, grad=False),
            t(2, 3, low=0.5, high=10.0, grad=False),
            t(2, 3, low=12.0, high=20.0, grad=False),
        )
    ],
)
def dirichlet_slopes(values: Tensor, concentration: Tensor, total: Tensor):
    """How parts of a Dirichlet draw move with their concentrations, before they share."""


def _moved_gamma(values, concentration):
    """The draw, and its slope: what nothing is added to moves with the concentration."""
    given = F.detach(concentration)
    return values + F.standard_gamma_slopes(given, values) * (concentration - given)


@opaque(
    lambda values, concentration: values,
    public=False,
    counterpart=_moved_gamma,
    no_forward="_standard_gamma",
    properties=frozenset({"convention"}),  # the draw stays; the slope is that of its distribution
    samples=[
        S(
            t(2, 3, low=0.5, high=2.0, grad=False),
            t(2, 3, low=0.5, high=2.0),
            order=0,
            because="the draw stays",
        )
    ],
)
def standard_gamma(values: Tensor, concentration: Tensor):
    """Values drawn from a standard gamma distribution."""


@standard_gamma.vjp
def _(g, out, values, concentration):
    return None, g * F.standard_gamma_slopes(concentration, values)


def _moved_dirichlet(values, concentration):
    """As `_moved_gamma`; parts that move share what they are parts of."""
    given = F.detach(concentration)
    moved = F.dirichlet_slopes(values, given, _totals(given)) * (concentration - given)
    return values + moved - values * F.sum(moved, (-1,), True)


def _totals(concentration):
    return F.expand(F.sum(concentration, (-1,), True), concentration.shape)


@opaque(
    lambda values, concentration: values,
    public=False,
    counterpart=_moved_dirichlet,
    grad_fn="_DirichletBackward",
    no_forward="_sample_dirichlet",
    properties=frozenset({"convention"}),  # the draw stays; the slope is that of its distribution
    samples=[
        S(
            t(2, 3, low=0.1, high=0.5, grad=False),
            t(2, 3, low=0.5, high=2.0),
            order=0,
            because="the draw stays",
        )
    ],
)
def sample_dirichlet(values: Tensor, concentration: Tensor):
    """Values drawn from a Dirichlet distribution."""


@sample_dirichlet.vjp
def _(g, out, values, concentration):
    slopes = F.dirichlet_slopes(values, concentration, _totals(concentration))
    return None, slopes * (g - F.sum(values * g, (-1,), True))
