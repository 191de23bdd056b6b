"""Python's builtins and modules, and files."""
