"""From the tree to closures that run: expressions, statements, names, attributes."""
