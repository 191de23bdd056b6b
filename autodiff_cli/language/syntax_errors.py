"""Says in words what is wrong where tokens do not fit the grammar: E101 to E106.

Each function looks for one kind of mistake around the offending token and returns its error or
None; the first that knows an answer gives it. The parser's own terms never show.
"""

from __future__ import annotations

from ..errors import AutodiffError, Label, fail
from ..source import Span
from .error_context import Context
from .tokens import (
    CLOSER,
    CLOSERS,
    END,
    FIELD_START,
    INDENT,
    KEYWORDS,
    KIND,
    LPAR,
    LSQB,
    NEWLINE,
    OPERAND_ENDS,
    TERMINALS,
    Tokens,
)
from .unsupported import unsupported

_HEADERS = frozenset(
    KIND[name]
    for name in (
        "IF", "ELIF", "ELSE", "WHILE", "FOR", "WITH", "DEF", "CLASS", "TRY", "EXCEPT", "FINALLY",
    )
)  # fmt: skip
_CONDITIONS = frozenset(KIND[name] for name in ("IF", "ELIF", "WHILE", "ASSERT", "RETURN"))
_VALUE_STARTS = frozenset(
    KIND[name]
    for name in (
        "NAME", "NUMBER", "STRING", "NUMLIST", "FSTRING_START", "LBRACE", "TRUE", "FALSE",
        "NONE", "LAMBDA", "ELLIPSIS",
    )
)  # fmt: skip
_KEYWORD_KINDS = frozenset(KEYWORDS.values())
_PAIRS = {
    ("&", "&"): ("&&", "and"),
    ("|", "|"): ("||", "or"),
    ("<", ">"): ("<>", "!="),
    ("==", "="): ("===", "=="),
    ("!=", "="): ("!==", "!="),
    ("=", ">"): ("=>", ">="),
    ("=", "<"): ("=<", "<="),
}


def explain(tokens: Tokens, index: int, expected: set[str]) -> AutodiffError:
    """The error of a token that does not fit; `expected` are the terminals that would have."""
    context = Context(tokens, index, expected)
    for look in (
        _empty_field, _unclosed, _indentation, unsupported, _without_if, _prompt, _pair_of_signs,
        _reserved_word, _missing_colon, _needs_in, _no_else, _line_ends, _equal_sign, _side_by_side,
        _missing_value, _in_field,
    ):  # fmt: skip
        error = look(context)
        if error is not None:
            return error
    return _unexpected(context)


# ---- brackets ---------------------------------------------------------------------------------


def _never_closed(context: Context, opener: int) -> bool:
    kinds = context.tokens.kinds
    depth = 0
    for at in range(context.index, len(kinds)):
        if kinds[at] in CLOSER:
            depth += 1
        elif kinds[at] in CLOSERS:
            depth -= 1
            if depth < 0:
                return False
    return True


def _inside(context: Context, opener: int) -> str:
    kinds = context.tokens.kinds
    if kinds[opener] == LSQB:
        subscript = opener > context.first and kinds[opener - 1] in OPERAND_ENDS
        return "the subscript" if subscript else "the list"
    if kinds[opener] == LPAR:
        call = opener > context.first and kinds[opener - 1] in OPERAND_ENDS
        return "the call" if call else "the parentheses"
    return "the braces"


