"""The parser: the same programs, the same structure and the same places as Python's own."""

from __future__ import annotations

import ast
import warnings

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autodiff_cli.errors import AutodiffError
from autodiff_cli.language.syntax import tree as s
from autodiff_cli.language.syntax.parser import is_incomplete, parse, parse_all
from autodiff_cli.source import Source, Span
from tests.together import together

from .unparse import same, unparse

EXPRESSIONS = [
    "x",
    "-x ** -y",
    "(-x) ** 2",
    "a ** b ** c",
    "(a ** b) ** c",
    "a - (b - c)",
    "a @ b @ c",
    "a | b ^ c & d << e + f",
    "~-+x",
    "not (a and b) or c",
    "a and (b and c)",
    "a < b <= c != d",
    "(a < b) < c",
    "a is not b",
    "a not in b",
    "not a in b",
    "a if b else c if d else e",
    "f((y := 3), z := 4)",
    "[y for x in z if (y := x)]",
    "x if (a if b else c) else d",
    "lambda: x",
    "lambda a, *b, c=1, **d: a",
    "lambda *, a: a",
    "(lambda x: x)(3)",
    "f()",
    "f(a, *b, c, d=1, **e)",
    "f(x for x in y)",
    "f((x for x in y), 2)",
    "f(a, b,)",
    "a.b.c(d)[e].f",
    "(a + b).c[d](e)",
    "(1).real",
    "1.5.real",
    "x[0]",
    "x[-1, ...]",
    "x[1:2, ::3, None]",
    "x[:]",
    "x[a:b:c]",
    "x[1,]",
    "x[()]",
    "x[(a, b)]",
    "x[*a]",
    "x[lambda: 1]",
    "[]",
    "[[]]",
    "[a, *b]",
    "[1, -2, 3.5]",
    "[[1, 2], [3, 4]]",
    "[x for x in y]",
    "[x for x in (a if b else c) if d if e for y, z in w]",
    "{}",
    "{1, 2}",
    "{a: b, **c}",
    "{a: b for a, b in c}",
    "{a for a in b}",
    "()",
    "(a,)",
    "a, b",
    "(a for a in b)",
    "None, True, False, ...",
    "0x1F + 0b11 + 0o17 + 1_000 + 1e5 + .5 + 5. + 0.5e-3 + 00",
    "'a' \"b\" r'\\d' '''c\nd'''",
    "'it\\'s \\x41\\u00e9\\101\\N{BULLET}\\d'",
    "''",
    "u'abc'",
    "f''",
    "f'{x}'",
    "f'{x!r:>{w}.{p}f} {y=} {z = :.3f} {{}}'",
    "f'{x}' 'lit{' f\"{y}\"",
    "f\"{d['a']}\"",
    "f'''{d[\"a\"]} {e['b']}\n'''",
    "f'{x:{y}}{z:a{b}c}'",
    "f'{ {1: 2}[1] }'",
    "f'{(lambda x: x)(1)}'",
    "f'{x, y}'",
    "f'{x:%Y-%m}'",
    "f'\\N{BULLET}{x}\\n'",
    "rf'\\d{x}'",
    "f'{x!=y}'",
    'f\'{a["b"] + f"{c}"}\'',
]

