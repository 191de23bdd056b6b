"""Random programs of modules, hooks, custom functions, loaders and optimizers, here and in PyTorch.

    python -m tests.oracles.modules_fuzz --n 1000 --seed 1
    python -m tests.oracles.modules_fuzz --show 17          # the program of a seed

Every statement stands in a `try` of its own which prints the exception's class, so that one program
asks many questions. What differs is printed, shortened line by line.
"""

# ruff: noqa: E501  # tables of program lines, one to a line
from __future__ import annotations

import argparse
import contextlib
import io
import random
import re
import warnings

from tests.oracles.shared_memory import ours, torchs

START = """\
import torch, copy
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, random_split, Subset, ConcatDataset
torch.set_default_dtype(torch.float64)
torch.manual_seed(3)
def show(tag, v):
    if isinstance(v, torch.Tensor): print(tag, v.detach(), v.requires_grad, type(v.grad_fn).__name__)
    elif isinstance(v, (tuple, list)):
        for i, e in enumerate(v): show(f"{tag}[{i}]", e)
    elif isinstance(v, dict):
        for k, e in v.items(): show(f"{tag}.{k}", e)
    else: print(tag, v)
def said(tag, change=None):
    def hook(*given):
        show(tag, [g for g in given if not isinstance(g, nn.Module)])
        if change is not None: return change(given[-1])
    return hook
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, k=1.0):
        ctx.save_for_backward(x); ctx.k = k
        return k * x * x
    @staticmethod
    def backward(ctx, g):
        x, = ctx.saved_tensors
        print('Square', ctx.needs_input_grad, g.detach())
        return 2 * ctx.k * x * g, None
class Split(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_non_differentiable(m := x > 0)
        return x.exp(), x * 2, m
    @staticmethod
    def backward(ctx, g, h, _):
        show('Split', [g, h])
        return g + h
class Block(nn.Module):
    def __init__(self, d, gate=True):
        super().__init__()
        self.lin = nn.Linear(d, d)
        self.norm = nn.LayerNorm(d) if gate else nn.BatchNorm1d(d)
        self.register_buffer('seen', torch.zeros(()))
        self.scale = nn.Parameter(torch.ones(d) * 0.5)
    def forward(self, x):
        self.seen += 1
        return self.norm(x + F.gelu(self.lin(x)) * self.scale)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 4)
        self.blocks = nn.ModuleList([Block(4), Block(4, gate=False)])
        self.drop = nn.Dropout(0.25)
        self.last = nn.Sequential(nn.Linear(4, 3), nn.Tanh(), nn.Linear(3, 1, bias=False))
    def forward(self, x, twice=False):
        h = self.first(x).relu()
        for b in self.blocks: h = b(h)
        out = self.last(self.drop(h))
        return (out, h) if twice else out
x = torch.randn(5, 3)
y = torch.randn(5, 1)
net = Net()
other = Net()
w = torch.randn(3, requires_grad=True)
opt = torch.optim.SGD(net.parameters(), lr=0.1)
sched = None
out = net(x)
loss = (out - y).pow(2).mean()
h = None
"""

MODULES = (
    "net",
    "net.first",
    "net.blocks",
    "net.blocks[0]",
    "net.blocks[1].norm",
    "net.last",
    "net.last[1]",
    "other",
    "net.drop",
    "net.blocks[0].lin",
    "other.last",
)
CHANGES = (
    "None",
    "lambda v: v * 2",
    "lambda v: None",
    "lambda v: v.detach()",
    "lambda v: (v[0] * 0.5,) if isinstance(v, tuple) else v * 0.5",
    "lambda v: v[0]",
)
PARAMETERS = (
    "net.first.weight",
    "net.first.bias",
    "net.blocks[0].scale",
    "net.blocks[1].norm.weight",
    "net.last[2].weight",
    "other.first.weight",
    "w",
)
TENSORS = ("out", "loss", "w", "h", "net.first.weight", "x")

