"""Runs scripts of the node-problem-detector's image on logs."""

from __future__ import annotations

import os
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

from config.data.content_tags import IMAGES

SCRIPTS = IMAGES / "node-problem-detector"
OK, PROBLEM, UNKNOWN = 0, 1, 2
LINE = "{:%Y-%m-%dT%H:%M:%S.000000+00:00} n "


def run(script: str, *arguments: str, scripts: Path = SCRIPTS, **variables: str) -> tuple[int, str]:
    environment = {"PATH": os.environ["PATH"], **variables}
    command = ["bash", str(scripts / script), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert not done.stderr
    return done.returncode, done.stdout.strip()


def log(folder: Path, *lines: tuple[float, str], style: str = LINE) -> Path:
    """A node's log, of lines so many hours old."""
    now = datetime.now(UTC)
    text = "".join(f"{style.format(now - timedelta(hours=hours))}{line}\n" for hours, line in lines)
    (folder / "syslog").write_text(text)
    return folder
