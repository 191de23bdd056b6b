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
VIEWS = """
X[m] X[M] X[:,k>0] Y[m] Y[B] Y[:,B[1]] X[k] X[:,k] X[k[:3],k[:3]] X[1:] X[::2] X[:,1:3] X[1] X[:,2]
X[0,1] Y[:,0] Y[1,:,0] flip(X,[0]) flip(X,[0,1]) flip(X[0],[0]) roll(X,1,0) roll(X[1],-1)
cumsum(X,0) cumsum(X[0],0) flip(cumsum(flip(X,[1]),1),[1]) tril(X) triu(X[:,1:],1) X.T
Y.permute(2,0,1) Y.transpose(0,1) cat([X,X[:1]]) cat([X,2*X],1) stack([X[0],X[2]]) stack([X,X],1)
hstack([X[0],X[1,:2]]) pad(X,(1,0)) X.reshape(4,3) X.reshape(-1) Y.flatten(1) X.unsqueeze(1)
X[:,None]*X[None] X.repeat(2,1) X[0].expand(3,4) X[:,:1].expand(3,2) X.sum(0)
X.mean(1,keepdim=True) Y.sum((0,2)) Y.mean(1) X.amax(0) X.amin(1,keepdim=True) max(X,1)[0]
sort(X,0)[0] sort(X[0])[0] X.median(1)[0] kthvalue(X,2,0)[0] topk(X,2,1)[0] X.prod(1) cumprod(X,1)
softmax(X,1) softmax(X,0) log_softmax(X,1) logsumexp(X,0) logcumsumexp(X,1) X.diagonal()
X[:,:3].diagonal(1) diag(X[0]) trace(X[:,:3]) X.var(0) X.std() X.norm(dim=1) avg_pool1d(X,2)
max_pool1d(X,2) avg_pool1d(X,2,1) avg_pool1d(X,3,2,1) max_pool1d(X,2,1) adaptive_avg_pool1d(X,3)
X.masked_fill(M,0.5) where(M,X,0) where(M,X,X*X) where(X>0.3,X,-X) X*M X[:,:3].inverse()
X.gather(0,K) index_select(X,1,k) X.index_fill(1,k,0.5) X.clamp(-0.5,0.9) X.clamp(min=0) relu(X)
abs(X) sign(X)*X maximum(X,X.mean()) sigmoid(X) outer(X[0],X[1,:3]) kron(X[0],X[1]) X@X.T X.T@X
X@X[0] Y@Y[0] einsum('ij,ik->jk',X,X) X-X.mean(0) (X-X.mean())/X.std() X/X.sum(1,keepdim=True)
exp(X[M]*t) X[M]*X[M].exp() X[M].cumsum(0) Y[B]@Y[0] cat([X,Y[:,0]],1)*2
avg_pool1d(X,3,2,ceil_mode=True) avg_pool1d(X,4,3,ceil_mode=True) adaptive_avg_pool1d(X[:,:3],2)
X[:,k>0].amax(0) softmax(X[:,k>0],0) X[:,k>0].prod(0) Y[:,B[1]].amin(0) softmax(X.T,0).T*X
X@softmax(X.T,1) avg_pool2d(X[None],2,1,divisor_override=3) adaptive_avg_pool2d(X[None],(1,3))
avg_pool2d(X[None],2,2,ceil_mode=True,divisor_override=3) avg_pool2d(X[None,None][:0],2)
nll_loss(log_softmax(Y,1),B.long(),reduction='none') X[m&~m] X[:1][m[:1]] Y[:,:,:1][B[:,:,None]]
where(logical_and(X,Y[:,0,:1]),X,X*X) where(logical_and(k,M),X,X*X) where(logical_not(k),X,X*X)
X*(~k) X*(k|1) X[k[:3],k[:3]]*(k[:3]&1)
(2*X).amax(1)**3 amax(X*k,0)**2 max(X*X)**3 (X*k).max(1)[0]**-2 cumsum(X[:,k>0],1)
X.unfold(1,2,1).sum(2) X.unfold(1,2,2).mean(2) X[0].unfold(0,3,1).sum(1) X.unfold(0,2,1).sum(2)
roll(X,1) roll(X[:1],1) roll(X[0],1) flip(X[:,:1],[1])
"""
NORMS = "G = tensor([1.5, 2], requires_grad=True)\nc = tensor([0.3, -1], requires_grad=True)\n"
# Losses whose derivations are shown step by step.
DERIVED = [
    "prod(X * M)",
    "sum((X * M).prod(1))",
    "sum(batch_norm(Y, None, None, G, c, True)**2)",
    *(f"sum(amax({u}, 1)**{p})" for u in ("X", "2 * X", "-X", "X * X") for p in (0.5, 2, 3)),
    "sum(sin(X * t[0])) * exp(sum(X * t[0]))",
    "sum(sin(X * t[:4]) * exp(X * t[:4]))",
    "log(sum(exp(X - X.mean()))) * sum((X - X.mean())**2)",
    "sum(avg_pool2d(Y, (2, 2)).squeeze(1)**2)",
    "sum(avg_pool1d(X, 2, 2, 1, True, False)**2)",
    "sum(avg_pool2d(Y, 2, 1, 1, False, True, 3)**2)",
]
# Losses with a case each: pools and windows at their ends, powers of powers, elements by number.
POSITIVE = "x = [0.5, 1.2, 0.7]\ny = [1.5, 0.4, 2]\np = 1.3\nR = [[1.6, -0.2, 2.1]]\n"
POSITIVE += "W = tensor([[[2.]]])\nZ = tensor([[[0.5, 1, 2]]], requires_grad=True)\n"
POSITIVE += (
    "V = tensor([1., 2], requires_grad=True)\nv = V**2\nV = tensor([3., 4.], requires_grad=True)\n"
)
LOSSES = """
sum(X*((X-X)-2)**3) sum(sin(solve(X[:,:3],Y.permute(1,0,2)))) sum(sin(X.repeat(3,1,2)))
sum(X[0][k<1]**2)*sum(X[0][k<1]**3) sum(sin(avg_pool1d(X,3,2,1,ceil_mode=True)))
sum(sin(adaptive_max_pool1d(X,2))) sum(sin(adaptive_max_pool1d(X,3)))
sum(sin(adaptive_max_pool2d(Y,(1,2)))) sum(sin(max_pool1d(X,2,2,1))) sum(sin(max_pool1d(X,2,3)))
sum(sin(max_pool1d(X.reshape(2,6),3,4))) sum(sin(conv1d(X.reshape(1,2,6),Y,stride=2,dilation=2)))
sum(x**(p-2)*x**2) sum(x**(p-2)*x) sum((x**2)**(p-1)*x**2) sum(x**(p+2)/x**2) sum(X.argsort(0)*X)
sum(argsort(Y,1)*Y) sum(argsort(Y,-1)*Y) sum(argsort(Y,0)*Y) sum(sin(cummax(X[0,:2],0)[0]))
sum(sin(cumprod(X,0))) sum(one_hot(K,3)*sin(X.T)) sum(where(abs(3*x)<1,3*x*y,sign(3*x)*y))
sum(where(abs(x)<1,x*y,sign(x)*y)) sum(tril(ones(3,3))*R*X[:,:3])
sum(sort(X,1)[0].gather(1,tensor([[1],[0],[1]]))**2)
sum(sort(X,1)[0].gather(1,tensor([[1],[1],[1]]))**2)
sum(sort(X,1)[0].gather(0,tensor([[1,1,1,1]]))**2)
sum(sort(X,0)[0].gather(1,tensor([[1],[1],[1]]))**2)
sum(sort(X,1,True)[0].gather(1,tensor([[1],[1],[1]]))**2) sum(sin(Y[k[:3]%2,:,k[:3]%2]))
sum(sort(X,1,descending=True)[0].gather(1,tensor([[1],[1],[1]]))**2)
sum(sort(X,1)[0].gather(1,tensor([[1,1],[1,1],[1,1]]))**2)
sum(sin(x[None,:,None].expand(2,3,2).reshape(-1))*t.repeat(2)) trace(inv(X[:,:3])@X[:,:3])*p
x@inv(X[:,:3].T)@X[:,:3].T@y x@X[:,:3]@inv(2*X[:,:3])@y
avg_pool2d(X[None],(1,2),divisor_override=3).sum()*p sum(cat([x,y])[2:4]**2) sum(cat([x,y])[3]**2)
sum(sin(avg_pool1d(Y,2,1,1))) sum(exp(X[0][k<1])*X[0]) sum(sin(X.repeat(1,1,2)))
sum(where(abs(x)<1,x,1)*y) sum(sin(X.gather(-1,tensor([[0],[1],[1]]))))
cross_entropy(X,tensor([2,0,1]),ignore_index=0)
sum(adaptive_avg_pool1d(Z,1)*W) sum(softmax(X.T,1).T*X)
sum(avg_pool1d(X[:1,None]*X[0,0],4,1)*X[0,0]*ones(1,1,1)) sum(logsumexp(X,(0,1)))
sum((x**2)**(p-1)*x) sum(v**2*V**2) sum(logsumexp(Y,(0,1))*p)
sum(avg_pool1d(X[:,:1],2,1,1,False,False)**2) sum(X[None]*Y[:,0,:1].T[:,:,None])
"""
MATRIX = "[[0.5, -1.2, 0.3], [1, 0.4, -0.7], [0.2, 1, 1.3]]"
USES = [
    "sum({})",
    "sum(({})**2)",
    "sum(exp({}))",
    "log(sum(exp({})))",
    "mean({}) * sum(sin({}))",
    "norm({})",
    "sum(log(1 + exp({})) * ({}))",
]
# What the program gives a name, and losses of the name and of what it is made of.
NAMED = """
3*x*y x*y/2 x**2 2*x**2 x**2*y exp(x) exp(2*x) 2*exp(x)*y x/y -x*y x+y 2*x+3*y tanh(x) sigmoid(x*y)
log(x) sqrt(x) 1/x x**1.5 x**p p*x sum(x) 2*sum(x*y) x@y outer(x,y) A@x 2*(A@x) x@A sum(x**2)
norm(x) softmax(x,0) mean(x) exp(-x**2/2) cumsum(x,0) x[1:] x*y*p sin(x)*cos(y) x**2+y**2 A.T@x
"""
OF_NAMES = [
    "sum(h**2)",
    "sum(h*2*x[0])",
    "sum(exp(h)) * sum(x*y)",
    "sum(x*y)**2 + sum(h)/p",
    "log(sum(h**2)) + sum(x**2*y)",
    "sum(h)*sum(x)/sum(y)",
    "sum(sqrt(h**2 + 1) * p)",
]

