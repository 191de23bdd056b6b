"""What `autodiff lsp` answers: all of it is what a run, a session's completion and `--fix` know.

A program is run when its text has been still for a moment, within the limits of the command line
and of `SECONDS`, in a process of its own: one that does not come back costs its program the
answers. Positions of the protocol are lines and columns; those of a `Source` are offsets.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from contextlib import suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.exceptions import JsonRpcInvalidParams
from pygls.lsp.server import LanguageServer
from pygls.workspace import TextDocument

from ..checks.deadline import deadline
from ..checks.many import GRACE, Worker
from ..ended import stubborn
from ..errors import AutodiffError, Diagnostic
from ..language.program.report import Options
from ..language.syntax.occurrences import Place, places
from ..language.syntax.parser import parse
from ..render.text import clip, format_shape
from ..render.values import Look, cell_lines, joined
from ..repl.complete import LONGEST_INPUT, call_signature, candidates
from ..repl.loop import Loop
from ..repl.script import pieces
from ..repl.show import gradient_block
from ..session import Report, run
from ..source import Source, Span
from ..version import __version__
from .commands.ops import describe, select
from .fixing import Edit, applied, edit_of, proposed

SECONDS = 2.0  # that an answer may take
LIMIT = "autodiff run --timeout"
STILL = 0.2  # seconds without a key
LOOK = Look()
LONGEST_HINT = 60
_DOTTED = re.compile(r"[^\W\d][\w.]*")


class Program:
    """The text of a document at one time, and what is known of it."""

    def __init__(self, document: TextDocument, options: Options):
        self.document, self.options, self.text = document, options, document.source
        text = self.text.replace("\r\n", "\n").replace("\r", "\n")
        self.source = Source(text, document.path or document.uri)

    def run(self, source: Source) -> Report:
        """Run it, or a variant of it; a limit is an error as others are."""
        try:
            return run(source, self.options)
        except AutodiffError as error:
            return Report(source.name, error=error)

    @cached_property
    def report(self) -> Report:
        return self.run(self.source)

    def above(self, error: AutodiffError) -> Source:
        """The lines above an error of this text."""
        span, text = error.span, self.source.text
        if span is None or span.source.text != text:
            return Source("", self.source.name)
        return Source(text[: self.source.line_start(span.start)], self.source.name)

    @cached_property
    def known(self) -> Report:
        """What can be shown: of a program that fails what was there above that line."""
        error = self.report.error
        return self.run(self.above(error)) if error else self.report

    @cached_property
    def readable(self) -> Source:
        """The text, or what is above the line that does not parse."""
        try:
            parse(self.source)
        except AutodiffError as error:
            return self.above(error)
        return self.source

    @cached_property
    def places(self) -> list[Place]:
        """Where names stand, in order, as far as the text parses."""
        try:
            return sorted(places(parse(self.readable)), key=lambda place: place.span.start)
        except AutodiffError:
            return []

    @property
    def diagnostics(self) -> list[Diagnostic]:
        report = self.report
        errors = [error.diagnostic for error in (report.error, *report.more_errors) if error]
        return [*errors, *report.warnings]

    # -- places -----------------------------------------------------------------------------------

    def offset(self, params: Any) -> int:
        """Where the cursor is."""
        at = self.document.position_from_client_units(params.position)
        starts = self.source.starts
        return min(starts[min(at.line, len(starts) - 1)] + at.character, len(self.source.text))

    def position(self, offset: int) -> lsp.Position:
        line, column = self.source.position(offset)
        before = self.source.line(line)[: column - 1]
        return lsp.Position(line - 1, self.document.position_codec.client_num_units(before))

    def range(self, span: Span | None) -> lsp.Range:
        """The range of a span of this text; of another, or none, the first line."""
        if span is None or not self.source.text.startswith(span.source.text):
            return lsp.Range(self.position(0), self.position(len(self.source.line(1))))
        return lsp.Range(self.position(span.start), self.position(span.end))

    def edits(self, edits: list[Edit]) -> lsp.WorkspaceEdit:
        made = [lsp.TextEdit(self.range(Span(self.source, e.start, e.end)), e.text) for e in edits]
        return lsp.WorkspaceEdit({self.document.uri: made})

    def here(self, params: Any) -> Place | None:
        """The name at the cursor."""
        at = self.offset(params)
        return next((p for p in self.places if p.span.start <= at <= p.span.end), None)

    def same(self, params: Any) -> list[Place]:
        """All places of the name at the cursor."""
        here = self.here(params)
        return [place for place in self.places if here and place.meant == here.meant]

    # -- answers ----------------------------------------------------------------------------------

    def wrong(self, params: Any) -> list[lsp.Diagnostic]:
        """All that is wrong with the program."""
        return [self.told(diagnostic) for diagnostic in self.diagnostics]

    def told(self, diagnostic: Diagnostic) -> lsp.Diagnostic:
        """A diagnostic as editors show it."""
        related = [
            lsp.DiagnosticRelatedInformation(
                lsp.Location(self.document.uri, self.range(label.span)), label.text
            )
            for label in diagnostic.labels
        ]
        return lsp.Diagnostic(
            self.range(diagnostic.span),
            "\n".join([diagnostic.message, *(f"help: {text}" for text in diagnostic.helps)]),
            lsp.DiagnosticSeverity(1 if diagnostic.severity == "error" else 2),
            diagnostic.code,
            source="autodiff",
            related_information=related,
        )

    def hover(self, params: lsp.HoverParams) -> lsp.Hover | None:
        """Value and gradient of a name of the program, or the page of an operation."""
        here, at = self.here(params), self.offset(params)
        name = here.span.text if here and here.outermost else ""
        if record := self.known.tensors.get(name):
            made = f"<{record.grad_fn}>" if record.grad_fn else "leaf" * record.requires_grad
            lines = [f"{name}  {format_shape(record.shape)} {record.dtype} {made}"]
            lines += cell_lines(record.value, LOOK)
            lines += gradient_block(name, record.grad, LOOK) if record.requires_grad else []
        elif name in self.known.scalars:
            lines = [f"{name} = {self.known.scalars[name]}"]
        else:
            words = _DOTTED.finditer(self.source.text)
            word = next((m[0] for m in words if m.start() <= at <= m.end()), "")
            found = (select([name])[0] for name in (word, word.rpartition(".")[2]) if name)
            lines = [describe(op) for op in next(filter(None, found), ())]
        text = "\n".join(["```text", *lines, "```"])
        return lsp.Hover(lsp.MarkupContent(lsp.MarkupKind.Markdown, text)) if lines else None

    def definition(self, params: lsp.DefinitionParams) -> lsp.Location | None:
        """Where the name got its value last before the cursor, or first."""
        bound = [place.span for place in self.same(params) if place.binds]
        before = [span for span in bound if span.start <= self.offset(params)] or bound[:1]
        return lsp.Location(self.document.uri, self.range(before[-1])) if before else None

    def renamed(self, params: lsp.RenameParams) -> lsp.WorkspaceEdit:
        """Another name for a variable, where the program does the same with it."""
        name = params.new_name
        whole = self.readable is self.source
        spans = [place.span for place in self.same(params) if whole]
        edits = [Edit(span.start, span.end, name) for span in spans]
        if not edits or any(place.span.text == name for place in self.places):
            raise JsonRpcInvalidParams(f"{name} is taken" if edits else "no variable stands here")
        after = self.run(Source(applied(self.source.text, edits), self.source.name))
        if _results(after) != _results(self.report):
            raise JsonRpcInvalidParams(f"with {name} the program would do something else")
        return self.edits(edits)

    def hints(self, params: lsp.InlayHintParams) -> list[lsp.InlayHint]:
        """The shape behind a name, and its gradient at the end of the line that assigns it."""
        last = {
            place.meant[1]: place.span for place in self.places if place.binds * place.outermost
        }
        found = []
        for name, record in self.known.named.items():
            if span := last.get(name):
                shape = f": {format_shape(record.shape)}"
                found.append(lsp.InlayHint(self.position(span.end), shape))
                if record.grad is not None:
                    words = clip(joined(cell_lines(record.grad, LOOK)), LONGEST_HINT)
                    end = span.end + len(self.source.line(span.line)) - span.end_column + 1
                    words = f"  {name}.grad = {words}"
                    found.append(lsp.InlayHint(self.position(end), words))
        return found

    def actions(self, params: lsp.CodeActionParams) -> list[lsp.CodeAction]:
        """What `--fix` writes, and what it proposes, for the diagnostics of some lines."""
        found = []
        for diagnostic in self.diagnostics:
            told = self.told(diagnostic)
            if not params.range.start.line <= told.range.start.line <= params.range.end.line:
                continue
            error = AutodiffError(diagnostic) if diagnostic.severity == "error" else None
            alone = Report(self.source.name, error=error, warnings=self.report.warnings)
            safe = edit_of(diagnostic, self.source)
            if edit := safe or proposed(alone, self.source, self.run):
                title = f"write `{edit.text}`" if safe else diagnostic.helps[0]
                kind, change = lsp.CodeActionKind.QuickFix, self.edits([edit])
                found.append(lsp.CodeAction(title, kind, [told], bool(safe), edit=change))
        return found

    def before(self, params: Any) -> tuple[str, Loop]:
        """The text before the cursor, and a session in which the lines above have been entered."""
        at, text = self.offset(params), self.source.text
        above = text[: self.source.line_start(at)]
        return text[max(0, at - LONGEST_INPUT) : at], entered(above, self.source.name, self.options)

    def completion(self, params: lsp.CompletionParams) -> list[lsp.CompletionItem]:
        """What could come next, with shapes and signatures."""
        before, loop = self.before(params)
        items = []
        for text, length, about in () if before.lstrip()[:1] == ":" else candidates(before, loop):
            start = self.position(self.offset(params) - length)
            edit = lsp.TextEdit(lsp.Range(start, params.position), text)
            items.append(lsp.CompletionItem(text, detail=about(), text_edit=edit))
        return items

    def signature(self, params: lsp.SignatureHelpParams) -> lsp.SignatureHelp | None:
        """The signature of the call around the cursor."""
        found = call_signature(*self.before(params))
        return lsp.SignatureHelp([lsp.SignatureInformation(found)]) if found else None


@lru_cache(maxsize=4)
def entered(text: str, name: str, options: Options) -> Loop:
    """A session after these statements; those that fail are left out."""
    loop = Loop(options)
    with suppress(AutodiffError, MemoryError, RecursionError):
        for piece, _ in pieces(text):
            with suppress(AutodiffError):
                loop.session.run_text(Source(piece, name), Path(name).parent)
    return loop


def _results(report: Report) -> list[Any]:
    """What a program computes and prints, whatever its names."""
    found = [(r.value, r.grad) for r in report.tensors.values()]
    values = [[None if a is None else (a.shape, a.tobytes()) for a in pair] for pair in found]
    return [report.error and report.error.code, report.stdout, values, [*report.scalars.values()]]


FEATURES: dict[str, tuple[Callable[..., Any], Any]] = {
    lsp.TEXT_DOCUMENT_HOVER: (Program.hover, None),
    lsp.TEXT_DOCUMENT_DEFINITION: (Program.definition, None),
    lsp.TEXT_DOCUMENT_RENAME: (Program.renamed, None),
    lsp.TEXT_DOCUMENT_INLAY_HINT: (Program.hints, None),
    lsp.TEXT_DOCUMENT_CODE_ACTION: (Program.actions, None),
    lsp.TEXT_DOCUMENT_COMPLETION: (Program.completion, lsp.CompletionOptions(["."])),
    lsp.TEXT_DOCUMENT_SIGNATURE_HELP: (Program.signature, lsp.SignatureHelpOptions(["(", ","])),
}


ANSWERS = {lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS: Program.wrong}
ANSWERS |= {feature: method for feature, (method, _) in FEATURES.items()}
PROGRAMS: dict[str, Program] = {}  # of the process that runs them


def answer(feature: str, document: TextDocument, params: Any, options: Options) -> Any:
    """What a document's program answers, or what is wrong with it or with the question."""
    program = PROGRAMS.get(document.uri)
    if program is None or program.text != document.source:
        program = PROGRAMS[document.uri] = Program(document, options)
    try:
        with deadline(SECONDS, LIMIT):
            return ANSWERS[feature](program, params)
    except AutodiffError as error:
        return error.diagnostic
    except JsonRpcInvalidParams as error:
        return error


