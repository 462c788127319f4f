"""Reads Pulumi's configuration into validated settings."""
