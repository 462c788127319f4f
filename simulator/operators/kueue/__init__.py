"""Kueue: its real controllers, webhooks and visibility API."""
