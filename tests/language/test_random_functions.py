"""Seeded programs print what PyTorch printed; wrong arguments are explained."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from autodiff_cli.errors import AutodiffError
from autodiff_cli.graph.state import STATE
from autodiff_cli.language.program.running import run_program
from autodiff_cli.language.random import names
from autodiff_cli.language.random.functions import RANDOM, RANDOM_METHODS
from autodiff_cli.language.runtime import attributes
from autodiff_cli.language.values.functions import call_value
from autodiff_cli.session import Options
from autodiff_cli.source import Source
from tests.said import said
from tests.together import together

FIXTURE = json.loads(
    (Path(__file__).parents[1] / "fixtures" / "random_functions.json").read_text("utf-8")
)
NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?")


def printed(program: str) -> str:
    pieces: list[str] = []
    report = run_program(Source(program, "<test>"), Options(write=pieces.append, backward=False))
    if report.error is not None:
        raise report.error
    return "".join(pieces)


@together(FIXTURE["cases"], lambda case: case["program"])
def test_as_pytorch(case: dict[str, str]) -> None:
    found = printed(FIXTURE["prelude"] + case["program"] + FIXTURE["ending"])
    assert NUMBER.sub("#", found) == NUMBER.sub("#", case["printed"])
    for ours, theirs in zip(NUMBER.findall(found), NUMBER.findall(case["printed"]), strict=True):
        assert float(ours) == pytest.approx(float(theirs), rel=2e-4, abs=1.01e-4)


def test_names_are_those_that_exist() -> None:
    assert set(RANDOM) == names.RANDOM_NAMES
    assert set(RANDOM_METHODS) == set(attributes.RANDOM_METHOD_NAMES) <= set(attributes.METHODS)


def test_unseeded_programs_repeat() -> None:
    program = "import torch\nprint(torch.rand(3))\n"
    assert printed(program) == printed(program)


def test_native_files_draw_in_their_own_dtype() -> None:
    assert (
        printed("n = 3\nmanual_seed(0)\nprint(rand(n, 2).dtype, randn((n,)).shape)\n")
        == "torch.float64 torch.Size([3])\n"
    )


def test_seed_is_not_repeatable() -> None:
    assert call_value(RANDOM["seed"], [], {}) != call_value(RANDOM["seed"], [], {})
    STATE.reset()


@together([
        ("E205", "torch.rand()"),
        ("E205", "torch.rand(2.5)"),
        ("E205", "torch.rand(2, size=(2,))"),
        ("E309", "torch.rand(-1)"),
        ("E505", "torch.rand(10**12)"),
        ("E505", "torch.randn(10**6, 10**6)"),
        ("E505", "torch.empty(10**12)"),
        ("E505", "torch.randperm(10**12)"),
        ("E307", "torch.rand(2, dtype=torch.int64)"),
        ("E205", "torch.rand(2, dtype=3)"),
        ("E205", "torch.rand(2, colour=1)"),
        ("E203", "torch.rand(2, device='cuda')"),
        ("E205", "torch.rand(2, generator=3)"),
        ("E306", "torch.randint(3, (2,), requires_grad=True)"),
        ("E205", "torch.randint(3)"),
        ("E205", "torch.randint(3, 4)"),
        ("E205", "torch.randint(0, 3, (2,), high=4)"),
        ("E205", "torch.randint(1, 2, 3, 4)"),
        ("E205", "torch.randint(5, 5, (2,))"),
        ("E205", "torch.normal(1.0, 2.0)"),
        ("E205", "torch.normal(torch.zeros(2), 1.0, (2,))"),
        ("E205", "torch.normal(torch.zeros(2), -1.0)"),
        ("E302", "torch.normal(torch.zeros(2), torch.ones(3))"),
        ("E205", "torch.bernoulli(0.5)"),
        ("E205", "torch.bernoulli(torch.tensor([2.0]))"),
        ("E205", "torch.multinomial(torch.ones(3), 4)"),
        ("E405", "torch.zeros(2, requires_grad=True).uniform_()"),
        ("E205", "torch.zeros(2).uniform_(3, 1)"),
        ("E205", "torch.zeros(2).normal_(0, -1)"),
        ("E307", "torch.zeros(2, dtype=torch.int64).normal_()"),
        ("E205", "F.dropout(torch.ones(2), 2)"),
        ("E205", "F.dropout(3.0)"),
        ("E307", "F.dropout(torch.arange(3))"),
        ("E308", "F.dropout2d(torch.ones(3))"),
        ("E308", "F.dropout1d(torch.ones(3))"),
        ("E405", "F.dropout(torch.ones(2, requires_grad=True), inplace=True)"),
        ("E308", "nn.init.xavier_uniform_(torch.empty(3))"),
        ("E205", "nn.init.xavier_uniform_(3)"),
        ("E205", "nn.init.calculate_gain(3)"),
        ("E205", "nn.init.calculate_gain('nothing')"),
        ("E205", "torch.manual_seed('a')"),
        ("E205", "torch.manual_seed(2**70)"),
        ("E205", "torch.set_rng_state(3)"),
        ("E205", "torch.set_rng_state(torch.zeros(5056, dtype=torch.uint8))"),
        ("E207", "torch.Generator().words"),
        ("E203", "torch.Generator(device='cuda')"),
    ])  # fmt: skip
def test_wrong_arguments_are_explained(code: str, expression: str) -> None:
    imports = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
    with pytest.raises(AutodiffError) as caught:
        printed(f"{imports}print({expression})\n")
    assert caught.value.code == code, caught.value
    assert caught.value.diagnostic.helps
    assert caught.value.diagnostic.span is not None


# One argument of each is not what it may be.
WRONG = """
F.dropout(x, 'a') | F.dropout(x, p=-0.5) | F.dropout(x, 1.5) | torch.dropout(x, 2.0, True)
torch.dropout(x, 'a', True) | torch.feature_dropout(x[0], 0.5, True)
F.alpha_dropout(i, 0.5, True) | F.feature_alpha_dropout(x[0], 0.5, True)
F.dropout1d(x[None, None]) | F.dropout3d(3) | F.rrelu(3) | F.rrelu(x, 'a') | F.rrelu(x, 0.1, 'b')
F.rrelu(w, inplace=True) | F.gumbel_softmax(3) | F.gumbel_softmax(x, 'a')
F.fractional_max_pool2d(3, 2) | torch.rand('a') | torch.rand(size='a') | torch.rand(2, size=2)
torch.rand() | torch.rand(2, dtype='a') | torch.rand(2, siz=3) | torch.randint('a', (2,))
torch.randint('a', 3, (2,)) | torch.randint(3, 'a') | torch.randint(1, 2, 3, 4)
torch.randint(2, 3, (2,), low=1) | torch.randint(low=1, size=(2,)) | torch.randint(3, 4)
torch.randperm('a') | torch.randn_like(3) | torch.randint_like(3, 4) | torch.randint_like(x, 'a')
torch.randint_like(x, 'a', 4) | torch.empty_like(3) | torch.normal(1.0, 2.0)
torch.normal(x, x, (2,)) | torch.normal('a', 1.0, (2,)) | torch.normal(1.0, 'a', (2,))
torch.normal(1.0, 1.0, 'a') | torch.normal(x, 'a') | torch.normal('a', x) | torch.bernoulli(3)
torch.bernoulli(x, 'a') | torch.multinomial(3, 2) | torch.multinomial(x, 'a') | torch.poisson(3)
torch.binomial(3, x) | torch.binomial(x, 3) | torch.binomial(i, x) | torch.binomial(x, i)
x.random_('a') | x.random_(1, 'a') | x.bernoulli_('a') | x.exponential_('a') | x.geometric_('a')
x.cauchy_('a') | x.cauchy_(0, 'a') | x.log_normal_('a') | x.log_normal_(0, 'a') | x.uniform_('a')
x.uniform_(0, 'a') | x.normal_('a') | x.normal_(0, 'a') | nn.init.uniform_(3)
nn.init.uniform_(x, 'a') | nn.init.normal_(3) | nn.init.trunc_normal_(3)
nn.init.trunc_normal_(x, 'a') | nn.init.trunc_normal_(x, 0, 1, 'a') | nn.init.constant_(3, 1)
nn.init.constant_(x, 'a') | nn.init.ones_(3) | nn.init.zeros_(3) | nn.init.eye_(3)
nn.init.eye_(x[0]) | nn.init.dirac_(3) | nn.init.dirac_(x) | nn.init.dirac_(c, 'a')
nn.init.dirac_(c, 2) | nn.init.dirac_(c, 0) | nn.init.xavier_normal_(3)
nn.init.xavier_normal_(x, 'a') | nn.init.kaiming_normal_(3) | nn.init.kaiming_normal_(x, 'a')
nn.init.orthogonal_(3) | nn.init.orthogonal_(x, 'a') | nn.init.orthogonal_(x[0])
nn.init.sparse_(3, 0.1) | nn.init.sparse_(x, 'a') | nn.init.sparse_(x, 0.1, 'a')
nn.init.sparse_(x[0], 0.1) | nn.init.sparse_(x, 1.5) | nn.init.calculate_gain(3)
nn.init.calculate_gain('leaky_relu', 'a') | g.manual_seed('a') | g.manual_seed(None)
g.set_state(x) | torch.manual_seed('a') | g.words | torch.rand(2, generator=3)
torch.rand(2, requires_grad=3)
"""


def test_words_of_wrong_arguments() -> None:
    imports = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"
    values = "x, i, c = torch.ones(2, 2), torch.arange(4), torch.ones(3, 3, 3)\n"
    values += "w, g = torch.ones(2, requires_grad=True), torch.Generator()\n"
    calls = "".join(
        f"try: {call.strip()}\nexcept Exception as e: print(type(e).__name__, e)\n"
        for line in WRONG.strip().splitlines()
        for call in line.split("|")
    )
    found = printed(imports + values + calls)
    said("language").compare("test_random_functions.py::wrong", [found], found.count("\n"))
