"""The rules between settings, and the placement of workloads."""
