"""Colours for programs: a Pygments lexer of the language, also for Sphinx, rich and documents.

Pygments finds it through its entry point, under the name `autodiff` and for `*.expr`. A program is
Python with functions and constants of its own; the lines of a session are told apart too.
"""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import bygroups, inherit
from pygments.lexers.python import PythonLexer
from pygments.token import Comment, Generic, Keyword, Name, Operator, Punctuation, Text, Whitespace


class ExprLexer(PythonLexer):
    """Programs of autodiff, and the lines of its sessions."""

    name = "autodiff"
    aliases: ClassVar[list[str]] = ["autodiff", "expr"]
    filenames: ClassVar[list[str]] = ["*.expr"]
    mimetypes: ClassVar[list[str]] = ["text/x-autodiff"]
    url = ""

    tokens: ClassVar[dict[str, list[object]]] = {
        "root": [
            (r"^(ad> |  ?\.\.  ?)", Generic.Prompt),
            (r"^(\s*)(:[A-Za-z]+)", bygroups(Whitespace, Keyword.Pseudo)),
            (r"#=>.*$", Comment.Special),
            (
                r"(\.)(grad|T|mT|shape|dtype|data|grad_fn|requires_grad)\b",
                bygroups(Operator, Name.Attribute),
            ),
            inherit,
            (r"[?!]", Punctuation),
            (r".", Text),
        ],
        "builtins": [(r"(?<!\.)\b(pi|inf|nan)\b", Keyword.Constant)],
        "name": [
            (r"@(?=\s*[A-Za-z_][\w.]*\s*(\(.*\))?\s*$)", Name.Decorator),
            (r"@", Operator),
            (r"[^\W\d]\w*(?=\s*\()", Name.Function),
            (r"[^\W\d]\w*", Name),
        ],
    }
