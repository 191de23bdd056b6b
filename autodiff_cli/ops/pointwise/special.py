"""Special functions: gamma and its relatives, error functions, Bessel functions, polynomials."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from ...errors import fault
from ...graph.declare import Any, Promote, Tensor, composite, function, pointwise, rows
from ...graph.op import value_of
from ...graph.registry import F
from ...graph.samples import Bad, S, ints, t
from ...graph.state import STATE
from ..kernels.indices import check_number
from .error_function import erf

ALL = (S(t(2, 3)), S(t()))
POSITIVE = (S(t(2, 3, low=0.2)), S(t(low=0.2)))
UNIT = (S(t(2, 3, low=0.1, high=0.9)), S(t(low=0.1, high=0.9)))


def scipy_special(name, edges=None):
    """The function of `scipy.special`, imported when first called; `edges(out, *arrays)` is what
    PyTorch has where arguments are infinite or NaN."""

    def kernel(*arrays):
        import scipy.special

        out = getattr(scipy.special, name)(*arrays)
        if edges is not None and not np.isfinite(arrays[0]).all():
            out = edges(out, *arrays)
        return out.astype(arrays[0].dtype, copy=False)

    return kernel


def _incomplete(low, high):
    """The edges of an incomplete gamma function that goes from `low` to `high`."""

    def edges(out, a, x):
        at_low = (np.isposinf(a) & np.isnan(x)) | (np.isnan(a) & (x == 0))
        return np.where(at_low, low, np.where(np.isnan(a) & np.isposinf(x), high, out))

    return edges


_declared = rows(
    __name__,
    "input",
    """
    lgamma special.gammaln: Logarithm of the absolute value of the gamma function.
    digamma special.digamma special.psi: Derivative of `lgamma`.
    erf special.erf: Error function.
    erfc special.erfc: `1 - erf(input)`, exact for large elements.
    erfinv special.erfinv: Inverse of `erf`.
    i0 special.i0: Modified Bessel function of the first kind, order 0.
    special_erfcx: `exp(input**2) * erfc(input)`.
    special_ndtri: Inverse of the normal distribution function.
    special_log_ndtr: Logarithm of the normal distribution function.
    special_i0e: `exp(-|input|) * i0(input)`.
    special_i1: Modified Bessel function of the first kind, order 1.
    special_i1e: `exp(-|input|) * i1(input)`.
    special_bessel_j0: Bessel function of the first kind, order 0.
    special_bessel_j1: Bessel function of the first kind, order 1.
    special_bessel_y0: Bessel function of the second kind, order 0.
    special_bessel_y1: Bessel function of the second kind, order 1.
    special_modified_bessel_i0: Modified Bessel function of the first kind, order 0.
    special_modified_bessel_i1: Modified Bessel function of the first kind, order 1.
    special_modified_bessel_k0: Modified Bessel function of the second kind, order 0.
    special_modified_bessel_k1: Modified Bessel function of the second kind, order 1.
    special_scaled_modified_bessel_k0: `exp(input)` times the modified Bessel function `k0`.
    special_scaled_modified_bessel_k1: `exp(input)` times the modified Bessel function `k1`.
    special_spherical_bessel_j0: Spherical Bessel function of the first kind, order 0.
    special_airy_ai: Airy function Ai.
    special_entr: `-input * log(input)`, 0 at 0.
    """,
    promote=Promote.FLOAT,
)


def _unary(key, kernel, vjp, samples, **options):
    if key.startswith("special_"):
        options |= {"name": key.replace("_", ".", 1), "method": False, "inplace": False}
    kernel = scipy_special(kernel) if isinstance(kernel, str) else kernel
    _declared(key, kernel, vjp, samples, **options)


# -- gamma and error functions: name, kernel, slope times g, samples ---------------------------

ROOT_PI = math.sqrt(math.pi)


def _trigamma(x):
    """PyTorch's: reflected below 1/2, huge instead of infinite at negative whole numbers."""
    from scipy.special import zeta

    mirrored = x < 0.5
    above = zeta(2.0, np.where(mirrored, 1 - x, x))
    return np.where(mirrored, (np.pi / np.sin(np.pi * x)) ** 2 - above, above)


def _digamma(x):
    from scipy.special import digamma

    out = digamma(x)
    return np.where(
        x == 0, np.copysign(np.inf, -x), np.where((x < 0) & (x == np.floor(x)), np.nan, out)
    ).astype(x.dtype)


