"""Groups of nodes that run together, tile by tile."""
