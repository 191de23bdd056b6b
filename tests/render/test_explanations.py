"""Explanations at every width, where each line of the program stands beside its step, and as
documents; formulas of second order; lines of a repair."""

from __future__ import annotations

import re

import numpy as np
import pytest

from autodiff_cli.explain.derive import derive_source
from autodiff_cli.explain.model import Explanation, Request
from autodiff_cli.explain.source import explain_source
from autodiff_cli.render.explanations import derive
from autodiff_cli.render.explanations.explain import EDGE, MOST, Style, plain
from autodiff_cli.render.explanations.explain_documents import markdown, shown_value
from autodiff_cli.render.explanations.why import changes
from autodiff_cli.render.values import Look
from autodiff_cli.session import Options
from autodiff_cli.source import Source
from autodiff_cli.why.model import Answer
from tests.said import compare


def chain(count: int) -> str:
    """So many statements."""
    steps = "".join(f"h{at + 1} = tanh(h{at} * 1.01)\n" for at in range(count))
    return f"h0 = 0.5\n{steps}loss = h{count}"


TWICE = "x = [0.5, 2]\nw = [1.25, 3]\nfor i in range(2):\n    x = tanh(x * w)\n" + (
    f"y = sum({'sin(' * 40}x{')' * 40})\nloss = y * 2"
)
PROGRAMS = {
    "twice": TWICE,
    "names": f"n = 2; {'a' * 13} = 3; {'b' * 14} = 4\nloss = n * {'a' * 13} + n * {'b' * 14}",
    "numbers": "A = [[1, 2], [3, 4]]; v = [1, 2, 3]; x = 2; loss = sum(A * x) + sum(v * x)",
    "alone": "loss = 3.5",
    "limit": "x = [1, 2, 3, 4, 5]; n_1 = 2\n日本国 = [1, 2]\nh = sum(日本国 * 日本国) + 日本国[0]\n"
    "loss = sum(x * [100001, 100002, 100003, 100004, 100005]) + n_1 * n_1 + h" + "\n" * 6,
}
LOOKS = [Look(), Look(max_elements=3), Look(max_elements=0, precision=3)]


def explained(text: str) -> Explanation:
    name = "p.py" if text.startswith("import") else "p.expr"
    found = explain_source(Source(text, name), Options(), Request())
    assert found.error is None, found.error
    return found


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_width(name: str, request: pytest.FixtureRequest) -> None:
    text = PROGRAMS[name]
    found, lines = explained(text), tuple(text.split("\n"))
    shown = [
        plain(found, Style(look._replace(width=width), symbolic, lines))
        for width in range(8, 112, 1 if len(lines) < 9 else 7)
        for look, symbolic in [(LOOKS[width % 3], False), *[(LOOKS[0], True)] * (width % 9 == 0)]
    ]
    shown += [markdown(found, look) for look in LOOKS]
    compare(request, ["".join(shown[at::8]) for at in range(8)], 6)


def test_which_names_are_padded() -> None:
    """Those of totals where the longest has at most 20 cells."""
    for size, aligned in ((17, True), (18, False)):
        text = f"x = 2; {'n' * size} = 3; loss = x * {'n' * size}"
        assert (
            bool(re.search(r"g\(x\) {3,}= 3\n", plain(explained(text), Style(Look())))) == aligned
        )


def test_how_many_parts_are_all_shown() -> None:
    for count in (MOST, MOST + 1):
        found = explained(chain(count))
        assert (len(found.forward), found.grouped) == (count, True)
        more = f"… {count - 2 * EDGE} more (--all)"
        assert plain(found, Style(Look())).count(more) == 2 * (count > MOST)


def test_which_of_two_backward_passes() -> None:
    text = "x = [1.0, 2.0]\nsum(x * x).backward()\nsum(x ** 3).backward()\n"
    assert "backward 2 of 2" in plain(explained(text), Style(Look()))


def test_what_the_gradient_of_two_seeds_is_of() -> None:
    text = "import torch\nx = torch.tensor([1.0, 2.0], requires_grad=True)\n"
    text += "a = (x * x).sum()\nb = x.sum()\ntorch.autograd.backward([a, b])\n"
    assert "g(v) means d (a + b) / d v" in plain(explained(text), Style(Look()))


def test_what_is_too_large_to_be_shown() -> None:
    for size, most, whole in (
        (3, 3, True),
        (4, 3, False),
        (1, 0, True),
        (2, 0, False),
        (2, 1, False),
    ):
        shown = shown_value(np.ones(size), Look(max_elements=most))
        assert shown.startswith("[1") == whole


@pytest.mark.parametrize(("order", "head"), [(1, r"\nabla_{w} \ell"), (2, r"\nabla^{2}_{w} \ell")])
def test_latex_of_both_orders(order: int, head: str) -> None:
    found = derive_source(
        Source("w = [1, 2]; loss = sum(w**3)", "p"), Options(), Request(), order=order
    )
    assert head in derive.latex(found)


@pytest.mark.parametrize("lines", [8, 9, 10, 99, 100])
@pytest.mark.parametrize("end", ["", "\n"])
def test_numbers_of_repaired_lines(lines: int, end: str) -> None:
    """As wide as the number of the last line."""
    text = "x = 1\n" * (lines - 1) + f"y = 2{end}"
    answer = Answer("x", "", "", None, "", text.replace("y = 2", "y = 3"))
    assert changes(answer, Source(text, "p")) == [f"{lines} - y = 2", f"{lines} + y = 3"]
    fixed = Answer("x", "", "", None, "", f"z = 0\n{text[6:]}")
    size = len(str(lines))
    assert changes(fixed, Source(text, "p")) == [f"{1:>{size}} - x = 1", f"{1:>{size}} + z = 0"]
    longer = f"{text.rstrip()}\nz = 3"
    for before, after, sign in ((text, longer, "+"), (longer, text, "-")):
        fixed = Answer("x", "", "", None, "", f"x = 0{after[5:]}")
        size = len(str(lines + 1))
        assert changes(fixed, Source(before, "p")) == [
            f"{1:>{size}} - x = 1", f"{1:>{size}} + x = 0", f"{lines + 1} {sign} z = 3"
        ]  # fmt: skip
