"""Random training loops: statements that programs put together, right or wrong, with some that make
a step look at the one before, at random numbers, or at what nobody expects.
"""

from __future__ import annotations

from hypothesis import strategies as st

HEAD = """\
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(3)
torch.set_default_dtype(torch.DTYPE)
X = torch.randn(16, 3)
Y = torch.randn(16, 2)
w = torch.randn(3, 2, requires_grad=True)
b = torch.zeros(2, requires_grad=True)
s = torch.tensor(0.5, requires_grad=True)
v = torch.zeros(3, 2)
buf = torch.zeros(2)
ema = torch.ones(3, 2)
perm = torch.randperm(16)
losses, kept, total, rate, count, flag = [], [], 0.0, 0.1, 0, True
state = {"step": 0, "m": torch.zeros(3, 2), "best": 1e9}
params = [w, b]
loss = torch.tensor(1.0)
g = torch.zeros(3, 2)
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2))
model2 = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 2))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 5)
        self.c = nn.Linear(5, 2, bias=False)
        self.register_buffer("seen", torch.zeros(()))
        self.calls = 0
    def forward(self, x, scale=1.0):
        h = torch.relu(self.a(x))
        return self.c(h) * scale
net = Net()
class Counting(Net):
    def forward(self, x):
        self.calls += 1
        return super().forward(x)
counting = Counting()
class Seen(Net):
    def forward(self, x):
        self.seen += x.shape[0]
        with torch.no_grad():
            self.seen.mul_(0.99)
        return super().forward(x)
seen = Seen()
def lin(x):
    return x @ w + b
def mse(p, t):
    return ((p - t) ** 2).mean()
def sgd(ps, lr=0.05):
    with torch.no_grad():
        for p in ps:
            if p.grad is not None:
                p -= lr * p.grad
                p.grad.zero_()
def bump(d):
    d["step"] += 1
    return d["step"]
"""

OPTIMIZERS = [
    "SGD(P, lr=0.05)",
    "SGD(P, lr=0.05, momentum=0.9)",
    "SGD(P, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01)",
    "Adam(P, lr=0.02)",
    "Adam(P, lr=0.02, amsgrad=True)",
    "AdamW(P, lr=0.02)",
    "RMSprop(P, lr=0.01, momentum=0.5, centered=True)",
    "Adagrad(P, lr=0.05)",
    "Adadelta(P)",
    "Adamax(P)",
    "NAdam(P)",
    "RAdam(P)",
    "Rprop(P)",
    "ASGD(P)",
]

MODELS = {
    "[w, b]": [
        "lin(xb)",
        "xb @ w + b",
        "torch.addmm(b, xb, w)",
        "(w.t() @ xb.t()).t() + b",
        "F.linear(xb, w.t(), b)",
        "torch.stack([r @ w for r in xb]) + b",
    ],
    "[w, b, s]": [
        "lin(xb) * s",
        "s * torch.tanh(xb @ w) + b",
    ],
    "[{'params': [w], 'lr': 0.1}, {'params': [b]}]": [
        "lin(xb)",
    ],
    "model.parameters()": [
        "model(xb)",
        "model(xb) + 0 * xb.sum()",
    ],
    "net.parameters()": [
        "net(xb)",
        "net(xb, scale=0.5)",
        "net(xb, 1 / (1 + i))",
    ],
    "model2.parameters()": [
        "model2(xb)",
    ],
    "counting.parameters()": [
        "counting(xb)",
    ],
    "seen.parameters()": [
        "seen(xb)",
    ],
}

LOOPS = [
    "for i in range(N):",
    "for i in range(0, 2 * N, 2):",
    "for i, k in enumerate(range(N)):",
    "for i in list(range(N)):",
    "for i in reversed(range(N)):",
    "for i in perm.tolist() + [0, 1, 2]:",
]

