"""Running a whole program under options: defines, the implicit loss, and the report."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import replace
from os.path import dirname
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from ...autograd import calls, gradients
from ...autograd.literals import array_of
from ...autograd.tensor import AccumulateGrad, Tensor, new_leaf
from ...engine.evaluate import evaluate, is_freed, release
from ...errors import AutodiffError, Diagnostic, fault
from ...graph.dtypes import DTYPES, FLOAT32, FLOAT64, is_float, name_of
from ...graph.node import Node as GraphNode
from ...graph.op import LEAF, cast, constant, known, value_of
from ...graph.op import leaf as new_variable
from ...graph.params import to_tensor
from ...graph.registry import F
from ...graph.sizes import bytes_text, not_single
from ...graph.state import STATE
from ...numerals import short
from ...outside import OUTSIDE
from ...source import Source, Span
from ...suggest import dotted, meant, named, unknown
from ..errors.exhaustion import Exhaustion
from ..python.loading import Files, read_array
from ..runtime.expressions import Context, compile_expression
from ..runtime.names import builtin
from ..runtime.statements import compile_module
from ..runtime.unknown_names import unknown_name, unknown_op
from ..syntax import tree as syntax
from ..syntax.free_names import names_read
from ..syntax.parser import parse, parse_all
from ..syntax.scoping import assigned_names
from ..values.dialect import is_numeric_list
from ..values.factories import is_literal_value, leaf_of_literal
from ..values.formatting import text
from ..values.housekeeping import HOUSEKEEPING, ended, limit
from ..values.numpy_numbers import to_python
from ..values.values import Scope
from .gc_control import program_made
from .report import Report, TensorRecord
from .slips import forgotten_call, slips
from .variables import has_row, leaf_names, named_tensors, no_objective, no_such

if TYPE_CHECKING:
    from pathlib import Path

    from .report import Options

DERIVATIVES = ("backward", "grad", "jacobian", "hessian", "vjp", "jvp")
MOST_UNKNOWN = 20
LONG_TEXT = 1_000_000  # characters; beyond, only the first syntax error is reported


class Program:
    """One program being run: its tree, its module scope, and what the options ask of it."""

    def __init__(self, source: Source, options: Options):
        self.source = source
        self.options = options
        self.scope = Scope()
        self.printed: list[str] = []
        self.tree: syntax.Module | None = None
        self.loss_name: str | None = None
        self.loss: Tensor | None = None
        self.differentiated = False
        self.ended = False
        self.parsing = 0.0  # seconds
        self.room = math.inf  # characters that may still be printed; a session has no end
        self.more_errors: list[AutodiffError] = []

    # -- running ------------------------------------------------------------------------------

    def run(self) -> None:
        """Everything up to the last gradient; raises AutodiffError."""
        options = self.options
        if STATE.files is not None:  # another program ran here
            STATE.reset()
        if options.cluster is None:
            STATE.max_bytes = options.max_memory
        else:  # the engine looks at what is in memory
            STATE.max_bytes = sys.maxsize
            STATE.observer = options.cluster.engine(options.max_memory)
        self.room = options.max_memory >> 3
        OUTSIDE.bound(options.max_memory)
        STATE.max_steps = options.max_steps
        STATE.max_depth = options.max_depth
        HOUSEKEEPING.restart()
        STATE.write = self._write
        self._set_folder()
        try:
            start = perf_counter()
            self.tree = tree = self._parse()
            self.parsing = perf_counter() - start
            STATE.python = syntax.has_import(tree)
            STATE.default_dtype = FLOAT32 if STATE.python else FLOAT64
            if options.dtype is not None:
                if options.dtype not in DTYPES:
                    raise fault("E205 no-dtype", options.dtype)
                STATE.default_dtype = DTYPES[options.dtype]
            self._prepare_defines(tree)
            self._watch(tree)
            body = self.statements(tree)
            block = compile_module(body, Context()) if body else None
        except RecursionError:
            raise fault("E108 program-nested-too-deeply") from None
        if self._implicit_allowed(tree):
            STATE.grad_read.append(self._grad_read)
        if block is not None:
            self._to_the_end(block)
        STATE.span = None
        self.ended = True
        if STATE.grad_read:
            self.differentiate()
        # What is asked for from now on is as it was when it was computed, and may be NaN.
        STATE.replaced = STATE.anomaly = False

    def _to_the_end(self, block: Callable[[Scope], Any]) -> None:
        try:
            with Exhaustion("the program"):
                block(self.scope)
        except AutodiffError as error:
            if error.code != "E212":
                raise
            from ..python.system_modules import is_finished

            if not is_finished(error):
                raise

    def more_unknown(self, first: Span) -> list[AutodiffError]:
        """Errors of names that later statements of the module read and nothing defines."""
        if self.tree is None or first.source is not self.source:
            return []
        known = {*module_names(self.tree), *self.scope.names, first.text}
        found: dict[str, tuple[Any, Span]] = {}
        for statement in self.tree.body:
            called = {id(n.func) for n in syntax.walk(statement) if isinstance(n, syntax.Call)}
            for name in sorted(names_read(statement), key=lambda n: n.span.start):
                fresh = name.id not in known and name.id not in found
                if fresh and name.span.start > first.start and builtin(name.id) is None:
                    found[name.id] = unknown_op if id(name) in called else unknown_name, name.span
        told = list(found.items())[:MOST_UNKNOWN]
        errors = [say(name, span, self.scope) for name, (say, span) in told]
        if rest := list(found)[MOST_UNKNOWN:]:
            note = f"{len(rest)} more not defined: {', '.join(rest[:5])}{' ...' * (len(rest) > 5)}"
            errors[-1].amend(notes=(*errors[-1].diagnostic.notes, note))
        return errors

    def statements(self, tree: syntax.Module) -> list[syntax.Node]:
        """The statements that run; who watches a program puts its own between them."""
        return tree.body

    def _parse(self) -> syntax.Module:
        try:
            return parse(self.source)
        except AutodiffError:
            if len(self.source.text) < LONG_TEXT:
                self.more_errors = parse_all(self.source)[1][1:]
            raise

    def _set_folder(self) -> None:
        folder: str | Path | None = self.options.folder
        program = None if self.source.name.startswith("<") else self.source.name
        if folder is None and program is not None:
            folder = dirname(program)
        STATE.files = Files(folder, tuple(self.options.allow_read), program)

    def _write(self, piece: str) -> None:
        if STATE.over is not None:
            raise STATE.over
        self.room -= len(piece)
        if self.room < 0:
            raise limit(fault("E505 printed-more-than", bytes_text(self.options.max_memory >> 3)))
        self.printed.append(piece)
        if self.options.write is not None:
            self.options.write(piece)

    # -- defines ------------------------------------------------------------------------------

    def _prepare_defines(self, tree: syntax.Module) -> None:
        if not self.options.defines:
            return
        known = module_names(tree)
        for name, value, add in self.options.defines:
            if not add and name not in known:
                raise fault(
                    "E204 d-program-does-not",
                    meant(name, sorted(known), f"add a new name with `-D +{name}={value}`"),
                    name=name,
                )
            given = self.given(value, f"<-D {name}>")
            if name not in known:
                self.scope.names[name] = (
                    leaf_of_literal(given)
                    if is_literal_value(given) and not STATE.python
                    else _as_tensor(given)
                )
            else:
                STATE.overrides[name] = lambda original, name=name, value=value, given=given: (
                    _given(f"-D {name}={value}", original, given)
                )

    def given(self, value: str, name: str) -> Any:
        """What stands on the command line: an expression, or `@file` with an array."""
        if value.startswith("@"):
            path, _, key = value[1:].partition(":")
            opened = self.options.opened
            if opened is not None and (found := opened(path, key or None)) is not None:
                return found if isinstance(found, np.ndarray) else Tensor(constant(found))
            return read_array(path, key or None)
        return self.evaluate_text(value, name)

    def evaluate_text(self, value: str, name: str) -> Any:
        """The value of an expression given on the command line, with the program's names."""
        tree = parse(Source(value, name))
        if len(tree.body) != 1 or not isinstance(tree.body[0], syntax.ExprStmt):
            raise fault("E102 value-not-expression", value=value, span=tree.span)
        return compile_expression(tree.body[0].value, Context())(self.scope)

    # -- the implicit loss --------------------------------------------------------------------

    def _implicit_allowed(self, tree: syntax.Module) -> bool:
        """Whether the program leaves differentiation to us. A Python snippet does only when asked:
        what it prints must be what PyTorch prints."""
        options = self.options
        if not options.backward:
            return False
        asked = bool(options.loss or options.wrt or options.grad_output)
        printed = self.source.text.startswith("# autodiff.plain/")  # gradients are written out
        if not asked and (STATE.python or printed):
            return False
        return not calls_backward(tree)

    def _watch(self, tree: syntax.Module) -> None:
        """Names that `--wrt` picks are prepared when they are assigned."""
        patterns = self.options.wrt
        if not patterns:
            return
        known = sorted(module_names(tree) | set(self.scope.names))
        chosen: list[str] = []
        for pattern in patterns:
            matching = named(pattern, known)
            head, inside, _ = dotted(pattern).partition(".")
            if not matching and not (inside and named(head, known)):
                raise unknown(f"--wrt {pattern}: the program has no such name", pattern, known)
            chosen.extend(n for n in matching if n not in chosen)
        STATE.wrt = dict.fromkeys(chosen)

    def _grad_read(self) -> None:
        self.differentiate()
        if self.differentiated:
            STATE.grad_read.clear()

    def differentiate(self) -> None:
        """Run backward from the chosen loss, once."""
        if self.differentiated:
            return
        self._refuse_forgotten_call()
        found = self._choose_loss()
        if found is None:
            return
        self.differentiated = True
        self.loss_name, self.loss = found
        gradient = self._upstream(self.loss)
        node = self.loss.node
        name = f"`{self.loss_name}`" if self.loss_name else "the last expression"
        if not node.requires_grad:
            from ...autograd.cuts import reasons

            labels, help = reasons(node, native=not STATE.python)
            named = next((label.span.assigned for label in labels if label.span.assigned), "NAME")
            marked = any(label.span == node.span for label in labels)
            label = "" if marked else "built only from constants"
            raise fault(
                "E402 depends-on-nothing", name, help, named, label, span=node.span, labels=labels
            )
        if gradient is None and node.numel != 1:
            raise not_single(
                node,
                f"the objective must be a single number, but {name}",
                help=(
                    "reduce it: `loss = sum(...)` or `mean(...)`; or choose another: --of NAME",
                    "weight it: --grad-output ones",
                ),
            )
        inputs = None
        if self.options.wrt:
            watched = [self.scope.names.get(name) for name in STATE.wrt]
            inputs = [t for t in watched if isinstance(t, Tensor) and t.requires_grad]
            inputs = [t for t in inputs if t.is_leaf or t is not self.loss]
            tensors = named_tensors(self)
            inside = [tensors[n] for n in self._wrt(tensors) if not n.isidentifier()]
            inputs += [t for t in dict.fromkeys(inside) if t.requires_grad and t.is_leaf]
            if not inputs:
                pattern = ", ".join(self.options.wrt)
                leaves = [
                    n for n, t in named_tensors(self).items() if t.is_leaf and t.requires_grad
                ]
                message = f"--wrt {pattern}: nothing to differentiate with respect to"
                raise unknown(message, pattern, leaves, "tensors that require grad")
        gradients.backward([self.loss], [gradient], retain_graph=True, inputs=inputs)
        if inputs is None:
            self._warn_of_unconnected()

    def _wrt(self, tensors: dict[str, Tensor]) -> list[str]:
        """The tensors that `--wrt` names, those inside modules, lists and dicts too."""
        found: dict[str, None] = {}
        for pattern in self.options.wrt:
            names = named(pattern, tensors)
            if not names:
                raise no_such(pattern, tensors, self)
            found.update(dict.fromkeys(names))
        return list(found)

    def _warn_of_unconnected(self) -> None:
        """W403 for leaves that the loss does not depend on: their gradient stays None."""
        for name, value in self.scope.names.items():
            if not isinstance(value, Tensor) or value is self.loss or value.grad is not None:
                continue
            if value.requires_grad and value.is_leaf:
                help = f"use it, or write `const(...)` if `{name}` takes no gradient"
                message = f"`{name}` is not connected to {self.loss_name or 'the loss'}"
                place = value.node.span
                label = "its gradient is None"
                STATE.warnings.append(
                    Diagnostic("W403", message, place, label, helps=(help,), severity="warning")
                )

    def _refuse_forgotten_call(self) -> None:
        names = self.scope.names
        if self.ended and self.tree is not None and not isinstance(names.get("loss"), Tensor):
            forgotten = forgotten_call(self.tree.body, names)
            if forgotten is not None and self.options.loss is None:
                raise forgotten

    def _choose_loss(self) -> tuple[str | None, Tensor] | None:
        names = self.scope.names
        wanted = self.options.loss
        if wanted is not None:
            value = names.get(wanted)
            if value is None and not self.ended:
                return None
            if not isinstance(value, Tensor):
                tensors = [n for n, v in names.items() if isinstance(v, Tensor)]
                raise no_objective(wanted, tensors, self)
            return wanted, value
        value = names.get("loss")
        if isinstance(value, Tensor) and is_float(value.dtype):
            return "loss", value
        last = STATE.last
        if last is not None:
            name, tensor = last
            own = [n for n, v in names.items() if v is tensor]
            return name if name in own else next(iter(own), None), tensor
        if self.options.grad_output is not None:
            candidates = [
                (n, v)
                for n, v in names.items()
                if isinstance(v, Tensor) and v.requires_grad and not v.is_leaf
            ]
            if candidates:
                return candidates[-1]
        return None

    def _upstream(self, loss: Tensor) -> Tensor | None:
        given = self.options.grad_output
        if given is None:
            return None
        if given == "ones":
            return Tensor(F.ones_like(loss.node))
        tensor = _as_tensor(self.given(given, "<--grad-output>"))
        if not isinstance(tensor, Tensor):
            tensor = Tensor(to_tensor(tensor))
        if tensor.shape != loss.shape and tensor.node.numel == 1:
            tensor = Tensor(F.expand(F.reshape(tensor.node, ()), loss.shape))
        return tensor

    # -- reporting ----------------------------------------------------------------------------

    def fill(self, report: Report) -> None:
        """Evaluate everything that is shown, in one plan, and write it into the report."""
        everything = named_tensors(self)
        report.chosen = self._wrt(everything)
        tensors: dict[str, Tensor] = {}
        inside = {n for n in everything if not n.isidentifier()}
        own: set[int] = set()  # what names before have
        for name, tensor in everything.items():
            if name not in inside:
                own.add(id(tensor))
            elif not has_row(tensor) or (id(tensor) in own and not self.options.wrt):
                continue
            tensors[name] = tensor
        nodes: list[GraphNode] = []
        for tensor in tensors.values():
            nodes.append(tensor.looked_at)
            if tensor.grad is not None:
                nodes.append(tensor.grad.node)
        if self.loss is not None:
            nodes.append(self.loss.node)
        evaluate(nodes, last=True)
        if self.options.cluster is not None:
            tensors = self._without_blocked(tensors, report)
        program_made(sum([node.value.nbytes for node in nodes if node.value is not None]))
        for name, tensor in tensors.items():
            node = tensor.looked_at
            grad = tensor.grad if not report.chosen or name in report.chosen else None
            report.tensors[name] = TensorRecord(
                name,
                tuple(node.shape),
                name_of(node.dtype),
                node.requires_grad,
                tensor.is_leaf,
                tensor.grad_name,
                value_of(node),
                None if grad is None else value_of(grad.node),
                node,
                name in inside,
            )
        for name, value in self.scope.names.items():
            if isinstance(value, bool | int | float) and name != "_":
                report.scalars[name] = to_python(value)
        report.snippet = STATE.python
        report.loss = report.objective = self.loss_name
        report.leaves = leaf_names(everything)
        report.graph = None if self.loss is None else self.loss.node
        if report.graph is None and self.options.backward:
            done, by_backward = STATE.differentiated
            report.returned = not by_backward
            shown = {n: t.looked_at for n, t in everything.items() if not t.is_leaf}
            results = {n: node for n, node in shown.items() if node.requires_grad}
            for name, node in results.items():
                newer = report.graph is None or node.seq > report.graph.seq
                same = node is report.graph and name.isidentifier()
                if done and (newer or same) and (node.seq == done or is_freed(node)):
                    report.objective, report.graph = name, node
            if report.graph is None:
                report.graph = STATE.only
            if not done and results:
                report.candidate = max(results, key=lambda n: results[n].seq)
        body = [] if self.tree is None else self.tree.body
        silent = not (STATE.python and self.printed)  # what a snippet prints is all that it prints
        if STATE.shown is not None and silent and body and isinstance(body[-1], syntax.ExprStmt):
            value = STATE.shown
            if isinstance(value, Tensor) and not value.shape and value.tag is None:
                report.shown = text(value.item())
            else:
                report.shown = text(value.numpy().tolist() if isinstance(value, Tensor) else value)

    def _without_blocked(self, tensors: dict[str, Tensor], report: Report) -> dict[str, Tensor]:
        """The tensors whose values are here; the report names the others."""
        found = dict(tensors)
        for name, tensor in tensors.items():
            if self.options.cluster.has(tensor.looked_at):
                report.blocked[name] = found.pop(name).looked_at.value
                if tensor.grad is not None:
                    report.blocked[f"{name}.grad"] = tensor.grad.node.value
        return found

    def let_go(self) -> None:
        """Break up what holds itself once all is reported: a leaf its gradient, that its history
        and the history the leaf; a function the names it sees, and one of those the function."""
        names = self.scope.names
        tensors = [value for value in names.values() if isinstance(value, Tensor)]
        release([t.grad.node for t in tensors if t.grad is not None], 0)
        for name in [n for n, value in names.items() if hasattr(value, "__next__")]:
            del names[name]  # what a generator does at its end may use the other names
        names.clear()

    def check_finite(self, report: Report) -> None:
        """Warn of the first NaN or infinity that reached a result, or fail with E501/E502."""
        if self.options.nan == "ignore" or report.finite:
            return
        from .nonfinite_origin import first_guilty

        grads = {n: v.grad.node for n, v in named_tensors(self).items() if v.grad is not None}
        found = first_guilty(report.tensors, grads)
        if found is None:
            return
        if self.options.nan == "error":
            helps = tuple(text.partition("   (--nan")[0] for text in found.helps)
            code = "E" + found.code[1:]
            raise AutodiffError(replace(found, code=code, severity="error", helps=helps))
        STATE.warnings.append(found)


