"""The names of a program that ran: what is differentiated, and with respect to what.

Tensors in lists, dicts and modules have names too: `params[0]`, `params['W']`, `model.weight`.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from ...autograd.rules import history
from ...autograd.tensor import Tensor
from ...errors import Diagnostic, fault
from ...graph.dtypes import is_float
from ...graph.node import Node
from ...graph.op import LEAF
from ...graph.sizes import not_single
from ...graph.state import STATE
from ...source import shortened
from ...suggest import named, unknown
from ..syntax import tree as syntax
from ..values.values import Instance

if TYPE_CHECKING:
    from .running import Program

MOST_ELEMENTS = 1000  # of one list or dict that get names
MOST = 100_000  # values that are looked into for them
LONGEST_TEXT = 60
LARGEST_KEY = 10**18


class Objective(NamedTuple):
    """What is differentiated: its name if it has one, and the text it is shown by."""

    name: str | None
    text: str
    node: Node


class Variable(NamedTuple):
    """What is differentiated with respect to."""

    name: str
    node: Node


def quoted(text: str) -> str:
    return f"`{text}`"


def named_tensors(program: Program) -> dict[str, Tensor]:
    """Every tensor that a top-level name leads to; one inside other values under its first name."""
    found: dict[str, Tensor] = {}
    seen: set[int] = set()
    pending = list(reversed(program.scope.names.items()))
    while pending and len(seen) < MOST:
        name, value = pending.pop()
        if isinstance(value, Tensor):
            inside = not name.isidentifier()
            if value.tag is None and not (inside and id(value) in seen):
                found[name] = value
            if inside:
                seen.add(id(value))
        elif id(value) not in seen:
            parts = _parts(name, value)
            if parts:
                seen.add(id(value))
                pending.extend(reversed(parts))
    return found


def _parts(name: str, value: Any) -> list[tuple[str, Any]]:
    """What a value holds, by name: `params[0]`, `layers['w']`, `model.0.weight`. Nothing of the
    program runs for it, whatever its classes make of lists, dicts and keys."""
    if isinstance(value, list | tuple):
        each = list.__iter__(value) if isinstance(value, list) else tuple.__iter__(value)
        return [(f"{name}[{at}]", part) for at, part in enumerate(islice(each, MOST_ELEMENTS))]
    if isinstance(value, dict):
        return [
            (f"{name}[{key!r}]", part) for key, part in islice(dict.items(value), MOST_ELEMENTS)
            if (type(key) is str and len(key) <= LONGEST_TEXT)
            or (type(key) in (int, bool) and abs(key) <= LARGEST_KEY)
        ]  # fmt: skip
    fields = getattr(value, "fields", None) if isinstance(value, Instance) else None
    if isinstance(fields, dict) and hasattr(value, "modules"):
        fields = {**value.parameters, **fields, **value.modules}
    elif not isinstance(fields, dict) or value.cls.fixed:
        return []
    return [
        (f"{name}.{key}" if key.isidentifier() or key.isdigit() else f"{name}[{key!r}]", part)
        for key, part in fields.items() if type(key) is str
    ]  # fmt: skip


def has_row(tensor: Tensor) -> bool:
    """Whether a tensor inside another value is reported: it gathers gradients, or may again."""
    gathers = tensor.is_leaf and tensor.looked_at.requires_grad
    return gathers or tensor.is_parameter or tensor.grad is not None


def leaf_names(tensors: dict[str, Tensor]) -> dict[Any, str]:
    """Names by where gradients add up: a parameter that was stepped is another node now."""
    found: dict[Any, str] = {}
    for name, tensor in tensors.items():
        if tensor.accumulator is not None:
            found.setdefault(tensor.accumulator, name)
    return found


# -- what is differentiated -----------------------------------------------------------------------


def objective_of(program: Program, wanted: str | None, kind: str) -> Objective:
    """The tensor named with --of; else `loss`, else what was computed last."""
    objective = _wanted(program, wanted) if wanted is not None else _default(program, kind)
    node = objective.node
    if not node.requires_grad:
        raise fault("E402 does-not-depend-any", quoted(objective.text), span=node.span)
    if kind == "hessian" and node.numel != 1:
        raise not_single(
            node,
            f"a Hessian needs a single number, but {quoted(objective.text)}",
            help=(
                "reduce it: `loss = sum(...)` or `mean(...)`; or choose another: --of NAME",
                "its first derivatives: autodiff jacobian",
            ),
        )
    forget_passes(node)
    return objective


def forget_passes(out: Node) -> None:
    """Let a graph be differentiated again: what hooks, freed graphs and later changes in place
    mean is the program's own backward, not the derivative of what it computed."""
    for node in history(out):
        if node.marks is not None:
            marks = node.mark()
            marks.hooks = {}
            marks.slots = []
            marks.freed = None
            marks.overwritten = None
            marks.replaced = None


def _wanted(program: Program, wanted: str) -> Objective:
    tensors = named_tensors(program)
    wanted = (named(wanted, tensors) or [wanted])[0]
    tensor = tensors.get(wanted)
    if tensor is None:
        raise no_objective(wanted, tensors, program)
    return Objective(wanted, wanted, tensor.node)


