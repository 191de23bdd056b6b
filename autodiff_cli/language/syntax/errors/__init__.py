"""What is wrong with a text that does not parse, in words."""
