"""Runs containers in sandboxes, which have only the image's files and simulated devices."""

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The PATH in sandboxes. The simulator also searches it for this machine's programs that sandboxes use."""
