"""An emulation of the NVIDIA GPU Operator 26.7, which acts on its ClusterPolicy."""
