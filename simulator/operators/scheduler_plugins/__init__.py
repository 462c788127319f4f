"""scheduler-plugins: its real scheduler, and the controller of its pod groups."""
