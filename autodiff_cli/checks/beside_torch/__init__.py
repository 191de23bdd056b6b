"""The recorded graph of a program computed in PyTorch, and where results part."""
