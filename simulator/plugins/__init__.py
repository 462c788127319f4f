"""Emulated Pulumi plugins, used only where the official plugin is not installed."""
