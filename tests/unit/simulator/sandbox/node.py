from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from config.data import skus
from k8s.objects import Object
from simulator.sandbox import machine, sandbox
from simulator.sandbox.images import image_name
from simulator.sandbox.spec import Mount, SandboxSpec
from simulator.world.hardware import NodeHardware, node_hardware

NAME = "aks-gpu-22222222-vmss000000"


@dataclass
class Node:
    """The node's file system in `root` outlives containers."""

    folder: Path
    sku: str = "Standard_ND96isr_H100_v5"
    hardware: NodeHardware = field(init=False)

    def __post_init__(self) -> None:
        self.hardware = node_hardware(skus.sku(self.sku), NAME)
        machine.write(self.root, self.hardware)

    @property
    def root(self) -> Path:
        return self.folder / "node"

    def change(self, **hardware: Any) -> None:
        self.hardware = replace(self.hardware, **hardware)
        machine.write(self.root, self.hardware)

    def run(self, pod: Object, container: Object, *, timeout_s: float = 60, **spec: Any) -> tuple[int, str]:
        """The container has the pod's hostPath volumes. Returns exit code and log."""
        log = self.folder / "log"
        with log.open("wb") as stream:
            process = sandbox.start(self.spec(pod, container, **spec), stream.fileno())
            code = process.wait(timeout_s)
        print(log.read_text())
        return code, log.read_text()

    def spec(self, pod: Object, container: Object, **spec: Any) -> SandboxSpec:
        env = {entry["name"]: entry["value"] for entry in container.get("env", []) if "value" in entry}
        fields: Object = {
            "argv": tuple(container["command"]),
            "env": env,
            "privileged": bool(container["securityContext"].get("privileged")),
            "mounts": tuple(self._mounts(pod, container)),
            **spec,
        }
        return SandboxSpec(
            pod="node-tools/tool",
            image=image_name(container["image"]),
            hostname="tool",
            hardware=self.hardware,
            run_dir=self.folder / "run",
            world_dir=self.folder / "world",
            node_dir=self.root,
            **fields,
        )

    def reboot(self) -> None:
        """Removes arrays and mounts, not the disks' content."""
        mounts = self.root / machine.MOUNTS
        for line in mounts.read_text().splitlines()[1:]:
            device, point, *_ = line.split()
            filesystem = self.disk(device.removeprefix("/dev/"))["filesystem"]
            kept = self.root / "dev" / ".contents" / filesystem["uuid"]
            shutil.copytree(self.root / point.lstrip("/"), kept)
            shutil.rmtree(self.root / point.lstrip("/"))
        mounts.unlink()
        for array in (self.root / "sys" / "block").glob("md*"):
            shutil.rmtree(array)
            (self.root / "dev" / array.name).unlink()
        for holder in (self.root / "sys" / "block").glob("*/holders/md*"):
            holder.rmdir()
        machine.write(self.root, self.hardware)

    def disk(self, name: str) -> Object:
        text = (self.root / "dev" / name).read_text()
        found: Object = json.loads(text) if text else {}
        return found

    def disks(self) -> dict[str, str]:
        names = [self.hardware.os_disk.name, *(disk.name for disk in self.hardware.nvme)]
        return {name: (self.root / "dev" / name).read_text() for name in names}

    def _mounts(self, pod: Object, container: Object) -> list[Mount]:
        paths = {volume["name"]: volume["hostPath"]["path"] for volume in pod["volumes"]}
        return [
            Mount(
                self.root / paths[entry["name"]].lstrip("/"),
                entry["mountPath"],
                bool(entry.get("readOnly")),
                entry.get("mountPropagation") == "Bidirectional",
            )
            for entry in container["volumeMounts"]
        ]
