"""A launch of Metaseq's training, as mpirun hands it over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from config.facts import skus
from simulator.sandbox.library import metaseq_options, view
from simulator.sandbox.library.programs import Call
from simulator.sandbox.library.ranks import Rank
from simulator.world import snapshot
from simulator.world.faults import Fault
from simulator.world.hardware import node_hardware
from tests.support.pools import pool
from tests.units.simulator.sandbox.job import PLATFORM, node_name
from workloads.metaseq.manifests import Run, training_arguments
from workloads.metaseq.options import MetaseqOptions
from workloads.metaseq.plan import Plan

H100 = skus.sku("Standard_ND96isr_H100_v5")
HEAD = "barrierlesstcpr://w-0.w:29400"


@dataclass
class Launch:
    """What mpirun hands over: the ranks of some nodes, each with its process's options. Change it, then `run`."""

    size: str = "66b"
    nodes: int = 2
    updates: int = 2
    faults: list[Fault] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=lambda: {"NCCL_TOPO_FILE": "/topology.xml"})
    in_turn: bool = False
    """Ranks of a node are not consecutive."""

    def __post_init__(self) -> None:
        options = MetaseqOptions(model_size=self.size, num_updates=self.updates)
        self.plan: Plan = Run(options=options, pool=pool(), nodes=self.nodes, image="metaseq:1", **PLATFORM).plan
        self.words = training_arguments(self.plan, options)
        places = [(node, local) for node in range(self.nodes) for local in range(8)]
        self.places = sorted(places, key=lambda place: place[1]) if self.in_turn else places
        own = [{"rank": rank, "local": local} for rank, (_, local) in enumerate(self.places)]
        self.own: list[dict[str, Any]] = own
        self.extra: list[str] = []

    def options_of(self, rank: int) -> dict[str, Any]:
        own = self.own[rank]
        words = [*self.words, *self.extra, "--distributed-rank", str(own["rank"]), "--device-id", str(own["local"])]
        words += ["--distributed-world-size", str(own.get("size", len(self.places)))]
        return vars(metaseq_options.parse([*words, "--distributed-init-method", own.get("head", HEAD)]))

    def world(self) -> view.View:
        """The nodes' pods, as the simulator would show them."""
        hardware = {name: node_hardware(H100, name, self.faults) for name in map(node_name, range(self.nodes))}
        nodes = [
            {
                "metadata": {"name": name, "labels": {"node.kubernetes.io/instance-type": H100.name}},
                "status": {"capacity": {"cpu": "96"}, "conditions": [{"type": "Ready", "status": "True"}]},
            }
            for name in hardware
        ]
        shm = {"name": "shm", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}}
        rights = {"capabilities": {"add": ["IPC_LOCK"]}}
        container = {"securityContext": rights, "volumeMounts": [{"name": "shm", "mountPath": "/dev/shm"}]}
        pods = [
            {
                "metadata": {"namespace": "ai", "name": f"w-{index}"},
                "spec": {"nodeName": name, "subdomain": "w", "containers": [container], "volumes": [shm]},
                "status": {"phase": "Running", "podIP": f"10.244.{index}.4"},
            }
            for index, name in enumerate(hardware)
        ]
        devices = {"gpus": list(range(8)), "hcas": [f"mlx5_{index}" for index in range(8)]}
        topology = {"groups": [[gpu.pci, hca.pci] for gpu, hca in zip(*_pairs(hardware), strict=True)]}
        state = {"sshd": {"topologies": {"/topology.xml": topology}, "nccl_conf": {"NCCL_IB_HCA": "^mlx5_8"}}}
        keys = [snapshot.pod_key(pod) for pod in pods]
        shown = snapshot.snapshot(nodes, pods, hardware, dict.fromkeys(keys, devices), dict.fromkeys(keys, state))
        found = {key: view.Pod(key, facts) for key, facts in shown["pods"].items()}
        return view.View(shown["nodes"], found, found["ai/w-0"])

    def calls(self) -> Sequence[Call]:
        known = self.world()
        placed = [Rank(known.pods[f"ai/w-{node}"], local, 8, rank) for rank, (node, local) in enumerate(self.places)]
        return [Call(rank, self.options_of(rank.number)) for rank in placed]


def _pairs(hardware: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    first = next(iter(hardware.values()))
    return list(first.gpus), [hca for hca in first.hcas if hca.link_layer == "InfiniBand"]
