"""Special functions of mathematics and statistics."""

from __future__ import annotations