BATCHES = [
    "xb, yb = X, Y",
    "xb, yb = X[i % 4:i % 4 + 8], Y[i % 4:i % 4 + 8]",
    "idx = torch.randint(0, 16, (6,))\nxb, yb = X[idx], Y[idx]",
    "idx = perm[i % 8:i % 8 + 5]\nxb = X[idx]\nyb = Y[idx]",
    "xb = X\nyb = Y",
    "xb, yb = X[i % 16], Y[i % 16]",
    "xb, yb = X[i % 16:], Y[i % 16:]",
    "xb = X * (1 + 0.1 * i)\nyb = Y",
    "xb, yb = X.t().contiguous().t(), Y",
    "xb, yb = X[::2], Y[::2]",
]

LOSSES = [
    "loss = mse(PRED, yb)",
    "loss = F.mse_loss(PRED, yb)",
    "loss = F.smooth_l1_loss(PRED, yb)",
    "loss = (PRED - yb).abs().sum()",
    "loss = F.mse_loss(PRED, yb, reduction='sum')",
    "loss = -(F.log_softmax(PRED, -1) * yb).sum()",
    "out = PRED\nloss = (out - yb).pow(2).mean() + 0.01 * sum(p.pow(2).sum() for p in params)",
    "pred = PRED\nerr = pred - yb\nloss = (err * err).mean()",
    "loss = torch.norm(PRED - yb)",
    "loss = torch.cat([PRED.flatten(), yb.flatten()]).pow(2).sum()",
]

CORE = [
    "clip = torch.nn.utils.clip_grad_norm_(params, 0.5)",
    "torch.nn.utils.clip_grad_value_(params, 0.1)",
    "loss = loss + rate * w.pow(2).sum()",
    "loss = loss * (1 + 0.1 * i)",
    "noise = torch.randn(3)",
    "y = w * 2",
    "with torch.no_grad():\n    ema.mul_(0.9).add_(w, alpha=0.1)",
    "with torch.no_grad():\n    w.clamp_(-1, 1)",
    "ema = 0.9 * ema + 0.1 * w.detach()",
    "v = 0.5 * v + w.detach()",
    "buf += b.detach()",
    "buf.mul_(0.5)",
    "w.data[0] = 0.1",
    "with torch.no_grad():\n    w[0, 0] += 0.01",
    "if i % 3 == 0:\n    loss = loss * 2",
    "if i > 5:\n    rate = 0.01",
    "for j in range(2):\n    loss = loss + 0.01 * (w[j] ** 2).sum()",
    "loss = loss + torch.einsum('ij,ij->', w, w) * 0.001",
    "a, c = w.sum(), b.sum()",
    "a, c = b.detach(), w.detach()",
    "state['m'] = 0.9 * state['m'] + w.detach()",
    "state['m'].mul_(0.9).add_(w.detach())",
    "state['step'] += 1",
    "bump(state)",
    "loss = loss + 0.001 * bump(state) * w.sum()",
    "try:\n    loss = loss + 0.1 * w.sum()\nexcept RuntimeError:\n    pass",
    "assert loss.shape == ()",
    "loss = loss / (count + 1)",
    "count += 1",
    "if loss > 2:\n    loss = loss * 0.5",
    "kept.append(w.sum())",
    "loss = loss + (lambda q: (q * q).sum())(b)",
    "t0 = w.t()\nloss = loss + 0.01 * (t0 @ w).sum()",
    "loss = loss + 0.01 * w.detach().sum()",
    "while count % 3:\n    count += 1",
    "total = total + loss",
    "prev = w",
    "prev = w.detach().clone()",
    "loss = loss + torch.where(w > 0, w, -w).sum() * 0.01",
    "loss = loss + 0.01 * torch.linalg.norm(w)",
    "l2 = [p.pow(2).sum() for p in params]\nloss = loss + 0.001 * sum(l2)",
    "w.retain_grad()",
    "loss = loss + 0.1 * torch.linalg.cholesky(w.t() @ w + torch.eye(2)).sum()",
    "loss = loss + torch.log(w.sum() * 0 + 1 + i)",
    "if i == 3:\n    continue",
    "if i % 4 == 1: continue",
    "z = w.sum().item()",
    "loss = loss + 0.001 * len(losses)",
    "for p in params:\n    loss = loss + 0.01 * p.abs().sum()",
    "step = 0.1 / (i + 1)\nloss = loss + step * w.sum()",
]

