"""Records what PyTorch prints for transforms of transforms: every other pair, and a sample of
three inside one another.

Run it with `python -m tests.oracles.transform_pairs`; PyTorch is needed only there. `programs` with
another seed gives other functions for the same pairs.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import random
import warnings
from collections.abc import Iterator
from pathlib import Path

FIXTURE = Path(__file__).parents[1] / "fixtures" / "transform_pairs.json.gz"

START = """import torch
from torch.func import grad, grad_and_value, vjp, jvp, vmap, jacrev, jacfwd, hessian, linearize
from torch.func import functional_call
torch.manual_seed(0)
torch.set_default_dtype(torch.float64)
c = torch.tensor({c}, requires_grad={c_grad})
x = torch.tensor({x}, requires_grad={x_grad})
v = torch.tensor([1.0, 0.5, -1.0])
"""

SCALARS = (
    "def s(x): return (x ** 3).sum() * c[0]",
    "def s(x): return torch.where(x > 0, x * x * x, x.exp()).dot(c)",
    "def s(x):\n    y = x * c\n    return y[0] * y[1] + y[2].exp()",
    "def s(x):\n    h = torch.nn.functional.softplus(x)\n"
    "    return (h * h.flip(0)).sum() + c.sum()",
    "def s(x): return c @ torch.outer(x, x) @ x",
    "def s(x): return x.softmax(0).log().dot(c)",
    "def s(x): return torch.linalg.norm(x * c)",
    "def s(x): return x.sin().prod() + c.dot(x)",
    "def s(x): return (x.cumsum(0) * c).logsumexp(0)",
)

VECTORS = (
    "def f(x): return x.sin() * c",
    "def f(x): return x.softmax(0) * c",
    "def f(x): return x ** 3 + c * x.sum()",
    "def f(x):\n    y = x * c\n    return torch.stack([y[0] * y[1], y[1].exp(), y.prod()])",
    "def f(x): return torch.outer(x, x) @ c",
    "def f(x):\n    h = torch.nn.functional.softplus(x)\n    return h.cumsum(0) * c",
    "def f(x): return torch.cat([x[1:], x[:1]]) * x.tanh() * c",
    "def f(x):\n    y = x.clone()\n    y[1:] *= x[:1]\n    return y * c",
    "def f(x): return x.detach() * x * c",
    "def f(x):\n    with torch.no_grad():\n        k = x * 2\n    return k * x * c",
)

# Functions of three numbers to three, or to a matrix, each made by a transform.
INNER = {
    "grad": "g = grad(s)",
    "grad_and_value": "g = lambda z: sum(grad_and_value(s)(z))",
    "grad with aux": "g = lambda z: (lambda a, b: a * b[0])(*grad(lambda q: (s(q), (q * q,)), "
    "has_aux=True)(z))",
    "grad of two": "g = lambda z: sum(grad(lambda a, b: (f(a) * b).sum(), (0, 1))(z, z * c))",
    "vjp": "g = lambda z: vjp(f, z)[1](v)[0]",
    "vjp of moving cotangents": "g = lambda z: vjp(f, z)[1](z.sin())[0]",
    "vjp_fn from outside": "out, back = vjp(f, x)\ng = lambda z: back(z)[0]",
    "vjp_fn from outside twice": "out, back = vjp(f, x)\ng = lambda z: back(z * x)[0] * z",
    "jvp": "g = lambda z: jvp(f, (z,), (v,))[1]",
    "jvp along itself": "g = lambda z: jvp(f, (z,), (z * z,))[1]",
    "jvp along": "g = lambda z: jvp(f, (x,), (z,))[1]",
    "jvp_fn from outside": "out, lin = linearize(f, x)\ng = lambda z: lin(z)",
    "vmap": "g = lambda z: vmap(lambda a, b: (a * b).sin() + b * c.sum(), (0, None))(z, z.sum())",
    "jacrev": "g = jacrev(f)",
    "jacrev with aux": "g = lambda z: (lambda a, b: a * b)(*jacrev(lambda q: (f(q), q * q), "
    "has_aux=True)(z))",
    "jacfwd": "g = jacfwd(f)",
    "hessian": "g = hessian(s)",
    "functional_call": "m = torch.nn.Linear(3, 3)\n"
    "g = lambda z: functional_call(m, {'weight': torch.outer(z, c), 'bias': z * 2}, (v,))",
}

MIDDLE = {
    "grad": "h = g\ng = grad(lambda z: (h(z) ** 2).sum())",
    "vjp": "h = g\ng = lambda z: (lambda o, b: b(o)[0])(*vjp(h, z))",
    "jvp": "h = g\ng = lambda z: jvp(h, (z,), (z * v,))[1]",
    "vmap": "h = g\ng = lambda z: vmap(h)(torch.stack([z, z * 2]))",
    "vmap of columns": "h = g\ng = lambda z: vmap(h, 1, 1)(torch.outer(z, z))",
    "jacrev": "h = g\ng = jacrev(h)",
    "jacfwd": "h = g\ng = jacfwd(h)",
}

OUTER = {
    "grad": "r = grad(lambda z: (g(z) ** 2).sum())(x)",
    "vjp": "out, back = vjp(g, x)\nr, = back(torch.ones_like(out) * 0.5)\n"
    "print(back(out)[0].detach())",
    "jvp": "out, r = jvp(g, (x,), (v,))\nprint(out.detach())",
    "vmap": "r = vmap(g)(torch.stack([x, x + 1, x * 0.5]))",
    "vmap of columns": "r = vmap(g, in_dims=1, out_dims=-1)(torch.stack([x, x + 1, x * 0.5], 1))",
    "jacrev": "r = jacrev(g)(x)",
    "jacfwd": "r = jacfwd(g)(x)",
    "hessian": "r = hessian(g)(x)",
    "linearize": "out, lin = linearize(g, x)\nr = lin(v)\nprint(out.detach(), lin(v * 2).detach())",
    "functional_call": "class M(torch.nn.Module):\n    def __init__(self):\n"
    "        super().__init__()\n        self.w = torch.nn.Parameter(torch.ones(3))\n"
    "    def forward(self, z): return g(z * self.w)\n"
    "m = M()\nr = functional_call(m, {'w': v}, (x,))\nprint(m(x).detach())",
}

# Where a slope is 0, PyTorch has None, zeros or rounding, by the way that it took there.
END = """def shown(t): return (t.detach() * 1e6).round() / 1e6 + 0.0
print(r.shape, shown(r).flatten()[:27])
if r.requires_grad:
    (r * r).sum().backward()
