"""Expectations, snapshots and directives of files, checked in this process."""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autodiff_cli.checks import collect as collecting
from autodiff_cli.checks import differences, expectations, runner
from autodiff_cli.checks.collect import BadKeyword, _fits, collect, matches
from autodiff_cli.checks.model import FileResult, Item, Settings
from autodiff_cli.checks.runner import check_file, check_source
from autodiff_cli.errors import fault
from autodiff_cli.render.diagnostics import render
from autodiff_cli.render.plain import plain
from autodiff_cli.source import Source

from ..together import together


def check(path: Path | str, **settings: Any) -> FileResult:
    return check_file(str(path), Settings(plain=plain, gradients=False, **settings))


def only(result: FileResult, kind: str) -> Item:
    return next(item for item in result.items if item.kind == kind)


def raising(error: Exception) -> Any:
    def fails(*args: Any) -> None:
        raise error

    return fails


def apply(result: FileResult) -> None:
    for path, _, new in result.changes:
        assert new is not None
        Path(path).write_bytes(new.encode())


# -- expectations ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "good"),
    [
        ("loss = x * x  #=> 9", True),
        ("loss = x * x  #=> 9.0", True),
        ("loss = x * x  #=> 9.1", False),
        ("loss = x * x / 7  #=> 1.286", True),
        ("loss = x * x / 7  #=> 1.287", False),
        ("loss = x * x / 7  #=> 1", False),
        ("loss = x * x  #=> x.grad 6", True),
        ("loss = x * x  #=> x.grad 7", False),
        ("loss = x * x\n#=> 9", True),
        ("loss = x * x  #=>", False),
        ("loss = sum([1, 2] * x)\ny = [1.5, x.item()]  #=> [1.5, 3]", True),
        ("loss = x * x  #=> [9]", False),
        ("loss = x * x  #=> nonsense", False),
        ("loss = x * x  # the value #=> 8", True),
        ("s = 'a #=> b'\nloss = x * x", True),
        ("for i in range(3):\n    loss = x * i  #=> 6", True),
        ("if x > 100:\n    y = x  #=> 1\nloss = x * x", False),
        ("loss = x / 0  #=> inf", True),
        ("loss = x / 0  #=> -inf", False),
        ("loss = x * x / 7  #=> 1.285", False),
        ("loss = x * x / 7  #=> 1.2863", False),
        ("loss = x * 1e5 / 7  #=> 4.2857e4", True),
        ("loss = x * 1e5 / 7  #=> 4.2858e4", False),
        ("loss = x * x  #=> 9 9", False),
        ("loss = x * x  #=> 9.00000001", False),
        ("loss = x * x  #=> 9_0", False),
        ("y = [[1, 2], [3, x.item()]]  #=> [[1, 2], [3, 3]]\nloss = x", True),
        ("y = [[1, 2], [3, x.item()]]  #=> [[1, 2],\nloss = x", False),
        ("y = x > 2  #=> False\nloss = x", False),
    ],
)
def test_expectations(folder: Path, line: str, good: bool) -> None:
    (folder / "a.expr").write_text(f"x = 3\n{line}\n")
    result = check("a.expr", nan="ignore")
    bad = [item for item in result.items if item.bad]
    assert bool(bad) is not good, bad
    if bad:
        assert bad[0].diagnostic is not None and bad[0].diagnostic.code == "E603"


def test_a_failed_expectation_shows_both_sides(folder: Path) -> None:
    (folder / "a.expr").write_text(
        "x = [1, 2]  #=> [1, 2.5]\nx = [1, 2]  #=> [[1]]\nx = 1  #=> 2\n"
    )
    first, shapes, scalar = [i.diagnostic for i in check("a.expr").items if i.diagnostic]
    assert "written  (2,)         found  (2,)\n" in first.notes[0] and "[1, 2]" in first.notes[0]
    assert "written  (1, 1)" in shapes.notes[0] and not scalar.notes


