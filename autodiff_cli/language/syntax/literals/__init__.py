"""The values of literals: texts, numbers, long lists of numbers."""
