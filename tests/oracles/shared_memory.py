"""Records what PyTorch prints where tensors share memory that changes between forward and backward:
every way to make a tensor with every change, and random programs of such statements.

Run it with `python -m tests.oracles.shared_memory`; PyTorch is needed only there. With `--n N` and
`--seed S` it compares N random programs of other seeds instead.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import random
import warnings
from itertools import product
from pathlib import Path

FIXTURE = Path(__file__).parents[1] / "fixtures" / "shared_memory.json.gz"

MAKES = (
    "u = w",
    "u = w.detach().requires_grad_()",
    "u = (w * 1.0).detach().requires_grad_()",
    "u = w.data.requires_grad_()",
    "u = (w * 1.0).data.requires_grad_()",
    "u = w[1:].detach().requires_grad_()",
    "u = w.detach()[1:].requires_grad_()",
    "u = w.view(2, 2).detach().requires_grad_()",
    "u = torch.nn.Parameter(w)",
    "u = torch.nn.Parameter(w.detach())",
    "u = torch.tensor([1., 2., 3., 4.], requires_grad=True); u.data = w",
    "u = torch.tensor([1., 2., 3., 4.], requires_grad=True); u.data = w.data",
    "u = torch.zeros(4, requires_grad=True)\nwith torch.no_grad(): u.copy_(w)",
    "u = w.clone().detach().requires_grad_()",
    "u = w.detach().requires_grad_(); u = u.detach().requires_grad_()",
    "u = w.detach().requires_grad_().view_as(w)",
    "u = w * 1.0",
    "u = w[:]",
    "u = torch.from_numpy(a).requires_grad_()",
    "u = w.detach().requires_grad_()\nwith torch.no_grad(): u -= 0.5",
    "u = w.detach().requires_grad_(); u.data.add_(0.25)",
)
USES = ("loss = u.pow(2).sum()", "loss = (u * v).sum()", "z = u.sin(); loss = (z * z).sum()")
CHANGES = (
    "u.data.mul_(0.5)",
    "w.data.mul_(0.5)",
    "w.data[1:].mul_(0.5)",
    "u.data = u.data * 0.5",
    "u.detach().mul_(0.5)",
    "w.detach().zero_()",
    "with torch.no_grad(): w.mul_(0.5)",
    "with torch.no_grad(): u.mul_(0.5)",
    "u.data.copy_(torch.ones_like(u))",
    "u.detach().numpy()[...] = 0.25",
    "u.data[..., 0] = 9.0",
    "w.data = w.data * 2.0",
    "a *= 0.5",
)
START = "import torch\nimport numpy as np\ntorch.set_default_dtype(torch.float64)\n"

NEW = (
    "{a}.detach().requires_grad_()", "{a}.data.requires_grad_()", "{a}.detach()", "{a}.data",
    "({a} * 1.5).detach().requires_grad_()", "{a}.t()", "{a}[0]", "{a}[:, 1]", "{a} * {b}",
    "{a}.reshape(-1)[:2]", "{a}.clone()", "{a}.clone().detach().requires_grad_()", "{a}.exp()",
    "torch.nn.Parameter({a}.detach())", "torch.nn.Parameter({a}.data)", "{a}.view_as({a})",
    "{a} + 1.0", "torch.from_numpy({a}.detach().numpy())", "{a}.expand(2, *{a}.shape)[1]",
    "{a}.detach()[0].requires_grad_()", "{a}.flatten()[:2].detach().requires_grad_()",
)  # fmt: skip
TERMS = (
    "{a}.pow(2).sum()", "({a} * {b}).sum()", "{a}.exp().sum()", "({a} * {a}).sum()", "{a}.norm()",
    "{a}.sin().mul({b}.cos()).sum()", "{a}.tanh().sum()", "torch.sigmoid({a}).sum()", "{a}.max()",
    "({a} / ({b} * {b} + 2)).sum()", "torch.nn.functional.mse_loss({a}, {a}.detach() * 0.5)",
    "{a}.prod()", "{a}.log_softmax(-1).sum()",
)  # fmt: skip
WRITES = (
    "{a}.data.mul_(0.5)", "{a}.data = {a}.data * 0.5", "{a}.detach().mul_(0.5)", "{a}.grad = None",
    "with torch.no_grad(): {a}.mul_(0.5)", "with torch.no_grad(): {a}.add_({b})", "{a}.detach_()",
    "{a}.data.copy_({b}.data)", "{a}.detach().numpy()[...] = 0.25", "{a}.data[0] = 3.0",
    "{a}.data = {b}.data", "{a}.detach()[0].zero_()", "{a}.data.view(-1)[0] = 1.0", "{a}.mul_(2.0)",
    "{a}.requires_grad_(False)", "{a}[0] = 0.5", "with torch.no_grad(): {a}.copy_({b})",
    "{a}.data.fill_(0.75)", "{a}.data.add_({b}.data)", "{a}.data.neg_()",
)  # fmt: skip
OTHERS = (
    "if loss.requires_grad: loss.backward(retain_graph=True)", "opt.step()", "opt.zero_grad()",
)  # fmt: skip
SEEDS = range(200, 400)


def grid() -> list[str]:
    """Every way to make a tensor and change what it looks at before backward, in uses in turn."""
    return [
        f"{START}a = np.array([0.3, -0.7, 1.5, 2.0])\n"
        f"w = torch.tensor([0.4, -0.8, 1.2, -2.0], requires_grad=True)\n{make}\n"
        f"v = torch.full_like(u, 3.0).detach().requires_grad_()\n{use}\n{change}\n"
        "loss.backward()\nprint(u.grad, w.grad, v.grad, u.detach(), w.detach())"
        for (i, make), (j, change) in product(enumerate(MAKES), enumerate(CHANGES))
        for use in [USES[(i + j) % len(USES)]]
    ]


def program(seed: int) -> str:
    """Some of those statements, of several tensors, in any order."""
    r = random.Random(seed)
    names = ["w", "x"]
    lines = [
        "w = torch.tensor([[0.4, -0.8], [1.2, -2.0]], requires_grad=True)",
        "x = torch.tensor([[1.5, 0.5], [-0.3, 0.9]], requires_grad=True)",
        "loss = torch.zeros(())",
        "opt = torch.optim.SGD([w, x], lr=0.1)",
    ]
    for _ in range(r.randint(4, 10)):
        operands = {"a": r.choice(names), "b": r.choice(names)}
        kind = r.random()
        if kind < 0.35:
            names.append(f"t{len(names) - 1}")
            lines.append(f"{names[-1]} = {r.choice(NEW).format(**operands)}")
        elif kind < 0.7:
            lines.append(f"loss = loss + {r.choice(TERMS).format(**operands)}")
        else:
            choice = WRITES if kind < 0.95 else OTHERS
            lines.append(r.choice(choice).format(**operands))
    lines.append("if loss.requires_grad: loss.backward()")
    for n in names:
        lines.append(f"print({n}.detach(), {n}.grad if {n}.is_leaf else '-', {n}.requires_grad)")
    return START + "\n".join(lines)


def torchs(text: str) -> tuple[str, bool]:
    """What PyTorch prints, and whether it raises."""
    from tests.oracles.programs import outcome

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.redirect_stdout(io.StringIO()):
            found = outcome(text)
    return found["stdout"], found["error"] is not None


def ours(text: str) -> tuple[str, bool]:
    """The same here."""
    from autodiff_cli.session import Options, run
    from autodiff_cli.source import Source

    report = run(Source(text, "program.py"), Options(backward=False))
    return report.stdout, report.error is not None


def agrees(found: tuple[str, bool], true: tuple[str, bool]) -> bool:
    """Whether both raise, or print the same."""
    return found[1] == true[1] and (true[1] or found[0] == true[0])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    if given.n is None:
        cases = [(text, *torchs(text)) for text in (*grid(), *map(program, SEEDS))]
        data = json.dumps(cases, indent=0).encode()
        FIXTURE.write_bytes(gzip.compress(data, mtime=0))
        return
    differ = 0
    for seed in range(given.seed, given.seed + given.n):
        text = program(seed)
        true, found = torchs(text), ours(text)
        if not agrees(found, true):
            differ += 1
            print(f"--- seed {seed}: PyTorch {true}, here {found}\n{text}")
    print(f"{given.n} programs, {differ} differ")


if __name__ == "__main__":
    main()
