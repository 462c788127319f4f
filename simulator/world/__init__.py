"""Simulated hardware: nodes, GPUs, HCAs, the fabric between them, and faults."""
