"""Every error worded in `faults.txt` is raised somewhere, with the facts that its text names."""

from __future__ import annotations

import ast
import re
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from autodiff_cli.errors import fault, faults, kinds, worded
from autodiff_cli.language.values.exceptions import EXCEPTIONS


def raised(project: Path) -> dict[str, list[ast.Call]]:
    """The calls of `fault`, and of `refuse` in the library's own files, by what they name."""
    calls: dict[str, list[ast.Call]] = {}
    for path in (project / "autodiff_cli").rglob("*.expr"):
        for text in re.findall(r"\brefuse\(.*\)$", path.read_text("utf-8"), re.MULTILINE):
            call = ast.parse(text, mode="eval").body
            assert isinstance(call, ast.Call)
            calls.setdefault(ast.literal_eval(call.args[0]), []).append(call)
    for path in (project / "autodiff_cli").rglob("*.py"):
        if path.name == "errors.py":
            continue
        for found in re.finditer(r"(?<!def )\bfault\(", text := path.read_text("utf-8")):
            node = _call(text[found.start() :])
            if getattr(node.args[0], "id", "") == "which":  # handed on by who is called so too
                continue
            calls.setdefault(ast.literal_eval(node.args[0]), []).append(node)
    return calls


def _call(text: str) -> ast.Call:
    """The call that a text begins with: up to the first parenthesis that makes it one. To parse the
    files whole takes six times as long."""
    for end in re.finditer(r"\)", text):
        with suppress(SyntaxError):
            call = ast.parse(text[: end.end()], mode="eval").body
            assert isinstance(call, ast.Call)
            return call
    raise AssertionError(text)


def test_each_is_raised_with_the_facts_it_names(project: Path) -> None:
    calls = raised(project)
    assert set(calls) == set(faults())
    for which in faults():
        _, _, names, _ = worded(which)
        for call in calls[which]:
            given = [getattr(fact, "id", "") for fact in call.args[1:]]
            keywords = {str(k.arg) for k in call.keywords} - {
                "span",
                "labels",
                "index",
                "converted",
            }
            assert len(given) + len(keywords) == len(names) and keywords <= set(names), which
            left = [name for name in names if name not in keywords]
            left.sort(key=lambda name: int(name) if name.isdigit() else -1)
            # What has the name of a blank stands in its place.
            assert all(a == b for a, b in zip(given, left, strict=True) if a in left), which


def test_form() -> None:
    for which in faults():
        message, rest, names, words = worded(which)
        assert "E" + which[1:4] in kinds() and which[4] == " ", which
        assert not message.endswith(".")
        assert {what for what, _ in rest} <= {"help", "note", "label", "raises", "named"}
        facts = [re.split(r"[.:]", fact)[0] for _, _, when in words for fact, _ in when]
        assert set(facts) <= set(names), which
        assert all(not kind or kind in EXCEPTIONS for _, kind, _ in words), which
    assert list(faults()) == sorted(faults())


def test_facts_fill_the_blanks() -> None:
    vector = SimpleNamespace(shape=(2,))
    error = fault("E308 cosine_embedding_loss-needs-inputs", vector, vector, vector)
    assert error.code == "E308"
    assert error.message.endswith("got (2,), (2,) and (2,)")
    with pytest.raises(KeyError):
        fault("E308 of-nothing")
    with pytest.raises(ValueError):
        fault("E308 cosine_embedding_loss-needs-inputs", vector)
