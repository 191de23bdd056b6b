"""From text to the tree; imports nothing else of the language."""
