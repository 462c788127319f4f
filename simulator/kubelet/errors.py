"""What the kubelet meets while it makes a pod ready."""

from __future__ import annotations


class VolumeNotReady(Exception):
    """The kubelet's FailedMount: what a volume refers to is not there (yet), or cannot be simulated."""
