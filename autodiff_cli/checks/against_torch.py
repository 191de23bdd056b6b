"""The same program in PyTorch, and the first value or gradient that departs.

PyTorch is imported only here, and only when somebody asked. Invariant: a program is run there only
after it ran here without error, with nothing but the names of its own language.
"""

from __future__ import annotations

import ast
import math
import operator
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from ..autograd.random_words import DEFAULT_SEED
from ..errors import AutodiffError, Diagnostic, Label, fail
from ..graph.node import Node
from ..graph.op import LEAF, value_of
from ..graph.registry import overloads
from ..language.kinds import MODE
from . import model
from .departures import differs
from .differences import GraphCheck
from .replay import Replay
from .watched import Watched

if TYPE_CHECKING:
    from ..source import Span
    from .runner import FileCheck

MODULES = ("torch", "numpy", "math", "typing", "__future__", "random", "functools", "dataclasses")
BUILTINS = (
    "abs", "all", "any", "bool", "dict", "enumerate", "float", "int", "isinstance", "len", "list",
    "map", "max", "min", "pow", "range", "reversed", "round", "set", "sorted", "str", "sum",
    "super", "tuple", "type", "zip", "object", "property", "staticmethod", "classmethod", "slice",
    "ValueError", "TypeError", "RuntimeError", "AssertionError", "Exception", "__build_class__",
)  # fmt: skip


class NotComparable(Exception):
    """PyTorch refused the program, or it cannot be written for PyTorch."""


def against_item(check: FileCheck) -> None:
    """Add the `torch` item: passed when every value and gradient agrees."""
    item = check.item("torch")
    if not check.add(item) or check.settings.collect:
        return
    started = time.perf_counter()
    try:
        item.diagnostic = _compared(check)
        item.status = model.PASSED if item.diagnostic is None else model.FAILED
        if item.diagnostic is not None and item.diagnostic.span is not None:
            item.line = item.diagnostic.span.line
    except NotComparable as problem:
        item.status = model.NOISY
        item.diagnostic = Diagnostic(
            "W602", f"cannot be compared with PyTorch: {problem}"[:500], severity="warning",
            helps=("compare the part that both understand",),
        )  # fmt: skip
    except AutodiffError as error:
        item.status, item.diagnostic = model.ERROR, error.diagnostic
    item.seconds = time.perf_counter() - started


def _compared(check: FileCheck) -> Diagnostic | None:
    program = Watched(check.source, check.options(), trace=True)
    program.run()
    python = MODE.python
    leaves = {
        span.line for _, span, node in program.history if node.op is LEAF and node.requires_grad
    }
    constants = {
        span.line for _, span, node in program.history if node.op is not LEAF and not node.inputs
    }
    there = Torch(check, python, leaves, constants)
    there.run()
    return _first_value(program, there) or _first_gradient(check, program, there)


class Assigned:
    """One assignment there: the name, the values at that time, the tensor itself."""

    def __init__(self, name: str, array: Any, value: Any):
        self.name = name
        self.array = array
        self.value = value
        self.version = value._version

    def gradient(self) -> Any:
        """Its gradient; None also when it was changed in place since: then the gradient that is
        kept is the one of the later value."""
        if self.value._version != self.version:
            return None
        grad = getattr(self.value, "grad", None)
        return None if grad is None else grad.numpy()


