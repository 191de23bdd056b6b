"""Transforms of transforms do here what they do in PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

from tests.recorded import cases, check


@pytest.mark.parametrize("case", cases("transform_pairs"), ids=lambda case: case["id"])
def test_as_pytorch(case: dict[str, Any]) -> None:
    check(case)