def _inverse_of_erf(x):
    from scipy.special import erfinv

    return np.copysign(erfinv(x), x).astype(x.dtype)  # of -0.0 it is itself


@cache
def _series_of_log_gamma():
    """Coefficients of log(gamma(1 + z)) + log(1 + z) for |z| <= 1/2, the highest power first."""
    from scipy.special import zetac

    return [(-1.0) ** k * zetac(float(k)) / k for k in range(30, 1, -1)] + [1 - np.euler_gamma, 0.0]


def _log_gamma(x):
    """SciPy's, but for its zeros 1 and 2, near which the series keeps all digits, and for numbers
    whose reciprocal overflows."""
    from scipy.special import gammaln

    exact = np.asarray(x, np.float64)
    out = np.where(np.abs(exact) < 1e-300, -np.log(np.abs(exact)), gammaln(exact))
    near = (exact > 0.5) & (exact < 2.5)
    value = exact[near]
    first = value < 1.5
    z = np.where(first, value - 1, value - 2)
    out[near] = np.polyval(_series_of_log_gamma(), z) - np.where(first, np.log(value), 0.0)
    return np.where(x == -np.inf, np.inf, out).astype(x.dtype)


def _zeta(x, q):
    """PyTorch's: its series ends in nan at infinity, in inf below 1 for an infinite `x`."""
    from scipy.special import zeta

    infinite = x == np.inf
    out = np.where(infinite & (q < 1), np.inf, zeta(x, q))
    lost = (infinite & (q > 1)) | ((x > 1) & (q == np.inf))
    return np.where(lost, np.nan, out).astype(np.result_type(x, q))


def _polygamma_kernel(n, x):
    from scipy.special import gamma

    if n == 0:
        return _digamma(x)
    if n == 1:
        return _trigamma(x).astype(x.dtype)
    return ((1.0 if n % 2 else -1.0) * gamma(n + 1.0) * _zeta(n + 1.0, x)).astype(x.dtype)


_row: Any

_WORDS = {"lgamma": "scipy.special.gammaln(input)", "digamma": "scipy.special.digamma(input)"}

for _row in (
    ("lgamma", _log_gamma, lambda g, out, x: g * F.digamma(x), POSITIVE),
    ("digamma", _digamma, lambda g, out, x: g * F.polygamma(1, x), POSITIVE),
    ("erf", erf, lambda g, out, x: 2 / ROOT_PI * F.exp(-(x * x)) * g, ALL),
    ("erfc", "erfc", lambda g, out, x: -2 / ROOT_PI * F.exp(-(x * x)) * g, ALL),
    (
        "erfinv",
        _inverse_of_erf,
        lambda g, out, x: 0.5 * ROOT_PI * F.exp(F.erfinv(x) ** 2) * g,
        UNIT,
    ),
    ("i0", "i0", lambda g, out, x: g * F.special_i1(x), ALL),
):
    _words = frozenset({"saturates"} if _row[0] in ("erf", "erfc") else ())
    _own = getattr(_row[1], "text", None)
    _unary(*_row, properties=_words, numpy=_WORDS.get(_row[0], _own))

for _row in (
    ("special_erfcx", "erfcx", lambda g, out, x: (2 * x * out - 2 / ROOT_PI) * g, ALL),
    (
        "special_ndtri",
        "ndtri",
        lambda g, out, x: g * math.sqrt(2 * math.pi) * F.exp(out * out / 2),
        UNIT,
    ),
    (
        "special_log_ndtr",
        "log_ndtr",
        lambda g, out, x: g * F.exp(-(out + x * x / 2)) * math.sqrt(0.5 / math.pi),
        ALL,
    ),
    ("special_i0e", "i0e", lambda g, out, x: g * (F.special_i1e(x) - F.sgn(x) * out), ALL),
    (
        "special_i1",
        "i1",
        lambda g, out, x: g * _away_from_zero(x, F.i0, lambda safe: out / safe),
        ALL,
    ),
    (
        "special_i1e",
        "i1e",
        lambda g, out, x: (
            g * _away_from_zero(x, F.special_i0e, lambda safe: out * (F.sgn(x) + 1 / safe))
        ),
        ALL,
    ),
):
    _key = _row[1]
    _lacks = f"{_key}_cpu float16" if _key in ("erfcx", "ndtri", "log_ndtr") else ""
    _unary(*_row, kink=F.abs if _key == "i0e" else None, lacks=_lacks)


