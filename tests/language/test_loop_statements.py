"""Statements that keep something from one step of a loop to the next: with and without replay they
do the same, wherever they stand in the step."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings

from .loop_grammar import programs
from .test_loops import compare, outcome

LOOP = """\
import collections, functools, itertools, math, random, time
import numpy as np
import torch
from torch import nn
w = torch.ones(3, requires_grad=True)
opt = torch.optim.SGD([w], lr=0.1)
loss = torch.tensor(2.0)
{before}
for i in range(14):
    {first}
    opt.zero_grad()
    loss = (w * w).sum()
    loss.backward()
    opt.step()
    {last}
print(w, w.grad, {shown})
"""

CASES = [
    # containers, objects, closures
    ("seen = set()", "seen.add(len(seen))", "seen"),
    ("big = [0] * 20000", "big[3] += 1", "big[3]"),
    ("d = collections.deque(maxlen=3)", "d.append(len(d))", "list(d)"),
    ("d = collections.deque(maxlen=3)", "d.append(loss.item())", "list(d)"),
    ("d = collections.defaultdict(int)", "d['a'] += 1", "dict(d)"),
    ("d = collections.Counter()", "d.update(['a'])", "dict(d)"),
    ("c = itertools.count()", "n = next(c)", "next(c)"),
    ("class A:\n    n = 0", "A.n += 1", "A.n"),
    ("class A:\n    n = 0\na = A()", "a.n += 1", "a.n"),
    ("class A:\n    n = 0\n    @classmethod\n    def step(cls): cls.n += 1", "A.step()", "A.n"),
    ("class A:\n    n = 0\n    @staticmethod\n    def step(): A.n += 1", "A.step()", "A.n"),
    (
        "def make():\n    n = [0]\n    def step():\n        n[0] += 1\n        return n[0]\n"
        "    return step\nstep = make()",
        "step()",
        "step()",
    ),
    (
        "def make():\n    n = 0\n    def step():\n        nonlocal n\n        n += 1\n"
        "        return n\n    return step\nstep = make()",
        "step()",
        "step()",
    ),
    (
        "calls = [0]\n@functools.lru_cache(None)\ndef norm(n):\n    calls[0] += 1\n    return n",
        "norm(i % 3)",
        "calls",
    ),
    ("def counted():\n    n = 0\n    while True:\n        n += 1\n        yield n\ng = counted()",
     "next(g)", "next(g)"),
    *[
        (f"def step({star}n={made}):\n    n{change}\n    return n{here}", "step()", "step()")
        for star in ("", "*, ")
        for made, change, here in (("[0]", "[0] += 1", "[0]"),
                                   ("torch.zeros(2)", ".add_(1)", ".clone()"))
    ],
    ("class A:\n    n = [0]\n    def step(self): self.n[0] += 1\nf = A().step", "f()", "A.n"),
    ("class A:\n    n = [0]\n    @property\n    def step(self): self.n[0] += 1\na = A()",
     "a.step", "A.n"),
    ("n = [0]\nd = {'a': n}.values()", "next(iter(d))[0] += 1", "n"),
    ("n = [0]\nd = {'a': n}.items()", "list(d)[0][1][0] += 1", "n"),
    ("q = [1, 2, 3]", "q.append(q.pop(0))", "q"),
    ("q = [1, 2, 3]", "q.reverse()", "q"),
    ("q = [[1], [2]]", "q[0].append(1)", "q"),
    ("q = {'a': [1]}", "q['a'] = q['a'] + [1]", "q"),
    ("k = [0]", "k[0] = (k[0] + 1) % 3", "k"),
    ("k = [True]", "k[0] = not k[0]", "k"),
    ("k = ['a', 'b']", "k[0], k[1] = k[1], k[0]", "k"),
    ("k = {'x': 1, 'y': 2}", "k['x'], k['y'] = k['y'], k['x']", "k"),
    ("k = {'x': 1, 'y': 2}", "k['x'] = k.pop('x')", "list(k)"),
    ("m = nn.Linear(2, 2)", "m.eval() if m.training else m.train()", "m.training"),
    # tensors
    ("a, c = torch.zeros(3), torch.ones(3)", "a, c = c, a", "a, c"),
    ("p = [torch.zeros(3), torch.ones(3)]", "p[0], p[1] = p[1], p[0]", "p"),
    ("p = [torch.zeros(3)]", "p[0] = p[0] + 1", "p"),
    ("p = {'m': torch.zeros(3)}", "p['m'] = p['m'] * 0.9 + w.detach()", "p"),
    ("p = {'m': torch.zeros(3)}", "p['m'].mul_(0.9).add_(w.detach())", "p"),
    ("z = torch.zeros(3)\ny = z.view(3)", "y += 1", "z, y"),
    ("z = torch.zeros(3)\ny = z.view(3)", "z += 1", "z, y"),
    ("z = torch.zeros(2, 3)", "z[i % 2] += 1", "z"),
    ("z = torch.zeros(2, 3)", "z[0] = w.detach()", "z"),
    ("z = torch.zeros(3)", "z.copy_(w.detach())", "z"),
    ("z = torch.zeros(3)", "z.data = w.detach()", "z"),
    ("kept = []", "kept.append(w.data)", "kept[0], len(kept)"),
    ("kept = []", "kept.append(w.grad)", "kept[0], kept[1], kept[-2:], len(kept)"),
    ("kept = []", "kept.append(w)", "kept[0] is w, len(kept)"),
    ("kept = []", "kept.append(loss)", "kept[0], kept[-1], len(kept)"),
    ("kept = torch.zeros(20)", "kept[i] = loss.item()", "kept"),
    ("kept = np.zeros(20)", "kept[i] = loss.item()", "kept"),
    ("kept = np.zeros(20)", "kept[0] += 1", "kept"),
    ("kept = {}", "kept[i] = loss.item()", "kept"),
    ("h = []\nhook = w.register_hook(lambda g: h.append(1))", "pass", "len(h)"),
    (
        "h = []\nlin = nn.Linear(3, 1)\nlin.register_forward_hook(lambda m, x, y: h.append(1))",
        "lin(w)",
        "len(h)",
    ),
    (
        "class Sq(torch.autograd.Function):\n    n = [0]\n    @staticmethod\n"
        "    def forward(ctx, x):\n        Sq.n[0] += 1\n        return x * x\n    @staticmethod\n"
        "    def backward(ctx, g):\n        return g",
        "Sq.apply(w)",
        "Sq.n",
    ),
    # numbers, random numbers, time
    ("s = ''", "s += 'a'", "s"),
    ("s = 0", "s = s + 1 if s < 5 else 0", "s"),
    ("x = 1.0", "x *= 1.5", "x"),
    ("x = 1", "x <<= 1", "x"),
    ("x = torch.tensor(1.0)", "x *= 1.5", "x"),
    ("x = torch.tensor(1.0)", "x = x * 1.5", "x"),
    ("first = None", "first = loss.item() if first is None else first", "first"),
    ("best = [None]", "best[0] = w.detach().clone()", "best"),
    ("best = math.inf", "best = min(best, loss.item())", "best"),
    ("done = False", "done = done or loss.item() < 1", "done"),
    ("n = 0", "n += int(loss < 1)", "n"),
    ("n = 0", "n = i if i % 2 else n", "n"),
    ("torch.manual_seed(1)", "torch.manual_seed(1)", "torch.rand(2)"),
    ("random.seed(1)", "w.data[0] += random.random()", "random.random()"),
    ("pass", "passed = time.time() > 0", "passed"),
    # what is shown
    ("", "print(f'{loss}')", "0"),
    ("", "print(opt.param_groups[0]['lr'])", "0"),
    ("", "print(i, w.grad)", "0"),
    ("lines = []", "lines.append(f'{i}: {loss:.3f}')", "lines"),
    # what happens first in a later step
    (
        "state = {'n': 0}\nlog = []\nbuffer = torch.zeros(2)\ndef f(d):\n    d['n'] += 1\n"
        "    if d['n'] == 3:\n        log.append(1)\n        buffer.add_(1)\n"
        "        print('third')\n    return 1.0",
        "y = w * f(state)",
        "state, log, buffer",
    ),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: CASES[number][1])
def test_statements(number: int) -> None:
    """At the beginning of a step and at its end, in turns."""
    before, statement, shown = CASES[number]
    first, last = (statement, "pass") if number % 2 else ("pass", statement)
    program = LOOP.format(before=before, shown=shown, first=first, last=last)
    one = outcome(program, True, "")
    assert one.error is None, one.error
    compare(one, outcome(program, False, ""))


LEFT = """\
import torch
torch.manual_seed(0)
X = torch.randn(8, 3)
w = torch.ones(3, requires_grad=True)
{start}
    {test}
    xb = X[i % 4:i % 4 + 3]
    loss = (xb @ w).pow(2).sum()
    loss.backward()
    with torch.no_grad():
        w -= 0.01 * w.grad
    w.grad = None
    {last}
{end}
print(i, xb, loss, w)
"""


@pytest.mark.parametrize(
    ("test", "last"),
    [
        ("if i == 9: break", "pass"),
        ("if i % 5 == 4: continue", "pass"),
        ("pass", "if i == 9: break"),
        ("pass", "if i % 5 == 4: continue"),
        ("pass", "if loss.item() < 0.5: break"),
        ("if i == 9: raise ValueError('left')", "pass"),
        ("pass", "assert loss.item() > 0.5, 'small'"),
    ],
)
@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("for epoch in range(3):\n  for i in range(12):", ""),
        ("try:\n  for i in range(12):", "except (ValueError, AssertionError) as e:\n    print(e)"),
    ],
)
def test_steps_that_leave(start: str, end: str, test: str, last: str) -> None:
    program = LEFT.format(start=start, end=end, test=test, last=last)
    compare(outcome(program, True, ""), outcome(program, False, ""))


def test_a_step_that_leaves_its_function() -> None:
    program = """\
