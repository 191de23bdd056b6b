"""E201 and E202: names that are not defined, with what was probably meant."""

from __future__ import annotations

import re
from typing import Any

from ...autograd.tensor import Tensor
from ...errors import AutodiffError, Label, fail, fault
from ...graph.state import STATE
from ...source import Span
from ...suggest import likely, suggest, synonym
from ..syntax.tokens import CELL
from ..values.providers import from_above
from ..values.user_classes import Object
from ..values.values import Namespace, Scope, is_callable
from .names import CONSTANTS, builtin, known_names, names_of
from .namespaces import MODULES, PREDEFINED

# How other libraries are called in programs, without their import.
_LIBRARIES = {
    "tf": "TensorFlow", "tensorflow": "TensorFlow", "keras": "Keras", "jnp": "JAX", "jax": "JAX",
    "lax": "JAX", "pd": "pandas", "plt": "matplotlib", "sp": "SciPy", "scipy": "SciPy",
    "sklearn": "scikit-learn", "cp": "CuPy", "mx": "MXNet", "sympy": "SymPy",
}  # fmt: skip
# What Python has under these names, and what a program here does instead.
_WITHHELD = {
    "open": 'a program reaches no files but those it loads: `load("data.npy")`',
    **dict.fromkeys(["eval", "exec", "compile"], "text is never run: write the expression itself"),
    **dict.fromkeys(
        ["globals", "locals", "dir"], "names are not data here: use a dict, `values = {}`"
    ),
    "grad": "gradients of `loss` come by themselves: `x.grad`; in snippets after `backward()`",
    **dict.fromkeys(
        ["exit", "quit"], "a program ends with its last line: use `if`, or `raise` an error"
    ),
    **dict.fromkeys(
        ["breakpoint", "help"], "look with `print(...)`, or in a session: autodiff repl FILE"
    ),
}
# What programs import under other names than their own.
_SHORT = {
    "np": "numpy as np", "nn": "torch.nn as nn", "F": "torch.nn.functional as F",
    "optim": "torch.optim as optim",
}  # fmt: skip
# Other languages' constants.
_CONSTANTS = {
    "true": "True", "false": "False", "null": "None", "nil": "None", "none": "None",
    "undefined": "None", "infinity": "inf",
}  # fmt: skip
_MOVE = "it is assigned in line {}: move that line up"
_OPERATOR = re.compile(r"[-+*/@%&|^<>]")
_MEMBERS = re.compile(r"(?:\.\w+)+")
_COMPARED = re.compile(r"\s*(==|<-)\s*([^#\n]+)")


def unknown_name(name: str, span: Span, scope: Scope) -> AutodiffError:
    """E201 with similar names and where they were defined."""
    visible = _visible(scope)
    help = (
        _prompt(span)
        or _of_library(name, span)
        or _meant_assignment(name, span)
        or _end(name, span)
        or _WITHHELD.get(name, "")
        or _of_other_languages(name)
        or _imported(name, span)
        or _member_of(name, visible)
        or _of_members(name, span, visible)
    )
    close = [] if help else suggest(name, [*visible, *_uncalled(name, span)], own=visible)
    labels = []
    for candidate in close:
        value = visible.get(candidate)
        if isinstance(value, Tensor) and value._node.span is not None:
            place = value._node.span.assigned_name
            shape = tuple(value.shape)
            labels.append(Label(place, f"a similar name is defined here, shape {shape}"))
            break
    later = _assigned_later(name, span)
    if later and not help:
        help, close = _MOVE.format(later), []
    if not help:
        option = span.source.name.startswith("<-D ")
        first = f"add it before: `-D +{name}=...`" if option else f"assign it first: `{name} = ...`"
        help = f"did you mean `{close[0]}`?" if close else first
    if close and close[0].lower() == name.lower():
        help += "  (names are case-sensitive)"
    return fail(
        "E201",
        f"name `{name}` is not defined",
        span,
        label="not defined",
        labels=tuple(labels),
        help=help + _also(close, ""),
        said=f"name '{name}' is not defined",
    )


def _uncalled(name: str, span: Span) -> list[str]:
    """The known names that one may mean that is not called: constants, namespaces where a member
    follows, functions one slip away where nothing is computed with it."""
    before, after = span.source.text[: span.start], span.source.text[span.end :]
    member = after.startswith(".")
    operand = _OPERATOR.search(before.rstrip()[-1:] + after.lstrip()[:1]) is not None
    constants = from_above(CONSTANTS)

    def offered(known: str) -> bool:
        if known in PREDEFINED:
            return member
        slip = likely(name, known) or likely(known, name)
        return known in constants or (slip and not operand)

    return list(filter(offered, known_names()))


def _assigned_later(name: str, span: Span) -> int:
    """The line below that makes a name."""
    text, made = span.source.text, rf"^(?:(?:def|class) {name}\b|{name} *=[^=])"
    found = re.compile(made, re.M).search(text, span.end)
    return text.count("\n", 0, found.end()) + 1 if found else 0


def _also(close: list[str], more: str) -> str:
    """Names that are close too, behind the first one."""
    others = ", ".join(f"`{c}`" for c in close[1:])
    return f"  (also close: {others}{more})" if others else ""


def _visible(scope: Scope) -> dict[str, Any]:
    """What all names mean that code in a scope can read."""
    found: dict[str, Any] = {}
    at: Scope | None = scope
    while at is not None:
        found.update({k: v for k, v in at.names.items() if k not in found and k})
        at = at.outer
    return found


