"""What has no end is refused where it would begin, and what rows of the library stand for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autodiff_cli.graph.registry import OPS, register
from autodiff_cli.language.errors.array_diff import most_different
from autodiff_cli.language.nn import prelude
from autodiff_cli.language.python import saving, text_modules
from autodiff_cli.language.runtime import assignment
from autodiff_cli.language.syntax.literals.number_arrays import read_array
from autodiff_cli.language.values import formatting, python_operators
from autodiff_cli.language.values.arrays import _SIZES
from autodiff_cli.session import run
from autodiff_cli.source import Source
from tests.together import together

DEEP = "deep = [1.0]\nfor i in range(200): deep = [deep]\n"
REFUSED = {
    "torch.zeros(10_000_001).tolist()": "E505",
    "torch.ones([1] * 65)": "E303",
    "torch.ones(1).view([1] * 65)": "E303",
    "torch.zeros(1_000_001).split(1)": "E505",
    "a = [0.0] * 1000; b = [a] * 1000; torch.tensor([b] * 1000)": "E505",
    "math.factorial(10**7)": "E505",
    "list(range(10**9))": "E505",
    "sorted(range(10**9))": "E505",
    "('a' * 10_000).replace('a', 'b' * 6000)": "E505",
    "('a' * 4000).replace('a', 'b' * 10_000_000)": "E505",
    "input('a')": "E203",
    "import dataclasses; dataclasses.dataclass(3)": "E208",
    "torch.save(torch.ones(1), 3)": "E208",
    "torch.save(torch.ones(1), 'a' * 5000)": "E208",
    "import os; os.makedirs('q'); os.makedirs('q', exist_ok=True)\nos.makedirs('q')": "E701",
    "class A:\n    def __weird__(self): pass": "E106",
    "torch.func.functional_call(3, {}, torch.ones(1))": "E208",
    "torch.autograd.graph.GradientEdge(3, 0)": "E208",
    "torch.autograd.grad([3], torch.ones(1, requires_grad=True))": "E208",
    "torch.ones(3)[..., ...]": "E305",
    "n = torch.tensor([1])\nF.ctc_loss(M.log_softmax(1), n + 6, n + 1, n)": "E305",
    "torch.histogram(torch.ones(3), torch.tensor([3.0, 1.0, 2.0]))": "E504",
    "torch.linalg.pinv(M, rtol=torch.ones(4, 4))": "E308",
    "(-8) ** 0.5": "E504",
    "torch.einsum('ii,j->ij', M, torch.ones(3))": "E301",
    "torch.einsum('iij->j', torch.ones(2, 3, 3))": "E301",
    "torch.einsum('i,i->', [1.0, 2.0], [3.0, 4.0])": "E205",
    "torch.addmm(torch.ones(2, 2, 2), M, M.t())": "E302",
    "F.interpolate(torch.ones(1, 1, 4, 4), 2, mode='lanczos')": "E205",
    "F.lp_pool1d(torch.ones(1, 1, 4), 0, 2)": "E504",
    "torch.gradient(torch.ones(3), spacing=(torch.ones(2),))": "E303",
    "torch.ones(2, 3).t().clone().as_strided((2,), (1,))": "E203",
    "torch.nn.functional.max_pool1d(torch.ones(1, 3), 2, 1, 1, 4)": "E203",
    "y = torch.ones(2, 2, 3) @ w\ny.grad_fn.next_functions[0][0].register_prehook(len)": "E203",
    "q = [1]\nfor i in range(9000): q = map(abs, q)\nnext(q)": "E507",
    "F.triplet_margin_with_distance_loss(M, M, M, distance_function=3)": "E205",
    "enumerate([1]).close()": "E207",
    "m = torch.nn.Linear(2, 2); del m.weight; m.reset_parameters()": "E207",
    "torch.no_grad()(3)": "E208",
    "d = fa.make_dual(M, t)\nt.add_(1); fa.unpack_dual(d.sin())": "E203",
    "np.linalg.inv(np.ones((2, 3)))": "E208",
    "[1] * 10**30": "E504",
    "[1] * (2**63 - 1)": "E505",
    "math.perm(5001, 2)": "E505",
    "json.dumps([1], indent=101)": "E203",
    "print([10**5000])": "E504",
    "f'{10**5000}'": "E504",
    "json.dumps(10**5000)": "E504",
    "float(10**400)": "E504",
    "10**400 / 3": "E504",
    "'a'.center(10**30)": "E504",
    "len(range(10**30))": "E504",
    DEEP + "str(deep)": "E505",
    DEEP + "np.array(deep)": "E108",
    DEEP + "torch.func.vmap(lambda t: t)(deep)": "E507",
    "t = 'a' * 1_000_000\nstr([t] * 20)": "E505",
    "json.loads('[' * 100_000)": "E505",
    "a = [1]; a *= 10_000_001": "E505",
    "a = [1] * 4; a *= 10**30": "E504",
    "import collections; a = collections.deque([1, 2]); a *= 6_000_000": "E505",
    "import collections; a = collections.deque([1, 2]); a *= 10**30": "E504",
    "class L(list): pass\na = L([1]); a *= 10**30": "E504",
    "a = (1, 2); a *= 6_000_000": "E505",
    "a = 'ab'; a *= 30_000_000": "E505",
    "import collections; collections.deque([1, 2]) * 6_000_000": "E505",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_too_much_is_refused_by_its_code(text: str) -> None:
    start = """import torch, math, json
