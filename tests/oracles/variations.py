"""Records what PyTorch gives for calls near the samples of the op table: dtypes, shapes, strides,
what backward is called, a number of each result and of each gradient, or the class of the error.

Run from the root with PyTorch installed: `python -m tests.oracles.variations [OP ...]`, all of
them or those of some ops anew. What differs here is printed and not recorded.
"""

from __future__ import annotations

import gzip
import json
import os
import signal
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.autograd import forward_ad

from ..ops.test_variations import FIXED, FIXTURE, METHOD, alike, close, found_here, loosely
from ..ops.test_variations import recorded as known
from ..table import SIGN_FREE, Case, specs
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
from .ops import converted, functions_of, parts

warnings.filterwarnings("ignore")


def form_of(case: Case) -> tuple[Callable[..., Any], list[str]] | None:
    """The first form that takes the sample, and which floats must not require grad for it: none,
    those that have no slope in the table either, or all."""
    places = list(specs(case))
    for fixed in ([], [p for p, spec in places if not spec.grad], [p for p, _ in places]):
        for function in functions_of(case.op):
            try:
                recorded(case, variations(case)["as it is"], function, fixed)
            except Exception:
                continue
            return function, fixed
    return None


def recorded(
    case: Case, variation: Variation, function: Callable[..., Any], fixed: list[str]
) -> list[Any]:
    """What a call gives."""
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(0)
    leaves = {
        place: torch.from_numpy(np.array(array, order="K"))
        for place, array in variation.arrays.items()
    }
    for place, leaf in leaves.items():
        leaf.requires_grad_(leaf.is_floating_point() and place not in fixed)

    def called(given: dict[str, torch.Tensor]) -> list[Any]:
        args, kwargs = arguments(case, variation, given)
        results = parts(
            function(*[converted(a) for a in args], **{k: converted(v) for k, v in kwargs.items()})
        )
        return [part * part for part in results] if case.op.key in SIGN_FREE else results

    if variation.look == "moves":
        with forward_ad.dual_level():
            results = called({place: dual(place, leaf) for place, leaf in leaves.items()})
            return [moved(forward_ad.unpack_dual(part).tangent) for part in floats_of(results)]
    results = called(leaves)
    found: list[Any] = []
    total = None
    if variation.look == "signs":
        return [["signs", zero_signs(part.numpy(force=True))] for part in floats_of(results)]
    for result in results:
        if not isinstance(result, torch.Tensor):
            found.append([type(result).__name__, float(result)])
            continue
        value = result.detach().numpy(force=True)
        name = None if result.grad_fn is None else result.grad_fn.name()
        found.append([f"{name} {described(value, result.stride())}", *summed(value)[:1]])
        if result.requires_grad:
            weight = torch.from_numpy(weights(tuple(result.shape), "loss")).to(result.dtype)
            total = (result * weight).sum() + (0 if total is None else total)
    if total is not None:
        wanted = {p: leaf for p, leaf in leaves.items() if leaf.requires_grad}
    if total is not None and wanted:
        again = bool(variation.look)
        slopes = torch.autograd.grad(
            total, list(wanted.values()), allow_unused=True, create_graph=again
        )
        if again:
            total = sum(
                (g * torch.from_numpy(weights(tuple(g.shape), "again")).to(g.dtype)).sum()
                for g in slopes
                if g is not None and g.requires_grad
            )
            if not isinstance(total, torch.Tensor):
                return []
            found = []
            slopes = torch.autograd.grad(total, list(wanted.values()), allow_unused=True)
        for place, g in zip(wanted, slopes, strict=True):
            if g is None:
                found.append([place, None])
                continue
            value = g.to_dense().numpy(force=True)
            found.append([f"{place}: {described(value, g.stride())}", summed(value)[0]])
    return found


def dual(place: str, leaf: torch.Tensor) -> torch.Tensor:
    """A tensor that moves, where one that requires grad stands."""
    if not leaf.requires_grad:
        return leaf
    tangent = torch.from_numpy(weights(tuple(leaf.shape), place)).to(leaf.dtype)
    return forward_ad.make_dual(leaf.detach(), tangent)


