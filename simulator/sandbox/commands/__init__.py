"""Simulated commands, one a module with a `main`. They run inside the sandbox, by the
interpreter bound there, with the standard library only; what they share is in `simulator/sandbox/library`.
"""
