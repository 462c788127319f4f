"""The real Node Feature Discovery, on simulated nodes."""
