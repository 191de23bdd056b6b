"""The session: statements run as they are entered, commands that look at them, front ends."""
