"""`autodiff ops [NAME|GLOB]`: the table of operations as a list, a page, or JSON."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Any

from ...errors import AutodiffError, Exit
from ...render.text import WORD, dumped, format_number, printable
from ...source import Source
from ...suggest import did_you_mean, suggest_op
from ..dispatch import COMMANDS
from ..options import Command, Option, form_option, names, only
from ..streams import Environment

if TYPE_CHECKING:
    from ...graph.op import Op

EXAMPLES = """\
  autodiff ops softmax
  autodiff ops 'log*'
  autodiff ops --category loss
  autodiff ops --search "along a dim"
"""

OPTIONS = (
    Option(("--category",), "category", "Only these families.", "FAMILY,...", names, repeat=True),
    Option(("--search",), "search", "Only what mentions TEXT in its name or description.", "TEXT"),
    Option(("--torch",), "torch", "What PyTorch's NAME is called here.", "NAME"),
    Option(("--missing",), "missing", "List PyTorch's functions that are not here."),
    form_option("plain", "json"),
    *only("color"),
)  # fmt: skip

PREFIXES = ("torch.", "F.", "nn.functional.", "np.", "numpy.", "Tensor.")


@cache
def public_ops() -> dict[str, list[Op]]:
    """Overloads by every name that programs may call them by."""
    from ...graph.registry import NAMES, OPS
    from ...ops import load_all

    load_all()
    shown = {key for key, op in OPS.items() if op.public}
    table: dict[str, list[Op]] = {}
    for name in sorted(NAMES):
        overloads = [op for op in NAMES[name] if op.key in shown]
        if any(op.method for op in overloads):  # the others are nodes that a front records
            overloads = [op for op in overloads if op.method]
        if overloads:
            table[name] = overloads
    return table


def short_name(op: Op) -> str:
    """The name a program would write."""
    return op.name.removeprefix("nn.functional.")


def show(values: dict[str, Any], patterns: list[str], env: Environment) -> int:
    """List or describe operations."""
    if values["missing"]:
        return _missing(values, env)
    wanted = [*patterns, *([values["torch"]] if values["torch"] else [])]
    chosen, unknown = select(wanted)
    if unknown is not None:
        return _unknown(unknown, env)
    families = set(values["category"])
    if families:
        known = sorted({
            name for ops in public_ops().values() for op in ops for name in (op.family, op.package)
        })  # fmt: skip
        for family in sorted(families):
            if family not in known:
                env.complain(f"there is no family `{family}`", f"families are {', '.join(known)}")
                return Exit.USAGE
        chosen = [op for op in chosen if families & {op.family, op.package}]
    if values["search"]:
        text = values["search"].lower()
        chosen = [op for op in chosen if text in " ".join((op.name, *op.aliases, op.doc)).lower()]
    if values["format"] == "json":
        env.write(dumped([as_data(op) for op in chosen]))
        return Exit.OK
    described = wanted and not any(_is_glob(word) for word in wanted)
    if described:
        env.page("\n".join(describe(op) for op in chosen))
    else:
        env.page("".join(f"{line}\n" for line in listing(chosen)))
    return Exit.OK


COMMAND = Command(
    "ops", OPTIONS, ("patterns", "[NAME|GLOB]..."), show, COMMANDS["ops"][1], EXAMPLES
)


def _is_glob(word: str) -> bool:
    return any(char in word for char in "*?[")


def select(wanted: list[str]) -> tuple[list[Op], str | None]:
    """The ops of names and globs, each once; and the first word that matches nothing."""
    table = public_ops()
    if not wanted:
        return list(dict.fromkeys(op for ops in table.values() for op in ops)), None
    chosen: dict[Op, None] = {}
    for word in wanted:
        found: list[Op] = []
        for name in (word, *(word.removeprefix(prefix) for prefix in PREFIXES)):
            if _is_glob(name):
                found = [op for n, ops in table.items() if fnmatchcase(n, name) for op in ops]
            else:
                found = table.get(name) or table.get(f"nn.functional.{name}") or []
            if found:
                break
        if not found:
            return [], word
        chosen.update(dict.fromkeys(found))
    return list(chosen), None


def _unknown(word: str, env: Environment) -> int:
    close = suggest_op(word, public_ops())
    env.complain(
        f"there is no operation `{printable(word, WORD)}`",
        *did_you_mean(close),
        "`autodiff ops` lists them all",
    )
    return Exit.USAGE


# ------------------------------------------------------------------ one op


def listing(ops: list[Op]) -> list[str]:
    """One line an op: family, name, first sentence; overloads of a name together."""
    rows: dict[tuple[str, str], str] = {}
    for op in ops:
        first = " ".join(op.doc.split("\n\n")[0].split())
        rows.setdefault((op.family, short_name(op)), first)
    width = max((len(name) for _, name in rows), default=0) + 2
    lines: list[str] = []
    family = ""
    for (of, name), text in sorted(rows.items()):
        if of != family:
            lines += [*([""] if lines else []), of]
            family = of
        lines.append(f"  {name:<{width}}{text}")
    return lines


def describe(op: Op) -> str:
    """The page of an op."""
    from ...explain.op_formulas import derivative_of, value_of_composite

    backward = grad_name(op) if op.differentiable else "none: gradients do not flow through"
    if op.kind.value == "function" or not backward:
        backward = ""
    elif op.differentiable and op.kink is not None:
        backward += "; has a kink, where the slope is PyTorch's"
    aliases = [name for name in op.aliases if not name.startswith("nn.functional.")]
    rows: list[tuple[str, Iterable[str]]] = [
        ("torch", [", ".join(torch_names(op))]),
        ("also", [", ".join(aliases)]),
        ("value", [value_of_composite(op) or ""]),
        ("backward", [backward]),
        ("rule", derivative_of(op) or ()),
        ("family", [f"{op.family}: `autodiff ops --category {op.family}` lists it"]),
        ("example", example_of(op) or ()),
    ]
    lines = [op.signature()]
    lines += [f"  {' '.join(paragraph.split())}" for paragraph in op.doc.split("\n\n")]
    lines.append("")
    for word, said in rows:
        for at, text in enumerate(filter(None, said)):
            lines.append(f"  {'' if at else word:<11}{text}")
    return "\n".join(lines) + "\n"


def grad_name(op: Op) -> str | None:
    """PyTorch's name of the backward function, when it does not depend on the arguments."""
    return op.grad_fn if isinstance(op.grad_fn, str) and op.kind.value != "function" else None


