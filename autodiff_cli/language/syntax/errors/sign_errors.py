"""What is wrong with operators and words where they stand, in words: E102."""

from __future__ import annotations

import re

from ....errors import AutodiffError
from ..tokens import CELL, KEYWORDS, KIND, OPERAND_ENDS, TERMINALS
from .error_context import COMPARISONS, VALUE_STARTS, Context

_CONDITIONS = frozenset(KIND[name] for name in ("IF", "ELIF", "WHILE", "ASSERT", "RETURN"))
_KEYWORD_KINDS = frozenset(KEYWORDS.values())
_PAIRS = {
    ("&", "&"): ("&&", "and"),
    ("|", "|"): ("||", "or"),
    ("<", ">"): ("<>", "!="),
    ("==", "="): ("===", "=="),
    ("!=", "="): ("!==", "!="),
    ("=", ">"): ("=>", ">="),
    ("=", "<"): ("=<", "<="),
    (".", "*"): (".*", "*"),
    (".", "/"): ("./", "/"),
    (".", "^"): (".^", "**"),
}

# ---- signs and words ----------------------------------------------------------------------------


def prompt(context: Context) -> AutodiffError | None:
    """Pasted from a prompt or a notebook: `>>> x`, `%matplotlib inline`."""
    if not context.tokens.kinds:
        return None
    counted = CELL.match(context.tokens.source.text, context.tokens.starts[context.first])
    if counted is not None:
        at, prompt = context.first, counted[0]
        return context.fault("E102 prompt-not-part-program-3", prompt.strip(), prompt, index=at)
    if context.index > context.first + 1:
        return None
    head = context.text(context.first)
    if head == ">>" and context.first == context.index:
        return context.fault("E102 prompt-not-part-program")
    if head == "..." and context.index == context.first + 1:
        return context.fault("E102 prompt-not-part-program-2")
    if head == "%" and context.first == context.index:
        return context.fault("E102 notebook-commands-such-matplotlib")
    return None


def pair_of_signs(context: Context) -> AutodiffError | None:
    if not context.index or context.at_end():
        return None
    tokens = context.tokens
    pair = (context.text(context.index - 1), context.text(context.index))
    touching = tokens.ends[context.index - 1] == tokens.starts[context.index]
    if not touching or pair not in _PAIRS:
        return None
    wrong, right = _PAIRS[pair]
    return context.error(
        f"`{wrong}` is not an operator", "unexpected", f"write `{right}` for `{wrong}`"
    )


def reserved_word(context: Context) -> AutodiffError | None:
    word_at = context.index
    if context.text(context.index) == "=" and context.previous in _KEYWORD_KINDS:
        word_at = context.index - 1
    elif context.kind not in _KEYWORD_KINDS or "NAME" not in context.expected:
        return None
    word = context.text(word_at)
    if context.kind == KIND["NOT"] and context.previous not in OPERAND_ENDS:
        return context.fault("E102 not-needs-parentheses-here")
    if word in ("else", "elif", "for", "if", "in", "is", "and", "or", "as", "from"):
        last = context.text(context.index - 1) if context.index > context.first else ""
        place = f"after `{last}`" if last and word_at == context.index else "here"
        return context.fault("E102 stands-where-value-name", word=word, place=place, index=word_at)
    return context.fault("E102 word-language", word=word, index=word_at)


def equal_sign(context: Context) -> AutodiffError | None:
    text = context.text(context.index)
    if TERMINALS[context.kind] in COMPARISONS or not TERMINALS[context.kind].endswith("EQUAL"):
        return None
    if text != "=":
        return context.fault("E102 changes-variable-cannot-stand", text[:-1], text=text)
    if context.brackets and context.inside(context.brackets[-1]) == "the call":
        return context.fault("E102 call-wants-plain-name")
    if context.brackets or context.head in _CONDITIONS or context.previous not in OPERAND_ENDS:
        return context.fault("E102 assigns-comparison-written")
    return context.fault("E102 cannot-stand-here")


def no_else(context: Context) -> AutodiffError | None:
    if "ELSE" not in context.expected or "NAME" in context.expected:
        return None
    if context.kind in VALUE_STARTS and context.previous in OPERAND_ENDS:
        return None
    return context.fault(
        "E102 if-condition-needs-else",
        "`else` expected" if context.at_end() else "`else` expected before this",
    )


# What is written without parentheses in formulas.
_FUNCTIONS = "sin cos tan exp log ln sqrt abs tanh sinh cosh sum mean det"
_MATRIX = re.compile(r"\[([-+.\deE, \t]+;[-+.\deE, \t;]*)\]")  # rows as other languages part them
_BARS = re.compile(r"(\|\|?)([^|\n]+)\1")
FUNCTIONS = frozenset(_FUNCTIONS.split())


def _rows(context: Context) -> str:
    span = context.tokens.span(context.brackets[-1])
    matrix = _MATRIX.match(span.source.text, span.start)
    if matrix is None:
        return ""
    rows = (", ".join(re.split(r"[\s,]+", row.strip())) for row in matrix[1].split(";"))
    return f"`[{', '.join(f'[{row}]' for row in rows)}]` for `{matrix[0]}`"


def rows_of(context: Context) -> str:
    """What to write for a list of rows that `;` parts."""
    return _rows(context) or "`,` between entries; rows are lists: `[[1, 2], [3, 4]]`"


