"""Write tests/fixtures/transforms.json: what programs with `torch.func` and its kin leave behind.

Run `python -P tests/oracles/transforms.py` where PyTorch is installed; the tests read only the JSON
file. Of every program it keeps the tensors at top level; of those in `FAILING` the line of the error.
"""

# ruff: noqa: E501  # a program a line

from __future__ import annotations

import contextlib
import io
import json
import math
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any

import torch

FIXTURE = Path(__file__).parents[1] / "fixtures" / "transforms.json"

PRELUDE = """import torch
import torch.nn.functional as F
from torch.func import grad, grad_and_value, vjp, jvp, jacrev, jacfwd, hessian, vmap, linearize
from torch.autograd.functional import jacobian
import torch.autograd.functional as AF
torch.set_default_dtype(torch.float64)
x = torch.tensor([0.5, -1.2, 2.0])
y = torch.tensor([1.5, 0.3, -0.7])
A = torch.tensor([[0.3, -0.8, 1.1], [0.6, 0.9, -0.4]])
B = torch.tensor([[[2.0, 0.5], [0.1, 1.0]], [[1.5, -0.3], [0.4, 3.0]], [[1.0, 0.2], [0.7, 2.5]]])
w = torch.tensor([0.7, -0.2, 0.4], requires_grad=True)
k = torch.tensor([2, 0, 1])
"""