def test_update_rewrites_values_and_nothing_else(folder: Path) -> None:
    text = (
        "\ufeff# head\r\nx = [1, 2]   # two  #=> no\r\ny = x * 3  #=>  [1, 1] \r\n"
        "loss = sum(y)  #=> 9\r\n#=> x.grad [0, 0]\r\nz = loss / 7  #=>\r\n"
    )
    path = folder / "a.expr"
    path.write_bytes(text.encode())
    apply(check(path, update=True))
    assert path.read_bytes().decode() == (
        text.replace("[1, 1]", "[3, 6]")
        .replace("[0, 0]", "[3, 3]")
        .replace("loss / 7  #=>", "loss / 7  #=> 1.28571")
    )
    assert check(path).exit_code == 0 and not check(path, update=True).changes


@pytest.mark.parametrize("ends", [["\n"], ["\r\n"], ["\r"], ["\r\n", "\n"], ["\n", "\r\n", "\r"]])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_update_keeps_every_line_end(folder: Path, ends: list[str], mark: str) -> None:
    lines = ["# é", "x = [1, 2]", "y = x * 3  #=> 1", "#=> y [0]", "loss = sum(y)  #=>"]
    text = mark + "".join(line + ends[i % len(ends)] for i, line in enumerate(lines))
    path = folder / "a.expr"
    path.write_bytes(text.encode())
    apply(check(path, update=True))
    wanted = text.replace("#=> 1", "#=> [3, 6]").replace("y [0]", "y [3, 6]")
    wanted = wanted.replace("(y)  #=>", "(y)  #=> 9")
    assert path.read_bytes().decode() == wanted
    assert check(path).exit_code == 0


def test_update_writes_what_six_digits_cannot_say(folder: Path) -> None:
    (folder / "a.expr").write_text("x = 123456.75  #=> 1\nloss = x / 100000  #=> 1\n")
    apply(check("a.expr", update=True))
    text = "x = 123456.75  #=> 123456.75\nloss = x / 100000  #=> 1.23457\n"
    assert (folder / "a.expr").read_text() == text


def test_update_touches_only_what_was_selected(folder: Path) -> None:
    path = folder / "a.expr"
    path.write_text("x = 3  #=> 1\nloss = x * x  #=> 1\n")
    apply(check(path, update=True, keyword="expect[2]"))
    assert path.read_text() == "x = 3  #=> 1\nloss = x * x  #=> 9\n"


floats = st.floats(allow_nan=True, allow_infinity=True)


@given(st.one_of(floats, st.integers(-(2**53), 2**53), st.booleans(), st.lists(floats, min_size=1)))
def test_what_is_written_is_accepted(value: Any) -> None:
    text = expectations.written(np.array(value))
    assert text is not None
    assert expectations.compare(text, np.array(value)) is None


@given(st.text(alphabet="[]0123456789.,-+einfaTru ", max_size=40))
def test_any_text_can_be_compared(text: str) -> None:
    expectations.compare(text.strip(), np.array([1.0, 2.0]))


# -- assertions -----------------------------------------------------------------------------------


def test_every_assertion_is_an_item(folder: Path) -> None:
    (folder / "a.expr").write_text(
        "x = [1, 2]\nloss = sum(x * x)\nassert loss == 6\nassert x.grad == [2, 4]\n"
        "assert x.grad == approx([2, 4.1], rtol=0.1)\nassert x.grad == [[2, 4]], 'shape'\n"
    )
    items = {item.label: item for item in check("a.expr").items}
    assert [name for name, item in items.items() if item.bad] == ["assert[3]", "assert[6]"]
    diagnostic = items["assert[6]"].diagnostic
    assert diagnostic is not None and "shapes differ" in diagnostic.message


# -- snapshots ------------------------------------------------------------------------------------


