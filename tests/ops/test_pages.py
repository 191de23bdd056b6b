"""What is said of each op, its page and the words of its rule, is what was said."""

from __future__ import annotations

import pytest

from autodiff_cli.cli.commands.ops import describe, public_ops
from autodiff_cli.engine import evaluate  # noqa: F401  # nodes get values
from autodiff_cli.explain.words import rule_of
from autodiff_cli.graph.kinds import Kind
from autodiff_cli.graph.op import Op

from ..said import compare
from ..table import Case, apply, arrays_of, nodes_of

FAMILIES: dict[str, dict[str, Op]] = {}
for overloads in public_ops().values():
    for op in overloads:
        FAMILIES.setdefault(op.family, {})[op.key] = op


def rules(op: Op) -> str:
    """What `explain` says of the rule, for each sample that it says something else of."""
    said = {}
    for number, sample in enumerate(op.samples):
        case = Case(op, number, sample)
        for node in apply(case, nodes_of(case, arrays_of(case))):
            if node.requires_grad and node.op.kind is not Kind.SOURCE:
                said[rule_of(node, node.op.vjp_rule is None and node.body is not None)] = None
    return "\n".join(said)


@pytest.mark.parametrize("family", FAMILIES)
def test_pages(family: str, request: pytest.FixtureRequest) -> None:
    ops = FAMILIES[family].values()
    compare(request, (describe(op) + rules(op) for op in ops))
