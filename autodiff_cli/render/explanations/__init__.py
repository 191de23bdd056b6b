"""Explanations, formulas and answers about gradients."""
