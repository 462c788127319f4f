"""Emulated Pulumi plugins are used only where the official plugin is not installed."""
