"""Syntax errors: the code, the place and the words for every kind of mistake."""

from __future__ import annotations

import pytest

from autodiff_cli.errors import AutodiffError, Exit
from autodiff_cli.language.syntax.decode import decode
from autodiff_cli.language.syntax.lexer import MAX_INDENT
from autodiff_cli.language.syntax.parser import Machine, parse, parse_all
from autodiff_cli.session import run
from autodiff_cli.source import Source
from tests.together import together

# text, code, line, column, words of the message, words of the help
CASES = [
    ("A = [[1, 2], [3, 4]\nloss = sum(A)\n", "E101", 1, 5, "`[` is never closed", "end of line 1"),
    ("loss = sum((1+2\n", "E101", 1, 12, "`(` is never closed", "add `))`"),
    ("x = {\n'a': 1\ny = 2\n", "E101", 1, 5, "`{` is never closed", "end of line 2"),
    ("for i in range(3:\n    x = 1\n", "E101", 1, 15, "`(` is never closed", "before the `:`"),
    ("x = foo(1]\n", "E101", 1, 10, "`(` is closed by `]`", "write `)`"),
    ("x = 1)\n", "E102", 1, 6, "closes nothing", "remove"),
    ("try:\n  x\n", "E102", 2, 4, "needs an `except` or a `finally`", "go on with"),
    ("try:\n  x\nelse:\n  y\n", "E102", 3, 1, "needs an `except`", "`except Exception"),
    ("x y\n", "E102", 1, 3, "side by side", "x * y"),
    ("f(a b)\n", "E102", 1, 5, "side by side", "`a, b`"),
    ("x = [1 2]\n", "E102", 1, 8, "side by side", "`1, 2`"),
    ("print x\n", "E102", 1, 7, "needs parentheses", "print(x)"),
    ("if x = 3:\n  pass\n", "E102", 1, 6, "comparison is written `==`", "`==`"),
    ("assert x = 3\n", "E102", 1, 10, "comparison is written `==`", "`==`"),
    ("f(a.b=1)\n", "E102", 1, 6, "plain name", "name=value"),
    ("y = (x += 1)\n", "E102", 1, 8, "`+=` changes a variable", "line of its own"),
    ("if x\n  y=1\n", "E102", 1, 4, "`:` is missing", "`if x:`"),
    ("def f()\n  pass\n", "E102", 1, 7, "`:` is missing", "):"),
    ("else:\n  x\n", "E102", 1, 1, "`else` without an `if`", "if condition:"),
    ("if a: b\nelse if x: y\n", "E102", 2, 6, "`elif`", "`elif`"),
    ("for x: pass\n", "E102", 1, 6, "needs `in`", "for x in"),
    ("x = 1 +\n", "E102", 1, 7, "ends after `+`", "a value"),
    ("x++\n", "E102", 1, 3, "`++` is not an operator", "x += 1"),
    ("x && y\n", "E102", 1, 4, "`&&`", "`and`"),
    ("x <> y\n", "E102", 1, 4, "`<>`", "`!=`"),
    ("!x\n", "E102", 1, 1, "notebook", "remove"),
    ("y = !x\n", "E102", 1, 5, "`!`", "not x"),
    ("x = a if b\n", "E102", 1, 10, "needs an `else`", "else b"),
    ("f(a,,b)\n", "E102", 1, 5, "nothing stands between", "remove one"),
    ("loss = x [/red] [bold]\n", "E102", 1, 11, "missing between `[` and `/`", "remove"),
    ("lambda = 3\n", "E102", 1, 1, "`lambda` is a word of the language", "lambda_"),
    ("def class(): pass\n", "E102", 1, 5, "`class`", "class_"),
    ("y = (x **= 2)\n", "E102", 1, 8, "`**=` changes a variable", "`**` for the value"),
    ("x = sum(0:n)\n", "E102", 1, 10, "a range is not written with `:`", "`arange(0, n + 1)`"),
    (":= 3\n", "E102", 1, 1, "`:=` needs parentheses", "(name := ...)"),
    ("x y := 3\n", "E102", 1, 3, "side by side", "x * y"),
    ("\\\n\nx y\n", "E102", 3, 3, "side by side", "x * y"),
    ("False = 1\n", "E102", 1, 1, "cannot assign to `False`", "y = False"),
    ("... = 1\n", "E102", 1, 1, "cannot assign to `...`", "y = ..."),
    ("'a' = 2\n", "E102", 1, 1, "cannot assign to `'a'`", "y = 'a'"),
    ("y = 1_if x else 3\n", "E110", 1, 5, "`1_if` is not a number", "1_000"),
    ("y = f'{1! r}'\n", "E103", 1, 9, "`!` is no conversion", "`!r`"),
    ("y = f'{1!r2}'\n", "E103", 1, 9, "`!r2` is no conversion", "`!r`"),
    ("y = f'{1!", "E103", 1, 9, "`!` is no conversion", "`!r`"),
    ("if 1:\n  if 1:\n\t z = 1\n", "E104", 3, 1, "mixes tabs and spaces", "spaces only"),
    ("def f():\n  class A:\n    return 1\n", "E111", 3, 5, "`return`", "result"),
    ("x = f(\ny = 3\n", "E101", 1, 6, "never closed", "end of line 1"),
    ("if 1:\n    y = f(1 +\nz = 3\n", "E101", 2, 10, "never closed", "before the `=`"),
    ("1 = x\n", "E102", 1, 1, "cannot assign to `1`", "y = 1"),
    ("f(x) = 3\n", "E102", 1, 1, "cannot assign to a call", "y = f(x)"),
    ("(a, x + 1) = 3\n", "E102", 1, 5, "cannot assign to an expression", "y = x + 1"),
    ("a, b += 1\n", "E102", 1, 1, "one target", "one statement"),
    ("*a = 3\n", "E102", 1, 1, "list of targets", "*a,"),
    ("*a, *b = 3\n", "E102", 1, 5, "two starred", "one `*`"),
    ("x = *y\n", "E102", 1, 5, "cannot stand alone", "[*y]"),
    ("del f(x)\n", "E102", 1, 5, "cannot delete", "del name"),
    ("for 3 in y: pass\n", "E102", 1, 5, "cannot assign", "name"),
    ("loss = sum(dim=0, x)\n", "E102", 1, 19, "`x` follows keyword argument `dim`", "move `x`"),
    ("sum(x, dim=0, dim=1)\n", "E102", 1, 15, "`dim` is given twice", "remove one"),
    ("f(x for x in y, 1)\n", "E102", 1, 3, "parentheses", "(x for x in y)"),
    ("def f(a, a): pass\n", "E102", 1, 10, "`a` appears twice", "rename"),
    ("def f(a=1, b): pass\n", "E102", 1, 12, "`b` without a default", "b=None"),
    ("def f(*): pass\n", "E102", 1, 7, "lone `*`", "*args"),
    ("def f(**a, b): pass\n", "E102", 1, 12, "follow `**`", "forward"),
    ("@a\nx = 1\n", "E102", 2, 1, "decorator", "def name():"),
    (">>> x = 1\n", "E102", 1, 1, "prompt", "remove"),
    ("%matplotlib inline\n", "E102", 1, 1, "notebook", "remove"),
    ("x = \u201ca\u201d\n", "E102", 1, 5, "U+201C", '`"`'),
    ("x = 2 \u00d7 3\n", "E102", 1, 7, "U+00D7", "`*`"),
    ("x = $y\n", "E102", 1, 5, "`$`", "remove"),
    ("x = 1 \\ 2\n", "E102", 1, 7, "joins lines", "remove"),
    ("s = 'abc\nloss = 1\n", "E103", 1, 5, "never closed", "end of line 1"),
    ("s = '''abc\nloss = 1\n", "E103", 1, 5, "'''", "'''"),
    ("print(f'{x')\n", "E103", 1, 9, "`{` is never closed", "add `}`"),
    ("print(f'{')\n", "E103", 1, 9, "`{` is never closed", "add `}`"),
    ("print(f'{}')\n", "E103", 1, 9, "no value in it", "{name}"),
    ("print(f'{x!z}')\n", "E103", 1, 11, "`!z`", "`!r`"),
    ("f'}'\n", "E103", 1, 3, "closes nothing", "}}"),
    ("f'abc\n", "E103", 1, 1, "never closed", "end of line 1"),
    ("f'{x:{y'\n", "E103", 1, 6, "never closed", "}"),
    ("f'''{x\n", "E103", 1, 5, "never closed", "}"),
    ("f'{x\n}'\n", "E103", 1, 3, "never closed", "}"),
    ("'a\\xzz'\n", "E103", 1, 3, "names no character", "backslash"),
    ("'\\N{NO SUCH}'\n", "E103", 1, 2, "names no character", "backslash"),
    ("  x = 1\n", "E104", 1, 1, "indented by 2", "remove"),
    ("if x:\ny = 2\n", "E104", 2, 1, "no indented block", "4 spaces"),
    ("def f():\n", "E104", 1, 8, "no indented block", "4 spaces"),
    ("if x:\n    y\n  z\n", "E104", 3, 1, "matches no line", "0 or 4"),
    ("if x:\n\ty\n        z\n", "E104", 3, 1, "mixes tabs and spaces", "spaces only"),
    ("match x:\n    case 1:\n        y = 2\n", "E106", 1, 1, "`match`", "if"),
    ("x = 1\ncase 1 | 2: y = 2\n", "E106", 2, 1, "`case`", "if"),
    ("except E:\n  y\n", "E102", 1, 1, "without a `try`", "try:"),
    ("try:\n  x\nexcept:\n  y\nexcept E:\n  z\n", "E102", 3, 1, "last", "behind"),
    ("async def f():\n  pass\n", "E106", 1, 1, "`async`", "def"),
    ("x = await y\n", "E106", 1, 5, "`await`", "without"),
    ("yield 3\n", "E111", 1, 1, "outside a function", "def"),
    ("y := 3\n", "E102", 1, 3, "`:=` needs parentheses", "(y := ...)"),
    ("x = b'abc'\n", "E106", 1, 5, "bytes", "text"),
    ("x = 3j\n", "E106", 1, 5, "complex", "3"),
    ("def f(/, a): pass\n", "E102", 1, 7, "cannot stand here", "remove the `/`"),
    ("from . import x\n", "E106", 1, 6, "relative imports", "from torch"),
    ("with (a as b): pass\n", "E106", 1, 9, "with", "without the parentheses"),
    ("type X = int\n", "E106", 1, 1, "`type`", "remove"),
    ("x = 3x\n", "E110", 1, 5, "`3x` is not a number", "3 * x"),
    ("x = 1__0\n", "E110", 1, 5, "not a number", "10"),
    ("x = 012\n", "E110", 1, 5, "begins with a zero", "12"),
    ("x = 0b12\n", "E110", 1, 5, "not a number", "0x1F"),
    ("return 3\n", "E111", 1, 1, "`return` outside a function", "result = ..."),
    ("class A:\n    return 3\n", "E111", 2, 5, "`return`", "result"),
    ("break\n", "E111", 1, 1, "`break` outside a loop", "remove"),
    ("for x in y:\n  def f():\n    continue\n", "E111", 3, 5, "`continue`", "remove"),
    ("for x in y: pass\nelse:\n  break\n", "E111", 3, 3, "`break`", "remove"),
    ("nonlocal x\n", "E111", 1, 1, "`nonlocal`", "remove"),
]