PROGRAMS = [
    # grad
    "r = grad(torch.sin)(torch.tensor(0.7))",
    "r = grad(grad(torch.sin))(torch.tensor(0.7))",
    "r = grad(grad(grad(lambda t: t ** 4)))(torch.tensor(1.5))",
    "r = grad(lambda a, b: (a * b).sum(), argnums=1)(x, y)",
    "p, q = grad(lambda a, b: (a * b ** 2).sum(), argnums=(0, 1))(x, y)",
    "(q,) = grad(lambda a, b: (a * b ** 2).sum(), argnums=(-1,))(x, y)",
    "d = grad(lambda p: (p['w'] * x).sum() + p['b'][0] ** 2)({'w': y, 'b': [torch.tensor(3.0)]})\n"
    "dw = d['w']\ndb = d['b'][0]",
    "g, a = grad(lambda t: ((t ** 2).sum(), t * 2), has_aux=True)(x)",
    "g, v = grad_and_value(lambda t: (t ** 3).sum())(x)",
    "g, (v, a) = grad_and_value(lambda t: ((t ** 3).sum(), {'m': t.exp()}), has_aux=True)(x)\n"
    "m = a['m']",
    "r = grad(lambda t: (t * w).sum())(x)",
    "r = grad(lambda t: (t * t * w).sum())(x)\nr.sum().backward()\ng = w.grad",
    "z = torch.tensor([1.0, 2.0], requires_grad=True)\nr = grad(lambda t: (t ** 3).sum())(z)\n"
    "r.sum().backward()\ng = z.grad",
    "with torch.no_grad():\n    r = grad(lambda t: (t ** 3).sum())(x)",
    "with torch.no_grad():\n    r = grad(lambda t: (t ** 3 * w).sum())(x)",
    "def f(t):\n    with torch.no_grad():\n        c = t ** 2\n    return (t - c).sum()\nr = grad(f)(x)",
    "def f(t):\n    with torch.no_grad():\n        c = grad(lambda s: (s ** 2).sum())(t)\n"
    "    return (t * c).sum()\nr = grad(f)(x)",
    "r = grad(lambda t: (t.detach() * t).sum())(x)",
    "r = grad(lambda t: torch.tensor(1.0))(x)",
    "def f(a):\n    return grad(lambda b: a * b ** 2)(a) * a\nr = grad(f)(torch.tensor(1.3))",
    "r = grad(lambda a: a * grad(lambda b: a + b)(torch.tensor(2.0)))(torch.tensor(1.0))",
    "def f(t, scale=1.0):\n    return (t ** 2).sum() * scale\nr = grad(f)(x, scale=3.0)",
    "r = grad(lambda t: t if t > 0 else -t)(torch.tensor(-2.0))",
    "def f(t):\n    if t.sum() > 0:\n        return (t ** 2).sum()\n    return (t ** 3).sum()\n"
    "r = grad(f)(x)\ns = grad(f)(-x)",
    "def f(t):\n    for _ in range(5):\n        t = torch.sin(t) + t * 0.5\n    return t.sum()\nr = grad(f)(x)",
    "def f(t):\n    u = t.clone()\n    u[0] = u[1] * 3\n    u.mul_(2)\n    return (u * t).sum()\nr = grad(f)(x)",
    "r = grad(F.mse_loss)(x, y)",
    "@grad\ndef f(t):\n    return (t ** 2).sum()\nr = f(x)",
    "r = grad(lambda a, b: (a ** 2).sum())(x, y)\nu = grad(lambda a, b: (a ** 2).sum(), argnums=1)(x, y)",
    # vjp, jvp, linearize
    "out, pull = vjp(torch.sin, x)\n(g,) = pull(y)\n(h,) = pull(2 * y)",
    "out, pull = vjp(lambda a, b: (a * b, a + b), x, y)\ng, h = pull((x, y))",
    "out, pull, aux = vjp(lambda a: (a ** 2, a + 1), x, has_aux=True)\ng = pull(y)[0]",
    "out, pull = vjp(lambda a: {'s': a.sum(), 'p': a * 2}, x)\ng = pull({'s': torch.tensor(1.0), 'p': y})[0]",
    "out, d = jvp(torch.sin, (x,), (y,))",
    "out, d = jvp(lambda a, b: a @ b, (A, x), (A * 2, y))",
    "out, d = jvp(lambda a: (a.sum(), a.exp()), (x,), (y,))\no0, o1 = out\nd0, d1 = d",
    "out, d, aux = jvp(lambda a: (a ** 2, a * 5), (x,), (y,), has_aux=True)",
    "out, d = jvp(lambda a: torch.ones(2), (x,), (y,))",
    "_, hv = jvp(grad(lambda t: (t ** 4).sum() + t.prod()), (x,), (y,))",
    "_, pull = vjp(grad(lambda t: (t ** 4).sum() + t.prod()), x)\n(hv,) = pull(y)",
    "hv = grad(lambda t: (grad(lambda s: (s ** 4).sum() + s.prod())(t) * y).sum())(x)",
    "_, d = jvp(lambda t: jvp(torch.sin, (t,), (y,))[1], (x,), (y,))",
    "r = grad(lambda t: jvp(torch.tanh, (t,), (y,))[1].sum())(x)",
    "out, push = linearize(torch.sin, x)\na = push(y)\nb = push(x)",
    "out, push = linearize(lambda a, b: (a * b).sum(), x, y)\nd = push(y, x)",
    "out, d = jvp(lambda t: (t * w), (x,), (y,))\nd.sum().backward()\ng = w.grad",
    "out, d = jvp(lambda t: F.softmax(t, 0), (x,), (y,))",
    "out, d = jvp(lambda t: torch.linalg.inv(t), (B[0],), (B[1],))",
    # Jacobians and Hessians
    "r = jacrev(torch.sin)(x)",
    "r = jacfwd(torch.sin)(x)",
    "r = jacrev(lambda t: A @ t)(x)\ns = jacfwd(lambda t: A @ t)(x)",
    "p, q = jacrev(lambda a, b: a[:, None] * b, argnums=(0, 1))(x, y)",
    "p, q = jacfwd(lambda a, b: a[:, None] * b, argnums=(0, 1))(x, y)",
    "o = jacrev(lambda t: {'s': t.sum(), 'c': t.cumsum(0)})(x)\ns = o['s']\nc = o['c']",
    "o = jacfwd(lambda t: (t.sum(), t.cumsum(0)))(x)\ns, c = o",
    "j, a = jacrev(lambda t: (t ** 2, t.sum()), has_aux=True)(x)",
    "j, a = jacfwd(lambda t: (t ** 2, t.sum()), has_aux=True)(x)",
    "j = jacrev(lambda p: p['w'] @ p['v'])({'w': A, 'v': x})\njw = j['w']\njv = j['v']",
    "r = jacrev(lambda t: torch.ones(2, 2))(x)\ns = jacfwd(lambda t: t.sum() * torch.ones(2))(x)",
    "r = jacrev(lambda t: t.sum())(A)",
    "r = hessian(lambda t: (t ** 3).sum() + t.prod())(x)",
    "r = jacrev(jacrev(lambda t: (t ** 3).sum() + t.prod()))(x)",
    "r = jacfwd(jacfwd(lambda t: (t ** 3).sum() + t.prod()))(x)",
    "r = jacrev(jacfwd(lambda t: torch.sin(t) * t.sum()))(x)",
    "r = hessian(lambda t: torch.tanh(A @ t))(x)",
    "(aa, ab), (ba, bb) = hessian(lambda a, b: (a * b ** 2).sum() ** 2, argnums=(0, 1))(x, y)",
    "r = hessian(lambda t: torch.logsumexp(t, 0))(x)",
    "r = hessian(lambda t: F.softplus(A @ t).sum() + torch.linalg.norm(t))(x)",
    "r = jacrev(lambda t: torch.linalg.solve(t, y[:2]))(B[0])",
    "r = jacfwd(lambda t: torch.det(t))(B[0])",
    "r = jacrev(lambda t: t.sort()[0] * t.max())(x)",
    "r = jacrev(lambda t: F.layer_norm(t, (3,)))(x)\ns = jacfwd(lambda t: F.layer_norm(t, (3,)))(x)",
    "r = jacrev(lambda t: t * w)(x)",
    "r = jacfwd(lambda t: t * w)(x)",
    "r = jacrev(grad(lambda t: (w * t ** 3).sum()))(x)\nr.sum().backward()\ng = w.grad",
    # vmap
    "r = vmap(torch.sin)(A)",
    "r = vmap(torch.dot)(A, A * 2)",
    "r = vmap(torch.dot, in_dims=(0, None))(A, x)",
    "r = vmap(torch.dot, in_dims=(None, 1))(x, A.T)",
    "r = vmap(lambda a, b: a * b, in_dims=(0, 1), out_dims=1)(A, A.T)",
    "r = vmap(lambda t: t * 2, out_dims=-1)(A)",
    "p, q = vmap(lambda t: (t.sum(), t * 2), out_dims=(0, 1))(A)",
    "r = vmap(vmap(torch.sin))(A)",
    "r = vmap(vmap(lambda a, b: a * b, in_dims=(None, 0)), in_dims=(0, None))(x, y)",
    "r = vmap(lambda t: torch.ones(2))(A)",
    "p, q = vmap(lambda t: (t, torch.tensor(3.0)), out_dims=(0, None))(A)",
    "o = vmap(lambda d: {'s': d['a'] + d['b'][0]}, in_dims=({'a': 0, 'b': [None]},))({'a': A, 'b': [x]})\ns = o['s']",
    "r = vmap(lambda t: t[0] * t[1:])(A)",
    "r = vmap(lambda t, i: t[i], in_dims=(None, 0))(x, k)",
    "r = vmap(lambda t, i: t[i])(torch.outer(x, y), k)",
    "r = vmap(lambda t: t.sum(0, keepdim=True) / t.norm())(A)",
    "r = vmap(lambda t: torch.where(t > 0, t, -t))(A)",
    "r = vmap(lambda t: F.softmax(t, dim=0))(A)\ns = vmap(lambda t: F.softmax(t, dim=-1))(A)",
    "r = vmap(torch.linalg.inv)(B)\ns = vmap(torch.det)(B)",
    "r = vmap(torch.linalg.solve)(B, torch.stack([y[:2], y[1:], x[:2]]))",
    "r = vmap(torch.matmul)(B, B)\ns = vmap(torch.matmul, in_dims=(0, None))(B, y[:2])",
    "r = vmap(lambda t: torch.einsum('ij,jk->ik', t, t))(B)",
    "r = vmap(torch.outer)(A, A)",
    "r = vmap(lambda t: t.reshape(4).cumsum(0))(B)\ns = vmap(lambda t: t.T.flatten())(B)",
    "r = vmap(lambda t: torch.cat([t, t.flip(0), torch.zeros(1)]))(A)",
    "r = vmap(lambda t: torch.stack([t, t ** 2], dim=1))(A)",
    "m, i = vmap(lambda t: torch.max(t, dim=0))(A)",
    "r = vmap(lambda t: t.max() - t.min())(A)\ns = vmap(torch.argmax)(A)",
    "v, i = vmap(lambda t: torch.sort(t, descending=True))(A)",
    "v, i = vmap(lambda t: torch.topk(t, 2))(A)",
    "r = vmap(lambda t: t.var() + t.std(unbiased=False) + t.mean())(A)",
    "r = vmap(lambda t: torch.diag(t))(A)\ns = vmap(torch.trace)(B)\nt = vmap(torch.diagonal)(B)",
    "def f(t):\n    u = t.clone()\n    u[1] = 0.0\n    u[0] += t[2]\n    u.mul_(3)\n    return u\nr = vmap(f)(A)",
    "def f(t):\n    u = torch.zeros_like(t)\n    u[0] = t.sum()\n    return u\nr = vmap(f)(A)",
    "z = A.clone()\nr = vmap(lambda t: t.add_(1))(z)",
    "def f(t):\n    for i in range(3):\n        t = t * 2 - t.mean()\n    return t\nr = vmap(f)(A)",
    "r = vmap(lambda t, s: t * s, in_dims=(0, None))(A, 2.5)",
    "r = vmap(lambda t: t * 2, chunk_size=1)(A)",
    "r = torch.vmap(torch.sum)(A)",
    "r = vmap(lambda t: (t.unsqueeze(0) - t.unsqueeze(1)).abs().sum())(A)",
    "r = vmap(lambda t: F.relu(t) + F.gelu(t) + torch.sigmoid(t))(A)",
    "r = vmap(lambda a, b: F.cross_entropy(a.unsqueeze(0), b.unsqueeze(0)))(torch.outer(x, y), k)",
    "r = vmap(lambda a, b: F.nll_loss(F.log_softmax(a, 0), b))(torch.outer(x, y), k)",
    "r = vmap(lambda t: F.conv1d(t.view(1, 1, 3), torch.ones(1, 1, 2)).squeeze())(A)",
    "r = vmap(lambda t, u: F.conv1d(t.view(1, 1, 3), u.view(1, 1, 3)).squeeze())(A, A * 2)",
    "r = vmap(lambda t: F.max_pool1d(t.view(1, 1, 3), 2, 1).squeeze(0))(A)",
    "r = vmap(lambda t: F.one_hot(t, 4))(k)",
    "r = vmap(lambda i: F.embedding(i, A.T))(k)",
    "r = vmap(lambda t: t.gather(0, k))(torch.outer(x, y))",
    "r = vmap(lambda t, i: t.index_select(0, i))(torch.outer(x, y), torch.stack([k, k.flip(0), k]))",
    "r = vmap(lambda t: torch.roll(t, 1, 0) + torch.roll(t, 1))(A)",
    "r = vmap(lambda t: torch.linalg.norm(t) + torch.linalg.vector_norm(t, 1))(A)",
    "r = vmap(lambda t: t.expand(2, 3).sum(0))(A)\ns = vmap(lambda t: t.repeat(2))(A)",
    "r = vmap(lambda t: torch.clamp(t, -0.5, 0.5))(A)\ns = vmap(lambda t: t.float().double())(A)",
    "r = vmap(lambda t: torch.triu(t) + torch.tril(t, -1))(B)",
    "r = vmap(lambda t: w * t)(A)\nr.sum().backward()\ng = w.grad",
    "z = A.clone().requires_grad_()\nr = vmap(lambda t: t ** 2 * x)(z)\nr.sum().backward()\ng = z.grad",
    "r = vmap(lambda t: torch.linalg.eigvalsh(t @ t.T))(B)",
    "r = vmap(lambda t: F.layer_norm(t, (3,)))(A)",
    "r = vmap(lambda t: torch.nn.functional.pad(t, (1, 2)))(A)",
    "torch.manual_seed(0)\nr = vmap(lambda t: t + torch.rand(3), randomness='same')(A)",
    "r = vmap(lambda t: torch.logical_and(t > 0, t < 1).any())(A)\ns = vmap(lambda t: (t > 0).sum())(A)",
    "r = vmap(lambda t: t.pow(2).sum().sqrt())(A)\ns = vmap(lambda t: 1 / (1 + (-t).exp()))(A)",
    "r = vmap(lambda t: torch.tensor(2.0) * t[-1])(A)\ns = vmap(lambda t: t[None].shape[1] * t)(A)",
    # nested in other orders
    "r = vmap(grad(lambda t: (t ** 3).sum()))(A)",
    "r = vmap(grad(lambda t: torch.sin(t)))(x)",
    "r = vmap(grad(grad(torch.sin)))(x)",
    "r = grad(lambda t: vmap(torch.sin)(t).sum())(x)",
    "r = grad(lambda t: vmap(lambda s: F.softmax(s, 0)[0])(t).sum())(A)",
    "r = vmap(jacrev(lambda t: torch.sin(t) * t.sum()))(A)",
    "r = vmap(jacfwd(lambda t: torch.sin(t) * t.sum()))(A)",
    "r = vmap(hessian(lambda t: (t ** 3).sum() + t.prod()))(A)",
    "r = jacrev(vmap(torch.sin))(A)",
    "r = jacfwd(vmap(lambda t: F.softmax(t, 0)))(A)",
    "def loss(p, a, b):\n    return ((a @ p['w'] + p['b'] - b) ** 2).mean()\n"
    "p = {'w': x, 'b': torch.tensor(0.1)}\n"
    "g = vmap(grad(loss), in_dims=(None, 0, 0))(p, A, torch.tensor([1.0, 2.0]))\ngw = g['w']\ngb = g['b']",
    "def net(p, a):\n    h = torch.tanh(p[0] @ a + p[1])\n    return p[2] @ h\n"
    "p = [torch.stack([A, A * 2]), torch.stack([x[:2], y[:2]]), torch.stack([y[1:], x[1:]])]\n"
    "r = vmap(net, in_dims=(0, None))(p, x)",
    "r = vmap(lambda v: vjp(lambda t: torch.sin(t) * t.sum(), x)[1](v)[0])(torch.eye(3))",
    "_, pull = vjp(lambda t: torch.sin(t) * t.sum(), x)\n(r,) = vmap(pull)(torch.eye(3))",
    "r = vmap(lambda v: jvp(lambda t: torch.sin(t) * t.sum(), (x,), (v,))[1])(torch.eye(3))",
    "r = vmap(lambda v: jvp(grad(lambda t: t.prod()), (x,), (v,))[1])(torch.eye(3))",
    "r = vmap(vmap(grad(lambda a, b: torch.sin(a * b)), in_dims=(None, 0)), in_dims=(0, None))(x, y)",
    "u = lambda t: torch.sin(t)\nr = vmap(lambda t: grad(grad(u))(t) + u(t))(x)",
    "def newton(t):\n    f = lambda s: s ** 3 - 2\n    for _ in range(4):\n        t = t - f(t) / grad(f)(t)\n    return t\n"
    "r = newton(torch.tensor(1.5))\ng = grad(newton)(torch.tensor(1.5))\nv = vmap(newton)(torch.tensor([1.0, 2.0]))",
    "r = vmap(lambda t: grad_and_value(lambda s: (s ** 2).sum())(t)[1])(A)",
    "g, v = vmap(grad_and_value(lambda s: (s ** 2).sum()))(A)",
    "r = vmap(lambda t: vmap(lambda s: s * t)(x))(y)",
    "r = vmap(grad(lambda t: F.cross_entropy(t.unsqueeze(0), k[:1])))(A)",
    "r = vmap(grad(lambda a, b: F.cross_entropy(a.unsqueeze(0), b.unsqueeze(0))))(torch.outer(x, y), k)",
    "r = vmap(grad(lambda t: F.conv1d(t.view(1, 1, 3), x[:2].view(1, 1, 2)).pow(2).sum()))(A)",
    "r = vmap(grad(lambda u: F.conv1d(x.view(1, 1, 3), u.view(1, 1, 2)).pow(2).sum()))(A[:, :2])",
    "r = vmap(grad(lambda t: torch.linalg.inv(t).sum()))(B)\ns = vmap(grad(lambda t: torch.logdet(t)))(B)",
    "r = vmap(grad(lambda t: t.sort()[0][0] * t.max()))(A)",
    "r = vmap(grad(lambda i, t: (F.embedding(i, t) ** 2).sum(), argnums=1), in_dims=(0, None))(k, A.T)",
    "from torch.autograd import grad as agrad\nz = A.clone().requires_grad_()\nout = z.sin()\n"
    "r = vmap(lambda v: agrad(out, z, v, retain_graph=True)[0])(torch.stack([A, 2 * A]))",
    # modules
    "net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.Tanh(), torch.nn.Linear(2, 1))\n"
    "with torch.no_grad():\n    for i, p in enumerate(net.parameters()):\n        p.copy_(torch.linspace(-1, 1, p.numel()).reshape(p.shape) + 0.1 * i)\n"
    "params = {n: p.detach() for n, p in net.named_parameters()}\n"
    "def loss(p, a):\n    return (torch.func.functional_call(net, p, (a,)) ** 2).sum()\n"
    "g = grad(loss)(params, x)\ng0 = g['0.weight']\nv = vmap(grad(loss), in_dims=(None, 0))(params, A)\n"
    "v0 = v['2.weight']\nh = hessian(lambda t: net(t).squeeze())(x)\nj = jacrev(net)(x)\nb = vmap(net)(A)\n"
    "J = vmap(jacrev(loss), in_dims=(None, 0))(params, A)\nJb = J['0.bias']",
    "nets = [torch.nn.Linear(3, 2) for _ in range(3)]\nfor i, n in enumerate(nets):\n    torch.nn.init.constant_(n.weight, 0.1 * i)\n    torch.nn.init.ones_(n.bias)\n"
    "ps, bs = torch.func.stack_module_state(nets)\nw0 = ps['weight']\n"
    "r = vmap(lambda p, b, t: torch.func.functional_call(nets[0], (p, b), (t,)), in_dims=(0, 0, None))(ps, bs, A)\n"
    "e = vmap(lambda p, t: torch.func.functional_call(nets[0], p, (t,)), in_dims=(0, None))(ps, x)",
    # longer programs
    "def f(params, t):\n    W, b, v = params\n    return v @ torch.tanh(W * t + b)\n"
    "params = (x, y, torch.tensor([0.2, 0.5, -0.3]))\n"
    "du = grad(f, argnums=1)\nd2u = grad(du, argnums=1)\nts = torch.linspace(0, 1, 5)\n"
    "res = vmap(lambda t: d2u(params, t) + f(params, t))(ts)\n"
    "def pinn(params):\n    return (vmap(lambda t: d2u(params, t) + f(params, t))(ts) ** 2).mean() + f(params, torch.tensor(0.0)) ** 2\n"
    "gs = grad(pinn)(params)\ng0, g1, g2 = gs\n"
    "for _ in range(5):\n    gs = grad(pinn)(params)\n    params = tuple(p - 0.1 * g for p, g in zip(params, gs))\n"
    "p0, p1, p2 = params\nl = pinn(params)",
    "def inner(p, a):\n    return ((p * a).sum() - 1) ** 2\ndef outer(p):\n    q = p - 0.1 * grad(inner)(p, x)\n    return inner(q, y)\n"
    "g = grad(outer)(torch.ones(3))\nH = hessian(outer)(torch.ones(3))\n"
    "def loss(p):\n    return vmap(lambda a: inner(p - 0.1 * grad(inner)(p, a), a))(A).mean()\nm = grad(loss)(torch.ones(3))",
    "def fnet(p, t):\n    return torch.tanh(t @ p['w']) @ p['v']\np = {'w': A.T, 'v': y[:2]}\n"
    "def ntk(a, b):\n    j1 = vmap(jacrev(fnet), (None, 0))(p, a)\n    j2 = vmap(jacrev(fnet), (None, 0))(p, b)\n"
    "    parts = [torch.einsum('Nf,Mf->NM', j1[k].flatten(1), j2[k].flatten(1)) for k in p]\n    return sum(parts)\n"
    "K = ntk(A, A * 2)",
    "def energy(q):\n    return 0.5 * (q ** 2).sum() + torch.cos(q[0])\ndef step(q, v):\n    for _ in range(4):\n        v = v - 0.1 * grad(energy)(q)\n        q = q + 0.1 * v\n    return q\n"
    "r = step(x, y)\nJ = jacfwd(step)(x, y)\nK = jacrev(step, argnums=1)(x, y)",
    "def L(q, v):\n    return 0.5 * (v ** 2).sum() + 3 * torch.cos(q).sum() + q[0] * v[1]\n"
    "M = hessian(L, argnums=1)(x, y)\nC = jacfwd(grad(L, argnums=1), argnums=0)(x, y)\n"
    "a = torch.linalg.solve(M, grad(L)(x, y) - C @ y)",
    "def rosen(t):\n    return (100 * (t[1:] - t[:-1] ** 2) ** 2 + (1 - t[:-1]) ** 2).sum()\nz = x\n"
    "for i in range(6):\n    z = z - torch.linalg.solve(hessian(rosen)(z), grad(rosen)(z))\nval = rosen(z)",
    "def div(f):\n    return lambda t: torch.trace(jacfwd(f)(t))\ndef lap(f):\n    return lambda t: torch.trace(hessian(f)(t))\n"
    "d = div(lambda t: t ** 3)(x)\nl = lap(lambda t: (t ** 4).sum())(x)\nv = vmap(lap(lambda t: torch.exp(-(t ** 2).sum())))(A)",
    "def f(a, b, c=1.0):\n    return (a * b * c).sum()\nr = grad(lambda a: f(a, y, c=2.0))(x)\n"
    "s = vmap(lambda b: f(y, b))(A)",
    "def logp(mu, s, t):\n    return -0.5 * ((t - mu) / s) ** 2 - torch.log(s)\n"
    "score = vmap(grad(logp, argnums=(0, 1)), in_dims=(None, None, 0))(torch.tensor(0.3), torch.tensor(1.5), x)\n"
    "s0, s1 = score\nfisher = (s0 ** 2).mean()",
    "z = x.clone().requires_grad_()\nout = torch.stack([z.prod(), (z ** 2).sum()])\n"
    "(g,) = torch.autograd.grad(out, z, torch.eye(2), is_grads_batched=True)",
    "z = x.clone().requires_grad_()\nu = y.clone().requires_grad_()\nout = z * u.exp()\n"
    "g, h = torch.autograd.grad(out, (z, u), (torch.eye(3),), is_grads_batched=True, create_graph=True)\nh.sum().backward()\ngz = z.grad",
    "r = vmap(lambda a, b: F.linear(a, A, b), in_dims=(0, None))(A, y[:2])\n"
    "s = vmap(lambda W: F.linear(x, W))(B[:, :, [0, 1, 1]])",
    "q = torch.stack([A, 2 * A])\nr = vmap(lambda t: F.scaled_dot_product_attention(t, t, t))(q)\n"
    "s = vmap(lambda t: F.softmax(t @ t.T / 3 ** 0.5, dim=-1) @ t)(q)",
    "def rbf(a, b):\n    return torch.exp(-0.5 * ((a - b) ** 2).sum())\n"
    "gram = vmap(vmap(rbf, (None, 0)), (0, None))\nK = gram(A, A)\ng = grad(lambda t: gram(t, t).sum())(A)\n"
    "G = jacrev(lambda t: gram(t, A))(A)",
    "def f(t):\n    vals = []\n    for i in range(t.shape[0]):\n        vals.append(t[i] ** (i + 1))\n    return torch.stack(vals)\n"
    "r = jacrev(f)(x)\nv = vmap(f)(A.abs())\nj = vmap(jacfwd(f))(A.abs())",
    "def fix(a):\n    z = torch.zeros(3)\n    for _ in range(15):\n        z = torch.tanh(0.3 * z + a)\n    return z\n"
    "zs = fix(x)\nJz = jacrev(lambda z: torch.tanh(0.3 * z + x))(zs)\nJa = jacrev(lambda a: torch.tanh(0.3 * zs + a))(x)\n"
    "implicit = torch.linalg.solve(torch.eye(3) - Jz, Ja)\nunrolled = jacfwd(fix)(x)",
    "d, U = vmap(torch.linalg.eigh)(B @ B.mT)\nr = (U * d.unsqueeze(-2)) @ U.mT\n"
    "g = vmap(grad(lambda t: torch.linalg.eigvalsh(t @ t.T).max()))(B)\nc = vmap(torch.linalg.cholesky)(B @ B.mT)",
    "r = vmap(lambda t: torch.bmm(t.unsqueeze(0), t.unsqueeze(0)).squeeze(0))(B)\ns = vmap(torch.mm)(B, B)\nt = vmap(torch.mv)(B, y[:2].expand(3, 2))",
    "r = vmap(lambda t: t.masked_fill(t > 0.5, 0.0))(A)\ns = vmap(lambda t, v: t.masked_fill(t > 0.5, v))(A, x[:2])",
    "r = vmap(lambda t: t.chunk(3)[1] + t.split(1)[0])(A)\ns = vmap(lambda t: t.unbind()[2])(A)\nu = vmap(lambda t: torch.meshgrid(t, t, indexing='ij')[0])(A)",
    "r = vmap(lambda t: torch.scatter(torch.zeros(3), 0, k, t))(A)\ns = vmap(lambda t: torch.zeros(3).index_add(0, k, t))(A)\n"
    "u = vmap(lambda t, i: torch.zeros(3).scatter_add(0, i, t))(A, torch.stack([k, k.flip(0)]))",
    "r = vmap(lambda t: t[[0, 2]])(A)\ns = vmap(lambda t: t[:, [1, 0]])(B)\nu = vmap(lambda t, i: t[:, i])(B, torch.tensor([0, 1, 1]))\n"
    "v = vmap(lambda t, i: t[i, i])(B, torch.tensor([0, 1, 1]))\nq = vmap(lambda t: t[k[:2].clamp(max=1), torch.tensor([1, 0])])(B)",
    "r = vmap(lambda t: torch.quantile(t, 0.3))(A)\ns = vmap(lambda t: t.median())(A)\nu = vmap(lambda t: t.logsumexp(0) + t.prod())(A)",
    "r = vmap(lambda t: F.interpolate(t.view(1, 1, 3), scale_factor=2, mode='nearest').flatten())(A)\n"
    "s = vmap(lambda t: F.avg_pool1d(t.view(1, 1, 3), 2).flatten())(A)\nu = vmap(lambda t: F.batch_norm(t.view(3, 1), None, None, training=True).flatten())(A)",
    "r = vmap(lambda t: torch.cdist(t, t))(B)\ns = vmap(lambda t: F.cosine_similarity(t[0], t[1], dim=0))(B)\nu = vmap(lambda t: F.normalize(t, dim=0))(A)",
    "r = vmap(lambda t: t.double().to(torch.float32) + 1)(A)\ns = vmap(lambda t: t.long())(A)\nu = vmap(lambda t: t.new_zeros(2) + t[0])(A)",
    "r = vmap(lambda d, s: {'o': d['a'] * s}, in_dims=(0, None), out_dims={'o': 1})({'a': A}, 2.0)['o']",
    "p, (q, s) = vmap(lambda t: (t, (t.sum(), t[0])), out_dims=(1, (0, 0)))(A)",
    "f = vmap(lambda t, *, c: t * c)\nr = f(A, c=3.0)",
    "torch.manual_seed(3)\nr = torch.rand(2)\ns = vmap(lambda t: t * torch.rand(3), randomness='same')(A)\nu = torch.rand(2)",
    # torch.autograd.functional
    "r = jacobian(torch.sin, x)",
    "r = jacobian(lambda t: A @ t, x, vectorize=True)",
    "r = AF.jacobian(lambda t: A @ t, x, vectorize=True, strategy='forward-mode')",
    "p, q = AF.jacobian(lambda a, b: a * b.sum(), (x, y))",
    "(p, q), (s, t) = AF.jacobian(lambda a, b: (a * b.sum(), (a * b).sum()), (x, y))",
    "p, q = AF.jacobian(lambda a: (a.sum(), a * 2), x)",
    "(p,) = AF.jacobian(lambda a: a * 2, (x,))",
    "r = AF.jacobian(lambda t: t ** 2, x, create_graph=True)",
    "z = x.clone().requires_grad_()\nr = AF.jacobian(lambda t: t ** 3, z, create_graph=True)\n"
    "r.sum().backward()\ng = z.grad",
    "z = x.clone().requires_grad_()\nr = AF.jacobian(lambda t: t ** 3 * w, z)",
    "r = AF.jacobian(lambda t: torch.ones(2), x)",
    "r = AF.hessian(lambda t: (t ** 3).sum() + t.prod(), x)",
    "(aa, ab), (ba, bb) = AF.hessian(lambda a, b: (a * b ** 2).sum(), (x, y))",
    "r = AF.hessian(lambda t: (t ** 3).sum(), x, vectorize=True, outer_jacobian_strategy='forward-mode')",
    "r = AF.hessian(lambda t: t.sum(), x)",
    "r = AF.hessian(lambda t: (w * t ** 3).sum(), x, create_graph=True)\nr.sum().backward()\ng = w.grad",
    "o, r = AF.vjp(lambda t: A @ t, x, torch.tensor([1.0, 2.0]))",
    "o, r = AF.vjp(lambda t: t.sum(), x)",
    "o, (p, q) = AF.vjp(lambda a, b: a * b, (x, y), x)",
    "o, r = AF.jvp(lambda t: A @ t, x, y)",
    "o, r = AF.jvp(lambda a, b: a * b, (x, y), (y, x))",
    "o, r = AF.jvp(torch.sin, torch.tensor(0.5))",
    "o, r = AF.hvp(lambda t: (t ** 4).sum() + t.prod(), x, y)",
    "o, (p, q) = AF.hvp(lambda a, b: (a * b ** 2).sum(), (x, y), (y, x))",
    "o, r = AF.vhp(lambda t: (t ** 4).sum() + t.prod(), x, y)",
    "o, r = AF.vhp(lambda t: (t ** 4).sum(), x, y, create_graph=True)",
    "r = torch.autograd.functional.jacobian(lambda t: t.flatten() ** 2, A)",
    # gradcheck and custom functions
    "ok = torch.tensor(float(torch.autograd.gradcheck(torch.sin, (w,))))",
    "ok = torch.tensor(float(torch.autograd.gradcheck(lambda a, b: (a * b, a.sum()), (w, x))))",
    "ok = torch.tensor(float(torch.autograd.gradgradcheck(lambda a: a ** 3, (w,))))",
    "torch.manual_seed(3)\nok = torch.tensor(float(torch.autograd.gradgradcheck(torch.sin, (w,))))\nr = torch.rand(3)",
    "class Cube(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, a):\n"
    "        ctx.save_for_backward(a)\n        return a ** 3\n    @staticmethod\n    def backward(ctx, g):\n"
    "        (a,) = ctx.saved_tensors\n        return g * 3 * a ** 2\n"
    "ok = torch.tensor(float(torch.autograd.gradcheck(Cube.apply, (w,))))\n"
    "ok2 = torch.tensor(float(torch.autograd.gradgradcheck(Cube.apply, (w,))))",
    "class Wrong(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, a):\n"
    "        ctx.save_for_backward(a)\n        return a ** 3\n    @staticmethod\n    def backward(ctx, g):\n"
    "        (a,) = ctx.saved_tensors\n        return g * 2 * a ** 2\n"
    "ok = torch.tensor(float(torch.autograd.gradcheck(Wrong.apply, (w,), raise_exception=False)))",
    "class Cube(torch.autograd.Function):\n    generate_vmap_rule = True\n    @staticmethod\n"
    "    def forward(a):\n        return a ** 3\n    @staticmethod\n    def setup_context(ctx, inputs, output):\n"
    "        ctx.save_for_backward(inputs[0])\n    @staticmethod\n    def backward(ctx, g):\n"
    "        (a,) = ctx.saved_tensors\n        return g * 3 * a ** 2\n"
    "r = grad(lambda t: Cube.apply(t).sum())(x)\ns = vmap(Cube.apply)(A)\n"
    "h = grad(grad(Cube.apply))(torch.tensor(2.0))\nv = vmap(grad(Cube.apply))(x)\n"
    "j = jacrev(Cube.apply)(x)",
]

