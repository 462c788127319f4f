"""The problems that messages report, and their fixes."""