@together(CASES)
def test_error(text: str, code: str, line: int, column: int, message: str, help: str) -> None:
    with pytest.raises(AutodiffError) as caught:
        parse(Source(text))
    error = caught.value
    assert error.span is not None
    assert (error.code, error.span.line, error.span.column) == (code, line, column), error.message
    assert message in error.message
    assert help in " ".join(error.diagnostic.helps)
    assert error.diagnostic.exit_code == Exit.PROGRAM


@together(case[0] for case in CASES)
def test_parse_all_begins_with_the_same_error(text: str) -> None:
    module, errors = parse_all(Source(text))
    with pytest.raises(AutodiffError) as caught:
        parse(Source(text))
    assert module is None
    assert caught.value.message in [error.message for error in errors]


def test_unclosed_bracket_shows_what_was_found() -> None:
    text = "A = [[1, 2], [3, 4]\nloss = sum(A)\n"
    with pytest.raises(AutodiffError) as caught:
        parse(Source(text))
    diagnostic = caught.value.diagnostic
    assert diagnostic.label == "opened here"
    (label,) = diagnostic.labels
    assert (label.span.line, label.span.column) == (2, 6)
    assert label.text == "found `=` while still inside the list"


def codes(text: str) -> list[tuple[str, int]]:
    module, errors = parse_all(Source(text))
    assert module is None
    return [(error.code, error.span.line if error.span else 0) for error in errors]


