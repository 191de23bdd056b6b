"""Plans and profiles with figures of every size, at every width."""

from __future__ import annotations

from math import inf

import pytest

from autodiff_cli.engine.plan.describe import Array, GroupPlan, KernelPlan, Piece, PlanData
from autodiff_cli.engine.profile import Profile, ProfileLine
from autodiff_cli.render.plan import count_text, plan_lines
from autodiff_cli.render.profile import place_of, profile_lines, seconds_text, size_text
from autodiff_cli.source import Source, Span
from tests.said import compare

SOURCE = Source("y = a_long_name_of_a_value * a_long_name_of_a_value\nloss = sum(y)\n", "p.expr")
SPANS = [Span(SOURCE, 4, 51), Span(SOURCE, 59, 65), None, Span(Source("x", "other file"), 0, 1)]
FIGURES = [0, 1, 7, 99, 100, 994, 995, 996, 999, 1000, 1004, 9994, 9995, 9996, 99_949, 99_950]
LIMITS = (9994, 9996, 99_949, 99_951, 999_499, 999_500, 999_501)
FIGURES += [f * 10**e for f in LIMITS for e in (0, 3, 6, 9)]


def group(at: int) -> GroupPlan:
    pieces = tuple(Piece(SPANS[i % 4], i % 3 == 1, ("mul",)) for i in range(at))
    arrays = tuple(Array(f"a{i}", (3, i // 2), "float64", 24 * i) for i in range(at))
    row = (2,) * (at % 3)
    return GroupPlan(
        pieces, at, 8 * at, row, at, at % 2 + 1, at % 3 + 1, arrays, arrays[: at % 2],
        arrays[: at % 3], 10**at, 10**at, 10.0**-at, "for i:\n    a = b\n",
    )  # fmt: skip


def kernel(at: int) -> KernelPlan:
    piece = Piece(SPANS[at % 4], at % 2 > 0, ())
    return KernelPlan(
        "mul" * at, piece, (at,), "float32", at % 3, at, at % 4, 10**at, 10**at, 1e-3 / (at + 1)
    )


PLANS = [
    PlanData(how, units, 2, 1, 4096, 10**6, 10**7, 1e-3)
    for how in ("plan", "nodes")
    for units in (
        (), (kernel(1),), (group(1),), tuple(map(group, range(1, 7))),
        tuple(map(kernel, range(6))), (group(3), kernel(4), group(2)), (kernel(2),) * 40,
        (kernel(2),) * 41,
    )
]  # fmt: skip


def profile(count: int) -> Profile:
    lines = tuple(
        ProfileLine(SPANS[i % 4], i % 2 > 0, i + 1, 1000 * i, 1e-6 * 3**i, 1 / count)
        for i in range(count)
    )
    return Profile(lines, 1.0, 0.5, 0.25, 0.125, 0.0625, 3)


def test_plans(request: pytest.FixtureRequest) -> None:
    ways = [(plan, width, more) for plan in [*PLANS, None] for width in (39, 40, 75, 76)
            for more in (False, True)]  # fmt: skip
    ways += [(PLANS[5], width, False) for width in range(20, 112)]
    ways += [(PlanData("plan", (kernel(6),), 2, 1, 1, 1, 1, 1e-3), 111, False)]  # BLAS alone
    shown = [f"{plan_lines(plan, width, more, more)}" for plan, width, more in ways]
    compare(request, ["\n".join(shown[at::30]) for at in range(30)], 2)


def test_profiles(request: pytest.FixtureRequest) -> None:
    shown = [f"{profile_lines(profile(count), 'p.expr', width, all)}" for count in (5, 20, 21)
             for width in (*range(20, 112, count - 4),) for all in (False, True)]  # fmt: skip
    compare(request, ["\n".join(shown[at::20]) for at in range(20)], 2)


def test_times_of_both_passes() -> None:
    """Of those of even numbers, and of odd ones."""
    title = profile_lines(profile(5), "p.expr", 80, True)[0]
    text = "".join(part for part, _ in title)
    assert "forward 91" in text
    assert "backward 30" in text


def test_figures(request: pytest.FixtureRequest) -> None:
    """Beyond the times that are left out of what is recorded: as words without their units."""
    said = [f"{count_text(n)} {size_text(n)} {seconds_text(n * 1e-9)[:-1]}" for n in FIGURES]
    compare(
        request,
        ["\n".join([*said, count_text(10**40), *(place_of(s, "p.expr") for s in SPANS)])],
    )
    assert seconds_text(inf) == "inf s"
    assert [seconds_text(n) for n in (0.9994, 0.9995)] == ["999 ms", "1.00 s"]
