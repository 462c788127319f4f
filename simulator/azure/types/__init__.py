"""A room for each resource type: `simulator/azure/rooms.py` says what it holds."""
