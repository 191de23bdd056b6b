"""Programs that would break what they run in: each ends with a diagnostic, none by an accident."""

from __future__ import annotations

import json
from typing import Any

import pytest

from autodiff_cli.checks.beside_torch.departures import outcome_of_program
from autodiff_cli.checks.snapshots import arrays_of
from autodiff_cli.errors import AutodiffError
from autodiff_cli.graph.op import Op
from autodiff_cli.graph.state import STATE
from autodiff_cli.language.program.report import Options
from autodiff_cli.render.document import document
from autodiff_cli.render.plain import plain
from autodiff_cli.session import run
from autodiff_cli.source import Source

from ..together import together

TWICE = "x, y = (1,), (1,)\nfor i in range(60):\n    x, y = (x, x), (y, y)\n"
LISTS = "x, y = [1], [1]\nfor i in range(60):\n    x, y = [x, x], [y, y]\n"
BIG = "import torch\nn = 10 ** 5000\n"


def report_of(text: str) -> Any:
    report = run(Source(text, "t.py"), Options(max_steps=30_000))
    STATE.warnings.clear()
    return report


def code_of(text: str) -> str:
    error = report_of(text).error
    assert error is None or isinstance(error, AutodiffError)
    return "" if error is None else error.code


def caught(made: str, call: str, shown: str) -> str:
    """What a program prints of the exception `e` that a call raises after `made`."""
    report = report_of(f"{made}try:\n    {call}\nexcept Exception as e:\n    print({shown})\n")
    assert report.error is None, report.error
    return str(report.stdout)


@pytest.mark.parametrize(
    "line",
    ["hash(x)", "q = {x: 1}", "q = {x}", "{1: 2}.get(x)", "x in {1: 2}", "set().add(x)", "x < y",
     "q = sorted([x, y])", "x == y", "for k, g in itertools.groupby([x, y]): print(1)"],
)  # fmt: skip
def test_shared_structure_is_walked_through_within_the_steps(line: str) -> None:
    assert code_of("import itertools\n" + TWICE + line + "\n") == "E506"


@pytest.mark.parametrize("line", ["x < y", "q = sorted([x, y])", "x == y", "q = [x].index(y)"])
def test_shared_lists_are_compared_within_the_steps(line: str) -> None:
    assert code_of("import torch\n" + LISTS + line + "\n") == "E506"


def test_tuples_are_hashed_only_so_deep() -> None:
    assert code_of("import torch\nx = ()\nfor i in range(5000): x = (x,)\nhash(x)\n") == "E507"


def test_lists_part_at_their_first_difference_as_in_python() -> None:
    text = (
        "import torch\n"
        "assert [1, [2, 3]] < [1, [2, 4]] and not [1, 2] < [1, 2] and [1] < [1, 0]\n"
        "assert (2,) > (1, 9) and [[]] >= [[]] and (1, 'a') < (1, 'b') and not [2] <= [1, 5]\n"
    )
    assert code_of(text) == ""


@together(
    [
        ("n // 0", "E504"),
        ("0.0 ** -n", "E504"),
        ("[1] * n", "E504"),
        ("torch.full((2,), n)", "E504"),
        ("torch.zeros(2)[n]", "E305"),
        ("torch.ones(2).sum(n)", "E504"),
        ("torch.arange(n)", "E504"),
        ("str(n)", "E504"),
        ("torch.nn.functional.pixel_shuffle(n, 2)", "E205"),
        ("torch.ones(3, 3).rot90(2 ** 70)", "E504"),
        ("torch.ones(1).expand(10 ** 10, 10 ** 10)", "E505"),
        ("torch.nn.functional.pad(torch.ones(1), (-(2 ** 62), 2 ** 62))", "E303"),
        ("{**5}", "E208"),
        ("{}[1:2]", "E208"),
        ("1.5 & 3", "E208"),
        ("torch.zeros(0, 2 ** 62)", "E505"),
        ("from torch.nn.modules.utils import _ntuple; _ntuple(10 ** 9)(1)", "E505"),
    ]
)
def test_numbers_beyond_measure_are_refused_at_their_place(line: str, code: str) -> None:
    report = report_of(BIG + line + "\n")
    error = report.error
    assert error.code == code and error.span is not None and error.span.line == 3


