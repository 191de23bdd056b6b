"""Optimizers and schedulers make PyTorch's steps, to 1e-12 in float64; loops stay cheap."""

from __future__ import annotations

from typing import Any

import pytest

from autodiff_cli.graph.op import CONSTANT, LEAF
from autodiff_cli.session import Options, run
from autodiff_cli.source import Source
from tests.recorded import cases, check

from ..together import together

CASES = [c for c in cases("modules") if c["id"].startswith("optimizers")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_as_pytorch(case: dict[str, Any]) -> None:
    # A line search multiplies roundings.
    check(case, scale=1e3 if "LBFGS" in case["id"] else 1.0)


def outcome(program: str) -> Any:
    return run(Source(program, "program.py"), Options(backward=False))


@together(
    [
        ("E205", "torch.optim.SGD()"),
        ("E205", "torch.optim.SGD([w], 0.1, 0.9, 0, 0, False, 3)"),
        ("E205", "torch.optim.SGD([w], 0.1, lr=0.2)"),
        ("E205", "torch.optim.SGD([w], lr='fast')"),
        ("E208", "torch.optim.SGD([3])"),
        ("E208", "torch.optim.SGD(3)"),
        ("E205", "torch.optim.SGD([{'lr': 0.1}])"),
        ("E205", "torch.optim.SGD([{'params': [w]}, {'params': [w]}])"),
        ("E205", "torch.optim.Adam([w], betas=(1.5, 0.9))"),
        ("E205", "torch.optim.Adam([w], betas=0.9)"),
        ("E205", "torch.optim.Rprop([w], etas=(1.5, 0.9))"),
        ("E205", "torch.optim.LBFGS([{'params': [w]}, {'params': [torch.ones(1)]}])"),
        ("E205", "torch.optim.LBFGS([w], line_search_fn='none').step(lambda: w.sum())"),
        ("E205", "torch.optim.LBFGS([w]).step(lambda: None)"),
        ("E207", "torch.optim.Optimizer([w], {}).step()"),
        ("E207", "torch.optim.SGD([w]).steps()"),
        ("E207", "torch.optim.SDG([w])"),
        ("E205", "torch.optim.lr_scheduler.StepLR(3, 1)"),
        ("E205", "torch.optim.lr_scheduler.OneCycleLR(torch.optim.SGD([w]), 0.1)"),
        ("E205", "torch.nn.utils.clip_grad_norm_()"),
        ("E210", "torch.optim.SGD([w]).load_state_dict({'param_groups': [], 'state': {}})"),
    ]
)
def test_errors_are_explained(code: str, text: str) -> None:
    report = outcome(f"import torch\nw = torch.ones(2, requires_grad=True)\n{text}\n")
    assert report.error is not None
    assert report.error.code == code, str(report.error)
    assert report.error.span is not None
    assert report.error.span.line == 3
    assert report.error.diagnostic.helps


def test_a_long_loop_keeps_no_history() -> None:
    report = outcome(
        "import torch\nw = torch.ones(50, requires_grad=True)\n"
        "opt = torch.optim.Adam([w], lr=0.01)\n"
        "for i in range(300):\n    opt.zero_grad()\n    (w**2).sum().backward()\n    opt.step()\n"
    )
    assert report.error is None, report.error
    node = report.tensors["w"].node
    assert node.op is LEAF
    assert all(n.op is CONSTANT for n in node.inputs)


def test_a_step_can_be_taken_in_native_files() -> None:
    report = outcome(
        "w = [1, 2]\nlr = 0.5\nopt = torch.optim.SGD([w], lr=lr)\nsum(w**2).backward()\n"
        "opt.step()\n"
    )
    assert report.error is None, report.error
    assert report.tensors["w"].value.tolist() == [0.0, 0.0]


def test_options_may_be_tensors() -> None:
    report = outcome(
        "import torch\nw = torch.ones(2, requires_grad=True)\n"
        "opt = torch.optim.Adam([w], lr=torch.tensor(0.5))\nw.sum().backward()\nopt.step()\n"
    )
    assert report.error is None, report.error
    assert report.tensors["w"].value.tolist() == pytest.approx([0.5, 0.5])
