"""What programs reach by naming attributes: every name of Python's own objects behind the values of
the language, asked of every kind of value; what answers is a value of the language."""

from __future__ import annotations

import collections
import functools
import itertools
import types
from typing import Any

import numpy as np
import pytest

from autodiff_cli import suggest
from autodiff_cli.errors import AutodiffError
from autodiff_cli.language.program.report import Options
from autodiff_cli.language.program.running import Program
from autodiff_cli.language.runtime.attributes import get_attribute, set_attribute
from autodiff_cli.language.runtime.class_statements import Super
from autodiff_cli.language.values.user_classes import OBJECT, UserClass
from autodiff_cli.language.values.values import Instance
from autodiff_cli.source import Source

PROGRAM = """
import torch, math, enum, collections, functools, itertools, dataclasses, abc
import torch.nn as nn
x = torch.tensor([1., 2.], requires_grad=True)
class Plain:
    limit = 3
    def __init__(self): self.a = 1
    def method(self): return super()
    @property
    def area(self): return 2
    @staticmethod
    def fixed(): return 1
    @classmethod
    def made(cls): return cls()
class Stack(list): pass
class Text(str): pass
class Record(dict): pass
class Wrong(ValueError): pass
class Kind(enum.Enum): A = 1
class Bits(enum.IntFlag):
    R = 1
    W = 2
@dataclasses.dataclass
class Point:
    x: int = 0
Pair = collections.namedtuple('Pair', 'a b')
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        Square.seen = ctx
        return x * x
    @staticmethod
    def backward(ctx, g): return g
def function(a, b=1): return a
def stepwise():
    yield 1
square = Square.apply(x)
context = Square.seen
plain, stack, record, point = Plain(), Stack([1]), Record(a=1), Point()
pair, net = Pair(1, 2), Net()
written, member, bits, parent = Text('a'), Kind.A, Bits.R | Bits.W, Plain().method()
property_, static, klass = Plain.area, vars(Plain)['fixed'], vars(Plain)['made']
bound, made, of_library, running = plain.method, Plain.made, net.forward, stepwise()
partly, cached = functools.partial(function, 1), functools.lru_cache(function)
nothing, number, small, text, row, items = None, 1.5, 3, 'text', (1, 2), [1]
table, several, frozen, part, counted = {'a': 1}, {1}, frozenset([1]), slice(1), range(3)
queue, tally, ordered = collections.deque([1]), collections.Counter('ab'), collections.OrderedDict()
missing, keys, lazy, pairs = collections.defaultdict(list), {'a': 1}.keys(), zip([1]), map(len, [])
operation, builtin, kind, factory, root = torch.sin, len, str, list, object
mode, dtype, size, device = torch.no_grad(), torch.float32, x.shape, torch.device('cpu')
step, optimizer = (x * 2).grad_fn, torch.optim.SGD([x], lr=0.1)
handle, loader = net.register_forward_hook(function), torch.utils.data.DataLoader([1.])
noise, field_, rows = torch.Generator(), dataclasses.fields(Point)[0], x.max(0)
try:
    raise Wrong('no')
except Wrong as error:
    caught = error
mistake = None
try:
    [][1]
except IndexError as error:
    mistake = error
"""
CLASSIC = """
    gi_frame gi_code gi_yieldfrom cr_frame ag_frame f_globals f_locals f_builtins f_back f_code
    tb_frame tb_next co_code co_consts func_globals im_func im_self __globals__ __builtins__
    __code__ __closure__ __defaults__ __kwdefaults__ __subclasses__ __mro__ __bases__ __base__
    __reduce__ __reduce_ex__ __getattribute__ __getattr__ __init__ __new__ __dict__ __class__
    __func__ __self__ __wrapped__ __traceback__ __context__ __cause__ __import__ __loader__
    __spec__ __file__ __weakref__ __slots__ __annotations__ __type_params__ __module__ mro
    names flat line fields function owner source scope body params tree node storage call
    get_attribute set_attribute describe held special cls fixed finish layout make read assign
    _node _refresh _own __isabstractmethod__ fget __get__ __set__ __delete__ __set_name__
    """
KINDS = (
    type(None) | bool | int | float | str | list | tuple | dict | set | frozenset | slice | range
    | np.dtype | property | staticmethod | classmethod | functools.partial | collections.deque
    | type(functools.cache(len)) | type({}.keys()) | type({}.values()) | type({}.items())
    | types.NotImplementedType | types.EllipsisType | Instance | Super
)  # fmt: skip
OWN = ("autodiff_cli.language.", "autodiff_cli.autograd.")


def _is_value(value: Any, depth: int = 0) -> bool:
    """Whether programs may hold a value, and what it holds."""
    if isinstance(value, types.MethodType):
        return _is_value(value.__func__) and _is_value(value.__self__)
    if isinstance(value, type):
        return isinstance(value, UserClass)
    if isinstance(value, property):
        return all(_is_value(part) for part in (value.fget, value.fset, value.fdel))
    if isinstance(value, dict | list | tuple) and depth < 3:
        inside = [*value, *value.values()] if isinstance(value, dict) else value
        return all(_is_value(part, depth + 1) for part in itertools.islice(inside, 200))
    return isinstance(value, KINDS) or type(value).__module__.startswith(OWN)


@pytest.fixture(scope="module")
def values() -> dict[str, Any]:
    program = Program(Source(PROGRAM, "reach.py"), Options())
    program.run()
    return dict(program.scope.names)


def _names(values: dict[str, Any]) -> list[str]:
    found = set(CLASSIC.split())
    for value in values.values():
        found.update(dir(value), dir(type(value)), dir(type(type(value))))
    return sorted(found)


def test_attributes(values: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    # Which name was meant is no question here, and most of the time.
    monkeypatch.setattr(suggest, "distance_of", lambda left, right, most: most + 1)
    monkeypatch.setattr(suggest, "_containment", lambda word, other: None)
    names = _names(values)
    assert len(values) * len(names) > 30_000
    wrong = []
    for kind, value in values.items():
        for name in names:
            try:
                found = get_attribute(value, name)
            except AutodiffError as error:
                if error.code == "E900":
                    wrong.append((kind, name, error.message))
                continue
            if not _is_value(found):
                wrong.append((kind, name, repr(found)[:60]))
    assert not wrong


def test_attributes_that_are_set(values: dict[str, Any]) -> None:
    """Nothing of Python's changes, whatever a program assigns."""
    watched = [value for value in values.values() if not isinstance(value, Instance)]
    before = {id(v): (type(v), dict(getattr(v, "__dict__", {}))) for v in watched}
    methods = {name: getattr(OBJECT, name) for name in dir(OBJECT)}
    for value in values.values():
        for name in CLASSIC.split():
            try:
                set_attribute(value, name, 1)
            except AutodiffError as error:
                assert error.code in ("E203", "E205", "E207", "E208"), (name, error)
    for value in watched:
        kind, held = before[id(value)]
        assert type(value) is kind
        if not isinstance(value, UserClass):
            assert dict(getattr(value, "__dict__", {})) == held
    assert methods == {name: getattr(OBJECT, name) for name in dir(OBJECT)}
