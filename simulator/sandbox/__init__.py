"""Where scripts of pods run: a root with only what their image has, simulated devices, nothing of this machine."""

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Where programs are looked for, in a sandbox and on this machine, which lends it some."""
