"""Rows of a table that are one test of pytest's, which takes longer than most rows do."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import Parameter, Signature, signature
from typing import Any

import pytest


def together(
    rows: Iterable[Any], name: Callable[[Any], str] = str, group: Callable[[Any], str] | int = 40
) -> Callable[[Callable[..., None]], Any]:
    """Call a test with each of these rows, a tuple for several parameters. Rows with the same
    group, or so many that follow each other, are one test: each is tried, and those that fail are
    named."""
    groups: dict[str, list[Any]] = {}
    for i, row in enumerate(rows):
        groups.setdefault(str(i // group) if isinstance(group, int) else group(row), []).append(row)
    first = next(iter(groups.values()))[0]
    several = len(first) if type(first) is tuple else 1

    def decorate(test: Callable[..., None]) -> Any:
        def each(rows: list[Any], **given: Any) -> None:
            failed = {}
            for row in rows:
                try:
                    test(*(row if type(row) is tuple else (row,)), **given)
                except (Exception, pytest.fail.Exception) as error:
                    failed[name(row)] = error
            for error in failed.values():
                error.add_note(f"{len(failed)} of {len(rows)} fail:\n" + "\n".join(failed))
                raise error

        own = list(signature(test).parameters.values())[several:]
        parameter = Parameter("rows", Parameter.POSITIONAL_OR_KEYWORD)
        each.__signature__ = Signature([parameter, *own])  # type: ignore[attr-defined]  # what pytest asks
        each.__name__, each.__doc__ = test.__name__, test.__doc__
        return pytest.mark.parametrize("rows", list(groups.values()), ids=list(groups))(each)

    return decorate
