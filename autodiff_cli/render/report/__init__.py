"""A program as one page of HTML that needs nothing but itself: source, graph and values, one step
of the chain rule after the other, checks and messages."""
