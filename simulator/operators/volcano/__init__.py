"""Volcano: its real scheduler, controllers and webhooks."""
