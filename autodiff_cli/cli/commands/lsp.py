"""`autodiff lsp`: a language server on standard input and output, by the extra `lsp`."""

from __future__ import annotations

import gc
from importlib.util import find_spec
from typing import Any

from ...errors import Exit
from ..dispatch import COMMANDS
from ..options import Command, only
from ..streams import Environment
from .repl import session_options

EXAMPLES = """\
  autodiff lsp
  autodiff lsp --max-steps 10000
"""


def show(values: dict[str, Any], words: list[str], env: Environment) -> int:
    """Serve an editor until it ends."""
    if words:
        env.complain("lsp takes no FILE: an editor sends its programs")
        return Exit.USAGE
    if find_spec("pygls") is None:
        env.complain(
            "lsp needs the extra `lsp`, which is not installed", "pip install 'autodiff-cli[lsp]'"
        )
        return Exit.USAGE
    from ..language_server import serve

    gc.enable()
    serve(session_options(values))
    return Exit.OK


COMMAND = Command(
    "lsp", only("dtype", "max_memory", "max_steps", "max_depth", "allow_read"),
    ("files", ""), show, COMMANDS["lsp"][1], EXAMPLES,
)  # fmt: skip
