"""Writes programs that call everything a program can call, from PyTorch's signatures, and records
what PyTorch does with them.

A subject is a class or function with a call that works and inputs for it, a line of a table in
`surface/`. Programs are made of it: each keyword off its default, each rank, training and
evaluation, and inputs of wrong ranks, of which the class of the exception is kept. What no
signature tells is in `rest.txt`; `differs.txt` lists the calls that are known to part from PyTorch.

Run it with `python -m tests.oracles.surface`; PyTorch is needed only here. What was recorded stays
while its program does; `--all` records everything anew.
"""

from __future__ import annotations

import gzip
import inspect
import json
import re
import sys
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import torch

from tests.oracles.programs import outcome

FOLDER = Path(__file__).parent / "surface"
FIXTURE = Path(__file__).parents[1] / "fixtures" / "surface.json.gz"

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
    "last_epoch": [],
    "scale_mode": ["'iterations'"],
    "T_mult": ["2"],
    "anneal_strategy": ["'linear'"],
    "threshold_mode": ["'abs'"],
    "min_lr": ["0.05"],
    "cooldown": ["2"],
    "patience": ["1"],
    "factor": ["0.5", "0.25"],
    "total_steps": ["15"],
    "epochs": [],
    "steps_per_epoch": [],
    "step_size_up": ["3"],
    "step_size_down": ["2"],
    "scale_fn": ["lambda x: 0.5"],
    "power": ["2.0"],
    "min_value": ["-0.5"],
    "max_value": ["0.4"],
    "end_factor": ["0.5"],
    "start_factor": ["0.5"],
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


def alternatives(name: str, parameter: inspect.Parameter) -> list[str]:
    """Values of a keyword that are not its default."""
    default = parameter.default
    own = (name, parameter.name)
    if own in EXCEPTIONS:
        return EXCEPTIONS[own]
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
        for value in alternatives(path.rpartition(".")[2], parameter):
            rest = without(given, parameter.name)
            if len(rest) == len(given) or f"{parameter.name}={value}" not in given:
                yield ", ".join([*rest, f"{parameter.name}={value}"])


# Keywords whose values depend on what they are given to.
EXCEPTIONS: dict[tuple[str, str], list[str]] = {
    ("Upsample", "mode"): [],
    ("interpolate", "mode"): [],
    ("grid_sample", "mode"): [],
    ("grid_sample", "padding_mode"): ["'border'", "'reflection'"],
    ("pad", "mode"): [],
    ("interpolate", "size"): [],
    ("CyclicLR", "mode"): ["'triangular2'", "'exp_range'"],
    ("ReduceLROnPlateau", "mode"): ["'max'"],
    ("one_hot", "num_classes"): ["5"],
    ("Transformer", "dropout"): [],
    ("TransformerDecoderLayer", "activation"): [],
    ("TransformerDecoderLayer", "dropout"): [],
    ("TransformerDecoderLayer", "layer_norm_eps"): [],
}

DRAW = re.compile(r"\b(r|u)\(([\d, ]*)\)")


def wrong_inputs(text: str) -> list[str]:
    """The first input with a dim more, and with a dim less."""
    parts = split(text)
    match = DRAW.fullmatch(parts[0])
    if match is None or not match[2]:
        return []
    less = ", ".join(split(match[2])[1:])
    return [
        ", ".join([f"{match[1]}({sizes})", *parts[1:]]) for sizes in (f"2, 2, {match[2]}", less, "")
    ]


# -- programs --------------------------------------------------------------------------------------

# What every program begins with.
HELPERS = (FOLDER / "helpers.txt").read_text("utf-8")


def modules() -> Iterator[tuple[str, list[str]]]:
    """Layers and losses: a step, gradients, state, evaluation; wrong ranks, once of each class."""
    first: dict[str, str] = {}
    for path, args, inputs in subjects("modules"):
        alone = first.setdefault(path, args) == args
        cells = [f"module({path}({args}), {x})" for x in inputs]
        cells += [f"module({path}({a}), {inputs[0]})" for a in varied(path, args)]
        wrong = wrong_inputs(inputs[0]) if alone else []
        cells += [f"module({path}({args}), {y})" for y in wrong]
        yield f"{path}({args})", cells


def functions() -> Iterator[tuple[str, list[str]]]:
    """Functions of tensors: values, gradients, names of nodes; wrong ranks."""
    for path, args, inputs in subjects("functions"):
        cells = []
        for x in inputs:
            given = ["_"] * (2 if x.startswith("*") else len(split(x)))
            for a in varied(path, ", ".join([*given, *split(args)])):
                rest = ", ".join(["*t", *split(a)[len(given) :]])
                cells.append(f"function(lambda *t: torch.{path}({rest}), {x})")
            cells += [
                f"function(lambda *t: torch.{path}({', '.join(['*t', *split(args)])}), {y})"
                for y in wrong_inputs(x)
            ]
        yield f"{path} {args}", cells


