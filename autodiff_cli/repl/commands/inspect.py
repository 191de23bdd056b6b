"""Commands that look at the session: names, gradients, times, history, help.

Invariant: none of them changes the session; what a derivative or a value leaves behind in the
graph (freed buffers, hooks that ran) is put back.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from ...autograd.reverse import gradients as cotangents
from ...autograd.rules import history as history_of
from ...autograd.rules import ones_like
from ...autograd.tensor import Tensor
from ...engine.evaluate import evaluate
from ...errors import AutodiffError, Exit, fault
from ...explain.record import untouched
from ...graph.op import LEAF, value_of
from ...graph.sizes import not_single
from ...language.program.variables import Objective, forget_passes, named_tensors, variables_of
from ...language.runtime.names import builtin
from ...language.syntax import tree as syntax
from ...language.syntax.scoping import assigned_names
from ...language.values.dialect import kind_of
from ...language.values.values import OpFunction
from ...render.profile import seconds_text
from ...render.text import WORD, clip, format_count, format_shape, printable
from ...render.values import statistics
from ...source import Source
from ...suggest import did_you_mean, meant, named, suggest
from ..entries import Problem
from ..program_text import statement_text
from ..show import describe, gradient_block, indented, side_by_side, summary, table, value_lines
from .settings import whole_number

if TYPE_CHECKING:
    from ..interactive import Interactive
    from ..loop import Loop
    from .table import Command


def columns(rows: Sequence[tuple[str, ...]], loop: Loop) -> list[str]:
    """Rows as columns of the loop's width."""
    return table(rows, loop.look.width)


def clipped(text: str, loop: Loop, less: int = 0) -> str:
    look = loop.look
    return clip(printable(text), look.width - less, "…" if look.unicode else "...")


# -- names ----------------------------------------------------------------------------------------


def list_names(loop: Loop, words: str) -> None:
    """`:list`, `:list leaves`, `:list values`, `:list defs`."""
    session = loop.session
    names = {n: v for n, v in session.scope.names.items() if n != "_"}
    if words == "defs":
        for entry in session.entries:
            for line in entry.text.split("\n"):
                loop.say(printable(line))
    elif words == "leaves":
        tensors = {n: v for n, v in names.items() if isinstance(v, Tensor)}
        leaves = {n: v for n, v in tensors.items() if v.requires_grad and v.is_leaf}
        _rows(loop, leaves, "there are no tensors that require grad")
    elif words == "values":
        with session.aside():
            for name, value in names.items():
                lines = value_lines(value, loop.look, session.python)
                if len(lines) == 1:
                    loop.say(clipped(f"{name} = {lines[0]}", loop))
                else:
                    block = indented(value, loop.look, session.python)
                    loop.say("\n".join([f"{name} =", *block]))
    elif words:
        raise Problem(
            f"`:list` takes leaves, values or defs, not `{words[:60]}`", "`:list` lists the names"
        )
    else:
        _rows(loop, names, "there are no names yet")


def _rows(loop: Loop, names: dict[str, Any], empty: str) -> None:
    rows: list[tuple[str, ...]] = []
    with loop.session.aside():
        for name, value in names.items():
            if isinstance(value, Tensor):
                shape = format_shape(tuple(value.shape))
                shown = summary(value, loop.look) if not value.shape else ""
                rows.append((name, shape, describe(value), shown))
            else:
                rows.append((name, "", "", summary(value, loop.look)))
    for line in columns(rows, loop) or [empty]:
        loop.say(line)


