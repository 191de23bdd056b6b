"""What programs handle: kinds of values, and what operators, calls and conversions do with them."""
