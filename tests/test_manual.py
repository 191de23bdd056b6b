"""The manual: pages are made of the tables, in the words of `autodiff help`; no link is broken."""

from __future__ import annotations

import html
import importlib.util
import io
import re
from pathlib import Path
from types import ModuleType

import pytest

from autodiff_cli.catalogue import MANUAL, TOPICS
from autodiff_cli.cli.commands.ops import public_ops
from autodiff_cli.cli.dispatch import COMMANDS
from autodiff_cli.cli.main import main
from autodiff_cli.cli.streams import Environment
from autodiff_cli.errors import kinds

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def manual() -> ModuleType:
    spec = importlib.util.spec_from_file_location("manual", ROOT / "docs" / "manual.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def pages(manual: ModuleType) -> dict[str, str]:
    found: dict[str, str] = manual.pages()
    return found


def helped(*words: str) -> str:
    """What `autodiff help` says."""
    screen = io.StringIO()
    assert main(["help", *words], Environment(None, screen, screen, {"COLUMNS": "80"})) == 0
    return screen.getvalue()


def test_pages_say_what_help_says(pages: dict[str, str]) -> None:
    for name in ("softmax", "relu", "matmul", "logsumexp"):
        family = public_ops()[name][0].family
        for page in helped(name).split("\n\n\n"):
            assert page.strip() in pages[f"ops/{family}.md"], name
    for name, text in TOPICS.items():
        assert pages[f"topics/{name}.md"] == f"# {text}"
        assert name in COMMANDS or helped(name) == text
    for name in COMMANDS:
        assert f"## autodiff {name}\n" in pages["commands.md"]
    assert "--max-steps N" in pages["commands.md"]
    for code, kind in kinds().items():
        page = pages[f"codes/{code}.md"]
        assert f"| [{code}]({code}.md) | {kind} |" in pages["codes/index.md"]
        told = helped(code)
        assert " ".join(told.split("Wrong:")[0].split(": ", 1)[1].split()) in " ".join(page.split())
        for part in re.split(r"^(?:Wrong|Right):\n", told, flags=re.MULTILINE)[1:]:
            assert "".join(line[4:] + "\n" for line in part.splitlines()).strip() in page


def test_help_shows_the_pages_of_the_manual() -> None:
    names = [path.stem for path in sorted((ROOT / "docs").glob("*.md"))]
    assert list(MANUAL) == names and "tutorial" in names
    for name in names:
        text = (ROOT / "docs" / f"{name}.md").read_text("utf-8")
        assert helped(name).endswith(text) and (name in COMMANDS or helped(name) == text)
        assert f" {name}," in helped() or f" {name}\n" in helped()
    for word, page in (("library", "python"), ("Session", "repl"), ("memory", "scale")):
        assert helped(word) == (ROOT / "docs" / f"{page}.md").read_text("utf-8")


def on_a_terminal(**variables: str) -> str:
    """A page of 60 columns."""

    class Terminal(io.StringIO):
        encoding = "utf-8"  # type: ignore[assignment]  # a property there

        def isatty(self) -> bool:
            return True

    screen = Terminal()
    main(["help", "checks"], Environment(None, screen, screen, {"COLUMNS": "60", **variables}))
    return screen.getvalue()


def test_a_page_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = on_a_terminal(NO_COLOR="1")
    assert (
        "\n  samples/demo.expr        ....                                    4 passed  0.02s"
        in shown
    )
    assert "\x1b" not in shown and "```" not in shown and "|---" not in shown
    prose = [line for line in shown.split("\n") if line[:1].isalpha()]
    assert len(prose) > 50 and max(map(len, prose)) <= 60
    assert " snapshot      the .snap file beside the program" in shown
    monkeypatch.setenv("TERM", "dumb")  # that of this process, which the screen is not of
    colored = on_a_terminal(NO_COLOR="", TERM="xterm")
    plain = re.sub("\x1b\\[[0-9;]*m", "", colored)
    assert [line.rstrip() for line in plain.split("\n")] == shown.split("\n")
    assert colored.count("\x1b[36m") > 50 and "\x1b[36mautodiff check\x1b[0m" in colored


def test_a_word_without_help_names_the_pages_that_have_it() -> None:
    screen = io.StringIO()
    assert main(["help", "xdist"], Environment(None, screen, screen, {})) == 2
    assert "help: it is in `autodiff help checks`\n" in screen.getvalue()


def test_every_name_is_in_the_index(pages: dict[str, str]) -> None:
    index = pages["ops/index.md"]
    for name, ops in public_ops().items():
        assert f"| [`{name.removeprefix('nn.functional.')}`]({ops[0].family}.md#" in index, name


def test_the_site(pages: dict[str, str], tmp_path: Path) -> None:
    """mkdocs finds no link, and no place on a page, that does not exist."""
    pytest.importorskip("mkdocs")
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    config = load_config(str(ROOT / "mkdocs.yml"), strict=True, site_dir=str(tmp_path), plugins=[])
    (hook,) = config.hooks.values()
    hook.pages = lambda: pages
    build(config)  # an error where anything is warned of
    text = {
        p.relative_to(tmp_path).as_posix(): p.read_text("utf-8") for p in tmp_path.rglob("*.html")
    }
    assert 'id="op-softmax"' in text["ops/softmax.html"]
    assert "softmax.html#op-softmax" in text["ops/index.html"]
    assert 'href="changes.html"' in text["index.html"]
    assert "$ autodiff samples/demo.expr --only graph" in html.unescape(text["topics/graph.html"])
    for page in text.values():  # nothing comes from elsewhere when a page is read
        assert not re.search(r'<(?:script|link|img)[^>]*(?:src|href)="(?:https?:)?//', page)


def test_links_that_lead_out_of_the_manual(manual: ModuleType) -> None:
    class Page:
        class file:
            src_uri = "decisions/0001-dependencies-and-names.md"

    turn = manual.on_page_markdown
    assert turn("[a](../../CHANGELOG.md#x) [b](../cli.md)", Page, None, None) == (
        "[a](../changes.md#x) [b](../cli.md)"
    )
    assert turn("[c](../../grammar/expr.lark) [d](https://x.org)", Page, None, None) == (
        "c [d](https://x.org)"
    )
