"""The page: a template filled with the parts of each program, under a policy that lets nothing in.

Invariant: every text of a program is escaped, ids are unique, the page names no address, and the
same programs give the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from html import escape
from itertools import chain, repeat
from math import prod
from pathlib import Path
from string import Template

import numpy as np
from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Keyword, Name, Number, String

from ...errors import Diagnostic
from ...explain.model import Explanation, Step
from ...session import Report
from ...source import Source
from ...version import __version__
from ..diagnostics import render
from ..explanations.explain import added, notes
from ..pictures.svg import STYLE, graph_svg
from ..text import format_count, format_shape, printable
from ..values import brief
from . import numbers
from .gather import Program, failed, gathered
from .steps import Given, Stop, Walk

FOLDER = Path(__file__).parent
NAMESPACE = ' xmlns="http://www.w3.org/2000/svg"'  # an address, and of no use inside of HTML
LONG = 400  # characters of a formula that is not shown at once
CLASSES = ((Comment, "comment"), (String, "string"), (Number, "digits"), (Keyword, "keyword"))
BUTTONS = (
    ("first", "first step", "M2 3h2v10H2zM14 3v10L5 8z"),
    ("back", "step back", "M12 3v10L4 8z"),
    ("play", "play", "M3 2v12l5-3V5zM8 5v6l5-3z"),
    ("next", "next step", "M4 3v10l8-5z"),
    ("last", "last step", "M12 3h2v10h-2zM2 3v10l9-5z"),
)
KEYS = (
    ' <span class="keys">Keys: <kbd>→</kbd> next step, <kbd>←</kbd> back, <kbd>Home</kbd> and '
    "<kbd>End</kbd>, <kbd>space</kbd> plays.</span>"
)
STATUS = {"passed": "✓", "failed": "✗", "error": "✗"}


def page(names: Sequence[str], articles: Sequence[str], title: str = "", stamp: str = "") -> str:
    """The whole document from the parts of its programs; `stamp` says when it was made."""
    style, script = STYLE + _file("page.css"), _file("page.js")
    several = len(names) > 1
    index = "".join(f'<li><a href="#{at}">{_safe(n)}</a></li>' for at, n in enumerate(names, 1))
    return Template(_file("page.html")).substitute(
        title=_safe(title or (format_count(len(names), "program") if several else names[0])),
        style_hash=_hash(style),
        script_hash=_hash(script),
        style=style,
        script=script,
        version=__version__,
        stamp=f", {_safe(stamp)}" if stamp else "",
        index=f'<nav aria-label="Programs"><ol>{index}</ol></nav>' if several else "",
        files="\n".join(articles),
        keys=KEYS if any('class="bar"' in article for article in articles) else "",
        kind="" if title or several else "single",
    )


def timestamp() -> str:
    """What a page says of when it was made."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


def article(found: Program | Report, at: int, precision: int) -> str:
    """The part of a page that is about its program number `at`, or about what went wrong there."""
    program = failed(found) if isinstance(found, Report) else found
    return Article(program, at, precision).html()


def _file(name: str) -> str:
    return (FOLDER / name).read_text("utf-8")