import numpy as np
import torch.nn.functional as F
from torch.autograd import forward_ad as fa
M, w = torch.arange(6.0).reshape(2, 3), torch.ones(3, requires_grad=True)
t = torch.ones(2, 3)
fa.enter_dual_level()
"""
    lines = (start + text).count("\n") + 1
    error = run(Source(start + text, "much.py")).error
    assert error is not None
    assert (error.code, error.span and error.span.line) == (REFUSED[text], lines)


SIZES: list[tuple[Any, ...]] = [
    ("zeros", (2, 3)), ("eye", 3), ("eye", 3, 4), ("tri", 2, 5), ("identity", 3),
    ("linspace", 0, 1), ("geomspace", 1, 2, 7), ("pad", np.ones((2, 3)), 2),
    ("tile", np.ones((2, 3)), (2, 1)), ("repeat", np.ones(3), 4),
    ("where", [True], np.ones((3, 1)), np.ones(4)), ("outer", np.ones(2), np.ones(3)),
    ("kron", np.ones((2, 3)), np.ones((2, 2))), ("diag", np.ones(3), -2), ("diag", np.ones(3)),
    ("meshgrid", np.ones(2), np.ones(3)), ("matmul", np.ones((4, 2, 3)), np.ones((4, 3, 5))),
    ("matmul", np.ones((2, 3)), np.ones((4, 3, 5))), ("matmul", np.ones((2, 3)), np.ones(3)),
    ("matmul", np.ones(3), np.ones((3, 5))), ("matmul", np.ones(3), np.ones(3)),
    ("dot", np.ones((2, 3)), np.ones((4, 3, 5))), ("dot", np.ones((4, 2, 3)), np.ones(3)),
    ("dot", np.ones((4, 2, 3)), np.ones((3, 5))), ("inner", np.ones((2, 3)), np.ones((4, 5, 3))),
]  # fmt: skip


@together(SIZES)
def test_sizes_of_arrays_are_known_before_numpy_makes_them(name: str, *args: Any) -> None:
    assert np.prod(_SIZES[name](*args)) == np.size(getattr(np, name)(*args))


@pytest.mark.parametrize(
    "text", ["d = {}\nfor i in range(30): d[i] = i", "d = []\nfor i in range(30): d += [i]"]
)
def test_containers_grow_to_a_bound(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(Source(f"import torch\n{text}\nprint(len(d))", "grows.py")).stdout == "30\n"
    monkeypatch.setattr(assignment, "MAX_ITEMS", 20)
    error = run(Source(f"import torch\n{text}", "grows.py")).error
    assert error is not None
    assert error.code == "E505"


# A limit of 20 or 40: what is just below it, and what goes beyond it.
LIMITS = [
    (python_operators, "MAX_ITEMS", 20, "[1] * 20", "[1] * 21"),
    (python_operators, "MAX_ITEMS", 20, "sorted(range(20))", "sorted(range(21))"),
    (python_operators, "MAX_CHARACTERS", 20, "'ab' * 10", "'a' * 21"),
    (python_operators, "MAX_CHARACTERS", 20, "'a'.center(20)", "'a'.center(21)"),
    (python_operators, "MAX_CHARACTERS", 20, "'aa'.replace('a', 10 * 'b')",
     "'aa'.replace('a', 11 * 'b')"),
    (python_operators, "MAX_CHARACTERS", 20, "'aaa'.replace('a', 10 * 'b', 2)",
     "'aaa'.replace('a', 10 * 'b', 3)"),
    (python_operators, "MAX_BITS", 40, "2 ** 20", "2 ** 21"),
    (python_operators, "MAX_BITS", 40, "1 << 39", "1 << 40"),
    (python_operators, "MAX_BITS", 40, "2**19 * -(2**19)", "2**20 * 2**19"),
    (formatting, "MAX_WIDTH", 20, "f'{1:20}'", "f'{1:21}'"),
    (formatting, "MAX_WIDTH", 20, "'%20d' % 1", "'%21d' % 1"),
    (formatting, "MAX_WIDTH", 20, "'%*d' % (-20, 1)", "'%*d' % (-21, 1)"),
    (text_modules, "MAX_TEXT", 20, "re.findall('.', 'a' * 20)", "re.findall('.', 'a' * 21)"),
    (text_modules, "MAX_TEXT", 20, "re.sub('b', 'c' * 20, 'b' + 'a' * 9)",
     "re.sub('b', 'c' * 20, 'b' + 'a' * 10)"),
    (text_modules, "MAX_TEXT", 20, "re.sub('a', 'bb', 'a' * 11)", "re.sub('a', 'bb', 'a' * 12)"),
    (text_modules, "MAX_TEXT", 20, r"re.sub('(a+)', r'\1\1\1\1', 'a aaaa a')",
     r"re.sub('(a+)', r'\1\1\1\1', 'a aaaaa a')"),
    (assignment, "MAX_ITEMS", 20, "{}\nfor i in range(20): x[i] = 0",
     "{}\nfor i in range(21): x[i] = 0"),
    (assignment, "MAX_ITEMS", 20, "[]\nx += [0] * 20", "[]\nx += [0] * 21"),
    (formatting, "MAX_TEXT", 20, "str(['a' * 13])", "str(['a' * 14])"),
    (formatting, "MAX_TEXT", 10**6, "[]\nfor i in range(100): x = [x]\nprint(x)",
     "[]\nfor i in range(101): x = [x]\nprint(x)"),
    (saving, "LONGEST_NAME", 20, "torch.save(1, 'a' * 20)", "torch.save(1, 'a' * 21)"),
]  # fmt: skip


@together(LIMITS)
def test_what_is_at_a_limit_is_fine(
    module: Any, name: str, most: int, fine: str, beyond: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, name, most)
    for line, code in ((fine, None), (beyond, "E208" if module is saving else "E505")):
        error = run(Source(f"import re, torch\nx = {line}\n", "much.py")).error
        assert (error and error.code) == code, line
    monkeypatch.undo()


def test_equal_infinities_do_not_differ() -> None:
    x, y = np.array([np.inf, 1.0, 2.0]), np.array([np.inf, 1.5, 4.0])
    words = most_different(x, y, np.array([True, False, False]), "{} and {}")
    assert words == "2 of 3 elements differ, most at [2]: 2.0 and 4.0"


def test_an_op_is_declared_once() -> None:
    with pytest.raises(ValueError, match="twice"):
        register(OPS["sin"])


LAYER = """layer Scaled(size, by=2.0, other=None) of Base(size, 3)
    .other = other or 1
    forward(input) = input * .by + .size
    shows by={.by}
