"""The NVIDIA GPU Operator 26.7, simulated at its ClusterPolicy."""
