"""A page read by the standard library's parser, strictly: everything that is opened is closed."""

from __future__ import annotations

from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "input", "br", "link", "img"}


@dataclass
class Element:
    """An element; children are elements and texts."""

    tag: str
    attributes: dict[str, str]
    children: list[Any] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(c if isinstance(c, str) else c.text for c in self.children)

    def all(self, tag: str = "", **wanted: str) -> list[Element]:
        """The elements below with this tag and these words in their attributes."""
        found = []
        for child in self.children:
            if isinstance(child, Element):
                if tag in ("", child.tag) and all(
                    word in child.attributes.get(name.strip("_"), "").split()
                    for name, word in wanted.items()
                ):
                    found.append(child)
                found += child.all(tag, **wanted)
        return found

    def one(self, tag: str = "", **wanted: str) -> Element:
        (found,) = self.all(tag, **wanted)
        return found


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open = [Element("", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs), (tag, attrs)
        element = Element(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(data)


def parsed(text: str) -> Element:
    """The page as a tree."""
    reader = _Reader()
    reader.feed(text)
    reader.close()
    assert len(reader.open) == 1, [element.tag for element in reader.open]
    return reader.open[0]
