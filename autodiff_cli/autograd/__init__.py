"""Tensors with gradients: handles of graph nodes, reverse and forward mode, views."""
