"""L-BFGS on flat arrays, with PyTorch's stopping rules and its strong Wolfe line search.

The objective is a function of nothing: it evaluates the program at the parameters as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray


def _moved(x: Array, d: Array, t: Any) -> Array:
    """`x + t * d`, rounded once in single precision as PyTorch does."""
    return (x + np.float64(x.dtype.type(t)) * d).astype(x.dtype)


@dataclass(eq=False)
class Problem:
    """What is minimized: where the parameters are, and how to move them and to evaluate there.

    `evaluate()` runs the closure and returns its loss and the flat gradient; `position()` and
    `move_to(x)` read and write the flat parameters.
    """

    evaluate: Callable[[], tuple[float, Array]]
    position: Callable[[], Array]
    move_to: Callable[[Array], None]

    def advance(self, t: Any, d: Array) -> None:
        self.move_to(_moved(self.position(), d, t))

    def probe(self, x: Array, t: Any, d: Array) -> tuple[float, Array]:
        """Loss and gradient at `x + t d`; the parameters are at `x` again afterwards."""
        self.move_to(_moved(x, d, t))
        found = self.evaluate()
        self.move_to(x)
        return found


# What a step leaves to the next one, beside counts and coefficients of the recursion.
KEPT = ("d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss")


def run(
    problem: Problem, loss: float, flat_grad: Array, state: dict[str, Any], o: dict[str, Any]
) -> None:
    """One `step()`: up to `max_iter` iterations from the loss and gradient at the start."""
    evaluations = 1
    state["func_evals"] = state.get("func_evals", 0) + 1
    state.setdefault("n_iter", 0)
    optimal = abs(flat_grad).max(initial=0) <= o["tolerance_grad"]
    if optimal:
        return
    known = {name: state.get(name) for name in KEPT}
    iteration = 0
    while iteration < o["max_iter"]:
        iteration += 1
        state["n_iter"] += 1
        if state["n_iter"] == 1:
            d = -flat_grad
            known.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
        else:
            al = state.setdefault("al", [None] * o["history_size"])
            d = _direction(flat_grad, known, al)
        previous_loss = loss
        t: Any = o["lr"]
        if state["n_iter"] == 1:
            t = min(1.0, 1.0 / abs(flat_grad).sum()) * t
        slope = flat_grad.dot(d)
        known.update(d=d, t=t, prev_flat_grad=flat_grad, prev_loss=loss)
        if slope > -o["tolerance_change"]:
            break
        used = 0
        if o["line_search_fn"] is not None:
            x = problem.position()
            left = o["max_eval"] - evaluations
            loss, flat_grad, t, used = strong_wolfe(problem, x, t, d, loss, flat_grad, slope, left)
            known["t"] = t
            problem.advance(t, d)
            optimal = abs(flat_grad).max() <= o["tolerance_grad"]
        else:
            problem.advance(t, d)
            if iteration != o["max_iter"]:
                loss, flat_grad = problem.evaluate()
                optimal = abs(flat_grad).max() <= o["tolerance_grad"]
                used = 1
        evaluations += used
        state["func_evals"] += used
        if (
            iteration == o["max_iter"]
            or evaluations >= o["max_eval"]
            or optimal
            or abs(d * t).max() <= o["tolerance_change"]
            or abs(loss - previous_loss) < o["tolerance_change"]
        ):
            break
    state.update(known)


def _direction(flat_grad: Array, known: dict[str, Any], al: list[Any]) -> Array:
    """The two-loop recursion over the changes that are known, as many as `al` has places for."""
    y = flat_grad - known["prev_flat_grad"]
    s = known["d"] * known["t"]
    dirs, stps, ro = known["old_dirs"], known["old_stps"], known["ro"]
    ys = y.dot(s)
    if ys > 1e-10:
        if len(dirs) == len(al):
            dirs.pop(0)
            stps.pop(0)
            ro.pop(0)
        dirs.append(y)
        stps.append(s)
        ro.append(1.0 / ys)
        known["H_diag"] = ys / y.dot(y)
    q = -flat_grad
    for i in reversed(range(len(dirs))):
        al[i] = stps[i].dot(q) * ro[i]
        q = _moved(q, dirs[i], -al[i])
    r = q * known["H_diag"]
    for i in range(len(dirs)):
        r = _moved(r, stps[i], al[i] - dirs[i].dot(r) * ro[i])
    return r


def _cubic(
    x1: Any, f1: Any, g1: Any, x2: Any, f2: Any, g2: Any, bounds: tuple[Any, Any] | None = None
) -> Any:
    """The minimum of the cubic through two points with slopes, within bounds."""
    low, high = bounds if bounds is not None else (x1, x2) if x1 <= x2 else (x2, x1)
    d1 = g1 + g2 - 3 * (f1 - f2) / (x1 - x2)
    square = d1**2 - g1 * g2
    if not square >= 0:  # nor is what is no number
        return (low + high) / 2.0
    d2 = np.sqrt(square)
    if x1 <= x2:
        best = x2 - (x2 - x1) * ((g2 + d2 - d1) / (g2 - g1 + 2 * d2))
    else:
        best = x1 - (x1 - x2) * ((g1 + d2 - d1) / (g1 - g2 + 2 * d2))
    return min(max(best, low), high)


@dataclass(slots=True, eq=False)
class _Point:
    """A step along the line: its size, loss, gradient and slope."""

    t: Any
    f: Any
    g: Array
    gtd: Any


C1, C2, TOLERANCE = 1e-4, 0.9, 1e-9


def strong_wolfe(
    problem: Problem, x: Array, t: Any, d: Array, f: float, g: Array, gtd: Any, most: int
) -> tuple[Any, Array, Any, int]:
    """A step that satisfies the strong Wolfe conditions: loss, gradient, size, evaluations."""

    def at(size: Any) -> _Point:
        loss, gradient = problem.probe(x, size, d)
        return _Point(size, loss, gradient, gradient.dot(d))

    new = at(t)
    before = _Point(0, f, g, gtd)
    evaluations, tries, done = 1, 0, False
    bracket: list[_Point] = []
    while tries < most:
        if new.f > f + C1 * new.t * gtd or (tries > 1 and new.f >= before.f):
            bracket = [before, new]
            break
        if abs(new.gtd) <= -C2 * gtd:
            bracket = [new]
            done = True
            break
        if new.gtd >= 0:
            bracket = [before, new]
            break
        bounds = (new.t + 0.01 * (new.t - before.t), new.t * 10)
        size = _cubic(before.t, before.f, before.gtd, new.t, new.f, new.gtd, bounds)
        before, new = new, at(size)
        evaluations += 1
        tries += 1
    if tries >= most:
        bracket = [_Point(0, f, g, gtd), new]
    if len(bracket) == 1:
        return new.f, new.g, new.t, evaluations
    return _zoom(at, bracket, (f, gtd), abs(d).max(), done, evaluations, tries, most)


def _zoom(
    at: Callable[[Any], _Point],
    bracket: list[_Point],
    start: tuple[Any, Any],
    width: Any,
    done: bool,
    evaluations: int,
    tries: int,
    most: int,
) -> tuple[Any, Array, Any, int]:
    """Shrink the bracket until its better end satisfies the conditions."""
    f, gtd = start
    stuck = False
    low, high = (0, 1) if bracket[0].f <= bracket[1].f else (1, 0)
    while not done and tries < most:
        a, b = bracket
        if abs(b.t - a.t) * width < TOLERANCE:
            break
        t = _cubic(a.t, a.f, a.gtd, b.t, b.f, b.gtd)
        left, right = min(a.t, b.t), max(a.t, b.t)
        margin = 0.1 * (right - left)
        if min(right - t, t - left) < margin:
            if stuck or t >= right or t <= left:
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        new = at(t)
        evaluations += 1
        tries += 1
        if new.f > f + C1 * t * gtd or new.f >= bracket[low].f:
            bracket[high] = new
            low, high = (0, 1) if bracket[0].f <= bracket[1].f else (1, 0)
        else:
            if abs(new.gtd) <= -C2 * gtd:
                done = True
            elif new.gtd * (bracket[high].t - bracket[low].t) >= 0:
                bracket[high] = bracket[low]
            bracket[low] = new
    best = bracket[low]
    return best.f, best.g, best.t, evaluations
