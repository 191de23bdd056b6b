"""A program that is measured while it runs: its profile and its plan are in the report."""

from __future__ import annotations

from time import perf_counter

from ...engine.profile import observing
from ...source import Source
from .report import Options, Report
from .running import Program, report_of


def run_measured(source: Source, options: Options) -> Report:
    """Run one program as `run_program` does, with `profile` and `plan` where they are asked for."""
    with observing(options.plan) as observer:
        start = perf_counter()
        program = Program(source, options)
        report = report_of(program)
        observer.parsing += program.parsing
        seconds = perf_counter() - start
        if report.error is None:
            report.profile = observer.profile(seconds) if options.profile else None
            report.plan = observer.described() if options.plan else None
    return report
