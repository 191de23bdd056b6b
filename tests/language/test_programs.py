"""Programs in PyTorch's words do here what they did in PyTorch: prints, tensors, failing lines."""

from __future__ import annotations

from typing import Any

from tests.recorded import cases, check
from tests.together import together


@together(cases("programs"), lambda case: case["id"], 25)
def test_as_pytorch(case: dict[str, Any]) -> None:
    check(case)
