"""Why a gradient is missing, zero or not finite: the first cause on the way from the loss to a
name, with its line, and a repair that was run before it is proposed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .answering import answer

if TYPE_CHECKING:
    from ..language.program.report import Options
    from ..source import Source
    from .model import Answer


def why(
    source: Source, name: str, options: Options | None = None, *, repair: bool = True
) -> Answer:
    """The answer about the gradient of `name` when the program has ended.

    Raises:
        AutodiffError: the program has no tensor of that name, or fails before anything in it is
        differentiated.
    """
    return answer(source, name, options, repair=repair)


__all__ = ["why"]