def _member_of(name: str, visible: dict[str, Any]) -> str:
    """For `fc` where `self.fc` is, and for `relu` where `torch.relu` is."""
    kept = ("fields", "modules", "parameters", "buffers")
    if any(name in getattr(visible.get("self"), table, ()) for table in kept):
        return f"write `self.{name}`"
    for alias, value in visible.items():
        if STATE.python and isinstance(value, Namespace) and name in names_of(value):
            return f"write `{alias}.{name}`"
    return ""


def _imported(name: str, span: Span) -> str:
    """For `math.pi` where `import math` is missing."""
    if not STATE.python or not span.source.text.startswith(".", span.end):
        return ""
    module = _SHORT.get(name, name if name in MODULES else "")
    return module and f"begin the program with `import {module}`"


def _of_members(name: str, span: Span, visible: dict[str, Any]) -> str:
    """For `optimizer.step()`: the object of the program that has all that is asked of the name and
    is not asked it by its own; or else a line that makes one."""
    text = span.source.text
    asked = set(re.findall(rf"\b{name}\.(\w+)\(", text))
    if not asked or not text.startswith(".", span.end):
        return ""
    objects = {n: value for n, value in visible.items() if isinstance(value, Object)}
    has = {
        n: not asked.difference(*[cls.names for cls in value.cls.line])
        for n, value in objects.items()
    }
    meant = [n for n in objects if has[n] and not any(f"{n}.{m}(" in text for m in asked)]
    if len(meant) == 1:
        return f"did you mean `{meant[0]}`?"
    if meant or "step" not in asked:
        return ""
    optim = "torch.optim" if "torch" in visible else "optim"
    of = next((n for n in objects if has[n]), None)
    if of is not None:
        return f"make it first: `{name} = {optim}.lr_scheduler.StepLR({of}, step_size=10)`"
    modules = [f"{n}.parameters()" for n, value in objects.items() if hasattr(value, "modules")]
    tensors = [(n, value) for n, value in visible.items() if isinstance(value, Tensor)]
    leaves = ", ".join(n for n, value in tensors if value.requires_grad and value.is_leaf)
    made = modules[-1] if modules else f"[{leaves}]"
    return f"make it first: `{name} = {optim}.SGD({made}, lr=0.1)`" if made != "[]" else ""


def _prompt(span: Span) -> str:
    """For `In [1]: x.grad`, which reads as an annotation."""
    counted = CELL.match(span.source.text, span.start)
    return f"remove the `{counted[0]}` in front of the line: a prompt" if counted else ""


def _of_library(name: str, span: Span) -> str:
    """For `tf.reduce_sum`: what it is called here."""
    library = _LIBRARIES.get(name)
    if library is None:
        return ""
    member = _MEMBERS.match(span.source.text, span.end)
    full = f"{name}{member[0]}" if member is not None else ""
    last = full.rpartition(".")[2]
    meant = synonym(full) or (last if last and builtin(last) is not None else None)
    if meant is None:
        return f"{library} is not part of this language; list what there is: autodiff ops"
    return f"write `{meant}` for `{full}`: operations have PyTorch's names here"


def _of_other_languages(name: str) -> str:
    """For `true` and `null`."""
    constant = _CONSTANTS.get(name.lower())
    return f"did you mean `{constant}`?" if constant else ""


def _meant_assignment(name: str, span: Span) -> str:
    """For a line `loss == sum(x)`."""
    compared = _COMPARED.match(span.source.text, span.end)
    if compared is None or span.source.line(span.line)[: span.column - 1].strip():
        return ""
    value = compared[2].strip()
    if compared[1] == "<-":  # R, whose `c(1, 2)` is a list
        value = re.sub(r"\bc\(([^()]*)\)", r"[\1]", value)
    shown = value if len(value) <= 40 else "..."
    return f"`{compared[1]}` compares; to assign write `{name} = {shown}`"


def _end(name: str, span: Span) -> str:
    """For the last index, and for the end of a block, in other languages."""
    if name != "end":
        return ""
    before = span.source.line(span.line)[: span.column - 1].strip()
    if not before:
        return "remove this line: a block ends where its indentation does"
    last = "the last index is -1: write `-1` for `end`"
    return "leave it out: write `:` for `:end`" if before[-1] == ":" else last


def unknown_op(name: str, span: Span, scope: Scope) -> AutodiffError:
    """E202: a name that was called."""
    visible = _visible(scope)
    own = {k for k, value in visible.items() if is_callable(value) or hasattr(value, "call")}
    close = suggest(name, {*own, *known_names()} - set(PREDEFINED), own=own)
    meant, other, later = _member_of(name, visible), synonym(name), _assigned_later(name, span)
    if meant:
        help = meant
    elif later:
        help = _MOVE.format(later)
    elif other is not None:
        help = (
            f"did you mean `{other}`?  (PyTorch's name; list all: autodiff ops)"
            if other.isidentifier()
            else f"write {(other if '`' in other else f'`{other}`')} (list all: autodiff ops)"
        )
    elif close and name not in _WITHHELD:
        help = f"did you mean `{close[0]}`?" + _also(close, "; list all: autodiff ops")
    else:
        help = _WITHHELD.get(name, f"define it, `def {name}(...):`, or list all: autodiff ops")
    return fault("E202 unknown-operation", help, name=name, span=span)
