"""Snapshots of programs against others that were changed a little, and damaged ones: what differs,
word for word and at which line (`fixtures/said_checks.txt`)."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from autodiff_cli.checks import snapshots
from autodiff_cli.checks.snapshots import array_of, compare, read, write
from autodiff_cli.errors import AutodiffError
from autodiff_cli.render.plain import plain
from autodiff_cli.session import Options, Report, run
from autodiff_cli.source import Source
from tests.said import compare as recorded

BASE = (
    "import torch\nx = torch.tensor([1.0, -2.0], dtype=torch.float64, requires_grad=True)\n"
    "A = torch.arange(6.0).reshape(2, 3)\nn, r, flag = 3, 0.5, True\nk = torch.tensor([1, 2])\n"
    "q = torch.tensor([float('nan'), 0.5])\n"
    "big = torch.linspace(0, 1, 1001, requires_grad=True); edge = torch.ones(1000)\n"
    "y = (x * 2).exp()\nloss = (y * y).sum() + (big * big + big).sum() + torch.cat([x, x]).sum()\n"
    "loss.backward()\n"
)
CHANGES = {
    "nothing": ("", ""), "near": ("1.0, -2.0", "1.0 + 1e-12, -2.0"),
    "off": ("1.0, -2.0", "1.0 + 1e-5, -2.0"), "shape": ("reshape(2, 3)", "reshape(3, 2)"),
    "dtype": ("dtype=torch.float64", "dtype=torch.float32"), "whole": ("[1, 2]", "[1, 3]"),
    "a number": ("0.5", "0.25"), "a flag": ("True\nk", "False\nk"), "kind": ("n, r", "r, n"),
    "name": ("A =", "B ="), "more": ("n, r", "z = torch.ones(1)\nn, r"),
    "of many": ("linspace(0, 1", "linspace(0, 1.001"), "their shape": ("1001", "1002"),
    "their dtype": ("1001, ", "1001, dtype=torch.float64, "), "fewer": ("1001", "999"),
    "more of them": ("ones(1000)", "ones(1001)"), "origin": ("(x * 2).exp()", "(x + x).exp()"),
    "another": ("(x * 2).exp()", "(x * 2).exp().abs()"),
    "chain": ("big * big + big", "big + big * big"),
    "no graph": ("loss.backward()", "loss = loss.detach()"), "nan": ("-2.0]", "float('nan')]"),
    "a constant": (", requires_grad=True)\nA", ")\nA"), "no gradient": ("loss.backward()", "pass"),
}  # fmt: skip


def report(change: tuple[str, str]) -> Report:
    assert change[0] in BASE
    return run(Source(BASE.replace(*change, 1), "folder/p.py"), Options(nan="ignore"))


def damages(text: str) -> Iterator[tuple[str, str]]:
    """A snapshot with one thing wrong."""
    lines = text.split("\n")
    yield "no end", text[:-1]
    yield "half", text[: len(text) // 2]
    yield "empty", ""
    yield "no heading", "\n".join(lines[1:])
    yield "another heading", text.replace("plain/1", "plain/2")
    for at, line in enumerate(lines[:-1]):
        for name, wrong in {
            "gone": None, "twice": f"{line}\n{line}", "a word": "word", "no number": f"{line[:9]}?",
            "a comment": f"# {line}", "fewer probes": line.replace("1.0, ", "", 1),
            "no mean": line.replace("mean=", "mean=z"), "blank": "",
        }.items():  # fmt: skip
            changed = lines[:at] + ([] if wrong is None else [wrong]) + lines[at + 1 :]
            yield f"{at} {name}", "\n".join(changed)


def test_chains_are_written_up_to_a_length(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Source("x = [1, 2]\nv = x.max(0).values\nloss = sum(x * x) + v * 3\n", "p.expr")
    root = run(program).graph
    assert root is not None
    whole = "AddBackward0(SumBackward0(MulBackward0(AccumulateGrad, AccumulateGrad)), MulBackward0("
    assert snapshots.chain(root).startswith(whole)
    length = len(snapshots.chain(root))
    monkeypatch.setattr(snapshots, "MAX_CHAIN", length)
    assert len(snapshots.chain(root)) == length
    monkeypatch.setattr(snapshots, "MAX_CHAIN", length - 1)
    assert snapshots.chain(root).endswith("...")


def test_integers_up_to_the_largest_float_are_compared() -> None:
    largest = int(sys.float_info.max)
    for number in (0, -3, 2**63 - 1, 2**63, -(2**64), 2**1023, largest, largest + 2**969, -largest):
        found = array_of(number)
        assert found is not None and found == float(number)
    for number in (2**1024 - 1, 2**1024, -(10**400)):
        assert array_of(number) is None
    assert array_of(True) == np.True_ and array_of(0.5) == 0.5


@pytest.mark.parametrize(
    "form", [plain, lambda report: plain(report).partition("\n")[2]], ids=["as a file", "alone"]
)
def test_what_differs(form: Callable[[Report], str], request: pytest.FixtureRequest) -> None:
    reports = {name: report(change) for name, change in CHANGES.items()}
    text = write(reports["nothing"], form)
    found = [re.sub(r"(\.\d{4})\d+", r"\1", text)]
    for name, other in reports.items():
        assert other.error is None, other.error
        old = read("p.snap", text.encode())
        new = read("q.snap", write(other, form).encode())
        for snapshot, now in ((old, other), (new, reports["nothing"])):
            said = [
                f"{d.code} {d.span and d.span.line} {d.message} ({', '.join(d.helps)})"
                for d in compare(snapshot, now)
            ]
            found.append("\n  ".join([name, *said]))
    recorded(request, found)


def test_damaged_snapshots(request: pytest.FixtureRequest) -> None:
    small = BASE.replace("edge = torch.ones(1000)", "edge = 1")
    now = run(Source(small, "p.py"), Options())
    found = []
    for name, text in damages(write(now, plain)):
        try:
            said = [d.message for d in compare(read("p.snap", text.encode()), now)]
        except AutodiffError as error:
            span = error.span
            said = [f"{error.code} {span and (span.line, len(span.text))} {error.message}"]
        found.append(f"{name}: {'; '.join(said)}")
    recorded(request, ["\n".join(found[:20]), *found[20::3], "\n".join(found)])
