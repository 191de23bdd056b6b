"""Random loops that depart from themselves and carry state everywhere: with replay as early as it
can be, without, and in PyTorch.

    python -m tests.oracles.loops_fuzz --n 2000 --seed 1            # replay against no replay
    python -m tests.oracles.loops_fuzz --n 500 --seed 1 --torch     # and against PyTorch
    python -m tests.oracles.loops_fuzz --show 17                    # the program of a seed

Every difference is made smaller by leaving out lines and printed. What was found so far is in
`tests/language/departing_loops.py` and `snippets/loops.txt`.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from typing import Any

from autodiff_cli.session import Options, run
from autodiff_cli.source import Source
from tests.language.replaying import early, replays_off

HEAD = """\
import collections, itertools, math, random
import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
torch.set_default_dtype(torch.float64)
torch.set_printoptions(precision=9)
torch.manual_seed(3)
random.seed(5)
np.random.seed(7)
w = torch.tensor([2.0, -1.0, 0.5], requires_grad=True)
u = torch.tensor([0.3, 0.1, -0.7], requires_grad=True)
X = torch.arange(24.0).reshape(8, 3) / 10
Y = torch.arange(8.0) / 5
t, m, best, bad, scale, last, flag, mode = 0, 0.5, 1e9, 0, 1.0, None, True, 'a'
d = {'n': 0, 'm': 0.5, 'v': torch.zeros(3), 'inner': {'k': 1.0}}
h = [0.0, 1, torch.ones(3)]
losses, kept, texts, hist = [], [], [], {'a': [], 'b': []}
buf = torch.zeros(3)
ema = torch.ones(3)
prev = torch.zeros(3)
lr = 0.05
class S:
    k = 0
    def __init__(self):
        self.m = 0.0
        self.n = 1
        self.v = torch.zeros(3)
        self.log = []
    def step(self, x):
        self.n += 1
        self.m = 0.9 * self.m + x
        return self.m
    def bump(self):
        S.k += 1
        return S.k
s = S()
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 2)
        self.register_buffer('seen', torch.zeros(()))
        self.calls = 0
    def forward(self, x):
        self.calls += 1
        return torch.tanh(self.lin(x))
net = Net()
plain = nn.Sequential(nn.Linear(3, 2), nn.Tanh())
cell = [0]
def tick():
    cell[0] += 1
    return cell[0]
def reads():
    return t * 0.1 + m
def reads_tensor():
    return (w.detach() * ema).sum()
def reads_grad():
    return 0.0 if w.grad is None else w.grad.sum().item()
def make():
    n = [1.0]
    def inner(x):
        n[0] = n[0] * 0.9 + x
        return n[0]
    return inner
inner = make()
def count():
    n = 0
    while True:
        n += 1
        yield n
