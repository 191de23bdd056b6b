"""`autodiff lsp` as editors use it: a client of the protocol on its standard input and output."""

from __future__ import annotations

import asyncio
import io
import json
import keyword
import os
import re
import subprocess
import sys
import tokenize
from collections.abc import Callable, Coroutine, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, TypeVar

import pytest

import autodiff_cli
from autodiff_cli.language.syntax.occurrences import places
from autodiff_cli.language.syntax.parser import parse
from autodiff_cli.repl.complete import KEYWORDS
from autodiff_cli.source import Source
from tests.later import Later

lsp, pygls = Later("lsprotocol.types"), Later("pygls.exceptions")
clients = Later("pygls.lsp.client")

START = "import sys; from autodiff_cli.cli.main import main; sys.exit(main())"
ROOT = Path(autodiff_cli.__file__).parents[1]
DEMO = "A = [[1, 2], [3, 4]]\nB = [[5, 6], [7, 8]]\nloss = sum((A + B) * A)\n"


class Editor:
    """One document in an editor that is connected to the server."""

    def __init__(self, client: Any, uri: str):
        self.client, self.uri = client, uri
        self.version = 0
        self.shown: asyncio.Queue[lsp.PublishDiagnosticsParams] = asyncio.Queue()
        client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(
            lambda shown: self.shown.put_nowait(shown)
        )

    async def type(self, text: str) -> list[lsp.Diagnostic]:
        """The document has another text; what is wrong with it."""
        self.version += 1
        if self.version == 1:
            item = lsp.TextDocumentItem(self.uri, "autodiff", 1, text)
            self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(item))
        else:
            which = lsp.VersionedTextDocumentIdentifier(version=self.version, uri=self.uri)
            change = lsp.TextDocumentContentChangeWholeDocument(text)
            self.client.text_document_did_change(lsp.DidChangeTextDocumentParams(which, [change]))
        while True:
            shown = await self.shown.get()
            if shown.version == self.version:
                return list(shown.diagnostics)

    def params(self, kind: Any, line: int, column: int, *rest: Any) -> Any:
        """The question of a kind about a place."""
        return kind(lsp.TextDocumentIdentifier(self.uri), lsp.Position(line, column), *rest)


Work = Callable[[Editor], Coroutine[Any, Any, None]]
Edit = Callable[[Work], None]
T = TypeVar("T")


FATAL = Path(__file__).resolve().parents[1] / "fatal"  # its `lgamma` and `gamma` never return


@pytest.fixture(scope="module")
def edit(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Edit]:
    """What an editor does from start to end, by parts; the server ends as it was asked to."""
    client = clients.LanguageClient("editor", "1")
    uri = (tmp_path_factory.mktemp("edited") / "demo.expr").as_uri()
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(FATAL), *sys.path])}
    words = ("-c", START, "lsp", "--max-steps", "10000")

    async def begin() -> Editor:
        await client.start_io(sys.executable, *words, cwd=str(ROOT), env=env)
        await client.initialize_async(lsp.InitializeParams(lsp.ClientCapabilities()))
        client.initialized(lsp.InitializedParams())
        return Editor(client, uri)

    async def end() -> int:
        await client.shutdown_async(None)
        client.exit(None)
        process = client._server
        assert process is not None
        return await process.wait()

    with asyncio.Runner() as runner:

        def wait(work: Coroutine[Any, Any, T]) -> T:
            return runner.run(asyncio.wait_for(work, 120))

        editor = wait(begin())
        yield lambda work: wait(work(editor))
        assert wait(end()) == 0


def changed(text: str, made: lsp.WorkspaceEdit | None) -> str:
    """A text of one document with the changes of an answer, whose columns count characters."""
    assert made is not None and made.changes is not None
    (edits,) = made.changes.values()
    source = Source(text)
    for change in sorted(edits, key=lambda e: (e.range.start.line, e.range.start.character))[::-1]:
        start, end = (
            source.starts[at.line] + at.character for at in (change.range.start, change.range.end)
        )
        text = text[:start] + change.new_text + text[end:]
    return text