def _unclosed(context: Context) -> AutodiffError | None:
    """E101: the innermost bracket left open, found when the next line does not fit into it."""
    if not context.brackets:
        return None
    tokens, index = context.tokens, context.index
    opener = context.brackets[-1]
    begins_line = context.line_of(index) > context.line_end(index - 1)
    ends_inside = context.kind == END or begins_line or _is_statement_sign(context)
    if not ends_inside or not _never_closed(context, opener):
        return None
    if tokens.kinds[opener] == FIELD_START:
        return context.error(
            "`{` is never closed in this f-string",
            "field opened here",
            "add `}` after the value",
            code="E103",
            index=opener,
        )
    found = index
    if begins_line:
        found = _sign_on_line(context) or index
    labels = []
    inside = _inside(context, opener)
    if context.kind != END:
        text = f"found `{context.text(found)}` while still inside {inside}"
        labels.append(Label(tokens.span(found), text))
    closers = "".join(
        {"(": ")", "[": "]", "{": "}"}.get(tokens.text(at), "") for at in reversed(context.brackets)
    )
    line = context.line_end(index - 1)
    where = f"at the end of line {line}"
    if not begins_line and context.kind != END:
        where = f"before the `{context.text(index)}`"
    return fail(
        "E101",
        f"`{tokens.text(opener)}` is never closed",
        tokens.span(opener),
        label="opened here",
        labels=tuple(labels),
        help=f"add `{closers}` {where}",
    )


def _is_statement_sign(context: Context) -> bool:
    return TERMINALS[context.kind].endswith("EQUAL") or TERMINALS[context.kind] in (
        "COLON",
        "SEMICOLON",
    )


def _sign_on_line(context: Context) -> int | None:
    """The `=` or `:` that shows that the offending token begins a statement."""
    tokens = context.tokens
    line = context.line_of(context.index)
    for at in range(context.index, min(context.index + 40, len(tokens.kinds) - 1)):
        if context.line_of(at) != line or tokens.kinds[at] in CLOSER:
            return None
        name = TERMINALS[tokens.kinds[at]] if tokens.kinds[at] < len(TERMINALS) else ""
        if name == "EQUAL" or (name.endswith("_EQUAL") and name not in _COMPARISONS):
            return at
    return None


_COMPARISONS = frozenset(["EQUAL_EQUAL", "NOT_EQUAL", "LESS_EQUAL", "GREATER_EQUAL"])


# ---- lines and blocks ---------------------------------------------------------------------------


def _indentation(context: Context) -> AutodiffError | None:
    if "INDENT" in context.expected and context.kind != INDENT:
        header = context.line_start(context.index - 1)
        word = context.text(header)
        line = context.line_of(header)
        at = context.index if not context.at_end() else context.index - 1
        return context.error(
            f"the `{word}` of line {line} has no indented block",
            "a block was expected here" if at == context.index else "nothing follows",
            "indent the lines of the block by 4 spaces, or write `pass` there",
            code="E104",
            index=at,
        )
    if context.kind == INDENT:
        tokens = context.tokens
        column = tokens.values[context.index]
        after = min(context.index + 1, len(tokens.kinds) - 1)
        span = Span(tokens.source, tokens.starts[context.index], tokens.ends[after])
        return fail(
            "E104",
            f"this line is indented by {column}, but no block begins before it",
            span,
            label="unexpected indentation",
            help="remove the spaces at the beginning of the line",
        )
    return None


def _missing_colon(context: Context) -> AutodiffError | None:
    if context.head not in _HEADERS or "COLON" not in context.expected or context.brackets:
        return None
    word = context.text(context.first)
    if context.at_end():
        return context.error(
            f"`:` is missing at the end of the `{word}` line",
            "`:` expected after this",
            f"write `{_header(context)}:`",
        )
    if TERMINALS[context.kind].endswith("EQUAL"):
        return None
    if word == "else" and context.text(context.index) == "if":
        return context.error("`else if` is written `elif`", "unexpected `if`", "write `elif`")
    if context.previous in OPERAND_ENDS and context.kind in _VALUE_STARTS:
        return context.error(
            f"`:` is missing in the `{word}` line",
            "`:` expected before this",
            f"write `{context.text(context.index - 1)}: {context.text(context.index)}`",
        )
    return None


def _header(context: Context) -> str:
    """The line up to the offending token, or its last word when it is long."""
    tokens = context.tokens
    start, end = tokens.starts[context.first], tokens.ends[context.index - 1]
    text = tokens.source.text[start:end]
    return text if len(text) <= 60 and "\n" not in text else context.text(context.index - 1)


