"""From graphs to arrays."""