LINES = (
    # hooks
    "handle = {m}.register_forward_hook(said('fh', {c}))",
    "handle = {m}.register_forward_pre_hook(said('fph', {c}))",
    "handle = {m}.register_full_backward_hook(said('bh', {c}))",
    "handle = {m}.register_full_backward_pre_hook(said('bph', {c}))",
    "handle = {m}.register_forward_hook(said('kw', None), with_kwargs=True)",
    "handle = {m}.register_forward_pre_hook(said('first', None), prepend=True)",
    "handle = {m}.register_forward_hook(said('ac', None), always_call=True)",
    "handle = {t}.register_hook(said('th', {c}))",
    "handle = {p}.register_post_accumulate_grad_hook(lambda q: print('pa', q.grad))",
    "handle = {t}.grad_fn.register_hook(said('gh'))",
    "handle = {t}.grad_fn.register_prehook(said('gp'))",
    "handle.remove()",
    "h.retain_grad()",
    "out.retain_grad()",
    # runs
    "out = net(x); loss = (out - y).pow(2).mean(); print(loss)",
    "out, h = net(x, twice=True); loss = (out - y).abs().sum() + h.mean(); print(loss)",
    "h = net.first(x); out = net.last(net.blocks[0](h)); loss = F.smooth_l1_loss(out, y); print(loss)",
    "out = net(x * w); loss = out.mean() + w.sum(); print(loss)",
    "out = Square.apply(net(x), 0.5); loss = out.sum(); print(loss)",
    "a, b, m = Split.apply(w); h = a; loss = (a * b)[m].sum() + loss.detach(); print(loss, m.requires_grad)",
    "a, b, m = Split.apply(w * 1.5); loss = b.sum(); print(loss)",
    "loss = sum(p.pow(2).sum() for p in net.parameters()) * 0.01; print(loss)",
    "loss = loss + 0.1 * {p}.abs().sum()",
    "loss = loss * Square.apply(w).sum()",
    "with torch.no_grad(): print(net(x))",
    "print(other(x).mean())",
    "out = torch.utils.checkpoint.checkpoint(net.last, net.first(x), use_reentrant=False); loss = out.sum(); print(loss)",
    "out = torch.func.functional_call(net, {{'first.bias': w.new_ones(4)}}, (x,)); loss = out.sum(); print(loss)",
    "out = F.linear(x, {p}); loss = out.sin().sum(); print(loss)",
    # backward
    "loss.backward()",
    "loss.backward(retain_graph=True)",
    "out.backward(torch.ones_like(out))",
    "show('g', torch.autograd.grad(loss, {p}, retain_graph=True))",
    "show('g', torch.autograd.grad(loss, [{p}, w], allow_unused=True, retain_graph=True))",
    "g, = torch.autograd.grad(loss, {p}, create_graph=True); show('g', g); loss = loss + g.pow(2).sum()",
    "show('G', torch.autograd.grad(loss, {p}, materialize_grads=True, allow_unused=True))",
    "print({t}.grad)",
    "show('graph', {t}.grad_fn and [f and type(f[0]).__name__ for f in {t}.grad_fn.next_functions])",
    "print({t}.is_leaf, {t}.requires_grad, {t}.retains_grad, {t}._version)",
    # optimizers
    "opt.step(); print({p}.sum())",
    "opt.zero_grad()",
    "opt.zero_grad(set_to_none=False)",
    "net.zero_grad(); print({p}.grad)",
    "opt = torch.optim.SGD([{{'params': net.first.parameters(), 'lr': 0.5}}, {{'params': net.last.parameters()}}], lr=0.01, momentum=0.9, nesterov=True)",
    "opt = torch.optim.AdamW(net.parameters(), lr=0.01, weight_decay=0.1)",
    "opt = torch.optim.Adam([w, *other.parameters()], lr=0.05, amsgrad=True)",
    "opt = torch.optim.RMSprop([p for n, p in net.named_parameters() if 'norm' not in n], centered=True)",
    "opt.add_param_group({{'params': [{p}], 'lr': 0.3}}); print(len(opt.param_groups))",
    "print([g['lr'] for g in opt.param_groups], len(opt.state))",
    "sched = torch.optim.lr_scheduler.StepLR(opt, 2, 0.5)",
    "sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda e: 0.9 ** e)",
    "sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, 5)",
    "sched.step(); print(sched.get_last_lr())",
    "keep = copy.deepcopy(opt.state_dict()); show('state', keep['state'])",
    "opt.load_state_dict(keep); print(opt.param_groups[0]['lr'])",
    "print(nn.utils.clip_grad_norm_(net.parameters(), 0.5)); print({p}.grad)",
    "if net.first.weight.grad is not None: nn.utils.clip_grad_value_(net.parameters(), 0.1)",
    # modules
    "{m}.eval(); print({m}.training, net.training)",
    "{m}.train(); print({m}.training)",
    "{m}.requires_grad_(False); print([p.requires_grad for p in net.parameters()])",
    "{m}.requires_grad_(True)",
    "print([n for n, _ in {m}.named_parameters()])",
    "print([n for n, _ in {m}.named_modules()], [n for n, _ in {m}.named_children()])",
    "print({{k: tuple(v.shape) for k, v in {m}.state_dict().items()}})",
    "print(other.load_state_dict(net.state_dict()))",
    "print(net.load_state_dict({{k: v for k, v in other.state_dict().items() if 'last' in k}}, strict=False))",
    "net.first.weight = other.first.weight",
    "other.last = net.last; print(sum(p.numel() for p in other.parameters()))",
    "net.blocks.append(copy.deepcopy(net.blocks[0])); print(len(net.blocks))",
    "del net.blocks[0]; print(len(net.blocks))",
    "net.extra = nn.Parameter(torch.ones(2)); print(len(list(net.parameters())))",
    "net.first.bias = None",
    "net.first.register_parameter('bias', None)",
    "net.blocks[0].seen = torch.tensor(5.0); print(net.blocks[0].seen, dict(net.named_buffers()).keys())",
    "print(net.blocks[0].seen, net.blocks[-1].norm)",
    "print({m})",
    "net.apply(lambda m: print(type(m).__name__) if isinstance(m, nn.LayerNorm) else None)",
    "net.apply(lambda m: nn.init.ones_(m.weight) if isinstance(m, nn.Linear) else None)",
    "print({m}.get_parameter('weight').shape)",
    "print(net.get_submodule('last.0'), net.get_parameter('first.weight').shape)",
    "other = copy.deepcopy(net); print(other.first.weight is net.first.weight)",
    "net.last[1] = nn.ReLU(); print(net.last)",
    "net.last.insert(1, nn.Identity()); print(len(net.last))",
    "net.float(); print(net.first.weight.dtype); net.double()",
    "with torch.no_grad():\n    for p in net.parameters(): p.sub_(0.1 * p)",
    "with torch.no_grad(): {p}.mul_(0.5)",
    "{p}.data.add_(0.25)",
    "{p}.grad = None",
    "{p}.grad = torch.ones_like({p})",
    "with torch.no_grad(): {p}.grad *= 0.5",
    "nn.utils.parametrizations.weight_norm(net.first); print([n for n, _ in net.first.named_parameters()])",
    "print(nn.utils.parameters_to_vector({m}.parameters()).sum())",
    "net.blocks[0].norm = nn.RMSNorm(4); print(net.blocks[0].norm)",
    "net(x); net.blocks[-1].norm.eval(); print(net.blocks[-1].norm(torch.ones(2, 4)))",
    "print(nn.utils.get_total_norm([p.grad for p in net.parameters() if p.grad is not None]))",
    # saved tensors, modes
    "with torch.autograd.graph.saved_tensors_hooks(lambda t: (print('pack', tuple(t.shape)), t)[1], lambda t: (print('unpack'), t * 1.0)[1]): out = net.last(torch.ones(2, 4) * w.sum()); loss = out.sum()",
    "with torch.enable_grad(): print(net.first(x).requires_grad)",
    "with torch.inference_mode(): v = net(x); print(v.is_inference())",
    "with torch.autograd.detect_anomaly(check_nan=False): net(x).sum().backward()",
    "with torch.autograd.set_grad_enabled(False): loss = net(x).sum(); print(loss.requires_grad)",
    # data
    "data = TensorDataset(x, y); loader = DataLoader(data, batch_size=2, shuffle=True)\nfor i, (a, b) in enumerate(loader): print(i, a.shape, b.sum())",
    "data = TensorDataset(x, y); loader = DataLoader(data, batch_size=2, drop_last=True)\nfor a, b in loader:\n    opt.zero_grad(); l = F.mse_loss(net(a), b); l.backward(); opt.step(); print(l.item())",
    "a, b = random_split(TensorDataset(x, y), [3, 2]); print(a.indices, b.indices)",
    "print([q.sum() for q in Subset(x, [1, 3])], len(ConcatDataset([x, y])))",
    "for i in range(3):\n    opt.zero_grad(); loss = F.mse_loss(net(x), y); loss.backward(); opt.step()\n    if sched is not None: sched.step()\n    print(loss.item())",
    "def closure():\n    opt.zero_grad(); l = F.mse_loss(net(x), y); l.backward(); return l\nprint(opt.step(closure))",
    "print(torch.func.grad(lambda p: torch.func.functional_call(net, p, (x,)).sum())(dict(net.named_parameters()))['last.2.weight'])",
    "show('hvp', torch.autograd.functional.hvp(lambda v: net.first(v).pow(2).sum(), x[0], x[1]))",
    "show('jac', torch.autograd.functional.jacobian(lambda v: net.last[0](net.first(v)), x[0]))",
)
END = "for n, p in net.named_parameters(): print(n, p.detach().sum(), None if p.grad is None else p.grad.sum())\n"


