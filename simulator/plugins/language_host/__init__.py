"""Emulated Python language host: runs the user's program in a separate process."""