def no_objective(wanted: str, tensors: Iterable[str], program: Program) -> Exception:
    what = "is not a tensor" if wanted in program.scope.names else "does not exist"
    return unknown(f"--of {wanted}: the name {what} in the program", wanted, tensors)


def _default(program: Program, kind: str) -> Objective:
    names = program.scope.names
    value = names.get("loss")
    if isinstance(value, Tensor) and is_float(value.dtype):
        return Objective("loss", "loss", value.node)
    tensors = named_tensors(program)
    results = {name: t for name, t in tensors.items() if t.requires_grad and not t.is_leaf}
    last = _last_expression(program.tree, tensors)
    if last is not None and (kind == "jacobian" or last.node.numel == 1):
        return last
    if kind == "hessian":
        scalars = {name: t for name, t in results.items() if t.node.numel == 1}
        results = scalars or results
    name = _newest_of(results)
    if name is not None:
        return Objective(name, name, results[name].node)
    if last is None and STATE.only is not None and STATE.only.span is not None:
        return Objective(None, _short(STATE.only.span.text), STATE.only)
    if last is None:
        raise fault("E402 program-computes-nothing-tensor")
    return last


def _last_expression(tree: syntax.Module | None, tensors: dict[str, Tensor]) -> Objective | None:
    """A bare expression at the end of the program."""
    body = [] if tree is None else tree.body
    value = STATE.shown
    if not body or not isinstance(body[-1], syntax.ExprStmt) or not isinstance(value, Tensor):
        return None
    node = value.looked_at
    if not node.requires_grad:
        return None
    for name, tensor in tensors.items():
        if tensor is value:
            return Objective(name, name, node)
    return Objective(None, _short(body[-1].span.text), node)


def _short(text: str) -> str:
    return shortened(" ".join(text.split()), LONGEST_TEXT + 3)


def newest(tree: syntax.Module, tensors: dict[str, Tensor]) -> Objective | None:
    """What a program computed last that can be differentiated."""
    last = _last_expression(tree, tensors)
    if last is not None:
        return last
    name = _newest_of({n: t for n, t in tensors.items() if t.requires_grad and not t.is_leaf})
    return None if name is None else Objective(name, name, tensors[name].looked_at)


def _newest_of(results: dict[str, Tensor]) -> str | None:
    return max(results, key=lambda name: results[name].looked_at.seq, default=None)


# -- with respect to what -------------------------------------------------------------------------


def variables_of(
    program: Program,
    objective: Objective,
    patterns: tuple[str, ...],
    warnings: list[Diagnostic],
    then: str = "its block is zero",
) -> list[Variable]:
    """The tensors named with --wrt; else every named leaf that the objective depends on. `then` is
    what the warning says of one that it does not depend on."""
    tensors = named_tensors(program)
    reached = history(objective.node)
    if patterns:
        names = _matching(tensors, patterns, objective, program)
    else:
        names = [n for n, t in tensors.items() if t.requires_grad and t.is_leaf]
    chosen: list[Variable] = []
    seen: set[Node] = set()
    for name in names:
        node = _in_history(tensors[name], reached)
        if node is None:
            node = tensors[name].looked_at
            done = then if patterns else "it is left out"
            words = f"{quoted(objective.text)} does not depend on {quoted(name)}; {done}"
            warnings.append(Diagnostic("W403", words, severity="warning"))
            if not patterns:
                continue
        if node not in seen:
            seen.add(node)
            chosen.append(Variable(name, node))
    if not chosen:
        raise fault("E403 no-name-program-input", quoted(objective.text), span=objective.node.span)
    return chosen


def _in_history(tensor: Tensor, reached: list[Node]) -> Node | None:
    """The node that a tensor was when the objective was computed."""
    node = tensor.looked_at
    if node in reached:
        return node
    if tensor.accumulator is None:
        return None
    # A parameter that was stepped afterwards shows another node now, with the same accumulator.
    before = [n for n in reached if n.op is LEAF and n.args[0] is tensor.accumulator]
    return max(before, key=lambda n: n.seq, default=None)


def _matching(
    tensors: dict[str, Tensor], patterns: tuple[str, ...], objective: Objective, program: Program
) -> list[str]:
    names: dict[str, None] = {}
    for pattern in patterns:
        found = named(pattern, tensors)
        if len(found) == 1 and not tensors[found[0]].requires_grad:
            raise fault(
                "E402 wrt-does-not-require", pattern=pattern, span=tensors[found[0]].node.span
            )
        if pattern not in tensors:
            found = [n for n in found if tensors[n].requires_grad and n != objective.name]
        if not found:
            raise no_such(pattern, tensors, program)
        names.update(dict.fromkeys(found))
    return list(names)


def no_such(pattern: str, tensors: dict[str, Tensor], program: Program) -> Exception:
    if pattern in program.scope.names:
        what = "the name is not a tensor"
    else:
        what = "no tensor that requires grad has such a name"
    return unknown(f"--wrt {pattern}: {what}", pattern, tensors)
