"""Calls near the samples of the op table give what PyTorch gives, or its class of error; what
errors say is what they said."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from autodiff_cli.autograd import calls, gradients
from autodiff_cli.autograd.random.stream import Generator
from autodiff_cli.autograd.tensor import Tensor, new_leaf
from autodiff_cli.engine import evaluate
from autodiff_cli.errors import AutodiffError
from autodiff_cli.graph.op import constant
from autodiff_cli.graph.registry import F, overloads
from autodiff_cli.graph.state import STATE
from autodiff_cli.graph.strides import strides_of
from autodiff_cli.language.torch import duals
from autodiff_cli.language.values.exceptions import class_of
from autodiff_cli.language.values.plain_operands import refuse_plain

from ..said import LINES, said
from ..table import SIGN_FREE, Case
from ..together import together
from ..variations import (
    Variation,
    arguments,
    by_op,
    described,
    summed,
    variations,
    weights,
    zero_signs,
)

FIXTURE = Path(__file__).parents[1] / "fixtures" / "variations.json.gz"
# Beside the rows of a sample: the places that PyTorch has no derivative by, and whether it has the
# op as a method only.
FIXED, METHOD = "no grad", "method"
TOLERANCE = {"float16": 4e-3, "float32": 5e-5}


@cache
def recorded() -> dict[str, dict[str, Any]]:
    with gzip.open(FIXTURE) as file:
        found: dict[str, dict[str, Any]] = json.load(file)
    return found


def parts(result: Any) -> list[Any]:
    if isinstance(result, Tensor | bool | int | float):
        return [result]
    if isinstance(result, list | tuple):
        return [part for item in result for part in parts(item)]
    return []


def found_here(
    case: Case,
    variation: Variation,
    fixed: Sequence[str] = (),
    method: bool = False,
    words: dict[str, str] | None = None,
) -> Any:
    """What a changed call gives here in a program in PyTorch's words: numbers with how large what
    they sum is, or the name of the error and its class. Floats in the places
    `fixed` require no grad; `words` gets what the first error of each name says."""
    STATE.reset()
    STATE.default_dtype, STATE.python = np.dtype("float64"), True
    STATE.default_generator = Generator(0)
    moves = variation.look == "moves"
    if moves:
        duals._enter()
    leaves = {}
    for place, array in variation.arrays.items():
        free = array.dtype.kind == "f" and place not in fixed
        leaves[place] = new_leaf(np.array(array, order="K"), free and not moves)
        if free and moves:
            tangent = new_leaf(weights(array.shape, place).astype(array.dtype))
            leaves[place] = duals._make(leaves[place], tangent)
    args, kwargs = arguments(case, variation, leaves)
    try:
        with np.errstate(all="ignore"):
            return _results(case, leaves, args, kwargs, method, variation.look)
    except AutodiffError as error:
        if words is not None:
            said = error.which + "".join(error.diagnostic.notes)
            words.setdefault(said or error.message, f"{variation.label}: {told(error)}")
        cls = class_of(error)
        return [error.which or error.code, "" if cls is None else cls.name]
    finally:
        if moves:
            duals._leave()
        STATE.reset()


def told(error: AutodiffError) -> str:
    """All that an error says."""
    helps, notes = error.diagnostic.helps, error.diagnostic.notes
    return "\n".join(
        [error.message, *(f"help: {h}" for h in helps), *(f"note: {n}" for n in notes)]
    )


def _looked_at(part: Tensor, look: str) -> list[Any]:
    """The signs of the zeros of a result, or how it moves."""
    tangent = duals.tangent_of(part) if look == "moves" else part
    if tangent is None:
        return ["still", None, 0.0, 0.0]
    value = tangent.numpy()
    if look == "signs":
        return ["signs", zero_signs(value), 1.0, 1e-9]
    tolerance = TOLERANCE.get(str(value.dtype), 1e-9)
    return [f"moves: {value.dtype} {list(value.shape)}", *summed(value), tolerance]


def seeds(found: list[Tensor], which: str) -> list[Tensor | None]:
    """The cotangents of a sum of all elements with weights."""
    return [Tensor(constant(weights(t.shape, which).astype(t.dtype))) for t in found]


def _results(
    case: Case, leaves: dict[str, Tensor], args: Any, kwargs: Any, method: bool, look: str
) -> list[Any]:
    name = case.op.name
    ops = calls.method(name) if method else overloads(name)
    refuse_plain(ops, name, tuple(args), kwargs, int(method))
    result = calls.call_ops(ops, name, tuple(args), kwargs)
    found: list[Any] = []
    seen: list[Tensor] = []
    for part in parts(result):
        if not isinstance(part, Tensor):
            found.append([type(part).__name__, float(part), abs(float(part)), 1e-9])
            continue
        if case.op.key in SIGN_FREE:
            part = Tensor(F.mul(part.node, part.node))
        if look in ("signs", "moves"):
            if part.dtype.kind == "f":
                found.append(_looked_at(part, look))
            continue
        value = part.numpy()
        tolerance = TOLERANCE.get(str(value.dtype), 1e-9)
        title = f"{part.grad_name} {described(value, strides_of(part.node))}"
        found.append([title, *summed(value), tolerance])
        if part.requires_grad:
            seen.append(part)
    wanted = {place: leaf for place, leaf in leaves.items() if leaf.requires_grad} if seen else {}
    if wanted:
        targets = list(wanted.values())
        slopes = gradients.grad(
            seen, targets, seeds(seen, "loss"), allow_unused=True, create_graph=bool(look)
        )
        if look:
            again = [g for g in slopes if g is not None and g.requires_grad]
            if not again:
                return []
            found = []
            slopes = gradients.grad(again, targets, seeds(again, "again"), allow_unused=True)
        evaluate.evaluate([g.node for g in slopes if g is not None], last=True)
        total = np.result_type(*(part.node.dtype for part in seen))
        kinds_ = (total, *[leaf.node.dtype for leaf in leaves.values()])
        tolerance = max(TOLERANCE.get(str(kind), 1e-9) for kind in kinds_)
        for place, g in zip(wanted, slopes, strict=True):
            if g is None:
                found.append([place, None, 0.0, tolerance])
                continue
            title = described(g.numpy(), strides_of(g.node))
            found.append([f"{place}: {title}", *summed(g.numpy()), tolerance])
    return found


def loosely(title: str) -> str:
    """What is compared of a result whose strides are not."""
    return f"{title.rpartition('] ')[0]}] *" if "] " in title else title


def alike(title: str, expected: str) -> bool:
    """Whether a result is what is recorded: strides that are `*`, and what backward is called where
    nothing is recorded of it, are not PyTorch's."""
    if expected.endswith("*"):
        title = loosely(title)
    return title == expected or title.endswith(f" {expected}")


def close(found: Any, wanted: Any) -> bool:
    """Whether what is found here is what was recorded: of an error its class, and its code."""
    if isinstance(wanted, str):
        return wanted in found
    if wanted and isinstance(wanted[0], str):
        return wanted[0] == found[1] and wanted[1].split()[0] == found[0].split()[0]
    if len(found) != len(wanted) or not all(isinstance(part, list) for part in found):
        return False
    for (title, number, size, tolerance), (expected, value) in zip(found, wanted, strict=True):
        if not alike(title, expected) or (number is None) != (value is None):
            return False
        if number is not None and not math.isclose(
            number, value, rel_tol=0, abs_tol=tolerance * max(1.0, size)
        ):
            return False
    return True


OPS = by_op()


@together(OPS, group=10)
def test_as_pytorch(key: str) -> None:
    words: dict[str, str] = {}
    for case in OPS[key]:
        rows = recorded().get(case.name, {})
        for label, variation in variations(case).items() if rows else ():
            if label in rows:
                found = found_here(case, variation, rows.get(FIXED, ()), METHOD in rows, words)
                assert close(found, rows[label]), (case.name, label, found, rows[label])
    if words:
        said("ops").compare(f"test_variations.py::{key}", words.values(), LINES)
