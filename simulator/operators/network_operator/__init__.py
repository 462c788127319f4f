"""The NVIDIA Network Operator 26.4, simulated at its NicClusterPolicy."""
