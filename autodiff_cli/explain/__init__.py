"""Explanations of gradients: the chain rule step by step, with the program's names and numbers."""