def test_a_diagonal_beyond_the_matrix_is_empty() -> None:
    text = (
        "import torch\nx = torch.ones(3, 2)\n"
        "assert x.diagonal(2 ** 62).numel() == x.diagonal(-(2 ** 62)).numel() == 0\n"
        "assert x.triu(-(2 ** 63)).sum() == 6 and x.tril(-(2 ** 63)).sum() == 0\n"
        "assert x.triu(2 ** 62).sum() == 0 and x.tril(2 ** 62).sum() == 6\n"
    )
    assert code_of(text) == ""


def test_a_generator_that_iterates_itself_raises_what_python_raises() -> None:
    text = (
        "import torch\ndef g():\n    for i in q: yield i\nq = g()\n"
        "try:\n    next(q)\nexcept ValueError as error:\n    print(error)\n"
    )
    assert report_of(text).stdout == "generator already executing\n"


def test_an_integer_that_python_does_not_write_is_a_text_in_json() -> None:
    found = document(report_of(BIG))
    assert json.loads(json.dumps(found))["scalars"]["n"] == "<integer of 16610 bits>"


def test_such_an_integer_is_a_remark_in_plain_text_and_is_not_compared() -> None:
    found = report_of(BIG)
    assert "# n: <integer of 16610 bits>  # int" in plain(found)
    assert arrays_of(found) == {}


def test_an_integer_of_more_than_64_bits_is_compared() -> None:
    array, _ = arrays_of(report_of("import torch\nn = 2 ** 70\n"))["n"]
    assert array == 2.0**70 and array.dtype == "float64"


@pytest.mark.parametrize("call", ["str(n)", 'int("1" * 5000)', 'f"{n}"'])
def test_pythons_bound_on_digits_is_caught_as_in_python(call: str) -> None:
    assert code_of(f"{BIG}try:\n    {call}\nexcept ValueError:\n    x = 1\n") == ""
    assert code_of(f"{BIG}{call}\n") == "E504"


@together(
    [
        ("1 << 2 ** 70", "OverflowError"),
        ("1 << -1", "ValueError"),
        ("'a'.ljust(2 ** 70)", "OverflowError"),
        ("'\\t'.expandtabs(2 ** 70)", "OverflowError"),
        ("'a' * 2 ** 70", "OverflowError"),
        ("[] * 2 ** 70", "OverflowError"),
        ("1.0 * n", "OverflowError"),
        ("max([])", "ValueError"),
        ("{1: 2}.pop(print)", "KeyError"),
        ("c(1) == 5", "TypeError"),
        ("p.__new__(p(1), 2)", "TypeError"),
        ("d.update((d.setdefault(-k, 1), 2) for k in d)", "RuntimeError"),
    ]
)
def test_what_python_raises_is_caught_by_its_name(call: str, kind: str) -> None:
    """The names are those of CPython 3.11; what is no exception there is none here."""
    made = (
        "from functools import cmp_to_key\nfrom collections import namedtuple\n"
        "c, d, p = cmp_to_key(lambda a, b: 0), {1: 2}, namedtuple('P', 'a')\n"
    )
    assert caught(BIG + made, call, "type(e).__name__") == f"{kind}\n"
    calm = "import torch\nprint(0 << 2 ** 70, (-1) ** 10 ** 30, len('a'.zfill(200_000)), 'a' * -9)"
    assert report_of(calm).stdout == "0 1 200000 \n"