def _away_from_zero(x, order0, rest):
    """The slope of a Bessel function of order 1, which is 1/2 at 0."""
    tiny = F.logical_not(F.gt(F.abs(x), float(np.finfo(x.dtype).eps)))
    safe = F.where(tiny, float(np.finfo(x.dtype).eps), x)
    return F.where(tiny, 0.5, order0(safe) - rest(safe))


def _check_order(n, input):
    if n < 0:
        raise fault("E205 polygamma-needs-order-least", n)


def _polygamma_in_jax(n, input):
    """Mirrored below 0, where JAX's does not hold: by derivatives of the cotangent, which are
    polynomials of it."""
    if n == 0 or (value_of(input) > 0).all():
        return None
    slope = np.polynomial.Polynomial([0.0, 1.0])
    for _ in range(n):
        slope = slope.deriv() * np.polynomial.Polynomial([-1.0, 0.0, -1.0])
    cotangent = f"np.polyval(np.array({slope.coef[::-1].tolist()}), 1 / np.tan(np.pi * input))"
    above = f"scipy.special.polygamma({n}, np.where(input > 0, input, 1 - input))"
    mirrored = f"{'-' * (n % 2)}{above} - np.pi ** {n + 1} * {cotangent}"
    return f"np.where(input > 0, {above}, {mirrored})"


@pointwise(
    _polygamma_kernel,
    jax=_polygamma_in_jax,
    promote=Promote.FLOAT,
    aliases=["special.polygamma"],
    method=False,
    check=_check_order,
    vjp=lambda g, out, n, input: g * F.polygamma(n + 1, input),
    samples=[S(0, t(3, low=0.3)), S(1, t(3, low=0.3)), S(2, t(low=0.3))],
    errors=[Bad("E205", -1, t(2))],
)
def polygamma(n: int, input: Tensor):
    """The n-th derivative of `digamma`."""


@function(name="polygamma", inplace=True, samples=[S(t(3, low=0.3), 1)])
def polygamma_method(input: Tensor, n: int):
    """`x.polygamma(n)`: the n-th derivative of `digamma`."""
    return F.polygamma(n, input)


@composite(
    aliases=["special.multigammaln"],
    inplace=True,
    samples=[S(t(2, 3, low=1.2, high=4.0), 2), S(t(3, low=0.5), 1)],
    errors=[Bad("E205", t(2), 0)],
    phrase="upstream times the sum of digammas",
    lacks="bool: The input tensor may not be a boolean tensor.",
)
def mvlgamma(input: Tensor, p: int):
    """Logarithm of the multivariate gamma function of dimension `p`."""
    if p < 1:
        raise fault("E205 mvlgamma-needs-dimension-least", p)
    out = F.lgamma(input)
    for j in range(1, p):
        out = out + F.lgamma(input - j / 2)
    return out + p * (p - 1) / 4 * math.log(math.pi)


@composite(
    name="special.ndtr",
    grad_fn="MulBackward1",
    samples=ALL,
    properties=frozenset({"saturates", "saves its body"}),
    phrase="upstream times the density of the normal distribution",
)
def special_ndtr(input: Tensor):
    """The normal distribution function."""
    return (1 + F.erf(input * math.sqrt(0.5))) * 0.5


# -- logarithms that are 0 at 0 --------------------------------------------------------------------


def _overload_name(stem):
    """PyTorch's number of the overload: 1 for a number first, 2 for a number second."""
    return lambda input, other: f"{stem}Backward{1 if input.weak else 2 if other.weak else 0}"


def _zero_times(logarithm):
    def kernel(input, other):
        found = np.where((input == 0) & ~np.isnan(other), 0, input * logarithm(other))
        return np.asarray(found, np.result_type(input, other))

    return kernel


@pointwise(
    _zero_times(np.log),
    aliases=["special.xlogy"],
    promote=Promote.FLOAT,
    grad_fn=_overload_name("Xlogy"),
    samples=[
        S(t(2, 3), t(3, low=0.2)),
        S(2.0, t(3, low=0.2)),
        S(t(2), 3.0),
        S(t(values=[0.0]), t(values=[0.0]), order=0, because="at the edge"),
    ],
)
def xlogy(input: Tensor, other: Tensor):
    """`input * log(other)`, 0 where `input` is 0."""


