"""What this machine lends: paths, ports, files, processes, certificates, the network."""