@pytest.mark.parametrize(
    "text",
    [
        "w = param([1.0, 2.0]\nloss = sum(w**2\n",
        "w = [1\nv = exp((2\nloss = sum([3\n",
        "def f(x):\n    y = (x\n    z = exp(y\n    return z\nw = {'a': [1\n",
    ],
)
def test_doing_all_that_is_advised_closes_the_brackets(text: str) -> None:
    lines = text.splitlines()
    for error in parse_all(Source(text))[1]:
        words = error.diagnostic.helps[0].split("`")
        assert words[0] == "add "
        lines[int(words[2].rsplit(" ", 1)[1]) - 1] += words[1]
    assert parse_all(Source("\n".join(lines)))[1] == []


def test_independent_errors_are_all_reported() -> None:
    text = (
        "A = [[1, 2], [3, 4]\n"
        "loss = sum(A)\n"
        "if x = 3:\n"
        "    y = 1 +\n"
        "    z = 2\n"
        "else:\n"
        "    w y\n"
        "s = 'abc\n"
        "def f(a, a):\n"
        "    return 1\n"
        "f(x) = 3\n"
        "q = 3x\n"
        "ok = 1\n"
    )
    assert codes(text) == [
        ("E101", 1),
        ("E102", 3),
        ("E102", 4),
        ("E102", 7),
        ("E103", 8),
        ("E102", 9),
        ("E102", 11),
        ("E110", 12),
    ]


