"""What is said of gradients through each function at values where they are zero, infinite or not a
number, in a few uses; as it was recorded (`RECORD_SAID=1` does), with the repairs."""

from __future__ import annotations

from difflib import unified_diff

from autodiff_cli.source import Source
from autodiff_cli.why import why

from ..said import said
from ..together import together

FUNCTIONS = """
sqrt(x) log(x) 1/x x/x x**0.5 x**-1 x**x 2**x exp(x) log1p(x) log2(x) log10(x) rsqrt(x) asin(x)
acos(x) atanh(x) acosh(x) tan(x) sigmoid(x) tanh(x) relu(x) abs(x) sign(x) floor(x) cosh(x) expm1(x)
erfinv(x) lgamma(x) digamma(x) clamp(x,0,1) clamp(x,min=1e-6) x.norm() x/x.norm() atan2(x,x)
hypot(x,x) logit(x) softplus(x) logsumexp(x,0) softmax(x,0) log(softmax(x,0)) x.std() x.var() x*x
x.amax() x.prod() cumprod(x,0) where(x>0,log(x),x) where(x>0,x/x,0) x.masked_fill(x==0,1).log()
relu(-x) relu(x)*1e-30 leaky_relu(x,0.0) hardtanh(x) gelu(x) x.detach()*x x[1:].sqrt()
x.round()*x logaddexp(x,x) sinc(x) x.cumsum(0).log() pow(x,x.detach()) log(exp(x)-1) (x-x)/x
"""
VALUES = [
    "0.0, 1.0",
    "-1.0, 2.0",
    "inf, 1.0",
    "nan, 1.0",
    "200.0, -200.0",
    "1e-40, 1e30",
    "1.0, 1.0",
]
USES = [
    "loss = {}.sum()\n",
    "y = {}\nz = y * w\nloss = (z * z).sum()\n",
    "y = {}\nloss = where(mask, y, w).sum()\n",
    "loss = ({} * 0.0).sum()\n",
    "h = exp(w * x)\nx = h\ny = {}\nloss = log(y).mean()\n",
]
HEAD = """\
w = tensor([0.5, -2.0], requires_grad=True)
mask = tensor([False, True])
x = tensor([{}], requires_grad=True)
"""


@together(FUNCTIONS.split(), group=8)
def test_at_values(function: str) -> None:
    lines = []
    for at, value in list(enumerate(VALUES))[len(function) % 2 :: 2]:
        further = (at + len(function)) % 7
        for use in (USES[0], *(USES[1 + further : 2 + further] if at % 4 < 2 else ())):
            text = HEAD.format(value) + use.format(f"({function})") + "loss.backward()\n"
            name = "w" if use is USES[4] else "x"
            answer = why(Source(text, "program.expr"), name, repair=at % 3 == 0)
            fix = unified_diff(text.split("\n"), (answer.fix or text).split("\n"), n=0)
            changed = [line for line in fix if not line.startswith("@@")][2:]
            lines.append(f"{value} {use!r}: {answer.verdict} {answer.cause} {answer.line}")
            lines += [f"  {line}" for line in (answer.message, answer.label, *answer.notes)]
            lines += [f"  {span.line}: {label}" for span, label in answer.places]
            lines += [f"  {line}" for line in changed]
    said("why").compare(f"test_at_values.py::{function}", lines, len(lines))
