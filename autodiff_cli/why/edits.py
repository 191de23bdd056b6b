"""Changes of a program's text at places of its syntax tree.

Invariant: text outside the changed places stays as the person wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from ..language.syntax import tree as s
from ..language.syntax.parser import parse
from ..source import Source, Span


class Edit(NamedTuple):
    """`[start, end)` of the text becomes `text`."""

    start: int
    end: int
    text: str


class Text:
    """A program's text with its tree, and the ways to change it."""

    def __init__(self, source: Source):
        self.source = source
        self.text = source.text
        self.tree = parse(Source(source.text, source.name))
        self.python = s.has_import(self.tree)
        self.parents: dict[int, s.Node] = {}
        self.nodes: list[s.Node] = []
        self.kinds: dict[type, list[Any]] = {}  # by the kinds that were asked for
        for node in s.walk(self.tree):
            self.nodes.append(node)
            for child in s.children(node):
                self.parents[id(child)] = node

    # -- finding --------------------------------------------------------------------------------

    def at(self, span: Span | None) -> s.Node | None:
        """The expression or statement with the extent of a span; else the smallest around it."""
        if span is None:
            return None
        best = None
        for node in self.nodes:  # what is inside comes after what it is inside of
            if node.span.start <= span.start and span.end <= node.span.end:
                best = node
        return best

    def around(self, node: s.Node | None, *kinds: type[s.Node]) -> Iterator[Any]:
        """What contains a node, from the inside to the outside, of some kinds."""
        while node is not None:
            if not kinds or isinstance(node, kinds):
                yield node
            node = self.parents.get(id(node))

    def statement(self, node: s.Node | None) -> s.Node | None:
        """The statement that a node stands in."""
        inner = node
        for outer in self.around(node):
            if any(any(part is inner for part in body) for body in s.bodies(outer)):
                return inner
            inner = outer
        return None

    def every(self, kind: type, test: Callable[[Any], bool] = lambda node: True) -> list[Any]:
        """All nodes of a kind, in the order of the text."""
        if kind not in self.kinds:
            found = [node for node in self.nodes if isinstance(node, kind)]
            self.kinds[kind] = sorted(found, key=lambda node: node.span.start)
        return [node for node in self.kinds[kind] if test(node)]

    def plain(self, node: s.Node) -> str:
        """The text of a node as it is."""
        return self.text[node.span.start : node.span.end]

    def names(self, *modules: str) -> set[str]:
        """What the program calls modules such as `numpy`: {"np"}."""
        found = set() if self.python else {"np", "numpy", "math", "torch", "F"} & set(modules)
        for node in self.nodes:
            if isinstance(node, s.Import):
                for alias in node.names:
                    if alias.name in modules:
                        found.add(alias.asname or alias.name)
        return found

    # -- changing -------------------------------------------------------------------------------

    def changed(self, edits: Iterable[Edit]) -> str:
        """The program with changes in place; of overlapping ones the inner or later is left out."""
        text = self.text
        last = len(text)
        for edit in sorted(edits, reverse=True):
            if edit.end <= last:
                text = text[: edit.start] + edit.text + text[edit.end :]
                last = edit.start
        if not self.python and "torch." not in self.text:
            text = text.replace("torch.nn.functional.", "").replace("torch.", "")
        return text

    def put(self, node: s.Node, text: str) -> str:
        """The program with a text in place of a node."""
        return self.changed([self.replaced(node, text)])

    def replaced(self, node: s.Node, text: str) -> Edit:
        return Edit(node.span.start, node.span.end, text)

    def after(self, statement: s.Node, text: str) -> Edit:
        """A further statement after one."""
        end = statement.span.end
        indent = self._indent(statement.span.start)
        rest = self.text[end:].partition("\n")[0]
        if indent is None or (rest.strip() and not rest.lstrip().startswith("#")):
            return Edit(end, end, f"; {text}")
        end += len(rest)
        return Edit(end, end, f"\n{indent}{text}")

    def before(self, statement: s.Node, text: str) -> Edit:
        """A further statement before one."""
        start = statement.span.start
        indent = self._indent(start)
        if indent is None:
            return Edit(start, start, f"{text}; ")
        return Edit(start, start, f"{text}\n{indent}")

    def _indent(self, start: int) -> str | None:
        """The white space before a statement that begins its line; None when it does not."""
        before = self.text[self.source.line_start(start) : start]
        return before if not before.strip() else None

    def removed(self, statement: s.Node) -> Edit:
        """Without a statement, and its line when it has one for itself."""
        start, end = statement.span.start, statement.span.end
        begin = self.source.line_start(start)
        finish = self.text.find("\n", end) + 1 or len(self.text)
        alone = not self.text[begin:start].strip() and not self.text[end:finish].strip()
        return Edit(begin, finish, "") if alone else Edit(start, end, "pass")

    def dedented(self, block: s.With) -> Edit | None:
        """The body of a `with` in place of it; None when it stands on one line."""
        indent = self._indent(block.span.start)
        first = block.body[0].span.start
        inner = self._indent(first)
        if indent is None or inner is None:
            return None
        begin, body = self.source.line_start(block.span.start), self.source.line_start(first)
        end, extra = block.body[-1].span.end, len(inner) - len(indent)
        deeper = re.compile(f"^{inner[:extra]}(?={inner[extra:]})", re.M)
        return Edit(begin, end, deeper.sub("", self.text[body:end]))


def callee(node: s.Node) -> str:
    """The last name of what is called: `exp` of `torch.exp(x)` and `x.exp()`; else empty."""
    if not isinstance(node, s.Call):
        return ""
    if isinstance(node.func, s.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, s.Name) else ""
