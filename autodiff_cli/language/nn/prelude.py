"""The part of the library that is written in the language itself: modules, schedulers, helpers.

Its files lie in `prelude/`. A class or function is parsed when a program first names it; what it
computes and what goes wrong in it has the place of the program's call, never one in these files.

What only keeps its arguments and calls a function is written as a row:

    layer Softplus(beta=1.0, threshold=20.0)
        forward(input) = F.softplus(input, .beta, .threshold)
        shows beta={.beta}, threshold={.threshold}

`.beta` is `self.beta`, `of Base(beta)` gives arguments to a base that keeps them, and other lines
end the constructor. `name(x) = ...` is a method that returns one value, in any class. A constructor
of a class keeps its parameters that are written `.beta`, made by a function when it follows:
`.size: whole`. A definition of `MaxPoolNd` is one of `MaxPool1d`, `MaxPool2d` and `MaxPool3d`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from ...autograd.tensor import Tensor
from ...errors import AutodiffError
from ...graph.node import Node, tick
from ...graph.params import check_device
from ...graph.state import STATE, grad_mode
from ...graph.walk import bodies, walk
from ...source import Source, Span
from ..errors.advice import called_as
from ..runtime.expressions import Context
from ..runtime.statements import compile_block
from ..syntax.parser import parse
from ..values.exceptions import Raised
from ..values.functions import call_user
from ..values.user_classes import Object, UserClass
from ..values.values import Namespace, Scope, UserFunction
from .library import SUPPORT, plain
from .module_methods import MODULE
from .module_names import PRELUDE

FOLDER = Path(__file__).parent / "prelude"
_PART = re.compile(r"^(?:@.*\n)*(?:class|def|layer) (\w+)(?:.*\n)(?:(?:[ #].*)?\n)*", re.MULTILINE)
_ROW = re.compile(r"layer (\w+)(?:\((.*?)\))?(?: of (\w+)(?:\((.*)\))?)?")
_METHOD = re.compile(r"^    (?:(\w+)\((.*?)\) = (.*)|__init__\((.*)\))$", re.MULTILINE)
_INIT = re.compile(r"^    def __init__\(self, (.*)\):\n(        super\(\).__init__\(\)\n)?", re.M)
_KEPT = re.compile(r"(?<![\w)\]])\.([A-Za-z_]\w*)(?:: (\w+))?")
_SET = re.compile(r'^ +\.(?:register_buffer\(")?(\w+)', re.MULTILINE)
_OF_SELF = re.compile(r"""(?<![\w)\]}"'])\.(?=[a-z_])""")


class PreludeSource(Source):
    """Text of the library; its spans never reach a program."""

    shown = False
    __slots__ = ()


