"""Activations: relu and its relatives, the softmax family."""

from __future__ import annotations
