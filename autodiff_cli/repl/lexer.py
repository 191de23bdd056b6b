"""Colours for programs: a Pygments lexer of the language, also for Sphinx, rich and documents.

Pygments finds it through its entry point, under the name `autodiff` and for `*.expr`.
"""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import RegexLexer, bygroups, include, words
from pygments.token import (
    Comment,
    Generic,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Text,
    Whitespace,
)

_KEYWORDS = (
    "and", "as", "assert", "break", "class", "continue", "def", "del", "elif", "else", "for",
    "from", "global", "if", "import", "in", "is", "lambda", "nonlocal", "not", "or", "pass",
    "raise", "return", "while", "with",
)  # fmt: skip
_ATTRIBUTES = ("grad", "T", "mT", "shape", "dtype", "data", "grad_fn", "requires_grad")


class ExprLexer(RegexLexer):
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
            (r"\n", Whitespace),
            (r"[^\S\n]+", Text),
            (r"#=>.*$", Comment.Special),
            (r"#.*$", Comment.Single),
            (r"(def)(\s+)(\w+)", bygroups(Keyword, Text, Name.Function)),
            (r"(class)(\s+)(\w+)", bygroups(Keyword, Text, Name.Class)),
            (r"(import|from)(\s+)([\w.]+)", bygroups(Keyword.Namespace, Text, Name.Namespace)),
            (words(_KEYWORDS, prefix=r"\b", suffix=r"\b"), Keyword),
            (r"\b(True|False|None|pi|inf|nan)\b", Keyword.Constant),
            (r'(?i)(rb|br|fr|rf|[rbfu])?("""|\'\'\')', String, "long"),
            (r'(?i)(rb|br|fr|rf|[rbfu])?"(\\.|[^"\\\n])*("|$)', String.Double),
            (r"(?i)(rb|br|fr|rf|[rbfu])?'(\\.|[^'\\\n])*('|$)", String.Single),
            include("numbers"),
            (rf"(\.)({'|'.join(_ATTRIBUTES)})\b", bygroups(Punctuation, Name.Attribute)),
            (r"@(?=\s*[A-Za-z_][\w.]*\s*(\(.*\))?\s*$)", Name.Decorator),
            (r"[^\W\d]\w*(?=\s*\()", Name.Function),
            (r"[^\W\d]\w*", Name),
            (r"\*\*|//|->|:=|<=|>=|==|!=|<<|>>|[-+*/%@&|^~<>=]", Operator),
            (r"[\[\](){}:;,.?!\\]", Punctuation),
            (r".", Text),
        ],
        "numbers": [
            (r"0[xX][0-9a-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+", Number.Integer),
            (r"(\d[\d_]*\.?[\d_]*|\.\d[\d_]*)[eE][-+]?\d[\d_]*", Number.Float),
            (r"\d[\d_]*\.[\d_]*|\.\d[\d_]*", Number.Float),
            (r"\d[\d_]*", Number.Integer),
        ],
        "long": [
            (r'"""|\'\'\'', String, "#pop"),
            (r"[^\"'\\]+|\\.|[\"']", String),
        ],
    }
