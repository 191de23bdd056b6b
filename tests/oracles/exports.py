"""Writes tests/fixtures/exports.json: of programs written for PyTorch and for JAX, a digest of each
text that was run in its library and gave what it asserts; and exported_samples.json: the samples of
ops by which each text that an op has for NumPy or JAX is written.

Run from the root, with a Python that has it for each: `python -m tests.oracles.exports torch=python
jax=python`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

from autodiff_cli.errors import AutodiffError
from autodiff_cli.graph.registry import OPS
from tests.explain import test_export
from tests.explain.test_export import (
    LIBRARIES,
    digest,
    exported_sample,
    programs,
    programs_in_both,
    written,
    written_samples,
)  # fmt: skip
from tests.explain.test_textbook import FIXTURES
from tests.table import cases

SCRIPT = """
import contextlib, io, json, sys
for name, code in json.load(sys.stdin).items():
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(code, "exported", "exec"), {"__name__": "__main__"})
    except Exception as error:
        print(name, type(error).__name__, *str(error).split()[:30])
"""


def chosen(to: str) -> list[str]:
    """The samples that write a text of an op which none before them writes."""
    texts: set[tuple[str, str]] = set()

    def noted(key: str, text: Any) -> Any:
        def noting(*args: Any, **named: Any) -> Any:
            made = text(*args, **named)
            texts.add((key, str(made)))
            return made

        return noting

    for key, op in OPS.items():
        if callable(getattr(op, to)):
            setattr(op, to, noted(key, getattr(op, to)))
    names = []
    for case in cases():
        before = len(texts)
        try:
            sample = exported_sample(case)
            if sample and sample.text(to, None) and len(texts) > before:
                names.append(case.name)
        except AutodiffError:
            continue
    return names


if __name__ == "__main__":
    samples = {to: chosen(to) for to in ("numpy", "jax")}
    (FIXTURES / "exported_samples.json").write_text(json.dumps(samples, indent=0) + "\n")
    test_export.CHOSEN.update(samples)
    place = FIXTURES / "exports.json"
    found = json.loads(place.read_text()) if place.exists() else {}
    for to, _, python in (part.partition("=") for part in sys.argv[1:]):
        assert to in LIBRARIES
        codes = written(to, programs(to) | programs_in_both())
        if to in samples:
            codes |= written_samples(to)
        failed = subprocess.run(
            [python, "-c", SCRIPT],
            input=json.dumps({n: c for n, c in codes.items() if c}),
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        print(to, f"{len(codes)} programs, {len(failed.splitlines())} fail", failed, sep="\n")
        names = [line.split()[0] for line in failed.splitlines()]
        found[to] = {n: digest(c) for n, c in codes.items() if n not in names}
    place.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")
