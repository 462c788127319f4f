"""Where scripts of pods run: a root with only what their image has, simulated devices, nothing of this machine."""
