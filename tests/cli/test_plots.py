"""`--plot`: what is drawn, the curve of losses, files that are the same every time."""

from __future__ import annotations

import math
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from autodiff_cli.render.files import CannotWrite
from autodiff_cli.render.pictures import plots
from autodiff_cli.render.pictures.plots import chosen, curve_lines, figure, observed
from autodiff_cli.session import Options
from autodiff_cli.source import Source

# Halving: w is 8, 4, 2, ... before each of six passes, the loss its square.
STEPS = """\
import torch
w = torch.tensor([8.0, 0.0], requires_grad=True)
m = torch.nn.Linear(2, 1)
optimizer = torch.optim.SGD([w], lr=0.25)
for _ in range(6):
    optimizer.zero_grad()
    loss = (w * w).sum()
    loss.backward()
    optimizer.step()
    print("step")
torch.autograd.grad((w * w).sum(), w)
"""


def test_losses_are_what_backward_was_called_on() -> None:
    report, losses = observed(Source(STEPS, "steps.py"), Options())
    assert report.error is None
    assert losses == [64.0, 16.0, 4.0, 1.0, 0.25, 0.0625]
    assert list(chosen(report, (), losses)) == ["w", "w.grad"]
    np.testing.assert_array_equal(chosen(report, ("w.grad",), [])["w.grad"], [0.5, 0.0])


def test_curves_end_somewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plots, "_POINTS", 4)
    assert observed(Source(STEPS, "steps.py"), Options())[1] == [64.0, 16.0, 4.0, 1.0]


def test_what_is_drawn() -> None:
    """No single numbers beside tensors; no tensor is needed where losses make a curve."""
    report, _ = observed(Source("a = const([1, 2]); n = 3", "a.expr"), Options())
    assert list(chosen(report, (), [])) == ["a"]
    nothing, _ = observed(Source("x = 'two'", "x.expr"), Options())
    assert chosen(nothing, (), [2.0, 1.0]) == {}
    for losses in ([], [2.0]):
        with pytest.raises(CannotWrite, match="nothing to draw"):
            chosen(nothing, (), losses)


def test_curves() -> None:
    head, line, _ = curve_lines([3.0, 2.0, 1.0], "loss", True, 80)
    assert head == "loss over 3 steps: 3 to 1" and line == " █▅▁"
    head, line, _ = curve_lines([1000.0, 10.0, 0.1], "loss", True, 80)
    assert head == "loss over 3 steps (log): 1000 to 0.1" and line == " █▅▁"
    assert curve_lines([2.0, float("nan"), 2.0], "y", True, 80)[1] == " ▁!▁"
    assert curve_lines([1.0, 2.0], "y", False, 80) == ["y over 2 steps: 1 to 2"]
    assert curve_lines([1.0], "y", True, 80) == []
    assert len(curve_lines([float(at) for at in range(5000)], "y", True, 40)[1]) == 39
    assert curve_lines([100.0, 1.0], "y", False, 80) == ["y over 2 steps: 100 to 1"]
    assert curve_lines([100.5, 1.0], "y", False, 80) == ["y over 2 steps (log): 100.5 to 1"]
    assert curve_lines([1000.0, 0.0], "y", False, 80) == ["y over 2 steps: 1000 to 0"]
    assert curve_lines([math.nan, math.inf], "y", True, 80)[1] == " !!"
    assert curve_lines([0.0, 8.0, 4.0] * 9, "y", True, 9)[1] == " ▁██▅▁██▅"


def test_on_the_terminal(cli) -> None:
    done = cli("-", "--plot", stdin=STEPS)
    assert done.code == 0 and "step" not in done.out.replace("6 steps", "")
    assert done.out.startswith("loss over 6 steps (log): 64 to 0.0625\n █")
    assert "w.grad  |g| / max   (2,)   max 0.5\n ██\n" in done.out
    named = cli("-", "--plot", stdin=STEPS.replace("loss", "cost"))
    assert named.out.startswith("cost over 6 steps (log): 64 to 0.0625\n █")
    shown = cli("demo.expr", "--plot", "--show", "loss")
    assert shown.out.startswith("loss  |x| / max   ()   max 100")
    ungraded = cli("-e", "x = const([3, 6])", "--plot")
    assert ungraded.out == "x  |x| / max   (2,)   max 6\n ▒▒██\n"
    many = "import torch\np = [torch.ones(2, requires_grad=True) for i in range(14)]\n"
    shown = cli("-", "--plot", stdin=f"{many}sum(sum(q) for q in p).backward()\n").out
    assert shown.count(" / max") == 24 and shown.endswith("\n\n … 4 more pictures (--show)\n")
    unknown = cli("demo.expr", "--plot", "--show", "los")
    assert unknown.code == 3 and "did you mean `loss`" in unknown.err


def test_into_files(cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason="the extra `pictures` is not installed")
    pytest.importorskip("resvg_py", reason="the extra `pictures` is not installed")
    (tmp_path / "steps.py").write_text(STEPS)
    for name in ("a.png", "a.svg", "b.svg"):
        assert cli("steps.py", "--plot", "-o", name).code == 0
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert (tmp_path / "a.png").read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    texts = list(ElementTree.parse(tmp_path / "a.svg").getroot().itertext())
    assert {"w  (2,)", "w.grad  (2,)", "backward pass"} <= {text.strip() for text in texts}
    monkeypatch.setattr(plots, "MOST", 2)
    lines = [f"a{i} = {i}\n" for i in range(10)]
    (tmp_path / "many.expr").write_text(
        "".join([*lines, "loss = a0", *map(" + a{}".format, range(1, 10))])
    )
    assert cli("many.expr", "--plot", "-o", "many.svg").code == 0
    texts = [t.strip() for t in ElementTree.parse(tmp_path / "many.svg").getroot().itertext()]
    assert "many.expr: loss (18 more: --show)" in texts and "a1  ()" not in texts
    assert texts.index("a0  ()") < texts.index("a0.grad  ()")
    # A curve of two steps, named as the result is, and as many images as there may be.
    named = STEPS.replace("loss", "cost").replace("range(6)", "range(2)")
    report, losses = observed(Source(named, "two.py"), Options())
    drawn = figure(report, chosen(report, (), losses), losses, "svg")
    texts = [t.strip() for t in ElementTree.fromstring(drawn).itertext()]
    assert "two.py: cost" in texts and texts.count("cost") == 1 and "backward pass" in texts
    assert cli("demo.expr", "demo.expr", "--plot", "-o", "two.png").code == 2
    assert cli("demo.expr", "--plot", "-o", "demo.npz").code == 2
    for words in (["-o", "none.png"], []):
        nothing = cli("-e", "x = 'two'", "--plot", *words)
        assert nothing.code == 2 and "nothing to draw" in nothing.err
    assert not (tmp_path / "none.png").exists()


def test_a_missing_extra_is_said(cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("autodiff_cli.render.pictures.png.find_spec", lambda name: None)
    done = cli("demo.expr", "--plot", "-o", "demo.png")
    assert done.code == 2 and "pip install 'autodiff-cli[pictures]'" in done.err
    assert cli("demo.expr", "--plot").code == 0
