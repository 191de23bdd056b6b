"""Connectionist temporal classification: the likelihood of a label sequence under all alignments.

The recursions run over time, vectorized over the batch and the states of the extended labels
(blanks around every label), in log space. Source: Graves et al. 2006, as PyTorch computes it.
"""

from __future__ import annotations

import numpy as np

from ...errors import fault
from ...graph.declare import Any, Tensor, Word, function, opaque
from ...graph.op import constant, value_of
from ...graph.params import node_of
from ...graph.registry import F
from ...graph.samples import Bad, S, ints, t
from ...graph.sizes import check_size
from ..kernels.indices import constant_from
from ..kernels.losses import reduced, reduction_of
from ..kernels.rules import no_derivative
from ..kernels.windows import whole_numbers

NN = "nn.functional."


def _extended(targets, blank):
    """(N, 2 S + 1) labels with blanks between, and where a state may be reached from two before."""
    n, longest = targets.shape
    labels = np.full((n, 2 * longest + 1), blank)
    labels[:, 1::2] = targets
    skips = np.zeros(labels.shape, bool)
    skips[:, 3::2] = targets[:, 1:] != targets[:, :-1]
    return labels, skips


def _forward(log_probs, labels, skips, target_lengths):
    """Log-probabilities of all ways to be in each state at each time, (T, N, states)."""
    times, n = log_probs.shape[:2]
    states = labels.shape[1]
    emitted = np.take_along_axis(log_probs, np.broadcast_to(labels, (times, n, states)), 2)
    alpha = np.full((times, n, states), -np.inf, log_probs.dtype)
    alpha[0, :, :1] = emitted[0, :, :1]
    some = target_lengths > 0
    alpha[0, some, 1:2] = emitted[0, some, 1:2]
    for time in range(1, times):
        before = alpha[time - 1]
        total = before.copy()
        total[:, 1:] = np.logaddexp(total[:, 1:], before[:, :-1])
        total[:, 2:] = np.where(
            skips[:, 2:], np.logaddexp(total[:, 2:], before[:, :-2]), total[:, 2:]
        )
        alpha[time] = total + emitted[time]
    return alpha, emitted


def _backward(emitted, skips, input_lengths, target_lengths):
    """Log-probabilities of all ways from each state at each time to the end."""
    times, n, states = emitted.shape
    beta = np.full((times, n, states), -np.inf, emitted.dtype)
    last = 2 * target_lengths
    after = np.full((n, states), -np.inf, emitted.dtype)
    rows = np.arange(n)
    for time in reversed(range(times)):
        total = after.copy()
        total[:, :-1] = np.logaddexp(total[:, :-1], after[:, 1:])
        total[:, :-2] = np.where(
            skips[:, 2:], np.logaddexp(total[:, :-2], after[:, 2:]), total[:, :-2]
        )
        ends = input_lengths - 1 == time
        total[rows[ends], last[ends]] = 0
        some = ends & (target_lengths > 0)
        total[rows[some], last[some] - 1] = 0
        after = total + emitted[time]
        after[input_lengths <= time] = -np.inf
        beta[time] = after
    return beta


def _likelihood(alpha, input_lengths, target_lengths):
    """Negative log-likelihood of each sequence."""
    n = alpha.shape[1]
    rows = np.arange(n)
    end = alpha[input_lengths - 1, rows]
    blank = end[rows, 2 * target_lengths]
    label = np.where(target_lengths > 0, end[rows, 2 * target_lengths - 1], -np.inf)
    found = -np.logaddexp(blank, label)
    return np.where(input_lengths > 0, found, np.where(target_lengths == 0, -0.0, np.inf))


