"""NumPy's names and arrays."""
