"""A Pulumi stack with official CLI and language host, a kubernetes plugin and a file backend."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from simulator.host import paths

PLUGINS = paths.ROOT / "simulator" / "plugins" / "bin"
TIMEOUT_SECONDS = 240


@dataclass
class Result:
    code: int
    output: str


class PluginStack:
    """The program reads the kubeconfig from $KUBECONFIG_TEXT."""

    def __init__(self, folder: Path, kubeconfig: str) -> None:
        self.folder = folder
        (folder / "state").mkdir(parents=True)
        (folder / "Pulumi.yaml").write_text("name: plugin-test\nruntime: python\n")
        self.environment = {
            **os.environ,
            "PATH": os.pathsep.join([str(PLUGINS), str(paths.tools_bin()), os.environ["PATH"]]),
            "PULUMI_HOME": str(folder / "home"),
            "PULUMI_BACKEND_URL": f"file://{folder / 'state'}",
            "PULUMI_CONFIG_PASSPHRASE": "test",
            "PULUMI_SKIP_UPDATE_CHECK": "true",
            "PULUMI_IGNORE_AMBIENT_PLUGINS": "",  # set by `make shell`; emulated plugins are in PATH here
            "SIMULATOR_HOME": str(folder / "simulator"),
            "SIMULATOR_PYTHON": sys.executable,
            "KUBECONFIG_TEXT": kubeconfig,
        }
        assert self.pulumi("stack", "init", "test").code == 0

    def program(self, text: str) -> None:
        (self.folder / "__main__.py").write_text(PREAMBLE + text)

    def pulumi(self, *arguments: str) -> Result:
        process = self.start(*arguments)
        output = outcome(process, TIMEOUT_SECONDS)
        return Result(process.returncode, output)

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        command = [str(paths.tool("pulumi")), *arguments, "--non-interactive", "--color", "never"]
        return subprocess.Popen(
            command,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def up(self) -> Result:
        return self.pulumi("up", "--yes", "--skip-preview")

    def state(self, name: str) -> dict[str, Any]:
        exported = json.loads(self.pulumi("stack", "export").output)
        resources = exported["deployment"].get("resources", [])
        return next(item for item in resources if item["urn"].endswith(f"::{name}"))


def outcome(process: subprocess.Popen[str], seconds: float) -> str:
    """Raises TimeoutExpired, after killing the process group."""
    try:
        return process.communicate(timeout=seconds)[0]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise


PREAMBLE = """
import os
import pulumi
import pulumi_kubernetes as k8s

kubeconfig = pulumi.Output.secret(os.environ["KUBECONFIG_TEXT"])
provider = k8s.Provider("cluster", kubeconfig=kubeconfig, cluster_identifier="x")
options = pulumi.ResourceOptions(provider=provider)
"""
