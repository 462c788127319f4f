"""From Pulumi's configuration to checked settings."""
