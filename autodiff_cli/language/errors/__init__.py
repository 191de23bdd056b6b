"""From what an error knows to words: labels of operands, advice, PyTorch's words."""
