"""Reductions over dims, and running ones."""
