"""Writes tests/fixtures/exports.json: of programs written for PyTorch and for JAX, a digest of each
text that was run in its library and gave what it asserts; exported_samples.json: the samples of
ops by which each text that an op has for NumPy or JAX is written; and exported_changes.json: the
changed samples by which another one is, which both ran.

Run from the root, with a Python that has it for each: `python -m tests.oracles.exports torch=python
jax=python`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from typing import Any

from autodiff_cli.errors import AutodiffError
from autodiff_cli.graph.registry import OPS
from tests.explain import test_export
from tests.explain.test_export import (
    LIBRARIES,
    digest,
    exported_sample,
    own_texts,
    programs,
    programs_in_both,
    written,
    written_samples,
)  # fmt: skip
from tests.explain.test_textbook import FIXTURES
from tests.ops.test_variations import recorded
from tests.table import cases
from tests.variations import variations

MOST = 8  # changed samples for the texts of one op

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


def failures(python: str, codes: dict[str, str]) -> str:
    """What a Python says of those that fail in it, a line each that begins with a name."""
    given = json.dumps({n: c for n, c in codes.items() if c})
    command = [python, "-c", SCRIPT]
    return subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout


def changes(python: str) -> dict[str, dict[str, str]]:
    """The changed samples that write a text which none before them writes, with a digest of their
    texts; only those whose code runs."""
    texts: set[str] = set()
    many: Counter[str] = Counter()
    found: dict[str, dict[str, str]] = {}
    codes: dict[str, dict[str, str]] = {"numpy": {}, "jax": {}}
    for case in (case for case in cases() if case.name in recorded()):
        rows = recorded()[case.name]
        for label, variation in variations(case).items():
            row = rows.get(label)
            if variation.look or type(row) is not list or (row and type(row[0]) is str):
                continue
            try:
                own = own_texts(case, variation)
            except AutodiffError:  # what draws numbers
                continue
            if label == "as it is" and not own:
                break
            new = [text for text in own - texts if many[text.partition(" ")[0]] < MOST]
            if not new:
                continue
            many.update({text.partition(" ")[0] for text in new})
            texts |= own
            sample = exported_sample(case, variation)
            assert sample is not None
            name = f"{case.name}:{label.replace(' ', '_')}"
            for to in codes:
                with suppress(AutodiffError):
                    codes[to][name] = sample.text(to, None)[0]
            found.setdefault(case.name, {})[label] = digest("\n".join(sorted(own)))
    for to, runs in (("numpy", sys.executable), ("jax", python)):
        failed = failures(runs, codes[to])
        print(f"{len(codes[to])} changed samples in {to}", failed, sep="\n")
        for line in failed.splitlines():
            name, _, label = line.split()[0].partition(":")
            found[name].pop(label.replace("_", " "), None)
    return {name: labels for name, labels in found.items() if labels}


if __name__ == "__main__":
    samples = {to: chosen(to) for to in ("numpy", "jax")}
    (FIXTURES / "exported_samples.json").write_text(json.dumps(samples, indent=0) + "\n")
    test_export.CHOSEN.update(samples)
    place = FIXTURES / "exports.json"
    found = json.loads(place.read_text()) if place.exists() else {}
    for to, _, python in (part.partition("=") for part in sys.argv[1:]):
        assert to in LIBRARIES
        codes = written(to, programs() | programs_in_both())
        if to in samples:
            codes |= written_samples(to)
            changed = json.dumps(changes(python), indent=0)
            (FIXTURES / "exported_changes.json").write_text(changed + "\n")
        failed = failures(python, codes)
        print(to, f"{len(codes)} programs, {len(failed.splitlines())} fail", failed, sep="\n")
        names = [line.split()[0] for line in failed.splitlines()]
        found[to] = {n: digest(c) for n, c in codes.items() if n not in names}
    place.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")
