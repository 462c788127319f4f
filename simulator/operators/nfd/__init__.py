"""Node Feature Discovery: the real one, on simulated nodes."""