FAILING = [
    "a = 1\nr = grad(lambda t: t * 2)(x)",
    "r = grad(lambda t: 3.0)(x)",
    "r = grad(lambda t: t.sum())(k)",
    "r = grad(lambda t: t.sum(), argnums=1)(x)",
    "r = grad(lambda t: t)(2.0)",
    "r = grad(lambda t: t.sum(), has_aux=True)(x)",
    "def f(t):\n    if t.sum() > 0:\n        return t\n    return -t\nr = vmap(f)(A)",
    "def f(t):\n    return t.sum().item()\nr = vmap(f)(A)",
    "r = vmap(torch.dot)(A, x)",
    "r = vmap(torch.sin)(torch.tensor(1.0))",
    "r = vmap(torch.sin, in_dims=2)(A)",
    "r = vmap(torch.sin, in_dims=None)(A)",
    "r = vmap(lambda a, b: a, in_dims=(0, 0, 0))(A, A)",
    "r = vmap(lambda t, s: t * s)(A, 2.5)",
    "r = vmap(lambda t: 3.0)(A)",
    "r = vmap(lambda t: t, out_dims=5)(A)",
    "r = vmap(lambda t: t, out_dims=(0, 0))(A)",
    "r = vmap(lambda t: t, out_dims=None)(A)",
    "r = vmap(lambda t: t + torch.rand(3))(A)",
    "r = vmap(lambda t: t[t > 0])(A)",
    "r = vmap(lambda t: torch.nonzero(t))(A)",
    "r = vmap(lambda t: t @ A)(A)",
    "out, pull = vjp(torch.sin, x)\npull(torch.ones(2))",
    "out, pull = vjp(torch.sin, x)\npull(x, y)",
    "r = jvp(torch.sin, (x,), (torch.ones(2),))",
    "r = jvp(torch.sin, x, y)",
    "r = jvp(torch.sin, (x,), (x, y))",
    "r = jacrev(lambda t: 2.0)(x)",
    "r = jacrev(lambda t: t)(k)",
    "r = AF.hessian(lambda t: t * 2, x)",
    "r = AF.jacobian(lambda t: torch.ones(2), x, strict=True)",
    "r = AF.jacobian(lambda a, b: a * 2, (x, y), strict=True)",
    "r = AF.vjp(lambda t: t * 2, x)",
    "r = AF.vjp(lambda t: t * 2, x, torch.ones(2))",
    "r = AF.jvp(lambda t: t.sum(), x)",
    "r = AF.hvp(lambda t: t * 2, x, y)",
    "r = AF.jacobian(lambda t: t * 2, 3.0)",
    "torch.autograd.gradcheck(torch.sin, (x,))",
    "torch.autograd.gradcheck(lambda t: t.detach() * t, (w,))",
    "class Wrong(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, a):\n"
    "        ctx.save_for_backward(a)\n        return a ** 3\n    @staticmethod\n    def backward(ctx, g):\n"
    "        (a,) = ctx.saved_tensors\n        return g * 2 * a ** 2\n"
    "torch.autograd.gradcheck(Wrong.apply, (w,))",
    "def f(t):\n    return t.sum()\nr = grad(f)()",
    "z = torch.zeros(3)\nr = vmap(lambda t: z.add_(t))(A)",
    "z = torch.zeros(3)\ndef f(t):\n    z[0] = t.sum()\n    return t\nr = vmap(f)(A)",
    "r = vmap(lambda t: F.dropout(t, 0.5))(A)",
    "r = torch.func.functional_call(torch.nn.Linear(3, 2), {'weight': A}, (x,), strict=True)",
    "r = torch.func.stack_module_state([torch.nn.Linear(3, 2), torch.nn.ReLU()])",
]