def _ctc(log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    labels, skips = _extended(targets, blank)
    alpha, _ = _forward(log_probs, labels, skips, target_lengths)
    return _likelihood(alpha, input_lengths, target_lengths).astype(log_probs.dtype)


def _ctc_slope(g, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    labels, skips = _extended(targets, blank)
    alpha, emitted = _forward(log_probs, labels, skips, target_lengths)
    loss = _likelihood(alpha, input_lengths, target_lengths)
    both = alpha + _backward(emitted, skips, input_lengths, target_lengths)
    highest = both.max(2, keepdims=True, initial=-np.inf)
    highest = np.where(np.isfinite(highest), highest, 0)
    mass = np.zeros(log_probs.shape)
    times, n, _states = both.shape
    place = np.broadcast_to(labels, both.shape)
    index = (np.arange(times)[:, None, None], np.arange(n)[None, :, None], place)
    np.add.at(mass, index, np.exp(both - highest))
    share = np.exp(np.log(mass) + highest + loss[:, None] - log_probs)
    slope = (np.exp(log_probs) - share) * g[:, None]
    silent = np.arange(times)[:, None] >= input_lengths
    if zero_infinity:
        silent = silent | np.isinf(loss)
    return np.where(silent[:, :, None], 0, slope).astype(log_probs.dtype)


@opaque(
    _ctc,
    public=False,
    properties=frozenset({"convention"}),  # the slope takes for granted that log_softmax was before
    grad_fn="CtcLossBackward0",
    no_forward="_ctc_loss",
    shape=lambda log_probs, *rest: ((log_probs.shape[1],), log_probs.dtype),
    saves="operands, results",
)
def ctc_loss_elements(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int,
    zero_infinity: bool,
):
    """The negative log-likelihood of each target sequence."""


@ctc_loss_elements.vjp
def _(g, out, log_probs, targets, input_lengths, target_lengths, blank, zero_infinity):
    rest = (targets, input_lengths, target_lengths, blank, zero_infinity)
    return F.ctc_loss_slope(g, log_probs, *rest), None, None, None


@opaque(
    _ctc_slope,
    public=False,
    shape=lambda g, log_probs, *rest: (log_probs.shape, log_probs.dtype),
    vjp=no_derivative("_ctc_loss_backward"),
)
def ctc_loss_slope(
    g: Tensor,
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor,
    target_lengths: Tensor,
    blank: int,
    zero_infinity: bool,
):
    """The gradient of the losses, for log-probabilities that come from `log_softmax`."""


def _lengths(what, given, n, most):
    node = node_of(given)
    values = np.array(whole_numbers(given, "ctc_loss", what)) if node is None else value_of(node)
    if values.dtype.kind not in "iu" and values.size:
        raise fault("E307 ctc_loss-needs-integers", what, values)
    values = values.astype(np.int64).reshape(-1)
    if values.size != n:
        raise fault("E308 ctc_loss-sequences-needs-many", n, what, values)
    if values.min() < 0 or (most is not None and values.max() > most):
        raise fault("E308 ctc_loss-got", what, values.tolist()[:8], most)
    return values


def _padded_targets(targets, lengths):
    """(N, longest) targets, of rows or of one line."""
    values = value_of(targets).astype(np.int64)
    longest = int(lengths.max(initial=0))
    if values.ndim == 1:
        if values.size < lengths.sum():
            raise fault("E308 ctc_loss-got-targets-target_lengths", values, int(lengths.sum()))
        starts = np.cumsum(lengths) - lengths
        at = starts[:, None] + np.arange(longest)
        kept = np.arange(longest) < lengths[:, None]
        rows = np.zeros((lengths.size, longest), np.int64)
        rows[kept] = values[at[kept]]
        return rows
    if values.ndim != 2 or values.shape[0] != lengths.size or values.shape[1] < longest:
        raise fault("E308 ctc_loss-sequences-targets-up", lengths, longest, targets)
    return values[:, :longest]


@function(
    name=NN + "ctc_loss",
    aliases=["ctc_loss"],
    samples=[
        S(
            t(4, 2, 3, low=-2.0, high=0.0),
            ints(2, 2, low=1, high=3),
            (4, 3),
            (2, 1),
            order=0,
            because="the slope holds for what comes from log_softmax, not for free numbers",
        ),
        S(
            t(4, 3, low=-2.0, high=0.0),
            ints(2, low=1, high=3),
            (4,),
            (2,),
            reduction="none",
            order=0,
            because="the slope holds for what comes from log_softmax, not for free numbers",
        ),
    ],
    errors=[
        Bad("E308", t(4, 2, 3), ints(2, 2), (5, 3), (2, 1)),
        Bad("E308", t(4, 2, 3), ints(2, 2), (3,), (1,)),
    ],
    lacks="ctc_loss_cpu ints bool float16",
)
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Any,
    target_lengths: Any,
    blank: int = 0,
    reduction: Word = "mean",
    zero_infinity: bool = False,
):
    """The loss of label sequences `targets` under `log_probs` (T, N, C), which must come from
    `log_softmax`; `mean` divides by the target lengths first."""
    batched = len(log_probs.shape) == 3
    empty = 0 in log_probs.shape
    if len(log_probs.shape) not in (2, 3) or log_probs.dtype.kind != "f" or empty:
        raise fault("E308 ctc_loss-needs-float-log", log_probs)
    if not batched:
        log_probs = F.unsqueeze(log_probs, 1)
        if len(targets.shape) == 1:
            targets = F.unsqueeze(targets, 0)
    times, n, classes = log_probs.shape
    if not 0 <= blank < classes:
        raise fault("E305 ctc_loss-classes-cannot-blank", classes, blank, classes - 1)
    inputs = _lengths("input_lengths", input_lengths, n, times)
    wanted = _lengths("target_lengths", target_lengths, n, None)
    rows = _padded_targets(targets, wanted)
    check_size((times, n, 2 * rows.shape[1] + 1), log_probs.dtype)
    used = rows[np.arange(rows.shape[1]) < wanted[:, None]]
    if used.size and (used.min() < 0 or used.max() >= classes):
        raise fault(
            "E305 ctc_loss-classes-got-targets", classes, used.min(), used.max(), classes - 1
        )
    rows = np.where(np.arange(rows.shape[1]) < wanted[:, None], rows, blank)
    loss = F.ctc_loss_elements(
        log_probs,
        constant_from(targets, rows),
        constant(inputs),
        constant(wanted),
        blank,
        zero_infinity,
    )
    if zero_infinity:
        loss = F.where(F.eq(loss, float("inf")), 0.0, loss)
    if reduction == "mean":
        loss = loss / constant(np.maximum(wanted, 1).astype(loss.dtype))
    loss = reduced(loss, reduction_of(reduction))
    return F.squeeze(loss, 0) if reduction == "none" and not batched else loss
