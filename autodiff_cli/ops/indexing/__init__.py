"""Reading and writing by index, order and masks."""