"""
CLASS = """class Scaled(Base):
    def __init__(self, size, by=2.0, other=None):
        super().__init__(size, 3)
        self.by = by
        self.other = other or 1
    def forward(self, input):
        return input * self.by + self.size
    def extra_repr(self):
        return f"by={self.by}"
"""
KEEPS = """class Sized(Module):
    def __init__(self, .size: positive, .by=2):
        super().__init__()

class Bare(Module):
    __init__(a, b)
    forward(x) = .size * x
"""
KEPT = """class Sized(Module):
    def __init__(self, size, by=2):
        super().__init__()
        self.size = positive(size, "size")
        self.by = by

class Bare(Module):
    def __init__(self, a, b):
        pass
    def forward(self, x):
        return self.size * x
"""


def test_rows_of_the_library_are_classes() -> None:
    assert prelude._written_out(LAYER) == CLASS
    assert prelude._written_out("layer Plain\n") == "class Plain(Module):\n    pass\n"
    assert prelude._written_out(KEEPS) == KEPT


def test_sizes_of_the_library_are_families(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "made.expr").write_text(
        "class ConvNd(_Conv):\n    size = N\n\nclass Alone(Module):\n    size = 4\n"
    )
    monkeypatch.setattr(prelude, "FOLDER", tmp_path)
    monkeypatch.setattr(prelude, "PRELUDE", {"Conv1d": "made", "Conv3d": "made", "Alone": "made"})
    texts = prelude._texts("made")
    assert {name: text.split() for name, text in texts.items()} == {
        "Conv1d": ["class", "Conv1d(_Conv):", "size", "=", "1"],
        "Conv3d": ["class", "Conv3d(_Conv):", "size", "=", "3"],
        "Alone": ["class", "Alone(Module):", "size", "=", "4"],
    }


ROW = ", ".join(f"{i}.25" for i in range(200))
LISTS = {
    "long": f"[{'1' * 60}.5, {ROW}]",
    "blanks": f"[{' ' * 300}1.5, {ROW}]",
    "blanks after": f"[1.5{' ' * 300}, {ROW}]",
    "deep": f"{'[' * 70}{ROW}{']' * 70}",
    "ragged": f"[[{ROW}], [1.5]]",
    "empty": f"[[], [{ROW}]]",
    "rows": f"[[{ROW}], [{ROW}]]",
    "end": f"[[{ROW}], [{ROW}, ], ]",
    "outside": f"[[{ROW}], 1.5]",
}


@together(LISTS)
def test_lists_that_are_no_arrays_are_left_to_others(name: str) -> None:
    text = LISTS[name]
    found = read_array(text, 0, len(text))
    if found is None:
        assert name not in ("rows", "end")
        return
    expected = np.array(eval(text), np.float64)
    assert found[1] == len(text)
    assert found[0].shape == expected.shape
    assert found[0].tolist() == expected.tolist() == json.loads(json.dumps(eval(text)))


NAMES = """
import torch
made = lambda: torch.tensor(1.0, requires_grad=True)
keys = (10**18, -(10**18), 10**18 + 1, -(10**18) - 1, "a" * 60, "a" * 61, True, 1.5)
p = {key: made() for key in keys}
q = [made() for i in range(1001)]
r = {i: made() for i in range(1002)}
loss = sum([*p.values(), *q, *r.values()])
loss.backward()
"""


def test_which_parts_of_values_have_names() -> None:
    report = run(Source(NAMES, "names.py"))
    assert report.error is None
    keys = 10**18, -(10**18), "a" * 60, True
    lists = [f"{name}[{i}]" for name in "qr" for i in range(1000)]
    assert list(report.tensors) == [*(f"p[{key!r}]" for key in keys), *lists, "loss"]