def floats_of(results: list[Any]) -> list[torch.Tensor]:
    return [r for r in results if isinstance(r, torch.Tensor) and r.is_floating_point()]


def moved(tangent: torch.Tensor | None) -> list[Any]:
    """What is recorded of a tangent."""
    if tangent is None:
        return ["still", None]
    value = tangent.to_dense().numpy(force=True)
    return [f"moves: {value.dtype} {list(value.shape)}", summed(value)[0]]


def looser(title: str) -> Iterator[str]:
    """A result as it is recorded, and without what may be another one's here: its strides, what
    backward is called."""
    nameless = title.partition(" ")[2]
    yield from (title, nameless, loosely(title), loosely(nameless))


def is_method(function: Callable[..., Any]) -> bool:
    """Whether a form is one of `functions_of` that a tensor has."""
    return function.__qualname__.startswith(("Tensor", "functions_of"))


def compared(
    case: Case, function: Callable[..., Any], fixed: list[str], done: int, out: Any
) -> None:
    """Write a line for each variation from one on: its label, what PyTorch gives (the class of its
    error and our name of it), whether it is given here, and what else there is to say."""
    for variation in list(variations(case).values())[done:]:
        words = ""
        try:
            wanted: Any = recorded(case, variation, function, fixed)
        except Exception as error:
            wanted, words = type(error).__name__, str(error).split("\n")[0][:80]
        try:
            found = found_here(case, variation, fixed, is_method(function))
        except Exception as error:
            found = [f"E900 {type(error).__name__}: {error}"]
        same = close(found, wanted)
        if not same and type(wanted) is list and len(wanted) == len(found):
            loose = [
                [next((t for t in looser(title) if alike(part[0], t)), title), number]
                for (title, number), part in zip(wanted, found, strict=True)
            ]
            wanted, same = (loose, True) if close(found, loose) else (wanted, False)
        if same and type(wanted) is str:
            wanted = [wanted, found[0]]
        row = [variation.label, wanted, same, f"{words} | {found}"]
        out.write(json.dumps(row) + "\n")
        out.flush()


def rows_of(case: Case, function: Callable[..., Any], fixed: list[str]) -> Iterator[list[Any]]:
    """What a process of its own writes; where PyTorch ends it, another one goes on behind."""
    done, many = 0, len(variations(case))
    while done < many:
        with tempfile.NamedTemporaryFile("w+") as out:
            if (child := os.fork()) == 0:
                signal.alarm(60)
                compared(case, function, fixed, done, out)
                os._exit(0)
            os.waitpid(child, 0)
            rows = [json.loads(line) for line in Path(out.name).read_text().splitlines()]
        yield from rows
        done += len(rows) + 1


def main() -> None:
    """Record what is alike, of a sample that was recorded only what was, of other samples but the
    first only what is recorded of none before; print what is not."""
    only = sys.argv[1:]
    stored = dict(known()) if only else {}
    counts: Counter[str] = Counter()
    torch.set_num_threads(1)
    for key, cases in by_op().items():
        before: set[str] = set()
        for case in cases if not only or key in only else ():
            if (form := form_of(case)) is None:
                print("no form:", case.name)
                continue
            stored[case.name] = {FIXED: form[1]} if form[1] else {}
            if is_method(form[0]):
                stored[case.name][METHOD] = True
            for label, wanted, same, words in rows_of(case, *form):
                counts["same" if same else "errors" if type(wanted) is str else "values"] += 1
                had = known().get(case.name)
                if same and (label in had if had else label == "as it is" or label not in before):
                    stored[case.name][label] = wanted
                elif not same:
                    print(case.name, label, wanted, words, sep=" | ")
            before |= stored[case.name].keys()
    print(counts, file=sys.stderr)
    with gzip.GzipFile(FIXTURE, "wb", mtime=0) as file:
        file.write(json.dumps(stored, indent=0).encode())


if __name__ == "__main__":
    main()
