"""`autodiff graph`: the graph of a result as a tree, as a picture, for other tools or as data."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ...errors import Exit
from ...render.files import CannotWrite, check_place, write_bytes
from ...render.pictures.png import needs_pictures, png
from ..options import Command, Option, choice, form_option, shared, whole
from ..runner import Runner, run_programs
from ..streams import Environment

if TYPE_CHECKING:
    from ...render.graphs.drawing import Drawing
    from ...session import Options
    from ...source import Source

EXAMPLES = """\
  autodiff graph demo.expr
  autodiff graph demo.expr -f mermaid --values --grads
  autodiff graph demo.expr --values --grads -o demo.svg
  autodiff graph model.expr -f json | jq '.nodes[].text'
"""

OPTIONS = (
    form_option("tree", "svg", "png", "html", "dot", "mermaid", "json", more=" Auto is what the "
                "suffix of -o says, else a tree."),
    Option(("-o", "--out"), "out", "Write to FILE: .svg, .png, .html, .dot, .gv, .mmd, .mermaid, "
           ".json, .txt; - is stdout.", "FILE"),
    Option(("--values",), "values", "Values on the nodes."),
    Option(("--grads",), "grads", "Gradients: of a node on the node, what an operation gave to an "
           "operand on the edge."),
    Option(("--direction",), "direction", "Where the drawing grows: BT (up) or LR (to the right).",
           "DIRECTION", choice("BT", "LR"), "BT"),
    Option(("--all",), "all", "Every node, constants one by one."),
    Option(("--max-nodes",), "max_nodes", "Draw the N nodes nearest to the result; json draws all "
           "without it.", "N", whole(1, 10**9)),
    *shared("nan", "precision"),
)  # fmt: skip
MOST = 200
PICTURES = ("svg", "png", "html")
SUFFIXES = {
    ".svg": "svg", ".png": "png", ".html": "html", ".htm": "html", ".dot": "dot", ".gv": "dot",
    ".mmd": "mermaid", ".mermaid": "mermaid", ".json": "json", ".txt": "tree",
}  # fmt: skip


def graph(values: dict[str, Any], files: list[str], env: Environment) -> int:
    """The graphs of all programs of a command line; the worst exit code."""
    suffix = os.path.splitext(values["out"] or "")[1].lower()
    if values["format"] == "auto":
        if values["out"] not in (None, "-") and suffix not in SUFFIXES:
            env.complain(
                "cannot tell the form of the graph from the name of its file",
                f"give it with -f, or end the name in {', '.join(SUFFIXES)}",
            )
            return Exit.USAGE
        values["format"] = SUFFIXES.get(suffix, "tree")
    return run_programs(values, files, env, lambda: Graphs(values, env), "graph", "draw")


COMMAND = Command(
    "graph", OPTIONS, ("files", "[FILE|-]..."), graph,
    "The graph behind a result: operations with the expressions that made them, shapes, and if "
    "wanted values and gradients.\n\nThe result is --of NAME, else `loss`, else what the "
    "program computed last. The same program gives the same bytes.",
    EXAMPLES,
)  # fmt: skip


class Graphs(Runner):
    """Collects the graph behind the objective and writes it."""

    def _form(self) -> str:
        if self.values["format"] != "tree":
            return str(self.values["format"])
        self.values["format"] = "auto"
        return "plain" if self.to_file else super()._form()

    def prepared(self, programs: int) -> bool:
        if self.form == "png":
            try:
                needs_pictures("a PNG", "without it: -f svg, or -f html")
                if not self.to_file:
                    raise CannotWrite("a PNG is written to a file", "-o graph.png")
            except CannotWrite as problem:
                return self.refused(problem)
        return super().prepared(programs)

    def check_file(self, path: str, programs: int) -> None:
        check_place(path)
        if programs > 1 and self.form in PICTURES:
            raise CannotWrite(
                f"a picture is of one program, not of {programs}", "draw the programs one by one"
            )

    def _most(self) -> int | None:
        values = self.values
        if values["max_nodes"] is not None or values["all"] or self.form in ("json", *PICTURES):
            most: int | None = values["max_nodes"]
            return most
        return MOST

    def compute(self, source: Source, options: Options) -> Drawing:
        from ...render.graphs.drawing import Wanted, drawing

        values = self.values
        # A tree that is too large is counted instead, and its nodes are not needed.
        wanted = Wanted(
            values["loss"], values["values"], values["grads"], values["all"], self._most()
        )
        return drawing(source, options, wanted)

    def show(self, report: Drawing, several: bool) -> None:
        from ...render.graphs import forms

        if report.error is not None and self.form != "json":
            return
        if self.form in ("rich", "plain"):
            self._tree(report, several)
        else:
            precision = self.values["precision"]
            direction = self.values["direction"]
            self.emit(forms.graph_text(report, self.form, direction=direction, precision=precision))

    def write_file(self, path: str, text: str) -> None:
        if self.form == "png":
            write_bytes(path, png(text))
        else:
            super().write_file(path, text)

    def _tree(self, report: Drawing, several: bool) -> None:
        from ...render.graphs.forms import tree_of

        values, env = self.values, self.env
        narrow = self.form == "rich" or (env.again and env.seen)  # of a session in a terminal
        width = self.look().width if narrow else 10_000
        rows = tree_of(
            report, most=MOST, near=values["max_nodes"] is not None, all=values["all"],
            width=width - 1, precision=values["precision"],
        )  # fmt: skip
        if self.form == "rich":
            if several:
                self.title(report)
            self.page().tree(rows)
        else:
            from ...render.graphs.tree import tree_lines

            unicode = self.to_file or env.unicode(env.stdout)
            self.emit("\n".join(tree_lines(rows, width=width, unicode=unicode)) + "\n")
