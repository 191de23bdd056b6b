"""Graphs as trees, Graphviz, Mermaid and data."""