@cache
def torch_functions() -> frozenset[str]:
    """PyTorch 2.13's public functions, without the `torch.` in front; methods as `Tensor.x`."""
    from importlib.resources import files

    return frozenset(files(__package__).joinpath("torch_names.txt").read_text("utf-8").split())


def torch_names(op: Op) -> list[str]:
    """PyTorch's names of an op."""
    known = torch_functions()
    found: list[str] = []
    for name in (op.name, *op.aliases):
        for path in (name, f"nn.functional.{name}"):
            if path in known:
                found.append(
                    "F." + path.removeprefix("nn.functional.")
                    if path.startswith("nn.functional.")
                    else f"torch.{path}"
                )
        if op.method and "." not in name and (name in known or f"Tensor.{name}" in known):
            found.append(f"x.{name}()")
    return list(dict.fromkeys(found))


def as_data(op: Op) -> dict[str, Any]:
    """An op for `--format json`."""
    return {
        "name": short_name(op),
        "signature": op.signature(),
        "doc": op.doc,
        "family": op.family,
        "kind": op.kind.value,
        "aliases": list(op.aliases),
        "torch": torch_names(op),
        "grad_fn": grad_name(op),
        "differentiable": op.differentiable,
        "kink": op.kink is not None,
    }


# ------------------------------------------------------------------ examples


def example_of(op: Op) -> tuple[str, str] | None:
    """A call made of the op's first sample, and what it gives."""
    if not op.samples:
        return None
    sample = op.samples[0]
    try:
        words = [_argument(value) for value in sample.args]
        words += [f"{name}={_argument(value)}" for name, value in sample.kwargs.items()]
    except ValueError:
        return None
    from ...session import run

    name = short_name(op)
    first, *others = words or [""]
    for call in (f"{name}({', '.join(words)})", f"{first}.{name}({', '.join(others)})"):
        if len(call) > 100:
            return None
        report = run(Source(call + "\n", "<example>"))
        if report.error is None:  # some are methods only
            shown = _rounded(str(report.shown))
            return call, "" if "\n" in shown else f"-> {shown}"
    return None


def _argument(value: Any) -> str:
    """A sample's argument as program text; ValueError when it has none."""
    from ...graph.samples import T

    if isinstance(value, T):
        return _tensor(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_argument, value))}]"
    if value is None or isinstance(value, bool | int | float | str):
        return repr(value)
    raise ValueError("this argument has no text")


def _tensor(sample: Any) -> str:
    """A small tensor of the sample's kind, with round numbers spread over its range."""
    import numpy as np

    if sample.values is not None:
        text = repr(np.asarray(sample.values).tolist())
    else:
        size = math.prod(sample.shape)
        if sample.dtype.startswith("float"):
            low = max(sample.low, 0.6 * sample.low)  # the sum of all is not zero
            numbers = np.linspace(low, sample.high, size + 2)[1:-1].round(1)
        else:
            numbers = np.arange(size) % (sample.high - sample.low) + sample.low
            numbers = numbers.astype(sample.dtype)
        text = repr(numbers.reshape(sample.shape).tolist())
    return f"tensor({text})"


def _rounded(text: str) -> str:
    """Numbers of a result to six digits."""
    import re

    return re.sub(r"-?\d+\.\d+(?:e[+-]?\d+)?", lambda match: format_number(float(match[0])), text)


# ------------------------------------------------------------------ what is missing


def missing_names() -> list[str]:
    """PyTorch's functions and methods that mean nothing here."""
    from ...autograd.tensor import Tensor
    from ...graph.op import number
    from ...language.runtime.attributes import get_attribute
    from ...language.runtime.names import member
    from ...language.values.values import Namespace

    missing = []
    some = Tensor(number(1.0))
    for path in sorted(torch_functions()):
        namespace, _, name = path.rpartition(".")
        try:
            if namespace == "Tensor":
                get_attribute(some, name)
            else:
                member(Namespace(namespace), name)
        except AutodiffError:
            missing.append(path)
    return missing


def _missing(values: dict[str, Any], env: Environment) -> int:
    missing = missing_names()
    if values["format"] == "json":
        env.write(dumped({"missing": missing, "known": len(torch_functions())}))
        return Exit.OK
    shown = (name if name.startswith("Tensor.") else f"torch.{name}" for name in missing)
    env.write("".join(f"{name}\n" for name in shown))
    env.note(f"{len(missing)} of {len(torch_functions())} functions and methods are missing")
    return Exit.OK
