"""The problems that error messages report, and their fixes."""
