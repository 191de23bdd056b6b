"""vmap on graphs: what was recorded for one example, for all examples at once."""
