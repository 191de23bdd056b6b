"""The commands of the session."""