def test_a_snapshot_is_made_and_compared(folder: Path) -> None:
    assert not any(item.kind == "snapshot" for item in check("demo.expr").items)
    apply(check("demo.expr", snapshot=True))
    text = (folder / "demo.expr.snap").read_text()
    assert "A.grad = [[7.0, 10.0], [13.0, 16.0]]  # (2, 2)\n" in text
    assert text.startswith("# autodiff.plain/1  demo.expr  objective=loss\n")
    assert only(check("demo.expr"), "snapshot").status == "passed"


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("[5, 6]", "[5, 6.001]", "`B`"),
        ("(A + B) * A", "A * (A + B)", "chain"),
        ("(A + B) * A", "(A + B) / A", "`loss`"),
        ("loss =", "C = A\nloss =", "`C`: is new"),
        ("[[5, 6], [7, 8]]", "[5, 6]", "shapes differ: was (2, 2), now (2,)"),
    ],
)
def test_a_change_is_seen(folder: Path, before: str, after: str, words: str) -> None:
    apply(check("demo.expr", snapshot=True))
    path = folder / "demo.expr"
    path.write_text(path.read_text().replace(before, after, 1))
    item = only(check(path), "snapshot")
    if words == "chain":
        words = "grad_fn" if item.bad else ""
    if words:
        assert item.bad and item.diagnostic is not None
        assert words in " ".join([item.diagnostic.message, *item.diagnostic.notes])
        assert "--update" in item.diagnostic.helps[0]
    apply(check(path, update=True))
    assert only(check(path), "snapshot").status == "passed"


def test_a_value_that_is_gone(folder: Path) -> None:
    path = folder / "demo.expr"
    path.write_text(path.read_text() + "extra = A * 2\n")
    apply(check(path, snapshot=True))
    path.write_text(path.read_text().replace("extra = A * 2\n", ""))
    item = only(check(path), "snapshot")
    assert item.diagnostic is not None and item.diagnostic.code == "E605"
    apply(check(path, prune=True))
    assert only(check(path), "snapshot").status == "passed"


@pytest.mark.parametrize(
    ("damage", "line"),
    [
        (lambda text: text[: text.index("6.0], [7.0")], 3),
        (lambda text: text.replace("[[5.0, 6.0]", "[[5.0, 6.0"), 3),
        (lambda text: text.replace("A.grad = ", "A.grad is "), 5),
        (lambda text: "\n" + text, 1),
        (lambda text: text.replace("loss = 100.0", "loss = open('x')"), 4),
        (lambda text: text + "#: W (2000,) float64 mean=1\n", 8),
        (lambda text: text + "#: W (2000,) float64 mean=1 min=0 max=- probes=[1]\n", 8),
    ],
)
def test_a_damaged_snapshot_is_an_error_and_stays(folder: Path, damage: Any, line: int) -> None:
    apply(check("demo.expr", snapshot=True))
    path = folder / "demo.expr.snap"
    path.write_text(damage(path.read_text()))
    before = path.read_bytes()
    for settings in ({}, {"update": True}, {"snapshot": True}, {"prune": True}):
        result = check("demo.expr", **settings)
        item = only(result, "snapshot")
        assert item.bad and item.diagnostic is not None
        assert item.diagnostic.code == "E604" and not result.changes
        assert f"line {line}" in item.diagnostic.message, item.diagnostic.message
    assert path.read_bytes() == before


