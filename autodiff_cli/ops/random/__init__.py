"""What random draws leave in the graph."""
