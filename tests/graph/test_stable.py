"""What is computed in place of logarithms, quotients, sums and roots of exponentials: a spread of
positive parts in each use and over each other, as recorded (`RECORD_SAID=1` does it); the numbers
are the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from autodiff_cli.engine.evaluate import evaluate
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.op import CONSTANT, constant, leaf, value_of
from autodiff_cli.graph.registry import F
from autodiff_cli.ops import load_all
from autodiff_cli.transform.stable import Stable, overflows

from ..said import said
from ..together import together

load_all()
RNG = np.random.default_rng(27)
x, y, X = (constant(RNG.uniform(0.2, 1.5, shape)) for shape in ((4,), (4,), (3, 4)))
b = leaf(RNG.uniform(0.2, 1.5, 4), None)
BUILT: dict[str, Node] = {"x": x, "y": y, "X": X, "b": b}
OTHERS = {
    "AT": constant(np.array([[2, 0, 1, 1]])),
    "W": F.matmul(F.mul(X, 1), F.transpose(X, 0, 1)),
    "number": lambda value: constant(np.array(float(value))),
}

# What is positive and has a logarithm that is simpler, and what has not.
PARTS = """
exp(x) exp(-y) exp(b) 1+exp(x) exp(x)+1 exp(x)+exp(y) exp(y)+exp(x) exp(x)+exp(-x) exp(x)-exp(-x)
exp(x)*exp(y) exp(x)*2 exp(x)/exp(y) 1/exp(x) sqrt(exp(x)) exp(x)*y x/exp(y) exp(x)/y x+y x*y
sigmoid(x) 1-sigmoid(x) 2-sigmoid(x) sigmoid(x)-1 1-y cosh(x) sinh(x) cosh(y) softmax(X,1)
softmax(X,0) exp(X) sum(exp(X),1,True) sum(exp(X),1) sum(exp(X),-1,True) sum(exp(X),0)
sum(exp(X),(0,1)) sum(exp(X),()) mean(exp(X),0) mean(exp(X),(),False) mean(exp(X),(1,),True)
sum(exp(x)) sum(exp(X),-2,True) sum(exp(x),0,True) sum(X,1,True) sum(select(exp(x),0,1))
select(exp(X),0,1) reshape(exp(X),(4,3)) transpose(exp(X),0,1) gather(exp(X),0,AT) flip(exp(X),(1,))
expand(exp(x),(3,4)) log(exp(x)) number(2) number(0) number(-1) number(1) det(W)
"""
USES = """
log(P) log(P*y) log(y*P) log(P/y) log(y/P) log(1+P) log(P+1) log(P-1) log(1-P) log(P*P) 1/P y/P P-1
P+-1 -1+P 1-P exp(P)-1 sqrt(P) sqrt(P**2+x**2) sqrt(x*x+P*P) (P**2+1)**0.5 (P**2+x**3)**0.5 P**2
sqrt(P*P*2) reciprocal(P) (P**2+x**2)**0.5 stack((P,log(P))) div(P,x,rounding_mode='floor')
sum(log(P)) relu(P)
"""


def made(text: str) -> Node | None:
    """The graph of an expression; None where shapes do not fit."""
    tree = compile(text, text, "eval")
    names = {name: getattr(F, name, None) for name in tree.co_names}
    try:
        node: Node = eval(tree, {**names, **BUILT, **OTHERS})
    except Exception:
        return None
    return node


def written(node: Any) -> str:
    """An application in one line; leaves by their names."""
    if isinstance(node, tuple):
        return f"({', '.join(map(written, node))})"
    if not isinstance(node, Node):
        return str(node)
    for name, known in BUILT.items():
        if known is node:
            return name
    if node.op is CONSTANT:
        value = value_of(node)
        return f"{value.item():.12g}" if value.size == 1 else "constant"
    return f"{node.op.key}({', '.join(map(written, node.args))})"


@together([*PARTS.split(), "reciprocal(y)"])
def test_stable(part: str) -> None:
    lines, same = [], []
    texts = [use.replace("P", f"({part})") for use in USES.split()]
    for text in [*texts, *(f"({part})/({other})" for other in PARTS.split()[::3])]:
        node = made(text)
        if node is None:
            continue
        with np.errstate(all="ignore"):
            found = Stable([b]).of(node)
            evaluate([node, found])
        assert (found.shape, found.dtype) == (node.shape, node.dtype)
        np.testing.assert_allclose(value_of(found), value_of(node), rtol=1e-11, atol=1e-14)
        over = " overflows" * overflows(node)
        if found is node:
            same.append(text + over)
        else:
            lines.append(f"{text}: {written(found)}{over}")
    said("graph").compare(f"test_stable.py::{part}", [*lines, "; ".join(same)], len(lines) + 1)
