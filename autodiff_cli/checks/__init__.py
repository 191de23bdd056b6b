"""Checks of gradients: finite differences, expectations in comments, snapshots, PyTorch beside."""