STATEMENTS = [
    "try:\n    a\nexcept B:\n    c\nexcept (D, E) as f:\n    g\nelse:\n    h\nfinally:\n    i",
    "try:\n    a\nfinally:\n    b",
    "def f():\n    yield\n    yield 1, 2\n    yield from g",
    "def f():\n    x = yield\n    x = yield 1, 2\n    x += yield from g",
    "def f():\n    return h((yield), [(yield 1)])",
    "while x := f():\n    pass",
    "x = 1",
    "a = b, = c = d",
    "(a, b), *c = d",
    "[a, [b, c]] = d",
    "x[0], y.z = 1, 2",
    "x += 1; x -= 1; x *= 1; x /= 1; x //= 1; x %= 1; x **= 1; x @= 1",
    "x &= 1; x |= 1; x ^= 1; x >>= 1; x <<= 1;",
    "x: int",
    "x.y: int = 3",
    "x[0]: 'a' = 3, 4",
    "x.grad = None",
    "return_ = 3",
    "match = 3\nmatch[0] = 1\nmatch(x)\ncase = match.x\ntype = 1\nprint = 2",
    "def f(): pass",
    "def f(a: int, b: str = 'x', *args: int, c, d=3, **kw) -> int:\n    return a, b",
    "def f(*, a, b=2,): return",
    "def f():\n    global a, b\n    def g():\n        b = 1\n        return 2\n    return g",
    "def f(x):\n  def g():\n    nonlocal x\n    x = 1",
    "@a.b(c)\n@d\ndef f(): pass",
    "@staticmethod\nclass A(B, metaclass=C):\n    x = 1\n\n    def f(self): return self",
    "class A: pass",
    "class A():\n\tx = 1",
    "if a: b\nelif c: d\nelif e: f\nelse: g",
    "if a:\n    b\nelse:\n    if c: d",
    "for i in range(3): print(i)",
    "for i, (a, b) in x, y:\n    if i: continue\n    break\nelse:\n    pass",
    "for x, in y: pass",
    "for x[0] in y: pass",
    "while x < 3:\n    x += 1\nelse: pass",
    "with torch.no_grad(): x = 1",
    "with a as b, c, d as (e, f):\n    pass",
    "with (a, b) as c: pass",
    "with (): pass",
    "with (*a, b): pass",
    "assert a",
    "assert a == b, 'message'",
    "del a, b[0], c.d",
    "raise",
    "raise ValueError('x') from y",
    "import a.b as c, d",
    "from a.b import c as d, e",
    "from a import *",
    "from a import (b, c,)",
    "x = [  # comment\n    1,\n\n    2]\n# end",
    "x = \\\n    3",
    "if x:\n    # comment\n\n    y\n        # odd comment\nz",
    "if x:\n\ty\n\tz",
    "",
    "\n\n# nothing\n",
    "   \n\t\n",
    "x = 1\n\n\n",
    "x=1 # no line end",
    "\x0cx = 1",
    "été = 1\nprint(été)",
]

CORPUS = [*EXPRESSIONS, *STATEMENTS]


def tree(text: str) -> s.Module:
    return parse(Source(text))


def python_tree(text: str) -> ast.Module:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ast.parse(text)


def normal_dump(text: str) -> str:
    """Python's tree without what the language does not keep: `u''`, parentheses after `del`."""
    module = python_tree(text)
    for node in ast.walk(module):
        if isinstance(node, ast.Constant):
            node.kind = None
    return ast.dump(module)


@together(CORPUS)
def test_python_accepts_the_same_program_with_the_same_meaning(text: str) -> None:
    assert normal_dump(unparse(tree(text))) == normal_dump(text)


@together(CORPUS)
def test_unparse_parses_back(text: str) -> None:
    module = tree(text)
    again = tree(unparse(module))
    assert same(module, again)
    assert unparse(again) == unparse(module)


def names_of_python(text: str) -> list[tuple[str, int, int, int]]:
    lines = text.split("\n")
    found = []
    for node in ast.walk(python_tree(text)):
        if isinstance(node, ast.Name):
            before = lines[node.lineno - 1].encode()[: node.col_offset].decode()
            found.append((node.id, node.lineno, len(before) + 1, len(node.id)))
    return sorted(found)


@together(text for text in CORPUS if "f'" not in text and 'f"' not in text)
def test_names_stand_where_python_sees_them(text: str) -> None:
    text = text.replace("\x0c", "")  # starts a page, and Python counts it as a column
    ours = sorted(
        (node.id, node.span.line, node.span.column, len(node.span.text))
        for node in s.walk(tree(text))
        if isinstance(node, s.Name)
    )
    assert ours == names_of_python(text)


POSITIONED = [text for text in EXPRESSIONS if "'" not in text]


