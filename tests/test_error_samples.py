"""Every error that a program can cause has a sample, and says exactly what its snapshot says."""

from __future__ import annotations

from pathlib import Path

from autodiff_cli.errors import kinds
from tests.oracles.error_samples import FOLDER, programs, said
from tests.together import together

# Codes that are no message of a run: checks, an internal error, and a stop from outside.
ELSEWHERE = {"E602", "E603", "E604", "E605", "E606", "E607", "E608", "E900", "E508", "E509"}


@together(programs())
def test_says_what_the_snapshot_says(path: Path) -> None:
    expected = path.with_suffix(".txt").read_text("utf-8")
    assert said(path) == expected


@together(programs())
def test_form(path: Path) -> None:
    text = path.with_suffix(".txt").read_text("utf-8")
    assert f"[{path.stem[:4]}]: " in text
    assert "\nhelp: " in text
    assert "Traceback" not in text
    heading = text.split("\n")[2]
    assert not heading.endswith(".")
    placed = f"--> {path.name}:" in text
    assert placed or path.stem.startswith("E204")


def test_every_code_has_a_sample() -> None:
    sampled = {path.stem[:4] for path in programs()}
    assert set(kinds()) - ELSEWHERE - {"E403"} <= {"E" + code[1:] for code in sampled}
    assert {"W403", "W501", "W502"} <= sampled


def test_every_snapshot_has_a_program() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == {path.stem for path in programs()}


def test_timeout(tmp_path: Path) -> None:
    import io

    from autodiff_cli.cli.main import main
    from autodiff_cli.cli.streams import Environment

    (tmp_path / "slow.expr").write_text("x = 1\nwhile x > 0:\n    x = x + 1\n")
    err = io.StringIO()
    arguments = [
        "run",
        "--timeout",
        "0.2",
        "--max-steps",
        "1000000000",
        str(tmp_path / "slow.expr"),
    ]
    assert main(arguments, Environment(io.StringIO(), io.StringIO(), err, {})) == 4
    assert "error[E508]: " in err.getvalue()
    assert "help: " in err.getvalue()
