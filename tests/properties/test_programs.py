"""Random native programs: values are NumPy's, gradients are differences, plain output is itself."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from autodiff_cli.render.plain import plain
from autodiff_cli.session import Options, run
from autodiff_cli.source import Source

# The first run raises the recursion limit; hypothesis does not like that to happen in a test.
run(Source("", "first.expr"))
SETTINGS = settings(max_examples=25, deadline=None, derandomize=True, database=None)

NAMES = {
    "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "exp": np.exp, "square": np.square,
    "sigmoid": lambda v: 1 / (1 + np.exp(-v)), "atan": np.arctan, "log1p": np.log1p,
    "sqrt": np.sqrt,
}  # fmt: skip
LEAVES = {
    "a": np.array([0.3, -0.7, 1.1]),
    "b": np.array([[0.5], [-1.2]]),
    "c": np.array(0.8),
    "d": np.array([[1.0, 0.2, -0.4], [0.6, -0.9, 0.1]]),
}
# Python's own meaning of the same text.
NUMPY = {**NAMES, "sqrt": lambda v: np.sqrt(v), "T": np.transpose}


def safe(function: str, inner: str) -> str:
    """A call whose argument lies well inside the function's domain."""
    if function in ("log1p", "sqrt"):
        return f"{function}(square({inner}) + 0.5)"
    return f"{function}(tanh({inner}))" if function in ("exp", "square") else f"{function}({inner})"


def expressions() -> st.SearchStrategy[str]:
    """Elementwise expressions of the leaves; every operation is smooth where it is used."""
    leaves = st.sampled_from([*LEAVES, "2", "0.5", "-1.5"])

    def grow(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        binary = st.builds(
            lambda op, x, y: f"({x} {op} {y})", st.sampled_from(["+", "-", "*"]), inner, inner
        )
        quotient = st.builds(lambda x, y: f"({x} / (square({y}) + 1))", inner, inner)
        calls = st.builds(safe, st.sampled_from(sorted(NAMES)), inner)
        powers = st.builds(lambda x, n: f"tanh({x})**{n}", inner, st.integers(2, 4))
        return binary | quotient | calls | powers | st.builds(lambda x: f"(-{x})", inner)

    return st.recursive(leaves, grow, max_leaves=8)


def program(text: str) -> str:
    lines = [f"{name} = {value.tolist()}" for name, value in LEAVES.items()]
    return "\n".join([*lines, f"y = {text} + 0*c", "loss = sum(y * y)"]) + "\n"


def value(text: str, leaves: dict[str, np.ndarray]) -> np.ndarray:
    found = eval(text, {"__builtins__": {}}, {**NUMPY, **leaves})
    return np.asarray(found + 0 * leaves["c"])


def loss(text: str, leaves: dict[str, np.ndarray]) -> float:
    return float((value(text, leaves) ** 2).sum())


@SETTINGS
@given(expressions())
def test_values_and_gradients(text: str) -> None:
    report = run(Source(program(text), "random.expr"))
    assert report.error is None, f"{text}: {report.error}"
    np.testing.assert_allclose(report.tensors["y"].value, value(text, LEAVES), rtol=1e-12)
    step = 1e-6
    for name, leaf in LEAVES.items():
        gradient = report.tensors[name].grad
        for at in np.ndindex(leaf.shape):
            sides = []
            for sign in (1, -1):
                moved = leaf.copy()
                moved[at] += sign * step
                sides.append(loss(text, {**LEAVES, name: moved}))
            difference = (sides[0] - sides[1]) / (2 * step)
            found = 0.0 if gradient is None else gradient[at]
            scale = max(1.0, abs(difference), loss(text, LEAVES))
            assert abs(found - difference) <= 1e-6 * scale, (text, name, at)


@SETTINGS
@given(expressions())
def test_plain_output_is_a_program_with_the_same_results(text: str) -> None:
    first = run(Source(program(text), "random.expr"))
    printed = plain(first)
    second = run(Source(printed, "random.expr"))
    assert second.error is None, f"{second.error}\n{printed}"
    for name, record in first.tensors.items():
        again = second.tensors[name]
        np.testing.assert_array_equal(again.value, record.value)
        assert (again.grad is None) == (record.grad is None)
        if record.grad is not None:
            np.testing.assert_array_equal(again.grad, record.grad)


@SETTINGS
@given(expressions())
def test_parts_by_name_change_nothing(text: str) -> None:
    """A program written in pieces, and its text in brackets or a function, mean the same."""
    whole = run(Source(program(text), "random.expr"))
    wrapped = (
        program(f"({text})")
        .replace("y = ", "def f():\n    return ")
        .replace("\nloss", "\ny = f()\nloss")
    )
    other = run(Source(wrapped, "random.expr"))
    assert other.error is None, str(other.error)
    for name, record in whole.tensors.items():
        np.testing.assert_array_equal(other.tensors[name].value, record.value)
        if record.grad is not None:
            np.testing.assert_array_equal(other.tensors[name].grad, record.grad)


@SETTINGS
@given(expressions(), st.sampled_from(sorted(LEAVES)))
def test_wrt_one_leaf_is_part_of_wrt_all(text: str, name: str) -> None:
    everything = run(Source(program(text), "random.expr"))
    one = run(Source(program(text), "random.expr"), Options(wrt=(name,)))
    assert one.error is None, str(one.error)
    found, expected = one.tensors[name].grad, everything.tensors[name].grad
    if expected is None:
        assert found is None or not found.any()
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)
    assert all(r.grad is None for n, r in one.tensors.items() if n != name and n in LEAVES)