class Torch:
    """The program's run in PyTorch: every assignment of a tensor, in order."""

    def __init__(self, check: FileCheck, python: bool, leaves: set[int], constants: set[int]):
        import importlib

        self.torch: Any = importlib.import_module("torch")
        self.check = check
        self.python = python
        self.leaves = leaves
        self.constants = constants
        self.history: list[Assigned] = []
        self.names: dict[str, Any] = {}

    def run(self) -> None:
        """Run to the end, and backward from the loss if the program leaves that to us."""
        torch = self.torch
        before, state = torch.get_default_dtype(), torch.random.get_rng_state()
        try:
            torch.set_default_dtype(torch.float32 if self.python else torch.float64)
            torch.manual_seed(DEFAULT_SEED)
            code = compile(self._translated(), self.check.source.name, "exec")
            self.names.update(self._namespace())
            exec(code, self.names)
            loss = self.check.program.loss_name if self.check.program else None
            if loss is not None:
                value = self.names[loss]
                if value.requires_grad and value.numel() == 1:
                    value.backward()
        except (AutodiffError, KeyboardInterrupt):
            raise
        except Exception as error:
            text = str(error).strip().split("\n")[0]
            raise NotComparable(f"{type(error).__name__}: {text}") from None
        finally:
            torch.set_default_dtype(before)
            torch.random.set_rng_state(state)

    def _translated(self) -> ast.Module:
        try:
            tree = ast.parse(self.check.source.text)
        except (SyntaxError, ValueError, RecursionError) as error:
            raise NotComparable(f"it is no Python text: {error}") from None
        for node in ast.walk(tree):
            name = node.attr if isinstance(node, ast.Attribute) else ""
            if name.startswith("__") and name not in ("__init__", "__name__"):
                raise NotComparable(f"it uses `{name}`")
        if not self.python:
            tree.body = [self._native(statement) for statement in tree.body]
        return ast.fix_missing_locations(_Recorder().visit(tree))

    def _native(self, statement: ast.stmt) -> ast.stmt:
        """Literals assigned at module level are leaves."""
        if isinstance(statement, ast.Assign):
            mark = ast.Constant(statement.lineno)
            call = ast.Call(ast.Name("__made__", ast.Load()), [statement.value, mark], [])
            statement.value = ast.copy_location(call, statement.value)
        return statement

    def _namespace(self) -> dict[str, Any]:
        import builtins

        allowed = {name: getattr(builtins, name) for name in BUILTINS}
        allowed["print"] = lambda *args, **kwargs: None
        allowed["__import__"] = self._import
        found: dict[str, Any] = {"__builtins__": allowed, "__name__": "program"}
        found["__record__"] = self._record
        if self.python:
            return found
        found["__made__"] = self._made
        torch = self.torch
        used = {n.id for n in ast.walk(ast.parse(self.check.source.text))
                if isinstance(n, ast.Name)}  # fmt: skip
        for name in used:
            value = self._function(name)
            if value is not None:
                found[name] = value
        found["const"] = lambda value: torch.tensor(value)
        found["tensor"] = torch.tensor
        found.update(pi=math.pi, e=math.e, inf=math.inf, nan=math.nan, torch=torch)
        return found

    def _function(self, name: str) -> Any:
        """PyTorch's function of a bare name."""
        candidates = [name]
        for op in overloads(name):
            candidates += [op.name, *op.aliases]
        functional = self.torch.nn.functional
        for candidate in candidates:
            for root in (self.torch, functional, self.torch.special, self.torch.linalg):
                try:
                    return operator.attrgetter(candidate)(root)
                except AttributeError:
                    continue
        return None

    def _import(self, name: str, *args: Any, **kwargs: Any) -> Any:
        import builtins

        if name.partition(".")[0] not in MODULES:
            raise ImportError(f"a program may not import {name}")
        return builtins.__import__(name, *args, **kwargs)

    def _made(self, value: Any, line: int) -> Any:
        torch = self.torch
        if isinstance(value, torch.Tensor):
            return value
        if isinstance(value, tuple):
            return tuple(self._made(part, line) for part in value)
        if isinstance(value, bool) or not isinstance(value, int | float | list):
            return value
        if line in self.leaves:
            return torch.tensor(value, dtype=torch.float64, requires_grad=True)
        return torch.tensor(value) if line in self.constants else value

    def _record(self, name: str, value: Any) -> None:
        if isinstance(value, self.torch.Tensor):
            if value.requires_grad and not value.is_leaf:
                value.retain_grad()
            self.history.append(Assigned(name, value.detach().clone().numpy(), value))


class _Recorder(ast.NodeTransformer):
    """Puts a call after every assignment of names."""

    def _after(self, node: Any, targets: list[ast.expr]) -> Any:
        calls = []
        for name in _roots(targets):
            arguments = [ast.Constant(name), ast.Name(name, ast.Load())]
            call = ast.Call(ast.Name("__record__", ast.Load()), arguments, [])
            calls.append(ast.copy_location(ast.Expr(call), node))
        return [node, *calls]

    def visit_Assign(self, node: ast.Assign) -> Any:
        return self._after(node, node.targets)

    def visit_Assert(self, node: ast.Assert) -> Any:
        """Assertions are checked here, not there."""
        return ast.copy_location(ast.Pass(), node)

    def visit_AugAssign(self, node: ast.AugAssign) -> Any:
        return self._after(node, [node.target])

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        return self._after(node, [node.target]) if node.value is not None else node


