"""The options of optimizers: names, order and defaults as in PyTorch, and which values fit."""

from __future__ import annotations

from typing import Any

from ...autograd.optim import rules
from ...autograd.optim.rules import real
from ...autograd.tensor import Tensor
from ...errors import AutodiffError, fail, fault
from ...graph.params import BindError, given_twice, missing, too_many, unknown_keyword
from ..values.dialect import kind_of
from ..values.formatting import text
from .library import plain

Options = dict[str, Any]

# What options are where nothing else is said.
_DEFAULTS: Options = {
    "lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "weight_decay": 0, "momentum": 0,
    "dampening": 0, "nesterov": False, "amsgrad": False, "momentum_decay": 4e-3,
    "decoupled_weight_decay": False, "alpha": 0.99, "centered": False, "lr_decay": 0,
    "initial_accumulator_value": 0, "rho": 0.9, "etas": (0.5, 1.2), "step_sizes": (1e-6, 50),
    "lambd": 1e-4, "t0": 1e6, "max_iter": 20, "max_eval": None, "tolerance_grad": 1e-7,
    "tolerance_change": 1e-9, "history_size": 100, "line_search_fn": None, "foreach": None,
    "maximize": False, "differentiable": False, "capturable": False, "fused": None,
}  # fmt: skip
_COMMON = "foreach maximize differentiable"

Signature = tuple[Any, Options, Options]


def _signature(rule: Any, names: str, **others: Any) -> Signature:
    """The rule of a step, the options in PyTorch's order, and those given only by keyword, whose
    names stand behind a `*`."""
    parts = [part.split() for part in names.partition("*")[::2]]
    options, keywords = [{n: others.get(n, _DEFAULTS[n]) for n in part} for part in parts]
    return rule, options, keywords


SIGNATURES: dict[str, Signature] = {
    "SGD": _signature(rules.sgd, f"lr momentum dampening weight_decay nesterov * {_COMMON} fused"),
    "Adam": _signature(
        rules.adam,
        f"lr betas eps weight_decay amsgrad * {_COMMON} capturable fused decoupled_weight_decay",
    ),
    "AdamW": _signature(
        rules.adam,
        f"lr betas eps weight_decay amsgrad * {_COMMON} capturable fused",
        weight_decay=1e-2,
    ),
    "Adamax": _signature(
        rules.adamax,
        "lr betas eps weight_decay foreach * maximize differentiable capturable",
        lr=2e-3,
    ),
    "NAdam": _signature(
        rules.nadam,
        f"lr betas eps weight_decay momentum_decay decoupled_weight_decay * {_COMMON} capturable",
        lr=2e-3,
    ),
    "RAdam": _signature(
        rules.radam, f"lr betas eps weight_decay decoupled_weight_decay * {_COMMON} capturable"
    ),
    "RMSprop": _signature(
        rules.rmsprop, f"lr alpha eps weight_decay momentum centered capturable {_COMMON}", lr=1e-2
    ),
    "Adagrad": _signature(
        rules.adagrad,
        "lr lr_decay weight_decay initial_accumulator_value eps foreach "
        "* maximize differentiable fused",
        lr=1e-2,
        eps=1e-10,
    ),
    "Adadelta": _signature(
        rules.adadelta,
        "lr rho eps weight_decay foreach * capturable maximize differentiable",
        lr=1.0,
        eps=1e-6,
    ),
    "Rprop": _signature(rules.rprop, f"lr etas step_sizes * {_COMMON} capturable", lr=1e-2),
    "ASGD": _signature(
        rules.asgd, f"lr lambd alpha t0 weight_decay {_COMMON} capturable", lr=1e-2, alpha=0.75
    ),
    "LBFGS": _signature(
        None,
        "lr max_iter max_eval tolerance_grad tolerance_change history_size line_search_fn",
        lr=1,
    ),
}

# The order in which a parameter group has the options, where it is not that of the signature.
_SHOWN: dict[str, str] = {
    "SGD": "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused",
    "Adam": "lr betas eps weight_decay amsgrad maximize foreach capturable differentiable fused",
    "AdamW": "lr betas eps weight_decay amsgrad maximize foreach capturable differentiable fused",
    "NAdam": "lr betas eps weight_decay momentum_decay decoupled_weight_decay maximize foreach "
    "capturable differentiable",
    "RAdam": "lr betas eps weight_decay maximize foreach capturable decoupled_weight_decay",
    "RMSprop": "lr momentum alpha eps centered weight_decay capturable foreach maximize",
    "Adagrad": "lr lr_decay eps weight_decay initial_accumulator_value foreach maximize",
    "Adadelta": "lr rho eps weight_decay maximize capturable foreach differentiable",
    "Rprop": "lr etas step_sizes foreach maximize differentiable capturable",
    "ASGD": "lr lambd alpha t0 weight_decay foreach maximize differentiable capturable",
}


