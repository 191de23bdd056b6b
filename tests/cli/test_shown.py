"""Programs of all kinds through the forms of each command, at all widths, in colours or not.

What is shown is held against `fixtures/said_cli.txt` (see `conftest.py`); the widths take turns, so
that each form and each program has narrow and wide ones.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import Cli

TORCH = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n"
PROGRAMS = {
    "numbers": "x = [1, -2.5, 1e-9, 1e300, 0]; y = 3; k = const([7, 8, 9, 10, 1]); n = 2 > 1\n"
    "loss = sum(x * y * k)",
    "matrices": "A = [[1, -2], [3, 4]]; v = [0.5, 2]; b = 1.5\n"
    "h = relu(A @ v + b); loss = sum(h * h) / 2 + A[0, 1]",
    "one element": "x = [[3]]; y = [2]; loss = sum(x * y) ** 2",
    "not finite": "x = [0, 4, -1]; w = [inf, nan, 2]; loss = sum(sqrt(x) * w) + log(x[0] - x[0])",
    "infinite slope": "x = [0, 4]; y = [1, 2]; loss = sum(sqrt(x)) + sum(y / x[1])",
    "empty": "x = zeros(0, 3, requires_grad=True); k = zeros(2, 0); s = ''; t = (); d = {}\n"
    "loss = sum(x * 2)",
    "kinds": TORCH + "f = torch.tensor([0.5, 0.25], requires_grad=True)\n"
    "h = torch.tensor([1.5], dtype=torch.float16, requires_grad=True)\n"
    "i = torch.tensor([[1, -2], [3, 4]], dtype=torch.int32); b = f > 0.3; u = torch.tensor(True)\n"
    "n, r, s, t, e = 3, 0.5, 'word', (1, f), {'a': [i, None]}\n"
    "def double(x): return x * 2\n"
    "loss = (double(f) * h).sum()\nloss.backward()\n",
    "names": "π = 3; 日本語 = [2, 1]; a_name_that_is_longer_than_all_of_the_others = [[1, 2]]\n"
    "loss = sum(π * 日本語 * a_name_that_is_longer_than_all_of_the_others)",
    "unreached": "x = 1; y = [2, 3]; z = y * 2; c = const(4); loss = x * x * c",
    "shared": "w = [1, 2]\nfor i in range(3):\n    w2 = w * w + i\n    w = w2 * 1\n"
    "h = w * w; loss = sum(h * h + h)",
    "wide": "; ".join(f"a{i} = [{i}, 1]" for i in range(24)) + "\nloss = sum("
    + " + ".join(f"a{i}*a{i + 1}" for i in range(23)) + ")",
    "deep": "x = 2; y = x\nfor i in range(60):\n    y = y * 1.25 - 0.25\nloss = y",
    "loop": "x = 1; w = 0.5; k = 0.25\nfor i in range(400):\n    x = x * w + k\nloss = x",
    "large": "W = (arange(81) - 40.0).reshape(9, 9).requires_grad_()\n"
    "V = (arange(72) / 8).reshape(2, 3, 12).requires_grad_(); loss = sum(W * W) + sum(V)",
    "views": "A = [[1, 2, 3], [4, 5, 6]]; r = A[0]; c = A[:, 1:]; t = A.T; m = A.reshape(3, 2)\n"
    "y = A.clone(); y[0] = 2 * r; y[:, 0] += 1; loss = sum(y * A) + sum(t @ m.T) + sum(c)",
    "several results": "A = [[3, 1, 2], [5, 9, 4]]; v, i = sort(A, 1); m, k = max(A, 0)\n"
    "a, b = split(A, 1); loss = sum(v * i) + sum(m) * sum(a * b)",
    "modules": TORCH + "torch.manual_seed(0)\n"
    "m = nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Dropout(0.0), nn.Linear(3, 1))\n"
    "with torch.no_grad():\n    for i, p in enumerate(m.parameters()):\n"
    "        p.copy_(torch.arange(p.numel()).reshape(p.shape) / 4 - i / 2)\n"
    "x = torch.tensor([[1.0, -2.0], [0.5, 4.0]])\nt = torch.tensor([[1.0], [0.0]])\n"
    "loss = F.mse_loss(m(x), t)\nloss.backward()\nprint(loss, m)\n",
    "training": TORCH + "w = torch.tensor([1.0, -2.0], requires_grad=True)\n"
    "opt = torch.optim.SGD([w], lr=0.125)\nlosses = []\n"
    "for step in range(4):\n    opt.zero_grad()\n    loss = (w * w).sum()\n    loss.backward()\n"
    "    opt.step()\n    losses.append(loss.item())\nprint(losses)\n",
    "classes": TORCH + "z = torch.tensor([[1.0, 2.0, 0.0], [0.0, -1.0, 3.0]], requires_grad=True)\n"
    "t = torch.tensor([1, 2])\nloss = F.cross_entropy(z, t)\nloss.backward()\n",
    "attention": "Q = [[1, 2], [3, 4]]; K = [[0, 1], [1, 0]]; V = [[2, 1], [1, 3]]\n"
    "loss = sum(softmax(Q @ K.T / 2, 1) @ V * V)",
    "cuts": TORCH + "x = torch.tensor([1.0, 2.0], requires_grad=True)\ny = x.detach() * x\n"
    "with torch.no_grad():\n    z = x * 3\nn = float(x.sum())\nx.register_hook(lambda g: g * 2)\n"
    "h = y * n\nh.retain_grad()\nloss = (h * z).sum()\nloss.backward()\n",
    "own function": TORCH + "class Cube(torch.autograd.Function):\n    @staticmethod\n"
    "    def forward(ctx, x):\n        ctx.save_for_backward(x)\n        return x ** 3\n"
    "    @staticmethod\n    def backward(ctx, g):\n        x, = ctx.saved_tensors\n"
    "        return g * 3 * x ** 2\nx = torch.tensor([1.0, 2.0], requires_grad=True)\n"
    "loss = Cube.apply(x).sum()\nloss.backward()\n",
    "no loss": "x = [1, 2]; y = x * 2",
    "no gradients": TORCH + "x = torch.ones(2, requires_grad=True)\nloss = (x * x).sum()\n",
    "warned": "y = [1, 2, 4]; t = const([[1], [2], [3]]); unused = [1, 0]\n"
    "loss = mean((y - t)**2) + sum(sqrt(y - y))",
    "asserted": "x = [1, 2]  #=> [1, 2]\ny = x * 2  #=> [2, 5]\nassert sum(y) == 6\n"
    "loss = sum(y * x)",
    "saturated": "x = [-900, 3]; w = [0, 2]; loss = sum(sigmoid(x) * relu(w - 5)) + sum(x * 0)",
    "sums": "X = [[1, 2], [3, 5]]; w = [2, 1]\n"
    "loss = mean(log(1 + exp(-(X @ w) * w))) + norm(w)**2",
    "inverse": "A = [[2, 1], [1, 4]]; b = [1, 2]; loss = sum(inverse(A) @ b) + logdet(A) + det(A)",
    "pieces": "x = [-1, 0.5, 2]; y = [1, 0, 3]\n"
    "loss = sum(where(x > 0, x*y, abs(x)) + maximum(x, y))"
    " + max(x) + sum(clamp(x, 0, 1)) + sum(cumsum(x, 0) * y)",
    "printed": "x = [1, 2]\nprint(x, 'is', x.grad)\nprint()\nloss = sum(x)\nprint(loss)",
    "unclosed": "x = [1, 2\ny = 3\nloss = x * y",
    "misspelt": "alpha = [1, 2]\nloss = sum(alpah * alpha)",
    "shapes": "x = [1, 2]\n\ty = ones(2, 3) @ ones(2, 3)\n" .replace("\t", "")
    + "loss = sum(x * y)",
    "long line": "x = [1, 2]; " + "y = x * 2; " * 30 + "loss = sum(x + [1, 2, 3])" + "; z = 1" * 20,
    "twice": TORCH + "x = torch.ones(2, requires_grad=True)\nloss = (x * x).sum()\n"
    "loss.backward()\nloss.backward()\n",
    "inside": "def f(a):\n    return g(a) * 2\ndef g(b):\n    return b @ ones(3, 3)\n"
    "loss = sum(f([1, 2]))",
    "only numbers": "import torch\nn = 3; s = 'word'; t = (1, 2)",
    "a leaf": "x = 1.5; loss = x",
    "buffers": TORCH + "m = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))\n"
    "with torch.no_grad():\n    for p in m.parameters():\n"
    "        p.copy_(torch.arange(p.numel()).reshape(p.shape) / 4 - 0.5)\n"
    "x = torch.tensor([[1.0, -2.0], [0.5, 4.0], [3.0, 1.0]])\nloss = (m(x) ** 3).sum()\n",
    "fixed": TORCH + "m = nn.Linear(2, 1)\nm.weight.requires_grad_(False)\n"
    "with torch.no_grad():\n    m.weight.fill_(0.5)\n    m.bias.fill_(1.0)\n"
    "h = m(torch.ones(3, 2))\nloss = h.sum()\n",
    "several errors": "x = 1 +\ny = x * 2\nz = )\nw = [1, 2\nloss = x y",
    "much memory": "x = ones(20, 20, requires_grad=True); y = x.T; loss = sum(x @ y)",
    "two rounds": "x = 1; w = 0.5; k = 0.25\nfor i in range(2):\n    for j in range(40):\n"
    "        x = x * w + k\n    x = sin(x)\nloss = x",
}  # fmt: skip

RUN = (
    "", "--all", "--format plain", "--format plain --all", "--format json", "--asserts",
    "--sci --precision 3", "--precision 12 --only values", "--only graph --all",
    "--only gradients --max-elements 4", "--max-elements 0", "--heat NAME,NAME.grad", "--plan",
    "--plan --all -v", "--show *,*.grad --only values", "--no-backward", "--dtype float32", "-v",
    "-q", "--nan error", "--nan ignore", "--diagnostics concise", "--diagnostics json",
    "--diagnostics github", "-o it.json", "-o it.csv --show NAME", "-o it.txt", "--fix",
)  # fmt: skip
COMMANDS = [
    *(f"run {form}".rstrip() for form in RUN),
    "graph", "graph --values --grads", "graph --all --precision 3", "graph --to dot --values",
    "graph --to mermaid --values --grads", "graph --to json --values", "graph -o it.svg",
    "graph -o it.svg --values --grads", "graph -o it.svg --direction LR --all --grads",
    "graph -o it.html --values --grads", "graph --max-nodes 5",
    "explain", "explain --all", "explain --symbolic", "explain --markdown", "explain --latex",
    "explain --format json", "explain --node loss", "explain --node 2", "explain --sci",
    "derive", "derive --raw", "derive --steps", "derive --latex", "derive --statements",
    "derive --order 2 --wrt NAME", "derive --format json", "derive --to numpy", "derive --to torch",
    "derive --to jax",
    "check", "check -v", "check --collect", "check --order 2", "check --format json",
    "check --no-grad -q", "check --snapshot", "check --junit it.xml",
    "jacobian", "jacobian --layout flat", "jacobian --mode forward -p 3", "jacobian --format json",
    "jacobian --max-elements 4 --sci",
    "hessian", "hessian --eig", "hessian --diag", "hessian --hvp ones",
    "hessian --format json --wrt NAME",
    "why NAME", "why NAME --no-fix", "why NAME --fixed", "why NAME --format json",
    "report -o it.html", "diff demo.expr", "diff demo.expr --format json",
    "diff -D NAME=2", "diff --with NAME=2 --atol 0.5",
    "run -o no/it.json", "report -o no/it.html", "check --junit no/it.xml", "graph -o no/it.svg",
    "run --profile", "run --profile --all", "run --profile --plan --only graph",
    "run --profile --format json",
    "run --of loss --wrt *", "run --of loss --wrt *.weight", "run --of NAME --wrt NAME",
    "run --grad-output 2", "run -D NAME=2", "derive --wrt *", "hessian --wrt *.weight",
    "check --max-steps 9", "explain --max-steps 9", "check --max-memory 2K",
    "why NAME --max-steps 9", "jacobian --max-steps 9",
]  # fmt: skip
# Each command with each 16th program. Those that take long: with fewer commands, by these factors.
LONG = dict.fromkeys(
    ("shared", "deep", "views", "several results", "attention", "pieces", "two rounds"), 2
) | {"large": 4, "modules": 4, "buffers": 8, "wide": 8, "loop": 8}
SHOWN = [
    pytest.param(
        command, name, 24 + (53 * i + 31 * j) % 97, i // 2 % 2 == 0, id=f"{command}-{name}"
    )
    for i, command in enumerate(COMMANDS)
    for j, name in enumerate(PROGRAMS)
    if (i + j) % (16 * LONG.get(name, 1)) == 0
]
SHOWN += [
    pytest.param(command, name, 90, True, id=f"{command}-{name}")
    for command in ("report -o all.html", "explain --latex --all", "explain --markdown --all")
    for name in ("twice", "pieces", "asserted")
]
SHOWN += [
    pytest.param(command, name, 90, True, id=f"{command}-{name}")
    for command, name in (
        ("explain", "two rounds"), ("explain --latex", "two rounds"),
        ("explain --markdown", "two rounds"), ("explain --max-steps 9", "attention"),
        ("run --of loss --wrt *.weight", "printed"), ("derive --to torch", "cuts"),
        ("graph --to mermaid --values --grads", "modules"),
        ("graph -o it.svg --direction LR --all --grads", "modules"),
        ("derive --steps", "a leaf"), ("check --snapshot", "warned"),
        ("graph --to dot --values", "several errors"),
        ("graph -o it.svg --values --grads", "empty"),
        ("run -o it.csv --show NAME", "buffers"), ("run --plan", "inverse"),
    )
]  # fmt: skip


@pytest.mark.parametrize(("command", "name", "width", "colors"), SHOWN)
@pytest.mark.usefixtures("clock")
def test_shown(cli: Cli, tmp_path: Path, command: str, name: str, width: int, colors: bool) -> None:
    text = PROGRAMS[name]
    file = f"p.{'py' if 'import torch' in text else 'expr'}"
    (tmp_path / file).write_text(text)
    words = command.replace("NAME", text.partition(" = ")[0].split()[-1]).split()
    variables = (
        {"TERM": "xterm-256color", "COLORTERM": "truecolor"} if colors else {"NO_COLOR": "1"}
    )
    tty = "--format" not in words and "--to" not in words
    result = cli(*words, file, tty=tty, COLUMNS=str(width), **variables)
    assert "E900" not in result.err and "Traceback" not in result.err


SESSION = """\
x = [1 / 3, 20000, 0]
loss = sum(x * x) / 7
x
:list
:grad
:graph
log(x) * x
:info loss
:explain
:set
print("a line of words that is longer than a narrow terminal is wide, for it is long", x)
:history
"""
STARTED = [
    "", "--precision 3", "--max-elements 2", "--sci", "--nan error", "--nan ignore",
    "--dtype float32", "-q", "--debug", "--color always", "--max-steps 5", "--max-memory 1M",
    "--max-depth 30",
    "-e x=2", "-e y", "--simple", "demo.expr", "nothing.expr",
]  # fmt: skip


ENDS = ["", "x @ [1, 2, 3, 4]", "undefined_name_that_is_long", ":grap h"]


@pytest.mark.parametrize(
    ("options", "ends", "tty"),
    [(options, ENDS[i % 4], i // 4 % 2 == 0) for i, options in enumerate(STARTED)],
)
def test_sessions_of_standard_input(cli: Cli, options: str, ends: str, tty: bool) -> None:
    width = {"COLUMNS": str(34 + len(options) * 3), "NO_COLOR": "1"}
    result = cli("repl", *options.split(), stdin=SESSION + ends, tty=tty, **width)
    assert "E900" not in result.err


def test_a_large_graph_is_drawn_by_its_lines(cli: Cli) -> None:
    text = "x = 2; w = 0.9\nfor i in range(160):\n    x = x * w + 1\nloss = x"
    assert cli("graph", "-e", text, "-o", "it.svg", "--values", "--grads", COLUMNS="80").code == 0


def test_a_report_of_what_is_no_file(cli: Cli) -> None:
    text = "x = 2; loss = x * x"
    shown = cli("report", "-e", text, "-o", "-"), cli("report", "-", "-o", "-", stdin=text)
    names = [[name in report.out for name in ("&lt;expr&gt;", "&lt;stdin&gt;")] for report in shown]
    assert names == [[True, False], [False, True]]