GIVEN = {"x", "y", "A", "B", "w", "k"}


def number(value: Any) -> Any:
    if isinstance(value, list):
        return [number(v) for v in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def tensor(value: torch.Tensor) -> dict[str, Any]:
    return {
        "shape": list(value.shape),
        "dtype": str(value.dtype).removeprefix("torch."),
        "requires_grad": value.requires_grad,
        "is_leaf": value.is_leaf,
        "value": number(value.detach().tolist()),
    }


def ran(program: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    source = PRELUDE + program + "\n"
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        torch.set_default_dtype(torch.float64)
        exec(compile(source, "<program>", "exec"), names)
    tensors = {
        name: tensor(value)
        for name, value in names.items()
        if isinstance(value, torch.Tensor) and (name not in GIVEN or name in ("x", "A"))
    }
    return {"program": program, "tensors": tensors}


def failed(program: str) -> dict[str, Any]:
    try:
        ran(program)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)
        line = [f.lineno for f in frames if f.filename == "<program>"][-1]
        return {"program": program, "line": line, "error": f"{type(error).__name__}: {error}"[:160]}
    raise SystemExit(f"does not fail: {program}")


def main() -> None:
    cases = []
    for program in PROGRAMS:
        try:
            cases.append(ran(program))
        except Exception as error:
            print("refused by PyTorch:", program, "|", str(error)[:300], file=sys.stderr)
    failing = []
    for program in FAILING:
        try:
            failing.append(failed(program))
        except SystemExit as message:
            print(message, file=sys.stderr)
    data = {"prelude": PRELUDE, "cases": cases, "failing": failing}
    FIXTURE.write_text(json.dumps(data, indent=0) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