def test_what_became_of_values(folder: Path) -> None:
    """Of small and of large ones: another kind, another dtype, another shape; many at once."""
    path = folder / "a.py"
    text = "import torch\nx = torch.ones(3, requires_grad=True)\ny = torch.ones(9999)\n"
    text += "z = torch.sort(x)[0]\nloss = z.sum()\nloss.backward()\n"
    path.write_text(text)
    apply(check(path, snapshot=True))
    snap = (folder / "a.py.snap").read_text()
    assert "#: y (9999,) float32 mean=1.0 min=1.0 max=1.0 probes=[1.0, " in snap
    assert snap.splitlines()[-1] == "#: chain SumBackward0(SortBackward0(AccumulateGrad))"
    for before, after, words in [
        (
            "loss.backward()",
            "loss.backward(); z = z.detach()",
            "was SortBackward0, now it is const",
        ),
        (
            "torch.ones(3, ",
            "torch.ones(3, dtype=torch.float64, ",
            "dtypes differ: was",
        ),
        ("torch.ones(9999)", "torch.ones(9998)", "shapes differ: was (9999,), now (9998,)"),
        ("torch.ones(9999)", "torch.ones(9999, dtype=torch.int64)", "dtypes differ: was float32"),
    ]:
        path.write_text(text.replace(before, after))
        found = only(check(path), "snapshot").diagnostic
        assert found is not None and words in " ".join([found.message, *found.notes]), found
    for count in (9, 7, 6):
        (folder / "b.expr").write_text("".join(f"v{i} = {i}\n" for i in range(count)))
        apply(check("b.expr", snapshot=True, update=True))
        (folder / "b.expr").write_text("".join(f"v{i} = {i} + 1\n" for i in range(count)))
        found = only(check("b.expr"), "snapshot").diagnostic
        assert found is not None and all("`v" in note for note in found.notes[:5])
        assert found.notes[5:] == ((f"... and {count - 6} more",) if count > 6 else ())
    (folder / "c.expr").write_text("x = ones(9999)\n")
    apply(check("c.expr", snapshot=True))
    assert (
        (folder / "c.expr.snap").read_text().startswith("# autodiff.plain/1  c.expr\n#: x (9999,)")
    )
    (folder / "d.expr").write_text(
        "x = 0.5\ny = x\nfor i in range(4000):\n    y = sin(y)\nloss = y\n"
    )
    apply(check("d.expr", snapshot=True))
    assert (folder / "d.expr.snap").read_text().endswith("SinBackward0(...\n")


def test_files_that_cannot_be_checked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open(folder / "long.expr", "wb") as file:
        file.truncate(runner.MAX_FILE + 1)
    found = only(check("long.expr"), "run").diagnostic
    assert found is not None and found.code == "E505"
    text = (folder / "demo.expr").read_text()
    with monkeypatch.context() as patched:
        for size in (len(text), len(text) - 1):
            patched.setattr(runner, "MAX_FILE", size)
            assert only(check("demo.expr"), "run").bad is (size < len(text))
    (folder / "demo.expr.snap").mkdir()
    found = only(check("demo.expr"), "snapshot").diagnostic
    assert found is not None and found.message == "cannot read `demo.expr.snap`: is a directory"
    (folder / "demo.expr.snap").rmdir()
    (folder / "demo.expr.snap").write_bytes(b"\xff\xfe\x00")
    found = only(check("demo.expr"), "snapshot").diagnostic
    assert found is not None and found.code == "E604"
    for error, code in [(RecursionError, "E507"), (MemoryError, "E505")]:
        with monkeypatch.context() as patched:
            patched.setattr(runner.FileCheck, "run", raising(error()))
            found = only(check("demo.expr"), "run").diagnostic
            assert found is not None and found.code == code
    (folder / "a.expr").write_text("x = 3  #=> 4\nloss = x * x\n")
    source = Source("x = 3  #=> 5\nloss = x * x\n", "a.expr")
    said = [item.diagnostic for item in check_source(source, Settings(update=True), "a.expr").items]
    assert any(d is not None and "was changed while" in d.message for d in said), said


