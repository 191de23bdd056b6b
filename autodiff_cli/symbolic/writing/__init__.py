"""Formulas as they are written: expressions, their text, their LaTeX, parts with names."""
