"""From text to tokens: words, operators, indentation, strings, f-strings, lists of numbers.

Four lists of equal length describe the tokens: kind, start, end, and a value where the text alone
is not one. A token that is wrong becomes one of kind ERROR whose value is the AutodiffError; the
lexer then goes on at the next line. Reading is linear in the text and needs no recursion.
"""

from __future__ import annotations

import re
from typing import Any

from ...errors import AutodiffError, fault
from ...source import Source, Span
from .errors.lexical_errors import bad_prefix, mismatch, unknown_character
from .grammar import TABLES as tables
from .literals.numbers import (
    MAX_NESTING,
    MAX_NUMBERS,
    MAX_ROWS,
    NumListScanner,
    first_depth,
    invalid_number,
    nested_too_deep,
    parse_number,
)
from .literals.strings import body_end, fstring_text_end, spec_end, unescape, unterminated
from .tokens import (
    CLOSER,
    COLON,
    CONVERSION,
    DEDENT,
    END,
    EQUAL,
    ERROR,
    FIELD_COLON,
    FIELD_END,
    FIELD_EQUAL,
    FIELD_START,
    FSTRING_END,
    FSTRING_START,
    FSTRING_TEXT,
    INDENT,
    KEYWORDS,
    LBRACE,
    LITERALS,
    LPAR,
    LSQB,
    NAME,
    NEWLINE,
    NUMBER,
    NUMLIST,
    OPENER,
    OPERAND_ENDS,
    RBRACE,
    RPAR,
    RSQB,
    STRING,
    WALRUS,
    Tokens,
)

MAX_TOKENS = 2_000_000
MAX_NAME = 10_000
MAX_INDENT = 10_000

_BRACKETS = frozenset([LPAR, LSQB, LBRACE, RPAR, RSQB, RBRACE])
_NO_STATEMENT = frozenset([NEWLINE, INDENT, DEDENT])
_FIELD_MARKS = frozenset([COLON, WALRUS, EQUAL])
_TOKEN = re.compile(tables.PATTERN)
_BEFORE_CODE = " \t\f\r\n#\ufeff"
_BLANK_LINES = re.compile(r"(?:[ \t\f\r]*+(?:#[^\n]*+)?+\n)*+")
_INDENTATION = re.compile(r"[ \t\f]*+")
# Kept as text: rarely needed, so compiled when they are.
_REST_OF_NUMBER = r"[\w.]++"
_AFTER_DEBUG = r"[ \t]*+(?:[}:]|![^=])"


Columns = tuple[tuple[int, int], ...]
"""The columns of the open blocks, with a tab counted up to the next multiple of 8, and as one."""


class _FString:
    """An f-string being read: where it and its last field begin, and in which specs it is."""

    __slots__ = ("field", "opening", "quote", "raw", "spec_depths", "start")

    def __init__(self, opening: str, quote: str, raw: bool, start: int):
        self.opening = opening
        self.quote = quote
        self.raw = raw
        self.start = start
        self.field = start
        self.spec_depths: list[int] = []


class _Stop(Exception):
    """Nothing after this place can be read."""


