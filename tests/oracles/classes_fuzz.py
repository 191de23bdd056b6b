"""Random small programs of classes, generators, containers and texts, here and in CPython itself.

    python -m tests.oracles.classes_fuzz --n 2000 --seed 1
    python -m tests.oracles.classes_fuzz --show 17          # the program of a seed

Each line that may fail stands in a `try` of its own which prints the exception's class and message,
so that one program asks many questions. Differences are printed, each kind of line once.
"""

# ruff: noqa: E501, F541, RUF005, SIM905  # tables of program lines, one to a line
from __future__ import annotations

import argparse
import contextlib
import io
import random
import re
import sys
import warnings
from collections.abc import Iterator

from autodiff_cli.session import Options, run
from autodiff_cli.source import Source

HEAD = """\
import math, abc, enum, functools, itertools, operator, collections, dataclasses
from abc import ABC, abstractmethod
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from enum import Enum, IntEnum
log = []
"""
NAMES = "xyz"
TOTAL = (
    "eq lt le hash len bool contains iter getitem call add radd iadd mul sub neg str repr".split()
)
BODIES = {
    "eq": ["return isinstance(o, {c}) and self.x == o.x", "return NotImplemented", "return 1"],
    "lt": ["return self.x < getattr(o, 'x', o)", "return NotImplemented"],
    "le": ["return self.x <= getattr(o, 'x', o)", "return NotImplemented"],
    "hash": ["return hash(self.x)", "return 7", "return 'a'"],
    "len": ["return self.x", "return 2", "return -1", "return 'a'"],
    "bool": ["return self.x > 1", "return 3"],
    "contains": ["return o == self.x", "return []", "return 'yes'"],
    "iter": ["return iter([self.x, 2])", "yield self.x; yield 5", "return self", "return 5"],
    "next": [
        "self.x += 1\n        if self.x > 4: raise StopIteration\n        return self.x",
    ],
    "getitem": ["if o > 2: raise IndexError('end')\n        return o * 2"],
    "call": ["return ('call', self.x, o)"],
    "add": ["return ('add', self.x, o if type(o) is int else 'o')", "return NotImplemented"],
    "radd": ["return ('radd', self.x)", "return NotImplemented"],
    "iadd": ["self.x += 1\n        return self", "return NotImplemented"],
    "mul": ["return {c}(self.x * 2)", "return NotImplemented"],
    "sub": ["return self.x - getattr(o, 'x', 0)"],
    "neg": ["return {c}(-self.x)"],
    "str": ["return f's{{self.x}}'", "return 5"],
    "repr": ["return f'{c}({{self.x!r}})'"],
    "format": ["return f'<{{o}}>'", "return 3"],
    "getattr": ["return 'no ' + o", "raise AttributeError(o)"],
    "setattr": ["object.__setattr__(self, k, v)", "self.__dict__[k] = v; log.append(k)"],
    "enter": ["log.append('in'); return self.x"],
    "index": ["return self.x", "return 'a'"],
    "int": ["return self.x", "return 1.5"],
    "float": ["return 2.5"],
    "abs": ["return abs(self.x)"],
    "reversed": ["return [3, 2]"],
    "missing": ["return 'missing'"],
    "getstate": [],
}
UNARY = "hash len bool iter next neg str repr enter index int float abs reversed".split()


def method(name: str, body: str, cls: str) -> str:
    args = "self"
    if name == "setattr":
        args = "self, k, v"
    elif name == "call":
        args = "self, o=0"
    elif name not in UNARY:
        args = "self, o"
    return f"    def __{name}__({args}):\n        {body.format(c=cls)}\n"


