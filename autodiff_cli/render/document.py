"""The document of `--format json`: a report as strict JSON data, described by schema/run-1.json."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from .diagnostics import place
from .text import dumped
from .values import strict, strict_number

if TYPE_CHECKING:
    from ..errors import Diagnostic
    from ..session import Report

SCHEMA = "autodiff.run/1"
RECORD = ("shape", "dtype", "requires_grad", "is_leaf", "grad_fn", "value", "grad")


def enveloped(schema: str, found: Any, body: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What the documents of all commands have in common around the `body` of a result that did not
    fail: schema, file, status, the error, what the program printed, warnings."""
    result: dict[str, Any] = {
        "schema": schema,
        "file": found.file,
        "status": "ok" if found.error is None else "error",
    }
    if found.error is not None:
        result["error"] = problem(found.error.diagnostic)
    else:
        result.update(body())
    result["stdout"] = found.stdout
    if found.warnings:
        result["warnings"] = [problem(warning) for warning in found.warnings]
    return result


def document(report: Report, plan: bool = False) -> dict[str, Any]:
    """The report as data for `json.dumps`; nothing is left out or shortened. `plan`: it was asked
    for."""
    return enveloped(SCHEMA, report, lambda: _body(report, plan))


def _body(report: Report, plan: bool) -> dict[str, Any]:
    result: dict[str, Any] = {
        "loss": report.loss,
        "tensors": {name: picked(record, *RECORD) for name, record in report.tensors.items()},
        "scalars": {name: strict_number(value) for name, value in report.scalars.items()},
    }
    if report.blocked:
        result["blocked"] = {
            name: {
                "shape": list(array.shape),
                "dtype": array.dtype.name,
                "blocks": array.measured.blocks,
                **{key: strict_number(value) for key, value in array.measured.shown().items()},
            }
            for name, array in report.blocked.items()
        }
    if report.profile is not None:
        from .profile import profile_data

        result["profile"] = profile_data(report.profile)
    if plan:
        from .plan import plan_data

        result["plan"] = plan_data(report.plan)
    return result


def problem(diagnostic: Diagnostic) -> dict[str, Any]:
    """An error or warning; places count from 1 and are null when there is no place."""
    return {
        **picked(diagnostic, "code", "kind", "message"),
        "help": "\n".join(diagnostic.helps) or None,
        **place(diagnostic.span),
    }


def dump(report: Report, plan: bool = False) -> str:
    """The document as one line, with its line end."""
    return dumped(document(report, plan))


def picked(item: Any, *names: str) -> dict[str, Any]:
    """Attributes of an item as data for strict JSON."""
    return {name: as_data(getattr(item, name)) for name in names}


def as_data(value: Any) -> Any:
    """A value as data for strict JSON."""
    if isinstance(value, tuple | list):
        return list(map(as_data, value))
    if isinstance(value, np.ndarray | np.generic):
        return strict(np.asarray(value))
    return value
