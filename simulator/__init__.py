"""Simulates Azure and GPU hardware around real Kubernetes and Pulumi. The Pulumi program never imports this package."""
