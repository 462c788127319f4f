"""Kubernetes objects and quantities: parsing and formats that the program and the simulator share."""
