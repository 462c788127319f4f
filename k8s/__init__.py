"""Kubernetes objects and quantities: parsing and formatting for the program and the simulator."""
