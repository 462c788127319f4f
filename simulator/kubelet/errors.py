"""Errors of the kubelet about a pod."""

from __future__ import annotations


class VolumeNotReady(Exception):
    """The kubelet's FailedMount: a volume's source does not exist (yet), or cannot be simulated."""
