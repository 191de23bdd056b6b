"""Graphs over more rows than fit into memory: block by block, wherever the blocks are."""
