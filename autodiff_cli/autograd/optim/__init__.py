"""The arithmetic of optimizers."""
