"""A real operator's pod, with files in a folder of this machine and other ports."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from simulator.kubelet.programs import HostProcess, ImageProgram
from tests.support.fake_kube import Context


@dataclass
class HostPod(Context):
    folder: Path = Path("/pod")
    words: tuple[str, ...] = ()

    def argv(self) -> list[str]:
        return list(self.words)

    def host_path(self, path: str) -> str:
        return str(self.folder / path.lstrip("/"))

    def kubeconfig(self) -> str:
        return str(self.folder / "kubeconfig")

    def local_port(self, container_port: int) -> int:
        return 20_000 + container_port

    def cluster_proxy(self) -> str:
        return "socks5://127.0.0.1:1080"


def process(programs: tuple[ImageProgram, ...], image: str) -> HostProcess:
    (found,) = [each.program for each in programs if each.image.endswith(image)]
    assert isinstance(found, HostProcess)
    return found


def config_of(command: list[str]) -> Any:
    files = [word.removeprefix("--config=") for word in command if word.startswith("--config=")]
    return yaml.safe_load(Path(files[-1]).read_text())
