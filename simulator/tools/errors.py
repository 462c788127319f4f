"""Errors of tools. Each message states the error, the place, and the command that fixes it."""

from __future__ import annotations


class ToolError(Exception):
    """A tool is not available. The message is shown without a traceback."""


class Unreachable(ToolError):
    """A download failed because of the network. Building the tool may work."""
