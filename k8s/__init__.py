"""Kubernetes objects and quantities, parsed and formatted for the program and the simulator."""
