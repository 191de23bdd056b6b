"""What is shown while typing: completion, the live hint, colours; none of it changes a session."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit import PromptSession
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import DummyInput
from prompt_toolkit.output import ColorDepth, DummyOutput
from pygments.token import Token

from autodiff_cli.repl import hints
from autodiff_cli.repl.complete import LONGEST_INPUT, candidates, open_call
from autodiff_cli.repl.hints import hint
from autodiff_cli.repl.lexer import ExprLexer
from autodiff_cli.repl.loop import Loop
from autodiff_cli.repl.terminal import Terminal
from autodiff_cli.repl.words import Hint

from ..said import compare
from ..together import together

SETUP = [
    "weights = [[1.0, 2.0], [3.0, 4.0]]",
    "well = const(3)",
    "def scale(x, factor=2):\n  return x * factor\n\n",
    "net = nn.Linear(2, 1)",
    "def fact(n):\n  return n * fact(n - 1) if n > 1 else 1\n\n",
    "def looped(n):\n  for i in range(n):\n    n = n + i\n  return n\n\n",
    "@torch.no_grad()\ndef wrapped(t):\n  return t\n\n",
    "pairs = {'w': weights}",
    "class Own:\n  def __add__(self, other):\n    return weights.zero_()\n\n",
    "own = Own()",
]


@pytest.fixture
def typing(session: Any) -> Any:
    for line in SETUP:
        session(line)
    return session


def texts(session: Any, before: str) -> list[str]:
    state = session.state()
    found = [c.text for c in candidates(before, session.loop)]
    assert session.state() == state
    return found


COMPLETIONS = [
    ("we", "weights"),
    ("sum(we", "well"),
    ("soft", "softmax"),
    ("sca", "scale"),
    ("weights.", "grad"),
    ("weights.", "T"),
    ("weights.su", "sum("),
    ("(weights + 1).su", "sum("),
    ("torch.soft", "softmax"),
    ("F.rel", "relu"),
    ("torch.nn.functional.rel", "relu"),
    ("torch.lin", "linalg"),
    ("np.arct", "arctan2"),
    ("math.sq", "sqrt"),
    ("nn.Lin", "Linear"),
    ("net.", "weight"),
    ("net.for", "forward"),
    ("net.weight.resh", "reshape("),
    ("softmax(weights, d", "dim="),
    ("scale(weights, fa", "factor="),
    ("sum(weights, kee", "keepdim="),
    ("def f(x):\n  ret", "return"),
    (":li", "list"),
    (":list le", "leaves"),
    (":info we", "weights"),
    (":grad we", "weights"),
    (":set prec", "precision"),
    (":set nan e", "error"),
    (":help :un", ":undo"),
    (":help softm", "softmax"),
    (":save it.expr --a", "--asserts"),
    ("weights.sum(d", "dim="),
]


@together(COMPLETIONS)
def test_completion(before: str, expected: str, typing: Any) -> None:
    assert expected in texts(typing, before)


def test_completion_says_what_things_are(typing: Any) -> None:
    about = {c.text: c.about() for c in candidates("we", typing.loop)}
    assert about["weights"] == "(2, 2) float64"
    about = {c.text: c.about() for c in candidates("softm", typing.loop)}
    assert about["softmax"].startswith("softmax(input, dim")
    about = {c.text: c.about() for c in candidates("sca", typing.loop)}
    assert about["scale"] == "function(x, factor)"
    about = {c.text: c.about() for c in candidates("torch.softm", typing.loop)}
    assert about["softmax"].startswith("softmax(input, dim")


def test_completion_of_what_values_hold(typing: Any) -> None:
    typing("class Held:\n  def double(self):\n    pass\n\n")
    typing("own = Held()")
    typing("own.net, own.width, own._hidden = net, weights, 1")
    about = {c.text: c.about() for c in candidates("own.", typing.loop)}
    assert about == {"net": "a Linear", "width": "(2, 2) float64", "double": "of the class"}
    assert "bias" in texts(typing, "own.net.")
    assert "grad" in texts(typing, "own.nothing.")


def test_completion_of_files(typing: Any) -> None:
    Path("data").mkdir()
    for name in ("a.npy", "b.csv", "c.expr", "d.bin", "data/e.npz"):
        Path(name).touch()
    assert texts(typing, 'x = load("') == ["a.npy", "b.csv", "data/"]
    assert texts(typing, "x = load('data/") == ["e.npz"]
    assert texts(typing, "x = load('nowhere/") == []
    assert texts(typing, ":load ") == ["c.expr", "data/"]
    Path(".hidden.expr").touch()
    assert texts(typing, ":load ") == ["c.expr", "data/"]
    assert texts(typing, ":load .") == [".hidden.expr"]
    assert texts(typing, ":save ") == ["c.expr", "data/"]
    assert texts(typing, ":load --a") == []


def test_completion_of_settings_that_are_no_words(typing: Any) -> None:
    for before in (":set precision ", ":set precision 3", ":set nothing o"):
        assert texts(typing, before) == []


def test_completion_of_nothing(typing: Any) -> None:
    assert "weights" in texts(typing, f"{' ' * (LONGEST_INPUT - 2)}we")
    assert texts(typing, f"{' ' * (LONGEST_INPUT - 1)}we") == []
    for before in ("nothing.", "'weights.", "1.", ":xyzzy ", "weights.grad.", "((((", "x" * 30_000):
        texts(typing, before)
    assert "weights" in texts(typing, "")
    assert "softmax" not in texts(typing, "")


def test_fuzzy(typing: Any) -> None:
    assert "weights" not in texts(typing, "wghts")
    typing(":set fuzzy on")
    assert "weights" in texts(typing, "wghts")


@together(
    [
        ("f(", ("f", 0)),
        ("f(1, 2", ("f", 1)),
        ("f(g(1), ", ("f", 1)),
        ("f([1, 2], g(", ("g", 0)),
        ("f('(', ", ("f", 1)),
        ("torch.sum(x, ", ("torch.sum", 1)),
        ("f(1)", None),
        ("x = (1, ", None),
        ("if (", None),
        ("", None),
    ]
)
def test_open_call(before: str, call: tuple[str, int] | None) -> None:
    assert open_call(before) == call


def test_hints_show_numbers_of_small_values(typing: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for most, shown in ((4, "(2, 2) float64   [[2, 4], [6, 8]]"), (3, "(2, 2) float64")):
        monkeypatch.setattr(hints, "MOST_ELEMENTS", most)
        assert hint("weights * 2", 11, typing.loop).text == shown


HINTS = [
    ("weights @ weights", "(2, 2) float64   [[ 7, 10], [15, 22]]"),
    ("y = weights + 1", "(2, 2) float64   [[2, 3], [4, 5]]"),
    ("sum(weights)", "() float64   10"),
    ("2 ** 10", "1024"),
    ("scale(weights)", "(2, 2) float64   [[2, 4], [6, 8]]"),
    ("ones(3000, 3000) * 2", "(3000, 3000) float64"),
    ("ones(90, 90) @ ones(90, 90)", "(90, 90) float64"),
    ("softmax(weights, ", "softmax(input, dim, dtype=None)"),
    ("scale(", "scale(x, factor)"),
    (":undo", ":undo [N]   take back the last N entries, changes in place too"),
    ("weights", "(2, 2) float64   [[1, 2], [3, 4]]"),
    ("ad> sum(weights)", "() float64   10"),
    ("weights.T.sum()", "() float64   10"),
    ("weights[0].sum()", "() float64   3"),
    ("weights.sum(dim=", "sum(input, dim=None"),
    ("[[1], [2, 3]]", "list of 2"),
    ("[]", "list of 0"),
    ("fact(3)", "6"),
    ("fact(3)".ljust(2000), "6"),
    ("torch.sin", "the function `sin`"),
    ("weights.repeat(2, 3)", "(4, 6) float64   norm 13.4164   min 1   max 4"),
]


@together(HINTS)
def test_hints(text: str, expected: str, typing: Any) -> None:
    state = typing.state()
    found = hint(text, len(text), typing.loop)
    assert found.text.startswith(expected[: len(found.text) - 1] if "…" in found.text else expected)
    assert not found.error
    assert typing.state() == state


def test_hints_of_what_is_wrong(typing: Any) -> None:
    found = hint("weights @ ones(3, 2)", 20, typing.loop)
    assert found == Hint("`@` needs matching inner sizes: (2, 2) @ (3, 2)", True)
    assert hint("weigths + 1", 11, typing.loop).error


@together(
    [
        "", "   ", "x = [1,", "def f(x):", "y = weights; z = 1", "weights.zero_()", "net(weights)",
        "rand(2)", "print(3)", "[i for i in range(10**9)]", "weights.grad", "torch.manual_seed(1)",
        "while True: pass", "x" * 5000, "fact(3)".ljust(2001), "y = weights", "y = 3",
        "torch.nothing(weights)",
        "net.weight.sum()", "looped(3)", "pairs['w'].sum()", "(lambda t: t)(weights)",
        "own + 1", "wrapped(weights)", "weights.bernoulli()",
    ],
)  # fmt: skip
def test_no_hint(text: str, typing: Any) -> None:
    state = typing.state()
    assert hint(text, len(text), typing.loop) == Hint()
    assert typing.state() == state


def test_lexer() -> None:
    text = "def f(x):  # note\n    return relu(x.grad) ** 2.5e-3 + 'text'\n:undo 2\n"
    found = [(kind, word) for kind, word in ExprLexer().get_tokens(text) if word.strip()]
    assert "".join(word for _, word in ExprLexer().get_tokens(text)) == text
    for expected in [
        (Token.Keyword, "def"),
        (Token.Name.Function, "f"),
        (Token.Comment.Single, "# note"),
        (Token.Name.Function, "relu"),
        (Token.Name.Attribute, "grad"),
        (Token.Literal.Number.Float, "2.5e-3"),
        (Token.Literal.String.Single, "text"),
        (Token.Keyword.Pseudo, ":undo"),
    ]:
        assert expected in found
    assert not [word for kind, word in found if kind is Token.Error]


def test_lexer_reads_samples(project: Path) -> None:
    for path in sorted((project / "samples").glob("*.expr")):
        text = path.read_text("utf-8")
        kinds = {kind for kind, _ in ExprLexer().get_tokens(text)}
        assert Token.Error not in kinds


def test_lexer_is_declared(project: Path) -> None:
    import tomllib

    data = tomllib.loads((project / "pyproject.toml").read_text("utf-8"))
    entry = data["project"]["entry-points"]["pygments.lexers"]["autodiff"]
    assert entry == f"{ExprLexer.__module__}:{ExprLexer.__qualname__}"


def test_the_prompt_is_as_it_was(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """What the prompt is told beside its defaults: keys in a terminal show most of it, not all."""
    told = {}
    with create_app_session(DummyInput(), DummyOutput()):
        plain = vars(PromptSession())
        for variables in ({}, {"NO_COLOR": "1"}):
            history = {"AUTODIFF_HISTORY": str(tmp_path / "history")}
            prompt = Terminal(Loop, True, {**variables, **history}).prompt
            assert prompt.layout.current_window.dont_extend_height()
            for name, value in vars(prompt).items():
                known = isinstance(value, bool | ColorDepth)
                said = str(value) if known else type(value).__name__
                default = plain.get(name)
                if said != (str(default) if known else type(default).__name__):
                    told[name] = said
    compare(request, [f"{name}: {said}" for name, said in sorted(told.items())])
