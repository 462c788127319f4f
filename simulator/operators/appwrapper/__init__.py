"""AppWrapper: its real controller and webhooks."""