def _needs_in(context: Context) -> AutodiffError | None:
    expected = context.expected
    if context.head != KIND["FOR"] or "IN" not in expected or "COLON" in expected:
        return None
    last = context.text(context.index - 1)
    label = "`in` expected after this" if context.at_end() else "`in` expected before this"
    return context.error("a `for` needs `in`", label, f"write `for {last} in ...:`")


def _without_if(context: Context) -> AutodiffError | None:
    if context.index != context.first or TERMINALS[context.kind] not in (
        "ELSE", "ELIF", "EXCEPT", "FINALLY",
    ):  # fmt: skip
        return None
    word = context.text(context.index)
    if TERMINALS[context.kind] in ("EXCEPT", "FINALLY"):
        return context.error(
            f"`{word}` without a `try` before it",
            "nothing to belong to",
            f"write `try:` above, at the indentation of `{word}`",
        )
    return context.error(
        f"`{word}` without an `if` before it",
        "nothing to belong to",
        f"write `if condition:` above, at the indentation of `{word}`",
    )


def _line_ends(context: Context) -> AutodiffError | None:
    """The line stops where something is missing."""
    if not context.at_end() or context.index == context.first:
        if (
            context.previous == NEWLINE
            and "AT" in context.expected
            and "PASS" not in (context.expected)
        ):
            return context.error(
                "a decorator stands before `def` or `class`",
                "not a definition",
                "write `def name():` below the decorator",
            )
        return None
    last = context.text(context.index - 1)
    before = context.text(context.index - 2) if context.index - 2 >= context.first else ""
    if last in ("+", "-") and before == last:
        name = context.text(context.first)
        return context.error(
            f"`{before}{last}` is not an operator",
            "a value was expected after this",
            f"write `{name} {last}= 1`",
        )
    if "NAME" in context.expected or "NUMBER" in context.expected:
        what = "a name" if "NUMBER" not in context.expected else "a value"
        return context.error(
            f"the line ends after `{last}`, where {what} is needed",
            f"{what} is missing after this",
            f"write {what} after `{last}`; to go on in the next line, use parentheses",
        )
    if context.expected & {"LPAR"} and context.head == KIND["DEF"]:
        return context.error("a function needs parentheses", "`()` expected", f"write `{last}():`")
    wanted = _wanted(context)
    return context.error(
        f"the line ends after `{last}`, where {wanted} is needed",
        f"{wanted} is missing after this",
        f"write {wanted} after `{last}`",
    )


# ---- signs and words ----------------------------------------------------------------------------


def _prompt(context: Context) -> AutodiffError | None:
    """Pasted from a prompt or a notebook: `>>> x`, `%matplotlib inline`."""
    if context.index > context.first + 1 or not context.tokens.kinds:
        return None
    head = context.text(context.first)
    if head == ">>" and context.first == context.index:
        return context.error(
            "the prompt `>>>` is not part of a program", "prompt", "remove the `>>> `"
        )
    if head == "..." and context.index == context.first + 1:
        return context.error(
            "the prompt `...` is not part of a program",
            "after a prompt",
            "remove the `... ` in front of the line",
        )
    if head == "%" and context.first == context.index:
        return context.error(
            "notebook commands such as `%matplotlib` are not part of a program",
            "notebook command",
            "remove this line",
        )
    return None


def _pair_of_signs(context: Context) -> AutodiffError | None:
    if not context.index or context.at_end():
        return None
    tokens = context.tokens
    pair = (context.text(context.index - 1), context.text(context.index))
    touching = tokens.ends[context.index - 1] == tokens.starts[context.index]
    if not touching or pair not in _PAIRS:
        return None
    wrong, right = _PAIRS[pair]
    return context.error(f"`{wrong}` is not an operator", "unexpected", f"write `{right}`")