ANSWER = f"{__name__}:{answer.__name__}"


class Programs:
    """The process that runs the programs, and another one after it was lost; `lost` has the texts
    that did it."""

    def __init__(self, options: Options):
        self.options = options
        self.worker = Worker(ANSWER)
        self.lost: dict[str, Diagnostic] = {}

    def ask(self, feature: str, document: TextDocument, params: Any) -> Any:
        """What `answer` says there."""
        text = document.source
        if text in self.lost:
            return self.lost[text]
        worker, error = self.worker, stubborn(SECONDS, LIMIT)
        try:
            if not worker.ready:
                worker.receive()
            worker.connection.send((feature, document, params, self.options))
            if worker.connection.poll(SECONDS + GRACE):
                return worker.receive()
        except (EOFError, OSError):
            error = worker.death()
        worker.end()
        self.worker = Worker(ANSWER)
        self.lost[text] = error.diagnostic
        return error.diagnostic


def serve(options: Options) -> None:
    """Serve an editor on standard input and output until it ends."""
    programs = Programs(options)
    server = LanguageServer("autodiff", __version__)

    def answering(feature: str) -> Callable[[Any], Any]:
        def answered(params: Any) -> Any:
            document = server.workspace.get_text_document(params.text_document.uri)
            found = programs.ask(feature, document, params)
            if isinstance(found, JsonRpcInvalidParams):
                raise found
            return None if isinstance(found, Diagnostic) else found

        return answered

    @server.feature(lsp.TEXT_DOCUMENT_DID_OPEN)
    @server.feature(lsp.TEXT_DOCUMENT_DID_CHANGE)
    async def changed(params: Any) -> None:
        version = params.text_document.version
        await asyncio.sleep(STILL)
        document = server.workspace.get_text_document(params.text_document.uri)
        if document.version == version:
            found = programs.ask(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, document, None)
            if isinstance(found, Diagnostic):
                found = [Program(document, options).told(found)]
            told = lsp.PublishDiagnosticsParams(document.uri, found, version)
            server.text_document_publish_diagnostics(told)

    for feature, (_, how) in FEATURES.items():
        server.feature(feature, how)(answering(feature))
    try:
        server.start_io(stdout=os.fdopen(os.dup(1), "wb"))
    finally:
        programs.worker.end()
