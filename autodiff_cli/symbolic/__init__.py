"""Formulas: graphs as sums of products in index form, their derivatives, and both as text."""
