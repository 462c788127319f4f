"""Node Feature Discovery 0.19, simulated: its worker, master and garbage collector."""