def side_by_side(context: Context) -> AutodiffError | None:
    """Two values with nothing between them."""
    if context.previous not in OPERAND_ENDS or context.kind not in VALUE_STARTS:
        return None
    if context.index == context.first:
        return None
    left, right = context.text(context.index - 1), context.text(context.index)
    if context.text(context.index - 2) == "//":
        return context.error("`//` divides", "words of a comment", "write `#` for `//`: a comment")
    if context.index == context.first + 1 and left in ("print", "exec", "del", "assert"):
        span = context.tokens.span(context.index)
        right = span.source.line(span.line)[span.column - 1 :].partition("#")[0].strip()
        return context.fault("E102 function-needs-parentheses", left=left, right=right)
    begin = context.tokens.span(context.first)
    if function := _FUNCTION.match(begin.source.text, begin.start):
        return context.error(
            "a function begins with `def`",
            "not a function",
            f"write `def {function[1]}:` for `{function[0]}`",
        )
    if context.head in (KIND["IMPORT"], KIND["FROM"]) and "AS" in context.expected:
        return context.fault("E102 unexpected-right-import", right=right)
    if left in _DECLARING and context.index == context.first + 1 and right.isidentifier():
        return context.fault(
            "E102 names-assigned-without", left=left, right=right, index=context.first
        )
    ended = context.line_end(context.index - 1)
    if context.brackets and context.line_of(context.index) > ended:
        return context.fault(
            "E102 stand-side-side-nothing-between", f"add `,` at the end of line {ended}",
            left=left, right=right,
        )  # fmt: skip
    if context.brackets and context.inside(context.brackets[-1]) == "the list":
        if rows := _rows(context):
            return context.fault(
                "E102 stand-side-side-nothing", "a `,` is missing before this", left=left,
                right=right, choice=rows,
            )  # fmt: skip
        return context.fault(
            "E102 stand-side-side-nothing-between",
            f"write `{left}, {right}`",
            left=left,
            right=right,
        )
    if not context.brackets and context.text(context.index + 1) == "=":
        return context.fault("E102 begins-line-another-statement", right=right)
    operator = left in FUNCTIONS and right.isidentifier()
    product = f"`{left}({right})`" if operator else f"`{left} * {right}`"
    choice = f"`{left}, {right}` or {product}" if context.brackets else product
    return context.fault(
        "E102 stand-side-side-nothing",
        "an operator or `,` is missing before this"
        if context.brackets
        else "an operator is missing before this",
        left=left,
        right=right,
        choice=choice,
    )


_DECLARING = frozenset({"let", "var", "const", "val", "auto", "double", "local", "set", "def"})
_FUNCTION = re.compile(r"(?:function|func|fn|fun|sub) +(\w+\([^()\n]*\))[ {:]*$", re.M)
_RANGE = re.compile(r"\[?([-\w.]+) *: *([-\w.]+)(?: *: *([-\w.]+))?\]?")
_INDEXED = re.compile(r"(\w+)(\([^()\n]*(?<=[(,\d]) *:(?= *[,)\d])[^()\n]*\))")
_PERCENT = re.compile(r"(\d+(?:\.\d+)?)%")
NEAR = 200  # characters around a place in which they are looked for


def notation(context: Context) -> AutodiffError | None:
    """Percentages, and ranges and indices as other languages write them."""
    span, last = context.place(None), context.text(context.index - 1)
    line = span.source.line(span.line)

    def marked(pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.finditer(line, max(span.column - NEAR, 0), span.column + NEAR)
        return next((m for m in found if m.start() < span.column <= m.end() + 1), None)

    if last == "%" and (percent := marked(_PERCENT)):
        part = f"write `{float(percent[1]) / 100:g}` for `{percent[0]}`"
        return context.error("`%` is the remainder of a division", "not a percentage", part)
    inside = context.inside(context.brackets[-1]) if context.brackets else ""
    if ":" not in (context.text(context.index), last) or inside == "the braces":
        return None
    index = marked(_INDEXED) if inside == "the call" else None
    if index and index[1] not in FUNCTIONS:
        meant = f"write `{index[1]}[{index[2][1:-1]}]` for `{index[0]}`"
        return context.error("an index stands in square brackets", "part of an index", meant)
    numbers = marked(_RANGE)
    loop = context.head == KIND["FOR"]
    if not numbers or not (loop or "=" in line[: span.column]):
        return None
    if inside == "the call" and numbers[1].isidentifier():  # a keyword
        return None
    first, last, step = numbers[1], numbers[3] or numbers[2], numbers[2] if numbers[3] else ""
    end = str(int(last) + 1) if last.isdigit() else f"{last} + 1"
    end = f"{last} + {step} {'//' if loop else '/'} 2, {step}" if step else end
    torch = "torch." if "import torch" in span.source.text else ""
    meant = f"write `{'range' if loop else f'{torch}arange'}({first}, {end})` for `{numbers[0]}`"
    return context.error("a range is not written with `:` here", "only in an index", meant)


def missing_value(context: Context) -> AutodiffError | None:
    """An operator, comma or closing bracket where a value should be."""
    if "NUMBER" not in context.expected or context.at_end():
        return None
    text = context.text(context.index)
    if context.index == context.first:
        return context.fault("E102 line-cannot-begin", text=text)
    last = context.text(context.index - 1)
    if text == last and text in (",", ";"):
        return context.fault("E102 nothing-stands-between", text=text)
    if text == "|":
        bars = _BARS.match(context.tokens.source.text, context.tokens.starts[context.index])
        function = "norm" if bars and bars[1] == "||" else "abs"
        meant = f"`{function}({bars[2]})` for `{bars[0]}`" if bars else "`abs(x)` for `|x|`"
        return context.fault("E102 value-missing-between-2", meant, last=last)
    return context.fault(
        "E102 value-missing-between",
        f"write a value after `{last}`"
        if last not in "([{,"
        else f"remove `{text}`, or write a value before it",
        last=last,
        text=text,
    )
