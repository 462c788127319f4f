"""Simulates Azure and GPU hardware around real Kubernetes and Pulumi. The program never imports it."""
