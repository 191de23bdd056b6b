"""Tensors from nothing, and the same elements in other shapes, orders and memory."""
