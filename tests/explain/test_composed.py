"""Parts, orders, sums and products of arrays in functions and losses: the formulas of a spread of
compositions, as they were recorded (`RECORD_SAID=1` does). `derive` holds each against the
gradient."""

from __future__ import annotations

from autodiff_cli.explain.derive import derive_source
from autodiff_cli.explain.model import Request
from autodiff_cli.session import Options
from autodiff_cli.source import Source

from ..said import said
from ..together import together

NAMES = """\
X = tensor([[0.5, -1.2, 0.3, 0.8], [1, 0.4, -0.7, 0.2], [0.2, 1, 1.3, -0.5]], requires_grad=True)
Y = tensor([[[0.5, -1.2], [0.3, 1]], [[0.4, -0.7], [0.2, 1.1]], [[1.3, -0.6], [0.8, 0.9]]],
           requires_grad=True)
m = tensor([True, False, True])
M = tensor([[True, False, True, True], [False, True, False, True], [False, False, True, False]])
B = tensor([[True, False], [True, True], [False, True]])
k = tensor([2, 0, 2, 1])
K = tensor([[0, 2, 1, 1], [1, 0, 0, 2]])
t = tensor([0.5, 1, -0.3, 0.2, 0.7, -1])
"""
NORMS = "G = tensor([1.5, 2])\nc = tensor([0.3, -1])\n"
# Losses whose derivations are shown step by step.
DERIVED = [
    "sum(batch_norm(Y, None, None, G, c, True)**2)",
    "sum(amax(X, 1)**2)",
    "sum(amax(X * X, 1)**3)",
    "sum(sin(X * t[:4]) * exp(X * t[:4]))",
    "sum(avg_pool2d(Y, (2, 2)).squeeze(1)**2)",
    "sum(avg_pool1d(X, 2, 2, 1, True, False)**2)",
    "sum(avg_pool2d(Y, 2, 1, 1, False, True, 3)**2)",
]
# Parts, orders, sums and products of arrays in a function, pools and windows at their ends, powers
# of powers, elements by number.
POSITIVE = "x = [0.5, 1.2, 0.7]\ny = [1.5, 0.4, 2]\np = 1.3\nR = [[1.6, -0.2, 2.1]]\n"
POSITIVE += "W = tensor([[[2.]]])\nZ = tensor([[[0.5, 1, 2]]], requires_grad=True)\n"
POSITIVE += (
    "V = tensor([1., 2], requires_grad=True)\nv = V**2\nV = tensor([3., 4.], requires_grad=True)\n"
)
LOSSES = """
sum(exp(X[1:])) norm(X[1]) sum(roll(X[1],-1)) sum(log(1+exp(X.T))*(X.T)) sum((Y.transpose(0,1))**2)
norm(stack([X,X],1)) sum(pad(X,(1,0))) sum(exp(X.reshape(-1)))
mean(X.unsqueeze(1))*sum(sin(X.unsqueeze(1))) sum(exp(X.sum(0)))
mean(Y.sum((0,2)))*sum(sin(Y.sum((0,2)))) sum(log(1+exp(X.amax(0)))*(X.amax(0)))
sum((max(X,1)[0])**2) log(sum(exp(sort(X[0])[0]))) norm(kthvalue(X,2,0)[0]) sum(X.prod(1))
norm(logsumexp(X,0)) sum((X[:,:3].diagonal(1))**2) log(sum(exp(trace(X[:,:3])))) sum(exp(X.std()))
sum(avg_pool1d(X,2)) sum(exp(avg_pool1d(X,2,1))) log(sum(exp(avg_pool1d(X,3,2,1))))
sum(log(1+exp(max_pool1d(X,2,1)))*(max_pool1d(X,2,1)))
sum(log(1+exp(X.masked_fill(M,0.5)))*(X.masked_fill(M,0.5))) sum(exp(where(X>0.3,X,-X)))
norm(X.gather(0,K)) sum(X.index_fill(1,k,0.5)) sum(exp(X.clamp(min=0)))
mean(abs(X))*sum(sin(abs(X))) sum(sigmoid(X)) log(sum(exp(X@X.T))) sum(einsum('ij,ik->jk',X,X))
mean(exp(X[M]*t))*sum(sin(exp(X[M]*t))) sum((cat([X,Y[:,0]],1)*2)**2)
log(sum(exp(avg_pool1d(X,4,3,ceil_mode=True)))) norm(softmax(X[:,k>0],0)) sum((X[:,k>0].prod(0))**2)
mean(Y[:,B[1]].amin(0))*sum(sin(Y[:,B[1]].amin(0)))
mean(avg_pool2d(X[None],2,1,divisor_override=3))*sum(sin(avg_pool2d(X[None],2,1,divisor_override=3)))
norm(adaptive_avg_pool2d(X[None],(1,3)))
sum(log(1+exp(avg_pool2d(X[None],2,2,ceil_mode=True,divisor_override=3)))*(avg_pool2d(X[None],2,2,ceil_mode=True,divisor_override=3)))
sum((nll_loss(log_softmax(Y,1),B.long(),reduction='none'))**2) log(sum(exp(X[:1][m[:1]])))
sum(log(1+exp(Y[:,:,:1][B[:,:,None]]))*(Y[:,:,:1][B[:,:,None]]))
sum(exp(where(logical_and(X,Y[:,0,:1]),X,X*X))) norm(where(logical_and(k,M),X,X*X)) sum((X*(~k))**2)
norm(amax(X*k,0)**2) sum((X*k).max(1)[0]**-2) sum(exp(X.unfold(1,2,1).sum(2)))
norm(X.unfold(0,2,1).sum(2)) sum((roll(X[0],1))**2) sum(exp(flip(X[:,:1],[1])))
sum(sin(solve(X[:,:3],Y.permute(1,0,2)))) sum(X[0][k<1]**2)*sum(X[0][k<1]**3)
sum(sin(adaptive_max_pool1d(X,2))) sum(sin(max_pool1d(X,2,2,1))) sum(x**(p-2)*x**2)
sum((x**2)**(p-1)*x**2) sum(sin(cummax(X[0,:2],0)[0])) sum(one_hot(K,3)*sin(X.T))
sum(tril(ones(3,3))*R*X[:,:3]) sum(sort(X,1,True)[0].gather(1,tensor([[1],[1],[1]]))**2)
sum(sort(X,1,descending=True)[0].gather(1,tensor([[1],[1],[1]]))**2)
sum(sin(x[None,:,None].expand(2,3,2).reshape(-1))*t.repeat(2)) x@X[:,:3]@inv(2*X[:,:3])@y
sum(cat([x,y])[3]**2) sum(sin(X.repeat(1,1,2))) cross_entropy(X,tensor([2,0,1]),ignore_index=0)
sum((x**2)**(p-1)*x) sum(1/(x-y)+(y-x)**2) sum(log((x-y)**2)*(y-x))
"""


def lines_of(given: str, loss: str, steps: bool = False) -> list[str]:
    """A loss, its formulas with what they are made of, and what they cost; the steps to them."""
    source = Source(f"{given}loss = {loss}\n", "test.expr")
    found = derive_source(source, Options(), Request(), steps=steps)
    assert all(d.verified for d in found.derivatives)
    lines = [loss] if found.error is None else [loss, f"  {found.error.message}"]
    for d in found.derivatives:
        lines += [f"  {name} = {part}  {latex}" for name, part, latex in d.lets]
        lines += [f"  {d.wrt}: {d.cost}  {d.text}", f"  {d.latex}"]
        lines += [f"  {step.shown}  {step.rule}" for step in d.steps]
    return lines


def as_recorded(name: str, lines: list[str]) -> None:
    said("explain").compare(f"test_composed.py::{name}", ["\n".join(lines)], len(lines))


@together(LOSSES.split())
def test_losses(loss: str) -> None:
    as_recorded(loss, lines_of(NAMES + POSITIVE, loss))


@together(DERIVED)
def test_derivations(loss: str) -> None:
    as_recorded(loss, lines_of(NAMES + NORMS, loss, True))