def test_what_is_wrong_is_said_as_it_is_typed(edit: Edit) -> None:
    async def work(editor: Editor) -> None:
        (found,) = await editor.type(DEMO.replace("+ B", "+ b"))
        assert (found.code, found.severity, found.source) == ("E201", 1, "autodiff")
        assert found.range == lsp.Range(lsp.Position(2, 16), lsp.Position(2, 17))
        assert found.message.startswith("name `b` is not defined\nhelp: did you mean `B`?")
        assert found.related_information
        assert found.related_information[0].location.range.start == lsp.Position(1, 0)
        assert not await editor.type(DEMO)
        (found,) = await editor.type("w = [1.0]\nu = [2.0]\nloss = sum(w * w)\nprint(loss)\n")
        assert (found.code, found.severity) == ("W403", 2)
        codes = [d.code for d in await editor.type("x = [1\ny = 2\n")]
        question = editor.params(lsp.DefinitionParams, 1, 0)
        assert await editor.client.text_document_definition_async(question) is None
        assert codes and codes[0] == "E101"
        # Columns count units of UTF-16: the sign before the name takes two.
        (found,) = await editor.type("s = '\N{MATHEMATICAL BOLD SMALL X}'; y = zz\n")
        assert found.range == lsp.Range(lsp.Position(0, 14), lsp.Position(0, 16))
        (found,) = await editor.type("x = 1\nwhile True:\n    x = x + 0\n")
        assert found.code in ("E506", "E508")
        (found,) = await editor.type("x = ones(100000, 100000)\nloss = sum(x)\n")
        assert found.code == "E505"
        assert not await editor.type(DEMO)

    edit(work)


@pytest.mark.skipif(sys.platform != "linux", reason="a full stack is a signal there")
def test_a_program_that_ends_its_process_loses_its_own_answers(edit: Edit) -> None:
    async def work(editor: Editor) -> None:
        for call, code, words in (
            ("lgamma", "E509", "the program overflowed the interpreter's stack"),
            ("gamma", "E508", "the time limit of 2 s is reached; its process did not stop"),
            ("erfc", "E505", "the program ran out of memory"),
        ):
            (found,) = await editor.type(f"import math\nx = math.{call}(1)\n")
            assert found.code == code and found.message.startswith(words)
            question = editor.params(lsp.HoverParams, 1, 0)
            assert await editor.client.text_document_hover_async(question) is None
            assert not await editor.type(DEMO)
            shown = await editor.client.text_document_hover_async(question)
            assert shown is not None and "B  (2, 2)" in shown.contents.value  # type: ignore[union-attr]  # Markdown

    edit(work)


def test_values_gradients_and_pages_are_shown(edit: Edit) -> None:
    async def work(editor: Editor) -> None:
        await editor.type("n = len([1, 2, 3])\n" + DEMO + "print(loss)\n")

        async def shown(line: int, column: int) -> str:
            question = editor.params(lsp.HoverParams, line, column)
            found = await editor.client.text_document_hover_async(question)
            return "" if found is None else str(found.contents.value)  # type: ignore[union-attr]  # Markdown

        assert await shown(3, 12) == (
            "```text\nA  (2, 2) float64 leaf\n[[1, 2],\n [3, 4]]\n"
            "A.grad  [[ 7, 10],\n         [13, 16]]\n```"
        )
        assert "loss  () float64 <SumBackward0>\n100" in await shown(3, 1)
        assert "n = 3" in await shown(0, 0)
        assert "sum(input, dim=None" in await shown(3, 8)
        assert not await shown(3, 5)
        document = lsp.TextDocumentIdentifier(editor.uri)
        lines = lsp.Range(lsp.Position(0, 0), lsp.Position(9, 0))
        hints = await editor.client.text_document_inlay_hint_async(
            lsp.InlayHintParams(document, lines)
        )
        told = [(h.position.line, h.position.character, h.label) for h in hints or ()]
        assert told == [
            (1, 1, ": (2, 2)"), (1, 20, "  A.grad = [[7, 10], [13, 16]]"),
            (2, 1, ": (2, 2)"), (2, 20, "  B.grad = [[1, 2], [3, 4]]"), (3, 4, ": ()"),
        ]  # fmt: skip
        for line, code in (("y = A @ [1, 2, 3]\n", "E301"), ("y = A @ (\n", "E101")):
            (found,) = await editor.type(
                "n = len([1, 2, 3])\n" + DEMO + line
            )  # what is above stays known
            assert found.code == code
            assert "A.grad  [[ 7, 10],\n         [13, 16]]" in await shown(3, 12)
            assert "n = 3" in await shown(0, 0)
            question = editor.params(lsp.DefinitionParams, 3, 12)
            place = await editor.client.text_document_definition_async(question)
            assert isinstance(place, lsp.Location) and place.range.start == lsp.Position(1, 0)
            again = await editor.client.text_document_inlay_hint_async(
                lsp.InlayHintParams(document, lines)
            )
            assert [(h.position.line, h.position.character, h.label) for h in again or ()] == told

    edit(work)


