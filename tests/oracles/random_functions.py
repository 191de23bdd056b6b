"""Write tests/fixtures/random_functions.json: what seeded programs print under PyTorch.

Run `python -P tests/oracles/random_functions.py` where PyTorch is installed; the tests read only
the JSON file. Every program runs after `PRELUDE` and ends with a draw that shows how many random
words it used.
"""

from __future__ import annotations

import contextlib
import io
import json
import warnings
from pathlib import Path

import torch

FIXTURE = Path(__file__).parents[1] / "fixtures" / "random_functions.json"

PRELUDE = """import torch
import torch.nn as nn
import torch.nn.functional as F
torch.manual_seed(7)
x = torch.tensor([[0.5, -1.0, 2.0, -0.25], [1.5, -3.0, 0.75, 4.0]], requires_grad=True)
p = x.sigmoid()
g = torch.Generator().manual_seed(11)
wide = torch.zeros(4, 5)
"""
ENDING = "print(torch.randint(0, 1000, (4,)))\n"

EXPRESSIONS = [
    "torch.rand(2, 3)",
    "torch.rand((2, 3))",
    "torch.rand(size=[2])",
    "torch.rand(())",
    "torch.rand(3, dtype=torch.float64, requires_grad=True)",
    "torch.rand(2, generator=g)",
    "torch.randn(3)",
    "torch.randn(20)",
    "torch.randn(torch.Size([2, 2]), dtype=torch.float64)",
    "torch.randint(5, (3,))",
    "torch.randint(2, 5, (3,))",
    "torch.randint(5, size=(3,))",
    "torch.randint(low=1, high=9, size=(2, 2))",
    "torch.randint(1, high=9, size=(2,))",
    "torch.randint(0, 2, (6,), dtype=torch.bool)",
    "torch.randint(3, (2,), dtype=torch.float32)",
    "torch.randperm(6)",
    "torch.randperm(4, dtype=torch.int32)",
    "torch.normal(0.0, 1.0, (2, 2))",
    "torch.normal(1, 2, size=(2,), generator=g)",
    "torch.normal(p, 0.5)",
    "torch.normal(1.0, p)",
    "torch.normal(p, p)",
    "torch.normal(p)",
    "torch.normal(torch.arange(3.0), std=torch.ones(3))",
    "torch.normal(mean=1.0, std=p.detach())",
    "torch.bernoulli(p)",
    "torch.bernoulli(p.detach(), generator=g)",
    "p.bernoulli()",
    "torch.ones(6).bernoulli(0.3)",
    "torch.bernoulli(torch.ones(5), 0.5)",
    "torch.multinomial(p.detach(), 2)",
    "p[0].multinomial(5, replacement=True)",
    "torch.multinomial(torch.tensor([1.0, 2.0, 3.0]), 1)",
    "torch.poisson(4 * p)",
    "torch.poisson(torch.full((3,), 20.0), generator=g)",
    "torch.rand_like(x)",
    "torch.randn_like(x, dtype=torch.float64)",
    "torch.randn_like(wide.T)",
    "torch.randint_like(x, 5)",
    "torch.randint_like(wide.T, 5, 9)",
    "torch.rand_like(wide.T)",
    "torch.empty(2, 3).shape",
    "torch.empty_like(x).dtype",
    "wide.T.uniform_()",
    "wide.T.normal_()",
    "wide.T.random_(100)",
    "wide.T.exponential_()",
    "wide.T.bernoulli_(0.5)",
    "wide.T.bernoulli_(torch.full((4,), 0.5))",
    "wide.T.geometric_(0.3)",
    "wide.uniform_(-1, to=1)",
    "wide.normal_(2, std=3)",
    "wide.random_(5, 9)",
    "wide.cauchy_(1, 2)",
    "wide.log_normal_(0, 1)",
    "torch.zeros(3, dtype=torch.int64).random_()",
    "(2 * x).uniform_()",
    "(2 * x).normal_()",
    "(2 * x).bernoulli_(0.5)",
    "(2 * x).bernoulli_(p)",
    "(2 * x).exponential_()",
    "(2 * x).random_()",
    "(2 * x).cauchy_()",
    "(2 * x).geometric_(0.5)",
    "(2 * x).log_normal_()",
    "(2 * x).random_(2)",
    "(2 * x).random_(1, 3)",
    "F.dropout(x)",
    "F.dropout(x, 0.3, True)",
    "F.dropout(x, 0.3, training=False) is x",
    "F.dropout(x, p=0.0) is x",
    "F.dropout(x, p=1.0)",
    "F.dropout(2 * x, 0.5, inplace=True)",
    "F.dropout(wide.T + 1)",
    "torch.dropout(x, 0.5, True)",
    "torch.dropout(x, 0.5, train=False) is x",
    "F.dropout1d(x.reshape(1, 4, 2))",
    "F.dropout1d(x)",
    "F.dropout2d(x.reshape(2, 2, 2, 1))",
    "F.dropout2d(x.reshape(2, 2, 2))",
    "F.dropout3d(x.reshape(2, 2, 2, 1, 1))",
    "F.dropout3d(x.reshape(2, 2, 2, 1))",
    "F.dropout3d(x.reshape(2, 2, 2, 1), training=False)",
    "F.alpha_dropout(x, training=True)",
    "F.alpha_dropout(x) is x",
    "F.alpha_dropout(wide.T + 1, 0.2, True)",
    "F.feature_alpha_dropout(x.reshape(2, 2, 2), 0.3, True)",
    "F.alpha_dropout(x, 1.0, True)",
    "F.rrelu(x)",
    "F.rrelu(x, training=True)",
    "F.rrelu(x, 0.1, 0.3, True)",
    "torch.rrelu(x, training=True)",
    "F.rrelu(2 * x, training=True, inplace=True)",
    "F.gumbel_softmax(x)",
    "F.gumbel_softmax(x, tau=0.5, hard=True)",
    "F.gumbel_softmax(x, dim=0)",
    "F.fractional_max_pool2d(torch.arange(50.0).reshape(1, 2, 5, 5), 2, output_size=(3, 2))",
    "nn.init.uniform_(x, -1, 1)",
    "nn.init.normal_(torch.empty(3, 2), std=0.1)",
    "nn.init.trunc_normal_(torch.empty(3, 6), std=0.02)",
    "nn.init.constant_(torch.empty(2), 3)",
    "nn.init.ones_(x)",
    "nn.init.zeros_(x)",
    "nn.init.eye_(torch.empty(2, 3))",
    "nn.init.dirac_(torch.empty(2, 2, 3))",
    "nn.init.xavier_uniform_(x)",
    "nn.init.xavier_normal_(torch.empty(4, 5), gain=nn.init.calculate_gain('relu'))",
    "nn.init.kaiming_uniform_(torch.empty(4, 5), a=5 ** 0.5)",
    "nn.init.kaiming_normal_(torch.empty(2, 3, 3), mode='fan_out', nonlinearity='relu')",
    "nn.init.orthogonal_(torch.empty(3, 4))",
    "nn.init.orthogonal_(torch.empty(4, 3), gain=2)",
    "nn.init.sparse_(torch.empty(4, 3), sparsity=0.5)",
    "nn.init.calculate_gain('leaky_relu', 0.2)",
    "nn.init.uniform_(torch.empty(3), generator=g)",
    "nn.init.normal_(wide.T)",
    "torch.initial_seed()",
    "g.initial_seed()",
    "g.device",
    "torch.random.manual_seed(3).initial_seed()",
    "torch.random.initial_seed()",
    "torch.default_generator.initial_seed()",
    "isinstance(g, torch.Generator)",
    "torch.get_rng_state()[:40]",
    "g.get_state().sum()",
]

