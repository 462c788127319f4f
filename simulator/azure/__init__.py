"""Simulated Azure: Resource Manager's REST API over a store on disk, backed by clusters that really run."""
