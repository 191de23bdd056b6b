"""`autodiff report`: programs as one page of HTML, to be stepped through."""

from __future__ import annotations

import os
import webbrowser
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...errors import Exit
from ...render.files import check_place
from ...render.text import format_count
from ..options import Command, Option, only, shared
from ..runner import Runner, run_programs
from ..streams import Environment

if TYPE_CHECKING:
    from ...session import Options
    from ...source import Source

EXAMPLES = """\
  autodiff report demo.expr
  autodiff report demo.expr model.py -o lesson.html --title 'Lesson 3' --open
  autodiff report -e 'x = 2; loss = sin(x)**2' -o - > page.html
"""

DIGITS = 4
OPTIONS = (
    Option(("-o", "--out"), "out", "The file to write, report.html if not given; - is stdout.",
           "FILE", str, "report.html"),
    Option(("--open",), "open", "Show it in a browser."),
    Option(("--title",), "title", "What is above it, instead of the names of the programs.",
           "TEXT", str, ""),
    Option(("--stamp",), "stamp", "Say when it was made; without it the same programs give the "
           "same bytes."),
    *shared("wrt", "grad_output", "nan"),
    *(option._replace(default=DIGITS) for option in only("precision")),
)  # fmt: skip


def report(values: dict[str, Any], files: list[str], env: Environment) -> int:
    """Write the page of all programs of a command line; the worst exit code."""
    if values["open"] and values["out"] == "-":
        env.complain("--open needs a file to show", "name it: -o report.html")
        return Exit.USAGE
    return run_programs(
        values, files, env, lambda: Pages(values, files, env), "report", "show on a page"
    )


COMMAND = Command(
    "report", OPTIONS, ("files", "[FILE|-]..."), report,
    "One page of HTML that needs nothing but itself: the program beside its graph beside the "
    "numbers, forward and backward one step a key, the paths that add up, checks, messages, the "
    "Jacobian.\n\nA program that fails is shown with what is wrong with it. Without scripts, and "
    "on paper, all steps stand one below the other.",
    EXAMPLES,
)  # fmt: skip


class Pages(Runner):
    """Collects a part of the page for each program."""

    def __init__(self, values: dict[str, Any], files: list[str], env: Environment):
        super().__init__(values, env)
        self.names = ["<stdin>" if name == "-" else name for name in files]

    @cached_property
    def pages(self) -> Any:
        """The module that makes pages, loaded when a program is run."""
        from ...render.report import page

        return page

    def check_file(self, path: str, programs: int) -> None:
        check_place(path)

    def compute(self, source: Source, options: Options) -> Any:
        whole = not (self.values["expr"] or self.values["define"])
        there = whole and os.path.isfile(source.name)
        return self.pages.gathered(source, options, source.name if there else None)

    def show(self, report: Any, several: bool) -> None:
        self.collected.append(
            self.pages.article(report, len(self.collected) + 1, self.values["precision"])
        )

    def finish(self) -> Exit:
        values = self.values
        names = self.names or ["<expr>" if values["expr"] else "<stdin>"]
        stamp = self.pages.timestamp() if values["stamp"] else ""
        text = self.pages.page(names, self.collected, values["title"], stamp)
        self.collected = [text]
        if not self.to_file:
            self.env.write(text)
            return Exit.OK
        code = super().finish()
        if code is Exit.OK:
            written = Path(str(self.out))
            if not values["quiet"]:
                self.env.note(f"{written}: {format_count(len(names), 'program')}")
            if values["open"]:
                webbrowser.open(written.resolve().as_uri())
        return code