@together(POSITIONED)
def test_operators_calls_and_constants_span_what_python_says(text: str) -> None:
    pairs = [
        (ast.BinOp, s.BinOp), (ast.UnaryOp, s.UnaryOp), (ast.BoolOp, s.BoolOp),
        (ast.Compare, s.Compare), (ast.Call, s.Call), (ast.Attribute, s.Attribute),
        (ast.Subscript, s.Subscript), (ast.IfExp, s.IfExp), (ast.Lambda, s.Lambda),
        (ast.Dict, s.Dict), (ast.Set, s.Set), (ast.ListComp, s.ListComp),
        (ast.keyword, s.Keyword), (ast.Starred, s.Starred), (ast.Slice, s.Slice),
    ]  # fmt: skip
    module, python = tree(text), list(ast.walk(python_tree(text)))
    for theirs, ours in pairs:
        expected = sorted(
            (node.col_offset, node.end_col_offset)
            for node in python
            if isinstance(node, theirs) and not inside_number_list(node, python)
        )
        found = sorted(
            (node.span.start, node.span.end) for node in s.walk(module) if isinstance(node, ours)
        )
        assert found == expected, ours


def inside_number_list(node: ast.AST, everything: list[ast.AST]) -> bool:
    """Whether a sign belongs to a number of a list, which is one token here."""
    return isinstance(node, ast.UnaryOp) and any(
        isinstance(other, ast.List) and node in other.elts for other in everything
    )


def test_spans_read_well_in_messages() -> None:
    text = "loss = sum((A + b) * A, dim=0)\n"
    statement = tree(text).body[0]
    assert isinstance(statement, s.Assign) and isinstance(statement.value, s.Call)
    product = statement.value.args[0]
    assert isinstance(product, s.BinOp)
    assert product.span.text == "(A + b) * A"
    assert product.left.span.text == "A + b"
    assert product.op_span.text == "*"
    assert statement.value.keywords[0].span.text == "dim=0"
    assert statement.span.text == text.strip()


def test_blocks_span_to_their_last_statement() -> None:
    text = "if a:\n    b\n\n    c  # comment\n\nd\n"
    assert tree(text).body[0].span.text == "if a:\n    b\n\n    c"


def test_attribute_and_definition_places() -> None:
    module = tree("def f(a, *, b=2): return a.grad.item()\n")
    function = module.body[0]
    assert isinstance(function, s.FunctionDef)
    assert function.name_span.text == "f"
    assert [(p.name, p.kind) for p in function.params] == [("a", "normal"), ("b", "keyword")]
    attributes = [node for node in s.walk(module) if isinstance(node, s.Attribute)]
    assert [a.attr_span.text for a in attributes] == ["item", "grad"]


def test_f_string_parts() -> None:
    value = parse(Source("f'a{x!r:>{w}}b{y = }'")).body[0].value
    assert isinstance(value, s.JoinedStr)
    text, field, middle, debug = value.parts
    assert isinstance(text, s.Constant) and text.value == "a"
    assert isinstance(middle, s.Constant) and middle.value == "b"
    assert isinstance(field, s.FormattedValue) and field.conversion == "r"
    assert field.format_spec is not None and len(field.format_spec.parts) == 2
    assert field.span.text == "{x!r:>{w}}"
    assert isinstance(debug, s.FormattedValue) and debug.debug_text == "y = "


def test_names_are_compared_in_normal_form() -> None:
    ligature = tree("\ufb01 = 1\n").body[0]
    assert isinstance(ligature, s.Assign)
    assert isinstance(ligature.targets[0], s.Name) and ligature.targets[0].id == "fi"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("x = 1\n", False),
        ("import torch\n", True),
        ("def f():\n    for i in y:\n        from math import pi\n", True),
        ("if x: pass\nelse: import math\n", True),
        ("x = 'import torch'\n", False),
    ],
)
def test_has_import(text: str, found: bool) -> None:
    assert s.has_import(tree(text)) is found


