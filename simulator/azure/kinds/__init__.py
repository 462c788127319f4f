"""The rules of each resource type that the simulated Resource Manager serves."""
