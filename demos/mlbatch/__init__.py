"""Demonstrates project-codeflare/mlbatch: how two teams share a cluster."""
