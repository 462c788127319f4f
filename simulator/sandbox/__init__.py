"""Sandboxes for containers: a root with only the files of the image, simulated devices, nothing of this machine."""

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The search path for programs, in a sandbox and for the programs of this machine that it uses."""
