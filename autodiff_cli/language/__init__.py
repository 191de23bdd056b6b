"""The language: from the text of a program to what it computes."""
