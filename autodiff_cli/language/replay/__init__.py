"""Loops run again by a plan: a step fits before it runs, or leaves no trace."""
