"""What must hold between settings, and where workloads go."""
