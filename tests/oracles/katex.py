"""Every formula beside the textbook's, and every explanation's, compiled by KaTeX:

    npm install katex && NODE_PATH=node_modules python -m tests.oracles.katex

Prints what KaTeX refuses; nothing is written.
"""

from __future__ import annotations

import json
import subprocess

from tests.explain.test_recorded import formulas_in_latex
from tests.explain.test_textbook import CASES, DATA, PROBLEMS, derived

SCRIPT = """
const katex = require("katex");
for (const text of JSON.parse(require("fs").readFileSync(0, "utf8")))
  try { katex.renderToString(text, { throwOnError: true, strict: "ignore", displayMode: true }); }
  catch (error) { console.log(text, "|", error.message); }
"""


def formulas() -> list[str]:
    """The LaTeX of all derivatives: of the cases, and of those that are recorded."""
    found = formulas_in_latex()
    programs = [(f"{DATA}loss = {loss}\n", wrt, int(order)) for order, wrt, loss, _ in CASES]
    programs += [(program, wrt, 1) for _, program, wrt, _ in PROBLEMS]
    for program, wrt, order in programs:
        for d in derived(program, wrt, order).derivatives:
            found += [d.latex, *(part for _, _, part in d.lets)]
    return found


if __name__ == "__main__":
    texts = formulas()
    refused = subprocess.run(
        ["node", "-e", SCRIPT], input=json.dumps(texts), capture_output=True, text=True, check=True
    ).stdout
    print(refused, f"{len(texts)} formulas, {len(refused.splitlines())} refused", sep="")
