"""`python -m simulator.command.stacks`: rejects a stack name or file that Pulumi cannot use."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import yaml

from simulator.host import paths
from simulator.host.similar import similar

DEFAULT = "dev"
_PLATFORM = "ai-on-aks:platformStack"


def chosen() -> str:
    return os.environ.get("STACK", DEFAULT)


def files() -> list[str]:
    return sorted(file.name.split(".")[1] for file in paths.ROOT.glob("Pulumi.*.yaml"))


def platform_of(stack: str) -> str | None:
    """Returns the stack of the shared platform, or None for a stack with its own platform."""
    file = paths.ROOT / f"Pulumi.{stack}.yaml"
    if stack not in files() or _fault(file):
        return None
    config = (yaml.safe_load(file.read_text(encoding="utf-8")) or {}).get("config") or {}
    named = config.get(_PLATFORM)
    return named.rpartition("/")[2] if isinstance(named, str) else None


def problem(stack: str) -> str | None:
    """Returns the error in a stack's name or file, with the fix, or None if both are valid."""
    if not stack:
        return f"STACK is empty.\n  fix: set it to one of {', '.join(files())}, or omit it"
    if stack not in files():
        likely = next(iter(similar(stack, files())), DEFAULT)
        return (
            f"unknown stack {stack}: Pulumi.{stack}.yaml does not exist. The stacks are: {', '.join(files())}.\n"
            f"  fix: make up STACK={likely}, or copy a stack's file to the new name"
        )
    return _fault(paths.ROOT / f"Pulumi.{stack}.yaml")


def _fault(file: Path) -> str | None:
    command = [sys.executable, "-m", "config.reading.check_stack_file", str(file)]
    checked = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True, check=False)
    return checked.stderr.strip() if checked.returncode else None


if __name__ == "__main__":
    found = problem(chosen())
    if found:
        sys.stderr.write(f"error: {found}\n")
    sys.exit(1 if found else 0)
