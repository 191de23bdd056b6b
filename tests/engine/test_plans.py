"""What is planned for big arrays: which nodes are fused, into what text, in tiles of which size and
shared by threads or not, as it was recorded (`RECORD_PLANS=1` writes it). A plan decides about time
and memory, not about numbers: other tests hold these. What changes here is to be measured."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from autodiff_cli.autograd import reverse, rules
from autodiff_cli.autograd.tensor import AccumulateGrad
from autodiff_cli.engine import evaluate as engine
from autodiff_cli.engine.fused.tiles import SHARE_FROM, Tiled
from autodiff_cli.engine.plan.schedule import Plan, planned
from autodiff_cli.graph.node import Node
from autodiff_cli.graph.op import constant, leaf
from autodiff_cli.graph.registry import F
from autodiff_cli.ops import load_all

from ..together import together

load_all()
FIXTURE = Path(__file__).parents[1] / "fixtures" / "plans.json"
RECORDED: dict[str, list[str]] = json.loads(FIXTURE.read_text("utf-8")) if FIXTURE.exists() else {}


def big(*shape: int, dtype: str = "float64", grad: bool = True) -> Node:
    """An array of ones that takes no memory."""
    node = constant(np.broadcast_to(np.ones((), dtype), shape))
    return leaf(node, AccumulateGrad()) if grad else node


def forward(*targets: Node) -> list[Node]:
    return list(targets)


def with_gradients(loss: Node, *leaves: Node) -> list[Node]:
    found = reverse.gradients(
        [(loss, rules.ones_like(loss))], list(leaves), create_graph=False, retain_graph=True
    )
    return [loss, *(g for g in found if g is not None)]


def chain(x: Node, n: int) -> Node:
    for i in range(n):
        x = F.add(F.mul(x, 1.5 + i), 0.5)
    return x


def softmax(x: Node) -> Node:
    e = F.exp(F.sub(x, F.amax(x, (1,), True)))
    return F.div(e, F.sum(e, (1,), True))


def layer_norm(x: Node, w: Node, b: Node) -> Node:
    centred = F.sub(x, F.mean(x, (1,), True))
    spread = F.rsqrt(F.add(F.mean(F.square(centred), (1,), True), 1e-5))
    return F.add(F.mul(F.mul(centred, spread), w), b)


def sum_of_square(x: Node) -> list[Node]:
    return with_gradients(F.sum(F.square(F.sub(1.0, F.sigmoid(x)))), x)


def bias(n: int, m: int) -> list[Node]:
    x, b = big(n, m), big(m)
    return with_gradients(F.sum(F.square(F.tanh(F.add(x, b)))), x, b)


def normalized(n: int, m: int) -> list[Node]:
    x, w, b = big(n, m), big(m), big(m)
    return with_gradients(F.sum(F.square(layer_norm(x, w, b))), x, w, b)


def attention(n: int, m: int) -> list[Node]:
    x, y = big(n, m), big(n, m)
    return with_gradients(F.sum(F.mul(softmax(x), y)), x, y)


def choices(dtype: str) -> list[Node]:
    x, y = big(300, 200, dtype=dtype), big(300, 200, dtype=dtype)
    mask = F.gt(x, y)
    return forward(
        F.where(mask, x, y), F.where(mask, x, 0.0), F.where(mask, 0.0, F.exp(y)),
        F.where(F.lt(x, 0.5), F.mul(x, 2.0), 1.0), F.relu(F.sub(x, y)),
    )  # fmt: skip


def read_again(n: int) -> list[Node]:
    """Cheap values that a product reads, and one that costs more."""
    x, w = big(n, 64), big(64, 64)
    cheap, dear = F.mul(F.add(x, 1.0), 2.0), F.exp(x)
    product = F.matmul(F.add(cheap, dear), w)
    return forward(F.sum(F.mul(product, cheap)), F.mul(product, dear), F.add(product, F.neg(cheap)))


def moved(n: int) -> list[Node]:
    x = big(n, 8, 8)
    flat = F.reshape(F.mul(x, 2.0), (n, 64))
    wide = F.expand(F.sum(flat, (1,), True), (n, 64))
    return forward(
        F.add(F.reshape(F.sub(flat, wide), (n, 8, 8)), x), F.flip(F.square(x), (2,)),
        F.cumsum(F.add(x, 1.0), 1), F.softmax(F.neg(x), 2), F.transpose(F.neg(x), 1, 2),
    )  # fmt: skip


def reduced(n: int, m: int) -> list[Node]:
    x = big(n, m)
    a = F.sin(x)
    return forward(
        F.sum(a), F.sum(a, (0,)), F.sum(a, (1,)), F.amax(a, (0,)), F.amin(a, (1,), True),
        F.prod(a), F.mean(a, (0,), True), F.argmax(a, 1), F.logsumexp(x, (1,)),
    )  # fmt: skip


CASES: dict[str, Callable[[], list[Node]]] = {
    "small": lambda: sum_of_square(big(127, 128)),
    "as many as pay": lambda: sum_of_square(big(128, 128)),
    "one row": lambda: sum_of_square(big(16_384)),
    "a tile": lambda: sum_of_square(big(32_768)),
    "more than a tile": lambda: sum_of_square(big(32_769)),
    "many": lambda: sum_of_square(big(1000, 1000)),
    "few wide rows": lambda: sum_of_square(big(3, 65_536)),
    "rows too wide": lambda: sum_of_square(big(3, 65_537)),
    "single precision": lambda: sum_of_square(big(1000, 1000, dtype="float32")),
    "a chain": lambda: forward(chain(big(400, 400), 12)),
    "a long chain": lambda: forward(chain(big(2000, 500), 40)),
    "a bias": lambda: bias(2000, 64),
    "a wide bias": lambda: bias(20, 4096),
    "a bias as wide as rows may be": lambda: bias(20, 4097),
    "a bias of few rows": lambda: bias(2, 20_000),
    "normalized": lambda: normalized(512, 256),
    "normalized in wide rows": lambda: normalized(16, 8192),
    "attention": lambda: attention(512, 512),
    "choices": lambda: choices("float64"),
    "choices in single precision": lambda: choices("float32"),
    "choices in half precision": lambda: choices("float16"),
    "read again": lambda: read_again(1000),
    "read again, more": lambda: read_again(20_000),
    "moved": lambda: moved(500),
    "reduced": lambda: reduced(400, 300),
    "two sums of wide rows": lambda: forward(F.sum(F.sin(big(16, 2, 5000)), (0, 2))),
    "reduced to wide rows": lambda: reduced(30, 5000),
    "reduced, few rows": lambda: reduced(2, 30_000),
}


def named(value: Any) -> str:
    """A constant of a tile's text."""
    if isinstance(value, np.ndarray):
        return repr(value.item())
    return getattr(value, "__name__", None) or re.sub(r"<[\w.]*?(\w+) object.*", r"\1", repr(value))