OF_A_DISTRIBUTION = """d | sorted(d.arg_constraints) | d.arg_constraints
d.batch_shape, d.event_shape | d.total_count
d.mean | d.variance | d.stddev | d.mode | d.entropy() | d.perplexity() | d.log_prob(v) | d.cdf(v)
d.icdf(T([[0.3], [0.6]])) | d.support | d.support.check(v) | d.enumerate_support()
d.support.check(v + 0.5) | d.support.check(v - 3.0)
d.support.event_dim, d.support.is_discrete, d.has_rsample, d.has_enumerate_support
d.enumerate_support(expand=False) | d.sample() | d.sample((2,)) | d.rsample((2,)) | d.sample_n(2)
d.expand((3, *d.batch_shape)) | d.expand((3, *d.batch_shape)).log_prob(v) | d.param_shape
d.expand((3, *d.batch_shape)).mean | d.expand((3, *d.batch_shape)).variance | d.logits | d.probs
d.expand((3, *d.batch_shape)).sample().shape | d.log_prob(v * float("nan"))
d.log_prob(v - 100.5) | d.log_prob(torch.ones(7, 5, 4)) | d.log_prob(0.5) | d.total_count
[(k, c.event_dim, c.is_discrete) for k, c in d.arg_constraints.items()] | type(d).__name__
isinstance(d, D.ExponentialFamily), isinstance(d, D.TransformedDistribution) | d.loc | d.scale
d.covariance_matrix | d.precision_matrix | d.scale_tril | d.temperature | d | d.base_dist
"""
# Of further ones of a class: what depends on its parameters.
OF_ANOTHER = """d.batch_shape, d.event_shape | d.total_count | d.mean | d.variance | d.mode
d.entropy() | d.log_prob(v) | d.cdf(v) | d.icdf(T([[0.3], [0.6]])) | d.enumerate_support()
d.sample((2,)) | d.rsample((2,)) | d.expand((3, *d.batch_shape)).log_prob(v) | d.logits | d.probs
d.log_prob(torch.ones(7, 5, 4)) | d.support | d
"""
# Of those made of numbers.
OF_NUMBERS = "d.mean | d.log_prob(v) | d.sample((2,)) | d"
DERIVED = ["d.entropy()", "d.log_prob(v)", "d.mean", "d.variance", "d.cdf(v)", "d.icdf(T(0.3))"]


def attempts(text: str) -> Iterator[str]:
    """Cells that show each expression of a text, or the class of what it raises."""
    for e in (part.strip() for line in text.splitlines() for part in line.split("|")):
        yield f"attempt(lambda: ({e}))" if len(split(e)) > 1 else f"attempt(lambda: {e})"


def distributions() -> Iterator[tuple[str, list[str]]]:
    """What a distribution tells, its gradients and draws, and parameters that it refuses."""
    first: dict[str, str] = {}
    for made, leaves, (value,) in subjects("distributions"):
        alone = first.setdefault(made.partition("(")[0], made + value) == made + value
        text = OF_A_DISTRIBUTION if alone else OF_ANOTHER if leaves else OF_NUMBERS
        pairs = [text.strip().split("=", 1) for text in leaves.split(";") if text]
        names, values = [p[0] for p in pairs], [p[1] for p in pairs]
        plain = "".join(f"{n} = T({v}); " for n, v in zip(names, values, strict=True))
        head = f"{plain}d = {made}; v = T({value})"
        cells = [head, *attempts(text)]
        wants = "".join(
            f"{n} = T({v}).requires_grad_(); " for n, v in zip(names, values, strict=True)
        )
        given = f"({', '.join(names)},)"
        unchecked = f"{made[:-1]}, validate_args=False)"
        if names:
            for n in names if alone else []:
                for bad in ("* float('nan')", "* 0 - 1", "* 0 + 2"):
                    cells.append(f"attempt(lambda {n}={n} {bad}: type({made}).__name__)")
                cells.append(f"attempt(lambda {n}={n} * 0 - 1: type({unchecked}).__name__)")
            cells.append(f"attempt(lambda: {unchecked})")
            cells.append(f"attempt(lambda: {unchecked}.log_prob(v - 100.5))")
            for e in [*DERIVED, "d.rsample((3,)) ** 2"] if alone else DERIVED[:2]:
                slopes = f"print(torch.autograd.grad(o.sum(), {given}, allow_unused=True))"
                shown = f"print(o.detach(), o.requires_grad); {slopes}"
                cells.append(f"{wants}d = {made}; o = {e}; {shown}")
        yield made + value, cells


def divergences() -> Iterator[tuple[str, list[str]]]:
    """Every distribution from every other that PyTorch has, and from some of those it has not."""
    table = subjects("divergences")

    def several(text: str) -> str:
        parts = split(text)
        if text.startswith("["):
            return ", ".join(f"T({p})" for p in parts)
        return ", ".join(f"T([{p}, {float(p) + 0.1:.6g}])" if "." in p else p for p in parts)

    def there(p: str, q: str) -> bool:
        pair = [getattr(torch.distributions, name) for name in (p, q)]
        return any(all(map(issubclass, pair, kinds)) for kinds in known)

    known = torch.distributions.kl._KL_REGISTRY
    for i, (p, args, _) in enumerate(table):
        cells = []
        for j, (q, _, (others,)) in enumerate(table):
            far = (i + j) % 5 and not there(p, q)
            if args.startswith("[") is others.startswith("[") and not far:
                pair = f"D.{p}({several(args)}), D.{q}({several(others)})"
                cells.append(f"attempt(lambda: D.kl_divergence({pair}))")
        yield p, cells