def statements(seed: int) -> list[str]:
    """The statements of a seed."""
    r = random.Random(seed)
    found = []
    for _ in range(r.randint(6, 16)):
        line = r.choice(LINES)
        values = {"m": MODULES, "c": CHANGES, "p": PARAMETERS, "t": TENSORS}
        found.append(line.format(**{k: r.choice(v) for k, v in values.items()}))
    return found


def text(lines: list[str]) -> str:
    """A program of them."""
    tried = (
        "try:\n" + "\n".join("    " + part for part in line.splitlines()) + "\n"
        "except Exception as e: print('!', type(e).__name__)\n"
        for line in lines
    )
    return START + "".join(tried) + END


NUMBER = re.compile(r"-?\d+\.\d*(?:e[-+]?\d+)?|-?\d+e[-+]?\d+")


def agree(found: tuple[str, bool], true: tuple[str, bool]) -> bool:
    """Whether both print the same, numbers to four digits."""
    if found == true:
        return True
    a, b = (NUMBER.findall(t[0]) for t in (found, true))
    if found[1] != true[1] or len(a) != len(b):
        return False
    words = [re.sub(r"\s+", " ", NUMBER.sub("#", t[0])) for t in (found, true)]
    close = (
        abs(float(p) - float(q)) <= 2e-4 * max(1e-3, abs(float(q)))
        for p, q in zip(a, b, strict=True)
    )
    return words[0] == words[1] and all(close)


