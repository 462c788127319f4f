"""Simulated commands. They run inside the sandbox, by the interpreter bound there, with the standard library only."""
