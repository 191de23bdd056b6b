"""Files made from the op table are fresh."""

from __future__ import annotations

from pathlib import Path

from autodiff_cli.ops.build import index_text

from ..coverage import PAGE, page


def test_the_coverage_page_is_fresh() -> None:
    assert PAGE.read_text("utf-8") == page(), "run python -m tests.coverage"


def test_the_index_of_names_is_fresh(project: Path) -> None:
    index = project / "autodiff_cli" / "ops" / "index.txt"
    assert index.read_text("utf-8") == index_text(), "run python -m autodiff_cli.ops.build"