def text_of(plan: Plan) -> list[str]:
    found = []
    for step in plan.steps:
        if isinstance(step, Tiled):
            names = {k: named(v) for k, v in step.program.__globals__.items() if k[0] != "_"}
            names.pop("tile")
            found.append(
                f"{step.rows} rows in {step.tiles} tiles of {step.tile}, {step.cost:.6g} ns, "
                f"shared {step.cost > SHARE_FROM and step.tiles > 1}: "
                f"{step.inputs} -> {step.results}, done {step.done}, "
                f"buffers {[(rest, rows, str(dtype)) for rest, rows, dtype in step.buffers]}, "
                f"outputs {[(shape, rows) for _, shape, rows, _ in step.outputs]}, "
                f"finals {[final.shape for final in step.finals]}, {names}\n{step.source}"
            )
        else:
            done = f", done {step.done}" if step.done else ""
            found.append(f"{step.name} {step.reads()} -> {step.result}{done}")
    return found


@together(CASES)
def test_as_recorded(name: str) -> None:
    targets = CASES[name]()
    order, outside = engine.plan(targets)
    found = text_of(planned(order, outside, targets))
    if os.environ.get("RECORD_PLANS"):
        RECORDED[name] = found
        rows = (f"{json.dumps(key)}: {json.dumps(RECORDED[key])}" for key in sorted(RECORDED))
        FIXTURE.write_text("{\n" + ",\n".join(rows) + "\n}\n", "utf-8")
    assert found == RECORDED.get(name)
