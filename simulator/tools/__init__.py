"""Gets the executables that the simulator and the checks need: released ones where possible, else built from source."""
