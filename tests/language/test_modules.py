"""Programs with modules do what they did in PyTorch; the library in the language is complete."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from autodiff_cli.language.nn import module_names, prelude
from autodiff_cli.language.values.user_classes import UserClass
from autodiff_cli.session import Options, run
from autodiff_cli.source import Source
from tests.pace import takes_at_most
from tests.recorded import cases, check
from tests.together import together

CASES = [c for c in cases("modules") if not c["id"].startswith("optimizers")]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case["id"])
def test_as_pytorch(case: dict[str, Any]) -> None:
    check(case)


def test_names_are_those_of_the_files() -> None:
    assert sorted(p.stem for p in prelude.FOLDER.glob("*.expr")) == sorted(module_names.FILES)
    for file in module_names.FILES:
        listed = [name for name, place in module_names.PRELUDE.items() if place == file]
        assert sorted(prelude.names_of(file)) == sorted(listed), file


@together(sorted(module_names.PATHS))
def test_every_name_is_there(path: str) -> None:
    outcome("pass\n")  # a run that met no limit: definitions are made under those of the last
    found = module_names.library_member(path)
    assert found is module_names.library_member(path)
    if isinstance(found, UserClass):
        name = path.rpartition(".")[2]
        assert found.name == (module_names.PATHS[path] if name.startswith("_") else name)
        assert found.fixed


def outcome(program: str) -> Any:
    return run(Source(program, "program.py"), Options(backward=False))


def test_hooks_of_all_modules_that_see_the_last_function() -> None:
    report = outcome(
        "import torch, torch.nn as nn\n"
        "def told(m, gi, go):\n"
        "    print(type(m).__name__, gi, go)\n"
        "    return tuple(g * 2 for g in gi)\n"
        "m = nn.Sigmoid()\nm.register_backward_hook(lambda m, gi, go: print('own', gi))\n"
        "x = torch.zeros(2, requires_grad=True)\n"
        "with nn.modules.module.register_module_backward_hook(told):\n"
        "    m(x).sum().backward()\n"
        "print(x.grad)\n"
        "with nn.modules.module.register_module_backward_hook(lambda m, gi, go: gi[:-1]):\n"
        "    try: m(x).sum().backward()\n"
        "    except RuntimeError as e: print(e)\n"
        "try: nn.modules.module.register_module_full_backward_hook(told)\n"
        "except RuntimeError as e: print(e)\n"
    )
    assert report.error is None, report.error
    assert report.stdout == (  # as PyTorch, which keeps what kind of hooks there are in the process
        "Sigmoid (tensor([0.2500, 0.2500]),) (tensor([1., 1.]),)\n"
        "own (tensor([0.5000, 0.5000]),)\n"
        "tensor([0.5000, 0.5000])\n"
        "hook '<lambda>' has returned an incorrect number of values (got 0, but expected 1)\n"
        "Cannot use both regular backward hooks and full backward hooks as a global Module hook. "
        "Please use only one of them.\n"
    )


def test_native_files_have_modules() -> None:
    report = outcome(
        "n = 3\nmanual_seed(0)\nlayer = nn.Linear(n, 2)\nx = [[1, 2, 3]]\n"
        "loss = sum(layer(x)**2)\nprint(layer, layer.weight.dtype)\nloss.backward()\ng = x.grad\n"
    )
    assert report.error is None, report.error
    assert report.stdout == "Linear(in_features=3, out_features=2, bias=True) torch.float64\n"
    assert report.tensors["g"].shape == (1, 3)


def test_nodes_of_the_library_have_the_place_of_the_call() -> None:
    report = outcome(
        "import torch\nimport torch.nn as nn\nm = nn.GRU(2, 3)\ny, h = m(torch.ones(4, 1, 2))\n"
    )
    pending = [report.tensors["y"].node, report.tensors["h"].node]
    seen = set()
    while pending:
        node = pending.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.span is not None:
            assert node.span.source.name == "program.py", node
        pending.extend(node.inputs)
    assert len(seen) > 50
    assert report.tensors["y"].node.span.text == "m(torch.ones(4, 1, 2))"


@together(
    [
        ("E205", "nn.Linear('a', 2)"),
        ("E205", "nn.Linear(2)"),
        ("E205", "nn.Linear(2, 3, colour=1)"),
        ("E309", "nn.Linear(2, -3)"),
        ("E505", "nn.Linear(10**6, 10**6)"),
        ("E306", "nn.Linear(2, 3, dtype=torch.int64)"),
        ("E308", "nn.Conv2d(3, 4, (1, 2, 3))(torch.ones(1, 3, 5, 5))"),
        ("E205", "nn.Conv2d(3, 4, 3, groups=2)"),
        ("E205", "nn.Conv2d(3, 4, 3, padding='big')"),
        ("E205", "nn.Embedding(3, 2, padding_idx=7)"),
        ("E205", "nn.GroupNorm(2, 3)"),
        ("E205", "nn.LSTM(2, 3, proj_size=3)"),
        ("E205", "nn.RNN(2, 3, nonlinearity='sin')"),
        ("E308", "nn.RNNCell(2, 3)(torch.ones(2, 4))"),
        ("E308", "nn.LSTM(2, 3)(torch.ones(2, 2, 4))"),
        ("E208", "nn.Sequential(3)"),
        ("E208", "nn.ModuleList([3])"),
        ("E305", "nn.Sequential(nn.ReLU())['a']"),
        ("E210", "nn.ModuleDict({'a': nn.ReLU()})['b']"),
        ("E205", "nn.ModuleDict({'a.b': nn.ReLU()})"),
        ("E208", "nn.ParameterList([3])"),
        ("E208", "nn.Linear(2, 2).to(torch.int64)"),
        ("E203", "nn.Linear(2, 2).to('cuda')"),
        ("E208", "nn.Linear(2, 2).load_state_dict(3)"),
        ("E210", "nn.Linear(2, 2).load_state_dict({})"),
        ("E207", "nn.Linear(2, 2).weights"),
        ("E207", "nn.Lineal(2, 2)"),
        ("E207", "nn.Module()(3)"),
        ("E205", "nn.Module().register_buffer('a.b', None)"),
        ("E208", "nn.Linear(2, 2).register_parameter('w', torch.ones(2))"),
        ("E205", "nn.Linear(2, 2).register_buffer('forward', torch.ones(2))"),
        ("E207", "nn.Linear(2, 2).get_submodule('weight')"),
        ("E205", "nn.Hardtanh(1.0, -1.0)"),
        ("E408", "bool(nn.Linear(2, 2)(torch.ones(2)))"),
    ]
)
def test_errors_point_at_the_program(code: str, text: str) -> None:
    report = outcome(f"import torch\nimport torch.nn as nn\nx = 1\n{text}\n")
    assert report.error is not None
    assert report.error.code == code, str(report.error)
    assert report.error.span is not None
    assert report.error.span.source.name == "program.py"
    assert report.error.span.line == 4
    assert report.error.diagnostic.helps
    words = (report.error.message, *report.error.diagnostic.helps)
    assert code != "E205" or not any("self" in text for text in words)


def test_library_classes_cannot_be_changed() -> None:
    report = outcome("import torch.nn as nn\nnn.Linear.forward = 3\n")
    assert report.error is not None
    assert report.error.code == "E207"
    assert outcome("import torch.nn as nn\nprint(nn.Linear(1, 1).forward)\n").error is None


def test_a_module_that_holds_itself() -> None:
    report = outcome(
        "import torch.nn as nn\nm = nn.Module()\nm.child = m\nprint(len(list(m.modules())))\n"
        "m.state_dict()\n"
    )
    assert report.error is not None
    assert report.error.code in ("E506", "E507")


def test_programs_without_modules_do_not_load_them() -> None:
    script = (
        "import sys; from autodiff_cli.session import run, Options\n"
        "from autodiff_cli.source import Source\n"
        "run(Source('import torch\\nimport torch.nn.functional as F\\nx = torch.ones(2)\\n'), "
        "Options())\n"
        "print([m for m in sys.modules if m.startswith('autodiff_cli.language.')])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    for name in ("modules", "containers", "prelude", "optimizers", "library"):
        assert f"'autodiff_cli.language.{name}'" not in done.stdout


def test_one_module_costs_little() -> None:
    outcome("import torch.nn as nn\nnn.ReLU()\n")

    def work() -> None:
        prelude._SCOPE.names.clear()
        prelude._texts.cache_clear()
        assert outcome("import torch.nn as nn\nnn.Linear(2, 2)\n").error is None

    assert takes_at_most(3, work)
