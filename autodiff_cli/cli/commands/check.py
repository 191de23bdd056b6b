"""`autodiff check`: programs are their own regression tests.

Invariant: only files that were selected are written, each whole or not at all.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from typing import Any

from ...checks.model import FAILED, FileResult, Item, Settings
from ...defaults import TIMEOUT
from ...errors import Exit, fault
from ...outside import OUTSIDE
from ...render.diagnostics import render
from ...render.files import CannotWrite, check_place, replace_file
from ...render.text import dumped, format_count, printable
from ...suggest import meant_file
from ..changes import Changes
from ..failures import last_failures, remember
from ..options import FORMAT, Command, Option, choice, chosen, memory, only, whole
from ..streams import Environment, is_terminal

EXAMPLES = """\
  autodiff check
  autodiff check examples -k 'grad and not attention'
  autodiff check demo.expr --snapshot
  autodiff check --junit results.xml -j auto
"""


def _jobs(text: str) -> int:
    return (os.cpu_count() or 1) if text == "auto" else whole(1, 512)(text)


OPTIONS = (
    Option(("-k",), "keyword", "Only items whose id contains the words: `grad[x]`, "
           "`demo and not hess`.", "EXPR", str, ""),
    Option(("-x", "--exitfirst"), "exitfirst", "Stop at the first file that fails."),
    Option(("--lf", "--last-failed"), "last_failed", "Only what failed the last time."),
    Option(("-j", "--jobs"), "jobs", "Processes, used for more than 8 files: a number or auto.",
           "N", _jobs, 1),
    Option(("--no-grad",), "no_grad", "Check no gradients."),
    Option(("--order",), "order", "2 checks Hessian-vector products as well.", "N", whole(1, 2), 1),
    Option(("--snapshot",), "snapshot", "Make missing .snap files."),
    Option(("--full",), "full", "With --snapshot or --update: all data of large tensors too, as "
           ".npz."),
    Option(("--update",), "update", "Write new values into expectations and snapshots."),
    Option(("--review",), "review", "Like --update, but ask for every change."),
    Option(("--prune",), "prune", "Remove snapshots that belong to nothing."),
    Option(("--against",), "against", "Run the same program in PyTorch: the first value or "
           "gradient that departs.", "torch", choice("torch")),
    Option(("--engine",), "engine", "dask: of files with more rows than fit into memory (-D "
           "X=@X.zarr), a sample of rows.", "NAME", choice("numpy", "dask"), "numpy"),
    Option(("--chunk",), "chunk", "Bytes of that sample.", "SIZE", memory, 1 << 20),
    Option(("--junit",), "junit", "Write JUnit XML to FILE.", "FILE"),
    Option(("--durations",), "durations", "Show the N slowest items.", "N", whole(0, 10**6), 0),
    Option(("--seed",), "seed", "Seed of the random directions.", "N", whole(0, 2**63), 0),
    Option(("--collect",), "collect", "List the items, check nothing."),
    Option(("--allow-empty",), "allow_empty", "Finding nothing to check is no failure."),
    FORMAT,
    Option(("--nan",), "nan", "What a NaN or an infinity is: warn, error or ignore.", "ACTION",
           choice("warn", "error", "ignore"), "error"),
    *only("define", "color", "diagnostics", "max_memory", "max_steps", "timeout", "watch",
          "quiet", "verbose", "debug"),
)  # fmt: skip
SETTINGS = (
    "order", "seed", "keyword", "snapshot", "prune", "full", "collect", "nan", "max_memory",
    "max_steps",
)  # fmt: skip


def check(values: dict[str, Any], paths: list[str], env: Environment) -> int:
    """Check every file; the worst exit code."""
    checker = Checker(values, paths or ["."], env)
    return checker.watched() if values["watch"] else checker.run()


COMMAND = Command(
    "check", OPTIONS, ("paths", "[PATH]..."), check,
    "Check programs: gradients against finite differences, assertions, `#=>` expectations and "
    "snapshots.\n\nPATH is a program or a folder with .expr files; default is this folder.",
    EXAMPLES,
)  # fmt: skip


class Checker:
    """One `autodiff check`."""

    def __init__(self, values: dict[str, Any], paths: list[str], env: Environment):
        self.values = values
        self.paths = paths
        self.env = env
        self.json = values["format"] == "json"
        self.ci = bool(env.variables.get("CI"))
        self.form = values["diagnostics"]
        if self.form == "full" and env.variables.get("GITHUB_ACTIONS"):
            self.form = "github"
        self.color = env.colors(env.stdout, values["color"])
        self.results: list[FileResult] = []
        self.changes = Changes(env, review=values["review"], quiet=self.json)

    def _refuse(self, message: str, *helps: str) -> Exit:
        self.env.complain(message, *helps)
        return Exit.USAGE

    def watched(self) -> int:
        """Check again and again; an interrupt ends it."""
        from ..watch import watch

        if any(self.values[word] for word in ("update", "review", "snapshot", "prune")):
            return self._refuse("--watch writes nothing", "update once, without --watch")

        def run() -> set[str]:
            checker = Checker(self.values, self.paths, self.env)
            checker.run()
            return checker.read()

        watch(run, self.paths, self.env)
        return Exit.OK

    def read(self) -> set[str]:
        """Programs, snapshots and data that the check depends on, and folders that may get more."""
        from ...language.python.loading import READ

        found = {result.file for result in self.results}
        found |= {f"{path}.snap" for path in found}
        found |= {os.path.dirname(path) or "." for path in found}
        return found | {*READ, *OUTSIDE.records("read")}

    # -- all of it ------------------------------------------------------------------------------

    def run(self) -> int:
        """Collect, check, show; the exit code."""
        from ...checks.collect import BadKeyword, Missing, collect, matches

        values = self.values
        started = time.perf_counter()
        if (values["update"] or values["review"] or values["prune"]) and self.ci:
            return self._refuse(
                "nothing is updated under CI", "run it on your machine, look at it, commit it"
            )
        if values["review"] and not (is_terminal(self.env.stdin) and is_terminal(self.env.stderr)):
            return self._refuse("--review asks, and this is no terminal", "use --update")
        if values["snapshot"] and self.ci:
            return self._refuse("no snapshots are made under CI", "make and commit them before")
        try:
            matches(values["keyword"], "")
        except BadKeyword as problem:
            return self._refuse(str(problem), "for example -k 'grad[x] and not slow'")
        try:
            files = collect(self.paths)
        except Missing as missing:
            path = missing.args[0]
            message = f"cannot read `{path}`: no such file or directory"
            return self._refuse(message, *meant_file(path))
        if values["against"]:
            from ...checks.beside_torch.against_torch import torch_folders

            if not torch_folders():
                message = "--against torch: PyTorch is not installed here"
                return self._refuse(message, "pip install torch")
        settings = self._settings()
        if values["last_failed"]:
            settings, files = self._last_failed(settings, files)
        if values["junit"]:
            try:
                check_place(values["junit"])
            except CannotWrite:
                message = f"cannot write `{values['junit']}`"
                return self._refuse(message, "name a file in a folder that exists")
        self._check(files, settings)
        self._orphans(settings)
        code = self._finish(time.perf_counter() - started)
        self._remember()
        return code

    def _settings(self) -> Settings:
        from ...render.plain import plain

        values, opened = self.values, None
        if values["engine"] == "dask":
            from ...engine.rows.sources import Sample

            opened = Sample(values["chunk"]).opened
        return Settings(
            **chosen(values, *SETTINGS),
            gradients=not values["no_grad"],
            update=values["update"] or values["review"],
            ci=self.ci,
            against=values["against"] or "",
            defines=tuple(values["define"]),
            timeout=values["timeout"] or TIMEOUT,
            plain=plain,
            opened=opened,
        )

    def _check(self, files: list[str], settings: Settings) -> None:
        from ...checks.runner import check_many
        from ...language.program.gc_control import collect_seldom
        from ..progress import Bar

        collect_seldom()
        watched = is_terminal(self.env.stderr) and not (self.json or self.ci)
        bar = Bar(self.env.stderr if watched else None, len(files))
        OUTSIDE.begin()
        for result, written in OUTSIDE.records("file"):  # by a process before this one
            self.results.append(result)
            self.changes.written += written
        files = files[len(self.results) :]
        lost = OUTSIDE.take()
        try:
            for result in check_many(files, settings, self.values["jobs"], lost):
                self.results.append(result)
                bar.clear()
                before = self.changes.written
                self._show(result)
                OUTSIDE.record("file", (result, self.changes.written - before))
                if self.changes.quit or (
                    self.values["exitfirst"] and any(i.bad for i in result.items)
                ):
                    break
                bar.show(len(self.results))
        finally:
            bar.clear()

    def _show(self, result: FileResult) -> None:
        """The line of a file, or its items; what it proposes to write."""
        if self.values["collect"]:
            if not self.json:
                self.env.write("".join(f"{printable(i.id)}\n" for i in result.items))
            return
        self.changes.apply(result)
        if result.items and not self.json and not self.values["quiet"]:
            from ...render.checks import file_line

            width = self.env.width(self.env.stdout)
            self.env.write(file_line(result, width, self.color) + "\n")
            if is_terminal(self.env.stdout):
                self.env.flush()

    # -- snapshots that belong to nothing -------------------------------------------------------

    def _orphans(self, settings: Settings) -> None:
        """Snapshots whose program is gone fail a full run; `--prune` removes them."""
        from ...checks.collect import orphans

        partial = settings.keyword or settings.only or self.changes.quit or self.values["exitfirst"]
        if partial or settings.collect:
            return
        for path in orphans(self.paths):
            result = FileResult(path)
            if settings.prune:
                with open(path, encoding="utf-8", errors="replace") as file:
                    result.changes.append((path, file.read(), None))
                self.changes.apply(result)
                continue
            error = fault("E605 snapshot-belongs-no-program", path, path[:-5])
            result.items.append(Item(path, "snapshot", status=FAILED, diagnostic=error.diagnostic))
            self.results.append(result)

    # -- the end --------------------------------------------------------------------------------

    def _finish(self, seconds: float) -> int:
        items = [item for result in self.results for item in result.items]
        code: Exit = Exit.worst(result.exit_code for result in self.results)
        if not items and code is Exit.OK and not self.values["allow_empty"]:
            code = Exit.EMPTY
        if self.json:
            from ...render.checks import check_document

            self.env.write(dumped(check_document(self.results, seconds, code)))
        elif not self.values["collect"]:
            self._summary(items, seconds)
        if self.json or self.values["collect"]:  # people see what failed all the same
            for item in items:
                if item.bad and not (self.json and self.values["quiet"]):
                    self._diagnose(item)
        if code is Exit.EMPTY:
            self._nothing()
        if self.values["junit"] and not self._write_junit():
            return Exit.USAGE
        return code

    def _summary(self, items: list[Item], seconds: float) -> None:
        from ...render.checks import durations, failed_line, step_summary, summary

        if not self.values["quiet"] and items:
            self.env.write("\n")
        width = self.env.width(self.env.stdout) if is_terminal(self.env.stdout) else None
        for item in items:
            self._diagnose(item)
        for item in items:
            if item.bad:
                self.env.write(failed_line(item, width) + "\n")
        for line in durations(self.results, self.values["durations"]):
            self.env.write(line + "\n")
        if self.changes.written:
            self.env.write(f"{format_count(self.changes.written, 'file')} written\n")
        if items and not (self.values["quiet"] and not any(i.bad for i in items)):
            self.env.write(summary(self.results, seconds, self.color) + "\n")
        target = self.env.variables.get("GITHUB_STEP_SUMMARY")
        if target and self.env.variables.get("GITHUB_ACTIONS"):
            try:
                with open(target, "a", encoding="utf-8") as file:
                    file.write(step_summary(self.results))
            except OSError as error:
                self.env.complain(
                    f"cannot write the step summary: {error.strerror}", severity="warning"
                )

    def _diagnose(self, item: Item) -> None:
        if item.diagnostic is None:
            return
        if not item.bad and (
            self.values["quiet"] or (item.status == "kink" and not self.values["verbose"])
        ):
            return
        diagnostic = item.diagnostic
        if item.bad and diagnostic.severity != "error":
            diagnostic = replace(diagnostic, severity="error")
        self.env.diagnose(diagnostic, self.form, self.values["color"])

    def _nothing(self) -> None:
        if self.values["keyword"] or self.values["last_failed"]:
            chosen = "-k " + repr(self.values["keyword"]) if self.values["keyword"] else "--lf"
            self._refuse(f"nothing was checked: {chosen} chose no item", "see --collect")
        else:
            self._refuse(
                f"nothing was checked: no .expr file below {', '.join(self.paths)}",
                "name a program, or pass --allow-empty",
            )

    # -- JUnit and the last failures --------------------------------------------------------------

    def _write_junit(self) -> bool:
        from ...checks.junit import junit

        data = junit(self.results, render)
        try:
            replace_file(self.values["junit"], lambda file: file.write(data))
        except CannotWrite as problem:
            self._refuse(problem.message)
            return False
        return True

    def _last_failed(self, settings: Settings, files: list[str]) -> tuple[Settings, list[str]]:
        failed = last_failures(self.env.variables)
        chosen = [f for f in files if any(text.startswith(f"{f}::") for text in failed)]
        if not chosen:
            self.env.note("nothing failed the last time: everything is checked")
            return settings, files
        return replace(settings, only=tuple(failed)), chosen

    def _remember(self) -> None:
        if self.values["collect"]:
            return
        items = [item for result in self.results for item in result.items]
        checked = {item.id for item in items}
        remember(self.env.variables, checked, [item.id for item in items if item.bad])