STEPS = [
    "opt.zero_grad()\nloss.backward()\nopt.step()",
    "loss.backward()\nopt.step()\nopt.zero_grad()",
    "opt.zero_grad(set_to_none=False)\nloss.backward()\nopt.step()",
    "loss.backward()\nsgd(params)",
    "loss.backward()\nif i % 2 == 1:\n    opt.step()\n    opt.zero_grad()",
    (
        "loss.backward()\n"
        "with torch.no_grad():\n"
        "    w -= 0.05 * (w.grad if w.grad is not None else 0)\n"
        "    b.sub_(0.05 * b.grad if b.grad is not None else 0)\n"
        "w.grad = None\n"
        "b.grad = None"
    ),
    (
        "gs = torch.autograd.grad(loss, params, allow_unused=True)\n"
        "with torch.no_grad():\n"
        "    for p, q in zip(params, gs):\n"
        "        if q is not None:\n"
        "            p -= 0.05 * q"
    ),
    (
        "def closure():\n"
        "    opt.zero_grad()\n"
        "    z = F.mse_loss(lin(xb), yb)\n"
        "    z.backward()\n"
        "    return z\n"
        "loss = opt.step(closure)"
    ),
    (
        "loss.backward()\n"
        "with torch.no_grad():\n"
        "    v.mul_(0.9).add_(w.grad) if w.grad is not None else None\n"
        "    w.add_(v, alpha=-0.05)\n"
        "w.grad = None\n"
        "b.grad = None"
    ),
    "opt.zero_grad()\nloss.backward(retain_graph=True)\nloss.backward()\nopt.step()",
    ("loss.backward()\nw.data -= 0.05 * w.grad.data if w.grad is not None else 0\nw.grad = None"),
    (
        "gw = torch.autograd.grad(loss, [w], create_graph=True, allow_unused=True)[0]\n"
        "pen = (gw ** 2).sum() if gw is not None else loss\n"
        "opt.zero_grad()\n"
        "pen.backward()\n"
        "opt.step()"
    ),
    (
        "g = torch.autograd.grad(loss, w, allow_unused=True)[0]\n"
        "w = (w - 0.05 * (g if g is not None else 0)).detach().requires_grad_()"
    ),
]

AFTER = [
    "losses.append(loss.item())",
    "losses.append(float(loss))",
    "losses.append(loss)",
    "losses.append(loss.detach())",
    "total += loss.item()",
    "total += loss.detach()",
    "total = 0.5 * total + float(loss)",
    "print(i, loss.item(), total)",
    "print(w)",
    "print(i, w.grad)",
    "if i % 3 == 0:\n    print(i, f'{loss.item():.6f}')",
    "if i == 5:\n    model.eval()",
    "if i == 6:\n    for group in opt.param_groups:\n        group['lr'] *= 0.5",
    "if loss.item() < 0.3:\n    print('low', i)",
    (
        "if loss.item() < state['best']:\n"
        "    state['best'] = loss.item()\n"
        "    kept.append(w.detach().clone())"
    ),
    "if loss.item() < state['best']:\n    state['best'] = loss.item()",
    "if total > 5:\n    break",
    "if loss.item() < 0.05:\n    break",
    "if i == 9:\n    break",
    "sched.step()",
    "norm = sum(p.norm() for p in model.parameters())",
    "rate *= 0.9",
    "count = count + 1",
    "kept.append(loss.detach())",
    "kept.append(w.detach())",
    "kept.append(w.detach().clone())",
    "kept.append(w.grad)",
    "kept.append(w.clone())",
    "losses += [loss.item()]",
    "losses = losses + [loss.item()]",
    "losses.append((i, loss.item()))",
    "state['step'] = i",
    "state.setdefault('log', []).append(loss.item())",
    "if len(losses) > 3:\n    losses.pop(0)",
    "flag = not flag",
    "if flag:\n    count += 2\nelse:\n    count -= 1",
    "last = loss",
    "last = w",
    "print(len(losses), losses[-1:])",
    "if i % 5 == 4:\n    w.data.mul_(0.5)",
    "if i % 5 == 4:\n    with torch.no_grad():\n        print(mse(lin(X), Y).item())",
    "if i % 4 == 0:\n    X = X * 1.01",
    "del idx",
    "if i == 7:\n    raise ValueError('stop')",
    "if i == 8:\n    w = torch.ones(3, 2, requires_grad=True)",
    "if i == 8:\n    params = [w]",
    "x_np = w.detach().numpy()\nkept.append(x_np.sum())",
    "best = min(losses) if losses else 0",
    "if torch.isnan(loss):\n    break",
    "metrics = {'loss': loss.item(), 'i': i}",
    "kept.append(model(X).detach().sum().item())",
    "print(opt.param_groups[0]['lr'])",
    "if i == 5: opt = torch.optim.SGD([w, b], lr=0.01)",
    "with torch.no_grad():\n    print(loss)",
    "if not i % 4:\n    print(losses)\n    losses.clear()",
    "print('%d %.4f' % (i, loss))",
    "kept.append([p.grad.norm().item() for p in params if p.grad is not None])",
]

