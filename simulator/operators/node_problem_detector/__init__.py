"""node-problem-detector: the real one."""