class Program:
    """A program of a seed: blocks as they stand, and lines that may fail."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.text = HEAD
        self.count = 0
        pick = [self.hierarchy, self.hierarchy, self.hierarchy, self.data, self.enumeration]
        pick += [self.generator, self.generator, self.closure, self.containers, self.exceptions]
        pick += [self.texts, self.texts, self.parameters, self.sorting, self.tuples, self.slots]
        pick += [
            self.scoping,
            self.descriptors,
            self.super_calls,
            self.builtin_base,
            self.unpacking,
        ]
        pick += [self.slicing, self.numbers, self.managers]
        for make in self.random.sample(pick, 5):
            make()

    def one(self, *choices: str) -> str:
        return self.random.choice(choices)

    def some(self, choices: list[str], most: int) -> list[str]:
        return self.random.sample(choices, min(len(choices), self.random.randint(1, most)))

    def name(self) -> str:
        self.count += 1
        return f"N{self.count}"

    def ask(self, *expressions: str) -> None:
        """Print expressions, each in a `try`."""
        for e in expressions:
            self.do(f"print({e!r}[:9], {e})")

    def do(self, *statements: str) -> None:
        for statement in statements:
            body = "".join(f"    {line}\n" for line in statement.splitlines())
            self.text += f"try:\n{body}except Exception as e: print(type(e).__name__, e)\n"

    def add(self, block: str) -> None:
        self.text += block + "\n"

    def hierarchy(self) -> None:
        r = self.random
        root = self.name()
        classes: list[str] = []
        for i in range(r.randint(1, 4)):
            cls = root if not i else self.name()
            bases = self.some(classes, 2) if classes else []
            text = f"class {cls}({', '.join(bases)}):\n    k{i} = {i}\n"
            if not i:
                text += "    def __init__(self, x=1):\n        self.x = x\n"
                text += f"    def who(self):\n        return '{cls}'\n"
            elif r.random() < 0.5:
                text += f"    def who(self):\n        return '{cls}' + super().who()\n"
            if r.random() < 0.3:
                text += f"    def __init__(self, x=2, *a):\n        super().__init__(x, *a)\n        log.append('{cls}')\n"
            if r.random() < 0.3:
                text += "    @classmethod\n    def make(cls, x):\n        return cls(x)\n"
            if r.random() < 0.3:
                text += f"    @staticmethod\n    def st(x):\n        return '{cls}', x\n"
            if r.random() < 0.3:
                text += "    @property\n    def p(self):\n        return self.x + 1\n"
                if r.random() < 0.5:
                    text += "    @p.setter\n    def p(self, v):\n        self.x = v * 2\n"
                if r.random() < 0.4:
                    text += "    @p.deleter\n    def p(self):\n        log.append('del p')\n"
            if r.random() < 0.15:
                text += f"    def __init_subclass__(cls, **kw):\n        log.append(('{cls}', cls.__name__, sorted(kw)))\n"
            if r.random() < 0.15:
                text += f"    def __new__(cls, *a, **k):\n        log.append('new {cls}')\n        return super().__new__(cls)\n"
            if r.random() < 0.15:
                text += f"    def __hidden(self):\n        return '{cls}' \n    def show(self):\n        return self.__hidden()\n"
            for m in self.some(list(BODIES), 4):
                if BODIES[m]:
                    text += method(m, r.choice(BODIES[m]), cls)
            if r.random() < 0.2:
                text += "    __hash__ = None\n"
            self.do(text)
            self.do(f"v{i}_{root} = {cls}({r.randint(0, 4)})")
            classes.append(cls)
        values = [f"v{i}_{root}" for i in range(len(classes))]
        a, b = r.choice(values), r.choice(values)
        asks = [
            f"{a}.who()", f"{a} == {b}", f"{a} != {b}", f"{a} < {b}", f"{a} >= {b}", f"{a} > 1",
            f"{a} + 1", f"1 + {a}", f"{a} + {b}", f"{a} * 2", f"2 * {a}", f"{a} - {b}", f"(-{a}).x",
            f"len({a})", f"bool({a})", f"{a} in [{b}]", f"1 in {a}", f"list({a})", f"{a}[1]",
            f"{a}(3)", f"{a}()", f"hash({a}) == hash({b})", f"len({{{a}, {b}}})", f"{{{a}: 1}}[{b}]",
            f"{a}.p", f"{a}.nope", f"hasattr({a}, 'p'), hasattr({a}, 'q')", f"getattr({a}, 'zz', 3)",
            f"{a}.make(3).x", f"type({a}).make(3).x", f"{a}.st(1)", f"{classes[-1]}.st(2)",
            f"[c.__name__ for c in {classes[-1]}.__mro__]", f"isinstance({a}, {r.choice(classes)})",
            f"issubclass({classes[-1]}, {r.choice(classes)})", f"{a}.__dict__", f"vars({a})",
            f"f'{{{a}:>5}}'", f"format({a}, 'q')", f"int({a})", f"float({a})", f"abs({a}) == 3",
            f"list(reversed({a}))", f"[1,2,3,4,5][{a}]", f"iter({a}) is {a}", f"next({a})",
            f"{a}.k0", f"{classes[-1]}.k1", f"max({a}, {b}).x", f"sorted([{a}, {b}])[0].x",
            f"sum([{a}])", f"tuple({a})", f"[*{a}]", f"callable({a})", f"{a} is {b}", f"not {a}",
            f"{a} and 1", f"({a}, 1) == ({b}, 1)", f"[{a}].index({b})", f"{a}.show()",
            f"{a}._{root}__hidden()", f"{a}.__class__.__name__", f"range({a})", f"{a} == 1",
            f"[{a}, 1].count(1)", f"{a} ** 2", f"{a} // 2", f"~{a}", f"{a} @ {b}", f"divmod({a}, 2)",
            f"round({a})", f"math.sqrt({a})", f"{a} in {{1: 2}}", f"zip({a}, [1]).__next__()",
            f"dict.fromkeys([{a}, {b}]).__len__()", f"min([{a}, {b}], key=lambda v: -v.x).x",
            f"repr({a}).startswith('N')", f"str({a}).startswith('s')", f"{a}.x", "log",
            f"any({a})", f"'%s' % {a} == str({a})", f"{a}.who", f"dict({a})", f"set({a})",
            f"{a} if {a} else 0", f"chr({a})", f"enumerate({a}).__next__()", f"{a}.x.real",
        ]  # fmt: skip
        asks = [e for e in asks if not e.endswith(".who")]
        for e in r.sample(asks, 14):
            self.ask(e)
        more = [
            f"{a}.p = 4\nprint({a}.x)", f"del {a}.p", f"del {a}.x\nprint({a}.x)", f"{a} += 2\nprint({a}.x)",
            f"{a}.new = 3\nprint({a}.new, log[-1:])", f"with {a} as q: print(q)", f"{a}[0] = 1",
            f"del {a}[0]", f"for q in {a}: print(q)", f"q, w = {a}\nprint(q, w)",
            f"{classes[0]}.k9 = 9\nprint({a}.k9)", f"del {a}.nope", f"{a}.__class__ = {classes[0]}\nprint({a}.who())",
            f"class T({', '.join(r.sample(classes, min(len(classes), 2)))}, tag=1): pass\nprint(log[-1:])",
            f"{a}.who = lambda: 'own'\nprint({a}.who())", f"setattr({a}, 'x', 3)\nprint({a}.x)",
            f"delattr({a}, 'x')\nprint({a}.__dict__)", f"print({a}.who(1))", f"print({classes[0]}.who())",
            f"print({classes[0]}(1, 2, 3))", f"print({classes[0]}(y=3))", f"print(super().who())",
        ]  # fmt: skip
        self.do(*r.sample(more, 4))

    def data(self) -> None:
        r = self.random
        cls = self.name()
        options = [o for o in ("frozen=True", "order=True", "eq=False", "repr=False", "init=False",
                               "unsafe_hash=True", "kw_only=True", "slots=True") if r.random() < 0.2]  # fmt: skip
        fields = ["a: int"] + self.some(
            ["b: float = 1.5", "c: list = field(default_factory=list)", "d: str = field(default='d', repr=False)",
             "e: int = field(default=3, compare=False)", "f: int = field(init=False, default=2)",
             "g: int = field(default=1, kw_only=True)", "h: dataclasses.InitVar[int] = 5", "i: list = []",
             "j: int", "k: dict = {}"], 4)  # fmt: skip
        text = f"@dataclass({', '.join(options)})\nclass {cls}:\n" + "".join(
            f"    {f}\n" for f in fields
        )
        if r.random() < 0.3:
            text += "    def __post_init__(self):\n        self.z = self.a * 2\n"
        if r.random() < 0.2:
            text += "    def __repr__(self): return 'R'\n"
        if r.random() < 0.2:
            text += "    @property\n    def twice(self): return self.a * 2\n"
        self.do(text)
        below = self.name()
        self.do(f"@dataclass\nclass {below}({cls}):\n    zz: int = 4\n    b: float = 2.5")
        self.do(f"o = {cls}({self.one('1', 'a=1', '1, 2', '1, 2, 3', '', '1, q=2')})", f"p = {self.one(cls, below)}(1)",
                f"w = {below}({self.one('1', 'a=1', '1, zz=2', '1, 7, 8, 9')})")  # fmt: skip
        asks = ["o", "o == p", "o < p", "hash(o) == hash(p)", "dataclasses.asdict(o)", "dataclasses.astuple(p)",
                "dataclasses.replace(o, a=5)", "[f.name for f in dataclasses.fields(o)]", "o.b", "o.z", "w", "w.b",
                "{o: 1}", "dataclasses.is_dataclass(o)", "o.c is p.c", "o.__dict__", "sorted([p, o])", "o != p",
                "f'{o}'", "o.twice", "w == o", "dataclasses.replace(o, nope=5)", "o.__eq__(3)", "repr(w)",
                f"{cls}.a", f"{cls}.b", f"{cls}.__annotations__.keys()", "dataclasses.replace(p, f=4)",
                f"[(f.name, f.default) for f in dataclasses.fields({cls}) if f.name in 'ab' and f.name != 'a']"]  # fmt: skip
        self.ask(*r.sample(asks, 9))
        self.do(*r.sample(["o.a = 3\nprint(o)", "del o.a\nprint(o.a)", "o.new = 1\nprint(o.new)", "p.c.append(1)\nprint(p, o)",
                           "w.zz += 1\nprint(w)"], 3))  # fmt: skip

    def enumeration(self) -> None:
        r = self.random
        cls = self.name()
        base = self.one(
            "Enum",
            "Enum",
            "IntEnum",
            "str, Enum",
            "int, Enum",
            "enum.Flag",
            "enum.IntFlag",
            "enum.StrEnum",
        )
        value = {"str, Enum": "'{}'", "enum.StrEnum": "'{}'"}.get(base, "{}")
        text = f"class {cls}({base}):\n"
        if r.random() < 0.2:
            text = "@enum.unique\n" + text
        auto = r.random() < 0.3
        for i, n in enumerate(("RED", "GREEN", "BLUE", "ALIAS")[: r.randint(2, 4)]):
            v = value.format(2 ** (0 if n == "ALIAS" else i))
            text += f"    {n} = {'enum.auto()' if auto else v}\n"
        if r.random() < 0.3:
            text += "    def shout(self): return self.name + '!'\n"
        if r.random() < 0.2:
            text += "    @property\n    def double(self): return self.value * 2\n"
        if r.random() < 0.2:
            text += "    @classmethod\n    def first(cls): return list(cls)[0]\n"
        if r.random() < 0.2:
            text += "    def __str__(self): return 'S' + self.name\n"
        self.do(text)
        asks = [f"{cls}.RED", f"repr({cls}.RED)", f"{cls}.RED.value", f"{cls}.RED.name", f"list({cls})", f"len({cls})",
                f"{cls}({value.format(1)})", f"{cls}({value.format(99)})", f"{cls}['GREEN']", f"{cls}['NOPE']",
                f"{cls}.RED is {cls}.ALIAS", f"{cls}.RED == 1", f"{cls}.RED < {cls}.GREEN", f"{cls}.RED in {cls}",
                f"1 in {cls}", f"{cls}.RED + 1", f"{cls}.RED | {cls}.GREEN", f"f'{{{cls}.RED}}'", f"f'{{{cls}.RED:>8}}'",
                f"{cls}.RED.shout()", f"{cls}.RED.double", f"{cls}.first()", f"isinstance({cls}.RED, {cls})",
                f"{{{cls}.RED: 1}}", f"[e.value for e in {cls}]", f"{cls}.__members__.keys()", f"str({cls}.GREEN)",
                f"hash({cls}.RED) == hash({cls}.RED)", f"sorted({cls})", f"{cls}.NOPE", f"{cls}.RED.NOPE", f"type({cls}.RED)",
                f"'%s' % {cls}.RED", f"{cls}.RED != {cls}.GREEN", f"bool({cls}.RED)", f"{cls}()", f"{cls}.RED.upper()",
                f"~{cls}.RED", f"{cls}.RED & {cls}.GREEN", f"{cls}(3)", f"{cls}.RED ^ {cls}.GREEN", f"max({cls})",
                f"{cls}", f"list(reversed({cls}))", f"{cls}.RED in ({cls}.GREEN, {cls}.RED)"]  # fmt: skip
        self.ask(*r.sample(asks, 12))
        self.do(*r.sample([f"{cls}.RED = 3", f"del {cls}.RED", f"{cls}.RED.value = 3", f"class X({cls}): Q = 1",
                           f"{cls}.RED.note = 3\nprint({cls}.RED.note)"], 2))  # fmt: skip

    def generator(self) -> None:
        r = self.random
        g, h = self.name(), self.name()
        lines = [
            "x = yield 1", "log.append((yield 2))", "yield from [7, 8]", f"y = yield from {h}(); yield y",
            "try:\n        z = yield 3; print('got', z)\n    except ValueError as e: yield ('caught', str(e))\n    else: yield 'else'\n    finally: print('fin')",
            "for i in range(2): yield i", "return 5", "raise ValueError('gen')", "yield (yield 4)",
            "a, b = (yield 5), (yield 6); print(a, b)", "print([(yield 1), 2])", "x = {(yield 3): (yield 4)}; yield x",
            "if (yield 1): yield 'yes'", "while (yield 'w'): pass", "raise StopIteration('inner')",
            "try:\n        yield 1\n    except GeneratorExit: print('exit'); raise",
            "try:\n        yield 1\n    finally: print('cleanup')", "yield", "s = sum((yield 1, ))",
            "try:\n        yield 11\n    except GeneratorExit: yield 12",
            "q = lambda v: v + 1; yield q((yield 1) or 0)", "yield from (i * i for i in range(3))",
            "f = f'{(yield 1)} {(yield 2)}'; yield f", "assert (yield 1), 'no'", "t = yield 1, 2; yield t",
            "w = (yield 1) + (yield 2); yield w", "m = (yield 1) and (yield 2); yield m", "n = 1 if (yield 1) else (yield 3); yield n",
            "with M() as mm: yield mm", "yield from iter([])", "return (yield 9)",
        ]  # fmt: skip
        self.add(
            "class M:\n    def __enter__(self): return 'M'\n    def __exit__(self, *a): print('exit', a[0] and a[0].__name__)"
        )
        for name in (h, g):
            body = "".join(f"    {line}\n" for line in r.sample(lines, r.randint(1, 3)))
            body = body if name == g else body.replace(f"{h}()", "[1]")
            self.add(f"def {name}():\n    yield 0\n{body}")
        self.add(f"it = {g}()")
        acts = ["print(next(it))", "print(it.send(3))", "print(it.send(None))", "print(it.throw(ValueError('t')))",
                "print(it.throw(KeyError, 'k'))", "print(it.close())", "print(next(it, 'end'))", "print(list(it))",
                "for q in it: print(q)", "print(iter(it) is it)", "print(it.throw(StopIteration('s')))", "print(next(it))",
                "print(it.send(0))", "print(it.throw(ValueError))", "print(tuple(zip(it, 'ab')))"]  # fmt: skip
        for _ in range(r.randint(3, 7)):
            act = r.choice(acts)
            if r.random() < 0.3:
                self.do(
                    f"try:\n    {act}\nexcept StopIteration as s: print('stop', s.value, s.args)"
                )
            else:
                self.do(act)
        self.do(
            f"print(list({g}()))",
            f"def d():\n    r = yield from {g}()\n    print('r', r)\nprint(list(d()))",
        )

    def closure(self) -> None:
        f = self.name()
        r = self.random
        self.add(
            f"def {f}(n=0, *, step=1):\n    kept = []\n    def up(by=step):\n        nonlocal n\n        n += by\n        kept.append(n)\n        return n\n"
            "    def down():\n        nonlocal n\n"
            f"        {self.one('n -= 1; return n', 'del n; return 1', 'n = kept; return n')}\n    def read(): return n, kept\n    return up, down, read\n"
        )
        self.do(
            f"up, down, read = {f}({self.one('', '3', '3, 4', 'step=2', 'n=1, step=3', 'q=1')})"
        )
        for _ in range(5):
            self.ask(
                self.one("up()", "down()", "read()", "up(5)", "up(by=2)", "up(1, 2)", "down(1)")
            )
        self.ask(
            "[f() for f in [lambda: i for i in range(3)]]",
            "[f() for f in [lambda i=i: i for i in range(3)]]",
        )
        self.do(r.choice([
            "def f():\n    print(u)\n    u = 1\nf()", "def f():\n    global gg\n    gg = 4\nf(); print(gg)",
            "def f():\n    for i in range(0): pass\n    return i\nf()", "def f():\n    def g(): return late\n    late = 3\n    return g()\nprint(f())",
            "def f():\n    def g(): return late\n    g()\n    late = 1\nf()", "def f(x=[]):\n    x.append(1)\n    return x\nf(); print(f())",
            "def f():\n    x = 1\n    del x\n    return x\nf()", "def f():\n    try: 1/0\n    except ZeroDivisionError as e: pass\n    return e\nf()",
            "def f():\n    x = 1\n    class A:\n        x = 2\n        def g(self): return x\n    return A().g(), A.x\nprint(f())",
            "class A:\n    n = 3\n    v = [i for i in range(n)]\n    w = [n for i in range(2)]\nprint(A.v)",
            "class A:\n    n = 3\n    v = [i * 2 for i in range(n)]\n    f = lambda self: self.n\nprint(A.v, A().f())",
        ]))  # fmt: skip

    def containers(self) -> None:
        r = self.random
        c = self.name()
        eq = self.one("return o.x == self.x", "return self.x == getattr(o, 'x', o)")
        self.add(f"class {c}:\n    def __init__(self, x): self.x = x\n    def __repr__(self): return f'I{{self.x}}'\n"
                 f"    def __eq__(self, o): {eq}\n" + self.one("", "    def __hash__(self): return hash(self.x)\n",
                 "    def __hash__(self): return self.x % 2\n", "    def __lt__(self, o): return self.x < o.x\n"))  # fmt: skip
        self.add(f"a, b, c, d = {c}(1), {c}(2), {c}(1), {c}(3)")
        self.do(f"L = [a, b, c, 1, 2]; T = (a, b, d); D = {{1: a, 'k': b, (1, 2): c}}; Q = deque([1, 2, 3, a], maxlen={self.one('4', '5', 'None')})",
                "S = {a, b, c}", "C = Counter([a, b, c, d])", "C2 = Counter('abracadabra')", "O = OrderedDict([('x', 1), ('y', a)])",
                "DD = defaultdict(list)", "DD['p'].append(a)", "F = frozenset([1, 2])")  # fmt: skip
        asks = ["L", "L.index(c)", "L.count(a)", "L.remove(d)", "L.pop(9)", "L.index(99)", "a in L", "d in L", "sorted(L)", "L + T", "L * 2",
                "S", "len(S)", "c in S", "S | {d}", "S & {c}", "S - {a}", "S ^ {1}", "S <= {a, b}", "S.pop() in [a, b]", "S.remove(d)", "S.add([])",
                "D[1]", "D['nope']", "D[a]", "D.get('k')", "D.pop('zz')", "D.pop('zz', 3)", "D.setdefault(5, [])", "list(D)", "D | {1: 2}",
                "D == {1: c, 'k': b, (1, 2): a}", "dict(D, w=1)", "{**D, 'q': 2}", "D.popitem()", "D.items()", "D.keys() & {1}", "D[[]]",
                "Q", "Q.appendleft(0)", "Q.popleft()", "Q.rotate(1)", "Q[1]", "Q[9]", "Q.index(c)", "Q.remove(99)", "Q.maxlen", "Q + Q", "Q == deque([1])", "Q.pop()", "deque().pop()", "Q.insert(1, 2)",
                "C", "C.most_common(1)", "C2.most_common(2)", "C2 + C2", "C2 - Counter('ab')", "C2['zz']", "C2.total()", "C2 & Counter('aab')", "sorted(C2.elements())", "C2 | Counter('z')", "-C2", "+C2",
                "O", "O.move_to_end('x')", "O.popitem(last=False)", "O == {'y': a, 'x': 1}", "list(reversed(O))", "O.move_to_end('q')", "DD", "DD['new']", "DD.get('no')", "dict(DD)", "DD == {'p': [a]}",
                "[a, b] < [c, d]", "(1, a) == (1, c)", "[1, [2, a]] == [1, [2, c]]", "min(L[:3])", "max(T)", "F | {3}", "F.add(1)", "hash(F) == hash(frozenset([2, 1]))", "{F: 1}[frozenset([1, 2])]",
                "L[1:3]", "L[::-1]", "L[5:]", "T[1:]", "T.index(99)", "T.count(c)", "T[7]", "L['a']", "L[1.5]", "T + L", "[] + ()", "{1} + {2}", "set([1]) < {1, 2}", "dict([(1, 2), (3, 4)])", "dict([1, 2])", "dict(zip('ab', [1]))",
                "list(map(lambda q: q.x, T))", "list(filter(None, [0, 1, '']))", "dict.fromkeys('ab', 0)", "list(enumerate('ab', 1))", "list(zip([1, 2], 'a', strict=True))", "sum([[1], [2]], [])", "sum(['a'])",
                "L.append(1, 2)", "L.insert(0)", "[].pop()", "{}.popitem()", "set().pop()", "tuple(5)", "list(5)", "dict(5)", "len(5)", "5 in 5", "[1] < 1", "min([])", "max([], default=3)", "max(1)", "next(iter([]))", "iter(5)", "reversed({1})", "L.sort(key=lambda q: getattr(q, 'x', q))", "L.nope", "S.nope()", "D.append(1)", "None + 1", "None.x", "(1).x", "'a'.x", "T.append(1)",
                "[x for x in L if x == a]", "{x.x for x in T}", "{x.x: x for x in T}", "any(x == 2 for x in L)", "all([])", "L == [c, b, a, 1, 2]", "isinstance(Q, deque)", "repr(Q)", "str(D)", "collections.ChainMap", "list(itertools.chain(T, [1]))", "list(itertools.groupby([1, 1, 2]))[0][0]", "functools.reduce(lambda p, q: p + q.x, T, 0)", "list(itertools.product('ab', [1]))", "list(itertools.accumulate([1, 2, 3]))", "list(itertools.islice('abcdef', 1, 5, 2))", "list(itertools.zip_longest('ab', [1]))", "list(itertools.pairwise([1, 2, 3]))"]  # fmt: skip
        self.ask(*[e for e in r.sample(asks, 25) if "ChainMap" not in e])
        self.do(*r.sample(["L[1:2] = [7, 8, 9]; print(L)", "L[::2] = [0]; print(L)", "del L[1:3]; print(L)", "del D['zz']", "del D[1]; print(D)", "L += 'ab'; print(L)",
                           "L += 5", "T += (1,); print(T)", "T[0] = 1", "for k in D: D[k, 1] = 1", "for x in S: S.add(9)", "Q.extend([7, 8]); print(Q)", "Q.extendleft([7, 8]); print(Q)",
                           "S |= {7}; print(len(S))", "D |= {3: 4}; print(D)", "x, *y = L; print(y)", "x, y = L", "x, y, z, w, v, u = T", "(x, y), z = [1, 2], 3; print(x)", "Q[0] = 5; print(Q)", "del Q[0]; print(Q)",
                           "C2.update('zz'); print(C2)", "C2.subtract('ab'); print(C2)", "C2['q'] += 1; print(C2['q'])", "for x in L[:]: L.remove(x)\nprint(L)", "L.sort(); print(L)", "L.reverse(); print(L)", "'abc'[0] = 1", "L.clear(); print(L)", "L.extend(5)", "x = y = []; x.append(1); print(y)", "DD['n']['m'] = 1"], 7))  # fmt: skip

    def exceptions(self) -> None:
        r = self.random
        e, f = self.name(), self.name()
        self.add(f"class {e}({self.one('Exception', 'ValueError', 'KeyError', 'RuntimeError', 'LookupError', 'ArithmeticError')}):\n" + self.one(
            "    pass\n", "    def __init__(self, a, b=2):\n        super().__init__(f'{a}-{b}')\n        self.a = a\n",
            "    def __init__(self, a, b=2):\n        self.a = a\n", "    def __str__(self): return 'own'\n"))  # fmt: skip
        self.add(f"class {f}({e}): pass")
        raising = self.one(f"raise {e}('m')", f"raise {f}(1, 3)", f"raise {e}", "1 / 0", "[][1]", "{}['k']", "int('x')", "raise ValueError('v') from KeyError('c')", "raise KeyError('k')", "assert False, 'as'", "assert 0",
                           f"raise {e}('m') from None", "None.foo", "'a' + 1", "raise OSError(2, 'no')", "undefined", "raise 5", "raise StopIteration(3)", "float('q')", "len(None)", "raise NotImplementedError", "raise IndexError",
                           "raise ExceptionGroup('g', [ValueError(1)])" if 0 else "raise TypeError('a', 'b')")  # fmt: skip
        handler = self.one(
            f"{e}",
            f"{f}",
            "Exception",
            "ValueError",
            "(KeyError, IndexError)",
            "LookupError",
            "ArithmeticError",
            "TypeError",
            "AttributeError",
            "NameError",
        )
        self.add(
            f"def risky(n):\n    try:\n        if n: {raising}\n        return 'fine'\n    except {handler} as err:\n        print('h', type(err).__name__, err, err.args, repr(err))\n"
            f"        {self.one('raise', 'return 1', 'pass', 'raise RuntimeError(7) from err', 'raise RuntimeError(8)', '1 / 0')}\n    else:\n        print('else')\n"
            f"    finally:\n        print('fin')\n        {self.one('pass', 'pass', 'return 9' if r.random() < 0.3 else 'pass')}\n    return 'end'\n"
        )
        self.do("print(risky(1))", "print(risky(0))")
        self.do(
            f"try: risky(1)\nexcept Exception as e: print(repr(e), repr(e.__cause__), repr(e.__context__), e.args)"
        )
        self.ask(
            f"{e}('a').args",
            f"repr({e}('a'))",
            f"str({e}('a', 'b'))",
            f"{f}('q').a",
            f"isinstance({f}('x'), {e})",
            f"issubclass({e}, Exception)",
            f"{e}('z') == {e}('z')",
            "repr(KeyError('a')), str(KeyError('a'))",
            "str(ValueError()), repr(ValueError(1, 2))",
            f"[c.__name__ for c in {f}.__mro__]",
        )
        self.do(*r.sample([f"for i in range(3):\n    try:\n        if i == 1: continue\n        if i == 2: break\n        print(i)\n    finally: print('f', i)", f"try:\n    try: raise {e}('in')\n    finally: print('x')\nexcept {e} as q: print(q.args)\nelse: print('no')",
                           f"try: raise {e}('n')\nexcept {e} as q:\n    q.note = 3\n    print(q.note, q.__class__.__name__)", "def f():\n    while True:\n        try: return 1\n        finally: break\n    return 2\nprint(f())", f"raise {e}('w').with_traceback(None)",
                           "try:\n    raise ValueError('a')\nexcept ValueError:\n    try: raise KeyError('b')\n    except KeyError as k: print(repr(k.__context__))", "raise", f"raise {e}('t') from 5", "try: pass\nfinally: print('f')", "e = ValueError('x'); raise e from e"], 4))  # fmt: skip

    def texts(self) -> None:
        r = self.random
        s = repr(
            self.one(
                "Hello, World",
                "  a b  ",
                "",
                "abcABC123",
                "x=1;y=2",
                "ß straße",
                "tab\tnew\nline",
                "aXbXc",
                "{x}",
                "%d",
                "'q\"",
                "é",
                "-42",
                "0b1",
            )
        )
        n = self.one(
            "3",
            "-7",
            "0",
            "3.14159",
            "1e10",
            "-0.5",
            "12345678",
            "True",
            "1e-7",
            "float('nan')",
            "float('inf')",
            "'txt'",
            "None",
            "[1]",
            "0.1 + 0.2",
            "10**20",
            "2.5",
        )
        spec = self.one(
            "",
            ">10",
            "<6",
            "^9",
            "*^9",
            "08.3f",
            "+d",
            "x",
            "#x",
            "b",
            ",",
            ".2e",
            "%",
            ".1%",
            "g",
            "10",
            "s",
            "_",
            "05",
            "=+8",
            "c",
            "o",
            ".3",
            "n",
            "z.1f",
            "e",
            "G",
            "X",
            "#o",
            "> 8.2f",
            "d",
            "<<5",
            ".0f",
            "q",
            "10.3s",
            "!",
            ",.2f",
            "_b",
            "E",
            "010,.1f",
            "5%",
        )
        conv = self.one("", "!r", "!s", "!a")
        self.do(f"v = {n}; s = {s}")
        self.ask(
            f"f'{{v{conv}:{spec}}}'",
            f"format(v, {spec!r})",
            f"'{{:{spec}}}'.format(v)",
            f"'{{0}} {{1!r}} {{k}}'.format(v, s, k=1)",
            f"f'{{v=}} {{s!r:>20}}'",
            f"f'{{s:{{len(s) + 3}}}}|'",
            "f'{v!r}'",
            "str(v), repr(v)",
            f"'{self.one('%d', '%s', '%5.2f', '%r', '%x', '%-8s|', '%05d', '%e', '%g', '%%', '%i', '%+d', '%c', '%d %d', '%(a)s', '%.3s', '%q')}' % v",
        )
        methods = ["upper()", "lower()", "title()", "capitalize()", "swapcase()", "strip()", "strip('aH')", "split()", "split(',')", "split(' ', 1)", "split('')", "rsplit('X', 1)", "partition('=')", "rpartition('X')", "find('b')", "rfind('a')", "index('zz')", "count('a')", "count('')", "replace('a', 'ZZ')", "replace('a', 'b', 1)", "replace('', '-')", "startswith('He')", "startswith(('a', 'x'))", "startswith('e', 1)", "endswith('3')", "isdigit()", "isalpha()", "isalnum()", "isspace()", "isupper()", "islower()", "isidentifier()", "isnumeric()", "zfill(8)", "center(15, '*')", "ljust(12)", "rjust(12, '.')", "center(9, 'ab')", "join(['a', 'b'])", "join([1])", "join('xyz')", "encode()", "splitlines()", "splitlines(True)", "expandtabs(4)", "removeprefix('He')", "removesuffix('d')", "casefold()", "format(1)", "format(x=1)", "translate({97: 'Q'})", "istitle()", "isascii()", "isprintable()", "nope()", "upper(1)", "find()", "split(1)", "replace('a')", "strip(3)", "format_map({'x': 2})", "__len__()", "__contains__('a')", "index('l', 3, 9)", "find('l', -4)", "maketrans('ab', 'cd')", "lstrip()", "rstrip()", "zfill('a')"]  # fmt: skip
        self.ask(*[f"s.{m}" for m in r.sample([m for m in methods if "encode" not in m], 12)])
        self.ask(*r.sample(["s[0]", "s[-1]", "s[1:4]", "s[::-1]", "s[99]", "s * 2", "s + 'x'", "s + 1", "'a' in s", "1 in s", "s < 'b'", "s < 1", "sorted(s)", "list(s)", "len(s)", "max(s)", "int(s)", "float(s)", "ord(s)", "[ord(q) for q in s]", "hash(s) == hash(str(s))", "repr(s)", "ascii(s)", "s.upper().lower() == s", "int('12', 5)", "int('0x1f', 16)", "int(' 7 ')", "int('1_000')", "float(' 1e3 ')", "chr(97)", "ord('ab')", "bin(5), hex(255), oct(8)", "str(1.0), str(1e16), str(1e-5)", "'a' 'b'", "'%s %s' % ('a', [1])", "'%(k)d' % {'k': 3}", "'%s' % (1,)", "'%d' % 'a'", "'%s %s' % 1", "'%d' % 2.7", "'{} {}'.format(1)", "'{0.real} {1[0]}'.format(1, [2])", "'{:>{w}}'.format(1, w=5)", "'{!r}'.format('a')", "'{} {0}'.format(1)", "'{a}'.format(b=1)", "'{'.format()", "f'{3:{4}}'", "f'{{}}'", "f'{1:>{2 + 3}.{1}f}'", "f'{\"a\":5}|'", "f'{[1, 2]}'", "f'{(lambda q: q)(3)}'", "'\\x41\\u00e9\\n'", "r'\\n'", "'abc'.split('b', maxsplit=1)", "int(3.9)", "int('3.9')", "int('')", "float('')", "round(2.5)", "round(-1.567, 2)", "round('a')", "str(b'a')", "bool('')", "'a' * -1", "'a' * 'b'", "-'a'", "'b' > 'a' > ''", "eval('1')"][:-1], 12))  # fmt: skip

    def parameters(self) -> None:
        r = self.random
        f = self.name()
        signature = self.one(
            "a, b=2, *c, d, e=5, **g",
            "a, /, b, *, c=3",
            "*a, b",
            "a=1, b=2",
            "**k",
            "*a, **k",
            "a, b, c",
            "a, *, b=[]",
            "a, b=lambda: 3, /, *c",
        )
        self.add(f"def {f}({signature}):\n    return sorted((k, v if not callable(v) else 'f') for k, v in locals().items())" if 0 else
                 f"def {f}({signature}):\n    return [" + ", ".join(p.split("=")[0].strip("* ").split(":")[0] for p in re.sub(r"lambda: 3", "0", signature).split(",") if p.strip() not in ("*", "/")) + "]")  # fmt: skip
        calls = [
            "",
            "1",
            "1, 2",
            "1, 2, 3",
            "1, 2, 3, 4",
            "a=1",
            "b=1",
            "1, d=2",
            "1, 2, 3, d=4, e=5, z=6",
            "*[1, 2]",
            "*[1], **{'b': 2}",
            "1, a=1",
            "**{'d': 1}",
            "z=1",
            "1, b=2, c=3",
            "*(1, 2), 3, d=4",
            "*'ab', d=1",
            "**{1: 2}",
            "*5",
            "**5",
            "1, **{'a': 2}",
            "c=1",
            "1, b=1, **{'b': 2}",
            "*range(3), b=1",
            "d=1, a=2",
            "**{'a': 1}, **{'b': 2}",
        ]
        calls = [c for c in calls if c != "1, b=1, **{'b': 2}"]
        self.ask(*[f"{f}({c})" for c in r.sample(calls, 9)])
        self.ask(
            f"functools.partial({f}, 1)(d=2)",
            f"(lambda *a, k=1: (a, k))(1, k=2)",
            "(lambda x: x)()",
            f"{f}.__name__",
            f"{f}.nope",
            f"[*{f}(1)]",
        )

    def sorting(self) -> None:
        r = self.random
        values = self.one(
            "[3, 1, 2]",
            "['b', 'A', 'c']",
            "[(1, 'z'), (1, 'a'), (0, 'q')]",
            "[1, 'a']",
            "[{'k': 2}, {'k': 1}]",
            "[True, 0, -1.5]",
            "[]",
            "[[2], [1, 5], []]",
            "[float('nan'), 1, 0]",
            "[None, 1]",
        )
        self.do(f"v = {values}")
        key = self.one(
            "None",
            "lambda q: -q",
            "str",
            "len",
            "lambda q: q[0]",
            "operator.itemgetter(1)",
            "lambda q: q['k']",
            "lambda q: (str(q), 1)",
            "str.lower",
            "functools.cmp_to_key(lambda p, q: (p > q) - (p < q))",
            "abs",
            "id" if 0 else "repr",
            "lambda: 1",
            "operator.attrgetter('x')",
        )
        self.ask(*r.sample([f"sorted(v, key={key})", f"sorted(v, reverse=True, key={key})", f"min(v, key={key})", f"max(v, key={key})", f"max(v, key={key}, default=0)", "sorted(v)", "min(v)", "sum(v)", "list(reversed(v))", f"min(*v, key={key})", "sorted(v, lambda q: q)", "sorted(1)", "all(v), any(v)", "list(map(str, v))", f"[k for k, g in itertools.groupby(v, key={key})]", "sorted(v, key=3)", "max(v, v)", "sorted(v, cmp=1)", "list(zip(v, v[1:]))", "list(itertools.permutations(v, 2))[:3]", "list(itertools.combinations(v, 2))", "min(1, 2, default=3)", "sorted(enumerate(v))", "dict(enumerate(v))"], 10))  # fmt: skip
        self.do(f"v.sort(key={key}); print(v)", "v.sort(reverse=True); print(v)")

    def tuples(self) -> None:
        r = self.random
        p = self.name()
        self.do(f"{p} = namedtuple('{p}', {self.one(repr('x y'), repr('x, y'), repr(['x', 'y']))}{self.one('', ', defaults=[7]', ', defaults=(1, 2)')})" if r.random() < 0.6 else
                f"from typing import NamedTuple\nclass {p}(NamedTuple):\n    x: int\n    y: int = 3\n    def area(self): return self.x * self.y")  # fmt: skip
        self.do(
            f"q = {p}({self.one('1, 2', '1', 'x=1, y=2', '1, y=5', '1, 2, 3', '', 'z=1')})",
            f"w = {p}(4, 5)",
        )
        self.ask(*r.sample(["q", "q.x", "q[1]", "q == (1, 2)", "q < w", "w._asdict()", "w._replace(x=9)", "w._fields", f"{p}._make([1, 2])", "hash(w) == hash((4, 5))", "w + (1,)", "len(w)", "list(w)", "w.nope", "w[5]", "isinstance(w, tuple)", "f'{w}'", "{w: 1}[(4, 5)]", "w._replace(zz=1)", "w.area()", f"{p}.__name__", "w.index(5)", "max(q, w)", "w.count(4)", "w[:1]", "(*w, 1)", f"{p}.x", "w._field_defaults", "w.__class__.__name__"], 10))  # fmt: skip
        self.do(
            "w.x = 3",
            "a, b = w; print(a, b)",
            f"class S{p}({p}):\n    def s(self): return self.x + self.y\n    @property\n    def d(self): return self.s() * 2\nprint(S{p}(1, 2).s(), S{p}(1, 2), S{p}(1, 2).d)",
            "del w.x",
            "w[0] = 1",
        )

    def slots(self) -> None:
        c, d = self.name(), self.name()
        self.do(f"class {c}:\n    __slots__ = {self.one(repr(('a', 'b')), repr('a'), '()', repr(['a']), repr(('a', '__dict__')))}\n    def __init__(self, v): self.a = v",
                f"class {d}({c}):\n    {self.one('pass', '__slots__ = ()', '__slots__ = (' + repr('z') + ',)', 'q = 1')}",
                f"o = {c}(1); p = {d}(2)")  # fmt: skip
        self.ask(
            "o.a", "o.b", "p.a", "hasattr(o, '__dict__')", "o.__dict__", f"{c}.__slots__", "p.z"
        )
        self.do(
            "o.new = 1; print(o.new)",
            "p.z = 1; print(p.z)",
            "p.w = 1; print(p.w)",
            "del o.a; print(o.a)",
            "o.b = 2; print(o.b)",
            "del o.b",
        )

    def scoping(self) -> None:
        self.add("i = 'outer'; n = 2; fs = []")
        self.ask(*self.random.sample(["[i for i in range(3)], i", "[(i, j) for i in range(3) for j in range(i)]", "[[i * j for i in range(3)] for j in range(2)]", "{i: j for i, j in zip('ab', [1, 2])}", "{i % 2 for i in range(5)}", "list(i for i in range(4) if i % n)", "[y := 3, y * 2]", "[last := i for i in range(3)], last", "sum(i for i in range(4))", "[i if i else 'z' for i in range(2)]", "[*range(2), *'ab']", "{**{1: 2}, 1: 3}", "[x for x in [1, 2, 3] if x > 1 if x < 3]", "(lambda: [i for _ in range(2)])()", "[a for a, *b in [(1, 2, 3)]]", "[b for a, *b in [(1, 2, 3)]]", "(z for z in [1]).__next__()", "[(lambda: i)() for i in range(2)]", "i", "not_there", "any((hit := v) > 1 for v in [1, 2, 3]), hit", "[i for i in 5]", "{[]: 1}", "{[]}", "1 < 2 < 3 > 2", "1 if [] else 2", "() == []", "1 == True, 1 is True", "'a' < 'b' == 'b'", "[] or {} or 'x'", "0 and 1 / 0", "not []", "*'ab',", "1, *[2]"], 10))  # fmt: skip
        self.do(
            "for i in range(3): fs.append(lambda: i)\nprint([f() for f in fs], i)",
            "for i, (a, b) in enumerate([(1, 2), (3, 4)]): print(i, a, b)\nelse: print('else')",
            "while n:\n    n -= 1\n    if n == 1: continue\n    print(n)\nelse: print('w', n)",
            "a = b = c = 3; a += 1; print(a, b)",
            "x = [1, 2, 3]\nfor q in x:\n    if q < 3: x.append(q + 5)\n    if len(x) > 6: break\nprint(x)",
            "i = 0; a = [0, 0]; i, a[i] = 1, 9; print(i, a)",
            "a, b = 1, 2; a, b = b, a; print(a, b)",
            "del n; print(n)",
            "global_ = 3; print(global_)",
        )

    def descriptors(self) -> None:
        r = self.random
        d, c = self.name(), self.name()
        text = f"class {d}:\n    def __get__(self, o, t=None):\n        return ('get', o is None, t.__name__)\n"
        if r.random() < 0.5:
            text += "    def __set__(self, o, v): log.append(('set', v)); o.__dict__['v'] = v\n"
        if r.random() < 0.4:
            text += "    def __set_name__(self, t, n): log.append(('name', t.__name__, n))\n"
        if r.random() < 0.4:
            text += "    def __delete__(self, o): log.append('delete')\n"
        self.do(
            text,
            f"class {c}:\n    v = {d}()\n    def m(self): return 1\n    @functools.cached_property\n    def cp(self):\n        log.append('cp')\n        return 5\n    @functools.lru_cache(maxsize=2)\n    def lc(self, k): log.append(k); return k\n    @classmethod\n    def cm(cls): return cls.__name__\n    def __getattribute__(self, n):\n        {self.one('return super().__getattribute__(n)', 'return object.__getattribute__(self, n)', 'if n == ' + repr('hid') + ': return 42' + chr(10) + '        return super().__getattribute__(n)')}",
            f"o = {c}()",
        )
        self.ask(
            "o.v",
            f"{c}.v",
            "o.cp, o.cp",
            "o.lc(1), o.lc(1), o.lc(2)",
            "o.hid",
            "o.zip",
            "log",
            f"{c}.cm(), o.cm()",
            f"{c}.m(o)",
            "o.m.__name__",
            "o.m.__self__ is o",
            f"{c}.__dict__['v'] is {c}.v",
            "o.lc.cache_info()",
        )
        self.do(
            "o.v = 3; print(o.v, o.__dict__)",
            "del o.v",
            "o.m = 3; print(o.m)",
            "o.cp = 1; print(o.cp)",
            "del o.cp; print(o.cp)",
        )

    def super_calls(self) -> None:
        r = self.random
        names = [self.name() for _ in range(4)]
        a, b, c, d = names
        for x, bases in ((a, ""), (b, a), (c, a), (d, f"{b}, {c}")):
            text = f"class {x}({bases}):\n"
            text += f"    def __init__(self, *a, **k):\n        {'super().__init__(*a, **k); ' if bases and r.random() < 0.8 else ''}log.append('{x}')\n"
            text += f"    def __p(self): return '{x}'\n    def p_{x}(self): return self.__p()\n    __c = '{x}'\n    def pc_{x}(self): return self.__c, {x}.__c\n"
            kinds = [("@classmethod", "cls"), ("", "self")]
            for k, (dec, me) in enumerate(kinds):
                if r.random() < 0.8 or not bases:
                    sup = f" + {self.one('super()', f'super({x}, {me})')}.m{k}()" if bases else ""
                    text += f"    {dec or 'pass'}\n    def m{k}({me}): return ['{x}']{sup}\n"
            if r.random() < 0.5:
                text += f"    @property\n    def pr(self): return '{x}'{' + super().pr' if bases else ''}\n"
            if r.random() < 0.5:
                text += f"    @staticmethod\n    def sm(): return '{x}'\n"
            if r.random() < 0.3:
                text += (
                    f"    def __setattr__(self, n, v): log.append(n); super().__setattr__(n, v)\n"
                )
            if r.random() < 0.3:
                text += f"    def __getattr__(self, n): return '{x}.' + n\n"
            self.do(text)
        self.do(f"o = {d}({self.one('', '1', 'k=2')})", f"o = {d}()", f"u = {b}()")
        self.ask(
            "o.m0()",
            "o.m1()",
            "u.m0()",
            "u.m1()",
            "o.pr",
            "o.sm()",
            "log",
            *[f"o.p_{x}()" for x in names],
            f"o._{a}__p()",
            f"o._{d}__c",
            "o.__p",
            f"o.pc_{d}()",
            f"{d}.m0()",
            f"{d}.m1(o)",
            f"super({b}, o).m1()",
            f"super({d}, o).sm()",
            "o.other",
            "sorted(n for n in dir(o) if '__p' in n)",
            "o.__dict__",
        )
        self.do(
            f"class Bad({a}, {d}): pass",
            f"class Bad({a}, {a}): pass",
            "o.z = 3; print(o.z, o.__dict__)",
            f"{a}.m1 = lambda self: 'new'\nprint(o.m1())",
        )
        self.add(
            f"class {a}A(ABC):\n    @abstractmethod\n    def f(self): return 'base'\n    @property\n    @abstractmethod\n    def g(self): pass\nclass {a}B({a}A):\n    def f(self): return super().f() + '!'\nclass {a}C({a}B):\n    g = 3"
        )
        self.ask(f"{a}A()", f"{a}B()", f"{a}C().f()", f"{a}C().g")

    def builtin_base(self) -> None:
        r = self.random
        base, make, more = r.choice([
            ("list", "[1, 2]", ["o.append(3)", "o", "o[0]", "o == [1, 2]", "o + [4]", "o.sum2()", "len(o)", "o * 2", "o[:1]", "sorted(o)", "o.index(2)", "[*o]"]),
            ("dict", "{'a': 1}", ["o['a']", "o['zz']", "o", "o.get('a')", "o.update(b=2)", "list(o)", "o | {'c': 3}", "'a' in o", "o == {'a': 1}", "{**o}", "o.items()", "o.setdefault('k', 1)"]),
            ("int", "5", ["o + 1", "o", "o * o", "o == 5", "hash(o) == 5", "f'{o:03}'", "o.bit_length()", "range(o)[1]", "-o", "o < 6", "[0] * o", "int(o)"]),
            ("str", "'ab'", ["o.upper()", "o + 'c'", "o", "o == 'ab'", "{o: 1}['ab']", "f'{o:>4}'", "o[0]", "len(o)", "o.join(['1', '2'])", "o in 'cab'", "o * 2", "o.split('a')"]),
            ("tuple", "(1, 2)", ["o[0]", "o", "o == (1, 2)", "o + (3,)", "hash(o) == hash((1, 2))", "len(o)", "o.index(2)", "o[5]", "a, b = o" if 0 else "o * 2", "max(o)", "sum(o)", "list(o)"]),
            ("float", "1.5", ["o + 1", "o", "o * 2", "round(o)", "o.is_integer()", "math.floor(o)", "f'{o:.2f}'", "-o", "o == 1.5", "int(o)", "o < 2", "abs(o)"]),
            ("set", "{1, 2}", ["o.add(3)", "o", "o | {4}", "1 in o", "len(o)", "o == {1, 2}", "o & {1}", "sorted(o)", "o.pop() in (1, 2)", "hash(o)", "o - {1}", "o <= {1, 2, 3}"]),
        ])  # fmt: skip
        c = self.name()
        text = f"class {c}({base}):\n    tag = 'T'\n"
        for extra in self.some(["def __repr__(self): return 'R'", f"def __init__(self, *a): {'super().__init__(*a)' if base in ('list', 'dict', 'set') else 'super().__init__()'}; self.n = 1", f"def __new__(cls, *a): return super().__new__(cls, *a)",
                                "def __getitem__(self, k): return ('item', super().__getitem__(k))", "def __len__(self): return 9", "def __missing__(self, k): return 'miss ' + str(k)", "def __eq__(self, o): return True", "def sum2(self): return sum(self) * 2",
                                "def __add__(self, o): return 'added'", "def append(self, v): super().append(v * 2)", "def __setitem__(self, k, v): super().__setitem__(k, ('set', v))", "def __contains__(self, k): return True", "def __hash__(self): return 3", "def __iter__(self): return iter('xyz')", "def upper(self): return 'U' + super().upper()"], 3):  # fmt: skip
            text += f"    {extra}\n"
        self.do(text, f"o = {c}({make})")
        self.ask(
            *r.sample(more, 8),
            "o.tag",
            f"isinstance(o, {base})",
            f"type(o).__name__",
            f"type(o + o).__name__" if base != "dict" and base != "set" else "len(o)",
            "o.__dict__",
            f"{base}(o)",
            "bool(o)",
            "str(o)",
            "o.nope",
            f"{c}()",
        )
        self.do(
            "o['k'] = 5; print(o)",
            "o[0] = 7; print(o)",
            "o.extra = 1; print(o.extra)",
            "for q in o: print(q)",
            "o += [1] if isinstance(o, list) else o; print(o, type(o).__name__)",
        )

    def unpacking(self) -> None:
        self.ask(
            *self.random.sample(
                [
                    "[*(1, 2), *{3: 4}]",
                    "print(*[1, 2], sep='-')",
                    "print(1, 2, end='!\\n')",
                    "print(sep='')",
                    "print('a', sep=3)",
                    "{*[1, 1]}",
                    "dict(a=1, **{'b': 2})",
                    "dict(a=1, **{'a': 2})",
                    "(lambda a, b: a + b)(*'xy')",
                    "max(*[1, 2])",
                    "print(*5)",
                ],
                6,
            )
        )
        self.do(
            "a, *b, c = range(5); print(a, b, c)",
            "*a, b = 'x'; print(a, b)",
            "a, *b, c = [1]",
            "[a, [b, c]] = 1, (2, 3); print(a, b, c)",
            "a, b = 5",
            "a, b = {1: 2, 3: 4}; print(a, b)",
            "a, b = 'abc'",
            "for a, b in [(1, 2, 3)]: pass",
            "(a, b), c = 1, 2",
            "a, b = (q for q in (1, 2)); print(a, b)",
        )

    def slicing(self) -> None:
        r = self.random
        numbers = [self.one("", "0", "1", "-1", "5", "-7", "None") for _ in range(3)]
        if numbers[2] == "0" and r.random() < 0.5:
            numbers[2] = "2"
        s = ":".join(numbers)
        self.add("L = list(range(6)); T = tuple('abcdef'); S = 'abcdef'; R = range(2, 20, 3)")
        self.ask(
            f"L[{s}]",
            f"T[{s}]",
            f"S[{s}]",
            f"R[{s}]",
            "R",
            "len(R), R[-1], 5 in R, R.index(8)",
            "R[99]",
            "list(R[::-1])",
            "slice(1, 2)",
            "L[slice(1, 4)]",
            "range(0)[0]",
            "range(1.5)",
            "range(1, 2, 0)",
            "R == range(2, 18, 3)",
            "R.count(5)",
            "hash(range(3)) == hash(range(3))",
            "slice(1, 9, 2).indices(5)",
        )
        self.do(
            f"L[{s}] = {self.one('[9]', '[7, 8, 9]', '[]', '5', repr('ab'))}; print(L)",
            f"del L[{s}]; print(L)",
        )

    def numbers(self) -> None:
        r = self.random
        pool = [
            "0",
            "1",
            "-3",
            "2.5",
            "True",
            "10**18",
            "-0.0",
            "1e308",
            "float('inf')",
            "float('nan')",
            "7",
            "'a'",
            "None",
            "3",
            "-7",
        ]
        a, b = r.choice(pool), r.choice(pool)
        ops = "+ - * / // % ** < <= == != & | ^ << >>".split()
        self.ask(
            *[
                f"({a}) {o} ({b})"
                for o in r.sample(ops, 9)
                if not (o in ("**", "<<") and "10**18" in a + b)
            ]
        )
        self.ask(*[f"{f}" for f in r.sample([f"int({a})", f"float({a})", f"bool({a})", f"abs({a})", f"round({a})", f"round({a}, 1)", f"divmod({a}, {b})", f"pow(2, 3, 5)", f"math.floor({a})", f"math.sqrt({a})", f"math.gcd(12, 18)", f"math.log({a})", f"math.isnan({a})", f"math.factorial(5)", f"math.factorial(-1)", f"math.comb(5, 2)", f"hash({a}) == hash({b})", f"str({a})", f"max({a}, {b})", f"({a}).__class__.__name__", f"isinstance({a}, int)", f"bin({a})", f"hex({a})", f"math.isclose({a}, {b})", f"sum([{a}, {b}])", f"math.ceil({a})", f"math.trunc({a})", f"math.copysign(1, {a})", f"math.pow({a}, {b})", f"math.exp({a})", f"math.atan2({a}, {b})", f"math.hypot(3, 4)", f"math.prod([1, 2, 3])", f"~({a})", f"-({a})", f"+({a})", "float('abc')", "int('z', 36)", "(2.5).is_integer()", "(5).bit_length()", "math.pi", "math.inf", f"math.fmod({a}, {b})", "0.1 + 0.2", "1 / 3", "2 ** -1", "2 ** 0.5", "7 // -2, 7 % -2, -7 % 2.5", "1e22, 1e16, 123456789.123", "10 ** 25", "int(1e20)", "(-8) ** (1/3) == 3"], 14)])  # fmt: skip

    def managers(self) -> None:
        c = self.name()
        self.add("import contextlib")
        self.add(f"class {c}:\n    def __init__(self, n): self.n = n\n    def __enter__(self):\n        print('enter', self.n)\n        return {self.one('self', 'self.n', '(1, 2)')}\n"
                 f"    def __exit__(self, t, v, tb):\n        print('exit', self.n, t and t.__name__, v)\n        return {self.one('True', 'False', 'None', 't is ValueError', '1', '[]')}\n"
                 f"@contextlib.contextmanager\ndef cm_{c}(n):\n    print('in', n)\n    {self.one('try:' + chr(10) + '        yield n' + chr(10) + '    finally: print(' + repr('out') + ')', 'yield n', 'yield 1; yield 2', 'pass; return' + chr(10) + '    yield', 'try:' + chr(10) + '        yield n' + chr(10) + '    except ValueError: print(' + repr('swallowed') + ')')}\n    print('done', n)")  # fmt: skip
        bodies = ["print(q)", "raise ValueError('b')", "1 / 0", "pass"]
        for m in (
            f"{c}(1)",
            f"cm_{c}(2)",
            f"contextlib.suppress(ValueError)",
            f"{c}(1) as z, {c}(2)",
            f"contextlib.nullcontext(3)",
            "5",
        ):
            if self.random.random() < 0.7:
                self.do(f"with {m} as q:\n    {self.one(*bodies)}\nprint('after')")
        self.do(
            f"def f():\n    for i in range(3):\n        with {c}(i):\n            {self.one('return i', 'continue', 'break', 'raise KeyError(i)')}\n    return 'end'\nprint(f())"
        )


def here(text: str) -> list[str]:
    """What the program prints here."""
    report = run(Source(text, "<fuzz>"), Options())
    out = report.stdout
    if report.error is not None:
        error = report.error
        out += f"\nSTOPPED {error.code} {error.message}"
    return out.splitlines()


def there(text: str) -> list[str]:
    """What it prints in Python."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            exec(compile(text, "<fuzz>", "exec", dont_inherit=True), {"__name__": "__main__"})
        except SyntaxError as error:
            return [f"SyntaxError {error}"]
        except BaseException as error:
            print(f"\nSTOPPED {type(error).__name__} {error}")
    return out.getvalue().splitlines()