BETWEEN = [
    "X.mul_(1.01)",
    "X = X * 1.01",
    "w.data.mul_(0.5)",
    "model[0].weight.data.add_(0.1)",
    "rate *= 0.5",
    "params = [w]",
    "net.eval()",
    "perm = torch.randperm(16)",
    "v.zero_()",
    "losses.clear()",
    "w.grad = None",
    "loss = loss.detach()",
    "state['m'].zero_()",
    "Y[0] = 1.0",
    "b = torch.ones(2, requires_grad=True)",
    "print(loss, w.grad)",
    "sched.step()",
]

END = """\
print(losses, total, rate, count, flag, state["step"], state["best"])
print(kept[-3:], len(kept))
print(w, w.grad, b, b.grad, w.is_contiguous(), w.stride())
print([p.sum() for m in (model, net, model2, counting, seen) for p in m.parameters()])
print(counting.calls, seen.seen, model2[1].running_mean, ema, v, buf, state["m"])
print(torch.randn(2))
print(opt.state_dict()["param_groups"])
out_ = lin(X).sum()
out_.backward()
loss2 = loss * 2
"""


def indented(text: str) -> str:
    return "\n".join("    " + line for line in text.split("\n"))


@st.composite
def programs(draw: st.DrawFn) -> str:
    """A training loop, by itself, in another one, or in a `try`."""

    def some(choices: list[str], most: int) -> list[str]:
        return draw(st.lists(st.sampled_from(choices), max_size=most))

    parameters = draw(st.sampled_from(sorted(MODELS)))
    optimizer = draw(st.sampled_from(OPTIMIZERS)).replace("P", parameters)
    prediction = draw(st.sampled_from(MODELS[parameters]))
    plain = draw(st.booleans())
    body = [
        *some(AFTER, 1),
        draw(st.sampled_from(BATCHES)),
        draw(st.sampled_from(LOSSES)).replace("PRED", prediction),
        *some(CORE, 0 if plain else 2),
        STEPS[0] if plain else draw(st.sampled_from(STEPS)),
        *some(AFTER, 3),
    ]
    count = draw(st.sampled_from(["12", "20", "40"]))
    loop = draw(st.sampled_from(LOOPS)).replace("N", count)
    text = loop + "\n" + indented("\n".join(body))
    around = draw(st.sampled_from(["", "", "loop", "try"]))
    if around == "loop":
        between = some(BETWEEN, 2)
        text = "for epoch in range(3):\n" + indented("\n".join([text, *between]))
    elif around == "try":
        text = f"try:\n{indented(text)}\nexcept (ValueError, RuntimeError) as e:\n    print(e)"
    start = (
        f"opt = torch.optim.{optimizer}\nsched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)\n"
    )
    dtype = draw(st.sampled_from(["float64", "float32"]))
    return HEAD.replace("DTYPE", dtype) + start + text + "\n" + END
