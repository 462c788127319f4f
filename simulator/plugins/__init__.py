"""Stand-ins for Pulumi plugins: used only where the official one is not installed."""