@pytest.mark.parametrize("place", ["check", "claim"])
def test_faults_of_the_comparison(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    """One is that of its item, or leaves it to each; the time limit ends all."""
    source = Source("x = [1, 2]\ny = [3, 4]\nloss = sum(x * y)\n", "a.expr")
    error = fault("E505 ran-out-memory", "it", "less")
    own = differences.GraphCheck.claim
    calls: list[int] = []

    def claim(self: differences.GraphCheck, leaves: list[Any]) -> None:
        calls.append(len(leaves))
        if len(leaves) > 1 or error.code == "E508":
            raise error
        own(self, leaves)

    replaced = claim if place == "claim" else raising(error)
    monkeypatch.setattr(differences.GraphCheck, place, replaced)
    found = check_source(source, Settings()).items
    assert [item.status for item in found] == ["passed", *["passed" if calls else "error"] * 2]
    assert calls in ([], [2, 1, 1])
    error = fault("E508 time-limit-s-reached", 1.0, "--timeout", 10.0)
    if place == "check":
        monkeypatch.setattr(differences.GraphCheck, place, raising(error))
    (item,) = [item for item in check_source(source, Settings()).items if item.diagnostic]
    assert item.diagnostic is not None and item.diagnostic.code == "E508"


def test_large_tensors_are_summed_up(folder: Path) -> None:
    text = "x = tensor((arange(3000) * 0.5).tolist(), requires_grad=True)\nloss = sum(x * x)\n"
    path = folder / "big.expr"
    path.write_text(text)
    apply(check(path, snapshot=True))
    snap = (folder / "big.expr.snap").read_text()
    assert len(snap) < 10_000 and "#: x.grad (3000,) float64 mean=" in snap
    assert only(check(path), "snapshot").status == "passed"
    path.write_text(text.replace("x * x", "x * x * 2"))
    item = only(check(path), "snapshot")
    assert item.diagnostic is not None and item.bad


def test_a_missing_snapshot_fails_under_ci(folder: Path) -> None:
    result = check("demo.expr", snapshot=True, ci=True)
    assert only(result, "snapshot").bad and not result.changes


# -- what is collected ----------------------------------------------------------------------------


def test_collection(folder: Path) -> None:
    for name in ("b.expr", "_helper.expr", ".hidden.expr", "x.py", "sub/c.expr", ".venv/d.expr",
                 "build/e.expr", "sub/skip.expr", "_lib/f.expr"):  # fmt: skip
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("x = 1\n")
    (folder / ".git").mkdir()
    (folder / ".gitignore").write_text("build/\n*skip*\n")
    assert collect(["."]) == ["b.expr", "demo.expr", "sub/c.expr"]
    assert collect(["x.py", "_helper.expr", "./demo.expr", "demo.expr"]) == [
        "x.py", "_helper.expr", "./demo.expr",
    ]  # fmt: skip


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_what_never_ends_is_not_collected(folder: Path) -> None:
    for name in ("pipe.expr", ".gitignore"):
        os.mkfifo(folder / name)
    (folder / "device.expr").symlink_to("/dev/zero")
    (folder / "broken.expr").symlink_to("nowhere.expr")
    assert collect(["."]) == ["broken.expr", "demo.expr"]


def test_links_out_of_a_folder_are_not_followed(folder: Path, tmp_path_factory: Any) -> None:
    """Whoever sent the folder neither reads nor writes elsewhere."""
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret.expr").write_text("secret = 1\n")
    (folder / "out.expr").symlink_to(outside / "secret.expr")
    (folder / "z.expr").symlink_to("demo.expr")
    assert collect(["."]) == ["demo.expr"]
    for name in ("demo.expr.snap", "demo.expr.npz"):
        (folder / name).unlink(missing_ok=True)
        (folder / name).symlink_to(outside / "victim")
        result = check(folder / "demo.expr", snapshot=True, update=True, full=True)
        said = [item.diagnostic for item in result.items if item.kind == "snapshot"]
        assert said[0] is not None and "is a link out of its folder" in said[0].message
        assert not result.changes and result.arrays is None
        (folder / name).unlink()


@pytest.mark.parametrize(
    ("keyword", "chosen"),
    [
        ("grad[x]", True), ("GRAD", True), ("demo and not hess", True), ("hess or run", False),
        ("not (demo and grad)", False), ("", True), ("a.expr", False), ("grad[y]", False),
    ],
)  # fmt: skip
def test_keywords(keyword: str, chosen: bool) -> None:
    assert matches(keyword, "dir/demo.expr::grad[x]") is chosen


CHOICES = st.recursive(
    st.sampled_from(["demo", "hess", "grad", "run"]),
    lambda inner: (
        inner.map("not {}".format) | inner.map("({})".format)
        | st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(" ".join)
    ),
    max_leaves=6,
)  # fmt: skip


@given(CHOICES)
def test_keywords_are_read_as_python_reads_them(keyword: str) -> None:
    words = {"demo": True, "grad": True, "hess": False, "run": False}
    assert matches(keyword, "dir/demo.expr::grad[x]") is eval(keyword, words)


@pytest.mark.parametrize("keyword", ["and", "grad and", "(grad", "grad)", "not", "a b"])
def test_bad_keywords(keyword: str) -> None:
    with pytest.raises(BadKeyword):
        matches(keyword, "demo")


SHOWN = """\
    index   left  right  abs diff  rel diff  allowed
    [1, 1]  16    17     1         0.059     1.8e-06
    left  (2, 2)         right  (2, 2)         left - right
    [[ 7, 10],           [[ 7, 10],            [[ .,  .],
     [13, 16]]            [13, 17]]             [ ., -1]]
"""


def test_a_failed_assertion_shows_both_sides(folder: Path) -> None:
    text = (folder / "demo.expr").read_text() + "".join(
        f"assert {condition}\n"
        for condition in (
            "A.grad == [[7, 10], [13, 17]]",
            "allclose(A.grad, [[7, 10], [13, 17]], rtol=1.04e-7, atol=0.0)",
            "A.grad == [7, 10]",
            "loss == 99",
            "loss + 1 < B.grad.sum(), 'small'",
            "arange(300).reshape(3, 100) == arange(300).reshape(3, 100) // 7",
        )
    )
    (folder / "a.expr").write_text(text)
    found = [i.diagnostic for i in check("a.expr").items if i.diagnostic is not None]
    equal, close, shapes, scalars, small, large = found
    assert SHOWN in render(equal) and SHOWN in render(close)
    assert close.labels[0].text == "left" and close.labels[0].span.text == "A.grad"
    assert "shapes differ: left (2, 2), right (2,)" in shapes.message
    assert "left  (2, 2)         right  (2,)" in render(shapes)
    assert scalars.message == "assertion failed: 100 is not 99"
    assert small.message == "assertion failed: small"
    assert [label.text for label in small.labels] == ["left: 101", "right: 10"]
    assert "299 of 300 elements differ" in large.message and "... and 294 more" in render(large)
    assert len(render(large)) < 2000


# -- .gitignore -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("patterns", "left"),
    [
        ("b.expr", "a.expr s/a.expr s/ab.expr s/t/a.expr s/t/u/a.expr"),
        ("/b.expr", "a.expr s/a.expr s/ab.expr s/b.expr s/t/a.expr s/t/u/a.expr"),
        ("?.expr", "s/ab.expr"),
        ("s/?.expr", "a.expr b.expr s/ab.expr s/t/a.expr s/t/u/a.expr"),
        ("s/*.expr", "a.expr b.expr s/t/a.expr s/t/u/a.expr"),
        ("s/**/a.expr", "a.expr b.expr s/ab.expr s/b.expr"),
        ("s/**", "a.expr b.expr"),
        ("**/u/*", "a.expr b.expr s/a.expr s/ab.expr s/b.expr s/t/a.expr"),
        ("t/", "a.expr b.expr s/a.expr s/ab.expr s/b.expr"),
        ("u/\n# b.expr\n\n  ", "a.expr b.expr s/a.expr s/ab.expr s/b.expr s/t/a.expr"),
        ("*.expr\n!ab.expr", "s/ab.expr"),
        ("!a.expr\na*.expr", "b.expr s/b.expr"),
        ("[!b]?.expr\n[a].expr", "b.expr s/b.expr"),
        ("\\a.expr ", "b.expr s/ab.expr s/b.expr"),
        ("\\*.expr\n[\\!a].expr\n\\!b.expr", "b.expr s/ab.expr s/b.expr"),
        ("s/**\n!s/b.expr", "a.expr b.expr s/b.expr"),
        ("t/\n!t/a.expr", "a.expr b.expr s/a.expr s/ab.expr s/b.expr"),
        ("**/**/**/" * 100 + "u/*", "a.expr b.expr s/a.expr s/ab.expr s/b.expr s/t/a.expr"),
        ("*a" * 999 + "\n" + "[a-" * 2000 + "\nb.expr",
         "a.expr s/a.expr s/ab.expr s/t/a.expr s/t/u/a.expr"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("top", ["", "s"])
def test_gitignore(tmp_path: Path, patterns: str, left: str, top: str) -> None:
    """As `git ls-files --others --exclude-standard` lists them."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text(patterns + "\n")
    for name in ("a", "b", "s/a", "s/b", "s/ab", "s/t/a", "s/t/u/a"):
        path = tmp_path / f"{name}.expr"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x = 1\n")
    found = [Path(p).relative_to(tmp_path).as_posix() for p in collect([str(tmp_path / top)])]
    assert sorted(found) == sorted(p for p in left.split() if p.startswith(top))


def test_patterns_longer_than_any_path_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collecting, "LONGEST_PATTERN", 6)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("a.expr\nbb.expr\n/c.expr\n!d.expr/\n")
    for name in ("a", "bb", "c", "d"):
        (tmp_path / f"{name}.expr").write_text("x = 1\n")
    assert [Path(path).stem for path in collect([str(tmp_path)])] == ["bb", "c", "d"]


def test_nested_gitignore(tmp_path: Path) -> None:
    """The deeper file decides; a folder that the user names is looked into."""
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("s/a.expr\nt/\n")
    for name in ("s/a.expr", "s/b.expr", "t/a.expr"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x = 1\n")
    (tmp_path / "s" / ".gitignore").write_text("b*\n!a*\n")
    assert [Path(p).name for p in collect([str(tmp_path)])] == ["a.expr"]
    assert len(collect([str(tmp_path / "t")])) == 1


def means(names: list[str], parts: list[str]) -> bool:
    if not parts or not names:
        return not names and all(part == "**" for part in parts)
    if parts[0] == "**":
        return means(names, parts[1:]) or means(names[1:], parts)
    return parts[0] in ("*", names[0]) and means(names[1:], parts[1:])


def test_patterns_of_what_is_ignored_are_matched_name_by_name() -> None:
    for names in (list(x) for n in range(5) for x in product("ab", repeat=n)):
        for parts in (list(x) for n in range(5) for x in product(("a", "*", "**"), repeat=n)):
            assert _fits(names, parts) is means(names, parts), (names, parts)


@together([
    ("g*d", "grad[x] grad[w1]"), ("*", "run grad[x] grad[w1] hess[x]"), ("grad[w*]", ""),
    ("*w?", "grad[w1]"), ("w?", ""), ("*w?]", "grad[w1]"), ("h*x or run", "run hess[x]"),
    ("d*g", ""),
    ("not g*", "run hess[x]"), ("[x]", "grad[x] hess[x]"), ("GRAD and not w", "grad[x]"),
])  # fmt: skip
def test_items_that_words_choose(keyword: str, chosen: str) -> None:
    labels = ["run", "grad[x]", "grad[w1]", "hess[x]"]
    assert [label for label in labels if matches(keyword, label)] == chosen.split()
