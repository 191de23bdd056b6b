"""Sessions for tests, without a terminal, and what one holds, for comparison."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from autodiff_cli.autograd.tensor import Tensor
from autodiff_cli.cli.commands.repl import OPTIONS, run_tool
from autodiff_cli.cli.options import starts
from autodiff_cli.cli.streams import Environment
from autodiff_cli.graph.op import value_of
from autodiff_cli.language.values.values import Namespace
from autodiff_cli.repl.loop import Loop, Reply, Surroundings

from ..said import compare


class Session:
    """A loop and what it said last."""

    def __init__(self, **around: Any):
        env = Environment(None, None, None, {"COLUMNS": "80"})
        around.setdefault("tool", lambda words, text: run_tool(words, text, starts(OPTIONS), env))
        self.loop = Loop(around=Surroundings(**around))

    def __call__(self, text: str) -> str:
        """Feed text that is expected to work; what it shows."""
        reply = self.tell(text)
        assert reply.status == "ok", reply.output
        return reply.output

    def fails(self, text: str) -> str:
        """Feed text that is expected to fail; what it shows."""
        reply = self.tell(text)
        assert reply.status == "error", reply
        return reply.output

    def tell(self, text: str) -> Reply:
        """Feed any text."""
        reply = self.loop.feed(text)
        output = re.sub("putting the session back .*\n", "", reply.output)  # where that takes long
        SHOWN.append(f"{text}\n{output}")
        return reply

    def state(self) -> dict[str, Any]:
        """Everything the names hold, as plain data."""
        names = self.loop.session.scope.names
        return {
            name: _data(value)
            for name, value in names.items()
            if name != "_" and not isinstance(value, Namespace)
        }


def _data(value: Any) -> Any:
    if isinstance(value, Tensor):
        grad = value.grad
        return (
            value_of(value.node).tolist(),
            value.dtype.name,
            value.requires_grad,
            value.is_leaf,
            None if grad is None else value_of(grad.node).tolist(),
        )
    if isinstance(value, list | tuple):
        return [type(value).__name__, *map(_data, value)]
    if isinstance(value, dict):
        return {key: _data(item) for key, item in value.items()}
    for table in ("parameters", "attributes"):
        held = getattr(value, table, None)
        if isinstance(held, dict):
            return {key: _data(item) for key, item in held.items()}
    return value if isinstance(value, bool | int | float | str) else type(value).__name__


SHOWN: list[str] = []


@pytest.fixture(autouse=True)
def shown(request: pytest.FixtureRequest) -> Iterator[None]:
    """What the sessions of a test say is what they said."""
    SHOWN.clear()
    yield
    if SHOWN and not hasattr(request.function, "is_hypothesis_test"):  # it draws what it likes
        compare(request, SHOWN)


@pytest.fixture
def make_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Session]:
    """Sessions in an empty folder, with surroundings of their own."""
    monkeypatch.chdir(tmp_path)
    return Session


@pytest.fixture
def session(make_session: Callable[..., Session]) -> Session:
    """An empty session."""
    return make_session()
