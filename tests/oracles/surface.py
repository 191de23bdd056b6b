"""Writes programs that call everything a program can call, from PyTorch's signatures, and records
what PyTorch does with them.

A subject is a class or function with a call that works (`CALLS`) and inputs for it. Programs are
made of it: each keyword off its default, each rank, integers, an empty batch, training and
evaluation, and wrong arguments one at a time, of which the class of the exception is kept.

Run it with `python -m tests.oracles.surface`; PyTorch is needed only here.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

FOLDER = Path(__file__).parent / "surface"

# What a keyword is set to where its default alone does not say it, by its name.
VALUES: dict[str, list[str]] = {
    "padding_mode": ["'reflect'", "'replicate'", "'circular'"],
    "momentum": ["0.3", "None"],
    "reduction": ["'sum'", "'none'"],
    "dtype": ["torch.float32"],
    "norm_type": ["1.0", "float('inf')", "3"],
    "max_norm": ["0.5"],
    "padding_idx": ["1", "-1"],
    "mode": ["'sum'", "'max'"],
    "approximate": ["'tanh'"],
    "dim": ["0", "-2"],
    "nonlinearity": ["'relu'"],
    "weight": [],
    "pos_weight": [],
    "stride": ["2", "1"],
    "num_layers": ["2"],
    "proj_size": ["1"],
    "dropout": ["0.5"],
    "kdim": ["3"],
    "vdim": ["3"],
    "activation": ["'gelu'"],
    "align_corners": ["True", "False"],
    "size_average": ["True", "False"],
    "reduce": ["True", "False"],
    "divisor_override": ["3"],
    "distance_function": ["None", "lambda u, v: (u - v).abs().sum(-1)", "nn.PairwiseDistance(p=1)"],
    "recompute_scale_factor": ["True"],
    "device": [],
    "_weight": [],
    "_freeze": ["True"],
    "_random_samples": [],
    "p": ["1", "3.0"],
    "size": [],
    "scale_factor": [],
    "threshold": ["0.5"],
    "_stacklevel": [],
    "eps": ["0.01"],
}


def subjects(name: str) -> list[tuple[str, str, list[str]]]:
    """Path, arguments and inputs of each line of a table."""
    found = []
    for line in (FOLDER / f"{name}.txt").read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            path, args, inputs = (part.strip() for part in line.split("|"))
            found.append((path, args, [text.strip() for text in inputs.split(";")]))
    return found


def target(path: str) -> Any:
    """The class or function of a path below `torch.`"""
    found: Any = torch
    for part in path.split("."):
        found = getattr(found, part)
    return found


def parameters(function: Any) -> list[inspect.Parameter]:
    """The parameters that a call may name."""
    try:
        signature = inspect.signature(function)
    except ValueError:
        return []
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [p for p in signature.parameters.values() if p.kind not in kinds]


def alternatives(parameter: inspect.Parameter) -> list[str]:
    """Values of a keyword that are not its default."""
    default = parameter.default
    if parameter.name in VALUES:
        return [text for text in VALUES[parameter.name] if text != repr(default)]
    if isinstance(default, bool):
        return [str(not default)]
    if isinstance(default, int):
        return [str(default + 1)]
    if isinstance(default, float):
        return [repr(default * 2 + 0.25)]
    return []


def split(text: str) -> list[str]:
    """Arguments at the commas outside brackets."""
    parts, depth, start = [], 0, 0
    for i, c in enumerate(text):
        depth += (c in "([{") - (c in ")]}")
        if c == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    return [*parts, text[start:].strip()] if text.strip() else []


def without(args: list[str], name: str) -> list[str]:
    """The arguments without a keyword."""
    return [a for a in args if not a.startswith(f"{name}=")]


def varied(path: str, args: str) -> Iterator[str]:
    """The arguments, and those with one keyword changed."""
    yield args
    given = split(args)
    positional = [a for a in given if not re.match(r"\w+=[^=]", a)]
    names = parameters(target(path))
    for parameter in names[len(positional) :]:
        for value in alternatives(parameter):
            rest = without(given, parameter.name)
            if len(rest) == len(given) or f"{parameter.name}={value}" not in given:
                yield ", ".join([*rest, f"{parameter.name}={value}"])


WRONG = ["'zzz'", "None", "-1", "0", "2.5", "(1, 2, 3, 4, 5, 6, 7)", "[]"]


def wrong_arguments(path: str, args: str) -> Iterator[str]:
    """The arguments with one of them wrong, too few and too many."""
    given = split(args)
    for i, text in enumerate(given):
        name, mark, _ = text.rpartition("=") if re.match(r"\w+=[^=]", text) else ("", "", "")
        for value in WRONG:
            yield ", ".join([*given[:i], f"{name}{mark}{value}", *given[i + 1 :]])
    positional = [a for a in given if not re.match(r"\w+=[^=]", a)]
    for parameter in parameters(target(path))[len(positional) :]:
        if parameter.name not in ("device", "_stacklevel", "size_average", "reduce"):
            for value in WRONG:
                rest = without(given, parameter.name)
                yield ", ".join([*rest, f"{parameter.name}={value}"])
    if given:
        yield ", ".join(given[:-1])
    yield ", ".join([*given, "colour=1"])


DRAW = re.compile(r"\b(r|u)\(([\d, ]*)\)")


def wrong_inputs(text: str) -> Iterator[str]:
    """The inputs with one of them of another shape, dtype or kind."""
    parts = split(text)
    for i, part in enumerate(parts):
        changed: list[str] = ["2.0", "'zzz'", "None"]
        match = DRAW.fullmatch(part)
        if match:
            sizes = [int(n) for n in split(match[2])]
            draw = match[1]
            for n in range(len(sizes)):
                other = [*sizes[:n], sizes[n] + 1, *sizes[n + 1 :]]
                changed.append(f"{draw}({', '.join(map(str, other))})")
            for n in range(1, len(sizes) + 1):
                changed.append(f"{draw}({', '.join(map(str, sizes[n:]))})")
            changed.append(f"{draw}(2, {match[2]})")
            changed.append(f"{draw}(2, 2, {match[2]})")
            changed.append(f"{draw}(0, {match[2].partition(',')[2]})")
            changed.append(f"{part}.long()")
            changed.append(f"{part}.float()")
            changed.append(f"{part}.bool()")
        else:
            changed.append(f"({part}).double()")
            changed.append(f"({part}) + 100")
            changed.append(f"({part})[None]")
            changed.append(f"({part})[0]")
            changed.append(f"({part}) - 100")
        for other in changed:
            yield ", ".join([*parts[:i], other, *parts[i + 1 :]])


def attempt(body: str) -> str:
    """A cell: what a statement prints, or the class of its exception."""
    return f"try:\n    {body}\nexcept Exception as e: print('!', type(e).__name__)\n"
