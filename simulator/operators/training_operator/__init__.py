"""Kubeflow's training operator: its real controller and webhooks."""