print([torch.zeros(3) if p.grad is None else shown(p.grad) for p in (c, x)])
"""


def program(rng: random.Random, inner: str, middle: str, outer: str) -> str:
    """One program: `outer` of `middle`, where there is one, of `inner` of a random function."""
    start = START.format(
        c=rng.choice(("[2.0, 0.3, -1.0]", "[1.0, -2.0, 0.5]", "[1.5, 1.0, 2.0]")),
        x=rng.choice(("[0.5, -1.0, 2.0]", "[0.1, 0.7, 1.1]", "[1.0, 0.2, -0.3]")),
        c_grad=rng.random() < 0.6,
        x_grad=rng.random() < 0.5,
    )
    parts = (rng.choice(SCALARS), rng.choice(VECTORS), INNER[inner], MIDDLE.get(middle, ""))
    return start + "\n".join((*filter(None, parts), OUTER[outer], END))


def programs(seed: int, threes: int) -> Iterator[tuple[str, str]]:
    """Name and text of every other pair, and of `threes` random ones of three."""
    for at, inner in enumerate(INNER):
        for outer in list(OUTER)[at % 2 :: 2]:
            rng = random.Random(f"{seed}{inner}{outer}")
            yield f"{outer} of {inner}", program(rng, inner, "", outer)
    rng = random.Random(seed)
    for _ in range(threes):
        inner, middle, outer = (rng.choice(list(names)) for names in (INNER, MIDDLE, OUTER))
        yield f"{outer} of {middle} of {inner}", program(rng, inner, middle, outer)


def printed(text: str) -> str | None:
    """What PyTorch prints; None where it fails."""
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exec(compile(text, "<program>", "exec"), {})
    except Exception:
        return None
    return out.getvalue()


def main() -> None:
    """Write the fixture. Left out: what PyTorch refuses, and its `linearize` of a `vmap`, which it
    takes for a constant."""
    cases = []
    for name, text in programs(0, 40):
        if name.startswith("linearize") and "jacrev" in name:
            continue
        found = printed(text)
        if found is not None:
            case = {"id": name, "source": text, "stdout": found}
            cases.append(case | {"tensors": {}, "error": None})
    with gzip.GzipFile(FIXTURE, "wb", mtime=0) as file:
        file.write(json.dumps(cases, indent=0).encode())
    print(len(cases), "programs")


if __name__ == "__main__":
    main()
