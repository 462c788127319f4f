"""Simulated commands, one module with a `main` each. They may use the standard library and `simulator/sandbox/library`.
"""
