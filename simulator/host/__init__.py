"""Access to this machine: paths, ports, files, processes, certificates and the network."""