stream = count()
it = iter(range(10000))
ticks = itertools.count()
dq = collections.deque(maxlen=3)
"""

OPTIMIZERS = [
    "opt = torch.optim.SGD([w, u], lr=0.05)",
    "opt = torch.optim.SGD([w, u], lr=0.05, momentum=0.8)",
    "opt = torch.optim.SGD([w, u], lr=0.02, momentum=0.8, nesterov=True, weight_decay=0.1)",
    "opt = torch.optim.Adam([w, u], lr=0.05)",
    "opt = torch.optim.RMSprop([w, u], lr=0.02, momentum=0.3)",
    "opt = torch.optim.Adagrad([{'params': [w], 'lr': 0.1}, {'params': [u]}], lr=0.05)",
    "opt = torch.optim.AdamW([*net.parameters(), w, u], lr=0.02)",
]
SCHEDULES = [
    "sched = torch.optim.lr_scheduler.StepLR(opt, 4, gamma=0.5)",
    "sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)",
    "sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda e: 1 / (1 + e))",
    "sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 7)",
]

LOSSES = [
    "loss = (w - 0.1).pow(2).sum() + (u * w).sum()",
    "loss = (w - m * 0.01).pow(2).sum() + u.pow(2).sum() / (t + 1)",
    "loss = ((X @ w - Y) ** 2).mean() + u.abs().sum() * scale",
    "loss = ((X[i % 8] * w).sum() - Y[i % 8]) ** 2 + u.pow(2).sum()",
    "k = i % 4\nloss = ((X[k:k + 4] @ w - Y[k:k + 4]) ** 2).mean() + (u - d['m']).pow(2).sum()",
    "loss = (net(X).pow(2).mean() + (w * u).sum().pow(2)) * (1 + 0.01 * i)",
    "loss = plain(X * w).pow(2).mean() + (u - s.m).pow(2).sum()",
    "loss = (w * ema).sum().pow(2) + (u - h[0]).pow(2).sum()",
    "loss = (w * torch.rand(3)).sum().pow(2) + u.pow(2).sum()",
    "loss = (w - reads()).pow(2).sum() + u.pow(2).sum()",
    "loss = (w * (1 + reads_tensor())).pow(2).sum() * 0.1 + u.sum().pow(2)",
    "loss = F.mse_loss(X @ w, Y * scale) + F.smooth_l1_loss(u, prev)",
    "idx = torch.randint(0, 8, (3,))\nloss = ((X[idx] @ w - Y[idx]) ** 2).mean() + u.pow(2).sum()",
    "loss = torch.stack([(w * k).sum() for k in (1, 2)]).pow(2).mean() + u.pow(2).sum()",
]

UPDATES = [
    "opt.zero_grad(); loss.backward(); opt.step()",
    "opt.zero_grad()\nloss.backward()\nopt.step()",
    "loss.backward()\nopt.step()\nopt.zero_grad()",
    "opt.zero_grad()\nloss.backward()\ntorch.nn.utils.clip_grad_norm_([w, u], 1.0)\nopt.step()",
    "loss.backward()\nwith torch.no_grad():\n    w -= lr * w.grad\n    u -= lr * u.grad\n"
    "w.grad = None\nu.grad = None",
    "loss.backward()\nwith torch.no_grad():\n    for p in (w, u):\n        p -= lr * p.grad\n"
    "        p.grad.zero_()",
    "gw, gu = torch.autograd.grad(loss, [w, u])\nwith torch.no_grad():\n    w -= lr * gw\n"
    "    u.sub_(lr * gu)",
    "loss.backward()\nw.data -= lr * w.grad\nu.data.add_(u.grad, alpha=-lr)\nw.grad.zero_()\n"
    "u.grad = None",
    "loss.backward()\nif i % 3 == 2:\n    opt.step()\n    opt.zero_grad()",
]

# What a step may carry to the next one.
CARRIED = [
    "t += 1", "m = 0.9 * m + 0.1 * loss.item()", "m = 0.5 * m + 0.01 * i", "scale *= 0.99",
    "scale = 1 / (1 + i)", "last = loss.item()", "best = min(best, loss.item())",
    "bad = 0 if loss.item() < best else bad + 1",
    "if loss.item() < best:\n    best = loss.item()\n    bad = 0\nelse:\n    bad += 1",
    "flag = not flag", "mode = 'b' if mode == 'a' else 'a'",
    "d['n'] += 1", "d['m'] = 0.9 * d['m'] + loss.item() * 0.1", "d['inner']['k'] *= 0.9",
    "d['v'] = 0.9 * d['v'] + w.detach()", "d['v'].mul_(0.9).add_(w.detach())",
    "d['last'] = loss.item()", "d[i] = m", "d = {**d, 'n': d['n'] + 1}",
    "h[0] = 0.5 * h[0] + 0.1", "h[1] += 1", "h[2] = h[2] * 0.9", "h[2].add_(0.1)",
    "h[0], h[1] = h[1] * 0.5, h[0] + 1", "h.append(i)\nh.pop()",
    "s.m = 0.9 * s.m + 0.1 * loss.item()", "s.n += 1", "s.v = s.v * 0.9 + w.detach()",
    "s.v += 1", "s.step(0.1)", "s.step(loss.item())", "s.bump()", "S.k += 1", "s.log.append(m)",
    "s.z = loss.detach()", "s.out = loss",
    "buf.mul_(0.9).add_(w.detach())", "buf += 1", "buf = buf * 0.9 + w.detach()", "buf[0] += 1",
    "held = torch.ones(3) * 2\nrow = held[i % 3]\nheld.mul_(3)\nema = ema - row",
    "held = [1.0, 2.0, 3.0]\nm = m * 0.5 + held[i % 3]\nheld[0] = 5.0",
    "buf[i % 3] = m", "ema = 0.9 * ema + 0.1 * w.detach()", "ema = torch.maximum(ema, u.detach())",
    "prev = w.detach().clone()", "prev, ema = ema, prev", "prev = w.detach()", "prev = u.data",
    "prev = buf", "g = None if w.grad is None else w.grad.clone()",
    "losses.append(loss.item())", "losses.append((i, loss.item()))", "kept.append(loss.detach())",
    "kept.append(w.detach().clone())", "kept.append(w.grad)", "kept.append(ema)",
    "kept = kept + [m]",
    "hist['a'].append(m)", "hist['b'].append(t)", "texts.append(f'{i} {loss.item():.4f}')",
    "texts.append(str(t))", "dq.append(m)", "losses.append(len(losses))", "losses += [m]",
    "print(i, f'{loss.item():.6f}')", "print('%d %.5f' % (i, m))", "print(t, m, best, bad)",
    "print(w.grad)", "print(loss)", "print('{} {:.5f}'.format(i, loss.item()))",
    "tick()", "t = tick()", "m = inner(0.1)", "m = inner(loss.item())", "t = next(stream)",
    "t = next(it)", "t = next(ticks)", "m = random.random()", "m = torch.rand(1).item()",
    "m = float(np.random.rand())", "noise = torch.randn(3)\nu.data.add_(noise, alpha=0.01)",
    "w.data.add_(torch.rand(3) * 0.01)", "perm = torch.randperm(8)\nX = X[perm]",
    "X = X * 1.01", "X.mul_(1.01)", "Y = Y + 0.01", "net.seen += 1", "net.seen.mul_(0.9)",
    "lr *= 0.99", "lr = 0.05 / (1 + 0.1 * i)", "lr = 0.05 * math.cos(0.1 * i)",
    "sched.step()", "opt.param_groups[0]['lr'] *= 0.98", "net.lin.weight.data.mul_(0.99)",
    "u = (u - 0.01 * u.detach()).detach().requires_grad_()", "v = w * 2", "z = [m, t]",
    "x, y = m, t", "q = (w.detach().sum() > 0).item()", "total = sum(losses[-2:])",
    "m = max(m, loss.item(), 0.1)", "t = t // 2 + i", "t = (t * 7 + i) % 11", "m = -m",
    "m = abs(m - 0.3)", "t = int(m * 10)", "m = float(t)", "m = round(m, 3)",
    "m = math.sqrt(abs(m))",
    "m = m if m > 0.2 else 1.0", "k = i if i % 2 else t", "acc = acc + 1 if i else 0",
    "F.dropout(X, 0.5)", "ema = F.dropout(ema, 0.3)", "m = reads()", "m = reads_grad() * 0.01",
    "def f(): return m\nm = f() * 0.9", "fn = lambda: t + 1\nt = fn()",
    "for j in range(2):\n    m = m * 0.9 + j", "for p in (w, u):\n    m += p.detach().sum().item()",
    "for j, p in enumerate([w, u]):\n    p.data.mul_(0.99)", "while t > 5:\n    t -= 3",
    "m = sum(p.abs().sum().item() for p in (w, u)) * 0.01", "a_, b_ = w.detach(), m",
    "with torch.no_grad():\n    ema.lerp_(w, 0.1)", "out = X @ w.detach()\nm = out.mean().item()",
    "net.calls += 1", "net.train(not net.training)", "plain[0].bias.data.add_(0.01)",
    "torch.manual_seed(i)", "assert m == m", "pass",
]  # fmt: skip

CONDITIONS = [
    "i == {k}", "i == {k}", "i == {k}", "i % {n} == {r}", "i % {n} is {r}", "loss.item() < {x}",
    "t > {k}", "m > {x}", "bad > {n}", "len(losses) > {k}", "random.random() < 0.2",
    "torch.rand(1).item() < 0.2", "d['n'] == {k}", "s.n % {n} == 0", "flag and i > {k}",
    "w.grad is None", "w.grad is not None and i % {n} == 1", "loss > {x}", "last is None",
    "i in ({k}, {n})", "buf.sum() > {n}", "mode == 'b'", "not losses", "i > {k} and i < {k} + 2",
]  # fmt: skip

# What a step does when it departs.
DEPARTURES = [
    "pass", "opt.zero_grad()", "w.grad = None", "u.grad = None", "w.data.add_(0.1)",
    "w.data.mul_(0.9)", "with torch.no_grad():\n    u *= 0.9", "t += 5", "t = 0", "m = 0.0",
    "m = 1",
    "s.m = 0.5", "s = S()", "s.n = 1.5", "continue", "break", "last = loss.item()", "last = None",
    "print(i, t, m)", "print(w, w.grad)", "losses.clear()", "losses = []", "losses.append('x')",
    "opt.state.clear()", "opt.param_groups[0]['lr'] *= 0.5",
    "for group in opt.param_groups:\n    group['lr'] = 0.01", "buf = buf.clone()", "buf.zero_()",
    "buf = torch.ones(3)", "ema = ema.double() * 2", "d['n'] = 0", "d['new'] = i", "d = dict(d)",
    "d['inner'] = {'k': 2.0}", "h[2] = torch.zeros(3)", "h = [1.0, 2, torch.ones(3)]",
    "try:\n    raise ValueError('x')\nexcept ValueError:\n    pass",
    "try:\n    m = 1 / 0\nexcept ZeroDivisionError:\n    m = 0.25",
    "try:\n    torch.ones(2) + torch.ones(3)\nexcept RuntimeError:\n    t += 1",
    "for _ in range(3):\n    t += 1", "w.grad = torch.ones(3)", "w.grad.mul_(0.5)",
    "opt = torch.optim.SGD([w, u], lr=0.01)", "X = X[:6]\nY = Y[:6]", "X[0] = 1.0",
    "net.eval()", "flag = not flag", "scale = 2", "inner = make()", "cell[0] = 10", "cell = [5]",
    "kept.append(w.clone())", "kept.append(loss)", "prev = w", "w.requires_grad_(False)",
    "u = u.detach().clone().requires_grad_()", "torch.manual_seed(1)", "random.seed(1)",
    "del losses[-1:]", "hist['a'] = []", "S.k = 7", "sched.step()", "m = loss.item()",
    "w.data = torch.ones(3)", "kept = [w.grad]", "handle = w.register_hook(lambda g: g * 2)",
    "def reads(): return t * 0.2", "def tick(): return 3", "it = iter(range(5))", "lr = 0.2",
    "while bad > 0:\n    bad -= 1", "saved = loss", "dq.clear()", "raise ValueError('stop')",
    "torch.set_grad_enabled(True)", "reg = (w * w).sum()", "n_ = sum(1 for _ in range(2))",
    "t = 10 ** 5", "m = float('nan')", "i = 3", "mode = 'c'", "best = loss.item()", "v = None",
]  # fmt: skip

LOOPS = [
    "for i in range({N}):", "for i in range({N}):", "for i in range({N}):",
    "for i in range(0, 2 * {N}, 2):", "for i, row in enumerate(X.repeat(3, 1)[:{N}]):",
    "for i, (a, b) in enumerate(zip(X.repeat(3, 1), list(range({N})))):",
    "for i in list(range({N})):", "for i in [k % 5 for k in range({N})]:",
    "for i in reversed(range({N})):", "for i in (j for j in range({N})):",
    "for i in itertools.islice(ticks, {N}):",
    "for i, k in enumerate(torch.randperm({N}).tolist()):",
]  # fmt: skip

END = """\
print(w, w.grad, u, u.grad, t, m, best, bad, scale, last, flag, mode, lr)
print(d, h, losses, kept, texts, hist, buf, ema, prev, list(dq))
print(s.m, s.n, s.v, s.log, S.k, cell, net.seen, net.calls, net.training)
print(opt.state_dict()['param_groups'], [sorted(v) for v in opt.state.values()])
print([v for state in opt.state.values() for k, v in sorted(state.items())])
print([p.sum() for p in net.parameters()], [p.sum() for p in plain.parameters()])
print(torch.rand(2), random.random(), np.random.rand(), next(it), next(ticks), next(stream))
print(tick(), X.sum(), Y.sum())
print(loss.requires_grad, loss)
"""


def indented(text: str) -> str:
    return "\n".join("    " + line for line in text.split("\n"))


def program(seed: int) -> str:
    """A random training loop."""
    r = random.Random(seed)

    def filled(text: str) -> str:
        return (
            text.replace("{k}", str(r.randrange(1, 18)))
            .replace("{n}", str(r.randrange(2, 8)))
            .replace("{r}", str(r.randrange(0, 3)))
            .replace("{x}", str(r.choice([0.1, 0.3, 0.5, 1.0, 2.0, 5.0])))
            .replace("{N}", str(r.choice([6, 9, 12, 20, 25])))
        )

    def departure() -> str:
        body = "\n".join(r.sample(DEPARTURES, r.choice([1, 1, 2])))
        text = f"if {filled(r.choice(CONDITIONS))}:\n" + indented(body)
        if r.random() < 0.2:
            text += "\nelse:\n" + indented(r.choice(CARRIED))
        return text

    body: list[str] = []
    few = r.random() < 0.6
    for part in (r.choice(LOSSES), r.choice(UPDATES)):
        for _ in range(r.choice([0, 0, 1] if few else [0, 0, 1, 1, 2])):
            body.append(departure() if r.random() < 0.4 else r.choice(CARRIED))
        body.append(part)
    for _ in range(r.choice([0, 1, 1] if few else [0, 1, 1, 2, 3])):
        body.append(departure() if r.random() < 0.4 else r.choice(CARRIED))
    text = filled(r.choice(LOOPS)) + "\n" + indented("\n".join(body))
    shape = r.random()
    if shape < 0.15:
        between = [r.choice(DEPARTURES + CARRIED) for _ in range(r.choice([0, 1, 2]))]
        between = [b for b in between if not re.search(r"break|continue", b)]
        text = "for epoch in range(3):\n" + indented("\n".join([text, *between]))
    elif shape < 0.25:
        text += "\n" + text
    elif shape < 0.33:
        caught = "except (ValueError, RuntimeError, TypeError) as e:\n    print('caught')"
        text = f"try:\n{indented(text)}\n{caught}"
    elif shape < 0.38:
        names = (
            "t, m, best, bad, scale, last, flag, mode, d, h, losses, kept, buf, ema, prev, lr, X, Y"
            ", u, s, opt, loss, i, cell, inner, it"
        )
        text = f"def train():\n    global {names}, v, hist\n{indented(text)}\ntrain()"
    start = "\n".join([r.choice(OPTIMIZERS), r.choice(SCHEDULES), "loss, i = torch.tensor(1.0), 0"])
    whole = HEAD + start + "\n" + text + "\n" + END
    if 0.38 <= shape < 0.5:
        head, _, rest = whole.partition("torch.set_default")
        return f"{head}def main():\n{indented('torch.set_default' + rest)}\nmain()\n"
    return whole


NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\.\d+|inf|nan)")


def here(text: str, replay: bool) -> tuple[str, Any]:
    """What a program prints, and what its error is."""
    with early() if replay else replays_off():
        try:
            report = run(Source(text, "loop.py"), Options(backward=False))
        except Exception as crash:
            return "", ("crash", repr(crash), None)
    error = report.error
    span = error.span if error is not None else None
    return report.stdout, error and (error.code, error.message, span and span.line)


def in_torch(text: str) -> tuple[str, bool]:
    """What PyTorch prints, and whether it raises."""
    from tests.oracles.programs import outcome

    found = outcome(text)
    return found["stdout"], found["error"] is not None


def close(a: str, b: str) -> bool:
    """Whether two outputs show the same numbers."""
    x, y = NUMBER.findall(a), NUMBER.findall(b)
    return len(x) == len(y) and all(
        p == q or abs(float(p) - float(q)) <= 2e-4 * max(abs(float(p)), abs(float(q))) + 2e-6
        for p, q in zip(x, y, strict=True)
    )


def difference(text: str, torch: bool) -> str | None:
    """How the ways to run a program differ."""
    one, other = here(text, True), here(text, False)
    if one != other or (one[1] is not None and one[1][0] == "crash"):
        return f"replayed {one[1]}, written {other[1]}:\n{first(one[0], other[0])}"
    if torch:
        if other[1] is not None and other[1][0] in ("E203", "E209"):
            return None  # not in the language
        expected, raises = in_torch(text)
        if raises is not (other[1] is not None) or not close(expected, other[0]):
            return f"PyTorch raises {raises}, here {other[1]}:\n{first(expected, other[0])}"
    return None


def first(a: str, b: str) -> str:
    """The first lines that differ."""
    for x, y in zip(a.split("\n"), b.split("\n"), strict=False):
        if x != y:
            return f"  {x[:300]}\n  {y[:300]}"
    return "  (one is shorter)"


def smaller(text: str, torch: bool) -> str:
    """The program with the lines that do not matter left out."""
    lines = text.split("\n")
    size = max(len(lines) // 4, 1)
    while size:
        at = 0
        while at < len(lines):
            rest = lines[:at] + lines[at + size :]
            try:
                found = difference("\n".join(rest), torch)
            except Exception:
                found = None
            if found is not None and "E20" not in found and "E10" not in found:
                lines = rest
            else:
                at += size
        size //= 2
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--torch", action="store_true")
    parser.add_argument("--show", type=int)
    parser.add_argument("--most", type=int, default=5, help="differences to make smaller")
    given = parser.parse_args()
    if given.show is not None:
        print(program(given.show))
        return
    found = 0
    for seed in range(given.seed, given.seed + given.n):
        text = program(seed)
        what = difference(text, given.torch)
        if what is not None:
            found += 1
            print(f"--- seed {seed}: {what}")
            if found <= given.most:
                print(smaller(text, given.torch))
            sys.stdout.flush()
    print(f"{given.n} programs, {found} differ")
    sys.exit(found > 0)


if __name__ == "__main__":
    main()