def _reserved_word(context: Context) -> AutodiffError | None:
    word_at = context.index
    if context.text(context.index) == "=" and context.previous in _KEYWORD_KINDS:
        word_at = context.index - 1
    elif context.kind not in _KEYWORD_KINDS or "NAME" not in context.expected:
        return None
    word = context.text(word_at)
    if context.kind == KIND["NOT"] and context.previous not in OPERAND_ENDS:
        return context.error(
            "`not` needs parentheses here", "after an operator", "write `(not ...)`"
        )
    if word in ("else", "elif", "for", "if", "in", "is", "and", "or", "as", "from"):
        last = context.text(context.index - 1) if context.index > context.first else ""
        place = f"after `{last}`" if last and word_at == context.index else "here"
        return context.error(
            f"`{word}` stands where a value or name is needed",
            f"a value is missing {place}",
            f"write a value before `{word}`; as a name, write `{word}_`",
            index=word_at,
        )
    return context.error(
        f"`{word}` is a word of the language, not a name or value",
        "reserved word",
        f"choose another name, such as `{word}_`",
        index=word_at,
    )


def _equal_sign(context: Context) -> AutodiffError | None:
    text = context.text(context.index)
    if TERMINALS[context.kind] in _COMPARISONS or not TERMINALS[context.kind].endswith("EQUAL"):
        return None
    if text != "=":
        return context.error(
            f"`{text}` changes a variable and cannot stand inside an expression",
            "a statement of its own",
            f"write `{text}` on a line of its own, or `{text[:-1]}` for the value",
        )
    if context.brackets and _inside(context, context.brackets[-1]) == "the call":
        return context.error(
            "`=` in a call wants a plain name before it",
            "names an argument",
            "write `name=value` for a keyword argument, or `==` to compare",
        )
    if context.brackets or context.head in _CONDITIONS or context.previous not in OPERAND_ENDS:
        return context.error(
            "`=` assigns; a comparison is written `==`", "assignment", "write `==` to compare"
        )
    return context.error(
        "`=` cannot stand here", "unexpected `=`", "write `==` to compare, or one `=` a statement"
    )


def _no_else(context: Context) -> AutodiffError | None:
    if "ELSE" not in context.expected or "NAME" in context.expected:
        return None
    if context.kind in _VALUE_STARTS and context.previous in OPERAND_ENDS:
        return None
    return context.error(
        "`a if condition` needs an `else`",
        "`else` expected" if context.at_end() else "`else` expected before this",
        "write `a if condition else b`",
    )


def _side_by_side(context: Context) -> AutodiffError | None:
    """Two values with nothing between them."""
    if context.previous not in OPERAND_ENDS or context.kind not in _VALUE_STARTS:
        return None
    if context.index == context.first:
        return None
    left, right = context.text(context.index - 1), context.text(context.index)
    if context.index == context.first + 1 and left in ("print", "exec", "del", "assert"):
        return context.error(
            f"`{left}` is a function and needs parentheses", "argument", f"write `{left}({right})`"
        )
    if context.head in (KIND["IMPORT"], KIND["FROM"]) and "AS" in context.expected:
        return context.error(
            f"unexpected `{right}` in an import", "unexpected", f"write `as {right}`"
        )
    if left in _DECLARING and context.index == context.first + 1 and right.isidentifier():
        return context.error(
            f"names are assigned without `{left}`", "no word before it", f"write `{right} = ...`",
            index=context.first,
        )  # fmt: skip
    if context.brackets and _inside(context, context.brackets[-1]) == "the list":
        return context.error(
            f"`{left}` and `{right}` stand side by side with nothing between them",
            "a `,` is missing before this",
            f"write `{left}, {right}`",
        )
    if not context.brackets and context.text(context.index + 1) == "=":
        return context.error(
            f"`{right} = ...` begins in the line of another statement",
            "a new statement",
            f"begin a new line before `{right}`, or write `;`",
        )
    product = f"`{left} * {right}`"
    choice = f"`{left}, {right}` or {product}" if context.brackets else product
    return context.error(
        f"`{left}` and `{right}` stand side by side with nothing between them",
        "an operator or `,` is missing before this"
        if context.brackets
        else "an operator is missing before this",
        f"write {choice}",
    )


