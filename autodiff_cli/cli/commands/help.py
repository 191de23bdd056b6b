"""`autodiff help [TOPIC|CODE|OP]`: one door for commands, topics, error codes and operations."""

from __future__ import annotations

import re
from typing import Any

from ...catalogue import TOPICS, explain_code
from ...errors import Exit, kinds
from ...render.text import printable
from ...suggest import did_you_mean, suggest_op
from ..dispatch import COMMANDS
from ..options import Command
from ..streams import Environment

EXAMPLES = """\
  autodiff help E302
  autodiff help softmax
  autodiff help exit-codes
"""


def show(values: dict[str, Any], words: list[str], env: Environment) -> int:
    """Print the page of every word; without words the overview."""
    if not words:
        env.page(overview())
        return Exit.OK
    for at, word in enumerate(words):
        if at:
            env.write("\n")
        if not _page(word, env):
            return _unknown(word, env)
    return Exit.OK


COMMAND = Command("help", (), ("topics", "[TOPIC|CODE|OP]"), show, COMMANDS["help"][1], EXAMPLES)


def overview() -> str:
    """What there is help about."""
    lines = ["Commands"]
    width = max(map(len, COMMANDS))
    lines += [f"  {name:<{width}}  {text}" for name, (_, text) in COMMANDS.items()]
    lines += ["", "Topics", "  " + "  ".join(TOPICS), ""]
    lines += [
        "Also: autodiff help CODE (an error, such as E302), autodiff help NAME (an",
        "operation, such as softmax), autodiff COMMAND --help (options of a command).",
    ]
    return "\n".join(lines) + "\n"


def _page(word: str, env: Environment) -> bool:
    name = word.strip().lower()
    if re.fullmatch(r"[ew][0-9]{3}", name) and f"E{name[1:]}" in kinds():
        env.page(explain_code(word))
        return True
    if name in COMMANDS:
        from ..group import run_group

        run_group([name, "--help"], env)
        if name in TOPICS:
            env.page("\n" + TOPICS[name])
        return True
    if name == "commands":
        env.page(overview())
        return True
    if name in TOPICS:
        env.page(TOPICS[name])
        return True
    from .ops import describe, public_ops

    found = public_ops().get(word.strip()) or public_ops().get(name)
    if found:
        env.page("\n".join(describe(op) for op in found))
        return True
    return False


def _unknown(word: str, env: Environment) -> int:
    from .ops import public_ops

    close = suggest_op(word, [*COMMANDS, *TOPICS, *kinds(), *public_ops()])
    env.complain(
        f"there is no help about `{printable(word, 200)}`",
        *did_you_mean(close),
        "`autodiff help` lists commands and topics, `autodiff ops` the operations",
    )
    return Exit.USAGE