def test_completion_knows_the_lines_above(edit: Edit) -> None:
    async def work(editor: Editor) -> None:
        async def offered(text: str) -> dict[str, str | None]:
            await editor.type(text)
            at = len(text.splitlines()) - 1, len(text.splitlines()[-1])
            found = await editor.client.text_document_completion_async(
                editor.params(lsp.CompletionParams, *at)
            )
            assert isinstance(found, tuple | list)
            for item in found:
                assert item.text_edit.range.end == lsp.Position(*at)  # type: ignore[union-attr]  # each has one
            return {item.label: item.detail for item in found}

        found = await offered("weight = [[1, 2]]\nwrong = nothing\ny = softm")
        assert found["softmax"] == "softmax(input, dim, dtype=None)"
        found = await offered("weight = [[1, 2]]\ndef double(x):\n    return 2 * x\ny = [w")
        assert found["weight"] == "(1, 2) float64"
        assert "double" in await offered("def double(x):\n    return 2 * x\ny = d")
        assert "grad" in await offered("weight = [[1, 2]]\nprint(weight.gr")
        assert not await offered(":save x")
        for call, signature in (
            ("y = softmax(", "softmax(input, dim, dtype=None)"),
            ("loss = sum(", "sum(input, dim=None, keepdim=False, *, dtype=None)"),
        ):
            await editor.type(call)
            help = await editor.client.text_document_signature_help_async(
                editor.params(lsp.SignatureHelpParams, 0, len(call))
            )
            assert help is not None
            assert help.signatures[0].label == signature

    edit(work)


PROGRAM = """\
import torch
import torch.nn.functional as F

def scaled(x, factor=2):
    total = x * factor
    return [total * x for x in range(3)][1] + F.relu(x)

x = torch.tensor([1.0, 2.0], requires_grad=True)
total = sum(scaled(x, factor=3))
print(f"{total.item():.1f}")
loss = total
"""


def test_names_are_found_and_changed(edit: Edit) -> None:
    async def work(editor: Editor) -> None:
        assert not await editor.type(PROGRAM)

        async def renamed(line: int, column: int, name: str) -> str:
            question = editor.params(lsp.RenameParams, line, column, name)
            return changed(PROGRAM, await editor.client.text_document_rename_async(question))

        async def defined(line: int, column: int) -> tuple[int, int]:
            question = editor.params(lsp.DefinitionParams, line, column)
            found = await editor.client.text_document_definition_async(question)
            assert isinstance(found, lsp.Location)
            return found.range.start.line, found.range.start.character

        assert await defined(8, 13) == (3, 4)  # the function
        assert await defined(5, 12) == (4, 4)  # `total` of the function
        assert await defined(9, 10) == (8, 0)  # that of the program, in an f-string
        assert await defined(5, 20) == (5, 26)  # `x` of the comprehension
        assert await defined(5, 53) == (3, 11)  # the parameter
        assert await defined(5, 46) == (1, 30)
        program = await renamed(8, 0, "cost")
        assert program.count("cost") == 3 and 'f"{cost.item()' in program
        assert program.count("total") == 2
        program = await renamed(3, 14, "by")
        assert "def scaled(x, by=2)" in program and "x * by" in program and "by=3" in program
        assert (await renamed(3, 12, "v")).count("v") == PROGRAM.count("v") + 3
        assert "F" not in (await renamed(1, 30, "fun")).replace("False", "")
        for line, column, name in ((8, 0, "loss"), (8, 0, "2x"), (8, 0, "for"), (0, 8, "tch")):
            with pytest.raises(pygls.JsonRpcException):
                await renamed(line, column, name)

    edit(work)


def test_fixes_are_offered(edit: Edit) -> None:
    async def work(editor: Editor) -> None:
        async def fixed(text: str) -> tuple[str, str, bool | None]:
            found = await editor.type(text)
            actions = await editor.client.text_document_code_action_async(
                lsp.CodeActionParams(
                    lsp.TextDocumentIdentifier(editor.uri),
                    found[0].range,
                    lsp.CodeActionContext(found),
                )
            )
            assert actions and isinstance(actions[0], lsp.CodeAction)
            new = changed(text, actions[0].edit)
            assert not await editor.type(new)
            return actions[0].title, new, actions[0].is_preferred

        title, text, safe = await fixed("x = [1.0]\nloss = sum(x^2)\n")
        assert (title, text, safe) == ("write `**`", "x = [1.0]\nloss = sum(x**2)\n", True)
        assert (await fixed(DEMO.replace("sum(", "smu(")))[1] == DEMO
        wrong = "W = [[1, 2], [3, 4], [5, 6]]\nx = [1, 2, 3]\nloss = sum(W @ x)\n"
        _, text, safe = await fixed(wrong)
        assert (text, safe) == (wrong.replace("W @", "W.T @"), False)

    edit(work)