def _as_tensor(value: Any) -> Any:
    """A tensor of an array or numeric list; other values as they are."""
    if isinstance(value, np.ndarray):
        return Tensor(constant(value))
    if isinstance(value, list) and value and is_numeric_list(value):
        return Tensor(calls.node_of_list(value))
    return value


def _given(option: str, original: Any, given: Any) -> Any:
    try:
        return redefined(original, given)
    except AutodiffError as error:
        raise error.amend(message=f"{short(option, 60)}: {error.message}") from None


def redefined(original: Any, given: Any) -> Any:
    """A `-D` value in the role of what it replaces."""
    if not isinstance(original, Tensor):
        return _as_tensor(given) if isinstance(given, np.ndarray) else given
    if isinstance(given, Tensor) and not known(given.node):  # in blocks
        becomes = is_float(original.dtype) and not is_float(given.dtype)
        node = cast(given.node, original.dtype) if becomes else given.node
        wanted = original.requires_grad and original.node.op is LEAF
        return Tensor(new_variable(node, AccumulateGrad()) if wanted else node)
    array = given.numpy() if isinstance(given, Tensor) else given
    array = array if isinstance(array, np.ndarray) else array_of(array)
    dtype = original.dtype
    if is_float(dtype) and not is_float(array.dtype):
        array = array.astype(dtype)
    elif is_float(array.dtype) and not isinstance(given, np.ndarray):
        array = array.astype(dtype if is_float(dtype) else STATE.default_dtype)
    if original.requires_grad and original.node.op is LEAF:
        leaf = new_leaf(array, True, type(given) is int)
        leaf.accumulator.literal = original.accumulator.literal  # type: ignore[union-attr]  # leaves have one
        return leaf
    return Tensor(constant(array))


