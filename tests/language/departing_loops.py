"""Training loops that carry a state in every kind of place, and what departs from them.

`python -m tests.language.departing_loops` puts every departure at every statement of every loop, at
every step, and compares replay with no replay; the suite does so for a part of them, and has
PyTorch's numbers for some (`tests/oracles/snippets/loops.txt`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

HEAD = """\
import random
import torch
from torch import nn
torch.set_default_dtype(torch.float64)
torch.manual_seed(11)
random.seed(11)
w = torch.tensor([1.5, -0.75], requires_grad=True)
x = torch.tensor([[0.5, 1.0], [-1.0, 0.25], [2.0, -0.5]])
y = torch.tensor([1.0, 0.0, -1.0])
n, m, opt = 0, 1.0, None
"""

# Start, the statements of a step, and what is shown at the end.
LOOPS: dict[str, tuple[str, list[str], str]] = {
    "a counter": (
        "v, c = torch.tensor(0.5), 0",
        ["p = c * v", "c += 1"],
        "p, c",
    ),
    "a running mean": (
        "opt = torch.optim.SGD([w], lr=0.1, momentum=0.5)\nmean = 0.0",
        [
            "loss = ((x @ w - y) ** 2).mean() + mean * w.sum()",
            "mean = 0.8 * mean + 0.2 * loss.item()",
            "opt.zero_grad()",
            "loss.backward()",
            "opt.step()",
        ],
        "mean, loss",
    ),
    "the best so far": (
        "opt = torch.optim.Adam([w], lr=0.2)\nbest, worse = float('inf'), 0",
        [
            "loss = (w - worse).pow(2).sum()",
            "worse = 0 if loss.item() < best else worse + 1",
            "best = min(best, loss.item())",
            "opt.zero_grad()",
            "loss.backward()",
            "opt.step()",
        ],
        "best, worse",
    ),
    "items": (
        "state = {'n': 0, 'v': torch.zeros(2), 'at': [0.5, {'k': 1}]}",
        [
            "loss = (w * state['at'][0] - state['v']).pow(2).sum()",
            "state['n'] += 1",
            "state['at'][1]['k'] = state['at'][1]['k'] * 2 % 7",
            "loss.backward()",
            "w.data -= 0.05 * w.grad",
            "state['v'] = 0.9 * state['v'] + 0.1 * w.detach()",
            "state['at'][0] *= 0.95",
            "w.grad = None",
        ],
        "state",
    ),
    "attributes": (
        "class Meter:\n    total = 0\n    def __init__(self):\n"
        "        self.mean, self.seen = 0.0, []\n"
        "    def add(self, value):\n        Meter.total += 1\n"
        "        self.mean += (value - self.mean) / Meter.total\n        self.seen.append(value)\n"
        "meter = Meter()\nopt = torch.optim.RMSprop([w], lr=0.05)",
        [
            "loss = (x @ w - meter.mean).pow(2).mean()",
            "opt.zero_grad()",
            "loss.backward()",
            "meter.add(loss.item())",
            "opt.step()",
        ],
        "meter.mean, Meter.total, meter.seen",
    ),
    "closures": (
        "def decay():\n    rate = [0.2]\n    def now(by):\n        rate[0] *= by\n"
        "        return rate[0]\n"
        "    return now\nnow = decay()\nglobals_ = 0.1\ndef shifted(v):\n    return v - globals_",
        [
            "loss = shifted(w).pow(2).sum()",
            "loss.backward()",
            "step = now(0.95)",
            "w.data.sub_(step * w.grad)",
            "globals_ = globals_ + 0.01",
            "w.grad.zero_()",
        ],
        "globals_, step",
    ),
    "iterators": (
        "ticks = iter(range(1000))\ndef numbers():\n    k = 0\n    while True:\n        k += 1\n"
        "        yield k\nstream = numbers()",
        [
            "loss = (w * next(ticks)).sum()",
            "loss.backward()",
            "n = next(stream)",
            "w.data.sub_(0.001 * n * w.grad)",
            "w.grad = None",
        ],
        "n, next(ticks), next(stream)",
    ),
    "buffers": (
        "class Net(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
        "        self.a = nn.Linear(2, 2)\n        self.register_buffer('calls', torch.zeros(()))\n"
        "        self.count = 0\n    def forward(self, v):\n        self.calls += 1\n"
        "        self.count += 1\n        return torch.tanh(self.a(v)) * (1 + 0.01 * self.count)\n"
        "net = Net()\nopt = torch.optim.SGD(net.parameters(), lr=0.1)",
        [
            "opt.zero_grad()",
            "out = net(x)",
            "loss = (out.sum(1) - y).pow(2).mean()",
            "loss.backward()",
            "opt.step()",
            "net.a.weight.data.clamp_(-1, 1)",
        ],
        "net.calls, net.count, net.a.weight, net.a.weight.grad",
    ),
    "gradients that add up": (
        "opt = torch.optim.SGD([w], lr=0.01)",
        [
            "loss = (x @ w - y).pow(2).sum()",
            "loss.backward()",
            "opt.step()",
            "n = n + 1 if w.grad.sum() > 0 else n",
        ],
        "n, loss",
    ),
    "names that hold tensors": (
        "v, h, old = torch.zeros(2), torch.ones(2), torch.zeros(2)",
        [
            "loss = (w - old).pow(2).sum() + (h * w).sum()",
            "(g,) = torch.autograd.grad(loss, [w])",
            "v = 0.9 * v + g",
            "old, h = h, torch.tanh(h + v)",
            "with torch.no_grad(): w -= 0.05 * v",
        ],
        "v, h, old",
    ),
    "random numbers": (
        "opt = torch.optim.SGD([w], lr=0.05)",
        [
            "at = torch.randint(0, 3, (2,))",
            "loss = (x[at] @ w - y[at]).pow(2).sum()",
            "opt.zero_grad()",
            "loss.backward()",
            "opt.step()",
            "w.data += 0.01 * torch.randn(2)",
        ],
        "at, torch.rand(2), random.random()",
    ),
    "another generator": (
        "opt = torch.optim.SGD([w], lr=0.05)",
        [
            "m = 0.5 * m + random.random()",
            "loss = (w * m).pow(2).sum()",
            "opt.zero_grad()",
            "loss.backward()",
            "opt.step()",
        ],
        "m, random.random()",
    ),
    "lists that grow": (
        "losses, kept, lines, both = [], [], [], {'a': []}",
        [
            "loss = (x @ w - y).pow(2).mean()",
            "losses.append(loss.item())",
            "loss.backward()",
            "kept.append(w.detach().clone())",
            "w.data -= 0.1 * w.grad",
            "lines.append(f'{i} {loss.item():.5f}')",
            "w.grad = None",
            "both['a'].append((i, 0.5 * losses_[0]))",
            "losses_[0] += 1",
        ],
        "losses, kept, lines, both",
    ),
    "printed": (
        "opt = torch.optim.Adagrad([w], lr=0.3)",
        [
            "opt.zero_grad()",
            "loss = (x @ w - y).pow(2).mean()",
            "print(i, loss.item(), f'{m:.3f}')",
            "loss.backward()",
            "opt.step()",
            "m = m * 0.9 + float(loss)",
            "print('%d: %.4f' % (i, m))",
        ],
        "m",
    ),
    "a schedule": (
        "opt = torch.optim.SGD([w], lr=0.1, momentum=0.9)\n"
        "schedule = torch.optim.lr_scheduler.StepLR(opt, 5, gamma=0.5)",
        [
            "loss = (x @ w - y).pow(2).mean()",
            "opt.zero_grad()",
            "loss.backward()",
            "opt.step()",
            "schedule.step()",
        ],
        "opt.param_groups[0]['lr'], schedule.get_last_lr(), schedule.last_epoch",
    ),
    "inner loops": (
        "total = 0.0",
        [
            "for k in range(3):\n    loss = (x[k] @ w - y[k]) ** 2\n    loss.backward()\n"
            "    total += loss.item() * (k + 1)",
            "for p in (w,):\n    p.data.sub_(0.02 * p.grad)\n    p.grad.zero_()",
            "while total > 3:\n    total -= 1",
        ],
        "total, k",
    ),
    "chosen rows": (
        "total = 0.0\nrates = [0.1, 0.05, 0.02]",
        [
            "row, t = x[i % 3], y[i % 3]",
            "part = x[i % 2:i % 2 + 2]",
            "loss = (row @ w - t) ** 2 + part.mean() * w.sum()",
            "loss.backward()",
            "w.data -= rates[i % 3] * w.grad",
            "w.grad = None",
            "total += loss.item()",
        ],
        "total, row, part",
    ),
    "nothing carried": ("", ["z = (x * i).sum()", "q = z.item() + n"], "z, q"),
}
LOOPS["lists that grow"] = (
    "losses_ = [0]\n" + LOOPS["lists that grow"][0],
    *LOOPS["lists that grow"][1:],
)

DEPARTURES = [
    "for _ in range(i == {k}): pass",
    "if i == {k}: print('here', i, n, m)",
    "if i == {k}: w.data.add_(0.25)",
    "if i == {k}: w.grad = None",
    "if i == {k}: n, m = n + 3, m * 0.5",
    "if i == {k}: continue",
    "if i == {k}: break",
    "if i == {k} and opt is not None: opt.zero_grad()",
    "if i == {k} and opt is not None: opt.state.clear()",
    "if i == {k} and opt is not None: opt.param_groups[0]['lr'] *= 0.5",
    "if i == {k}: last = w.detach().clone()",
    "if i == {k}:\n    try: raise ValueError(i)\n    except ValueError as e: n += 1",
    "if i % 5 == {k} % 5: x = x * 1.1",
    "if w.grad is not None and w.grad.sum() > {k} / 4: m += 0.125",
]
STEPS = 13

END = """\
print(w, w.grad, n, m, i)
print({shown})
if opt is not None: print(opt.state_dict())
print(torch.rand(1), random.random())
"""


def indented(text: str) -> str:
    return "\n".join("    " + line for line in text.split("\n"))


def program(name: str, departure: str, at: int, k: int) -> str:
    """A loop with a departure before its statement `at`, in step `k`."""
    start, body, shown = LOOPS[name]
    lines = [*body[:at], departure.format(k=k), *body[at:]]
    loop = f"for i in range({STEPS}):\n" + indented("\n".join(lines))
    return HEAD + start + "\n" + loop + "\n" + END.format(shown=shown)


def programs() -> Iterator[tuple[str, int, int, int]]:
    """The loop, departure, statement and step of every program."""
    for name, (_, body, _) in LOOPS.items():
        for number in range(len(DEPARTURES)):
            for at in range(len(body) + 1):
                for k in range(STEPS):
                    yield name, number, at, k


def main() -> None:
    from tests.oracles.loops_fuzz import difference

    count = found = 0
    for name, number, at, k in programs():
        count += 1
        text = program(name, DEPARTURES[number], at, k)
        what = difference(text, torch="--torch" in sys.argv)
        if what is not None:
            found += 1
            print(f"{name}, statement {at}, step {k}, {DEPARTURES[number]}: {what}", flush=True)
    print(f"{count} programs, {found} differ")
    sys.exit(found > 0)


if __name__ == "__main__":
    main()