# ------------------------------------------------------------------ without a server


def test_without_the_extra() -> None:
    start = f"import sys; sys.modules['pygls'] = None; {START}"
    done = subprocess.run(
        [sys.executable, "-c", start, "lsp"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 2
    assert "pip install 'autodiff-cli[lsp]'" in done.stderr
    assert "Traceback" not in done.stderr


def meanings(text: str) -> Iterator[tuple[str, str]]:
    for place in places(parse(Source(text))):
        yield place.span.text, place.meant[1]


def test_every_place_is_the_name_that_stands_there() -> None:
    for path in sorted((ROOT / "samples").glob("*.expr")) + sorted((ROOT / "samples").glob("*.py")):
        found = list(meanings(path.read_text("utf-8")))
        assert found
        assert all(shown == name for shown, name in found), path


NAMED = """\
import torch
from math import sqrt as root, floor
class Model(torch.nn.Module):
    size = 3
    def __init__(self, width=size):
        super().__init__()
        self.width = width
    def forward(self, given, *more, **rest):
        global count
        count = count + 1
        def inner():
            nonlocal given
            given = given * 2
        inner()
        return given, more, rest
count = 0
try:
    model = Model(width=2)
    first, *others = model(torch.ones(2))
except ValueError as wrong:
    print(wrong, root(2), floor(2.5))
except (TypeError, KeyError):
    pass
squares = [item * item for item in range(count) if item]
if (last := len(squares)) > 1:
    del squares[0], last
with torch.no_grad() as mode:
    lowest = min(squares, key=lambda item: -item)
"""


def test_every_name_of_a_program_has_its_place() -> None:
    """All names that Python's tokenizer finds, but attributes."""
    tokens = list(tokenize.generate_tokens(io.StringIO(NAMED).readline))
    starts = [0, *(at + 1 for at, sign in enumerate(NAMED) if sign == "\n")]
    wanted = {
        (starts[token.start[0] - 1] + token.start[1], token.string)
        for before, token in pairwise(tokens)
        if token.type == tokenize.NAME and not keyword.iskeyword(token.string)
        if before.string != "." and token.string not in ("math", "sqrt", "key")
    }
    found = {(place.span.start, place.span.text) for place in places(parse(Source(NAMED)))}
    assert found == wanted


def kinds_of(text: str) -> list[str]:
    """What the grammar for editors takes the words of a line for."""
    grammar = json.loads((ROOT / "grammar" / "expr.tmLanguage.json").read_text("utf-8"))
    rules: list[dict[str, Any]] = []
    for include in grammar["patterns"]:
        part = grammar["repository"][include["include"][1:]]
        rules += part.get("patterns", [part])
    found, at = [], 0
    while at < len(text):
        matches = [(re.compile(r.get("match") or r["begin"]).search(text, at), r) for r in rules]
        hits = [(m.start(), n, m, r) for n, (m, r) in enumerate(matches) if m is not None]
        if not hits:
            break
        _, _, match, rule = min(hits, key=lambda hit: hit[:2])
        name = rule.get("name") or rule["captures"]["2"]["name"]
        found.append(f"{match[0]}|{name.removesuffix('.autodiff')}")
        at = match.end()
    return found


def test_the_grammar_of_editors() -> None:
    assert kinds_of("loss = sum(A.grad ** 2) + 1.5e-3  #=> 7") == [
        "loss|variable.other", "=|keyword.operator", "sum|entity.name.function.call",
        "A|variable.other", "grad|variable.other.member", "**|keyword.operator",
        "2|constant.numeric", "+|keyword.operator", "1.5e-3|constant.numeric",
        "#=> 7|comment.line.expectation",
    ]  # fmt: skip
    assert kinds_of("def f(x): return 'a#b'") == [
        "def f|entity.name.function", "x|variable.other", "return|keyword.control",
        "'a#b'|string.quoted.single",
    ]  # fmt: skip
    for word in KEYWORDS:
        assert kinds_of(word)[0].split("|")[1].startswith(("keyword", "constant", "variable"))
        assert "variable" not in kinds_of(f"{word} ")[0] or word in ("def", "class"), word
