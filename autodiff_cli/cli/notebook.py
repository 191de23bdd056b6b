"""`%load_ext autodiff_cli`: cells that begin with `%%autodiff` are programs, shown as pages."""

from __future__ import annotations

import io
import os
import shlex
import sys
from typing import Any

from ..render.report.notebook import framed
from .main import main
from .streams import Environment


class Frame:
    """What a notebook shows as HTML."""

    def __init__(self, document: str):
        self.document = document

    def __repr__(self) -> str:
        return "<a page of autodiff>"

    def _repr_html_(self) -> str:
        return framed(self.document)


def autodiff(line: str, cell: str) -> Frame | None:
    """The cell as `autodiff report` shows it; the line holds options of that command."""
    page, said = io.StringIO(), io.StringIO()
    words = ["report", *shlex.split(line), "--expr=" + cell.rstrip("\n"), "-o", "-"]
    main(words, Environment(None, page, said, os.environ))
    if page.getvalue().startswith("<!doctype html>"):
        return Frame(page.getvalue())
    sys.stderr.write(said.getvalue())
    return None


def load_ipython_extension(ipython: Any) -> None:
    """Called by `%load_ext`."""
    ipython.register_magic_function(autodiff, "cell")
