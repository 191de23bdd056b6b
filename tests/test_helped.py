"""Helps are tried: what an error says to type is typed, and the program runs or gets further."""

from __future__ import annotations

from pathlib import Path

import pytest

from autodiff_cli.cli.fixing import applied, edits_of, proposed
from autodiff_cli.session import run
from autodiff_cli.source import Source
from tests.cli.test_wrong_programs import ADVICE, SLIPS
from tests.helped import better, names_code
from tests.ops.test_table import ERRORS
from tests.oracles import error_samples
from tests.said import compare
from tests.table import PROJECTIONS, Case, arrays_of, bind, each_op
from tests.together import together

FIXTURES = Path(__file__).parent / "fixtures"
HELPED = (FIXTURES / "helped_programs.txt").read_text("utf-8").split("=====\n")
WRONG = (FIXTURES / "wrong_programs.txt").read_text("utf-8").split("=====\n")
WRONG += [
    path.read_text("utf-8", "replace")
    for path in error_samples.programs()
    if not error_samples.arguments(path)
]
WRONG += [*ADVICE, *SLIPS]

# Helps that say where something goes in more words than its code, or that leave a choice.
IN_WORDS = (
    "indent the lines", "write `x, y` or", "the first time, or", "write `and`", "write `i += 1`",
    "`a if condition else b`", "begin a new line", "did you mean 'steps'", "call it on a value",
    "write `@staticmethod", "write `not x`", "reduce it first",
)  # fmt: skip


@together(HELPED)
def test_the_help_of_a_students_program_helps(text: str) -> None:
    assert better(text)


@pytest.mark.parametrize("first", range(0, len(WRONG), 25))
def test_every_help_that_is_code_helps(first: int, request: pytest.FixtureRequest) -> None:
    said = []
    for text in WRONG[first : first + 25]:
        source = Source(text, "wrong.py")
        report = run(source)
        told = [report.error.diagnostic] if report.error else report.warnings
        edits = [tuple(edit) for one in told for edit in edits_of(one, source)]
        edit = proposed(report, source, run) if edits else None
        if edits:
            said.append(f"{edit} of {edits}")
        helps = [help for one in told if names_code(one) for help in one.helps]
        assert not helps or edit or any(w in help for w in IN_WORDS for help in helps), helps
    compare(request, said)


class Written(str):
    """A name in a program."""

    __repr__ = str.__str__


@each_op(ERRORS)
def test_the_help_about_bad_arguments_helps(case: Case) -> None:
    arrays = arrays_of(case)
    names = {place: Written(f"x{i}") for i, place in enumerate(arrays)}
    lines = [
        f"{name} = tensor({arrays[place].tolist()}, dtype=torch.{arrays[place].dtype})"
        for place, name in names.items()
    ]
    args, kwargs = bind(case, names, {key: lambda name: name for key in PROJECTIONS})
    given = ", ".join([*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())])
    text = "\n".join([*lines, f"result = {case.op.key}({given})\n"])
    source = Source(text, "wrong.expr")
    report = run(source)
    error = report.error
    if error is None or error.code != case.sample.code or not names_code(error.diagnostic):
        return  # private, or of a node that no program makes
    if proposed(report, source, run) or any(w in error.helps[0] for w in IN_WORDS):
        return
    # What is given is wrong in two ways, and the help takes away one.
    typed = [
        run(Source(applied(text, [e]), "wrong.expr")) for e in edits_of(error.diagnostic, source)
    ]
    assert any(report.error is None or report.error.helps != error.helps for report in typed), text


def test_a_help_that_does_not_help_is_seen() -> None:
    source = Source("x = 3\nloss = y\n", "wrong.py")
    report = run(source)
    assert report.error is not None
    report.error.amend(helps=("did you mean `z`?",))
    assert proposed(report, source, run) is None


def test_no_private_name_of_the_library_is_told() -> None:
    text = "import torch\nfrom torch import nn\ny = nn.Softmax(torch.ones(2, 3), dim=1)\n"
    error = run(Source(text, "wrong.py")).error
    assert error is not None
    assert error.message.startswith("`nn.Softmax` got several values")
    assert error.diagnostic.helps == (
        "make it first, then call it: `nn.Softmax(dim=1)(torch.ones(2, 3))`",
    )


def test_parameters_and_parts_of_modules_are_suggested() -> None:
    text = "import torch\nfrom torch import nn\nm = nn.Linear(3, 2)\nprint(m.weights)\n"
    error = run(Source(text, "wrong.py")).error
    assert error is not None
    assert error.diagnostic.helps[0].startswith("did you mean `.weight`?")
    assert better(text)
