"""A room for each resource type: `simulator/azure/registry.py` says what it holds."""
