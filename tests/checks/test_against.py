"""`--against torch`: what PyTorch once computed stands in for PyTorch; the first departure is
named. What is written for it holds calls of listed functions and nothing else."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autodiff_cli.checks.beside_torch import against_torch
from autodiff_cli.checks.model import Item, Settings
from autodiff_cli.checks.runner import check_source
from autodiff_cli.graph.registry import op
from autodiff_cli.source import Source, Span
from autodiff_cli.transform.torch_source import METHOD, listed

from ..table import cases
from ..written import text_of_sample

REFRESH = "python -m tests.oracles.torch_source"  # with PyTorch
PROGRAM = "x = [0.5, -1.0, 0.25]\nh = x * 2\ny = h.tanh()\nz = y.exp()\nloss = (z * x).sum()\n"
# Values and gradients that PyTorch 2 gives for the assignments, in order.
RECORDED: list[tuple[Any, Any]] = [
    ([0.5, -1.0, 0.25], [3.041141560094826, 0.32746792666544783, 2.2116471337574417]),
    ([1.0, -2.0, 0.5], [0.4497269376727381, -0.026942964457724972, 0.31210793116380336]),
    (
        [0.7615941559557649, -0.9640275800758169, 0.46211715726000974],
        [1.070843842374675, -0.3813538555808978, 0.3968578178574588],
    ),
    ([2.14168768474935, 0.3813538555808978, 1.587431271429835], [0.5, -1.0, 0.25]),
    (1.0863478046512358, 1.0),
]


def check(text: str, name: str = "t.expr") -> Item:
    settings = Settings(against="torch", keyword="torch")
    (item,) = check_source(Source(text, name), settings).items
    return item


@pytest.fixture
def recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The other process answers what PyTorch once computed."""

    def answer(request: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, (value, gradient) in zip(request["values"], RECORDED, strict=True):
            found[name], found[f"{name}.0"] = np.array(value), np.array(gradient)
        return found

    monkeypatch.setattr(against_torch, "answer_of", answer)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the other process was asked; it refuses everything."""
    requests: list[dict[str, Any]] = []

    def answer(request: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
        requests.append(request)
        return {"refused": np.array("TypeError: no")}

    monkeypatch.setattr(against_torch, "answer_of", answer)
    return requests


@pytest.mark.usefixtures("recorded")
def test_the_same_program_agrees() -> None:
    assert check(PROGRAM).status == "passed"


@pytest.mark.usefixtures("recorded")
def test_the_first_value_that_departs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(op("exp"), "kernel", lambda x, *rest: np.exp(x) * 1.001)
    item = check(PROGRAM)
    assert item.status == "failed" and item.line == 4
    assert item.diagnostic is not None
    assert item.diagnostic.message.startswith("the value of `z` departs from PyTorch's: 3 of 3")
    assert item.diagnostic.notes[-1] == "departs afterwards: `loss`"


@pytest.mark.usefixtures("recorded")
def test_the_first_gradient_that_departs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(op("exp"), "vjp_rule", lambda g, out, x: g * out * 1.01)
    item = check(PROGRAM)
    assert item.status == "failed" and item.line == 3  # what exp was given
    assert item.diagnostic is not None
    assert "the gradient of `y` departs" in item.diagnostic.message
    assert "`h`" in item.diagnostic.notes[-1] and "`x`" in item.diagnostic.notes[-1]


def test_a_graph_that_pytorch_refuses_is_no_failure(asked: list[dict[str, Any]]) -> None:
    item = check(PROGRAM)
    assert item.status == "noisy" and item.diagnostic is not None
    assert "cannot be compared with PyTorch: TypeError: no" in item.diagnostic.message


def test_an_op_without_a_counterpart_is_named(asked: list[dict[str, Any]]) -> None:
    item = check(
        "import torch\n"
        "class Square(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x):\n"
        "        return x * x\n"
        "    @staticmethod\n"
        "    def backward(ctx, g):\n"
        "        return g\n"
        "y = Square.apply(torch.ones(2, requires_grad=True))\n",
        "t.py",
    )
    assert item.diagnostic is not None and not asked
    assert "`SquareBackward` has no counterpart" in item.diagnostic.message
    assert "(line 9)" in item.diagnostic.message


def test_what_departs_afterwards_is_named_as_far_as_there_is_room() -> None:
    """Of what follows the first, eight by name, two of them in the text."""
    for count in (1, 2, 3, 4, 9, 10, 12):
        source = Source("".join(f"v{i} = {i}\n" for i in range(count)))
        spans = [Span(source, at, at + 2) for at in source.starts[:count]]
        found = [(span.text, span, "differs", []) for span in spans]
        said = against_torch._departed(found, "the value of")
        assert said.message == "the value of `v0` departs from PyTorch's: differs"
        assert [label.span for label in said.labels] == spans[1:3]
        later = ", ".join(f"`v{i}`" for i in range(1, min(count, 9)))
        assert said.notes[1:] == ((f"departs afterwards: {later}",) if later else ())


# -- what is written -------------------------------------------------------------------------------


def strange(text: str) -> list[str]:
    """Lines that are no call of a listed function, no part of a tuple and no other name."""
    return [line for line in text.splitlines() if not _plain(line)]


def _plain(line: str) -> bool:
    (statement,) = ast.parse(line).body
    if not (isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)):
        return False
    for node in ast.walk(statement):
        if isinstance(node, ast.Call):
            path = ast.unparse(node.func)
            path = re.sub(r"^torch\.", "", re.sub(r"^v\d+\.", METHOD, path))
            if path not in listed() and path != "slice":
                return False
        elif isinstance(node, ast.Name):
            if not re.fullmatch(r"v\d+|torch|slice", node.id):
                return False
        elif isinstance(node, ast.Attribute):
            text = ast.unparse(node)
            values = r"torch\.(u?int\d+|float\d+|bool|inf|nan)"
            if not re.match(r"(torch|v\d+)(\.\w+)+$", text) or "__" in text:
                return False
            known = any(f".{node.attr}." in f".{path}." for path in listed())
            if not known and not re.fullmatch(values, text):
                return False
        elif not isinstance(
            node,
            ast.Assign | ast.Constant | ast.Tuple | ast.Subscript | ast.keyword | ast.expr_context
            | ast.UnaryOp | ast.USub,
        ):  # fmt: skip
            return False
    return True


def test_what_is_written_of_every_sample_is_what_was_checked_in_pytorch(project: Path) -> None:
    fixture = project / "tests" / "fixtures" / "torch_source.json"
    recorded = json.loads(fixture.read_text("utf-8"))
    for case in cases():
        text, sample = text_of_sample(case)
        assert text == recorded.get(case.name), f"{case.name}: run {REFRESH}"
        if sample is not None:
            assert not strange("\n".join(sample.source.lines))
        else:
            assert not case.op.public or case.op.key == "standard_gamma"


HOSTILE = """import torch
import random
x = torch.tensor([1.0, 2.0], requires_grad=True)
if __name__ == "program":
    random._os.system("touch marked")
class os:
    system = "marked"
marked = torch.einsum("i,i->i", x, x)
marked[0] = 3.0
torch_os_system = marked.sum() * float("inf")
g = torch.autograd.grad((x * marked).sum(), x, create_graph=True)[0]
loss = torch.nn.functional.pad(g[None, None], (1, 1), mode="reflect").sum()
loss.backward()
"""


def test_nothing_of_the_text_is_written(asked: list[dict[str, Any]]) -> None:
    check(HOSTILE, "t.py")
    (request,) = asked
    assert not strange(request["source"])
    words = set(re.findall(r"[a-z_]+", json.dumps(request)))
    assert not words & {"marked", "os", "system", "program", "random", "torch_os_system", "touch"}


@pytest.mark.parametrize(
    "line",
    ["v1 = torch.os.system('a')", "v1 = v0.numpy()", "import os", "v1 = v0.__class__",
     "v1 = open('a')", "v1 = torch.load(v0)", "v1 = v0.sum().item()", "x = v0 + v1"],
)  # fmt: skip
def test_what_is_not_listed_would_be_noticed(line: str) -> None:
    assert strange(line)


PYTORCH = """
import os, sys

def set_default_dtype(dtype):
    raise RuntimeError(repr((sorted(os.environ), os.listdir("."), sys.flags.isolated)))

float64 = None
"""


def test_it_runs_alone_in_an_empty_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A module that tells where it runs stands in for PyTorch."""
    (tmp_path / "torch.py").write_text(PYTORCH)
    monkeypatch.setattr(
        against_torch, "torch_folders", lambda: [str(tmp_path), str(Path(np.__file__).parents[1])]
    )
    monkeypatch.setenv("SECRET", "token")
    monkeypatch.setattr(against_torch, "BESIDE", against_torch.Beside())
    item = check(PROGRAM)
    started = against_torch.BESIDE.process
    assert check(PROGRAM).diagnostic == item.diagnostic and started is against_torch.BESIDE.process
    started.kill()
    again = check(PROGRAM).diagnostic
    assert again is not None and "ended before it had answered" in again.message
    assert check(PROGRAM).diagnostic == item.diagnostic
    against_torch.BESIDE.close()
    assert item.diagnostic is not None
    found = re.search(r"RuntimeError: (\(.*\))$", item.diagnostic.message)
    assert found is not None, item.diagnostic.message
    environment, files, isolated = ast.literal_eval(found.group(1))
    assert "SECRET" not in environment and "HOME" not in environment and "PATH" not in environment
    assert not files and isolated


def test_pytorch_is_not_looked_for_in_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "torch.py").write_text("")
    monkeypatch.chdir(tmp_path)
    other = tmp_path / "other"
    for name in ("torch", "numpy"):
        (other / name).mkdir(parents=True)
        (other / name / "__init__.py").write_text("")
    monkeypatch.setattr("sys.path", ["", str(tmp_path), "."])
    assert against_torch.torch_folders() == []
    monkeypatch.setattr("sys.path", ["", str(other), "."])
    assert against_torch.torch_folders() == [str(other)]
