"""What a command made of a program, shown again at every other width: where something fits, and
where it does not. In ASCII, in colours and with other numbers at some of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from rich.text import Text

from autodiff_cli.cli.main import main
from autodiff_cli.cli.runner import Runner
from autodiff_cli.cli.streams import Environment
from tests.said import compare

from .conftest import Stream
from .test_shown import PROGRAMS

SHOWN = {
    "run --only values --show *": ["kinds"],
    "run --only graph --all": ["modules"],
    "run --only graph --profile --plan": ["matrices"],
    "run --heat NAME,NAME.grad": ["not finite"],
    "graph --values --grads": ["cuts"],
    "explain": ["cuts"],
    "derive": ["classes"],
    "derive --steps": ["sums"],
    "jacobian": ["views"],
    "jacobian --layout flat": ["names"],
    "hessian": ["matrices"],
    "why NAME": ["cuts", "not finite"],
}
OTHERS: list[tuple[dict[str, str], dict[str, Any]]] = [
    ({"LC_ALL": "C"}, {}), ({"FORCE_COLOR": "3"}, {}), ({}, {"precision": 3, "sci": True}),
    ({}, {"max_elements": 3}), ({}, {"max_elements": 0, "precision": 12}),
]  # fmt: skip
WIDTHS = range(21, 112, 2)


def written(self: Console, text: Text) -> None:
    """A text with the names of its styles: what rich makes of it takes longer than all else."""
    self.file.write(f"{text.markup}\n")


@pytest.mark.parametrize(
    ("command", "name"), [(command, name) for command, names in SHOWN.items() for name in names]
)
@pytest.mark.usefixtures("clock")
def test_every_width(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str,
    name: str,
) -> None:  # fmt: skip
    found = dict.fromkeys(WIDTHS, "")

    def again(self: Runner, *names: Any) -> Any:
        made = result(self, *names)
        values = self.values.copy()
        for width in WIDTHS:
            for variables, other in [({}, {}), *(OTHERS if width % 9 == 0 else ())]:
                self.values.update(values, **other)
                self.env.variables = {"COLUMNS": str(width), **variables}
                self.env.stdout = Stream(tty=True)
                self.show(made[0], width % 9 == 0)
                found[width] += self.env.stdout.getvalue()
        return made

    result = Runner._result
    monkeypatch.setattr(Runner, "_result", again)
    monkeypatch.setattr(Console, "print", written)
    monkeypatch.chdir(tmp_path)
    text = PROGRAMS[name]
    words = command.replace("NAME", text.partition(" = ")[0].split()[-1]).split()
    (tmp_path / "p").write_text(text)
    main([*words, "p"], Environment(None, Stream(tty=True), Stream(tty=True), {}))
    tens = ("".join(list(found.values())[at : at + 10]) for at in range(0, len(WIDTHS), 10))
    compare(request, tens, 4)
