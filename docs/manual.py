"""Pages of the manual that nobody writes: what the tables say, in the words of `autodiff help`.

A hook of mkdocs: `pages` are added to those of this folder, and links that lead out of it are
turned to where their targets are on the site.
"""

from __future__ import annotations

import io
import posixpath
import re
from importlib import import_module
from pathlib import Path
from typing import Any

from autodiff_cli.catalogue import ENTRIES, TOPICS
from autodiff_cli.cli.commands.ops import describe, public_ops, short_name
from autodiff_cli.cli.dispatch import COMMANDS
from autodiff_cli.cli.main import main
from autodiff_cli.cli.streams import Environment
from autodiff_cli.errors import faults, kinds

ROOT = Path(__file__).parents[1]
OUTSIDE = {
    "README.md": "index.md",
    "CHANGELOG.md": "changes.md",
    "CONTRIBUTING.md": "contributing.md",
}
LINK = re.compile(r"\[([^]\[]*)\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")


def pages() -> dict[str, str]:
    """The text of each page that is made, by its path on the site."""
    found = {page: (ROOT / name).read_text("utf-8") for name, page in OUTSIDE.items()}
    found |= {f"topics/{name}.md": f"# {text}" for name, text in TOPICS.items()}
    return {**found, "commands.md": commands(), **operations(), **codes()}


def commands() -> str:
    """What `autodiff COMMAND --help` prints."""
    parts = ["# Every command\n"]
    for name in COMMANDS:
        screen = io.StringIO()
        main([name, "--help"], Environment(None, screen, screen, {"COLUMNS": "80"}))
        parts.append(f"## autodiff {name}\n\n{block(screen.getvalue())}")
    return "\n".join(parts)


def operations() -> dict[str, str]:
    """A page for each family, with the pages of its operations, and an index of all names."""
    families: dict[str, dict[str, list[Any]]] = {}
    index = [
        "# Operations\n",
        "What `autodiff ops NAME` tells of each.\n",
        "| name | family | |",
        "|---|---|---|",
    ]
    for name, ops in public_ops().items():
        op = ops[0]
        places = families.setdefault(op.family, {}).setdefault(short_name(op), [])
        places += [op for op in ops if op not in places]
        place = f"{op.family}.md#{anchor(short_name(op))}"
        words = " ".join(op.doc.split("\n\n")[0].split()).replace("|", "\\|")
        shown = name.removeprefix("nn.functional.")
        index.append(f"| [`{shown}`]({place}) | [{op.family}]({op.family}.md) | {words} |")
    found = {"ops/index.md": "\n".join(index) + "\n"}
    for family, names in families.items():
        (package, *_) = {op.package for ops in names.values() for op in ops}
        about = import_module(f"autodiff_cli.ops.{package}.{family}").__doc__ or ""
        parts = [f"# {family.replace('_', ' ').capitalize()}\n", about.strip() + "\n"]
        for name, ops in names.items():
            text = "\n".join(describe(op) for op in ops)
            parts.append(f'<a id="{anchor(name)}"></a>\n\n## {name}\n\n{block(text)}')
        found[f"ops/{family}.md"] = "\n".join(parts)
    return found


def codes() -> dict[str, str]:
    """A page for each code: cause, example and repair, and all messages that have it."""
    index = [
        "# Errors and warnings\n",
        "What `autodiff help CODE` tells of each. A warning is the code with a W.\n",
        "| code | kind | |",
        "|---|---|---|",
    ]
    found = {}
    for code, entry in ENTRIES.items():
        index.append(f"| [{code}]({code}.md) | {kinds()[code]} | {entry.title} |")
        messages = [
            [line for line in lines if not line.startswith("said")]
            for which, lines in faults().items()
            if which.startswith(code)
        ]
        parts = [f"# {code}: {entry.title}\n", f"{entry.cause}\n"]
        parts += ["Wrong:\n", block(entry.wrong), "Right:\n", block(entry.right)]
        if messages:
            said = "\n".join("\n    ".join(lines) for lines in messages)
            parts += ["Messages, with blanks for what is known there:\n", block(said)]
        found[f"codes/{code}.md"] = "\n".join(parts)
    return {**found, "codes/index.md": "\n".join(index) + "\n"}


def block(text: str) -> str:
    """A text as it stands."""
    return f"```text\n{text.strip()}\n```\n"


def anchor(name: str) -> str:
    """Where an operation is on the page of its family."""
    return f"op-{name.replace('.', '-')}"


# -- mkdocs ---------------------------------------------------------------------------------------


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are made."""
    from mkdocs.structure.files import File

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links as the site has them; those to files that it has not are words."""
    uri = page.file.src_uri
    source = next((name for name, path in OUTSIDE.items() if path == uri), f"docs/{uri}")

    def turned(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), match[2]))
        there = OUTSIDE.get(target, target.removeprefix("docs/"))
        if (there == target and (ROOT / target).exists()) or (ROOT / target).is_dir():
            return match[1]
        way = posixpath.relpath(there, posixpath.dirname(uri) or ".")
        return f"[{match[1]}]({way}{match[3] or ''})"

    return LINK.sub(turned, markdown)