@xlogy.vjp
def _(g, out, input, other):
    zero = F.logical_and(F.eq(input, 0), F.le(other, 0))
    return F.where(zero, 0, g * F.log(other)), g * input / other


@pointwise(
    _zero_times(np.log1p),
    name="special.xlog1py",
    inplace=False,
    promote=Promote.FLOAT,
    grad_fn=_overload_name("SpecialXlog1Py"),
    samples=[S(t(2, 3), t(3, low=0.2)), S(2.0, t(3, low=0.2)), S(t(2), 3.0)],
)
def special_xlog1py(input: Tensor, other: Tensor):
    """`input * log(1 + other)`, 0 where `input` is 0."""


@special_xlog1py.vjp
def _(g, out, input, other):
    zero = F.logical_and(F.eq(input, 0), F.le(other, -1))
    return F.where(zero, 0, g * F.log1p(other)), g * input / (other + 1)


def _entropy(x):
    return np.where(
        x > 0, -x * np.log(x), np.where(x == 0, 0, np.where(np.isnan(x), x, -np.inf))
    ).astype(x.dtype)


_unary("special_entr", _entropy, lambda g, out, x: g * (-F.log(x) - 1), POSITIVE)


def _log_odds(x, eps):
    if eps is not None and not eps < 0:
        x = np.where(x < eps, eps, np.where(x > 1 - eps, 1 - eps, x))
    return np.log(x / (1 - x)).astype(x.dtype)


@pointwise(
    _log_odds,
    promote=Promote.FLOAT,
    aliases=["special.logit"],
    check=lambda input, eps: check_number(eps, input.dtype),
    samples=[*UNIT, S(t(3), 0.2)],
)
def logit(input: Tensor, eps: float | None = None):
    """`log(input / (1 - input))`, with `input` held between `eps` and `1 - eps` if given."""


@logit.vjp
def _(g, out, input, eps):
    free = eps is None or eps < 0
    low = 0.0 if free else eps
    outside = F.logical_or(F.lt(input, low), F.gt(input, 1 - low))
    if STATE.grad:  # the formula that PyTorch can differentiate again
        outside = F.logical_or(outside, F.isnan(input))
    return F.where(outside, math.nan if free else 0.0, g / (input * (1 - input)))


# -- two operands ----------------------------------------------------------------------------------


def no_slope(name):
    """The cotangent of an operand for which PyTorch has no derivative."""
    raise fault("E404 no-derivative-towards-operand", name)


def _gamma_slope(sign, name):
    def vjp(g, out, input, other):
        if input.requires_grad:
            no_slope(name)
        slope = F.exp((input - 1) * F.log(other) - other - F.lgamma(input))
        return None, g * (slope if sign > 0 else -slope)

    return vjp


GAMMA_SAMPLES = (S(t(2, 3, low=0.5, grad=False), t(3, low=0.2)),)


@pointwise(
    scipy_special("gammainc", _incomplete(0, 1)),
    promote=Promote.FLOAT,
    aliases=["special.gammainc"],
    samples=GAMMA_SAMPLES,
    vjp=_gamma_slope(1, "igamma"),
    lacks="igamma_cpu ints bool",
    no_forward="igamma",
)
def igamma(input: Tensor, other: Tensor):
    """Regularized lower incomplete gamma function; differentiable towards `other`."""


@pointwise(
    scipy_special("gammaincc", _incomplete(1, 0)),
    promote=Promote.FLOAT,
    aliases=["special.gammaincc"],
    samples=GAMMA_SAMPLES,
    vjp=_gamma_slope(-1, "igammac"),
    lacks="igammac_cpu ints bool",
    no_forward="igammac",
)
def igammac(input: Tensor, other: Tensor):
    """Regularized upper incomplete gamma function; differentiable towards `other`."""


@pointwise(
    _zeta,
    name="special.zeta",
    promote=Promote.FLOAT,
    inplace=False,
    grad_fn=_overload_name("SpecialZeta"),
    no_forward="special_zeta",
    lacks="zeta_cpu float16",
    samples=[S(2.5, t(3, low=0.5)), S(t(2, low=1.5, grad=False), t(2, low=0.5))],
)
def special_zeta(input: Tensor, other: Tensor):
    """Hurwitz zeta function; differentiable towards `other`."""


