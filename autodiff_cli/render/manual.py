"""Pages of the manual for a terminal."""

from __future__ import annotations

import io
from typing import ClassVar

from rich.console import Console, ConsoleOptions, RenderResult
from rich.markdown import CodeBlock, Markdown
from rich.text import Text
from rich.theme import Theme


class Block(CodeBlock):
    """A program, or what one prints: as it stands, not broken."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = str(self.text).rstrip().split("\n")
        yield Text("\n".join(f"  {line}" for line in lines), no_wrap=True, overflow="ignore")
        yield ""


class Page(Markdown):
    """Markdown with such blocks."""

    elements: ClassVar = {**Markdown.elements, "fence": Block, "code_block": Block}


def laid_out(text: str, width: int, color: bool, variables: dict[str, str]) -> str:
    """A page in so many columns."""
    written = io.StringIO()
    console = Console(
        file=written, width=width, force_terminal=color, no_color=False, legacy_windows=False,
        theme=Theme({"markdown.code": "cyan"}), _environ=variables,
    )  # fmt: skip
    console.print(Page(text, hyperlinks=False), crop=False)
    return "\n".join(line.rstrip() for line in written.getvalue().split("\n"))
