"""The real controllers, webhooks and visibility API of Kueue."""