@special_zeta.vjp
def _(g, out, input, other):
    if input.requires_grad:
        no_slope("zeta")
    return None, g * -input * F.special_zeta(input + 1, other)


# -- without derivatives ---------------------------------------------------------------------------

for _name, _kernel in (
    ("bessel_j0", "j0"),
    ("bessel_j1", "j1"),
    ("bessel_y0", "y0"),
    ("bessel_y1", "y1"),
    ("modified_bessel_i0", "i0"),
    ("modified_bessel_i1", "i1"),
    ("modified_bessel_k0", "k0"),
    ("modified_bessel_k1", "k1"),
    ("scaled_modified_bessel_k0", "k0e"),
    ("scaled_modified_bessel_k1", "k1e"),
    ("spherical_bessel_j0", lambda x: np.where(np.isinf(x), 0, np.sinc(x / np.pi))),
    ("airy_ai", lambda x: _airy(x)),
):
    _samples, _lacks = [S(t(3, low=0.2, grad=False))], f"{_name}_cpu float16"
    _unary(f"special_{_name}", _kernel, None, _samples, lacks=_lacks)


def _airy(x):
    from scipy.special import airy

    return np.where((x > 1e9) & (x < np.inf), 0.0, airy(x)[0]).astype(x.dtype)


_by_degree = rows(
    __name__,
    "input n",
    """
    special_chebyshev_polynomial_t: Chebyshev polynomial of the first kind.
    special_chebyshev_polynomial_u: Chebyshev polynomial of the second kind.
    special_chebyshev_polynomial_v: Chebyshev polynomial of the third kind.
    special_chebyshev_polynomial_w: Chebyshev polynomial of the fourth kind.
    special_hermite_polynomial_h: Hermite polynomial of physics.
    special_hermite_polynomial_he: Hermite polynomial of statistics.
    special_laguerre_polynomial_l: Laguerre polynomial.
    special_legendre_polynomial_p: Legendre polynomial.
    special_shifted_chebyshev_polynomial_t: Chebyshev polynomial of the first kind on [0, 1].
    special_shifted_chebyshev_polynomial_u: Chebyshev polynomial of the second kind on [0, 1].
    special_shifted_chebyshev_polynomial_v: Chebyshev polynomial of the third kind on [0, 1].
    special_shifted_chebyshev_polynomial_w: Chebyshev polynomial of the fourth kind on [0, 1].
    """,
    inplace=False,
    promote=Promote.FLOAT,
)


def _polynomial(name, find):
    """`find(special, n, x)` is the value of SciPy; on [0, 1] a shifted one is that on [-1, 1]."""
    shifted = name.startswith("shifted_")

    def evaluate(x, n):
        import scipy.special

        order = np.trunc(n)
        out = find(scipy.special, order.astype(np.int64), 2 * x - 1 if shifted else x)
        return np.where(order <= 0, order == 0, out).astype(x.dtype)  # degree 0 is 1, of NaN too

    samples = [S(t(3, low=0.1, high=0.9, grad=False), 3), S(t(3, grad=False), ints(3))]
    options = {"name": f"special.{name}", "lacks": f"{name}_cpu float16"}
    _by_degree(f"special_{name}", evaluate, None, samples, **options)


def _half_order(special, n, x, sign):
    """Third and fourth kind: `U_n - U_(n-1)` and `U_n + U_(n-1)`."""
    before = np.where(n > 0, special.eval_chebyu(np.maximum(n - 1, 0), x), 0)
    return special.eval_chebyu(n, x) + sign * before


for _row in (
    ("chebyshev_polynomial_t", lambda s, n, x: s.eval_chebyt(n, x)),
    ("chebyshev_polynomial_u", lambda s, n, x: s.eval_chebyu(n, x)),
    ("chebyshev_polynomial_v", lambda s, n, x: _half_order(s, n, x, -1)),
    ("chebyshev_polynomial_w", lambda s, n, x: _half_order(s, n, x, 1)),
):
    _polynomial(*_row)
    _polynomial(f"shifted_{_row[0]}", _row[1])

_polynomial("hermite_polynomial_h", lambda s, n, x: s.eval_hermite(n, x))
_polynomial("hermite_polynomial_he", lambda s, n, x: s.eval_hermitenorm(n, x))
_polynomial("laguerre_polynomial_l", lambda s, n, x: s.eval_laguerre(n, x))
_polynomial("legendre_polynomial_p", lambda s, n, x: s.eval_legendre(n, x))
