"""Programs of `snippets/` with one thing changed, and what PyTorch does with them.

    python -m tests.oracles.changed --n 4000 [--seed S] [--reach FOLDER]

A number, flag, operator, name, function or argument is another one or missing, or a statement is
gone, there twice or moved. Each program runs in a process of its own in PyTorch and here; those
that do otherwise here are printed, to be mended or left. Of the others those are kept that come by
blocks of the code by which few tests come (`drawn.py`): `fixtures/changed.json.gz` has them, with
what they print and where and how they fail.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import gzip
import json
import os
import random
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.oracles import mutate
from tests.oracles.drawn import Marked, asked
from tests.oracles.programs import outcome, snippets

FIXTURE = Path(__file__).parents[1] / "fixtures" / "changed.json.gz"
ALIKE = [
    line.split()
    for line in """
sum mean prod amax amin std var norm logsumexp nansum median max min any all argmax cumsum
relu tanh sigmoid exp log sqrt abs sin cos gelu softplus square neg sign reciprocal rsqrt floor erf
zeros ones empty_like zeros_like ones_like rand_like full_like
add mul sub div pow maximum minimum fmod remainder atan2
view reshape flatten squeeze unsqueeze expand repeat t transpose permute contiguous clone detach
add_ mul_ sub_ div_ copy_ zero_ fill_ exp_ relu_ clamp_ requires_grad_ detach_
cat stack hstack vstack
mm matmul bmm dot mv outer
gather index_select take scatter scatter_add index_add
softmax log_softmax
mse_loss l1_loss smooth_l1_loss huber_loss
Linear Conv1d Conv2d LSTM GRU RNN
float double half long int bool
float32 float64 float16 int64 int32 bool uint8
SGD Adam AdamW RMSprop Adagrad NAdam Adadelta
triu tril diag diagonal trace
sort argsort topk unique
split chunk unbind tensor_split
append extend insert remove pop index count
keys values items get pop
upper lower title strip split join replace startswith endswith
""".strip().split("\n")
]
OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.FloorDiv, ast.Mod, ast.MatMult)
COMPARISONS = (
    ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq, ast.Is, ast.IsNot, ast.In, ast.NotIn,
)  # fmt: skip
SIGNS: dict[type, type] = {ast.USub: ast.Not, ast.Not: ast.USub, ast.Invert: ast.USub}
# What depends on the process, or on what nobody seeded.
LEFT_OUT = ("system", "memory_kept")
SECONDS = 10

Change = Callable[[], None]


def others(value: Any) -> list[Any]:
    """Constants that may stand for one."""
    if isinstance(value, bool):
        return [not value, 1, None]
    if isinstance(value, int):
        return [value + 1, value - 1, 0, -value, 2 * value, -1, True, None, float(value)]
    if isinstance(value, float):
        return [-value, 0.0, value * 10, 1e-30, float("inf"), int(value)]
    if isinstance(value, str):
        return [value[:-1], value.upper(), ""] if len(value) < 12 else []
    return [0, 1, True] if value is None else []


def changes(tree: ast.Module, r: random.Random) -> dict[str, list[Change]]:
    """The changes of a program, by kind."""
    found: dict[str, list[Change]] = {}
    words = {c for n in ast.walk(tree) if isinstance(n, ast.JoinedStr) for c in ast.walk(n)}
    stored = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    names = sorted({node.id for node in stored})

    def change(kind: str, function: Callable[..., None], *given: Any) -> None:
        found.setdefault(kind, []).append(lambda: function(*given))

    def replaced(node: Any, field: str, values: list[Any]) -> None:
        if values:
            change(field, lambda: setattr(node, field, r.choice(values)))

    def moved(items: list[Any], at: int) -> None:
        items[at - 1], items[at] = items[at], items[at - 1]

    for node in ast.walk(tree):
        match node:
            case ast.Constant() if node not in words:
                replaced(node, "value", others(node.value))
            case ast.BinOp():
                replaced(node, "op", [op() for op in OPERATORS if not isinstance(node.op, op)])
            case ast.Compare(ops=[_]):
                replaced(node, "ops", [[op()] for op in COMPARISONS])
            case ast.Call():
                for at in range(len(node.keywords)):
                    change("keyword", node.keywords.__delitem__, at)
                for at in range(len(node.args)):
                    change("argument", node.args.__delitem__, at)
                    if at:
                        change("order", moved, node.args, at)
                more = [ast.Constant(value) for value in (0, 1, None, -1, True)]
                change("more", lambda node=node, more=more: node.args.append(r.choice(more)))
            case ast.Attribute():
                alike = [name for row in ALIKE if node.attr in row for name in row]
                replaced(node, "attr", [name for name in alike if name != node.attr])
            case ast.Name(ctx=ast.Load()) if node.id in names:
                replaced(node, "id", [name for name in names if name != node.id])
            case ast.UnaryOp() if type(node.op) in SIGNS:
                replaced(node, "op", [SIGNS[type(node.op)]()])
            case ast.List(ctx=ast.Load()) | ast.Tuple(ctx=ast.Load()):
                for at in range(len(node.elts)):
                    change("element", node.elts.__delitem__, at)
        body = getattr(node, "body", None)
        for at, item in enumerate(body if isinstance(body, list) else []):
            if isinstance(item, ast.Import | ast.ImportFrom) or "seed" in ast.unparse(item):
                continue
            if len(body) > 1:
                change("gone", body.__delitem__, at)
            change("twice", lambda body=body, at=at: body.insert(at, copy.deepcopy(body[at])))
            if at and not isinstance(body[at - 1], ast.Import | ast.ImportFrom):
                change("moved", moved, body, at)
    return found


def changed(text: str, r: random.Random) -> str | None:
    """A program with one change; None where that gives none."""
    tree = ast.parse(text)
    before = ast.unparse(tree)
    found = changes(tree, r)
    kinds = sorted(found)
    if not kinds:
        return None
    every = [one for kind in kinds for one in found[kind]]
    r.choice(found[r.choice(kinds)] if r.random() < 0.5 else every)()
    try:
        made = ast.unparse(ast.fix_missing_locations(tree))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(made, "program.py", "exec")
    except (SyntaxError, ValueError):
        return None
    return None if made == before else made + "\n"


def drawn(n: int, seed: int) -> Iterator[str]:
    """Changed programs; long ones are as likely as short ones."""
    r = random.Random(seed)
    texts = []
    for name, text in snippets():
        with contextlib.suppress(SyntaxError):
            ast.parse(text)
            # Generators that go on when they are closed are told of when they are collected.
            if name.partition(":")[0] not in LEFT_OUT and "GeneratorExit" not in text:
                texts.append(text)
    for _ in range(n):
        made = changed(r.choice(texts), r)
        if made is not None:
            yield made


def here(source: str) -> dict[str, Any]:
    """What a program does here."""
    from autodiff_cli.language.values.exceptions import class_of
    from autodiff_cli.session import Options, run
    from autodiff_cli.source import Source

    report = run(Source(source, "program.py"), Options(backward=False))
    error = report.error
    if error is None:
        return {"stdout": report.stdout, "error": None}
    cls = class_of(error)
    line = None if error.span is None else error.span.line
    return {"stdout": report.stdout, "error": {"type": cls and cls.name, "line": line}}


def apart(function: Callable[[str], Any], source: str) -> Any:
    """What a function gives of a program in a process of its own; None where that does not end."""
    reading, writing = os.pipe()
    process = os.fork()
    if not process:
        os.close(reading)
        signal.alarm(SECONDS)
        silent = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(silent, descriptor)
        found = None
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            with contextlib.suppress(BaseException):
                found = function(source)
            with os.fdopen(writing, "w") as file:
                json.dump(found, file)
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as file:
        text = file.read()
    os.waitpid(process, 0)
    return json.loads(text) if text else None


def same(found: Any, wanted: Any) -> bool:
    """Whether a program does here what it does in PyTorch."""
    from tests.recorded import same_but_words

    return found["error"] == wanted["error"] and same_but_words(found["stdout"], wanted["stdout"])


def main() -> None:
    given = asked(__doc__, 4000)
    tests = mutate.reach([], given.reach).tests_by_block()
    with tempfile.TemporaryDirectory() as folder:
        marked = Marked(Path(folder))
        here("import torch\nx = torch.ones(2, requires_grad=True)\nx.sum().backward()\n")
        for source in drawn(given.n, given.seed):
            wanted, found = apart(outcome, source), apart(here, source)
            if wanted is None:
                continue
            if found is None or not same(found, wanted):
                print(f"=====\n{source}\n{wanted}\n{found}", flush=True)
                continue
            case = {"source": source, "stdout": wanted["stdout"], "error": wanted["error"]}
            marked.run(case, here, source)
        kept = marked.chosen(tests[: len(marked.marks)], seldom=30, more=6)
    FIXTURE.write_bytes(gzip.compress(json.dumps(kept, indent=0).encode(), mtime=0))
    print(f"{len(kept)} of {len(marked.drawn)} programs")


if __name__ == "__main__":
    main()
