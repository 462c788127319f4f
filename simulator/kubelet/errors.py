"""Errors of the kubelet about a pod."""

from __future__ import annotations


class VolumeNotReady(Exception):
    """The kubelet's error FailedMount: the source of a volume does not exist yet, or cannot be simulated."""