def options_of(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Options]:
    """The parameters and the options of `name(*args, **kwargs)`; E205 when they do not fit."""
    _, positional, keywords = SIGNATURES[name]
    order = ["params", *positional]

    def wrong(error: BindError) -> AutodiffError:
        parts = ["params", *(f"{key}={text(value)}" for key, value in positional.items())]
        help = f"it is `{name}({', '.join(parts)})`"
        said = f"{name}() {error.said}"
        failure = fail("E205", f"`{name}` {error.message}", help=help, said=said)
        failure.callee, failure.facts = f"{name}.__init__", {"error": error}
        return failure

    if len(args) > len(order):
        raise wrong(too_many(len(order), len(order), len(args)))
    given = dict(zip(order, args, strict=False))
    for key, value in kwargs.items():
        if key in given:
            raise wrong(given_twice(key))
        if key not in order and key not in keywords:
            raise wrong(unknown_keyword(key, order))
        given[key] = value
    if "params" not in given:
        raise wrong(missing(["params"]))
    params = given.pop("params")
    options = {**positional, **keywords, **{key: plain(value) for key, value in given.items()}}
    _check(name, options)
    if name == "AdamW":
        options["decoupled_weight_decay"] = True
    if name == "LBFGS" and options["max_eval"] is None:
        options["max_eval"] = options["max_iter"] * 5 // 4
    shown = _SHOWN.get(name, "").split()
    return params, {**{key: options[key] for key in shown}, **options}


_NOT_NEGATIVE = (
    "lr", "eps", "weight_decay", "momentum", "alpha", "lr_decay", "rho", "momentum_decay",
    "initial_accumulator_value",
)  # fmt: skip
_NUMBERS = (*_NOT_NEGATIVE, "dampening", "lambd", "t0")
_PAIRS = ("betas", "etas", "step_sizes")
_SAID = {"lr": "learning rate", "eps": "epsilon"}


def number_options(name: str, options: dict[str, Any]) -> dict[str, Any]:
    """The options that are numbers, or two of them; E205 for those that are not."""
    found = {}
    for key in _NUMBERS:
        if key not in options:
            continue
        if isinstance(options[key], Tensor) and options[key].node.numel != 1:
            raise fault("E205 tensor-one-element", key=key)
        if not isinstance(options[key], int | float | Tensor):
            kind, example = kind_of(options[key]), _DEFAULTS[key]
            raise fault("E205 argument-number", kind, name=name, argument=key, example=example)
        found[key] = real(options[key])
    for key in _PAIRS:
        if key not in options:
            continue
        pair = options[key]
        parts = pair if isinstance(pair, list | tuple) else ()
        if [isinstance(part, int | float | Tensor) for part in parts] != [True, True]:
            example = _DEFAULTS[key]
            raise fault("E205 argument-two-numbers", name=name, argument=key, example=example)
        found[key] = tuple(map(real, parts))
    return found


def _check(name: str, options: dict[str, Any]) -> None:
    found = number_options(name, options)
    for key in _NOT_NEGATIVE:
        value = found.get(key, 0)
        free = (name, key) == ("ASGD", "alpha")
        if not (free or value >= 0) or (key == "rho" and value > 1):
            help = "0 to 1" if key == "rho" else f"`{key}` is not negative"
            raise fault("E205 invalid-option", _SAID.get(key, key), value, help)
    for i, beta in enumerate(found.get("betas", ())):
        if not 0 <= beta < 1:
            raise fault("E205 invalid-beta-parameter-index", i=i, beta=beta)
    if name in ("Adam", "AdamW"):
        kinds = {Tensor if isinstance(beta, Tensor) else type(beta) for beta in options["betas"]}
        if kinds not in ({Tensor}, {float}):
            raise fault("E205 invalid-betas", name=name)
    etas = found.get("etas")
    if etas and not 0 < etas[0] < 1 < etas[1]:
        raise fault("E205 invalid-etas", etas)
    if options.get("nesterov") and (found["momentum"] <= 0 or found["dampening"]):
        raise fault("E205 nesterov-momentum-requires-momentum")
