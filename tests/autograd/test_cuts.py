"""Why nothing requires grad, and what to write: the words at the place where the graph is cut."""

from __future__ import annotations

from autodiff_cli.session import Options, run
from autodiff_cli.source import Source

from ..together import together

TORCH = "import torch\n"
X = "x = torch.ones(2, requires_grad=True)\n"
CUTS = [
    (TORCH + 'x = torch.arange(3)\ny = x * 2\ny.sum().backward()',
     'torch.arange(3)', 'int64: only floats take gradients',
     'write `x = torch.arange(3, dtype=torch.float32, requires_grad=True)`'),
    (TORCH + 'x = torch.tensor([1, 2])\ny = (x * 2).sum()\ny.backward()',
     'torch.tensor([1, 2])', 'int64: only floats take gradients',
     'write `x = torch.tensor([1, 2], dtype=torch.float32, requires_grad=True)`'),
    (TORCH + 'x = torch.tensor([1., 2.])\ny = (x * 2).sum()\ny.backward()',
     'torch.tensor([1., 2.])', 'requires_grad=False is the default of `tensor`',
     'write `x = torch.tensor([1., 2.], requires_grad=True)`'),
    (TORCH + 'x = torch.zeros(2, dtype=torch.int32)\nx.sum().backward()',
     'torch.zeros(2, dtype=torch.int32)', 'int32: only floats take gradients',
     'write `requires_grad=True` where the tensor is made'),
    (TORCH + X + 'with torch.no_grad():\n    y = (x * 2).sum()\ny.backward()',
     'x * 2', 'computed under no_grad: the graph ends here',
     'compute `x * 2` outside of the `with torch.no_grad():` block'),
    (TORCH + X + 'y = x.detach().sum()\ny.backward()',
     'x.detach()', 'detach() cuts the graph here',
     'write `x` for `x.detach()`'),
    (TORCH + X + 'y = torch.detach(x).sum()\ny.backward()',
     'torch.detach(x)', 'detach() cuts the graph here', 'leave `detach()` out'),
    (TORCH + X + 'y = (x\n  * 2).detach().sum()\ny.backward()',
     '(x\n  * 2).detach()', 'detach() cuts the graph here', 'leave `detach()` out'),
    (TORCH + X + 'y = x.detach_().sum()\ny.backward()',
     'x.detach_()', 'detach_() cuts the graph here', 'leave `detach_()` out'),
    (TORCH + X + 'y = x.requires_grad_(False).sum()\ny.backward()',
     'x.requires_grad_(False)', 'this cuts the graph here',
     'call `requires_grad_()` on what it gives'),
    (TORCH + X + 'y = x.data.sum()\ny.backward()',
     'x.data', '.data cuts the graph here', 'write `x` for `x.data`'),
    *[(TORCH + X.replace('x', n) + f'y = {n}.detach().sum()\ny.backward()', f'{n}.detach()',
       'detach() cuts the graph here', help) for n, help in (
        ('x' * 51, f'write `{"x" * 51}` for `{"x" * 51}.detach()`'),
        ('x' * 52, 'leave `detach()` out'))],
    *[(TORCH + X + f'with torch.no_grad():\n    y = {text}\ny.sum().backward()', text,
       'computed under no_grad: the graph ends here',
       f'compute {said} outside of the `with torch.no_grad():` block') for text, said in (
        ('x * 2.' + '0' * 54, f'`x * 2.{"0" * 54}`'), ('x * 2.' + '0' * 55, 'it'),
        ('torch.exp(\n        x)', 'it'))],
    *[(TORCH + f'x = {text}\nx.sum().backward()', text,
       'requires_grad=False is the default of `zeros`', help) for text, help in (
        (f'torch.zeros({" " * 46}2)', f'write `x = torch.zeros({" " * 46}2, requires_grad=True)`'),
        (f'torch.zeros({" " * 47}2)', 'write `requires_grad=True` where the tensor is made'))],
    ('x = tensor([1.0, 2.0], dtype=torch.float64)\nloss = sum(x * x)',
     'tensor([1.0, 2.0], dtype=torch.float64)', 'requires_grad=False is the default of `tensor`',
     'write `x = tensor([1.0, 2.0], dtype=torch.float64, requires_grad=True)`, or pass --wrt x'),
    (TORCH + X + 'y = (x > 0).sum()\ny.backward()',
     'x > 0', '`gt` gives bool, which takes no gradient',
     'use operations that give floats on the way to the loss'),
    (TORCH + X + 'y = x.argmax().float()\ny.backward()',
     'x.argmax()', '`argmax` gives int64, which takes no gradient',
     'use operations that give floats on the way to the loss'),
    (TORCH + X + 'g, = torch.autograd.grad((x ** 2).sum(), x)\ng.sum().backward()',
     'x ** 2', 'its gradient was taken without create_graph=True: the graph ends there',
     'pass `create_graph=True` to the grad() or backward() that computed it'),
    (TORCH + X + 'y = torch.tensor(x.sum().item()) * 2\ny.backward()',
     'torch.tensor(x.sum().item())', 'requires_grad=False is the default of `tensor`',
     'numbers have left the graph: write `x.sum()` for `torch.tensor(x.sum().item())`'),
    (TORCH + 'x = torch.rand(\n    2)\nx.sum().backward()',
     'torch.rand(\n    2)', 'requires_grad=False is the default of `rand`',
     'write `requires_grad=True` where the tensor is made'),
    ('x = const([1.0, 2.0])\nloss = sum(x * x)',
     'const([1.0, 2.0])', '`const` takes no gradient',
     'write the plain literal `x = [1.0, 2.0]`, or pass --wrt x'),
    ('x = const(2.0)\nloss = x * x',
     'const(2.0)', '`const` takes no gradient',
     'write `tensor(..., requires_grad=True)`, '
     'or the plain literal `A = [[1., 2.]]`, or pass --wrt x'),
    ('x = tensor([1.0, 2.0])\nloss = sum(x * x)',
     'tensor([1.0, 2.0])', 'requires_grad=False is the default of `tensor`',
     'write `x = tensor([1.0, 2.0], requires_grad=True)`, '
     'or the plain literal `x = [1.0, 2.0]`, or pass --wrt x'),
    ('x = tensor(2.0)\nloss = x * x',
     'tensor(2.0)', 'requires_grad=False is the default of `tensor`',
     'write `x = tensor(2.0, requires_grad=True)`, or pass --wrt x'),
    ('x = zeros(2)\nloss = sum(x * x)',
     'zeros(2)', 'requires_grad=False is the default of `zeros`',
     'write `x = zeros(2, requires_grad=True)`, or pass --wrt x'),
    ('x = [1, 2]\nwith torch.no_grad():\n    loss = sum(x * x)',
     'x * x', 'computed under no_grad: the graph ends here',
     'compute `x * x` outside of the `with torch.no_grad():` block, or pass --wrt NAME'),
    ('x = [1, 2]\nloss = sum(x * x).detach()',
     'sum(x * x).detach()', 'detach() cuts the graph here',
     'write `sum(x * x)` for `sum(x * x).detach()`, or pass --wrt loss'),
]  # fmt: skip


def test_what_was_made_first_is_named_first() -> None:
    """Wherever it stands in the result."""
    text = "import torch\na = torch.zeros(2)\nb = torch.ones(2)\n"
    for use in ("a * b", "b * a", "torch.stack([b * 2, a])"):
        error = run(Source(f"{text}({use}).sum().backward()", "t.py"), Options()).error
        assert error is not None
        texts = [label.span.text for label in error.diagnostic.labels[:2]]
        assert texts == ["torch.zeros(2)", "torch.ones(2)"], use


@together(CUTS)
def test_the_cut_is_named(text: str, place: str, words: str, help: str) -> None:
    suffix = "py" if text.startswith(TORCH) else "expr"
    error = run(Source(text, f"t.{suffix}"), Options()).error
    assert error is not None and error.code == "E402"
    label, *_ = error.diagnostic.labels
    assert (label.span.text, label.text) == (place, words)
    assert error.diagnostic.helps == (help,)
