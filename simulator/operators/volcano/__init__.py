"""The real scheduler, controllers and webhooks of Volcano."""