def _hash(text: str) -> str:
    digest = hashlib.sha256(text.encode()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


def _safe(text: str, limit: int = 100_000) -> str:
    """A text of a program on one line, as HTML."""
    return escape(printable(text, limit))


def _lines(text: str) -> str:
    return "\n".join(map(_safe, text.split("\n")))


def _code(text: str) -> str:
    return f"<code>{_safe(text)}</code>"


class Article:
    """The part of a page that is about one program."""

    def __init__(self, program: Program, at: int, precision: int):
        self.program = program
        self.precision = precision
        self.at = at
        self.walk = Walk(program.explanation) if program.explanation is not None else None

    def _value(self, array: np.ndarray) -> str:
        return numbers.value(array, self.precision)

    def _id(self, name: str) -> str:
        """Steps of the first program have short ids, which links are made of."""
        return name if self.at == 1 else f"{self.at}-{name}"

    def html(self) -> str:
        """All of it."""
        program = self.program
        parts = [
            f'<article class="file" id="{self.at}" aria-labelledby="{self._id("name")}">',
            f'<header><h2 id="{self._id("name")}">{_safe(program.file)}</h2>',
            f"{self._facts()}</header>",
            self._toolbar(),
            '<div class="panes">',
            self._section("source", "Program", self._source()),
        ]
        if self.walk is not None:
            parts += [
                self._section("graph", "Graph", self._graph(self.walk)),
                self._section("walk", "Step by step", self._steps(self.walk)),
            ]
        elif program.error is None:
            parts.append(self._section("values", "Values", self._values()))
        parts += ["</div>"]
        parts += [self._section(*part) for part in self._more() if part[2]]
        return "\n".join([*filter(None, parts), self._data(), "</article>"])

    def _section(self, kind: str, title: str, body: str) -> str:
        return f'<section class="{kind}"><h3>{title}</h3>\n{body}\n</section>'

    def _more(self) -> Iterator[tuple[str, str, str]]:
        program = self.program
        yield "messages", "Messages", self._messages(program.said)
        if program.explanation is not None:
            yield "gradients", "Gradients", self._gradients(program.explanation)
        yield "jacobian", "Jacobian", self._jacobian()
        yield "checks", "Checks", self._checks()
        yield "output", "Output", f"<pre>{_lines(program.stdout)}</pre>" if program.stdout else ""

    def _facts(self) -> str:
        """What is to be known at once."""
        program, found = self.program, self.program.explanation
        facts = []
        if program.error is not None:
            facts.append(f'<span class="no">{_safe(program.error.diagnostic.message)}</span>')
        if program.missing is not None:
            facts.append(f'<span class="note">nothing to step through: '
                         f"{_safe(program.missing.message)}</span>")  # fmt: skip
        if found is not None and found.forward:
            last = found.forward[-1]
            value = brief(last.value, self.precision)
            facts.append(f"<span>{_code(f'{last.name} = {value}')}</span>")
            if found.backwards > 1:
                facts.append(f"<span>backward {found.backwards} of {found.backwards}</span>")
        if found is not None and found.check is not None:
            good = found.check.kind == "right"
            facts.append(
                f'<span class="{"yes" if good else "note"}">{"✓ " if good else ""}'
                f"{_safe(found.check.text)}</span>"
            )
        return f'<p class="facts">{"".join(facts)}</p>'

    def _toolbar(self) -> str:
        """The buttons, which the script shows."""
        if self.walk is None:
            return ""
        buttons = "".join(
            f'<button type="button" data-go="{go}" aria-label="{label}" title="{label}">'
            f'<svg viewBox="0 0 16 16" aria-hidden="true"><path d="{sign}"/></svg></button>'
            for go, label, sign in BUTTONS
        )
        most = len(self.walk.stops) - 1
        return (
            f'<div class="bar" role="toolbar" aria-label="Steps">{buttons}'
            f'<input type="range" min="0" max="{most}" value="0" aria-label="step">'
            '<output aria-live="polite"></output></div>'
        )

    # -- the program ------------------------------------------------------------------------------

    def _source(self) -> str:
        source = self.program.source
        gutter = "\n".join(map(str, range(1, source.text.rstrip("\n").count("\n") + 2)))
        text = "".join(self._marked(source))
        return (
            f'<div class="code"><pre class="gutter" aria-hidden="true">{gutter}</pre>'
            f'<pre class="text" tabindex="0"><code>{text}</code></pre></div>'
        )

    def _marks(self) -> list[tuple[int, int, str]]:
        """Places that a step or an error is about, and their classes."""
        source = self.program.source
        spans: dict[tuple[int, int], list[str]] = {}
        for stop in self.walk.stops if self.walk is not None else ():
            span = stop.forward.span if stop.forward is not None else None
            if stop.phase == "forward" and span is not None and span.source.name == source.name:
                spans.setdefault((span.start, span.end), []).append(stop.node)
        found = [(start, end, f'data-at="{" ".join(at)}"') for (start, end), at in spans.items()]
        for diagnostic in self.program.said:
            span = diagnostic.span
            if span is not None and span.source.text == source.text and span.start < span.end:
                found.append((span.start, span.end, f'class="{diagnostic.severity}"'))
        return found

    def _marked(self, source: Source) -> Iterator[str]:
        """The text with its marks, one inside of the other, and names that tell their values."""
        nested = _nested(self._marks())
        cuts = sorted({x for start, end, _ in nested for x in (start, end)})
        starts: dict[int, list[str]] = {}
        ends: dict[int, int] = {}
        for start, end, attributes in nested:
            starts.setdefault(start, []).append(attributes)
            ends[end] = ends.get(end, 0) + 1
        for start, end, kind in _pieces(source.text, cuts):
            yield "</mark>" * ends.get(start, 0)
            for attributes in starts.get(start, ()):
                yield f"<mark {attributes}>"
            yield self._piece(source.text[start:end], kind)
        yield "</mark>" * ends.get(len(source.text), 0)

    def _piece(self, text: str, kind: str) -> str:
        shown = _lines(text)
        record = self.program.run.tensors.get(text) if kind == "name" else None
        if record is not None:
            said = f"{text} {format_shape(record.shape)} {record.dtype}: {brief(record.value)}"
            if record.grad is not None:
                said += f"\ngradient: {brief(record.grad)}"
            return f'<span class="name" title="{_lines(said)}">{shown}</span>'
        return f'<span class="{kind}">{shown}</span>' if kind not in ("", "name") else shown

    def _values(self) -> str:
        """The tensors of a program that is not stepped through."""
        records = self.program.run.tensors.values()
        given = any(r.grad is not None for r in records)
        rows = ""
        for r in records:
            shown = [format_shape(r.shape), self._value(r.value)]
            shown += ["None" if r.grad is None else self._value(r.grad)] if given else []
            cells = "".join(f"<td>{cell}</td>" for cell in shown)
            rows += f'<tr><th scope="row">{_code(r.name)}</th>{cells}</tr>'
        heads = ("name", "shape", "value", *(["gradient"] if given else []))
        return _grid(heads, rows) if rows else "<p>It has no tensors.</p>"

    # -- the steps --------------------------------------------------------------------------------

    def _graph(self, walk: Walk) -> str:
        """The graph; ids are for the page, on which there may be several."""
        drawn = graph_svg(walk.drawing(), precision=self.precision, style=False)
        drawn = drawn.replace(NAMESPACE, "")
        return re.sub(r'(<g class="node[^"]*") id="(n[0-9]+)"', r'\1 data-node="\2"', drawn)

    def _steps(self, walk: Walk) -> str:
        return "\n".join(self._step(stop) for stop in walk.stops)

    def _step(self, stop: Stop) -> str:
        found = self.program.explanation
        assert found is not None
        count = len(found.forward)
        body = ""
        objective = _code(found.objective)
        match stop.phase:
            case "start":
                head, title = "Start", "What is given"
                body = "".join(
                    _line(f"{_code(t.name)} =", self._value(t.at), format_shape(t.shape))
                    for t in found.totals
                )
            case "forward":
                assert stop.forward is not None
                f = stop.forward
                head = f"Forward {f.number} of {count}"
                title = _code(f"{f.name} = {f.expression.text}")
                times = f", {f.times} times; the last" if f.times > 1 else ""
                note = f"{format_shape(f.shape)} {f.dtype}{times}"
                body = _line(f"{_code(f.name)} =", self._value(f.value), note)
            case "seed":
                head, title = "Backward begins", f"d {objective} / d {objective}"
                body = "<p>Backward starts at the result.</p>" + "".join(
                    _line(f"{_code(f'g({s.name})')} =", self._value(s.value)) for s in found.seeds
                )
            case "backward":
                assert stop.forward is not None
                assert stop.step is not None
                head = f"Backward {stop.step.number} of {count}"
                title = _code(f"{stop.forward.name} = {stop.forward.expression.text}")
                body = self._backward(stop.step, stop.given)
            case _:
                head, title = "Total", "The gradients"
                body = "".join(
                    _line(f"d {objective} / d {_code(t.name)} =", self._value(t.value),
                          added(t))
                    for t in found.totals
                )  # fmt: skip
        return (
            f'<section class="step {stop.phase}" id="{self._id(stop.id)}">'
            f'<p class="phase">{head}</p><h4>{title}</h4>{body}</section>'
        )

    def _backward(self, step: Step, gives: Iterable[Given]) -> str:
        found = self.program.explanation
        words = [] if found is not None and found.grouped else [_code(step.op)]
        words += [f"{step.times} times"] if step.times > 1 else []
        rule = f"{', '.join(words)}: {_safe(step.rule)}" if words else _safe(step.rule)
        parts = [f'<p class="rule">{rule}</p>']
        for incoming in step.incoming:
            said = [f"{incoming.paths} paths added"] if incoming.paths > 1 else []
            said += ["replaced by a hook"] if incoming.hooked else []
            parts.append(_line(
                f"arrives {_code(f'g({incoming.name})')} =",
                self._value(incoming.value), ", ".join(said), "arrives",
            ))  # fmt: skip
        for given in gives:
            c = given.contribution
            sign = "+=" if c.paths > 1 else "="
            parts.append(_line(
                f"{_code(f'g({c.to}) {sign} {c.formula.text}')}<b>=</b>",
                self._value(c.value), "; ".join(notes(c)), "gives",
            ))  # fmt: skip
            if given.sums is not None:
                before, together = given.sums
                shown = [self._value(array) for array in (before, c.value, together)]
                parts.append(_line(
                    f"so far {_code(f'g({c.to})')} =",
                    '<div class="sum">{}<b>+</b>{}<b>=</b>{}</div>'.format(*shown), "", "adds",
                ))  # fmt: skip
        return "".join(parts)

    def _data(self) -> str:
        """What the script needs to know: of each step its place, node and edges."""
        if self.walk is None:
            return ""
        stops = [
            {"id": self._id(s.id), "phase": s.phase, "node": s.node, "edges": s.edges}
            for s in self.walk.stops
        ]
        text = json.dumps(stops).replace("<", "\\u003c")
        return f'<script type="application/json">{text}</script>'

    # -- below ------------------------------------------------------------------------------------

    def _gradients(self, found: Explanation) -> str:
        gradient, rows = f"d {_safe(found.objective)} / d name", ""
        for total in found.totals:
            rows += (
                f'<tr><th scope="row">{_code(total.name)}</th>'
                f'<td data-head="value">{self._value(total.at)}</td>'
                f'<td data-head="{gradient}">{self._value(total.value)}'
                f"{numbers.histogram(total.value)}{_note(added(total))}</td></tr>"
            )
            if formula := self._formula(total.name):
                rows += f'<tr><td class="formula" colspan="3">{formula}</td></tr>'
        return _grid(("name", "value", gradient), rows)

    def _formula(self, name: str) -> str:
        """The gradient as a formula, and what the names in it mean; a long one is folded."""
        found = self.program.formulas.get(name)
        if found is None:
            return ""
        shown = f"= {_code(found.text)}"
        for word, (part, text, _) in zip(chain(["where"], repeat("and")), found.lets, strict=False):
            shown += f"<br>{word} {_code(f'{part} = {text}')}"
        if len(shown) > LONG:
            return f"<details><summary>as a formula</summary>{shown}</details>"
        return shown

    def _jacobian(self) -> str:
        found = self.program.jacobian
        if found is None:
            return ""
        parts = [
            "<p>How each element of one value (a row) changes with each element of another "
            "(a column).</p>"
        ]
        for (of, wrt), block in found.blocks.items():
            flat = block.reshape(prod(found.shape), prod(found.shapes[wrt]))
            parts.append(
                f"<h4>d {_code(of)} / d {_code(wrt)} "
                f"<small>{format_shape(found.shape)} by {format_shape(found.shapes[wrt])}</small>"
                f"</h4>{self._value(flat)}"
            )
        return "".join(parts)

    def _checks(self) -> str:
        rows = "".join(
            f'<tr class="{item.status}"><td>{STATUS.get(item.status, "·")} {item.status}</td>'
            f'<th scope="row">{_code(item.label)}</th><td>line {item.line}</td></tr>'
            for item in self.program.checks
        )
        return _grid(("", "check", "where"), rows) if rows else ""

    def _messages(self, said: Iterable[Diagnostic]) -> str:
        return "".join(
            f'<pre class="{d.severity}" tabindex="0">{_lines(render(d))}</pre>' for d in said
        )


def _line(label: str, value: str, note: str = "", kind: str = "") -> str:
    return f'<div class="{f"row {kind}".strip()}"><span>{label}</span>{value}{_note(note)}</div>'


def _note(text: str) -> str:
    return f'<small class="note">{_safe(text)}</small>' if text else ""


def _grid(heads: tuple[str, ...], rows: str) -> str:
    head = "".join(f'<th scope="col">{title}</th>' for title in heads)
    return (
        f'<div class="scroll"><table class="grid"><thead><tr>{head}</tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


__all__ = ["article", "gathered", "page", "timestamp"]

# -- places in a text -----------------------------------------------------------------------------


def _nested(marks: list[tuple[int, int, str]]) -> list[tuple[int, int, str]]:
    """Marks of which one is inside of another or they do not touch, the outer ones first."""
    kept: list[tuple[int, int, str]] = []
    for start, end, attributes in sorted(marks, key=lambda mark: (mark[0], -mark[1])):
        if all(end <= e or start >= e for _, e, _ in kept):
            kept.append((start, end, attributes))
    return kept


def _pieces(text: str, cuts: list[int]) -> Iterator[tuple[int, int, str]]:
    """The text in pieces that no mark begins or ends in, with what they are."""
    lexer = PythonLexer(stripnl=False, ensurenl=False)
    cuts = [*cuts, len(text)]
    for start, token, piece in lexer.get_tokens_unprocessed(text):
        kind = next((name for family, name in CLASSES if token in family), "")
        if token in Name and re.fullmatch(r"[^\W\d]\w*", piece):
            kind = "name"
        end = start + len(piece)
        for cut in cuts:
            if start < cut < end:
                yield start, cut, kind
                start = cut
        yield start, end, kind
