"""Writes tests/fixtures/exports.json: of programs written for PyTorch and for JAX, a digest of each
text that was run in its library and gave what it asserts.

Run from the root, with a Python that has it for each: `python -m tests.oracles.exports torch=python
jax=python`.
"""

from __future__ import annotations

import json
import subprocess
import sys

from tests.explain.test_export import LIBRARIES, digest, written
from tests.explain.test_textbook import FIXTURES

SCRIPT = """
import contextlib, io, json, sys
for name, code in json.load(sys.stdin).items():
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(code, "exported", "exec"), {"__name__": "__main__"})
    except Exception as error:
        print(name, type(error).__name__, *str(error).split()[:30])
"""


if __name__ == "__main__":
    place = FIXTURES / "exports.json"
    found = json.loads(place.read_text()) if place.exists() else {}
    for to, _, python in (part.partition("=") for part in sys.argv[1:]):
        assert to in LIBRARIES
        codes = written(to)
        failed = subprocess.run(
            [python, "-c", SCRIPT],
            input=json.dumps({n: c for n, c in codes.items() if c}),
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
        print(to, f"{len(codes)} programs, {len(failed.splitlines())} fail", failed, sep="\n")
        names = [line.split()[0] for line in failed.splitlines()]
        found[to] = {n: digest(c) for n, c in codes.items() if n not in names}
    place.write_text(json.dumps(found, indent=0, sort_keys=True) + "\n")
