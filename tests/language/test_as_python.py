"""Programs without tensors print what CPython, which runs them beside, prints."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest

from autodiff_cli.session import run
from autodiff_cli.source import Source
from tests.oracles.words import same_words

PROGRAMS = {
    "private names": """
import math
class A:
    __k = 1
    def __init__(self): self.__x = 1
    def a(self): return self.__x, self.__k, A.__k
    def __p(self, __q=3): return __q
    def show(self): return self.__p()
class B(A):
    def __init__(self):
        super().__init__()
        self.__x = 2
    def b(self): return self.__x, f"{self.__x}", [self.__x for _ in range(1)]
    def __p(self): return 'B'
class _C(B):
    class _In:
        __z = 3
        def z(self): return self.__z
    def c(self):
        def inner():
            nonlocal __n
            __n += 1
            return __n, self.__m
        self.__m, __n = 5, 1
        return inner()
b = B()
print(b.a(), b.b(), b._A__x, b.__dict__, b.show(), b._A__p(7), b._B__p())
class Slotted:
    __slots__ = ('__x',)
    def set(self): self.__x = 4; return self.__x
print(Slotted().set())
print(_C._In().z(), _C._In._In__z, _C().c(), vars(_C()))
for name in ('_A__k', '__k', '_B__x'): print(name, hasattr(b, name))
try: b.__x
except AttributeError as e: print(e)
""",
    "slices": """
import math
L = [1, 2, 3, 4]
try: L[::2] = [0, 1, 2]
except ValueError as e: print(e, L)
for step in (0, False):
    try: print(L[::step])
    except ValueError as e: print(e)
for values in ('ab', L, (1,), range(3)):
    for place in (10**20, -10**20):
        try: values[place]
        except IndexError: print('no such place')
try: L[::0] = []
except ValueError as e: print(e)
try: del L[::0]
except ValueError as e: print(e)
L[::2] = 'ab'; L[1:2] = (); print(L)
print(range(2, 20, 3).index(8), range(9).count(5), 'a-b-c'.split('-', maxsplit=1))
""",
    "texts of classes": """
import math, enum
class S(str): pass
class Colour(str, enum.Enum):
    RED = 'r'
    def __str__(self): return 'C' + self.name
class Items(set): pass
class Fixed(frozenset): pass
print(Items([1]), [Items()], str(Fixed([2])), repr(Fixed()))
class Other:
    def __getattr__(self, name): return 'no ' + name
    def __hash__(self): return 'a'
    def __index__(self): return 1.5
o = Other()
o.x = 1
print(o.y, o.__dict__, o.__class__.__name__)
for f in (lambda: {o: 1}, lambda: {o}, lambda: hash(o), lambda: [1][o], lambda: [1] * o):
    try: f()
    except TypeError as e: print(e)
print('%s|%s|%r' % (Colour.RED, S('c'), S('d')))
print(S('ab'), f'{S("ab")}|{S("ab"):>4}', [S('ab')], f'{Colour.RED}', str(Colour.RED))
""",
    "arguments and bases refused": """
import math
class A: pass
try:
    class B(A, A): pass
except TypeError as e: print(e)
def keywords(**options): return options
try: print(keywords(a=1, **{'a': 2}))
except TypeError: print('twice')
print(keywords(a=1, **{'b': 2}, **{'c': 3}))
try: raise ValueError('v') from 5
except TypeError as e: print(e)
try: raise ValueError('v') from KeyError
except ValueError as e: print(repr(e.__cause__))
for f in (lambda: sorted([2], len), lambda: [2].sort(len)):
    try: f()
    except TypeError: print('TypeError')
""",
}


for text in Path(__file__).with_name("as_python.txt").read_text("utf-8").split("=====\n"):
    PROGRAMS[text.partition("\n")[0].lstrip("# ")] = text


# Some programs are wrong on purpose, which CPython notices when it compiles them.
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("name", PROGRAMS)
def test_as_python(name: str) -> None:
    expected = io.StringIO()
    with contextlib.redirect_stdout(expected), contextlib.redirect_stderr(io.StringIO()):
        exec(compile(PROGRAMS[name], name, "exec", dont_inherit=True), {"__name__": "__main__"})
    report = run(Source(PROGRAMS[name], name))
    assert report.error is None, report.error
    assert report.stdout == same_words(expected.getvalue())