# Sums that are multiples of each other, along one axis or two, and what powers of both are in.
MULTIPLES = """
2*x+2*y|x+y x-y|y-x 3*x-3*y|x-y 2*x+4*y|x+2*y -x-y|x+y R-C|C-R 2*R+2*C|R+C x-R|R-x x+C|2*x+2*C
x+R|2*x+2*R[0] x+R|x+y x-mean(x)|mean(x)-x sum(x)-sum(y)|sum(y)-sum(x) C+p|2*C+2*p
x[None]-R|x-R[0] R-x|x-R[0] R-mean(R)|x-mean(x) (R+x)[0]|R[0]-x (R-mean(R))[0]|R-mean(R)
"""
OF_BOTH = [
    "sum(({0})**3 * ({1}))",
    "sum(1 / ({0}) + ({1})**2)",
    "sum(({0})**2 / ({1})**3)",
    "sum(({0}) / ({1})**2) + sum(exp({1}))",
    "sum(log(({0})**2) * ({1}))",
    "sum({1}) * sum(({0})**-2)",
]


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


@together(list(enumerate(VIEWS.split())))
def test_compositions(at: int, view: str) -> None:
    uses = USES[at % 7], USES[(at * 3 + 1) % 7]
    as_recorded(view, [line for use in uses for line in lines_of(NAMES, use.replace("{}", view))])