PROGRAMS = [
    "a = torch.rand(3)\ns = torch.get_rng_state()\nb = torch.randn(5)\ntorch.set_rng_state(s)\n"
    "print(a, b, torch.randn(5), s.shape, s.sum())\n",
    "torch.randn(3)\nprint(torch.get_rng_state()[5000:])\n",
    "torch.rand(624)\nprint(torch.get_rng_state()[:30])\n",
    "s = g.get_state()\na = torch.rand(2, generator=g)\ng.set_state(s)\n"
    "print(a, torch.rand(2, generator=g))\n",
    "h = torch.Generator()\nprint(h.initial_seed(), torch.rand(2, generator=h))\n",
    "g.manual_seed(5)\nprint(torch.rand(2, generator=g), torch.rand(2))\n",
    "y = F.dropout(x, 0.4)\ny.pow(2).sum().backward()\nprint(y, x.grad)\n",
    "z = torch.bernoulli(p)\n(z * p).sum().backward()\nprint(z, x.grad)\n",
    "z = torch.normal(p, 2 * p)\nz.sum().backward()\nprint(x.grad)\n",
    "y = F.rrelu(x, training=True)\ny.sum().backward()\nprint(x.grad)\n",
    "y = F.alpha_dropout(x, 0.3, True)\ny.sum().backward()\nprint(x.grad)\n",
    "y = (x * 3).normal_()\n(y * x).sum().backward()\nprint(x.grad)\n",
    "F.gumbel_softmax(x, hard=True)[:, 0].sum().backward()\nprint(x.grad)\n",
    "torch.set_default_dtype(torch.float64)\n"
    "print(torch.rand(2), torch.randn(2), torch.normal(0.0, 1.0, (2,)))\n",
    "w = nn.Parameter(torch.empty(2, 3))\nnn.init.kaiming_uniform_(w, a=1)\nprint(w, w.is_leaf)\n",
    "with torch.no_grad():\n    x.uniform_()\nprint(x)\n",
]


def printed(source: str) -> str:
    """What a program prints."""
    torch.set_default_dtype(torch.float32)
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec(compile(source, "program", "exec"), {})
    return out.getvalue()


def main() -> None:
    """Write the fixture."""
    programs = [f"print({expression})\n" for expression in EXPRESSIONS] + PROGRAMS
    cases = [
        {"program": program, "printed": printed(PRELUDE + program + ENDING)} for program in programs
    ]
    document = {"prelude": PRELUDE, "ending": ENDING, "cases": cases}
    FIXTURE.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
