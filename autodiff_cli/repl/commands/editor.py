"""A text in the user's own editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping


def edit_in_editor(text: str, variables: Mapping[str, str]) -> str | None:
    """The text as it was left; None when there is no editor, or it failed."""
    command = variables.get("VISUAL") or variables.get("EDITOR") or "vi"
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "session.expr")
        with open(path, "w", encoding="utf-8", errors="replace") as file:
            file.write(text)
        try:
            done = subprocess.run([*words, path], check=False)
            if done.returncode != 0:
                return None
            with open(path, encoding="utf-8", errors="replace") as file:
                return file.read()
        except (OSError, ValueError):
            return None
