"""The real scheduler of scheduler-plugins, and the controller of its PodGroups."""