class LibraryFunction(UserFunction):
    """A function of the library: to the program that calls it, it is one expression."""

    __slots__ = ("owner",)

    def __init__(self, function: UserFunction, owner: str):
        super().__init__(
            function.name,
            function.params,
            function.body,
            function.scope,
            function.span,
            function.defaults,
            function.keyword_defaults,
        )
        self.owner = owner
        self.wrappers = function.wrappers

    def call(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        span = STATE.span
        if span is not None and not span.source.shown:
            return self.run(args, kwargs)
        if not STATE.python and self.name == "__init__":
            args = [plain(value) for value in args]
            kwargs = {name: plain(value) for name, value in kwargs.items()}
        check_device(kwargs.get("device"))
        since = tick()
        before, STATE.called = STATE.called, span
        try:
            result = self.run(args, kwargs)
        except AutodiffError as error:
            raise _from_outside(error, self) from None
        finally:
            STATE.span, STATE.called = span, before
        _place(args[0] if self.name == "__init__" else result, since, span)
        return result

    def run(self, args: list[Any], kwargs: dict[str, Any]) -> Any:
        """The call itself, in the grad mode that it asks for."""
        for mode in self.wrappers:
            with grad_mode(mode.enabled):
                return call_user(self, args, kwargs)
        return call_user(self, args, kwargs)


def _from_outside(error: AutodiffError, function: LibraryFunction) -> AutodiffError:
    """The error without places in the library, in the words of its callers."""
    found = error.diagnostic
    if found.span is not None and not found.span.source.shown:
        labels = [label for label in found.labels if label.span.source.shown]
        error.amend(span=None, label="", labels=tuple(labels))
        if isinstance(error, Raised):
            error.amend(
                message=error.shown,
                helps=("print what is given to the call, and compare",),
            )
    if function.owner:
        called_as(error, function.owner, "self")
    return error


def _place(result: Any, since: int, span: Span | None) -> None:
    """Give the nodes that a call made the place of the call."""

    def new(nodes: Iterable[Node]) -> list[Node]:
        return [node for node in nodes if node.seq > since]

    made = new(tensor.looked_at for tensor in _tensors(result))
    for node in walk(made, lambda node: new((*node.inputs, *bodies(node)))):
        if node.span is not None and not node.span.source.shown:
            node.span = span


def _tensors(value: Any) -> Iterator[Tensor]:
    pending = value.held() if isinstance(value, Object) else [value]
    while pending:
        item = pending.pop()
        if isinstance(item, Tensor):
            yield item
        elif type(item) is tuple or (type(item) is list and len(item) < 1000):
            pending.extend(item)


class _Names(dict[str, Any]):
    """The names of the library's files: each is defined when it is first looked up."""

    def get(self, name: str, default: Any = None) -> Any:
        found = super().get(name, default)
        if found is default and name in PRELUDE:
            return define(name)
        return found


_SCOPE = Scope()
_SCOPE.names = _Names()


@cache
def _texts(file: str) -> dict[str, str]:
    """The text of each definition of a file."""
    texts: dict[str, str] = {}
    for match in _PART.finditer((FOLDER / f"{file}.expr").read_text("utf-8")):
        for size in "123" if match[1].endswith("Nd") else "":
            name = f"{match[1][:-2]}{size}d"
            if PRELUDE.get(name) == file:
                texts.setdefault(name, re.sub(r"N(?=d\b)|\bN\b", size, match[0]))
        if not match[1].endswith("Nd"):
            texts[match[1]] = match[0]
    return texts


def _method(row: re.Match[str]) -> str:
    """`name(x) = ...` as a method, and a constructor that only keeps its parameters."""
    if row[1] is None:
        return f"    def __init__(self, {row[4]}):\n        pass"
    return f"    def {row[1]}(self, {row[2]}):\n        return {_OF_SELF.sub('self.', row[3])}"


def _keeping(start: re.Match[str]) -> str:
    """The start of a constructor, with what keeps its parameters."""
    kept = ""
    for name, kind in _KEPT.findall(start[1]):
        value = f'{kind}({name}, "{name}")' if kind else name
        kept += f"        self.{name} = {value}\n"
    params = _KEPT.sub(r"\1", start[1])
    return f"    def __init__(self, {params}):\n{start[2] or ''}{kept}"


def _written_out(text: str) -> str:
    """A definition without rows."""
    if not text.startswith("layer "):
        return _INIT.sub(_keeping, _METHOD.sub(_method, text))
    head, *lines = text.strip().splitlines()
    match = _ROW.fullmatch(head)
    assert match is not None, head
    name, params, base, given = match.groups()
    kept = set(re.findall(r"\w+", given or "") + _SET.findall(text))
    start, methods = [f"super().__init__({given or ''})"], []
    for field in re.findall(r"(\w+)(?:=[^,]*)?(?:, |$)", params or ""):
        if field not in kept:
            start.append(f"self.{field} = {field}")
    for line in lines:
        if _METHOD.match(line):
            methods.append(_METHOD.sub(_method, line))
        elif line.startswith("    shows"):
            shown = _OF_SELF.sub("self.", line[10:])
            methods.append(f'    def extra_repr(self):\n        return f"{shown}"')
        else:
            start.append(_OF_SELF.sub("self.", line.strip()))
    if params:
        body = "\n        ".join(start)
        methods.insert(0, f"    def __init__(self, {params}):\n        {body}")
    return "\n".join([f"class {name}({base or 'Module'}):", *(methods or ["    pass"]), ""])


def names_of(file: str) -> list[str]:
    """What a file defines."""
    return list(_texts(file))


def define(name: str) -> Any:
    """The class or function of the library with this name."""
    names = _SCOPE.names
    if not names:
        _provide(names)
    found = dict.get(names, name)
    if found is not None:
        return found
    file = PRELUDE[name]
    span = STATE.span
    try:
        tree = parse(PreludeSource(_written_out(_texts(file)[name]), "<library>"))
        compile_block(tree.body, Context())(_SCOPE)
        found = names[name]
        if isinstance(found, UserClass):
            found.fixed = True
            found.names.update({k: _outside(v, _shown(name, k)) for k, v in found.names.items()})
        else:
            names[name] = found = LibraryFunction(found, "")
    except BaseException:
        names.pop(name, None)
        raise
    finally:
        STATE.span = span
    return found


def _outside(value: Any, owner: str) -> Any:
    """A method of the library, to the program that calls it one expression."""
    if isinstance(value, UserFunction):
        return LibraryFunction(value, owner)
    if isinstance(value, property):
        return property(*[_outside(f, "") for f in (value.fget, value.fset, value.fdel)])
    if isinstance(value, staticmethod | classmethod):
        return type(value)(_outside(value.__func__, ""))
    return value


def _shown(owner: str, method: str) -> str:
    return owner if method in ("__init__", "forward") else ""


def _provide(names: dict[str, Any]) -> None:
    """Define the names that the library's files use besides the builtins."""
    paths = {
        "torch": "", "F": "nn.functional", "math": "math", "os": "python.os", "sys": "python.sys",
        "np": "np", "abc": "python.collections.abc", "collections": "python.collections",
    }  # fmt: skip
    spaces = {name: Namespace(path) for name, path in paths.items()}
    names.update(SUPPORT, Module=MODULE, euler=0.57721566490153286060, **spaces)
