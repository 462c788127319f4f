"""Simulated Azure: Resource Manager's REST API over a store on disk and real clusters."""
