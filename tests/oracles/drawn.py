"""Command lines, sessions and programs drawn at random; those that come by what few tests do.

    python -m tests.oracles.drawn --n 5000 [--reach FOLDER]

Programs of all kinds with options in any company, what is typed in sessions, and the random
programs of `classes_fuzz`, `loops_fuzz`, `modules_fuzz` and `tensor_fuzz`. Each runs with marks in
the blocks of the code (`mutants.py`). Of those drawn so many are kept that a block by which few
tests come gets six more, where there are so many; `fixtures/drawn.json.gz` has the command lines,
but for those that saw only what three others see, and the programs with what PyTorch, or Python,
prints.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import io
import json
import os
import random
import re
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.oracles import mutate
from tests.oracles.mutants import imported, install

FIXTURE = Path(__file__).parents[1] / "fixtures" / "drawn.json.gz"
COMMENTED = [
    "x = [0.5, 2]  # check: rtol 1e-3\ny = x * x  #=> [0.25, 4]\nloss = sum(y)  #=> 4.25",
    "x = [0.5, 2]; k = const([1, 2])\nloss = sum(sqrt(x) * k)  # check: nograd x",
    "x = [1, 0]\nloss = sum(abs(x))  # check: nograd\nassert loss == 2, 'two'",
    "x = [1, 2]\nloss = sum(x**3)\nloss.backward()\nx.grad  #=> [3, 13]\nassert x.grad[0] == 4",
    "A = [[1, 2], [3, 4]]\nassert approx(sum(A) / 3, 3.33, 1e-2)\nloss = sum(A * A)  #=> 31",
    "x = [1, 2]\ny = x + 1  #=> E302\nz = x @ [1, 2, 3]  #=> E301\nloss = sum(x)",
]

EVERY = (
    "-p 2", "-p 9", "--sci", "--max-elements 3", "--color always", "-q", "-v", "-q -v",
    "--diagnostics concise", "--diagnostics json", "--diagnostics github", "--dtype float32",
    "--nan error", "--nan ignore", "--of NAME", "--wrt NAME", "--wrt N*,x", "-D NAME=2",
    "-D +extra=3", "-D NAME=", "-e extra=NAME*2", "--max-steps 30", "--max-memory 1M", "--all",
    "--max-depth 5", "--grad-output 2", "--grad-output ones", "-o it.json", "-o it.txt",
    "-o it.npz", "-o it.csv", "-o it", "-o -", "--format plain", "--format json",
)  # fmt: skip
OPTIONS: dict[str, tuple[str, ...]] = {
    "run": (
        "--no-backward", "--only values", "--only graph,gradients", "--only nothing",
        "--show NAME,*.grad", "--heat NAME", "--heat NAME.grad,nothing", "--asserts", "--plan",
        "--fix", "--show *", "--plan --all",
    ),
    "graph": (
        "-f svg", "-f dot", "-f mermaid", "-f json", "-f html", "--values", "--grads",
        "--values --grads", "--direction LR", "--max-nodes 3", "--max-nodes 12", "-o it.svg",
        "-o it.dot", "-o it.mmd", "-o it.html",
    ),
    "explain": (
        "--node NAME", "--node loss", "--node 3", "--node 99", "--node sum(x)", "--open softmax",
        "--open all", "--symbolic", "--markdown", "--latex", "--to latex --symbolic",
    ),
    "derive": (
        "--latex", "--statements", "--order 2", "--steps", "--raw", "--to numpy", "--to torch",
        "--to jax", "--order 2 --steps", "--steps --raw", "--to expr", "--latex --steps",
    ),
    "check": (
        "-k grad", "-k 'x and not hess'", "-k (", "-x", "--no-grad", "--order 2", "--snapshot",
        "--snapshot --full", "--update", "--prune", "--junit it.xml", "--seed 3", "--collect",
        "--collect -v", "--allow-empty", "--lf", "--snapshot -v",
    ),
    "jacobian": (
        "--mode reverse", "--mode forward", "--layout flat", "--layout block", "--force",
        "--of NAME --mode forward",
    ),
    "hessian": (
        "--eig", "--diag", "--hvp ones", "--hvp NAME", "--layout flat", "--hvp [1,2]",
        "--mode forward", "--eig --diag",
    ),
    "why": ("NAME", "NAME --no-fix", "NAME --fixed", "nothing", "NAME --format json", "loss"),
    "report": ("-o it.html", "-o it.html --all", "-o no/it.html", "--title words -o it.html"),
    "diff": ("demo.expr", "demo.expr --atol 1", "-D NAME=3", "--with NAME=3 --rtol 0.5", "p.expr"),
}  # fmt: skip
TYPED = """
:help|:help NAME|:help matmul|:help E301|:help :set|:help why|NAME?|:list|:list leaves|:list values
:list defs|:list other|:info NAME|:info loss|:info nothing|:info|:info x + 1|:grad|:grad NAME
:grad loss NAME|:grad NAME x|:explain|:explain NAME|:explain loss x|:why NAME|:why x|:why|:graph
:graph it.svg|:graph it.dot|:graph it.nothing|:derive|:derive NAME|:derive loss x|:check|:jac
:jac NAME x|:hess|:hess loss x|:undo|:undo 2|:undo 99|:undo x|:redo|:redo 3|:reset|:load demo.expr
:load nothing.expr|:load|:save it.expr|:save it.expr --asserts|:save|:set|:set precision 3
:set precision many|:set echo off|:set hint on|:set nan error|:set nan|:set nothing 1
:set max_elements 2|:set sci on|:set color always|:history|:history 2|:history x|:grahp|:NAME|:quit
:time|x = [1, 2]|x|y = x * 2|loss = sum(x * x)|loss|loss.backward()|x.grad|x[0] = 5|x[0]
z = x @ [1, 2, 3]|print(x, 1 / 3)|def f(a):\\n    return a * 2\\n|f(x)
for i in range(2):\\n    x = x * 2\\n|x = [[1, 2], [3, 4]]|n = 3|s = "word"|s|t = (1, x)|t|{}|None
del x|q = undefined|loss = sum(log(x - 1))|x.retain_grad()|y = x.detach(); y|assert sum(x) == 3
assert x[0] == 9|if n:\\n    x = x + 1\\n|_|_ * 2|x = (1,|1 +|"open
"""


class Drawn(NamedTuple):
    """A command line for a file with a program, or for what is typed."""

    words: list[str]
    text: str
    file: str
    width: int
    typed: str = ""


def pools() -> list[list[str]]:
    """Programs, by kind."""
    from tests.cli.test_shown import PROGRAMS
    from tests.explain.test_textbook import CASES, DATA
    from tests.oracles.refusals import lines, program
    from tests.why.questions import questions

    shown = list(PROGRAMS.values())
    losses = [f"{DATA}loss = {loss}\n" for order, _, loss, _ in CASES if order == "1"]
    return [
        shown,
        shown,
        losses,
        [q.text for q in questions()],
        COMMENTED,
        [*map(program, lines())],
    ]


def command_line(seed: int, programs: list[list[str]]) -> Drawn:
    """That of a seed."""
    r = random.Random(seed)
    width = r.randrange(20, 130)
    if r.random() < 0.25:
        lines = [line for row in TYPED.strip().split("\n") for line in row.split("|")]
        typed = "\n".join(r.choice(lines).replace("\\n", "\n") for _ in range(r.randint(3, 14)))
        head = r.choice(["x = [1, 2]\nloss = sum(x * x)\n", "", r.choice(programs[2])])
        name = r.choice(["x", "loss", "y", "z"])
        return Drawn(["repl"], "", "", width, head + typed.replace("NAME", name) + "\n")
    text = r.choice(r.choice(programs))
    command = r.choice([*OPTIONS])
    options = [r.choice(OPTIONS[command]) for _ in range(r.randint(command in ("why", "diff"), 2))]
    options += [r.choice(EVERY) for _ in range(r.randint(0, 2))]
    names = re.findall(r"^ *(\w+) *= ", text, re.M) or ["x"]
    words = [word.strip("'") for option in options for word in option.split(" ")]
    words = [command, *(word.replace("NAME", r.choice(names)) for word in words)]
    return Drawn(words, text, f"p.{'py' if 'import torch' in text else 'expr'}", width)


def fuzzed(seed: int) -> Iterator[tuple[str, str]]:
    """The random programs of a seed, by kind."""
    from tests.oracles import classes_fuzz, loops_fuzz, modules_fuzz, tensor_fuzz

    yield "loops", loops_fuzz.program(seed)
    yield "modules", modules_fuzz.text(modules_fuzz.statements(seed))
    yield "tensors", tensor_fuzz.Program(seed).grow(14)
    yield "classes", classes_fuzz.Program(seed).text


def run_line(line: Drawn) -> None:
    """Carry out a command line, in an empty folder."""
    from autodiff_cli.cli.main import main
    from autodiff_cli.cli.streams import Environment
    from tests.cli.conftest import DEMO, Stream

    around = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            Path("demo.expr").write_text(DEMO)
            if line.file:
                Path(line.file).write_text(line.text)
            files = [line.file] if line.file else []
            streams = Stream(line.typed), Stream(tty=True), Stream(tty=True)
            variables = {"COLUMNS": str(line.width), "NO_COLOR": "1"}
            main([*line.words, *files], Environment(*streams, variables))
        finally:
            os.chdir(around)


def run_program(text: str) -> None:
    from autodiff_cli.session import Options, run
    from autodiff_cli.source import Source

    run(Source(text, "program.py"), Options(backward=False))


class Marked:
    """What came by which blocks, and how long it took."""

    def __init__(self, folder: Path):
        built = mutate.Built(folder, [], marks=True)
        hits = folder / "hits"
        hits.write_bytes(bytes(built.blocks + 8))
        self.marks = np.frombuffer(
            imported(install(built.configuration(0, str(hits)))).hits, np.uint8
        )[: built.blocks]
        self.drawn: list[Any] = []
        self.rows: list[np.ndarray] = []
        self.seconds: list[float] = []

    def run(self, what: Any, function: Any, given: Any) -> None:
        self.marks[:] = 0
        began = time.process_time()
        with contextlib.redirect_stdout(io.StringIO()):
            function(given)
        self.seconds.append(time.process_time() - began)
        self.rows.append(np.packbits(self.marks))
        self.drawn.append(what)

    def chosen(self, tests: np.ndarray, seldom: int, more: int) -> list[Any]:
        """Those that come by blocks that few of the `tests` come by, until each has so many more
        or there are none: what gains most in a second first."""
        hit = np.unpackbits(np.stack(self.rows), axis=1)[:, : len(self.marks)].astype(bool)
        hit &= tests <= seldom
        got = np.zeros(len(self.marks))
        found: list[int] = []
        while True:
            gain = hit @ ((got < more) / (1 + tests) / (1 + got))
            gain[found] = 0
            best = int((gain / (np.array(self.seconds) + 0.03)).argmax())
            if gain[best] < LEAST:
                return [self.drawn[i] for i in found]
            found.append(best)
            got += hit[best]


def printed(kind: str, text: str) -> str | None:
    """What a program prints in Python; None where it differs here, or is no program there."""
    from tests.oracles import classes_fuzz
    from tests.oracles.shared_memory import ours, torchs
    from tests.recorded import same_but_words

    if kind == "classes":
        stdout, failed = "".join(f"{line}\n" for line in classes_fuzz.there(text)), False
    else:
        stdout, failed = torchs(text)
    return None if failed or not same_but_words(ours(text)[0], stdout) else stdout


LEAST = 0.3  # of the gain of one that is kept


def asked(doc: str, n: int) -> argparse.Namespace:
    """How many are drawn, by which seed."""
    parser = argparse.ArgumentParser(description=doc.split("\n")[0])
    parser.add_argument("--n", type=int, default=n)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reach", type=Path, help="a recording of another state of the tests")
    return parser.parse_args()


def main() -> None:
    given = asked(__doc__, 6000)
    warnings.simplefilter("ignore")
    tests = mutate.reach([], given.reach).tests_by_block()
    with tempfile.TemporaryDirectory() as folder:
        marked = Marked(Path(folder))
        programs = pools()
        for seed in range(given.seed, given.seed + given.n):
            line = command_line(seed, programs)
            marked.run(("line", line), run_line, line)
        for seed in range(given.seed, given.seed + given.n // 8):
            for kind, text in fuzzed(seed):
                marked.run((kind, text), run_program, text)
        found = marked.chosen(tests[: len(marked.marks)], seldom=30, more=6)
    lines = [what for kind, what in found if kind == "line"]
    texts = [(kind, text) for kind, text in found if kind != "line"]
    cases = [(text, out) for kind, text in texts if (out := printed(kind, text)) is not None]
    data = json.dumps({"lines": lines, "programs": cases}, indent=0).encode()
    FIXTURE.write_bytes(gzip.compress(data, mtime=0))
    print(f"{len(lines)} command lines, {len(cases)} programs of {len(texts)}")


if __name__ == "__main__":
    main()