@together(
    [
        ("x = 1", False),
        ("x = [1,", True),
        ("x = [1,\n 2]", False),
        ("f(a,", True),
        ("s = '''abc", True),
        ("s = '''abc\ndef\n", True),
        ("s = '''abc'''", False),
        ("s = 'abc", False),
        ("f'{x", False),
        ("f'''{x", True),
        ("x = 1 + \\", True),
        ("x = 1 + \\\n", True),
        ("if x:", True),
        ("if x:\n", True),
        ("if x:\n    y", True),
        ("if x:\n    y\n", True),
        ("if x:\n    y\n\n", False),
        ("if x:\n    y\nz\n", False),
        ("if x:\n    if y:\n", True),
        ("if x:\n    if y:\n\n", False),
        ("x = 1 + \\\n\n", False),
        ("if x: y", False),
        ("@a", True),
        ("def f(", True),
        ("x = )", False),
        ("x y", False),
        ("x = 1 +", False),
        ("", False),
        ("# comment", False),
    ]
)
def test_is_incomplete(text: str, incomplete: bool) -> None:
    assert is_incomplete(text) is incomplete


def test_twenty_errors_are_told() -> None:
    assert len(parse_all(Source("x = )\n" * 25))[1]) == 20


def test_a_program_may_begin_with_a_line_that_goes_on() -> None:
    assert len(parse(Source("\\\n\nx = 1\n")).body) == 1


def test_parse_all_of_a_right_program() -> None:
    module, errors = parse_all(Source("x = 1\ny = x\n"))
    assert module is not None and len(module.body) == 2 and errors == []


# ---- generated trees ----------------------------------------------------------------------------

NOWHERE = Span(Source(""), 0, 0)
IDENTIFIERS = st.sampled_from(["x", "y", "loss", "A", "été", "_", "match"])
names = IDENTIFIERS.map(lambda name: s.Name(name, NOWHERE))
numbers = st.one_of(
    st.integers(0, 10**20), st.floats(0, allow_nan=False).map(abs)
)  # signs are operators, not parts of a number
texts = st.text(st.sampled_from("ab'\"\\{}#\n\r\0\x85\u2028\ud800\u0301é日𝒳"), max_size=8)
constants = st.one_of(numbers, st.booleans(), st.none(), st.just(...), texts).map(
    lambda value: s.Constant(value, NOWHERE)
)
number_lists = st.recursive(
    st.lists(st.one_of(st.integers(), st.floats(allow_nan=False)), min_size=1, max_size=4),
    lambda inner: st.lists(inner, min_size=1, max_size=3),
    max_leaves=6,
).map(lambda values: s.NumList(values, NOWHERE))


def node(kind: type, *parts: st.SearchStrategy) -> st.SearchStrategy:
    return st.tuples(*parts).map(lambda values: kind(*values, NOWHERE))


def some(part: st.SearchStrategy, least: int = 0) -> st.SearchStrategy:
    return st.lists(part, min_size=least, max_size=3)


def compounds(inner: st.SearchStrategy) -> st.SearchStrategy:
    maybe = st.one_of(st.none(), inner)
    operators = ["+", "-", "*", "/", "//", "%", "@", "**", "&", "|", "^", "<<", ">>"]
    keyword = node(s.Keyword, st.sampled_from(["dim", "keepdim"]), inner)
    keywords = st.one_of(st.just([]), keyword.map(lambda one: [one]))
    starred = node(s.Starred, inner)
    element = st.one_of(inner, starred)
    clause = node(s.Comprehension, names, inner, st.lists(inner, max_size=2))
    clauses = st.lists(clause, min_size=1, max_size=2)
    comparisons = st.tuples(
        inner,
        st.lists(st.tuples(st.sampled_from(["<", "==", "not in", "is not"]), inner),
                 min_size=1, max_size=3),
    ).map(
        lambda pair: s.Compare(
            pair[0], [op for op, _ in pair[1]], [right for _, right in pair[1]],
            [NOWHERE for _ in pair[1]], NOWHERE,
        )
    )  # fmt: skip
    names_first = some(inner).map(lambda rest: [s.Name("x", NOWHERE), *rest])
    pairs = st.lists(st.tuples(maybe, inner), max_size=3)
    return st.one_of(
        node(s.BinOp, inner, st.sampled_from(operators), inner, st.just(NOWHERE)),
        node(s.UnaryOp, st.sampled_from(["+", "-", "~", "not"]), inner),
        node(s.BoolOp, st.sampled_from(["and", "or"]), some(inner, 2)).filter(
            lambda tree: len(tree.values) > 1
        ),
        comparisons,
        node(s.Call, inner, some(element), keywords),
        node(s.Attribute, inner, IDENTIFIERS, st.just(NOWHERE)),
        node(s.Subscript, inner, st.one_of(inner, node(s.Slice, maybe, maybe, maybe))),
        node(s.IfExp, inner, inner, inner),
        node(s.Lambda, st.just([]), inner),
        node(s.List, names_first),
        node(s.Tuple, some(element)),
        node(s.Set, some(element, 1)),
        pairs.map(lambda pairs: s.Dict([k for k, _ in pairs], [v for _, v in pairs], NOWHERE)),
        node(s.ListComp, inner, clauses),
        node(s.SetComp, inner, clauses),
        node(s.GeneratorExp, inner, clauses),
        node(s.DictComp, inner, inner, clauses),
    )


