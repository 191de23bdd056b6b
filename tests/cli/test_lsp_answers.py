"""What the language server answers at every place of programs of several kinds, in this process:
held against `fixtures/said_cli.txt`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from autodiff_cli.session import Options

from ..later import Later
from ..said import compare

lsp, workspace = Later("lsprotocol.types"), Later("pygls.workspace")
SERVER = "autodiff_cli.cli.language_server"
server = Later(SERVER)

PROGRAMS = {
    "values": "A = [[1, 2], [3, 4]]\nb = [0.5, -1]; n = 3\nh = relu(A @ b)\r\nloss = sum(h * n)\n",
    "wide": "π = 3; 日本 = [2, 1]; s = '𝒳'; t = 日本 * π\r\nloss = sum(t * t)  # 日本",
    "functions": "import torch\ndef f(x, y=2):\n    x = x * y\n    return x.sum()\n"
    "w = torch.ones(2, requires_grad=True)\nfor i in range(2):\n    w2 = w * i\n"
    "loss = f(w2, y=3)\nloss.backward()\n",
    "wrong": "x = [1, 2]\ny = x^2\nz = sum(alpah * y)\nalpha = 3\nloss = y + z + [1, 2, 3]\n",
    "unclosed": "x = [1, 2]\ny = x * 2\nloss = sum(y\nz = 3\n",
    "warned": "x = [0, 4]\nunused = [1, 0]\nloss = sum(sqrt(x))",
    "first": "loss = sum(x",
    "block": "x = 1\nif x:\n)\n",
    "later": "def f(a):\n    return a * x\nx = 1\nx = 2\nloss = f(x)",
    "ligatures": "import math as ﬁ\ndef f(ﬁ):\n    return ﬁ * 2\nfi = 3\nloss = f(ﬁ=fi)",
    "beyond": "𠀀𠀁 = [1, 2]\n\nloss = sum(𠀀𠀁)",
    "separators": "x = [1, 2]  # \u2028 a \u2028 b\nloss = sum(x)",
    "empty": "",
}  # fmt: skip


def asked(text: str, codec: Any) -> Iterator[tuple[str, Any, str]]:
    """Questions of every kind, at every third place."""
    document = lsp.TextDocumentIdentifier("file:///demo.expr")
    lines = text.replace("\r\n", "\n").split("\n")
    for number, line in enumerate(lines):
        for column in range(0, len(line) + 1, 2):
            at = lsp.Position(number, codec.client_num_units(line[:column]))
            place = f"{number}:{column}"
            yield lsp.TEXT_DOCUMENT_HOVER, lsp.HoverParams(document, at), place
            yield lsp.TEXT_DOCUMENT_DEFINITION, lsp.DefinitionParams(document, at), place
            if column % 6 == 0:
                yield lsp.TEXT_DOCUMENT_COMPLETION, lsp.CompletionParams(document, at), place
                yield lsp.TEXT_DOCUMENT_SIGNATURE_HELP, lsp.SignatureHelpParams(document, at), place
                for name in ("fresh", "loss"):
                    renamed = lsp.RenameParams(document, at, name)
                    yield lsp.TEXT_DOCUMENT_RENAME, renamed, f"{place} {name}"
    below = lsp.Position(len(lines) + 9, 0)
    yield lsp.TEXT_DOCUMENT_HOVER, lsp.HoverParams(document, below), "below"
    everything = lsp.Range(lsp.Position(0, 0), lsp.Position(len(lines), 0))
    yield lsp.TEXT_DOCUMENT_INLAY_HINT, lsp.InlayHintParams(document, everything), ""
    beyond = lsp.Position(len(lines) + 9, 0)
    yield lsp.TEXT_DOCUMENT_HOVER, lsp.HoverParams(document, beyond), "beyond"
    for line in range(len(lines)):
        for last in (line, line + 1):
            span = lsp.Range(lsp.Position(line, 0), lsp.Position(last, 0))
            context = lsp.CodeActionContext([])
            params = lsp.CodeActionParams(document, span, context)
            yield lsp.TEXT_DOCUMENT_CODE_ACTION, params, f"{line}-{last}"
    yield lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS, None, ""


def short(found: Any) -> str:
    """An answer without the words of the protocol."""
    if isinstance(found, list):
        return f"{len(found)} [{', '.join(map(short, found[:6]))}]"
    if isinstance(found, lsp.CompletionItem):
        edit = found.text_edit
        assert isinstance(edit, lsp.TextEdit)
        return f"{found.label} ({found.detail}) {edit.range!r}"
    return repr(getattr(found, "message", found)) if isinstance(found, Exception) else repr(found)


# The other unit where a character has two of the first, or several bytes.
UNITS = [("Utf16", name) for name in PROGRAMS] + [("Utf32", name) for name in ("wide", "beyond")]


@pytest.mark.parametrize(("unit", "name"), UNITS)
def test_answers(
    unit: str, name: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{SERVER}.PROGRAMS", {})  # those before counted in other units
    monkeypatch.setattr(f"{SERVER}.SECONDS", 600.0)  # on a busy machine 2 may pass
    codec = workspace.PositionCodec(getattr(lsp.PositionEncodingKind, unit))
    document = workspace.TextDocument("file:///demo.expr", PROGRAMS[name], position_codec=codec)
    found: dict[str, list[str]] = {feature: [] for feature in server.FEATURES}
    for feature, params, place in asked(PROGRAMS[name], codec):
        said = short(server.answer(feature, document, params, Options()))
        lines = found.setdefault(feature, [])
        if not lines or lines[-1].partition(" | ")[2] != said:
            lines.append(f"{place} | {said}")
    compare(request, ["\n".join([feature, *lines]) for feature, lines in found.items()])
