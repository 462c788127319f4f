"""Sandboxes for containers, with only the image's files and simulated devices."""

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The search path, in a sandbox and for the programs of this machine that it uses."""
