"""Programs in PyTorch's words do here what they did in PyTorch: prints, tensors, failing lines."""

from __future__ import annotations

from typing import Any

import pytest

from tests.recorded import cases, check


@pytest.mark.parametrize("case", cases("programs"), ids=lambda case: case["id"])
def test_as_pytorch(case: dict[str, Any]) -> None:
    check(case)
