"""Graphs into other graphs or source: equal nodes merged, stable forms, NumPy, JAX and PyTorch."""