expressions = st.recursive(st.one_of(names, constants, number_lists), compounds, max_leaves=12)
simple = st.one_of(
    node(s.ExprStmt, expressions),
    node(s.Assign, st.lists(names, min_size=1, max_size=2), expressions),
    node(s.AugAssign, names, st.sampled_from(["+", "**", "//", "@", ">>"]), expressions),
    node(s.AnnAssign, names, expressions, st.one_of(st.none(), expressions)),
    node(s.Assert, expressions, st.one_of(st.none(), expressions)),
    node(s.Delete, st.lists(names, min_size=1, max_size=2)),
    node(s.Pass),
    node(s.Import, st.just([s.Alias("torch.nn", "nn", NOWHERE)])),
)


def enters_all_of_a_tuple(block: s.With) -> bool:
    """Whether `with (a, b):` is its text, which means two items."""
    (item, *others) = block.items
    elements = getattr(item.expr, "elements", []) if isinstance(item.expr, s.Tuple) else []
    starred = any(isinstance(element, s.Starred) for element in elements)
    return not others and item.target is None and bool(elements) and not starred


def blocks(inner: st.SearchStrategy) -> st.SearchStrategy:
    body = st.lists(inner, min_size=1, max_size=3)
    other = st.one_of(st.just([]), body)
    param = node(s.Param, st.just("a"), st.one_of(st.none(), expressions), st.just("normal"),
                 st.none())  # fmt: skip
    items = st.lists(node(s.WithItem, expressions, st.one_of(st.none(), names)), min_size=1,
                     max_size=2)  # fmt: skip
    return st.one_of(
        node(s.If, expressions, body, other),
        node(s.For, names, expressions, body, other),
        node(s.While, expressions, body, other),
        node(s.With, items, body).filter(lambda block: not enters_all_of_a_tuple(block)),
        node(s.FunctionDef, IDENTIFIERS, param.map(lambda one: [one]), body,
             st.lists(names, max_size=1), st.none(), st.just(NOWHERE)),
        node(s.ClassDef, IDENTIFIERS, some(names), st.just([]), body, st.just([]),
             st.just(NOWHERE)),
    )  # fmt: skip


programs = st.lists(st.recursive(simple, blocks, max_leaves=6), max_size=4).map(
    lambda body: s.Module(body, NOWHERE)
)


@settings(max_examples=6)
@given(programs)
def test_generated_programs_survive_the_round_trip(program: s.Module) -> None:
    text = unparse(program)
    assert same(tree(text), program), text
    assert normal_dump(text)


@settings(max_examples=120)
@given(st.text(alphabet="x1.,()[]{}'\"f=+-*:;!\\ \n\t#ifelsdr@", max_size=60))
def test_any_text_gives_a_tree_or_a_diagnostic(text: str) -> None:
    module, errors = parse_all(Source(text))
    assert (module is None) is bool(errors)
    for error in errors:
        assert error.span is not None and 0 <= error.span.start <= error.span.end <= len(text)
        assert error.diagnostic.helps and error.message[-1] != "."
    is_incomplete(text)
    if module is None:
        with pytest.raises(AutodiffError):
            tree(text)
    else:
        assert same(tree(unparse(module)), module)
