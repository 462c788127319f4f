"""The simulated Azure: Resource Manager's REST API over a store on disk, with clusters that really run behind it."""
