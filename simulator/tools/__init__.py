"""Installs the executables that the simulator and the checks need: released ones, or builds from source."""