def info(loop: Loop, name: str) -> None:
    """Everything about one name."""
    session = loop.session
    value = _named(loop, name)
    with session.aside():
        if not isinstance(value, Tensor):
            loop.say(f"{name}: {kind_of(value)}")
            loop.say("\n".join(value_lines(value, loop.look, session.python)))
        else:
            array = value_of(value.looked_at)
            loop.say(f"{name}  {format_shape(array.shape)} {describe(value)}")
            loop.say("\n".join(indented(value, loop.look, False)))
            if array.size > 1 and array.dtype.kind == "f":
                for line in wrap(statistics(array), loop.look.width - 2, tabsize=1):
                    loop.say(f"  {line}")
            if value.grad is not None:
                block = gradient_block(name, value_of(value.grad.node), loop.look)
                loop.say("\n".join(f"  {line}" for line in block))
    made, users = _made_and_used(loop, name.partition("[")[0].partition(".")[0])
    if made:
        loop.say(clipped(f"  made by   {made}", loop))
    if users:
        loop.say(clipped(f"  used by   {', '.join(users)}", loop))


def _named(loop: Loop, name: str) -> Any:
    if not name:
        raise Problem("`:info` takes a name", "`:list` shows the names")
    names = loop.session.scope.names
    if name in names:
        return names[name]
    tensors = named_tensors(loop.session)
    found = tensors.get(next(iter(named(name, tensors)), ""))
    if found is None:
        raise Problem(
            f"there is no name `{printable(name, WORD)}`",
            meant(name, {**names, **tensors}, "`:list` shows the names"),
            code=Exit.PROGRAM,
        )
    return found


def _made_and_used(loop: Loop, name: str) -> tuple[str, list[str]]:
    made = ""
    users: list[str] = []
    for entry in loop.session.entries:
        for tree in entry.trees:
            bound = assigned_names([tree])[0]
            if name in bound:
                made = statement_text(tree).partition("\n")[0]
                users = []
            elif any(isinstance(n, syntax.Name) and n.id == name for n in syntax.walk(tree)):
                users += [n for n in sorted(bound) if n not in users]
    return made, users


# -- gradients ------------------------------------------------------------------------------------


def sides(loop: Loop, words: list[str]) -> tuple[str | None, tuple[str, ...]]:
    """What is differentiated, and with respect to what: a result may stand before the leaves."""
    found = named_tensors(loop.session).get(words[0]) if words else None
    of = found is not None and not found.is_leaf
    return words[0] if of else None, tuple(words[of:])


def gradients(loop: Loop, words: str) -> None:
    """`:grad`, `:grad OF`, `:grad WRT...`, `:grad OF WRT...`."""
    found = gradients_of(loop, *sides(loop, words.replace(",", " ").split()))
    blocks = [gradient_block(name, array, loop.look) for name, array in found]
    for line in side_by_side(blocks, loop.look.width):
        loop.say(line)


def gradients_of(
    loop: Loop, of: str | None, wrt: tuple[str, ...], quiet: bool = False
) -> list[tuple[str, np.ndarray | None]]:
    """Names and their gradients. A session that called backward() has them; in others the loss is
    differentiated here. `quiet`: no gradients is no error."""
    session = loop.session
    if session.explicit and of is None:
        asked = [_named(loop, name) for name in wrt]
        with session.aside():
            return [
                (name, None if value.grad is None else value_of(value.grad.node))
                for name, value in named_tensors(session).items()
                if value.accumulator is not None and (value.is_leaf or value.grad is not None)
                if value in asked or not asked
            ]
    with session.aside():
        try:
            objective = _objective(session, of)
            with untouched([objective.node]):
                forget_passes(objective.node)
                chosen = variables_of(session, objective, wrt, [])
                found = cotangents(
                    [(objective.node, ones_like(objective.node))],
                    [variable.node for variable in chosen],
                    create_graph=False,
                    retain_graph=True,
                )
                evaluate([g for g in found if g is not None])
                return [
                    (v.name, np.zeros(v.node.shape) if g is None else value_of(g))
                    for v, g in zip(chosen, found, strict=True)
                ]
        except AutodiffError:
            if quiet:
                return []
            raise


