"""The coverage page, made from the op table and the samples of PyTorch's op database.

Run from the root: `python -m tests.coverage` writes docs/coverage.md.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from autodiff_cli.graph.kinds import Kind
from autodiff_cli.graph.op import Op
from autodiff_cli.graph.registry import NAMES, OPS
from autodiff_cli.ops import index, load_all

from .database import load

PAGE = Path(__file__).parents[1] / "docs" / "coverage.md"

INTRODUCTION = """# Coverage

Made by `python -m tests.coverage` from the op table; a test keeps it fresh.

{public} public ops in {families} families, and {inner} that only rules use. {primitives} of all are
primitives with a derivative rule of their own; the rest are written in terms of others or have no
derivative.

PyTorch's op database (`torch.testing._internal`, version 2.13) describes its operations for its own
tests. In scope are its differentiable variants on real float64 tensors; complex numbers, Fourier
transforms, random results, sparse tensors, copies of views, inner parts of other operations and a
few more are not (`tests/oracles/op_database.py` lists them with reasons). **{covered} of {variants}
variants** have samples in `tests/fixtures/op_database.json.gz`, and `tests/ops/test_op_database.py`
compares values, names of nodes, gradients and, where PyTorch has them, second derivatives:
{samples} samples.

| family | public ops | variants |
|---|--:|--:|
"""

OTHERS = """
## Beside others

| project | derivative rules |
|---|--:|
| JAX | about 200 |
| HIPS autograd | about 215 |
| MyGrad | about 99 |
| tinygrad | about 30 |

These figures come from the survey made when this project was planned and count rules in each
project's source. They are sizes, not scores: a rule is a different thing in each design, and what
counts as one is a matter of choice. A recount by one mechanical reading each gave 217 lines that
start with `defvjp(` in HIPS autograd (bff107b), 89 definitions of `backward_var` in MyGrad
(6971309) and 26 patterns of the gradient matcher in tinygrad (00d847a); JAX was not recounted.
"""

VARIANTS = 452  # differentiable variants in scope


def family_of(name: str) -> str:
    """The family of the op that a name of the database means."""
    return (NAMES.get(name) or [OPS["getitem"]])[0].family


def is_primitive(op: Op) -> bool:
    return op.kind not in (Kind.COMPOSITE, Kind.FUNCTION) and op.vjp_rule is not None


def page() -> str:
    """The text of docs/coverage.md."""
    load_all()
    database = load()
    variants = Counter(family_of(calls[0]["name"]) for calls in database.values())
    public = Counter(op.family for op in OPS.values() if op.public)
    families = [path.rpartition(".")[2] for path in index()[2]]
    rows = [f"| {name} | {public[name]} | {variants[name] or ''} |\n" for name in families]
    total = f"| all | {public.total()} | {variants.total()} |\n"
    head = INTRODUCTION.format(
        public=public.total(),
        inner=len(OPS) - public.total(),
        families=len(families),
        primitives=sum(map(is_primitive, OPS.values())),
        covered=len(database),
        variants=VARIANTS,
        samples=sum(map(len, database.values())),
    )
    return head + "".join(rows) + total + OTHERS


def main() -> None:
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
