"""Kinds of factors: how each is read from ops, simplified, differentiated and written."""