def _objective(session: Interactive, of: str | None) -> Objective:
    """The number that is differentiated: OF, else `loss`, else what was computed last."""
    tensor = session.default_objective() if of is None else named_tensors(session)[of]
    name = of or session.name_of(tensor)
    if tensor is None:
        raise fault("E402 nothing-was-computed-yet")
    node = tensor.looked_at
    text = name or "the last expression"
    if not node.requires_grad:
        raise fault("E402 does-not-depend-on", text, span=node.span)
    if node.numel != 1:
        raise not_single(
            node,
            f"a gradient is of a single number, but `{text}`",
            help=(f"reduce it: `loss = sum({text})`", f"all its derivatives: `:jac {text}`"),
        )
    return Objective(name, text, node)


# -- times ----------------------------------------------------------------------------------------

ENOUGH, MOST_RUNS = 0.2, 10_000  # seconds of measuring


def timing(loop: Loop, words: str) -> None:
    """`:time EXPR`: the best of several runs, and of those with the gradient."""
    if not words:
        raise Problem("`:time` takes an expression", "write `:time A @ B`")
    session = loop.session
    tree = session.parse_value(words)
    if not session.is_harmless(tree):
        _timed_once(loop, words)
        return

    def forward(value: Any) -> None:
        if isinstance(value, Tensor):
            evaluate([value.looked_at])

    def both(value: Any) -> None:
        node = value.node
        leaves = [n for n in history_of(node) if n.op is LEAF]
        seeds = [(node, ones_like(node))]
        with untouched([node]):
            forget_passes(node)
            found = cotangents(seeds, leaves, create_graph=False, retain_graph=False)
            evaluate([node, *(g for g in found if g is not None)])

    seconds, runs = _best(lambda: session.look(tree, forward))
    line = f"{seconds_text(seconds)}   best of {format_count(runs, 'run')}"
    value = session.look(tree, lambda found: found)
    if isinstance(value, Tensor) and value.requires_grad and not value.is_leaf:
        seconds, _ = _best(lambda: session.look(tree, both))
        line += f"; with gradient {seconds_text(seconds)}"
    loop.say(line)


def _best(work: Any) -> tuple[float, int]:
    best, runs = float("inf"), 0
    until = time.perf_counter() + ENOUGH
    for runs in range(1, MOST_RUNS + 1):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
        if time.perf_counter() > until and runs > 1:  # the first may have loaded much
            break
    return best, runs


def _timed_once(loop: Loop, words: str) -> None:
    """An expression that changes something runs once, and is undone."""
    session = loop.session
    undone = list(session.undone)
    session.run_text(Source(words, "<repl>"))
    seconds = session.entries[-1].seconds
    loop.careful(session.drop_last)
    session.undone = undone
    loop.say(f"{seconds_text(seconds)}   one run; what it changed is undone")


# -- history and help -----------------------------------------------------------------------------


def history(loop: Loop, words: str) -> None:
    """The last inputs, oldest first."""
    count = whole_number(words, "history", 20)
    kept = loop.around.history
    inputs = kept() if kept is not None else loop.inputs
    for line in inputs[-count:]:
        loop.say("\n".join(map(printable, line.split("\n"))))


def help_about(loop: Loop, words: str, commands: dict[str, Command]) -> None:
    """A command, a name of the session, or whatever `autodiff help` knows."""
    word = words.split()[0]
    command = commands.get(word.lstrip(":"))
    if command is not None and (word.startswith(":") or builtin(word) is None):
        loop.say(f":{command.name} {command.argument}".rstrip())
        loop.say(f"  {command.help}")
        return
    names = loop.session.scope.names
    if word in names and not isinstance(names[word], OpFunction):
        info(loop, word)
        return
    with loop.session.aside():
        code, output = loop.around.tool(["help", word], "")
    if code != Exit.OK:
        close = did_you_mean(suggest(word, [*names, *commands], 1))
        if close:
            raise Problem(f"there is nothing about `{printable(word, WORD)}`", *close)
    loop.show(output)
    loop.code = code
