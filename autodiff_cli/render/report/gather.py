"""Everything that the other commands know of one program, for its page.

Invariant: nothing is computed here; a part that a program cannot have is None, and the rest of the
page is there without it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from math import prod
from typing import TypeVar

from ...checks.model import KINK, Item, Settings
from ...checks.runner import check_source
from ...errors import Diagnostic, Ended
from ...explain.derive import Derivative, derive_source
from ...explain.model import Explanation, Request
from ...explain.source import explain_source
from ...graph.state import own_state
from ...language.program.derivatives import Derivatives, derivatives
from ...language.program.derivatives import Request as Blocks
from ...session import Options, Report, run
from ...source import Source
from ..diagnostics import render

MOST_ENTRIES = 200_000  # of a Jacobian
T = TypeVar("T", bound=Ended)


@dataclass(slots=True)
class Program(Ended):
    """What is known of a program. `said` are its errors and warnings, each one once; `missing` is
    why there is nothing to step through."""

    source: Source
    run: Report
    explanation: Explanation | None = None
    missing: Diagnostic | None = None
    formulas: dict[str, Derivative] = field(default_factory=dict)
    jacobian: Derivatives | None = None
    checks: list[Item] = field(default_factory=list)
    said: list[Diagnostic] = field(default_factory=list)

    @property
    def file(self) -> str:
        return self.source.name

    def __post_init__(self) -> None:
        run = self.run
        self.stdout, self.error, self.warnings = run.stdout, run.error, run.warnings


def failed(report: Report) -> Program:
    """A program that could not be read, or whose process was lost."""
    assert report.error is not None
    return Program(Source("", report.file), report, said=[report.error.diagnostic])


def gathered(source: Source, options: Options, path: str | None = None) -> Program:
    """Run a program, explain, check and differentiate it; `path`: it is a file, which may have a
    snapshot."""
    options = replace(options, write=None)
    report = run(source, options)
    found = Program(source, report)
    request = Request(options.loss, options.wrt)
    if report.error is None:
        explanation = _alone(lambda: explain_source(source, options, request))
        if explanation.error is None:
            found.explanation = explanation
            derived = _alone(lambda: derive_source(source, options, request))
            found.formulas = {d.wrt: d for d in derived.derivatives}
            found.jacobian = _jacobian(source, options, report, explanation)
        else:
            found.missing = explanation.error.diagnostic
    errors = [] if report.error is None else [report.error, *report.more_errors]
    items = check_source(source, _settings(options), path).items
    if report.error is not None or not any(i.bad for i in items if i.kind == "run"):
        found.checks = [item for item in items if item.kind != "run"]
    said = [error.diagnostic for error in errors] + report.warnings
    said += found.explanation.warnings if found.explanation is not None else []
    said += [i.diagnostic for i in found.checks if i.diagnostic and i.status != KINK]
    found.said = list({render(d): d for d in said}.values())
    return found


def _alone(compute: Callable[[], T]) -> T:
    with own_state():
        return compute()


def _settings(options: Options) -> Settings:
    return Settings(
        defines=options.defines, nan=options.nan, timeout=None, max_memory=options.max_memory,
        max_steps=options.max_steps,
    )  # fmt: skip


def _jacobian(
    source: Source, options: Options, report: Report, explanation: Explanation
) -> Derivatives | None:
    """That of the last named value with several elements; where there is none, of the result."""
    results = [f for f in explanation.forward if f.name in report.tensors]
    several = [f for f in results if f.value.size > 1]
    chosen = next(reversed(several or results), None)
    if chosen is None:
        return None
    entries = chosen.value.size * sum(prod(t.shape) for t in explanation.totals)
    if entries > MOST_ENTRIES:
        return None
    found = _alone(lambda: derivatives(source, options, Blocks(of=chosen.name, wrt=options.wrt)))
    return found if found.blocks else None
