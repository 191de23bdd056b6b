"""Every error worded in `faults.txt` is raised somewhere, with the facts that its text names."""

from __future__ import annotations

import ast
from pathlib import Path
from string import Formatter

import pytest

from autodiff_cli.errors import fault, faults, kinds


def raised(project: Path) -> dict[str, list[ast.Call]]:
    """The calls of `fault` by what they name."""
    calls: dict[str, list[ast.Call]] = {}
    for path in (project / "autodiff_cli").rglob("*.py"):
        text = path.read_text("utf-8")
        if "fault(" not in text or path.name == "errors.py":
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "fault":
                calls.setdefault(ast.literal_eval(node.args[0]), []).append(node)
    return calls


def test_each_is_raised_with_the_facts_it_names(project: Path) -> None:
    calls = raised(project)
    assert set(calls) == set(faults())
    for which, lines in faults().items():
        fields = [field for line in lines for _, field, _, _ in Formatter().parse(line) if field]
        roots = {field.split(".")[0].split("[")[0] for field in fields}
        for call in calls[which]:
            given = {str(i) for i in range(len(call.args) - 1)}
            given |= {str(keyword.arg) for keyword in call.keywords}
            assert given == roots, which


def test_form() -> None:
    for which, (message, *rest) in faults().items():
        assert which[:4] in kinds() and which[4] == " ", which
        assert not message.endswith(".")
        assert {line.partition(": ")[0] for line in rest} <= {"help", "note", "raises"}, which
    assert list(faults()) == sorted(faults())


def test_facts_fill_the_blanks() -> None:
    error = fault("E308 cosine_embedding_loss-needs-inputs", **dict.fromkeys(
        ("input1", "input2", "target"), type("Fact", (), {"shape": (2,)})
    ))  # fmt: skip
    assert error.code == "E308"
    assert error.message.endswith("got (2,), (2,) and (2,)")
    with pytest.raises(KeyError):
        fault("E308 of-nothing")
