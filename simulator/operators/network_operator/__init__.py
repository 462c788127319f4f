"""An emulation of the NVIDIA Network Operator 26.4, which acts on its NicClusterPolicy."""
