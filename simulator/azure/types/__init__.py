"""A package for each resource type, described in `simulator/azure/resource_types.py`."""
