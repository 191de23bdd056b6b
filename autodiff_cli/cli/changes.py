"""Writing what a check proposes: new expectations and snapshots, after showing and, in a review,
asking.

Invariant: a file is written whole or not at all, and only when its change was accepted.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from ..checks.collect import arrays_beside
from ..errors import fail
from ..render.files import CannotWrite, replace_file, write_bytes, write_npz
from ..render.text import WORD, printable
from .streams import Environment

if TYPE_CHECKING:
    from ..checks.model import FileResult


class Changes:
    """The changes of one command; `quit` says that the person wants no more of it."""

    def __init__(self, env: Environment, *, review: bool, quiet: bool):
        self.env = env
        self.review = review
        self.quiet = quiet
        self.accept_all = False
        self.quit = False
        self.written = 0

    def apply(self, result: FileResult) -> None:
        """Write the changes that a file proposes, after showing and, in a review, asking."""
        if not result.changes:
            return
        from ..render.checks import diff_text

        for path, old, new in result.changes:
            if not self.quiet:
                self.env.note(diff_text(path, old, new).rstrip("\n"))
            if self.review and not self._accepted(path):
                self._unwritten(result)
                continue
            try:
                if new is None:
                    os.unlink(path)
                    self._prune_arrays(path)
                else:
                    write_bytes(path, new.encode("utf-8"))
                self.written += 1
            except (CannotWrite, OSError) as problem:
                self._unwritten(result, str(problem))
        if result.arrays is not None:
            self._write_arrays(result)

    def _prune_arrays(self, path: str) -> None:
        """A snapshot that goes takes along the arrays that `--full` put beside it."""
        arrays = arrays_beside(path)
        if os.path.exists(arrays):
            os.unlink(arrays)

    def _write_arrays(self, result: FileResult) -> None:
        assert result.arrays is not None
        path, arrays = result.arrays
        try:
            replace_file(path, lambda file: write_npz(file, arrays))
        except CannotWrite as problem:
            self._unwritten(result, problem.message)

    def _unwritten(self, result: FileResult, message: str = "") -> None:
        """The items whose change was declined, or could not be written for what `message` says."""
        for item in result.items:
            if item.note:
                item.status, item.note = ("error", "") if message else ("failed", "declined")
                item.diagnostic = fail("E604", message).diagnostic if message else item.diagnostic

    def _accepted(self, path: str) -> bool:
        if self.accept_all or self.quit:
            return self.accept_all
        stream = self.env.stderr
        while True:
            stream.write(f"write {printable(path, WORD)}? [y]es [n]o [a]ll [q]uit ")
            stream.flush()
            answer = self.env.stdin.readline()
            word = answer.strip().lower()[:1]
            if word in ("y", "a"):
                self.accept_all = word == "a"
                return True
            if word == "n":
                return False
            if word == "q" or not answer:
                self.quit = True
                return False