@pytest.mark.parametrize("kind", [TypeError, RuntimeError])
def test_what_the_layers_below_raise_is_no_error_of_the_program(
    kind: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    def wrong(*args: object) -> None:
        raise kind("a mistake")

    monkeypatch.setattr(Op, "apply", wrong)
    with pytest.raises(kind, match="a mistake"):
        report_of("import torch\nx = torch.ones(1)\ntry: x.sin()\nexcept TypeError: pass\n")


def test_what_is_printed_is_bounded() -> None:
    text = "import torch\ntry:\n    while True: print('a' * 1000)\nfinally: print('never')\n"
    report = run(Source(text, "t.py"), Options(max_memory=1 << 20))
    assert report.error is not None and report.error.code == "E505"
    assert report.stdout == ("a" * 1000 + "\n") * 130


@pytest.mark.parametrize("more", [0, 1])
def test_what_just_fits_is_printed(more: int) -> None:
    """An eighth of the memory, with the end of the line."""
    most = (1 << 20) // 8
    report = run(Source(f"print('a' * {most - 1 + more})\n", "t.py"), Options(max_memory=1 << 20))
    assert len(report.stdout) == (0 if more else most)
    assert (report.error and report.error.code) == ("E505" if more else None)


def test_what_is_given_has_the_dtype_of_what_it_replaces() -> None:
    """But floats stay floats, in the default dtype."""
    text = "import torch\ni = torch.tensor([1, 2])\nj = torch.tensor(1, dtype=torch.float16)\n"
    for line, dtype in (("", "float32"), ("torch.set_default_dtype(torch.float64)\n", "float64")):
        defines = (("i", "[2.5, 3]", False), ("j", "2.5", False))
        made = run(Source(text.replace("i =", f"{line}i =", 1), "t.py"), Options(defines=defines))
        assert made.error is None
        assert [str(made.tensors[n].dtype) for n in "ij"] == [dtype, "float16"]


def test_gradients_are_of_leaves() -> None:
    text = "import torch\nw = torch.ones(2, requires_grad=True)\nd = [w, w * 2]\n"
    text += "loss = (d[0] * d[1] * w).sum()\n"
    tensors = run(Source(text, "t.py"), Options(wrt=("d*",))).tensors
    assert {n: t.grad.tolist() for n, t in tensors.items() if t.grad is not None} == {
        "d[0]": [6.0, 6.0]
    }


def test_a_stack_that_is_full_is_an_error_of_the_program() -> None:
    """Also where a program runs without the commands' own handling."""
    deep = "t = ()\nfor i in range(90_000): t = (t,)\nd = {t: 1}\n"
    with pytest.raises(AutodiffError) as caught:
        outcome_of_program(Source(deep, "t.py"), Options(), "t.py")
    assert caught.value.code == "E507"


def test_yield_of_a_lambda_is_refused() -> None:
    report = run(Source("import torch\ndef f():\n    return lambda: (yield)\nprint(f())\n"))
    assert report.error is not None
    assert report.error.code == "E106"


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("class A: __slots__ = 5", "TypeError", "'int' object is not iterable"),
        ("class A: __slots__ = [1]", "TypeError", "__slots__ items must be strings, not 'int'"),
        (
            "class A(enum.Enum):\n    B = 1\n    def __new__(cls, v): return (1,)",
            "AttributeError", "'tuple' object has no attribute '_value_'",
        ),
        (
            "class A(enum.Flag): B = 1.5\nA(1)",
            "TypeError", "unsupported operand type(s) for |=: 'int' and 'float'",
        ),
        (
            "class A(enum.IntEnum): B = 'a'",
            "ValueError", "invalid literal for int() with base 10: 'a'",
        ),
        ("class A: x = functools.cached_property(5)\nA().x", "TypeError",
         "'int' object is not callable"),
        ("torch.autograd.grad([], x)", "RuntimeError", "The differentiated Tensor at index 0 "
         "appears to not have been used in the graph. Set allow_unused=True if this is the "
         "desired behavior."),
    ],
)  # fmt: skip
def test_strange_classes_and_empty_lists_fail_as_in_python(
    text: str, kind: str, words: str
) -> None:
    """Kinds and words are those of CPython 3.11 and PyTorch."""
    made = "import torch, enum, functools\nx = torch.ones(2, requires_grad=True)\ntry:\n"
    body = "".join(f"    {line}\n" for line in text.split("\n"))
    caught = "except Exception as e:\n    print(type(e).__name__, e)\n"
    assert report_of(made + body + caught).stdout == f"{kind} {words}\n"