ADDRESS = re.compile(r"0x[0-9a-f]+")


def marked(text: str) -> tuple[str, list[str]]:
    """The program with a line printed before each part, and the parts."""
    parts = re.split(r"(?m)^(?=\S)(?!except)", text)
    joined = "".join(
        part if part.startswith(("import", "from", "@")) or not part.startswith("try:")
        else f"print('#{i}')\n{part}"
        for i, part in enumerate(parts)
    )  # fmt: skip
    return joined, parts


def by_part(lines: list[str]) -> Iterator[tuple[int, list[str]]]:
    at, held = -1, []
    for line in lines:
        if re.fullmatch(r"#\d+", line):
            yield at, held
            at, held = int(line[1:]), []
        else:
            held.append(ADDRESS.sub("0x", line))
    yield at, held


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int)
    options = parser.parse_args()
    if options.show is not None:
        print(Program(options.show).text)
        return
    sys.setrecursionlimit(5000)
    warnings.simplefilter("ignore")
    differ, seen = 0, set()
    for seed in range(options.seed, options.seed + options.n):
        text, parts = marked(Program(seed).text)
        expected = there(text)
        if expected and expected[0].startswith("SyntaxError"):
            continue
        try:
            found = here(text)
        except Exception as error:
            found = [f"CRASH {type(error).__name__} {error}"]
        if [ADDRESS.sub("0x", line) for line in expected] == [
            ADDRESS.sub("0x", line) for line in found
        ]:
            continue
        differ += 1
        theirs, ours = dict(by_part(expected)), dict(by_part(found))
        for at, lines in theirs.items():
            mine = ours.get(at, ["(not reached)"])
            if lines != mine:
                kind = re.sub(r"N\d+\w*|v\d_\w+|\d+", "#", f"{parts[at][:70]}{lines[:1]}{mine[:1]}")
                short = re.sub(r"N\d+\w*|v\d_\w+|\d+", "#", f"{lines[-1:]}{mine[-1:]}")
                if mine != ["(not reached)"] and kind not in seen and short not in seen:
                    seen.update((kind, short))
                    asked = parts[at] if at >= 0 else ""
                    print(
                        f"--- seed {seed}\n{asked[:400].rstrip()}\n   python {lines}\n   here   {mine}"
                    )
    print(f"{differ} of {options.n} programs differ")
    sys.exit(differ > 0)


if __name__ == "__main__":
    main()
