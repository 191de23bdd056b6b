"""Options and answers that programs rarely meet; the numbers are by hand."""

from __future__ import annotations

import json

import numpy as np
import pytest

TWICE = "x = [1.0, 2.0]; y = x * 2"
RUN = {
    (TWICE, "--grad-output", "2"): "x.grad = [4.0, 4.0]",
    (TWICE, "--grad-output", "[1, 3]"): "x.grad = [2.0, 6.0]",
    ("a, b = [1.0], [2.0]; loss = sum(a * b)", "-D", "b=[5]"): "a.grad = [5.0]",
    ("a, b = [1.0], [2.0]; loss = sum(a * b * b)", "-D", "a=[5]"): "b.grad = [20.0]",
    ("a = b = [1.0]; loss = sum(a * b)", "-D", "b=[5]"): "b.grad = [10.0]",
    ("a = b = [1.0]; loss = sum(a * b)", "-D", "a=[3]"): "a.grad = [6.0]",
    ("k = 3; x = [1.0, 2.0]; loss = sum(x * k)", "-D", "k=@k.npy"): "x.grad = [4.0, 5.0]",
    ("x = 3.0; print(any(x > 1), all(x > 4)); loss = x",): "tensor(True) tensor(False)",
    ("x = 2.5649; loss = round(x * 1, 2) + x * x",): "loss = 9.1387",
    ("a, *b = [1.0], [2.0]; loss = sum(a) + 3 * sum(b[0])",): "a.grad = [1.0]",
    ("x = [1.0, 2.0]; y = x * 3; y.backward([1.0, 2.0])",): "x.grad = [3.0, 6.0]",
    ("x = 1.0; z = x * 3; b = x * 5; a = z + x",): "objective=a\n",
    ("x = 1.0; z = x * 3; b = z * 5; c = [z, b]; a = 2",): "objective=b\n",
    ("x = [-2.0, 3.0]; loss = sum(power(absolute(x), 2.0))",): "x.grad = [-4.0, 6.0]",
}


@pytest.mark.parametrize("words", RUN, ids=" ".join)
def test_numbers_by_hand(cli, tmp_path, words):
    np.save(tmp_path / "k.npy", np.array([4.0, 5.0]))
    found = cli("run", "-e", *words)
    assert found.code == 0, found.err
    assert RUN[words] in found.out


def test_only_what_is_asked_for_has_a_gradient(cli):
    found = cli("run", "-e", "a = 1.0; b = 2.0; loss = a * b", "--wrt", "a", "--format", "json")
    tensors = json.loads(found.out)["tensors"]
    assert (tensors["a"]["grad"], tensors["b"]["grad"]) == (2.0, None)


def test_a_block_of_nothing_is_zero(cli):
    found = cli("hessian", "-e", "x = [1.0]; w = [3.0, 1.0]; y = sum(x**2)", "--wrt", "x,w")
    assert found.code == 0
    for block in ("H_y_x_x = [[2.0]]", "H_y_x_w = [[0.0, 0.0]]", "H_y_w_w = [[0.0, 0.0], [0.0"):
        assert block in found.out
    assert "W403" in found.err


def test_a_vector_in_a_row_has_the_shape_of_its_variable(cli):
    text = "x = [[1.0, 2.0], [3.0, 4.0]]; y = sum(x**3)"
    found = cli("hessian", "-e", text, "--hvp", "@v.npy")
    assert found.code != 0
    found = cli("hessian", "-e", text, "--hvp", "[1, 2, 3, 4]")
    assert "[[6.0, 24.0], [54.0, 96.0]]" in found.out  # 6 x v


WORDS = {
    ("x = [1.0, 2.0]", "-D", "x=a = 3"): (3, "E102", "`a = 3`"),
    ("x = 1.0\nloss = x" + ".view(1)" * 20000,): (3, "E108", "nested too deeply"),
    ("a = [-1.0]\nloss = sum(a.log())", "--nan", "error"): (
        4, "E501", "`a.clamp(min=1e-12).log()` stays finite"),
    ("a = [-1.0]\nloss = sum((a+0).log())", "--nan", "error"): (4, "E501", "reaches `loss` (nan)"),
    ("a = [0.0, 1.0]\nb = c = d = e = [1.0]\nf = [0.0]\ng = [1.0]\nh = [1.0]\n"
     "loss = sum((a * (b + 1) * c * d * e * f * g * h).sqrt())", "--nan", "error"): (
        4, "E501", "f.grad = [nan] and 2 more"),
    ("x = 2.0\ny = acos(x)\nloss = y", "--nan", "error"): (4, "E501", "-1 <= x <= 1"),
    ("x = [1.0, 2.0]\nassert x < [1.0, 2.0, 3.0]",): (3, "E302", "(2,) with (3,)"),
    ("x = 1.5\nassert x == approx('a')",): (1, "E601", "() is not a string"),
    ("x = [[1.0, 2.0], [3.0, 4.0]]\nloss = sum([x, [1.0]])",): (3, "E107", "(2, 2)"),
    ("x = zeros(0)\nassert x == [1.0]",): (1, "E601", "left (0,), right (1,)"),
}  # fmt: skip


@pytest.mark.parametrize("words", WORDS, ids=lambda words: words[0][:40])
def test_refused_in_these_words(cli, words):
    code, name, said = WORDS[words]
    found = cli("run", "-e", *words)
    assert f"error[{name}]: " in found.err
    assert said in found.err
    assert found.code == code


def test_files_at_their_bounds(cli, tmp_path):
    np.savez_compressed(tmp_path / "big.npz", a=np.zeros(3_000_000))
    small = cli("run", "--max-memory", "8M", "--allow-read", ".", "-e", "x = load('big.npz')")
    assert "error[E505]: `big.npz` needs 22.9 MiB of memory, the limit is 8.0 MiB" in small.err
    for levels in (64, 65):
        (tmp_path / "deep.json").write_text("[" * levels + "1.5" + "]" * levels)
        found = cli(
            "run", "--allow-read", ".", "-e", "x = load('deep.json')\nprint(x.ndim, x.sum())"
        )
        if levels == 64:
            assert found.out.startswith("64 tensor(1.5000)\n")
        else:
            assert "E702" in found.err


def test_wide_differences_stand_below_each_other(cli):
    wide = cli("run", "-e", "x = ones(3, 12) * 1.25\nassert x == x + 1000.0").err
    narrow = cli("run", "-e", "x = ones(2, 2) * 1.25\nassert x == x + 1000.0").err

    def together(said: str) -> bool:
        return any("left  (" in row and "right  (" in row for row in said.splitlines())

    assert "left  (3, 12)" in wide
    assert together(narrow)
    assert not together(wide)


def test_a_place_is_warned_of_once(cli):
    text = (
        "import torch\nx = torch.tensor([1.0, 2.0], requires_grad=True)\nfor i in range(3):\n"
        "    y = torch.tensor(x * 2)\n    z = (x * i).grad\n"
    )
    found = cli("run", "-", stdin=text)
    assert (found.err.count("warning[W402]"), found.err.count("warning[W403]")) == (1, 1)


def test_a_program_knows_its_file(cli, tmp_path):
    (tmp_path / "known.py").write_text("print(__file__.split('/')[-1], __file__[0])\n")
    assert cli("run", "known.py").out.startswith("known.py /\n")
    assert "E201" in cli("run", "-e", "print(__file__)").err
