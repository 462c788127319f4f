"""What can go wrong with tools, in words for the user: what is wrong, where, and the command that mends it."""

from __future__ import annotations


class ToolError(Exception):
    """A tool cannot be had; the text is shown as it is, without a traceback."""


class Unreachable(ToolError):
    """A download failed for reasons of the network; building the tool instead may work."""
