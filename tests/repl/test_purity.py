"""What is taken for a statement that only binds names, and for an expression that changes nothing:
statements of all kinds beside values of all kinds (`fixtures/said_repl.txt`)."""

from __future__ import annotations

from autodiff_cli.language.syntax.parser import parse
from autodiff_cli.repl.purity import Purity
from autodiff_cli.source import Source

from .conftest import SHOWN
from .test_undo import CHANGES, ONLY_NAMES, started

VALUES = [
    "b", "xs", "d", "n", "net", "f", "opt", "it", "A[0]", "xs[0]", "d['a']", "net.lin", "(b + 1)",
    "torch", "nn.functional", "fresh", "[1, 2]", "'text'", "{1, 2}", "None", "sum", "Net",
]  # fmt: skip
USED = [
    "{}.grad", "{}.data", "{}.add(1)", "{}.copy()", "{}.sum()", "{}.sort()", "{}.add_(1)", "{}(b)",
    "{}.bernoulli()", "{}.strip()", "{}.clone(b)", "{}.zero_grad()", "{}.nothing()", "{}.relu(b)",
    "{} + 1", "{}[0]", "-{}", "f'{{{}}}'", "{}.shape", "{}.T.sum()", "{}.a.sum()",
    "[i for i in {}]", "{{k: 1 for k in {}}}", "f({})", "sum({}, out=b)", "print({})",
    "{}.item()", "{}.tanh_()",
]  # fmt: skip
STATEMENTS = [
    "y = {}", "y, *z = {}", "[y, z] = {}", "y: float = {}", "y.a = {}", "y[0] = {}", "n += {}",
    "b += {}", "fresh += {}", "{}", "if {}:\n  y = 1\nelse:\n  y = 2\n", "assert {}",
    "for i in {}:\n  y = i\n", "for (i, *j) in {}:\n  y = i\n  break\n",
    "for xs[0] in {}:\n  pass\n", "while {}:\n  y = 1\n  continue\n", "def g(t={}):\n  return t\n",
    "@f\ndef g(t):\n  return {}\n", "class G:\n  y = {}\n", "del n", "with {}:\n  y = 1\n",
    "global n\nn = {}\n", "try:\n  y = {}\nexcept ValueError:\n  pass\n", "raise {}",
    "y = lambda t: {}", "y = (z := {})", "y = 1 if {} else 2", "f = 1\ny = f({})",
]  # fmt: skip
DEFINED = [
    "def g(t):\n  return g(t - 1) if t else t\n\n", "def outer(t):\n  return f(t) + change(t)\n\n",
    "def counted(t):\n  global n\n  n = n + 1\n  return t\n\n",
    "def inner(t):\n  def own(u):\n    return u\n  return own(t)\n\n",
    "def shadowed(sum):\n  return sum(b)\n\n", "def looped(t):\n  return [x * t for x in b]\n\n",
    "def ended(t):\n  for i in range(2):\n    t = t * i\n  return t\n\n",
    "@torch.no_grad()\ndef wrapped(t):\n  return t\n\n", "import math as m",
    "import functools", "kept = functools.lru_cache(f)",
    "import numpy as np", "def gives(t):\n  return t.grad\n\n", "u = torch.float32",
    "short = lambda t: t * 2",
]  # fmt: skip
CALLED = [
    "g(2)", "outer(b)", "counted(b)", "inner(b)", "shadowed(f)", "looped(n)", "ended(b)",
    "wrapped(b)", "kept(b)", "m.sin(1.0)", "m.seed_(1)", "np.ones(2)", "np.linalg.norm(b)",
    "np.random.rand(2)",
    "gives(A)", "torch.rand(2)", "torch.exp(b)", "torch.exp_(b)", "torch.manual_seed(1)",
    "int(2.5)",
    "u(b)", "torch.nothing(b)", "torch.linalg.inv(A)", "torch.tensor([1.0])", "float(b[0])",
    "torch.nn.functional.rrelu(b)", "dropout(b)", "scaled_dot_product_attention(A, A, A)",
    "torch.nn.functional.fractional_max_pool2d(A, 1, 1)", "print(n)", "range(3)", "len(xs)",
    "ReLU()",
    "relu(b, inplace=True)", "sum(*xs)", "f(**d)", "sorted(xs, key=f)", "(lambda t: t)(b)",
    "f(b)(b)",
    "short(b)", "const([1])", "xs[0].sum()", "approx(1)", "Device('cpu')", "b.to(torch.float64)",
]  # fmt: skip


def test_judgements() -> None:
    session = started()
    for line in DEFINED:
        session(line)
    names, known = session.loop.session.scope.names, session.loop.session.definitions

    def judged(text: str, statement: bool) -> str:
        found = ""
        for options in ({}, {"loops": False}, {"gradients": False}):
            trees = parse(Source(text, "a")).body
            purity = Purity(names, known, **options)
            if statement:
                found += "+" if purity.of_statements(trees) else "-"
            else:
                found += "+" if purity.of_expression(trees[0].value) else "-"  # type: ignore[attr-defined]  # an expression
        return found

    rows = []
    for value in VALUES:
        rows.append(f"{value}: {' '.join(judged(use.format(value), False) for use in USED)}")
    for value in ("b", "xs.pop()", "n * 2", "[x for x in b]", "A.grad"):
        kinds = [judged(kind.format(value), True) for kind in STATEMENTS]
        rows.append(f"{value}: {' '.join(kinds)}")
    rows += [f"{call}: {judged(call, False)}" for call in CALLED]
    rows += [f"{call!r}: {judged(call, True)}" for call in (*CHANGES, *dict(ONLY_NAMES))]
    SHOWN[:] = rows
