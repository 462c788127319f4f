"""A package for each resource type. `simulator/azure/resource_types.py` describes its files."""
