"""Padding, and pixels moved between space and channels."""