def test_names_that_are_asked_for_are_no_patterns() -> None:
    """The help looks for the name in the text of `__init__`."""
    text = (
        "import torch\nclass A:\n    def __init__(self):\n"
        f"        {'a' * 40} = 1\n"
        "a = A()\nfor name in ('[', '(a+)+', '(', '(a|a)*$ ='):\n"
        "    try: getattr(a, name)\n    except AttributeError: print(name)\n"
        "class B(tuple): __iter__ = print\nb = B((1, 2))\nprint(2 in b, 3 in b)\n"
    )
    assert report_of(text).stdout == "[\n(a+)+\n(\n(a|a)*$ =\nTrue False\n"


def test_what_is_no_member_and_no_loss_is_left_out() -> None:
    text = (
        "import torch, enum, functools\n"
        "class F(enum.Flag):\n    A = 1\n"
        "    @functools.cached_property\n    def x(self): return self.value + 1\n"
        "class E(enum.Enum):\n    A = 'a'\n    B = enum.auto()\n"
        "class P:\n    n = functools.cached_property(len)\n    def __len__(self): return 7\n"
        "p = P()\nprint(F(1).x, E.B.value, p.n, list(p.__dict__))\n"
        "x = torch.ones(2, requires_grad=True)\n"
        "print(torch.autograd.grad((), x, allow_unused=True), torch.autograd.backward(()))\n"
    )
    assert report_of(text).stdout == "2 1 7 ['n']\n(None,) None\n"


def test_numbers_and_texts_of_programs_are_taken_as_they_are() -> None:
    """As in PyTorch, which looks at the number and not at what its class says."""
    text = (
        "import torch\n"
        "class F(float):\n    def __float__(self): return 'a'\n"
        "class I(int):\n    def __index__(self): return 'a'\n    def __int__(self): return 'a'\n"
        "class S(str):\n    def __hash__(self): return 1 / 0\n"
        "print(torch.full((2,), F(2.0)), torch.tensor([F(2.0), 1.0]), torch.arange(I(3)))\n"
        "print(torch.ones(I(2), I(3)).sum(I(1)), torch.ones(2).mul(F(3.0)), torch.tensor(F(4.0)))\n"
        "print(torch.nn.functional.mse_loss(torch.ones(2), torch.zeros(2), reduction=S('sum')))\n"
    )
    assert report_of(text).stdout == (
        "tensor([2., 2.]) tensor([2., 1.]) tensor([0, 1, 2])\n"
        "tensor([3., 3.]) tensor([3., 3.]) tensor(4.)\ntensor(2.)\n"
    )


def test_words_of_an_error_may_be_any_text() -> None:
    text = "import torch\ntorch.nn.NLLLoss(reduction='\\ud800\\g<9>')(torch.ones(2, 3))\n"
    assert code_of(text) == "E205"


def test_names_of_what_values_hold_are_printable() -> None:
    text = (
        "import torch\nclass A: pass\no = A()\no.__dict__[5] = torch.ones(1)\n"
        "class S(str):\n    def isidentifier(self): return 1 / 0\n"
        "for name in ('w', 'a b', '\\x1b[31m\\n', S('q')):\n"
        "    setattr(o, name, torch.ones(1, requires_grad=True))\n"
    )
    report = report_of(text)
    assert list(document(report)["tensors"]) == ["o.w", "o['a b']", r"o['\x1b[31m\n']"]
    assert "\x1b" not in plain(report)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("torch.detach_([1])", "detach_(): argument 'input' must be Tensor, not list"),
        (
            "torch.as_strided(1, (2,), (1,))",
            "as_strided(): argument 'input' must be Tensor, not int",
        ),
        (
            "torch.constant_pad_nd(torch.ones(2), 1)",
            "`constant_pad_nd` argument `pad` must be a tuple",
        ),
        ("np.nanmax(torch.tensor([1, 0, 2])) + 'a'", "unsupported operand type(s)"),
        ("torch.ones(2) >> (1, 2)", "unsupported operand type(s)"),
        ("torch.ones(2) >> Odd()", "unsupported operand type(s)"),
    ],
)
def test_odd_arguments_fail_in_words(call: str, words: str) -> None:
    """As Python's exceptions, whose words begin as PyTorch's where it has any."""
    made = (
        "import torch\nimport numpy as np\n"
        "class Odd(Exception):\n    def __bool__(self): return 2\n"
    )
    assert caught(made, call, f"str(e)[:{len(words)}]") == words + "\n"
