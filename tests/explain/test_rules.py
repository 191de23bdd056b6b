"""Every op of the table says in words what its rule does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from autodiff_cli.explain.words import rule_of
from autodiff_cli.graph.kinds import Kind
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.op import OUTPUT
from tests.database import called, load

CALLS = load()
SAYS_NOTHING = ("the rule of ", "chain rule through ")


def nodes_of(calls: list[dict[str, Any]]) -> Iterator[Node]:
    for call in calls:
        for tensor in called(call, []):
            node = tensor.node.args[0] if tensor.node.op is OUTPUT else tensor.node
            if tensor.node.requires_grad and node.op.kind is not Kind.SOURCE:
                yield node


@pytest.mark.parametrize("variant", CALLS)
def test_the_rule_of_every_op_is_told(variant: str) -> None:
    for node in nodes_of(CALLS[variant]):
        words = rule_of(node, node.op.vjp_rule is None and node.body is not None)
        assert not words.startswith(SAYS_NOTHING), (node.op.key, words)


def test_ops_without_words_are_seen() -> None:
    (node, *_) = nodes_of(CALLS["linalg.det"])
    kept, node.op.phrase = node.op.phrase, ""
    try:
        assert rule_of(node, False).startswith(SAYS_NOTHING)
    finally:
        node.op.phrase = kept
