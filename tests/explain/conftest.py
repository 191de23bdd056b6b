"""The command line of the other command tests, and explanations of program texts."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from autodiff_cli.explain.model import Explanation, Request
from autodiff_cli.explain.source import explain_source
from autodiff_cli.session import Options
from autodiff_cli.source import Source

from ..cli.conftest import cli as cli

Explain = Callable[..., Explanation]


def explained(text: str, options: Options | None = None, **request: object) -> Explanation:
    """The explanation of a program; what goes wrong is in it."""
    wanted = Request(**request)  # type: ignore[arg-type]  # the tests' own
    return explain_source(Source(text, "test.expr"), options or Options(), wanted)


@pytest.fixture
def explain() -> Explain:
    """Explain a program that must work."""

    def call(text: str, **request: object) -> Explanation:
        found = explained(text, **request)
        assert found.error is None, found.error
        return found

    return call
