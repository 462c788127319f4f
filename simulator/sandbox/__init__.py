"""Sandboxes for containers, with only the image's files and simulated devices."""

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The search path in sandboxes, and for programs of this machine that sandboxes use."""
