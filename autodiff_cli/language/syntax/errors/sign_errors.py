"""What is wrong with operators and words where they stand, in words: E102."""

from __future__ import annotations

from ....errors import AutodiffError
from ..tokens import KEYWORDS, KIND, OPERAND_ENDS, TERMINALS
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
}

# ---- signs and words ----------------------------------------------------------------------------


def prompt(context: Context) -> AutodiffError | None:
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


def pair_of_signs(context: Context) -> AutodiffError | None:
    if not context.index or context.at_end():
        return None
    tokens = context.tokens
    pair = (context.text(context.index - 1), context.text(context.index))
    touching = tokens.ends[context.index - 1] == tokens.starts[context.index]
    if not touching or pair not in _PAIRS:
        return None
    wrong, right = _PAIRS[pair]
    return context.error(f"`{wrong}` is not an operator", "unexpected", f"write `{right}`")


def reserved_word(context: Context) -> AutodiffError | None:
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


def equal_sign(context: Context) -> AutodiffError | None:
    text = context.text(context.index)
    if TERMINALS[context.kind] in COMPARISONS or not TERMINALS[context.kind].endswith("EQUAL"):
        return None
    if text != "=":
        return context.error(
            f"`{text}` changes a variable and cannot stand inside an expression",
            "a statement of its own",
            f"write `{text}` on a line of its own, or `{text[:-1]}` for the value",
        )
    if context.brackets and context.inside(context.brackets[-1]) == "the call":
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


def no_else(context: Context) -> AutodiffError | None:
    if "ELSE" not in context.expected or "NAME" in context.expected:
        return None
    if context.kind in VALUE_STARTS and context.previous in OPERAND_ENDS:
        return None
    return context.error(
        "`a if condition` needs an `else`",
        "`else` expected" if context.at_end() else "`else` expected before this",
        "write `a if condition else b`",
    )


def side_by_side(context: Context) -> AutodiffError | None:
    """Two values with nothing between them."""
    if context.previous not in OPERAND_ENDS or context.kind not in VALUE_STARTS:
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
    if context.brackets and context.inside(context.brackets[-1]) == "the list":
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


def missing_value(context: Context) -> AutodiffError | None:
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
