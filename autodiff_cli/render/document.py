"""The document of `--format json`: a report as strict JSON data, described by schema/run-1.json."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .values import strict, strict_number

if TYPE_CHECKING:
    from ..errors import Diagnostic
    from ..session import Report

SCHEMA = "autodiff.run/1"


def enveloped(schema: str, found: Any, body: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """What the documents of all commands have in common around the `body` of a result that did not
    fail: schema, file, status, the error, what the program printed, warnings."""
    result: dict[str, Any] = {
        "schema": schema,
        "file": strict_text(found.file),
        "status": "ok" if found.error is None else "error",
    }
    if found.error is not None:
        result["error"] = problem(found.error.diagnostic)
    else:
        result.update(body())
    result["stdout"] = strict_text(found.stdout)
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
        "tensors": {
            name: {
                "shape": [int(size) for size in record.shape],
                "dtype": record.dtype,
                "requires_grad": bool(record.requires_grad),
                "is_leaf": bool(record.is_leaf),
                "grad_fn": record.grad_fn,
                "value": strict(record.value),
                "grad": None if record.grad is None else strict(record.grad),
            }
            for name, record in report.tensors.items()
        },
        "scalars": {name: strict_number(value) for name, value in report.scalars.items()},
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
    span = diagnostic.span
    return {
        "code": diagnostic.code,
        "kind": diagnostic.kind,
        "message": strict_text(diagnostic.message),
        "help": strict_text("\n".join(diagnostic.helps)) or None,
        "line": span.line if span else None,
        "column": span.column if span else None,
        "end_line": span.end_line if span else None,
        "end_column": span.end_column if span else None,
    }


def dump(report: Report, plan: bool = False) -> str:
    """The document as one line, with its line end."""
    return json.dumps(document(report, plan), allow_nan=False, check_circular=False) + "\n"


def strict_text(text: str) -> str:
    """Lone surrogates are no Unicode text, and strict JSON readers refuse them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
