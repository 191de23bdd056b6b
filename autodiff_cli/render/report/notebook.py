"""Pages inside of notebooks: each in a frame of its own, which runs nothing but its own script."""

from __future__ import annotations

from html import escape
from typing import Any

from ...session import Report, TensorRecord
from ...source import Source
from .gather import Program
from .page import article, page

DIGITS = 4
HEIGHT = 720


def framed(document: str) -> str:
    """A page as an element of another one."""
    return (
        f'<iframe sandbox="allow-scripts" width="100%" height="{HEIGHT}" frameborder="0" '
        f'srcdoc="{escape(document)}"></iframe>'
    )


def shown(source: Source, found: dict[str, Any]) -> str:
    """The results of `run` as a page."""
    tensors = {
        name: TensorRecord(name=name, node=None, **record)  # type: ignore[arg-type]  # not kept
        for name, record in found["tensors"].items()
    }
    report = Report(source.name, tensors=tensors, stdout=found["stdout"])
    return framed(page([source.name], [article(Program(source, report), 1, DIGITS)]))
