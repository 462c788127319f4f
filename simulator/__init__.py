"""Simulates Azure and GPU hardware around real parts of Kubernetes and Pulumi. The program never imports it."""