@together(list(enumerate(NAMED.split())))
def test_names(at: int, part: str) -> None:
    given = f"x = [0.5, 1.2, 0.7]\ny = [1.5, 0.4, 2]\np = 1.3\nA = {MATRIX}\nh = {part}\n"
    uses = OF_NAMES[at % 7], OF_NAMES[(at + 3) % 7]
    as_recorded(f"h={part}", [line for use in uses for line in lines_of(given, use)])


@together(list(enumerate(MULTIPLES.split())))
def test_multiples(at: int, pair: str) -> None:
    given = "x = [0.5, 1.2, 0.7]\ny = [1.5, 0.4, 2]\np = 1.3\n"
    given += "R = [[1.6, -0.2, 2.1]]\nC = [[2.5], [0.9], [-1.1]]\n"
    uses = [OF_BOTH[(at + k) % 6] for k in (0, 1, 3)]
    losses = [use.format(*pair.split("|")) for use in uses]
    as_recorded(pair, [line for loss in losses for line in lines_of(given, loss)])


@together(LOSSES.split())
def test_losses(loss: str) -> None:
    as_recorded(loss, lines_of(NAMES + POSITIVE, loss))


@together(DERIVED)
def test_derivations(loss: str) -> None:
    as_recorded(loss, lines_of(NAMES + NORMS, loss, True))
