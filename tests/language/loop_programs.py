"""Training loops as people write them; what each does is compared with and without replay."""

from __future__ import annotations

HEAD = """\
import torch
import torch.nn.functional as F
from torch import nn
torch.manual_seed(3)
X = torch.randn(24, 3)
Y = torch.randn(24, 1)
labels = torch.randint(0, 2, (24,))
w = torch.randn(3, 1, requires_grad=True)
b = torch.zeros(1, requires_grad=True)
params = [w, b]
model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))
"""


def opt(name: str, more: str = "", n: int = 25) -> str:
    """A loop that trains a model with an optimizer and keeps its losses."""
    return f"""\
opt = torch.optim.{name}(model.parameters(), lr=0.02{more})
losses = []
for i in range({n}):
    opt.zero_grad()
    loss = F.mse_loss(model(X), Y)
    loss.backward()
    opt.step()
    losses.append(loss.item())
print(losses)
"""


CASES: dict[str, str] = {
    **{
        n.lower(): opt(n)
        for n in [
            "SGD",
            "Adam",
            "AdamW",
            "Adamax",
            "NAdam",
            "RAdam",
            "RMSprop",
            "Adagrad",
            "Adadelta",
            "Rprop",
            "ASGD",
        ]
    },
    "amsgrad": opt("Adam", ", amsgrad=True, weight_decay=0.1"),
    "rms momentum": opt("RMSprop", ", momentum=0.9, centered=True"),
    "sgd nesterov": opt("SGD", ", momentum=0.9, nesterov=True"),
    "total": """
opt = torch.optim.Adam([w, b], lr=0.1)
total = 0.0
for i in range(18):
    opt.zero_grad()
    loss = ((X @ w + b - Y) ** 2).mean()
    loss.backward()
    opt.step()
    total += loss.item()
    if i % 10 == 0:
        print(i, loss.item(), total)
print(total)
""",
    "print every": """
for i in range(18):
    loss = ((X @ w + b - Y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for p in params:
            p -= 0.1 * p.grad
            p.grad.zero_()
    if i % 7 == 0:
        print(f"{i} {loss.item():.4f} {loss:.3f} {w.norm().item():.3f}")
""",
    "for p none": """
for i in range(18):
    loss = ((X @ w + b - Y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        for p in params:
            p -= 0.1 * p.grad
    for p in params:
        p.grad = None
""",
    "function": """
def predict(x):
    return x @ w + b
def step(x, y):
    loss = ((predict(x) - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w.sub_(0.1 * w.grad)
        b.sub_(0.1 * b.grad)
    w.grad = None
    b.grad = None
    return loss
history = []
for i in range(18):
    history.append(step(X, Y).item())
print(history)
""",
    "function2": """
def step(x, y):
    loss = ((x @ w + b - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w.sub_(0.1 * w.grad)
        b.sub_(0.1 * b.grad)
    w.grad = None
    b.grad = None
    return loss.item()
history = []
for i in range(18):
    l = step(X, Y)
    history.append(l)
print(history)
""",
    "function3": """
model_f = lambda x: x @ w + b
def step(x, y):
    loss = ((model_f(x) - y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w.sub_(0.1 * w.grad)
        b.sub_(0.1 * b.grad)
    w.grad = None
    b.grad = None
    return loss
history = []
for i in range(18):
    l = step(X, Y)
    history.append(l.item())
print(history)
""",
    "module class": """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Linear(3, 5)
        self.b = nn.Linear(5, 1)
        self.act = nn.ReLU()
    def forward(self, x):
        x = self.act(self.a(x))
        return self.b(x)
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=0.02)
crit = nn.MSELoss()
for epoch in range(14):
    out = net(X)
    loss = crit(out, Y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if (epoch + 1) % 10 == 0:
        print(f'Epoch [{epoch+1}/40], Loss: {loss.item():.6f}')
print(net.a.weight, loss)
""",
    "clip": """
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
norms = []
for i in range(18):
    opt.zero_grad()
    loss = F.mse_loss(model(X), Y)
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    opt.step()
    norms.append(norm.item())
print(norms, loss)
""",
    "step lr": """
opt = torch.optim.SGD(model.parameters(), lr=0.1)
sched = torch.optim.lr_scheduler.StepLR(opt, step_size=7, gamma=0.5)
for i in range(18):
    opt.zero_grad()
    loss = F.mse_loss(model(X), Y)
    loss.backward()
    opt.step()
    sched.step()
    print(sched.get_last_lr())
""",
    "step lr2": """
opt = torch.optim.Adam(model.parameters(), lr=0.1)
sched = torch.optim.lr_scheduler.StepLR(opt, step_size=7, gamma=0.5)
losses = []
for i in range(18):
    opt.zero_grad()
    loss = F.mse_loss(model(X), Y)
    loss.backward()
    opt.step()
    sched.step()
    losses.append(loss.item())
print(losses, sched.get_last_lr())
""",
    "cosine": """
opt = torch.optim.AdamW(model.parameters(), lr=0.1)
sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=30)
losses = []
for i in range(18):
    opt.zero_grad()
    loss = F.mse_loss(model(X), Y)
    loss.backward()
    opt.step()
    sched.step()
    losses.append((i, loss.item()))
print(losses, sched.get_last_lr())
""",
    "exp lambda": """
opt = torch.optim.SGD(model.parameters(), lr=0.1)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda e: 0.9 ** e)
for i in range(18):
    opt.zero_grad()
    loss = F.mse_loss(model(X), Y)
    loss.backward()
    opt.step()
    sched.step()
print(loss)
""",
    "plateau": """
opt = torch.optim.SGD(model.parameters(), lr=0.5)
sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, patience=2)
for i in range(14):
    opt.zero_grad()
    loss = F.mse_loss(model(X), Y)
    loss.backward()
    opt.step()
    sched.step(loss.item())
print(loss, opt.param_groups[0]['lr'])
""",
    "one cycle": """
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.1, total_steps=40)
for i in range(18):
    opt.zero_grad()
    loss = F.mse_loss(model(X), Y)
    loss.backward()
    opt.step()
    sched.step()
print(loss)
""",
    "minibatch slices": """
opt = torch.optim.Adam(model.parameters(), lr=0.05)
for epoch in range(4):
    total = 0.0
    for i in range(0, 24, 2):
        xb = X[i:i+2]
        yb = Y[i:i+2]
        opt.zero_grad()
        loss = F.mse_loss(model(xb), yb)
        loss.backward()
        opt.step()
        total += loss.item() * xb.size(0)
    print(epoch, total / 24)
""",
    "minibatch perm": """
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
losses = []
for epoch in range(4):
    perm = torch.randperm(24)
    for i in range(0, 24, 2):
        idx = perm[i:i+2]
        opt.zero_grad()
        loss = F.mse_loss(model(X[idx]), Y[idx])
        loss.backward()
        opt.step()
        losses.append(loss.item())
print(losses)
""",
    "minibatch ragged": """
opt = torch.optim.SGD(model.parameters(), lr=0.05)
for epoch in range(4):
    for i in range(0, 24, 5):
        loss = F.mse_loss(model(X[i:i+5]), Y[i:i+5])
        opt.zero_grad()
        loss.backward()
        opt.step()
print(loss)
""",
    "batches list": """
batches = [(X[i:i+2], Y[i:i+2]) for i in range(0, 24, 2)]
opt = torch.optim.Adam(model.parameters(), lr=0.05)
for epoch in range(4):
    for xb, yb in batches:
        opt.zero_grad()
        loss = F.mse_loss(model(xb), yb)
        loss.backward()
        opt.step()
    print(epoch, loss.item())
""",
    "loader": """
from torch.utils.data import TensorDataset, DataLoader
loader = DataLoader(TensorDataset(X, Y), batch_size=2, shuffle=True)
opt = torch.optim.Adam(model.parameters(), lr=0.05)
for epoch in range(4):
    running = 0.0
    for xb, yb in loader:
        opt.zero_grad()
        loss = F.mse_loss(model(xb), yb)
        loss.backward()
        opt.step()
        running += loss.item()
    print(epoch, running / len(loader))
""",
    "loader enumerate": """
from torch.utils.data import TensorDataset, DataLoader
loader = DataLoader(TensorDataset(X, Y), batch_size=2, shuffle=True)
opt = torch.optim.Adam(model.parameters(), lr=0.05)
for epoch in range(4):
    for k, (xb, yb) in enumerate(loader):
        opt.zero_grad()
        loss = F.mse_loss(model(xb), yb)
        loss.backward()
        opt.step()
        if k % 4 == 0:
            print(epoch, k, loss.item())
""",
    "randint batch": """
opt = torch.optim.SGD(model.parameters(), lr=0.05)
for i in range(18):
    idx = torch.randint(0, 24, (4,))
    xb, yb = X[idx], Y[idx]
    opt.zero_grad()
    loss = F.mse_loss(model(xb), yb)
    loss.backward()
    opt.step()
print(loss, torch.rand(2))
""",
    "single samples": """
for i in range(24):
    loss = (X[i] @ w + b - Y[i]).pow(2).sum()
    loss.backward()
    with torch.no_grad():
        w -= 0.01 * w.grad
        b -= 0.01 * b.grad
        w.grad.zero_()
        b.grad.zero_()
""",
    "zip samples": """
for x, y in zip(X, Y):
    loss = (x @ w + b - y).pow(2).sum()
    loss.backward()
    with torch.no_grad():
        w -= 0.01 * w.grad
        b -= 0.01 * b.grad
        w.grad.zero_()
        b.grad.zero_()
print(x, y)
""",
    "break": """
opt = torch.optim.Adam([w, b], lr=0.1)
hist = []
for i in range(200):
    opt.zero_grad()
    loss = ((X @ w + b - Y) ** 2).mean()
    loss.backward()
    opt.step()
    hist.append(loss.item())
    if len(hist) > 2 and abs(hist[-1] - hist[-2]) < 1e-3:
        break
print(i, loss, hist)
""",
    "break2": """
opt = torch.optim.Adam([w, b], lr=0.1)
for i in range(200):
    opt.zero_grad()
    loss = ((X @ w + b - Y) ** 2).mean()
    if loss.item() < 1.0:
        print("done", i)
        break
    loss.backward()
    opt.step()
print(i, loss)
""",
    "best": """
best = 1e9
opt = torch.optim.Adam([w, b], lr=0.1)
for i in range(14):
    opt.zero_grad()
    loss = ((X @ w + b - Y) ** 2).mean()
    loss.backward()
    opt.step()
    if loss.item() < best:
        best = loss.item()
        best_w = w.detach().clone()
print(best, best_w)
""",
    "lr by hand": """
lr = 0.1
for i in range(18):
    loss = ((X @ w + b - Y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= lr * w.grad
        b -= lr * b.grad
    w.grad = None
    b.grad = None
    lr *= 0.95
print(lr)
""",
    "lr of i": """
for i in range(18):
    lr = 0.1 / (1 + i)
    loss = ((X @ w + b - Y) ** 2).mean()
    loss.backward()
    with torch.no_grad():
        w -= lr * w.grad
        b -= lr * b.grad
    w.grad = None
    b.grad = None
print(lr)
""",
    "index as number": "for i in range(20):\n    y = (w * i).sum() + i ** 2\n",
    "power of i": "for i in range(20):\n    y = (w ** i).sum()\n",
    "rnn": """
Wh = torch.randn(4, 4, requires_grad=True)
Wx = torch.randn(3, 4, requires_grad=True)
opt = torch.optim.Adam([Wh, Wx], lr=0.01)
for epoch in range(14):
    h = torch.zeros(4)
    loss = torch.tensor(0.0)
    outs = []
    for t in range(10):
        h = torch.tanh(X[t] @ Wx + h @ Wh)
        outs.append(h)
        loss = loss + (h.sum() - Y[t]).pow(2).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(epoch, loss.item())
""",
    "two results": """
def evaluate(x, y):
    out = x @ w + b
    return ((out - y) ** 2).mean(), out.abs().max()
opt = torch.optim.SGD([w, b], lr=0.1)
for i in range(14):
    opt.zero_grad()
    loss, top = evaluate(X, Y)
    loss.backward()
    opt.step()
    print(i, loss.item(), top.item())
""",
    "in function": """
def train(n, lr):
    losses = []
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    for epoch in range(n):
        opt.zero_grad()
        out = model(X)
        loss = F.mse_loss(out, Y)
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses
print(train(20, 0.01))
print(train(20, 0.1))
""",
    "epoch function": """
opt = torch.optim.Adam(model.parameters(), lr=0.03)
def train_epoch():
    total = 0
    for i in range(0, 24, 2):
        xb, yb = X[i:i+2], Y[i:i+2]
        opt.zero_grad()
        loss = F.mse_loss(model(xb), yb)
        loss.backward()
        opt.step()
        total += loss.item()
    return total
for e in range(5):
    print(e, train_epoch())
""",
    "accuracy": """
net = nn.Linear(3, 2)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
for e in range(18):
    logits = net(X)
    loss = F.cross_entropy(logits, labels)
    opt.zero_grad()
    loss.backward()
    opt.step()
    acc = (logits.argmax(1) == labels).float().mean().item()
    if e % 5 == 0:
        print(e, loss.item(), acc)
""",
    "eval mode": """
net = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 1))
opt = torch.optim.Adam(net.parameters(), lr=0.1)
for e in range(18):
    net.train()
    loss = F.mse_loss(net(X), Y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    if e % 10 == 9:
        net.eval()
        with torch.no_grad():
            print(e, F.mse_loss(net(X), Y).item())
""",
    "autograd grad": """
for i in range(18):
    loss = ((X @ w + b - Y) ** 2).mean()
    gw, gb = torch.autograd.grad(loss, [w, b])
    with torch.no_grad():
        w -= 0.1 * gw
        b -= 0.1 * gb
""",
    "self assigned": """
class T:
    def __init__(self):
        self.w = torch.zeros(3, 1, requires_grad=True)
        self.n = 0
    def step(self):
        loss = ((X @ self.w - Y) ** 2).mean()
        loss.backward()
        with torch.no_grad():
            self.w -= 0.1 * self.w.grad
            self.w.grad.zero_()
        self.n += 1
        return loss
t = T()
for i in range(14):
    loss = t.step()
print(t.n, t.w)
""",
    "rebinding": """
v = torch.zeros(3, 1)
for i in range(14):
    v = v.detach().requires_grad_()
    loss = ((X @ v - Y) ** 2).mean()
    loss.backward()
    v = v - 0.1 * v.grad
print(v)
""",
    "path": """
path = []
opt = torch.optim.Adam([w], lr=0.1)
for i in range(14):
    opt.zero_grad()
    loss = (w ** 2).sum() + w[0, 0].sin()
    loss.backward()
    opt.step()
    path.append(w.detach().clone())
print(torch.stack(path))
""",
    "path tolist": """
path = []
opt = torch.optim.Adam([w], lr=0.1)
for i in range(14):
    path.append(w.tolist())
    opt.zero_grad()
    loss = (w ** 2).sum() + w[0, 0].sin()
    loss.backward()
    opt.step()
print(path)
""",
    "alias path": """
path = []
opt = torch.optim.Adam([w], lr=0.1)
for i in range(14):
    opt.zero_grad()
    loss = (w ** 2).sum() + w[0, 0].sin()
    loss.backward()
    opt.step()
    path.append(w.detach())
print(path)
""",
    "freeze later": """
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(18):
    if i == 15:
        for p in model[0].parameters():
            p.requires_grad = False
    loss = F.mse_loss(model(X), Y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(model[0].weight, model[2].weight)
""",
    "lr change": """
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(18):
    if i == 15:
        opt.param_groups[0]['lr'] = 0.01
    loss = F.mse_loss(model(X), Y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(model[0].weight, model[2].weight)
""",
    "grad print": """
opt = torch.optim.SGD([w, b], lr=0.1)
for i in range(12):
    loss = F.mse_loss(X @ w + b, Y)
    opt.zero_grad()
    loss.backward()
    print(w.grad.norm().item(), loss.item())
    opt.step()
""",
    "error later": """
opt = torch.optim.SGD([w, b], lr=0.1)
vals = [1.0] * 11
for i in range(14):
    loss = F.mse_loss(X @ w + b, Y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(vals[i], loss.item())
""",
    "error shape": """
opt = torch.optim.SGD([w, b], lr=0.1)
data = [X[:4] for k in range(10)] + [torch.zeros(2, 2)] + [X[:4] for k in range(5)]
for xb in data:
    loss = (xb @ w + b).sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
""",
    "while": """
i = 0
opt = torch.optim.SGD([w, b], lr=0.1)
while i < 20:
    loss = F.mse_loss(X @ w + b, Y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    i += 1
print(i, loss)
""",
    "closure": """
opt = torch.optim.SGD([w, b], lr=0.1)
for i in range(14):
    def closure():
        opt.zero_grad()
        loss = F.mse_loss(X @ w + b, Y)
        loss.backward()
        return loss
    loss = opt.step(closure)
    print(loss.item())
""",
    "ema": """
ema = torch.zeros(3, 1)
avg = 0.0
opt = torch.optim.Adam([w, b], lr=0.1)
for i in range(14):
    loss = F.mse_loss(X @ w + b, Y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        ema.mul_(0.9).add_(w, alpha=0.1)
    avg = 0.9 * avg + 0.1 * loss.item()
print(ema, avg)
""",
    "noise": """
opt = torch.optim.Adam([w, b], lr=0.1)
for i in range(14):
    noise = torch.randn(24, 3)
    loss = F.mse_loss((X + 0.1 * noise) @ w + b, Y)
    opt.zero_grad()
    loss.backward()
    opt.step()
print(loss, torch.rand(1))
""",
    "newton": """
x = torch.tensor(3.0, requires_grad=True)
for i in range(12):
    y = x ** 3 - 2 * x - 5
    g, = torch.autograd.grad(y, x, create_graph=True)
    with torch.no_grad():
        x -= y / g
    print(i, x.item(), y.item())
""",
}
