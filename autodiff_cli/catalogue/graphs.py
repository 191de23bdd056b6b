"""Explanations of E3xx (shapes and dtypes) and E4xx (the graph and its gradients)."""

from __future__ import annotations

from .entry import Entry

GRAPHS: dict[str, Entry] = {
    "E301": Entry(
        "the inner sizes of a matrix product differ",
        "In `A @ B` the last size of A must equal the last but one of B (or the only one, if B "
        "is a vector): (n, k) @ (k, m) gives (n, m). Often one operand wants a `.T`.",
        "W = [[1, 2, 3], [4, 5, 6]]\nx = [1, 2]\nloss = sum(W @ x)",
        "W = [[1, 2, 3], [4, 5, 6]]\nx = [1, 2]\nloss = sum(W.T @ x)",
    ),
    "E302": Entry(
        "two shapes cannot be broadcast together",
        "Shapes are aligned from the right; two sizes fit when they are equal or one of them is "
        "1. `None` in an index adds a dimension of size 1 at that place.",
        "X = [[1, 2, 3], [4, 5, 6]]\nb = [10, 20]\nloss = sum(X + b)",
        "X = [[1, 2, 3], [4, 5, 6]]\nb = [10, 20]\nloss = sum(X + b[:, None])",
    ),
    "E303": Entry(
        "the elements do not fit the new shape",
        "Reshaping keeps every element, so the product of the sizes must stay the same. One size "
        "may be -1: it is then computed from the others.",
        "x = [1, 2, 3, 4, 5, 6]\nloss = sum(x.reshape(4, 2))",
        "x = [1, 2, 3, 4, 5, 6]\nloss = sum(x.reshape(-1, 2))",
    ),
    "E304": Entry(
        "the tensor has no such dimension",
        "A tensor of n dimensions has the dims 0 to n-1, and -1 to -n counted from the end. A dim "
        "given twice is refused as well.",
        "A = [[1, 2], [3, 4]]\nloss = sum(A.sum(dim=2))",
        "A = [[1, 2], [3, 4]]\nloss = sum(A.sum(dim=1))",
    ),
    "E305": Entry(
        "an index does not fit the tensor",
        "An index lies outside its dimension, there are more indices than dimensions, a mask has "
        "another shape, or an index is no integer. Positions count from 0, and -1 is the last.",
        "v = [1, 2, 3]\nloss = v[3] * 2",
        "v = [1, 2, 3]\nloss = v[2] * 2",
    ),
    "E306": Entry(
        "an integer or bool tensor cannot require grad",
        "Derivatives need values that can change by a little, so only floating point tensors can "
        "require grad. Write the numbers with a decimal point, or choose a dtype.",
        "x = tensor([1, 2, 3], requires_grad=True)\nloss = sum(x)",
        "x = tensor([1.0, 2.0, 3.0], requires_grad=True)\nloss = sum(x)",
    ),
    "E307": Entry(
        "the dtypes do not fit",
        "Elementwise operations promote dtypes, but matrix products, some losses and indexing "
        "want a certain one, as in PyTorch. `x.to(torch.float64)`, `x.long()` and the like "
        "convert.",
        "A = ones(2, 2, dtype=float32)\nx = [1, 2]\nloss = sum(A @ x)",
        "A = ones(2, 2, dtype=float64)\nx = [1, 2]\nloss = sum(A @ x)",
    ),
    "E308": Entry(
        "the shapes do not fit this operation",
        "The operation has its own rule for the shapes of its arguments: equal sizes, a matrix "
        "rather than a vector, sizes that add up. The message names the shapes and the rule.",
        "A = [[1, 2], [3, 4]]\nB = [5, 6, 7]\nloss = sum(cat([A, B]))",
        "A = [[1, 2], [3, 4]]\nB = [5, 6]\nloss = sum(cat([A, B[None, :]]))",
    ),
    "E309": Entry(
        "a size is not valid",
        "Sizes, counts and steps are whole numbers, and no size is negative. A step of 0 and a "
        "range that runs away from its end are refused too.",
        "x = 2\nloss = x * sum(zeros(-1))",
        "x = 2\nloss = x * sum(ones(1))",
    ),
    "E401": Entry(
        "what is differentiated is not a single number",
        "A gradient belongs to one number, the loss. Reduce the tensor with `sum` or `mean`, "
        "weight its elements with `--grad-output` or `backward(gradient)`, or ask for all "
        "derivatives with `autodiff jacobian`.",
        "A = [[1, 2], [3, 4]]\ny = A * A\ny.backward()",
        "A = [[1, 2], [3, 4]]\ny = A * A\ny.sum().backward()",
    ),
    "E402": Entry(
        "nothing that was computed requires grad",
        "The loss is built only from constants, so there is nothing to differentiate by. A plain "
        "literal requires grad, `tensor(...)` does not unless it is told to, and an intermediate "
        "`detach()` or `no_grad()` cuts the way.",
        "A = tensor([1.0, 2.0])\nloss = sum(A * A)\nloss.backward()",
        "A = tensor([1.0, 2.0], requires_grad=True)\nloss = sum(A * A)\nloss.backward()",
    ),
    "E403": Entry(
        "a tensor is not connected to the loss",
        "The tensor requires grad, but the loss does not depend on it, so its gradient stays "
        "None. It may have been forgotten, rebound to another tensor, or used only behind "
        "`detach()`. This is a warning; `autodiff why NAME` tells more.",
        "x = 2\nw = 3\nloss = x * x",
        "x = 2\nw = 3\nloss = w * x * x",
    ),
    "E404": Entry(
        "a derivative is not defined",
        "An operation on the way has no derivative of the order that was asked for, or no "
        "symbolic rule for `autodiff derive`. The message names it; a smooth replacement is the "
        "usual way out.",
        "class Double(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, x):\n"
        "        return x * 2\nx = 3\nloss = Double.apply(x)\nloss.backward()",
        "x = 3\nloss = x * 2\nloss.backward()",
    ),
    "E405": Entry(
        "a leaf that requires grad is changed in place",
        "The gradient belongs to the value that the leaf had, so changing it in place is refused, "
        "as in PyTorch. Inside `with torch.no_grad():` it is allowed: that is how an optimizer "
        "makes its step.",
        "x = [1, 2]\nx.add_(1)\nloss = sum(x)",
        "x = [1, 2]\ny = x + 1\nloss = sum(y)",
    ),
    "E406": Entry(
        "the graph was freed by an earlier backward",
        "`backward()` frees what the operations saved, so a second one through the same graph has "
        "nothing to read. Keep it with `retain_graph=True`, compute the loss again, or add the "
        "losses and go back once.",
        "x = 2\nloss = x**3\nloss.backward()\nloss.backward()",
        "x = 2\nloss = x**3\nloss.backward(retain_graph=True)\nloss.backward()",
    ),
    "E407": Entry(
        "a value needed by backward was changed in place",
        "An operation saved this value for its derivative, and an in-place operation changed it "
        "afterwards, so the gradient would be wrong. Use the operation without the underscore, or "
        "change a `clone()`.",
        "x = [1, 2]\ny = exp(x)\ny.add_(1)\nloss = sum(y)\nloss.backward()",
        "x = [1, 2]\ny = exp(x)\nz = y + 1\nloss = sum(z)\nloss.backward()",
    ),
    "E408": Entry(
        "one element is needed, but the tensor has several",
        "`if`, `while`, `and`, `float()` and `.item()` want one number. Choose an element, or "
        "reduce the tensor with `any`, `all`, `sum` or `mean`; `where` chooses element by "
        "element.",
        "x = [1, -2]\nloss = sum(x) if x > 0 else -sum(x)",
        "x = [1, -2]\nloss = sum(where(x > 0, x, -x))",
    ),
    "E409": Entry(
        "a custom Function does not do what it must",
        "A class of `torch.autograd.Function` has static `forward(ctx, ...)` and `backward(ctx, "
        "...)`, is called by `apply`, and its `backward` returns one gradient for every input of "
        "`forward`, None where there is none.",
        "class Mul(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, a, b):\n"
        "        ctx.save_for_backward(a, b)\n        return a * b\n    @staticmethod\n"
        "    def backward(ctx, g):\n        a, b = ctx.saved_tensors\n        return g * b\n"
        "a = 2\nb = 3\nloss = Mul.apply(a, b)\nloss.backward()",
        "class Mul(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, a, b):\n"
        "        ctx.save_for_backward(a, b)\n        return a * b\n    @staticmethod\n"
        "    def backward(ctx, g):\n        a, b = ctx.saved_tensors\n"
        "        return g * b, g * a\n"
        "a = 2\nb = 3\nloss = Mul.apply(a, b)\nloss.backward()",
    ),
    "E410": Entry(
        "an input was not used to compute the output",
        "`autograd.grad` was asked for the derivative by a tensor that the output does not depend "
        "on. Pass `allow_unused=True` to get None for it, or `materialize_grads=True` for zeros.",
        "x = 2\nw = 3\nloss = x * x\ng = torch.autograd.grad(loss, [x, w])",
        "x = 2\nw = 3\nloss = x * x\ng = torch.autograd.grad(loss, [x, w], allow_unused=True)",
    ),
    "E411": Entry(
        "only a leaf can do this",
        "The tensor is the result of an operation, and what was asked (changing requires_grad, "
        "optimizing it, being a parameter) is possible only for leaves. `detach()` makes a new "
        "leaf of a result.",
        "x = 2\ny = x * x\ny.requires_grad_(False)",
        "x = 2\ny = (x * x).detach()\ny.requires_grad_(False)",
    ),
}
