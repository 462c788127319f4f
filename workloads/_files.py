"""A workload's own files (scripts, configuration, NCCL's topology): the content of one ConfigMap."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pulumi_kubernetes as kubernetes

from components.context import GpuPool, WorkloadContext
from config.facts.skus import topologies
from workloads._pods import Mount
from workloads._topology import topology_xml

TOPOLOGY = "topology.xml"
_SHARED = Path(__file__).parent / "_scripts"


@dataclass(frozen=True, kw_only=True)
class Files:
    """Files by name, the ConfigMap that carries them, and the folder in which containers see them."""

    config_map: str
    folder: str
    contents: Mapping[str, str]

    def mount(self) -> Mount:
        """The folder. Pods carry a digest of the files: another script is another pod."""
        digest = hashlib.sha256(repr(sorted(self.contents.items())).encode()).hexdigest()[:16]
        return Mount(
            name="files",
            path=self.folder,
            source={"configMap": {"name": self.config_map}},
            read_only=True,
            annotations={"ai-on-aks/files": digest},
        )

    def path(self, name: str) -> str:
        """Where containers see one file."""
        return f"{self.folder}/{name}"

    def deploy(self, context: WorkloadContext) -> kubernetes.core.v1.ConfigMap:
        """The ConfigMap."""
        return kubernetes.core.v1.ConfigMap(
            self.config_map,
            metadata={"name": self.config_map, "namespace": context.namespace},
            data=dict(self.contents),
            opts=context.child(),
        )


def texts(folder: Path, pattern: str = "*") -> dict[str, str]:
    """The files of a folder that match, by name."""
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(folder.glob(pattern))}


def shared(*names: str) -> dict[str, str]:
    """Scripts that several workloads source, by name."""
    return {name: (_SHARED / name).read_text(encoding="utf-8") for name in names}


def topology_path(files: Files) -> str:
    """Where containers see NCCL's topology file; empty where it is not among the files."""
    return files.path(TOPOLOGY) if TOPOLOGY in files.contents else ""


def topology_file(pool: GpuPool) -> dict[str, str]:
    """NCCL's topology file, where the VM size has one; `workloads._nccl.variables` points NCCL at it."""
    return {TOPOLOGY: topology_xml(topologies()[pool.sku.topology])} if pool.sku.topology else {}
