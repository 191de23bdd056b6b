"""Program text and places in it. A `Span` is the only way any layer points at text."""

from __future__ import annotations

import os
from bisect import bisect_right


def shortened(text: str, most: int) -> str:
    """`text`, or its start with three dots, of at most `most` characters."""
    return text if len(text) <= most else text[: most - 3] + "..."


def shipped(path: str) -> str:
    """Where a file or folder that comes with the package lies: inside in a wheel, beside it in a
    source tree; empty when there is none."""
    package = os.path.dirname(os.path.abspath(__file__))
    places = (os.path.join(folder, path) for folder in (package, os.path.dirname(package)))
    return next(filter(os.path.exists, places), "")


class Source:
    """One piece of program text.

    `name` is what messages show (a path as the user gave it, `<stdin>`, `<expr>`), `text` is the
    decoded text with a leading byte-order mark removed and line ends made `\\n`; `before`: how many
    lines of a whole, of which it is a part, stand above it. `shown`: whether people see it.
    """

    shown = True
    __slots__ = ("_has", "_starts", "before", "name", "text")

    def __init__(self, text: str, name: str = "<expr>", before: int = 0):
        self.before: int = before
        self.name: str = name
        self.text: str = text
        self._starts: list[int] | None = None
        self._has: dict[str, bool] = {}

    def has(self, words: str) -> bool:
        """Whether these words are in the text, which is searched once."""
        if words not in self._has:
            self._has[words] = words in self.text
        return self._has[words]

    @property
    def starts(self) -> list[int]:
        """Offset of the first character of every line."""
        if self._starts is None:
            starts, at = [0] * (self.before + 1), self.text.find("\n")
            while at >= 0:
                starts.append(at + 1)
                at = self.text.find("\n", at + 1)
            self._starts = starts
        return self._starts

    def position(self, offset: int) -> tuple[int, int]:
        """Line and column (both from 1, counted in characters) of an offset."""
        line = bisect_right(self.starts, offset)
        return line, offset - self.starts[line - 1] + 1

    def line_start(self, offset: int) -> int:
        """Offset of the first character of the line of an offset."""
        return self.starts[self.position(offset)[0] - 1]

    def line(self, number: int) -> str:
        """Text of a line (from 1) without its line end."""
        starts = self.starts
        end = starts[number] - 1 if number < len(starts) else len(self.text)
        return self.text[starts[number - 1] : end]

    def __repr__(self) -> str:
        return f"Source({self.name!r}, {len(self.text)} characters)"


class Span:
    """A half-open range of characters `[start, end)` of a source."""

    __slots__ = ("end", "source", "start")

    def __init__(self, source: Source, start: int, end: int):
        self.source: Source = source
        self.start: int = start
        self.end: int = end

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]

    @property
    def line(self) -> int:
        return self.source.position(self.start)[0]

    @property
    def column(self) -> int:
        return self.source.position(self.start)[1]

    @property
    def end_line(self) -> int:
        return self.source.position(self.end)[0]

    @property
    def end_column(self) -> int:
        """Column just after the last character."""
        return self.source.position(self.end)[1]

    @property
    def assigned(self) -> str:
        """The name of a statement `name = TEXT` of which this is the text; else empty."""
        line = self.source.line(self.line)
        before, after = line[: self.column - 1], line[self.end_column - 1 :].lstrip()
        name, equals, rest = before.rpartition("=")
        name = name.rpartition(";")[2].strip()
        whole = self.line == self.end_line and (not after or after[0] in "#;")
        return name if equals and not rest.strip() and name.isidentifier() and whole else ""

    @property
    def assigned_name(self) -> Span:
        """The place of that name; without one, this span."""
        name = self.assigned
        if not name:
            return self
        start = self.source.text.rfind(name, 0, self.start)
        return Span(self.source, start, start + len(name))

    def to(self, other: Span) -> Span:
        """From the start of this span to the end of `other`, in the same source."""
        return Span(self.source, self.start, other.end)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Span)
            and self.source is other.source
            and (self.start, self.end) == (other.start, other.end)
        )

    def __hash__(self) -> int:
        return hash((id(self.source), self.start, self.end))

    def __repr__(self) -> str:
        return f"Span({self.source.name}:{self.line}:{self.column} {self.text[:40]!r})"