import torch
w = torch.ones(3, requires_grad=True)
def train():
    for i in range(20):
        loss = (w * w).sum()
        loss.backward()
        with torch.no_grad():
            w.sub_(0.1 * w.grad)
        w.grad = None
        if loss.item() < 0.1:
            return i, loss
print(train(), w)
"""
    compare(outcome(program, True, ""), outcome(program, False, ""))


BETWEEN = """\
import torch
from torch import nn
torch.manual_seed(0)
w = torch.tensor([1.0, 2.0], requires_grad=True)
X = torch.tensor([1.0, 2.0])
Z = torch.tensor([1.0, 2.0])
V = Z.view(2)
scale = [torch.tensor(2.0)]
lin = nn.Linear(2, 1)
opt = torch.optim.SGD([w], lr=0.1)
for epoch in range(3):
    for i in range(12):
        {within}
        loss = (w * X * V * scale[0]).sum() + lin(w).sum()
        opt.zero_grad()
        loss.backward()
        opt.step()
    {between}
print(w, w.grad, lin.weight.grad)
"""


@pytest.mark.parametrize(
    ("change", "within"),
    [
        ("X.mul_(2)", True),
        ("X = X * 2", False),
        ("X[0] = 5", True),
        ("X.data = X * 2", False),
        ("X.copy_(X * 2)", False),
        ("Z.mul_(2)", True),
        ("V.mul_(2)", False),
        ("scale[0] = scale[0] * 2", True),
        ("scale[0].mul_(2)", False),
        ("lin.weight.data.mul_(2)", True),
        ("torch.nn.init.ones_(lin.weight)", False),
        ("lin.weight.grad = None", True),
        ("lin.bias = None", False),
        ("w.data.mul_(2)", False),
        ("w.grad.mul_(2)", True),
        ("opt.param_groups[0]['lr'] = 0.01", False),
    ],
)
def test_what_changes_between_replayed_steps(change: str, within: bool) -> None:
    """Tensors that no step changes are constants of a recording, until somebody changes them."""
    places = {"within": "pass", "between": change}
    if within:
        places = {"within": f"if i == 7: {change}", "between": "pass"}
    program = BETWEEN.format(**places)
    one = outcome(program, True, "")
    assert one.error is None, one.error
    compare(one, outcome(program, False, ""))


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(programs())
def test_random_loops(program: str) -> None:
    compare(outcome(program, True, ""), outcome(program, False, ""))
