"""`autodiff completion SHELL`, and the answers to a shell that asks for completions.

Invariant: an answer imports no numpy and reads nothing but the program that the line names.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from ...catalogue import MANUAL, TOPICS
from ...errors import Exit, kinds
from ...render.text import WORD, printable
from ...suggest import did_you_mean, suggest
from ..dispatch import COMMANDS
from ..options import Command
from ..streams import Environment

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

EXAMPLES = """\
  autodiff completion bash > ~/.local/share/bash-completion/completions/autodiff
  autodiff completion zsh > ~/.zfunc/_autodiff  # fpath+=~/.zfunc
  autodiff completion fish > ~/.config/fish/completions/autodiff.fish
  autodiff completion powershell >> $PROFILE
"""
SHELLS = ("bash", "zsh", "fish", "powershell")
VARIABLE = "_AUTODIFF_COMPLETE"
LONGEST_PROGRAM = 1 << 20  # bytes that are searched for names


def show(values: dict[str, Any], words: list[str], env: Environment) -> int:
    """Print the script of a shell."""
    shell = os.path.basename(words[0]) if len(words) == 1 else ""
    maker = _maker({"pwsh": "powershell"}.get(shell, shell))
    if maker is None:
        usage = f"autodiff completion {'|'.join(SHELLS)}"
        if len(words) == 1:
            close = did_you_mean(suggest(words[0], SHELLS, 1))
            message = f"there is no completion for `{printable(words[0], WORD)}`"
            env.complain(message, *close, usage)
        else:
            env.complain("name one shell", usage)
        return Exit.USAGE
    env.write(maker.source().strip("\n") + "\n")
    return Exit.OK


COMMAND = Command(
    "completion", (), ("shells", "SHELL"), show,
    f"Print the script that makes a shell complete command lines: {', '.join(SHELLS)}.",
    EXAMPLES,
)  # fmt: skip


def answer(instruction: str, env: Environment) -> int:
    """Answer a shell: `bash_complete`, with the line in the variables that its script sets."""
    shell, _, what = instruction.partition("_")
    maker = _maker(shell)
    if maker is None or what not in ("source", "complete"):
        return Exit.NO
    maker.ctx_args["obj"] = maker.get_completion_args()[0] if what == "complete" else []
    text = maker.source() if what == "source" else maker.complete()
    env.write(text + "\n" if text else "")
    return Exit.OK


def _maker(shell: str) -> Any:
    """What click has for a shell, on our commands."""
    from click.shell_completion import BashComplete, get_completion_class

    from ..group import make_group

    found: Any = get_completion_class(shell) if shell in SHELLS else None
    if found is None:
        return None

    class Bash(BashComplete):
        @staticmethod
        def _check_version() -> None:
            """The script may be made where there is no bash."""

        def get_completion_args(self) -> tuple[list[str], str]:
            """bash makes three words of `--format=json`."""
            words, incomplete = super().get_completion_args()
            return [word for word in words if word != "="], incomplete

    return (Bash if found is BashComplete else found)(make_group(), {}, "autodiff", VARIABLE)


# -- what there is to choose from -----------------------------------------------------------------


def items(words: Iterable[str], incomplete: str) -> list[CompletionItem]:
    """The words that begin so."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(word) for word in words if word.startswith(incomplete)]


def files(incomplete: str, kind: str = "file") -> list[CompletionItem]:
    """Let the shell complete the name of a file, or of a folder (`dir`)."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(incomplete, type=kind)]


def listed(words: Iterable[str], incomplete: str) -> list[CompletionItem]:
    """The last of several words between commas."""
    before, comma, _ = incomplete.rpartition(",")
    taken = set(before.split(","))
    return items((before + comma + word for word in words if word not in taken), incomplete)


def of_argument(key: str, incomplete: str) -> list[CompletionItem]:
    """Words that no option takes: files, topics, names of operations, shells."""
    if key == "topics":
        words = [*COMMANDS, "commands", *TOPICS, *MANUAL, *kinds(), *operations()]
        return items(words, incomplete)
    if key == "patterns":
        return items(operations(), incomplete)
    if key == "shells":
        return items(SHELLS, incomplete)
    return files(incomplete)


def of_option(option: Any, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
    """Values of an option of the table."""
    words = getattr(option.convert, "words", None)
    if words is not None:
        several = getattr(option.convert, "several", False)
        return listed(words, incomplete) if several else items(words, incomplete)
    if option.metavar == "DIR":
        return files(incomplete, "dir")
    if option.metavar == "FILE":
        return files(incomplete)
    names = program_names(ctx)
    if option.key == "heat":
        return listed([n for name in names for n in (name, f"{name}.grad")], incomplete)
    if option.key in ("show", "wrt"):
        return listed(names, incomplete)
    if option.key in ("loss", "node"):
        return items(names, incomplete)
    if option.key == "define" and "=" not in incomplete:
        return items((f"{name}=" for name in names), incomplete)
    return []


_ASSIGNED = re.compile(r"^[ \t]*([^\W\d]\w*)[ \t]*=(?!=)|;[ \t]*([^\W\d]\w*)[ \t]*=(?!=)", re.M)


def program_names(ctx: click.Context) -> list[str]:
    """Names that the programs of the line assign, found without parsing."""
    names: dict[str, None] = {}
    texts = list(ctx.params.get("expr") or ())
    # Of a line that ends in an option without its value click parses nothing: take its words.
    for path in ctx.find_root().obj or ():
        try:
            if os.path.isfile(path):  # never a pipe: it would be waited for
                with open(path, encoding="utf-8", errors="replace") as file:
                    texts.append(file.read(LONGEST_PROGRAM))
        except (OSError, ValueError):
            continue
    for text in texts:
        names.update(dict.fromkeys(a or b for a, b in _ASSIGNED.findall(text)))
    return list(names)


def operations() -> list[str]:
    """Names of operations, from the index of the table alone: the table itself needs numpy."""
    path = os.path.join(os.path.dirname(__file__), "..", "..", "ops", "index.txt")
    with open(path, encoding="utf-8") as file:
        public = [line.partition(":")[2].partition("|")[0] for line in file]
    return sorted(name for name in " ".join(public).split() if not name.startswith("_"))
