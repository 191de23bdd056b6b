"""`autodiff explain`: the chain rule step by step, with the program's names and numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...errors import Exit
from ...render.files import check_place
from ..options import Command, Option, form_option, names, shared
from ..runner import Runner, both_given, run_programs
from ..streams import Environment, is_terminal

if TYPE_CHECKING:
    from ...explain.model import Explanation
    from ...render.explanations.explain import Style
    from ...session import Options
    from ...source import Source

EXAMPLES = """\
  autodiff explain demo.expr
  autodiff explain -e 'x = 2; loss = sin(x)**2' --step
  autodiff explain model.expr --wrt W --node 'h' --open softmax
  autodiff explain demo.expr --latex -o demo.tex
"""

OPTIONS = (
    Option(("--node",), "node", "Only the step that computes EXPR: a name, a text of the program, "
           "or the number of a step.", "EXPR"),
    Option(("--step",), "step", "One step a key, on a terminal."),
    Option(("--open",), "open", "Go through what these composite operations are made of, in place "
           "of their own rule.", "OP,...", names, repeat=True),
    Option(("--symbolic",), "symbolic", "Formulas without numbers."),
    Option(("--markdown",), "markdown", "--to markdown: a Markdown document."),
    Option(("--latex",), "latex", "--to latex: a LaTeX document."),
    Option(("--all",), "all", "A step for each operation, however many there are; more than 40 "
           "are grouped by statement without it."),
    form_option("rich", "plain", "json", "markdown", "latex"),
    *shared("wrt", "grad_output", "out", "precision", "max_elements", "sci"),
)  # fmt: skip
SUFFIXES = {".md": "markdown", ".markdown": "markdown", ".tex": "latex", ".json": "json"}
KEYS = "any key: next   b: back   a: all   q: quit"
BACK = ("b", "\x1b[d", "\x1b[a")  # and the arrows to the left and up


def explain(values: dict[str, Any], files: list[str], env: Environment) -> int:
    """Explain every program of a command line; the worst exit code."""
    if several_forms(values, env, "explain", "markdown", "latex"):
        return Exit.USAGE
    return run_programs(values, files, env, lambda: Explainer(values, env), "explain", "explain")


COMMAND = Command(
    "explain", OPTIONS, ("files", "[FILE|-]..."), explain,
    "The chain rule step by step: forward values, what each operation gives to its operands "
    "and why, the paths added up, and a check with central differences.\n\n"
    "What is explained is the backward pass that the program ran last, else that of --of "
    "NAME, `loss`, or the last number that was computed.",
    EXAMPLES,
)  # fmt: skip


def several_forms(values: dict[str, Any], env: Environment, command: str, *switches: str) -> bool:
    """Whether there are two forms; says so. `--latex` is `--to latex`."""
    given = [form for form in switches if values[form]]
    values["format"] = given[0] if given and values["format"] == "auto" else values["format"]
    if values["format"] not in ("auto", *given):
        given.append(f"to {values['format']}")
    return both_given(env, command, *given)


class Documents(Runner):
    """What is also written as documents: an option or the suffix of a file chooses which."""

    forms: tuple[str, ...] = ()

    def _form(self) -> str:
        form: str = self.values["format"]
        if form in self.forms:
            return form
        if self.to_file:
            import os

            form = SUFFIXES.get(os.path.splitext(str(self.out))[1].lower(), "plain")
            return form if form == "json" or form in self.forms else "plain"
        return super()._form()

    def check_file(self, path: str, programs: int) -> None:
        check_place(path)


class Explainer(Documents):
    """Explains programs and shows it in the form that is asked for."""

    forms = ("markdown", "latex")

    def compute(self, source: Source, options: Options) -> Explanation:
        from ...explain.model import Request
        from ...explain.source import explain_source

        values = self.values
        self.lines = tuple(source.text.split("\n"))
        request = Request(
            values["loss"], values["wrt"], values["node"], values["open"], values["all"],
            not values["symbolic"],
        )  # fmt: skip
        return explain_source(source, options, request)

    def show(self, report: Explanation, several: bool) -> None:
        from ...render.explanations import explain_documents as documents
        from ...render.explanations.explain import Style, plain

        if self.form == "json":
            self.emit(documents.dump(report))
            return
        if report.error is not None:
            return
        symbolic = self.values["symbolic"]
        if self.form in ("markdown", "latex"):
            write = documents.markdown if self.form == "markdown" else documents.latex
            self.emit(write(report, self.look(), symbolic))
            return
        style = Style(self.look(), symbolic)
        if self.form == "rich" or self.plain_color:
            self._blocks(report, style, several)
        else:
            self.emit(plain(report, Style(style.look._replace(width=10_000), symbolic)))

    def _blocks(self, report: Explanation, style: Style, several: bool) -> None:
        from ...render.explanations.explain import blocks

        env = self.env
        if self.form == "plain":
            style = style._replace(look=style.look._replace(width=10_000))
        asking = self.values["step"] and is_terminal(env.stdout) and is_terminal(env.stdin)
        style = style._replace(lines=self.lines if asking else ())
        parts, at = list(blocks(report, style)), 0
        with self.drawn(report, several, style.look) as page:
            while at < len(parts):
                page.lines(parts[at])
                at += 1
                if asking:
                    answer = self._next()
                    if answer == "q":
                        break
                    asking = answer != "a"
                    if answer in BACK:
                        again = max(0, at - 2)
                        gone = sum(map(len, parts[again:at]))
                        if self.form == "rich" and not env.dumb():
                            env.write(f"\x1b[{gone}F\x1b[J")  # the lines above, and what is below
                        at = again

    def _next(self) -> str:
        """Wait for a key below what is shown; the prompt is gone afterwards."""
        from click import getchar

        env = self.env
        prompt = KEYS if env.width(env.stdout) > len(KEYS) else "key: next"
        env.write(prompt)
        env.flush()
        try:
            key = getchar().lower()
        except EOFError:  # Ctrl-D, as from a terminal that was closed
            key = "q"
        env.write("\r" + " " * len(prompt) + "\r")
        return "q" if key in ("", "\x1b") else key
