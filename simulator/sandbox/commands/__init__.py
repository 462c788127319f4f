"""Simulated commands, one module with a `main` each. The sandbox's interpreter runs them, with the standard library and
`simulator/sandbox/library` only.
"""
