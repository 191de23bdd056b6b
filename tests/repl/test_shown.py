"""Everything a session says about a spread of values, wide, narrow, in colours and ASCII: held
against `fixtures/said_repl.txt` (see `conftest.py`); and what it offers and hints while one types.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from autodiff_cli.repl.commands.table import COMMANDS
from autodiff_cli.repl.complete import call_signature, candidates
from autodiff_cli.repl.hints import hint

from .conftest import SHOWN, Session

LINES = [
    "x = [1, 2, -0.5]", "A = [[1, 2, 3], [4, 5, 6]]", "n = 3", "s = 'a word'", "k = const([1, 2])",
    "π = 3.5", "long_name_of_a_tensor = arange(100) * 0.25", "e = zeros(0, 3)",
    "i = tensor([[1, 2]], dtype=torch.int32)", "pair = (x, {'a': A}, [None, True])",
    "bad = [1, nan, inf]", "u = [5, 6]", "def f(a, b=2):\n  return a * b\n\n",
    "net = nn.Linear(3, 1, bias=False)",
    "for p in net.parameters():\n  p.requires_grad_(False)\n\n",
    "x", "A * 1", "pair", "f", "bad * 2", "long_name_of_a_tensor", "e", "i + 1", "n > 2", "'a' + s",
    "x[0]", "None", "A @ x", "A.T @ x", "y = f(x, 3)", "h = A @ y", "loss = sum(h * h) * π",
    "sqrt(x)", "1 / 0", "xs", "A @ A", "(1,\n2)", "a b", "print(x, n)", "_", "x.grad",
    "loss.backward()", "x.grad", "x = x * 2", "x.add_(1)", "y = y +", "import torch", "del n", "n",
]  # fmt: skip
ASKED = [
    "", "x", "A", "loss", "k", "s", "e", "f", "u", "bad", "los", "h x", "2", "leaves", "values",
    "defs", "loss A π",
]  # fmt: skip
# These write files, leave, take time or open an editor; what tools say is in tests of commands.
APART = (
    "save", "load", "edit", "quit", "time", "plot", "reset", "derive", "explain", "hess", "jac",
)  # fmt: skip
LOOKS = {
    "wide": {}, "narrow": {"width": lambda: 34, "message_width": lambda: 34},
    "colors": {"color": True, "width": lambda: 60}, "ascii": {"encoding": "ascii"},
}  # fmt: skip
TYPED = [
    "x", "lo", "A.", "x.re", "torch.so", "nn.Li", "net.", "sum(A, ", "f(", "f(x, ", "softmax(x, d",
    "F.rel", "pair[0].", "torch.nn.functional.", "A @ ", "sqrt(x", "loss = ", "np.ar", ":", ":g",
    ":grad lo", ":info ", ":set ", ":set echo ", ":help s", ":list ", "x +", "A @ x", "A @ u", "su",
    "max(x, ", "x = [1, ", "def g(t):\n  return t.", "'a ", "# no", "print(", "i.", "zeros(2, 2)",
    ":explain", ":nothing", "torch.linalg.", "cross_entropy(x, k, ", "1 / 0", "bad",
]  # fmt: skip


@pytest.fixture(params=LOOKS)
def spread(request: pytest.FixtureRequest, make_session: Callable[..., Session]) -> Session:
    return make_session(**LOOKS[request.param])


def told(session: Session, text: str) -> None:
    assert "E900" not in session.tell(text).output


def test_statements(spread: Session) -> None:
    for line in LINES:
        told(spread, line)


@pytest.mark.parametrize("at", range(2))
@pytest.mark.parametrize("command", [name for name in COMMANDS if name not in APART])
def test_commands(make_session: Callable[..., Session], command: str, at: int) -> None:
    looks = list(LOOKS.values())  # which take turns
    session = make_session(**looks[(list(COMMANDS).index(command) + 2 * at) % 4])
    for line in LINES[:13] + LINES[29:32]:
        told(session, line)
    SHOWN.clear()
    for words in ASKED[at::2]:
        told(session, f":{command} {words}".rstrip())


@pytest.mark.parametrize("echo", ["full", "none"])
def test_echoes(make_session: Callable[..., Session], echo: str) -> None:
    session = make_session(width=lambda: 60)
    for line in (f":set echo {echo}", ":set precision 3", ":set max-elements 5", *LINES[:32]):
        told(session, line)


def test_while_typing(session: Any) -> None:
    for line in LINES[:32]:
        session.tell(line)
    SHOWN.clear()
    for fuzzy in (False, True):
        session.loop.settings.fuzzy = fuzzy
        for text in TYPED:
            found = [f"{c.text} {c.about()}" for c in candidates(text, session.loop)]
            said = hint(text, len(text), session.loop), call_signature(text, session.loop)
            SHOWN.append("\n".join([text, *map(repr, said), str(len(found)), *found[:12]]))
