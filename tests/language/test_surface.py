"""Everything a program can call, with the keywords, ranks and modes of PyTorch's signatures.

The programs are generated (`tests/oracles/surface.py`); each runs once, and what all of them reach
is recorded: a function of the library, a statement of it or a keyword that no program reaches
fails the test.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import groupby
from typing import Any

import pytest
import scipy

from autodiff_cli.graph.op import Op
from autodiff_cli.graph.params import REQUIRED
from autodiff_cli.graph.registry import OPS
from autodiff_cli.language.nn import prelude
from autodiff_cli.language.nn.module_names import FILES, PRELUDE
from autodiff_cli.language.random.functions import RANDOM
from autodiff_cli.language.runtime import statements
from autodiff_cli.language.syntax import tree as syntax
from autodiff_cli.language.values.functions import Parameters
from autodiff_cli.ops import load_all
from autodiff_cli.session import Options, run
from autodiff_cli.source import Source
from tests.recorded import cases, same_text

SCIPY = tuple(map(int, scipy.__version__.split(".")[:2]))
# J1(1e30) as Cephes has it, PyTorch and SciPy until 1.17, and as it is to seven digits.
CEPHES, RIGHT = (
    f"{value},           nan,  5.767248e-01" for value in ("-7.978498e-16", " 5.694297e-16")
)
CELL = re.compile(r'^print\("#", \d+\)\n', re.MULTILINE)
# Keywords that change nothing on the CPU, or are PyTorch's own.
IDLE = re.compile(r"\((?:device|foreach|_instance|_stacklevel)=\)$")
# What programs get of Python's own modules has tests of its own.
PYTHON = {name for file in ("argparse", "pathlib") for name in FILES[file].split()}
MARK = re.compile(r"^# \d+\n", re.MULTILINE)


class Reached:
    """What ran: statements of the library, keywords of it and of functions of tensors."""

    def __init__(self) -> None:
        self.wanted: set[str] = set()
        self.seen: set[str] = set()

    def statement(self, compile_one: Callable[..., Any]) -> Callable[..., Any]:
        """A compiler of statements that notes which of the library's ran."""

        def compiled(tree: Any, context: Any) -> Any:
            inner = compile_one(tree, context)
            source = tree.span.source
            if type(source) is not prelude.PreludeSource or _title(source.text) in PYTHON:
                return inner
            title = _title(source.text)
            line = source.text.splitlines()[tree.span.line - 1].strip()
            key = f"{title}: {line}"
            self.wanted.add(key)
            if isinstance(tree, syntax.FunctionDef):
                for param in tree.params:
                    if param.default is not None:
                        self.wanted.add(f"{title}.{tree.name}({param.name}=)")

            def ran(scope: Any) -> Any:
                self.seen.add(key)
                return inner(scope)

            return ran

        return compiled

    def bound(self, bind: Callable[..., None]) -> Callable[..., None]:
        """Binds arguments of the library's functions, and notes those that are no defaults."""

        def binding(self_: Any, function: Any, args: Any, kwargs: Any, names: Any) -> None:
            bind(self_, function, args, kwargs, names)
            source = function.span.source if function.span is not None else None
            if type(source) is prelude.PreludeSource:
                title = f"{_title(source.text)}.{function.name}"
                for name in (*self_.positional[: len(args)], *kwargs):
                    self.seen.add(f"{title}({name}=)")

        return binding

    def given(self, bind: Callable[..., Any]) -> Callable[..., Any]:
        """Binds arguments of ops, and notes those that are no defaults."""

        def binding(op: Any, args: Any, kwargs: Any) -> Any:
            if op.name.startswith("nn.functional."):
                for name in (*[p.name for p in op.params[: len(args)]], *kwargs):
                    self.seen.add(f"{op.name}({name}=)")
            return bind(op, args, kwargs)

        return binding

    def drawing(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """A function that draws, and notes the arguments that are no defaults."""

        def called(*args: Any, **kwargs: Any) -> Any:
            for each in (*[p.name for p in NOISE[name].params[: len(args)]], *kwargs):
                self.seen.add(f"{name}({each}=)")
            return function(*args, **kwargs)

        return called


@cache
def _title(text: str) -> str:
    return re.search(r"^(?:class|def) (\w+)", text, re.MULTILINE)[1]  # type: ignore[index]  # every part defines one


def functional() -> list[Op]:
    """The functions of tensors that layers are made of."""
    load_all()
    return [op for op in OPS.values() if op.public and op.name.startswith("nn.functional.")]


FIXTURE = cases("surface")
AGAIN = "torch.manual_seed(0)\ntorch.set_default_dtype(torch.float64)\n"
BETWEEN = {"source": AGAIN, "stdout": ""}


def several() -> Iterator[dict[str, str]]:
    """Some programs after one another, as all begin with the same lines."""
    for kind, programs in groupby(FIXTURE["cases"], lambda case: case["id"].partition(":")[0]):
        whole = list(programs)
        step = 4 if kind == "rest" else 8
        for part in (whole[i : i + step] for i in range(0, len(whole), step)):
            yield {
                key: "".join(BETWEEN[key] + case[key] for case in part)
                for key in ("source", "stdout")
            } | {"id": part[0]["id"]}


CASES = list(several())
REACHED = Reached()
NAMES = prelude._Names()
# Functions that draw are no ops where programs have a state of random numbers.
NOISE = {op.name: op for op in functional() if op.name in RANDOM}


@contextmanager
def recording() -> Iterator[None]:
    """The library compiled once more, so that it notes what runs."""
    with pytest.MonkeyPatch.context() as patch:
        compilers = {kind: REACHED.statement(one) for kind, one in statements.STATEMENTS.items()}
        patch.setattr(statements, "STATEMENTS", compilers)
        patch.setattr(Parameters, "bind", REACHED.bound(Parameters.bind))
        patch.setattr(Op, "bind", REACHED.given(Op.bind))
        patch.setattr(prelude._SCOPE, "names", NAMES)
        for name in NOISE:
            patch.setattr(RANDOM[name], "function", REACHED.drawing(name, RANDOM[name].function))
        yield


@cache
def differences(number: int) -> list[str]:
    """What a program does otherwise than in PyTorch."""
    with recording():
        return list(_differences(FIXTURE, CASES[number]))


def _differences(fixture: dict[str, Any], case: dict[str, Any]) -> Iterator[str]:
    if case["id"] == "rest: special" and SCIPY >= (1, 18):
        assert case["stdout"].count(CEPHES) == 1
        case = {**case, "stdout": case["stdout"].replace(CEPHES, RIGHT)}
    source = Source(fixture["helpers"] + case["source"], "program.py")
    report = run(source, Options(backward=False))
    if report.error is None and same_text(report.stdout, case["stdout"]):
        return
    if report.error is not None:
        yield f"{case['id']}: {report.error}"
    found, wanted = MARK.split(report.stdout), MARK.split(case["stdout"])
    cells = CELL.split(case["source"])
    for i, (here, there) in enumerate(zip(found, wanted, strict=False)):
        if not same_text(here, there):
            yield f"{case['id']}: {cells[i]}\nhere: {here}\nPyTorch: {there}"


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda i: CASES[i]["id"])
def test_as_pytorch(number: int) -> None:
    assert not (differing := differences(number)), "\n\n".join(differing[:10])


def test_every_part_of_the_library_is_reached() -> None:
    """Additions need a program in `tests/oracles/surface/`."""
    for number in range(len(CASES)):
        differences(number)
    with recording():
        for name in PRELUDE:
            prelude.define(name)
    wanted = REACHED.wanted | {
        f"{op.name}({param.name}=)"
        for op in functional()
        for param in op.params
        if param.default is not REQUIRED
    }
    missing = {name for name in wanted - REACHED.seen if not IDLE.search(name)}
    assert not missing, "no program reaches:\n" + "\n".join(sorted(missing))
