"""Plans: what is computed in which order and memory, made once for each structure."""