OF_A_TRANSFORM = """t(x) | t.inv(t(x)) | t.inv.inv is t | t | t.inv | t.domain, t.codomain
t.inv.domain, t.inv.codomain | t.bijective, t.inv.bijective | t.sign | t.inv.sign
t.log_abs_det_jacobian(x, t(x)) | t.inv.log_abs_det_jacobian(t(x), x) | t == s, t != s, t == t
t.inv == s.inv, t == t.inv, t.inv != s | t.with_cache(1) | t.with_cache(1)(x)
t.with_cache(1) is t, t.with_cache(0) is t | t.with_cache(1).inv(x)
(lambda c: (c(x) is c(x), c.inv(c(x)) is x))(t.with_cache()) | t.event_dim | t == D.ExpTransform()
t.domain.event_dim, t.codomain.event_dim, t.domain.is_discrete | t.domain.check(x)
t.forward_shape((3, 2)), t.inverse_shape((3, 2)) | t.codomain.check(t(x)) | t.with_cache(2)
(lambda z: (t(z).sum().backward(), z.grad))(x.clone().requires_grad_())
(lambda z: (t.log_abs_det_jacobian(z, t(z)).sum().backward(), z.grad))(x.clone().requires_grad_())
"""


def transforms() -> Iterator[tuple[str, list[str]]]:
    """What a transform does and tells."""
    for line in (FOLDER / "transforms.txt").read_text("utf-8").splitlines()[1:]:
        made, value = line.split(" | ")
        head = f"t = {made}; s = {made}; x = T({value})"
        yield made, [head, *attempts(OF_A_TRANSFORM)]


def schedulers() -> Iterator[tuple[str, list[str]]]:
    """Rates of eight steps, the state, a scheduler that goes on from another's."""
    for path, args, _ in subjects("schedulers"):
        whole = ", ".join(part for part in ("o", args) if part)
        start = "o = optimizer(torch.optim.SGD, momentum=0.9); "
        cells = [
            f"{start}s = torch.{path}({a}); follow(o, s); "
            "print(state(s), sorted(o.param_groups[0]))"
            for a in varied(path, whole)
        ]
        cells.append(
            f"o = optimizer(torch.optim.Adam); s = torch.{path}({whole}); follow(o, s, 3); "
            f"d = s.state_dict(); o = optimizer(torch.optim.Adam); s = torch.{path}({whole}); "
            "s.load_state_dict(d); follow(o, s, 3); print(state(s))"
        )
        cells.append(f"{start}s = torch.{path}({whole}, last_epoch=2); follow(o, s, 3)")
        cells.append(f"{start}s = torch.{path}({whole}); s.step(3); print(s.base_lrs, state(s))")
        yield f"{path} {args}", cells


def together(cells: list[str]) -> Iterator[str]:
    """The cells, those as one that catch what they raise."""
    for caught, run in groupby(cells, lambda cell: cell.startswith("attempt(")):
        several = list(run)
        yield from ["\n    ".join(several)] if caught else several


def programs() -> list[tuple[str, str]]:
    """Id and text of every program."""
    known = set((FOLDER / "differs.txt").read_text("utf-8").splitlines())
    found = []
    families = (modules, functions, distributions, divergences, transforms, schedulers)
    for family in families:
        for title, cells in family():
            body = "".join(
                f'print("#", {i})\ntorch.manual_seed(7)\ntry:\n    {cell}\n'
                'except Exception as e:\n    print("!", type(e).__name__)\n'
                for i, cell in enumerate(
                    together([c for c in dict.fromkeys(cells) if f"{title} # {c}" not in known])
                )
            )
            found.append((f"{family.__name__}: {title}", HELPERS + body))
    for text in (FOLDER / "rest.txt").read_text("utf-8").split("=====\n"):
        found.append((f"rest: {text.partition(chr(10))[0].lstrip('# ')}", HELPERS + text))
    return found


def main() -> None:
    """Write the fixture."""
    before = json.loads(gzip.decompress(FIXTURE.read_bytes()))
    if "--all" in sys.argv or before["helpers"] != HELPERS:
        before["cases"] = []
    known = {case["source"]: case for case in before["cases"]}
    cases = []
    for name, text in programs():
        source = text.removeprefix(HELPERS)
        if known.get(source, {}).get("id") == name:
            cases.append(known[source])
            continue
        made = outcome(text)
        if made["error"] is not None:
            print("unexpected:", name, made["error"])
        cases.append({"id": name, "source": source, "stdout": made["stdout"]})
    rows = ",\n".join(json.dumps(case) for case in cases)
    with gzip.GzipFile(FIXTURE, "wb", mtime=0) as file:
        file.write(f'{{"helpers": {json.dumps(HELPERS)}, "cases": [\n{rows}\n]}}\n'.encode())
    print(len(cases), "programs")


if __name__ == "__main__":
    main()
