"""`autodiff why`: why a gradient is missing, zero or not finite, with a repair that was run."""

from __future__ import annotations

from dataclasses import dataclass
from os.path import isfile
from shlex import quote
from typing import TYPE_CHECKING, Any

from ...errors import Ended, Exit
from ..options import Command, Option, shared
from ..runner import Runner, run_programs
from ..streams import Environment, is_terminal

if TYPE_CHECKING:
    from ...session import Options
    from ...source import Source
    from ...why.model import Answer

EXAMPLES = """\
  autodiff why w train.py
  autodiff why model.fc.weight train.py --format json
  autodiff why x -e 'x = [0, 4]; loss = sum(where(x > 0, sqrt(x), 0))'
  autodiff why w train.py --fixed > repaired.py
"""

OPTIONS = (
    Option(("--fixed",), "fixed", "Print the repaired program, nothing else."),
    Option(("--no-fix",), "no_fix", "Look for no repair."),
    *shared("grad_output", "format", "out"),
)  # fmt: skip


def why(values: dict[str, Any], words: list[str], env: Environment) -> int:
    """Ask every program of a command line about one name; the worst exit code."""
    if not words:
        env.complain(
            "whose gradient?", "autodiff why NAME FILE, for example `autodiff why w train.py`"
        )
        return Exit.USAGE
    name, *files = words
    alone = not files and not values["expr"]
    if alone and (name.endswith((".expr", ".py")) or (is_terminal(env.stdin) and isfile(name))):
        env.complain(
            f"whose gradient? `{name}` is a file",
            f"put a name before it: `autodiff why NAME {quote(name)}`",
        )
        return Exit.PROGRAM  # as for any name that there is not
    name = name.removesuffix(".grad")
    return run_programs(
        values, files, env, lambda: Asker(values, env, name), f"why {name}", "ask about"
    )


COMMAND = Command(
    "why", OPTIONS, ("words", "NAME [FILE|-]..."), why,
    "Why NAME.grad is None, zero, NaN or infinite when the program has ended: the first cause "
    "on the way from the loss to NAME, with its line.\n\nA repair is shown only after it was "
    "run and the gradient came out, with the loss as it was.",
    EXAMPLES,
)  # fmt: skip


@dataclass(slots=True)
class Reply(Ended):
    """What a program answered."""

    file: str
    source: Source
    answer: Answer


class Asker(Runner):
    """Asks programs about the gradient of one name."""

    def __init__(self, values: dict[str, Any], env: Environment, name: str):
        super().__init__(values, env)
        self.name = name

    def compute(self, source: Source, options: Options) -> Reply:
        from ...why import why as ask

        repair = not self.values["no_fix"] or self.values["fixed"]
        return Reply(source.name, source, ask(source, self.name, options, repair=repair))

    def show(self, report: Any, several: bool) -> None:
        from ...render.explanations.why import dump, page, plain

        answer = getattr(report, "answer", None)
        if self.values["fixed"]:
            return self._fixed(report)
        if self.form == "json":
            self.emit(dump(report.file, answer, report.error))
        elif answer is not None and self.form == "rich":
            if several:
                self.title(report)
            env = self.env
            color = env.colors(env.stdout, self.values["color"])
            unicode = env.unicode(env.stdout)
            text = page(
                answer, report.source, color=color, width=self.look().width, unicode=unicode
            )
            env.write(text + ("\n" if several else ""))
        elif answer is not None:
            self.emit(plain(answer, report.source))

    def _fixed(self, report: Any) -> None:
        answer = getattr(report, "answer", None)
        if answer is None:
            return
        if answer.fix is None:
            self.env.note(f"no repair was found: {answer.message}")
            self.emit(report.source.text)
        else:
            self.emit(answer.fix)
