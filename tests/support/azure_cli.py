from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from simulator.host import paths
from simulator.tools.packages import packages

_SETTINGS = {
    "AZURE_CORE_COLLECT_TELEMETRY": "no",
    "AZURE_CORE_INSTANCE_DISCOVERY": "false",  # else MSAL asks Microsoft about this cloud
    "AZURE_CORE_NO_COLOR": "true",
    "AZURE_CORE_ONLY_SHOW_ERRORS": "false",
}


@dataclass(frozen=True)
class AzureCliResult:
    code: int
    output: str
    errors: str


@dataclass(frozen=True)
class AzureCli:
    folder: Path
    environment: Mapping[str, str]

    def run(self, line: str) -> AzureCliResult:
        installed = packages(paths.tools_bin() / "azure-cli")
        own = {"PYTHONPATH": str(installed), "AZURE_CONFIG_DIR": str(self.folder / "azure"), "HOME": str(self.folder)}
        kept = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        done = subprocess.run(
            [sys.executable, "-m", "azure.cli", *shlex.split(line)],
            cwd=self.folder,
            env={**kept, **_SETTINGS, **self.environment, **own},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        return AzureCliResult(done.returncode, done.stdout.strip(), done.stderr.strip())

    def failing(self, commands: list[tuple[str, str]]) -> dict[str, str]:
        results = {line: (self.run(line), wanted) for line, wanted in commands}
        return {
            line: f"{result.code}: {result.output[-300:]} {result.errors[-900:]}"
            for line, (result, wanted) in results.items()
            if result.code != 0 or wanted not in result.output + result.errors
        }

    def log_in(self) -> None:
        for line in (
            f"cloud register --name Simulator --endpoint-resource-manager {self.environment['SIMULATOR_ARM_ENDPOINT']}",
            "cloud set --name Simulator",
            "login --identity",
        ):
            result = self.run(line)
            assert result.code == 0, result.errors