class Lexer:
    """Reads one text, from `start` on, with the columns of the blocks that are open there."""

    def __init__(self, source: Source, start: int = 0, indents: Columns = ((0, 0),)):
        self.source = source
        self.text = source.text
        self.at = start
        self.tokens = Tokens(source)
        self.indents = [column for column, _ in indents]
        self.tab_indents = [column for _, column in indents]
        self.brackets: list[tuple[int, int]] = []
        self.fstrings: list[_FString] = []
        self.numbers = NumListScanner(source.text)

    # ---- emitting -------------------------------------------------------------------------

    def emit(self, kind: int, start: int, end: int, value: object = None) -> None:
        tokens = self.tokens
        tokens.kinds.append(kind)
        tokens.starts.append(start)
        tokens.ends.append(end)
        tokens.values.append(value)

    def last_end(self) -> int:
        ends = self.tokens.ends
        return ends[-1] if ends else 0

    def error(self, error: AutodiffError, resume: int | None = None) -> None:
        """Put the error among the tokens and go on at the next line."""
        span = error.span
        start = span.start if span else self.at
        self.emit(ERROR, start, span.end if span else start, error)
        self.brackets.clear()
        self.fstrings.clear()
        end = self.text.find("\n", self.at if resume is None else resume)
        self.at = len(self.text) if end < 0 else end

    def fault(self, which: str, *facts: Any, span: tuple[int, int], **named: Any) -> None:
        """Put a failure of a part of the text among the tokens."""
        self.error(fault(which, *facts, span=Span(self.source, *span), **named))

    def field_unclosed(self) -> None:
        """Put the failure of `f'{x'` among the tokens."""
        fstring = self.fstrings[-1]
        span = fstring.field, fstring.field + 1
        self.fault("E103 never-closed-f-string", quote=fstring.quote, span=span)

    # ---- the loop -------------------------------------------------------------------------

    def run(self) -> Tokens:
        try:
            self.begin_line()
            while self.at < len(self.text):
                self.run_code()
        except _Stop:
            pass
        self.finish()
        return self.tokens

    def finish(self) -> None:
        tokens = self.tokens
        end = self.last_end()
        if self.brackets and all(len(fstring.quote) == 3 for fstring in self.fstrings):
            tokens.open_at_end = True
        if not self.brackets:
            if tokens.kinds and tokens.kinds[-1] not in (NEWLINE, DEDENT):
                self.emit(NEWLINE, end, end)
            for _ in self.indents[1:]:
                self.emit(DEDENT, end, end)
        tokens.indents = self.indents
        self.emit(END, len(self.text), len(self.text))

    def run_code(self) -> None:
        """Read tokens until the mode changes or something is wrong."""
        text, match_token = self.text, _TOKEN.match
        tokens = self.tokens
        kinds, starts, ends, values = tokens.kinds, tokens.starts, tokens.ends, tokens.values
        keywords, literals, name_kind, fstrings = KEYWORDS, LITERALS, NAME, self.fstrings
        brackets, openers = self.brackets, OPENER
        plain, endless = text.isascii(), len(text) > MAX_TOKENS
        at = self.at
        while True:
            match = match_token(text, at)
            if match is None:
                self.at = at
                self.unknown_character()
                return
            group: Any = match.lastindex  # every alternative is a group
            start, at = match.span(group)
            if group == 2:
                word = text[start:at]
                kind = keywords.get(word, name_kind)
                if at - start > MAX_NAME or not (plain or word.isascii()):
                    self.emit(kind, start, at)
                    self.at = at
                    self.check_name(word, start)
                    at = self.at
                    continue
            elif group == 4:
                kind = literals[text[start:at]]
                if kind in openers and brackets and brackets[-1][0] == openers[kind]:
                    brackets.pop()
                elif kind in _BRACKETS or (fstrings and kind in _FIELD_MARKS):
                    self.at = at
                    if not self.bracket(kind, start, at):
                        return
                    at = self.at
                    continue
            elif group == 5 or group == 7:
                continue
            else:
                self.at = at
                if group == 3:
                    self.number(start)
                elif group == 6:
                    if not self.line_end():
                        return
                elif not self.quote(start, text[start:at]):
                    return
                at = self.at
                continue
            kinds.append(kind)
            starts.append(start)
            ends.append(at)
            values.append(None)
            if endless and len(kinds) > MAX_TOKENS:
                self.at = at
                self.too_many()

    # ---- lines ----------------------------------------------------------------------------

    def line_end(self) -> bool:
        """End the statement, unless a bracket is open. False when that is in an f-string."""
        if self.brackets:
            if not self.fstrings or len(self.fstrings[-1].quote) == 3:
                return True
            self.at -= 1
            self.field_unclosed()
            return False
        tokens = self.tokens
        if tokens.kinds and tokens.kinds[-1] not in _NO_STATEMENT:
            end = tokens.ends[-1]
            self.emit(NEWLINE, end, end)
        self.begin_line()
        return True

    def begin_line(self) -> None:
        """Skip blank lines and compare the indentation of the next one with the open blocks."""
        text = self.text
        if len(self.indents) == 1 and text[self.at : self.at + 1] not in _BEFORE_CODE:
            return
        if self.at == 0 and text.startswith("\ufeff"):
            self.at = 1
        blank = _BLANK_LINES.match(text, self.at)
        start = blank.end() if blank else self.at
        indentation = _INDENTATION.match(text, start)
        self.at = indentation.end() if indentation else start
        if self.at >= len(text) or text[self.at] == "#":
            # A comment here is on the last line, which has no line end.
            self.at = len(text)
            return
        if self.at - start > MAX_INDENT:
            size = self.at - start
            span = start, start + 1
            self.fault("E104 line-indented-characters", size, most=MAX_INDENT, span=span)
            return
        blanks = text[start : self.at].rpartition("\f")[2]
        column = len(blanks.expandtabs(8)) if "\t" in blanks else len(blanks)
        self.indent(column, len(blanks), start)

    def indent(self, column: int, tab_column: int, start: int) -> None:
        """Emit INDENT or DEDENTs. `tab_column` counts a tab as one: both must tell the same."""
        indents, tab_indents = self.indents, self.tab_indents
        previous = self.last_end()
        if column > indents[-1]:
            if tab_column <= tab_indents[-1]:
                self.fault("E104 line-mixes-tabs-spaces", span=(start, self.at))
                return
            if len(indents) > MAX_NESTING:
                self.error(nested_too_deep(self.source, self.at, "blocks"))
                raise _Stop
            indents.append(column)
            tab_indents.append(tab_column)
            self.emit(INDENT, start, self.at, column)
            return
        above = indents[-1]
        while column < indents[-1]:
            above = indents[-1]
            indents.pop()
            tab_indents.pop()
            self.emit(DEDENT, previous, previous)
        if column != indents[-1]:
            span, below = (start, self.at), indents[-1]
            self.fault("E104 line-indented", self.at - start, below=below, above=above, span=span)
        elif tab_column != tab_indents[-1]:
            self.fault("E104 line-mixes-tabs-spaces", span=(start, self.at))

    # ---- names and numbers ----------------------------------------------------------------

    def check_name(self, word: str, start: int) -> None:
        """Names are compared in their NFKC form, as in Python."""
        if len(word) > MAX_NAME:
            self.tokens.remove(len(self.tokens.kinds) - 1)
            span, size = (start, start + 20), len(word)
            self.fault("E102 name-characters-too-long", size=size, most=MAX_NAME, span=span)
        elif not word.isascii():
            from unicodedata import normalize

            if word.isidentifier():
                self.tokens.values[-1] = normalize("NFKC", word)
                return
            self.tokens.remove(len(self.tokens.kinds) - 1)
            bad = next((c for c in word if not ("a" + c).isidentifier()), word[0])
            self.at = start + word.index(bad)
            self.unknown_character()

    def number(self, start: int) -> None:
        end = self.at
        text = self.text
        if end < len(text) and _continues(text, start, end):
            rest = re.compile(_REST_OF_NUMBER).match(text, end)
            word = rest.group() if rest else ""
            if rest and (word not in KEYWORDS or text[end - 1] == "_"):
                span = Span(self.source, start, rest.end())
                self.error(invalid_number(text[start : min(rest.end(), start + 400)], span))
                return
        try:
            self.emit(NUMBER, start, end, parse_number(text[start:end], self.source, start))
        except AutodiffError as error:
            self.error(error)

    # ---- brackets -------------------------------------------------------------------------

    def bracket(self, kind: int, start: int, end: int) -> bool:
        """Open or close a bracket, or mark a part of an f-string's field.

        False when the mode or the place of reading has changed.
        """
        if kind in CLOSER:
            if kind == LSQB and self.number_list(start):
                return True
            self.open(kind, start)
        elif kind in _FIELD_MARKS:
            return self.field_mark(kind, start, end)
        else:
            return self.close(kind, start, end)
        self.emit(kind, start, end)
        return True

    def open(self, kind: int, start: int) -> None:
        if len(self.brackets) >= MAX_NESTING:
            self.error(nested_too_deep(self.source, start))
            raise _Stop
        self.brackets.append((kind, start))

    def number_list(self, start: int) -> bool:
        kinds = self.tokens.kinds
        if kinds and kinds[-1] in OPERAND_ENDS:
            return False
        found = self.numbers.scan(start)
        if found is None:
            return False
        values, end = found
        if values is None:
            span = Span(self.source, start, start + 1)
            self.tokens.refused = fault("E108 list-too-long", MAX_NUMBERS, MAX_ROWS, span=span)
            raise _Stop
        if first_depth(values) + len(self.brackets) > MAX_NESTING:
            return False
        self.emit(NUMLIST, start, end, values)
        self.at = end
        return True

    def close(self, kind: int, start: int, end: int) -> bool:
        """End a field of an f-string; anything else closes what is not open."""
        opened = self.brackets[-1] if self.brackets else None
        if opened and opened[0] == FIELD_START and kind == RBRACE:
            self.brackets.pop()
            self.emit(FIELD_END, start, end)
            return self.fstring_text()
        self.error(mismatch(self.source, start, end, opened), resume=start)
        return False

    # ---- strings --------------------------------------------------------------------------

    def quote(self, start: int, opening: str) -> bool:
        """Read a string, or begin an f-string. False when the mode or place has changed."""
        text = self.text
        prefix, quote = opening[:-1].lower(), opening[-1]
        if text.startswith(quote * 2, self.at):
            quote *= 3
            self.at += 2
        if self.fstrings and self.ends_field(quote):
            self.field_unclosed()
            return False
        if prefix not in ("", "r", "u", "f", "fr", "rf"):
            self.error(bad_prefix(self.source, start, opening))
            return False
        raw = "r" in prefix
        if "f" in prefix:
            self.emit(FSTRING_START, start, self.at)
            if len(self.fstrings) >= MAX_NESTING:
                self.error(nested_too_deep(self.source, start, "f-strings"))
                raise _Stop
            self.fstrings.append(_FString(text[start : self.at], quote, raw, start))
            return self.fstring_text()
        begin = self.at
        end = body_end(text, begin, quote)
        if end is None and self.fstrings:
            self.field_unclosed()
            return False
        if end is None:
            return self.unclosed(start, text[start:begin])
        self.at = end + len(quote)
        body = text[begin:end]
        try:
            value = body if raw else unescape(self.source, begin, body)
        except AutodiffError as error:
            self.error(error)
            return False
        self.emit(STRING, start, self.at, value)
        return True

    def unclosed(self, start: int, opening: str) -> bool:
        self.error(unterminated(self.source, start, opening))
        if len(opening.lstrip("rRbBuUfF")) == 3:
            self.tokens.open_at_end = True
            raise _Stop
        return False

    def ends_field(self, quote: str) -> bool:
        """Whether a quote inside a field can only be the end of the f-string around it."""
        kinds = self.tokens.kinds
        return quote == self.fstrings[-1].quote and kinds[-1] in OPERAND_ENDS

    def fstring_text(self) -> bool:
        """Read literal text of the innermost f-string up to its next field or its end."""
        fstring, text, start = self.fstrings[-1], self.text, self.at
        in_spec = bool(fstring.spec_depths) and fstring.spec_depths[-1] == len(self.brackets)
        if in_spec:
            end = spec_end(text, start, fstring.quote)
        else:
            end = fstring_text_end(text, start, fstring.quote, fstring.raw)
        if end > start:
            body = text[start:end]
            if not in_spec:
                body = body.replace("{{", "{").replace("}}", "}")
            try:
                value = body if fstring.raw else unescape(self.source, start, body)
            except AutodiffError as error:
                self.error(error)
                return False
            self.emit(FSTRING_TEXT, start, end, value)
        self.at = end
        if text.startswith("{", end):
            self.open(FIELD_START, end)
            fstring.field = end
            self.at = end + 1
            self.emit(FIELD_START, end, end + 1)
            return True
        if text.startswith("}", end) and in_spec:
            fstring.spec_depths.pop()
            self.brackets.pop()
            self.at = end + 1
            self.emit(FIELD_END, end, end + 1)
            return self.fstring_text()
        if text.startswith("}", end):
            self.fault("E103 closes-nothing-f-string", span=(end, end + 1))
        elif in_spec:
            self.field_unclosed()
        elif text.startswith(fstring.quote, end):
            self.at = end + len(fstring.quote)
            self.emit(FSTRING_END, end, self.at)
            self.fstrings.pop()
            return True
        else:
            return self.unclosed(fstring.start, fstring.opening)
        return False

    def field_mark(self, kind: int, start: int, end: int) -> bool:
        """`:` and `=` directly in an f-string's field are its own; elsewhere they are Python's."""
        opened = self.brackets[-1] if self.brackets else None
        if opened and opened[0] == FIELD_START:
            if kind in (COLON, WALRUS):
                self.at = start + 1
                self.emit(FIELD_COLON, start, start + 1)
                self.fstrings[-1].spec_depths.append(len(self.brackets))
                return self.fstring_text()
            if kind == EQUAL and re.compile(_AFTER_DEBUG).match(self.text, end):
                self.emit(FIELD_EQUAL, start, end)
                return True
        self.emit(kind, start, end)
        return True

    # ---- what cannot be read --------------------------------------------------------------

    def too_many(self) -> None:
        place = self.tokens.span(len(self.tokens.kinds) - 1)
        error = fault("E108 program-more-words-signs", most=MAX_TOKENS, span=place)
        self.tokens.refused = error
        raise _Stop

    def unknown_character(self) -> None:
        text = self.text
        at = self.at
        while at < len(text) and text[at] in " \t\f\r":
            at += 1
        self.at = at
        if at >= len(text):
            return
        character = text[at]
        if character == "!" and self.brackets and self.brackets[-1][0] == FIELD_START:
            self.conversion()
            return
        kinds = self.tokens.kinds
        if character == "!" and (not kinds or kinds[-1] in _NO_STATEMENT):
            self.fault("E102 notebook-commands-such-pip", span=(at, at + 1))
            return
        self.error(unknown_character(self.source, at, character), resume=at)

    def conversion(self) -> None:
        start = self.at
        self.at += 1
        while self.text[self.at : self.at + 1].isalnum():
            self.at += 1
        name = self.text[start + 1 : self.at]
        if name not in ("r", "s", "a"):
            span = start, self.at
            self.fault("E103 no-conversion-f-string", name=name, span=span)
            return
        self.emit(CONVERSION, start, self.at, name)


def _continues(text: str, start: int, end: int) -> bool:
    """Whether what follows a number looks like more of it; `1.5.real` is an attribute."""
    if text[end] == ".":
        return not (text[end + 1 : end + 2].isidentifier() and "." in text[start:end])
    return text[end].isalnum() or text[end] == "_"


def tokenize(source: Source, start: int = 0, indents: Columns = ((0, 0),)) -> Tokens:
    """The tokens of a text from `start`, ending with `$END`."""
    return Lexer(source, start, indents).run()