def test_an_error_in_a_block_leaves_the_block_readable() -> None:
    text = "def f(x):\n    y = (x\n    return y\n\ndef g(x):\n    return x x\n"
    assert codes(text) == [("E101", 2), ("E102", 6)]


def test_blocks_indented_by_tabs_go_on_after_an_error() -> None:
    assert codes("if a:\n\tx = (1\n\ty = 2\n\tz z\n") == [("E101", 2), ("E102", 4)]


def test_at_most_twenty_errors() -> None:
    assert len(codes("x y\n" * 50)) == 20


def test_misplaced_statements_are_all_reported() -> None:
    assert codes("return 1\nbreak\n") == [("E111", 1), ("E111", 2)]


def test_decode() -> None:
    assert decode(b"\xef\xbb\xbfx = 1\r\ny = 2\rz\n", "a").text == "x = 1\ny = 2\nz\n"
    assert decode("é".encode(), "a").text == "é"


@together(
    [
        ("x = 1\n".encode("utf-16"), "UTF-16"),
        ("x = 1\n".encode("utf-16-le"), "UTF-16"),
        ("x = 1\n".encode("utf-16-be"), "UTF-16"),
        ("x = 1\n".encode("utf-32"), "UTF-32"),
        ("x = 1\n".encode("utf-32-be"), "UTF-32"),
        (b"x = 1\0\n", "byte 5 is zero"),
        (b"\x93NUMPY\x01\x00", "NumPy"),
        (b"PK\x03\x04abc", "zip"),
        (b"\x80\x04\x95abc", "pickle"),
        (bytes(range(1, 256)) * 4, "binary data"),
        (b"x = 1\ny = '\xe9'\n", "byte 0xe9 at offset 11 (line 2)"),
        (b"x = '\xf0\x9f", "not UTF-8"),
        # Two of five bytes are zero, each second one; three of five; two, at other places.
        (b"a\0b\0c", "looks like UTF-16 text"),
        (b"\0\0\0ab", "looks like UTF-32 text"),
        (b"ab\0\0c", "looks like binary data: byte 2 is zero"),
        # One of twenty bytes is a control character, and two; many, but far away.
        (b"\x01" + b"a" * 18 + b"\xff", "offset 19 (line 1) is not UTF-8"),
        (b"\x01" * 2 + b"a" * 17 + b"\xff", "looks like binary data"),
        (b"\x01" * 2 + b"a" * 36 + b"\xff", "looks like binary data"),
        (b"\x01" * 300 + b"a" * 2048 + b"\xff" + b"a" * 3000, "offset 2348 (line 1) is not"),
        (b"a" * 10 + b"\xff" + b"a" * 2047 + b"\x01" * 900, "offset 10 (line 1) is not UTF-8"),
        (b"ab\r\ncd\rx = \xff 1\n", "byte 0xff at offset 11 (line 3) is not UTF-8"),
    ]
)
def test_what_is_no_text(data: bytes, words: str) -> None:
    with pytest.raises(AutodiffError) as caught:
        decode(data, "a.expr")
    assert caught.value.code == "E109"
    assert words in caught.value.message
    assert caught.value.diagnostic.helps


@pytest.mark.parametrize("size", [MAX_INDENT, MAX_INDENT + 1])
def test_the_deepest_indentation(size: int) -> None:
    report = run(Source(f"if True:\n{' ' * size}x = 1\n", "deep.py"))
    assert (report.error is None) is (size == MAX_INDENT)


def test_bad_byte_is_placed() -> None:
    with pytest.raises(AutodiffError) as caught:
        decode(b"x = 1\ny = '\xe9'\n", "a.expr")
    span = caught.value.span
    assert span is not None and (span.line, span.column) == (2, 6)


def test_reading_on_after_a_bracket_left_open_in_a_function() -> None:
    text = "def layer(x, W):\n    return tanh(x @ W\nlogits = layer(1, 2)\ny = 5 5\nz = 3\n"
    module, errors = parse_all(Source(text))
    assert module is None
    assert [error.code for error in errors] == ["E101", "E102"]
    assert [error.span.line for error in errors if error.span] == [2, 4]


def test_a_line_is_read_again_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part of an `if` that a bracket swallowed, and which cannot stand where it is found."""
    text = "if 1:\n    if a: m(1.5, 3\n    elif b in (2, ,r', 'p'): m(2)\n    else: m()\n"
    restart, times = Machine.restart, []

    def counted(machine: Machine, offset: int) -> None:
        times.append(offset)
        assert len(times) < 10
        restart(machine, offset)

    monkeypatch.setattr(Machine, "restart", counted)
    module, errors = parse_all(Source(text))
    assert module is None
    assert [(error.code, error.span and error.span.line) for error in errors][:1] == [("E101", 2)]