def _roots(targets: list[ast.expr]) -> list[str]:
    """The names that assignments change, in order, as `watched.target_names` gives them: `x` of
    `x[0] = 1` and `x.grad = None` too."""
    found = []
    pending = list(reversed(targets))
    while pending:
        target = pending.pop()
        if isinstance(target, ast.Name):
            found.append(target.id)
        elif isinstance(target, ast.Tuple | ast.List):
            pending.extend(reversed(target.elts))
        elif isinstance(target, ast.Subscript | ast.Attribute | ast.Starred):
            pending.append(target.value)
    return found


# -- comparing ------------------------------------------------------------------------------------


def _pairs(program: Watched, there: Torch) -> list[tuple[str, Span, Node, Assigned]]:
    """Assignments of both sides, matched by name and turn."""
    theirs: dict[tuple[str, int], Assigned] = {}
    turns: dict[str, int] = {}
    for assigned in there.history:
        turn = turns.get(assigned.name, 0)
        turns[assigned.name] = turn + 1
        theirs[assigned.name, turn] = assigned
    found = []
    turns = {}
    for name, span, node in program.history:
        turn = turns.get(name, 0)
        turns[name] = turn + 1
        if (name, turn) in theirs:
            found.append((name, span, node, theirs[name, turn]))
    return found


def _first_value(program: Watched, there: Torch) -> Diagnostic | None:
    departed: list[tuple[str, Span, str, list[Any]]] = []
    for name, span, node, assigned in _pairs(program, there):
        text, _, rows = differs(value_of(node), assigned.array)
        if text is not None:
            departed.append((name, span, text, rows))
    return _departed(departed, "the value of") if departed else None


def _first_gradient(check: FileCheck, program: Watched, there: Torch) -> Diagnostic | None:
    wanted = []
    for name, span, node, assigned in _pairs(program, there):
        gradient = assigned.gradient() if node.requires_grad else None
        if gradient is not None:
            wanted.append((name, span, node, gradient))
    if program.backwards != 1 or not wanted:
        return _final_gradients(check, there)
    graph = GraphCheck(program.passes[0], seed=check.settings.seed)
    wanted = [entry for entry in wanted if entry[2] in graph.replay]
    nodes = graph.objective.gradients([entry[2] for entry in wanted])
    replay = Replay(nodes)
    departed = []
    for (name, span, node, theirs), gradient in reversed(list(zip(wanted, nodes, strict=True))):
        ours = np.asarray(replay.value(gradient)).astype(node.dtype)
        text, _, rows = differs(ours, theirs)
        if text is not None:
            departed.append((name, span, text, rows))
    return _departed(departed, "the gradient of") if departed else None


def _final_gradients(check: FileCheck, there: Torch) -> Diagnostic | None:
    """Programs with several backwards: what `.grad` holds at the end."""
    for name, record in check.report.tensors.items():
        value: Any = there.names.get(name)
        grad = value.grad if getattr(value, "is_leaf", False) else None
        if record.grad is None or grad is None:
            continue
        text, _, rows = differs(record.grad, grad.numpy())
        if text is not None and record.node.span is not None:
            return _departed([(name, record.node.span, text, rows)], "the gradient of")
    return None


def _departed(departed: list[tuple[str, Span, str, list[Any]]], what: str) -> Diagnostic:
    name, span, text, rows = departed[0]
    lines = [("index", "autodiff", "PyTorch", "abs diff"), *rows]
    widths = [max(len(row[i]) for row in lines) for i in range(4)]
    table = "\n".join(
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in lines
    )
    later = [f"`{n}`" for n, *_ in departed[1:9]]
    notes = ["\n" + table] + ([f"departs afterwards: {', '.join(later)}"] if later else [])
    return fail(
        "E602",
        f"{what} `{name}` departs from PyTorch's: {text}",
        span,
        label="the first that departs",
        labels=tuple(Label(s, "departs as well") for _, s, *_ in departed[1:3]),
        notes=tuple(notes),
        help="if PyTorch is right, please report this program",
    ).diagnostic
