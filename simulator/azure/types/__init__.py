"""A package for each resource type. `simulator/azure/rooms.py` describes its files."""
