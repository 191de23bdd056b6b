"""Random sequences of writes to views: memory is shared as NumPy shares it, and gradients through
what was written are differences."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from autodiff_cli.session import Options, run
from autodiff_cli.source import Source

# The first run raises the recursion limit; hypothesis does not like that to happen in a test.
run(Source("", "first.expr"))
SETTINGS = settings(max_examples=40, deadline=None, derandomize=True, database=None)

# Views of a (2, 3) tensor that NumPy and PyTorch write alike.
VIEWS = [
    "m",
    "m[0]",
    "m[1]",
    "m[:, 1]",
    "m[:, ::2]",
    "m.T",
    "m.T[1:]",
    "m[1, 1:]",
    "m.reshape(6)[2:5]",
]
WRITES = [
    "{v} += {k}",
    "{v} *= {k}",
    "{v} -= {v} * {k}",
    "{v}[...] = {k}",
    "{v}[...] = {v} * x[0] + {k}",
]


def statements() -> st.SearchStrategy[list[str]]:
    """Each takes a view under a name and writes through it."""
    one = st.builds(
        lambda view, write, k: f"v = {view}\n" + write.format(v="v", k=k),
        st.sampled_from(VIEWS),
        st.sampled_from(WRITES),
        st.sampled_from(["2.0", "0.5", "-1.5", "x[1]"]),
    )
    return st.lists(one, min_size=1, max_size=6)


def with_numpy(lines: list[str], x: np.ndarray) -> np.ndarray:
    names = {"x": x, "m": np.outer([1.0, 2.0], [1.0, 0.5, x[0]]) * x[1]}
    exec("\n".join(lines), {}, names)
    return names["m"]


def program(lines: list[str]) -> str:
    start = "import torch\ntorch.set_default_dtype(torch.float64)\n"
    leaf = "x = torch.tensor([0.7, -1.3], requires_grad=True)\n"
    first = "m = torch.stack([x[0] * 0 + 1.0, x[0] * 0 + 0.5, x[0]])\n"
    outer = "m = torch.outer(torch.tensor([1.0, 2.0]), m) * x[1]\n"
    last = "w = torch.arange(1.0, 7.0).reshape(2, 3)\nloss = (m * w).sum()\nloss.backward()\n"
    return start + leaf + first + outer + "\n".join(lines) + "\n" + last


@SETTINGS
@given(statements())
def test_writes_through_views(lines: list[str]) -> None:
    report = run(Source(program(lines), "writes.py"))
    if report.error is not None:  # a value that a later rule needs was overwritten, as in PyTorch
        assert report.error.code == "E407", str(report.error)
        return
    x = np.array([0.7, -1.3])
    np.testing.assert_allclose(report.tensors["m"].value, with_numpy(lines, x), rtol=1e-12)
    weights = np.arange(1.0, 7.0).reshape(2, 3)
    gradient = report.tensors["x"].grad
    assert gradient is not None
    for i in range(2):
        step = np.eye(2)[i] * 1e-6
        sides = [(with_numpy(lines, x + s * step) * weights).sum() for s in (1, -1)]
        difference = (sides[0] - sides[1]) / 2e-6
        assert abs(gradient[i] - difference) < 1e-6 * max(1.0, abs(difference)), "\n".join(lines)


@SETTINGS
@given(statements())
def test_writes_under_no_grad_are_seen_by_all_views(lines: list[str]) -> None:
    text = (
        "import torch\ntorch.set_default_dtype(torch.float64)\nx = torch.tensor([0.7, -1.3])\n"
        "m = torch.outer(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 0.5, 0.7])) * x[1]\n"
        "row, column, turned = m[1], m[:, 2], m.T\n" + "\n".join(lines) + "\n"
    )
    report = run(Source(text, "views.py"))
    assert report.error is None, str(report.error)
    m = with_numpy(lines, np.array([0.7, -1.3]))
    for name, expected in {"m": m, "row": m[1], "column": m[:, 2], "turned": m.T}.items():
        np.testing.assert_allclose(report.tensors[name].value, expected, rtol=1e-12, err_msg=name)


def test_a_backward_function_prints_as_an_object_in_python_and_short_in_native_files() -> None:
    text = "x = torch.ones(2, requires_grad=True)\ny = x * 2\nprint(y.grad_fn, y.grad_fn)\n"
    python = run(Source("import torch\n" + text, "a.py"), Options()).stdout.split("> <")
    assert python[0].startswith("<MulBackward0 object at 0x7f")
    assert python[1] == python[0][1:] + ">\n"
    native = run(Source(text, "a.expr"), Options()).stdout
    assert native == "<MulBackward0> <MulBackward0>\n"
