"""`autodiff help [TOPIC|CODE|OP]`: one door for commands, topics, error codes and operations."""

from __future__ import annotations

import re
from typing import Any

from ...catalogue import MANUAL, TOPICS, explain_code, pages_with
from ...errors import Exit, kinds
from ...render.text import WORD, printable, prose
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
    lines += ["", *prose("Topics  ", ", ".join(TOPICS), 80)]
    lines += ["", *prose("Manual  ", ", ".join(MANUAL), 80)]
    lines += [
        "",
        "Also: autodiff help CODE (an error, such as E302), autodiff help NAME (an",
        "operation, such as softmax), autodiff COMMAND --help (options of a command).",
    ]
    return "\n".join(lines) + "\n"


def _page(word: str, env: Environment) -> bool:
    name = word.strip().lower()
    if re.fullmatch(r"[ew][0-9]{3}", name) and f"E{name[1:]}" in kinds():
        env.page(explain_code(word))
        return True
    if name == "commands":
        env.page(overview())
        return True
    if name in COMMANDS:
        from ..group import run_group

        run_group([name, "--help"], env)
    if name in TOPICS:
        env.page("\n" * (name in COMMANDS) + TOPICS[name])
    if name in MANUAL:
        env.write("\n" * (name in COMMANDS))
        env.markdown(MANUAL[name].read_text("utf-8"))
    if name in COMMANDS or name in TOPICS or name in MANUAL:
        return True
    describe, ops = _operations()
    if found := ops.get(word.strip()) or ops.get(name):
        env.page("\n".join(describe(op) for op in found))
        return True
    about = pages_with(name, 1) if name else []
    if len(about) == 1:
        env.markdown(MANUAL[about[0]].read_text("utf-8"))
    return len(about) == 1


def _operations() -> Any:
    from .ops import describe, public_ops

    return describe, public_ops()


def _unknown(word: str, env: Environment) -> int:
    known = [*COMMANDS, *TOPICS, *MANUAL, *kinds(), *_operations()[1]]
    pages = [f"`autodiff help {name}`" for name in pages_with(word.strip() or " ")]
    env.complain(
        f"there is no help about `{printable(word, WORD)}`",
        *did_you_mean(suggest_op(word, known)),
        *([f"it is in {' and '.join(pages)}"] if 0 < len(pages) < 4 else []),
        "`autodiff help` lists commands, topics and pages, `autodiff ops` the operations",
    )
    return Exit.USAGE