def differs(lines: list[str]) -> bool:
    """Whether the two runs part."""
    program = text(lines)
    return not agree(ours(program), torchs(program))


def shortened(lines: list[str]) -> list[str]:
    """Fewer statements that still part."""
    i = 0
    while i < len(lines):
        fewer = lines[:i] + lines[i + 1 :]
        if differs(fewer):
            lines = fewer
        else:
            i += 1
    return lines


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int)
    given = parser.parse_args()
    if given.show is not None:
        print(text(statements(given.show)))
        return
    count = 0
    for seed in range(given.seed, given.seed + given.n):
        lines = statements(seed)
        with warnings.catch_warnings(), contextlib.redirect_stderr(io.StringIO()):
            warnings.simplefilter("ignore")
            if not differs(lines):
                continue
            lines = shortened(lines)
        count += 1
        program = text(lines)
        a, b = (run(program)[0].splitlines() for run in (torchs, ours))
        first = next((i for i, (p, q) in enumerate(zip(a, b, strict=False)) if p != q), None)
        at = min(len(a), len(b)) if first is None else first
        print(f"=== seed {seed}", *lines, sep="\n")
        print("  PyTorch:", *a[at : at + 2], "\n  here:   ", *b[at : at + 2], flush=True)
    print(f"{given.n} programs, {count} differ")


if __name__ == "__main__":
    main()
