"""Measurements against hand-written NumPy, PyTorch and JAX: `python -m benchmarks --help`."""
