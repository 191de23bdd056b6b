"""Transforms of transforms do here what they do in PyTorch."""

from __future__ import annotations

from typing import Any

from tests.recorded import cases, check
from tests.together import together


@together(cases("transform_pairs"), lambda case: case["id"])
def test_as_pytorch(case: dict[str, Any]) -> None:
    check(case)
