"""Each command is a module with a `main`. The sandbox's interpreter runs them, with the standard library and
`simulator/sandbox/library` only.
"""
