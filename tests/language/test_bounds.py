"""What has no end is refused where it would begin, and what rows of the library stand for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from autodiff_cli.language.nn import prelude
from autodiff_cli.language.runtime import assignment
from autodiff_cli.language.syntax.literals.number_arrays import read_array
from autodiff_cli.session import run
from autodiff_cli.source import Source

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
    "('a' * 4000).replace('a', 'b' * 10_000_000)": "E505",
    DEEP + "str(deep)": "E505",
    DEEP + "np.array(deep)": "E108",
    DEEP + "torch.func.vmap(lambda t: t)(deep)": "E507",
    "t = 'a' * 1_000_000\nstr([t] * 20)": "E505",
    "json.loads('[' * 100_000)": "E505",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_too_much_is_refused_by_its_code(text: str) -> None:
    start = "import torch, math, json\nimport numpy as np\n"
    lines = (start + text).count("\n") + 1
    error = run(Source(start + text, "much.py")).error
    assert error is not None
    assert (error.code, error.span and error.span.line) == (REFUSED[text], lines)


@pytest.mark.parametrize(
    "text", ["d = {}\nfor i in range(30): d[i] = i", "d = []\nfor i in range(30): d += [i]"]
)
def test_containers_grow_to_a_bound(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(Source(f"import torch\n{text}\nprint(len(d))", "grows.py")).stdout == "30\n"
    monkeypatch.setattr(assignment, "MAX_ITEMS", 20)
    error = run(Source(f"import torch\n{text}", "grows.py")).error
    assert error is not None
    assert error.code == "E505"


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


@pytest.mark.parametrize("name", LISTS)
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