def module_names(tree: syntax.Module) -> set[str]:
    """Names that statements at module level assign, also inside its blocks."""
    names, _ = assigned_names(tree.body)
    return names


def calls_backward(tree: syntax.Module) -> bool:
    """Whether the program differentiates by itself: `x.backward()`, `autograd.grad(...)`."""
    text = tree.span.source.text
    if text.isascii() and not any(word in text for word in DERIVATIVES):
        return False
    for node in syntax.walk(tree):
        if isinstance(node, syntax.Call):
            function = node.func
            if isinstance(function, syntax.Attribute) and function.attr in DERIVATIVES:
                return True
            if isinstance(function, syntax.Name) and function.id in ("grad", "backward"):
                return True
    return False


def run_program(source: Source, options: Options) -> Report:
    """Run one program and report; see `session.run`."""
    if options.profile or options.plan:
        from .profiled_program import run_measured

        return run_measured(source, options)
    program = Program(source, options)
    report = report_of(program)
    program.let_go()
    if report.error is None and STATE.over is not None:  # in generators that were let go
        report.fail(STATE.over)
    return report


def report_of(program: Program) -> Report:
    """Run a program that was made and report."""
    report = Report(program.source.name)
    try:
        with Exhaustion("the program"):
            program.run()
            program.fill(report)
            program.check_finite(report)
            STATE.warnings += slips(program.tree, report.graph, True)
    except AutodiffError as error:
        STATE.warnings += slips(program.tree, None, False)
        ended(error)
        if STATE.python:
            from ..values.exceptions import note_words

            note_words(error)
        report.fail(error)
        if error.code in ("E201", "E202") and error.span is not None:
            program.more_errors = program.more_unknown(error.span)
        report.more_errors = program.more_errors
    report.stdout = "".join(program.printed)
    report.warnings = list(STATE.warnings)
    STATE.grad_read.clear()
    return report


__all__ = ["Diagnostic", "Program", "report_of", "run_program"]
