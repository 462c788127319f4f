"""Used by the program and the simulator."""
