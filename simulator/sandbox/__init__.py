"""A sandbox has a root with only the files of the image, simulated devices, and nothing of this machine."""

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The search path in a sandbox, and for the programs of this machine that it uses."""
