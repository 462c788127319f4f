from __future__ import annotations

import os
import subprocess
from pathlib import Path

from simulator.host import paths


def run(folder: Path, command: str) -> None:
    environment = {
        **os.environ,
        "PATH": f"{paths.tools_bin()}{os.pathsep}{os.environ['PATH']}",
        "PULUMI_HOME": str(folder / "home"),
        "PULUMI_BACKEND_URL": f"file://{folder}",
        "PULUMI_CONFIG_PASSPHRASE": "test",
        "PULUMI_SKIP_UPDATE_CHECK": "true",
    }
    done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True)  # noqa: S602
    assert done.returncode == 0, done.stdout + done.stderr
