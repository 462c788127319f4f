"""The settings as types, and what hangs on their types."""