_DECLARING = frozenset({"let", "var", "const", "val", "auto", "double", "local", "set", "def"})


def _missing_value(context: Context) -> AutodiffError | None:
    """An operator, comma or closing bracket where a value should be."""
    if "NUMBER" not in context.expected or context.at_end():
        return None
    text = context.text(context.index)
    if context.index == context.first:
        return context.error(
            f"a line cannot begin with `{text}`",
            "nothing before it",
            f"write a value before `{text}`",
        )
    last = context.text(context.index - 1)
    if text == last and text in (",", ";"):
        return context.error(
            f"nothing stands between `{text}` and `{text}`",
            "the second one",
            f"remove one `{text}`",
        )
    if text == "|":
        return context.error(
            f"a value is missing between `{last}` and `|`",
            "`|` is `or` of bits",
            "write `abs(x)` for the absolute value of x",
        )
    return context.error(
        f"a value is missing between `{last}` and `{text}`",
        f"a value was expected before this `{text}`",
        f"write a value after `{last}`"
        if last not in "([{,"
        else f"remove `{text}`, or write a value before it",
    )


# ---- f-strings ----------------------------------------------------------------------------------


def _empty_field(context: Context) -> AutodiffError | None:
    """E103: `f'{}'`."""
    if context.previous != FIELD_START or TERMINALS[context.kind] not in (
        "FIELD_END",
        "FIELD_COLON",
        "CONVERSION",
    ):
        return None
    span = context.tokens.span(context.index - 1).to(context.tokens.span(context.index))
    return fail(
        "E103",
        "a field of this f-string has no value in it",
        span,
        label="nothing between the braces",
        help="write `{name}`, or `{{}}` for the braces themselves",
    )


def _in_field(context: Context) -> AutodiffError | None:
    if not context.brackets or context.tokens.kinds[context.brackets[-1]] != FIELD_START:
        return None
    text = context.text(context.index)
    return context.error(
        f"unexpected `{text}` in a field of this f-string",
        "unexpected",
        "write one expression between `{` and `}`",
        code="E103",
    )


# ---- everything else ----------------------------------------------------------------------------


def _wanted(context: Context) -> str:
    """What would fit, in words."""
    expected = context.expected
    if "NUMBER" in expected:
        return "a value"
    if "NAME" in expected:
        return "a name"
    for name in ("COLON", "IN", "RPAR", "RSQB", "RBRACE", "LPAR", "IMPORT", "COMMA", "NEWLINE"):
        if name in expected:
            return "the end of the line" if name == "NEWLINE" else f"`{_SPELLED[name]}`"
    return "something else"


_SPELLED = {
    "COLON": ":", "IN": "in", "RPAR": ")", "RSQB": "]", "RBRACE": "}", "LPAR": "(",
    "IMPORT": "import", "COMMA": ",",
}  # fmt: skip


def _unexpected(context: Context) -> AutodiffError:
    if context.at_end():
        last = context.text(context.index - 1) if context.index else ""
        return context.error(
            f"the text ends after `{last}`, where {_wanted(context)} is needed",
            "ends here",
            f"write {_wanted(context)}",
        )
    text = context.text(context.index)
    wanted = _wanted(context)
    if text == ";" and context.brackets and _inside(context, context.brackets[-1]) == "the list":
        return context.error(
            "`;` ends a statement and cannot separate entries",
            "inside the list",
            "write `,` between entries; rows are lists: `[[1, 2], [3, 4]]`",
        )
    help = f"remove `{text}`"
    if wanted not in ("something else", "the end of the line"):
        help = f"write {wanted} here, or remove `{text}`"
    return context.error(f"unexpected `{text}`", "does not fit here", help)
